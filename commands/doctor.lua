-- The command `lookupc doctor`: what this machine has of all that lookupc can use, and how to get what is missing.
local cpu = require "harness.base.cpu"
local cpus = require "harness.base.cpus"
local figures = require "gen.plan.figures"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local library_cache = require "harness.base.library_cache"
local machine = require "harness.base.machine"
local process = require "process"
local target = require "gen.plan.target"

local doctor = {}

-- Programs beside those of firmware targets: name, Debian package, what for.
local programs = {
    { "gcc", "gcc", "compiles for run, verify, bench, tune and tokenize" },
    { "clang", "clang", "a second compiler for tune --cc and verify --cc" },
    { "cppcheck", "cppcheck", "MISRA.md of firmware" },
    { "qemu-x86_64-static", "qemu-user-static", "instruction sets that this CPU does not run" },
    { "g++", "g++", "builds lookupc-measure and lookupc-tokenizer" },
    { "cmake", "cmake", "builds lookupc, and projects that use it" },
    { "mpirun", "openmpi-bin", "starts train on several machines" },
    { "wasm-ld-19", "lld-19", "links the modules of emit --web" },
}

-- Parts of lookupc that not every build has: key of the JSON, file, what for, option of CMake.
local parts = {
    { "measure", "lookupc-measure", "bench and tune need it", "LOOKUPC_BENCH" },
    { "tokenizer", "lookupc-tokenizer", "tokenizer needs it", "LOOKUPC_TRAIN" },
    { "mpi", "lookupc-mpi.so", "train needs it on several machines", "LOOKUPC_MPI" },
}

-- Libraries beside those that lookupc itself is linked with: name, file, Debian package, what for.
local libraries = {
    { "OpenBLAS", "libopenblas.so", "libopenblas-dev", "builds lookupc-measure and tests" },
    { "oneDNN", "libdnnl.so", "libdnnl-dev", "builds lookupc-measure" },
    { "Google Benchmark", "libbenchmark.so", "libbenchmark-dev", "builds lookupc-measure" },
    { "SentencePiece", "libsentencepiece.so", "libsentencepiece-dev", "builds lookupc-tokenizer" },
    { "MPI", "libmpi.so", "libopenmpi-dev", "builds lookupc-mpi.so" },
    { "OpenMP", "libgomp.so", "gcc", "compiles models for several threads" },
    { "cmocka", "libcmocka.so", "libcmocka-dev", "builds the tests" },
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

-- Rows { name, package, use, found }: whether the compiler finds them; found is nil where there is none to ask.
local function libraries_here()
    local compiler, rows = find "gcc" or find "cc", {}
    for i, row in ipairs(libraries) do
        local name, file, package, use = table.unpack(row)
        rows[i] = { name = name, package = package, use = use }
        local result = compiler and process.run({ compiler, "-print-file-name=" .. file }, { timeout = 20 })
        if result and result.status == 0 then rows[i].found = result.output:find("/", 1, true) ~= nil end
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
    local list = {
        version = host.version,
        cpu = {
            name = facts.model,
            architecture = facts.architecture,
            threads = cpus.count(),
            machine = machine.name(),
            isa = json.array(facts.isa),
            features = json.array(isa.features(facts)),
            amx = not facts.amx_missing,
            amx_missing = facts.amx_missing, -- why
            l1d = facts.l1d,
            l2 = facts.l2,
            l3_share = facts.l3_share,
        },
        huge_pages = huge_pages(),
        cache = library_cache.folder(),
        programs = json.array(programs_here()),
        libraries = json.array(libraries_here()),
    }
    for _, part in ipairs(parts) do
        list[part[1]] = host.kind(process.beside(part[2])) == "file"
    end
    return list
end

local function print_facts(facts)
    local function line(name, ...) host.print(string.format("%-24s %s", name, string.format(...))) end
    local of_cpu, lacking = facts.cpu, {}
    line("lookupc", "%s", facts.version)
    line("CPU", "%s, %s, %d threads", of_cpu.name, of_cpu.architecture, of_cpu.threads)
    local sets, features = table.concat(of_cpu.isa, ", "), table.concat(of_cpu.features, ", ")
    line("instruction sets", "%s", sets .. (features ~= "" and "; for some types " .. features or ""))
    line("AMX", "%s", of_cpu.amx and "yes" or "no: " .. of_cpu.amx_missing)
    line("defaults", "--for %s", of_cpu.machine)
    for _, row in ipairs { { "l1d", "L1 data cache" }, { "l2", "L2 cache" }, { "l3_share", "L3 cache, share" } } do
        line(row[2], "%s", of_cpu[row[1]] and of_cpu[row[1]] > 0 and figures.bytes(of_cpu[row[1]]) or "unknown")
    end
    local pages = facts.huge_pages
    line("pages of 2 MiB", "%s; %d set aside", pages.transparent or "unknown", pages.reserved)
    line("compiled libraries", "%s", facts.cache or "are not kept: neither XDG_CACHE_HOME nor HOME is set")
    local options, packages, listed = {}, {}, {}
    for _, part in ipairs(parts) do
        local key, file, use, option = table.unpack(part)
        line(file, "%s", facts[key] and "is there" or "is missing: " .. use)
        if not facts[key] then options[#options + 1] = "-D" .. option .. "=ON" end
    end
    local function lacks(row)
        if not listed[row.package] then packages[#packages + 1] = row.package end
        listed[row.package] = true
    end
    for _, row in ipairs(facts.programs) do
        line(row.name, "%s", row.found or "is missing: " .. row.use)
        if not row.found then lacks(row) end
    end
    for _, row in ipairs(facts.libraries) do
        if row.found == nil then
            line(row.name, "unknown: no compiler to ask")
        else
            line(row.name, "%s", row.found and "is there" or "is missing: " .. row.use)
            if not row.found then lacks(row) end
        end
    end
    if packages[1] then lacking[1] = "apt install " .. table.concat(packages, " ") end
    if options[1] then
        lacking[#lacking + 1] =
            string.format("cmake -S . -B build %s && cmake --build build", table.concat(options, " "))
    end
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
