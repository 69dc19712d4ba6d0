-- The command `lookupc doctor`: what this machine has of all that lookupc can use, and how to get what is missing.
local cpu = require "harness.base.cpu"
local figures = require "gen.plan.figures"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local library_cache = require "harness.base.library_cache"
local process = require "process"
local target = require "gen.plan.target"

local doctor = {}

-- Programs beside those of firmware targets: name, Debian package, what for.
local programs = {
    { "gcc", "gcc", "compiles for run, verify, bench, tune and tokenize" },
    { "clang", "clang", "a second compiler for tune --cc and verify --cc" },
    { "cppcheck", "cppcheck", "MISRA.md of firmware" },
    { "qemu-x86_64-static", "qemu-user-static", "instruction sets that this CPU does not run" },
}

-- The path of a program, or nil.
local function find(name)
    for folder in (process.variable "PATH" or ""):gmatch "[^:]+" do
        local path = folder .. "/" .. name
        if host.kind(path) == "file" and process.run({ "test", "-x", path }).status == 0 then return path end
    end
end

local function version(path)
    local result = process.run({ path, "--version" }, { timeout = 20 })
    return result and result.status == 0 and result.output:match "[^\n]+" or path
end

-- Rows { name, found: a line or nil, package, use }.
local function programs_here()
    local rows, seen = {}, {}
    local function add(name, package, use)
        if seen[name] then
            seen[name].use = seen[name].use .. (use:find "^firmware: " and ", " .. use:gsub("^firmware: ", "") or "")
            return
        end
        local path = find(name)
        rows[#rows + 1] = { name = name, found = path and version(path), package = package, use = use }
        seen[name] = rows[#rows]
    end
    for _, row in ipairs(programs) do
        add(table.unpack(row))
    end
    for _, row in ipairs(target.list) do
        if row.packages then
            add(row.compiler, row.packages[1], "firmware: " .. row.name)
            if row.emulator then add(row.emulator[1], row.packages[#row.packages], "firmware: " .. row.name) end
        end
    end
    return rows
end

local function first_word_in_brackets(path)
    local text = host.read(path)
    return text and text:match "%[(%w+)%]"
end

-- Pages of 2 MiB: how the system gives them out, and how many are set aside.
local function huge_pages()
    local memory = host.read "/proc/meminfo" or ""
    return {
        transparent = first_word_in_brackets "/sys/kernel/mm/transparent_hugepage/enabled",
        reserved = math.tointeger(tonumber(memory:match "HugePages_Total:%s*(%d+)")) or 0,
    }
end

local function facts_here()
    local facts = cpu.describe()
    local measure = process.executable():gsub("[^/]*$", "lookupc-measure")
    return {
        version = host.version,
        cpu = {
            name = facts.model,
            architecture = facts.architecture,
            threads = process.cpu_count(),
            isa = json.array(facts.isa),
            features = json.array(isa.features(facts)),
            l1d = facts.l1d,
            l2 = facts.l2,
            l3_share = facts.l3_share,
        },
        huge_pages = huge_pages(),
        measure = host.kind(measure) == "file",
        tokenizer = host.kind((process.executable():gsub("[^/]*$", "lookupc-tokenizer"))) == "file",
        cache = library_cache.folder(),
        programs = json.array(programs_here()),
    }
end

local function print_facts(facts)
    local function line(name, ...) host.print(string.format("%-24s %s", name, string.format(...))) end
    local of_cpu, lacking = facts.cpu, {}
    line("lookupc", "%s", facts.version)
    line("CPU", "%s, %s, %d threads", of_cpu.name, of_cpu.architecture, of_cpu.threads)
    local sets, features = table.concat(of_cpu.isa, ", "), table.concat(of_cpu.features, ", ")
    line("instruction sets", "%s", sets .. (features ~= "" and "; for some types " .. features or ""))
    for _, row in ipairs { { "l1d", "L1 data cache" }, { "l2", "L2 cache" }, { "l3_share", "L3 cache, share" } } do
        line(row[2], "%s", of_cpu[row[1]] and of_cpu[row[1]] > 0 and figures.bytes(of_cpu[row[1]]) or "unknown")
    end
    local pages = facts.huge_pages
    line("pages of 2 MiB", "%s; %d set aside", pages.transparent or "unknown", pages.reserved)
    line("compiled libraries", "%s", facts.cache or "are not kept: neither XDG_CACHE_HOME nor HOME is set")
    line("lookupc-measure", "%s", facts.measure and "is there" or "is missing: bench and tune need it")
    line("lookupc-tokenizer", "%s", facts.tokenizer and "is there" or "is missing: tokenizer needs it")
    if not facts.measure then
        lacking[1] = "cmake -S . -B build -DLOOKUPC_BENCH=ON && cmake --build build (lookupc-measure)"
    end
    if not facts.tokenizer then
        lacking[#lacking + 1] = "cmake -S . -B build -DLOOKUPC_TRAIN=ON && cmake --build build (lookupc-tokenizer)"
    end
    local packages, listed = {}, {}
    for _, row in ipairs(facts.programs) do
        line(row.name, "%s", row.found or "is missing: " .. row.use)
        if not row.found and not listed[row.package] then
            packages[#packages + 1], listed[row.package] = row.package, true
        end
    end
    if packages[1] then lacking[#lacking + 1] = "apt install " .. table.concat(packages, " ") end
    if lacking[1] then host.print "\nTo get what is missing (Debian's names):" end
    for _, text in ipairs(lacking) do
        host.print("  " .. text)
    end
end

function doctor.doctor(_, options)
    local facts = facts_here()
    if options.json then
        host.print(assert(json.encode(facts)))
    else
        print_facts(facts)
    end
    return 0
end

return doctor
