-- On CPUs that lack what this one has, in emulation, a bundle chooses what they can run, and its kernels pass verify.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local process = require "process"

local test = {}

local function run(arguments) return assert(process.run(arguments, { timeout = 300, env = { LD_PRELOAD = "" } })) end

local function call(arguments)
    local result = run(arguments)
    if result.status ~= 0 then error(table.concat(arguments, " ") .. ": " .. result.output, 0) end
    return result.output
end

-- Whether the emulator of the command is there and knows its CPU; says so if not.
local function can_emulate(emulator)
    if cpu.describe().architecture ~= "x86_64" then
        host.print("skipped: " .. table.concat(emulator, " ") .. ": runs programs of x86-64")
        return false
    end
    if run(compile.joined({ "sh", "-c", '"$@"', "sh" }, emulator, { check.lookupc, "--version" })).status ~= 0 then
        host.print("skipped: " .. table.concat(emulator, " ") .. ": does not run here")
        return false
    end
    return true
end

-- verify, with everything that it runs in emulation: it finds out by itself what the CPU has.
for _, name in ipairs(isa.names) do
    local set = isa.get(name)
    for _, case in
        ipairs(set.emulator and {
            { "tiny" },
            { "tiny", "--tables", "i8", "--projection", "i16" },
            { "tiny", "--tables", "f16", "--projection", "bf16" },
            { "tiny_skipless" },
            { "tiny_skipless", "--type", "f16", "--cache", "i8" },
            { "tiny_skipless", "--type", "i8", "--cache", "f16" },
        } or {})
    do
        local title = table.concat(case, "_"):gsub("%-%-%a+_", "")
        test["verify_passes_on_a_CPU_of_" .. name .. "_" .. title] = function()
            if not can_emulate(set.emulator) then return end
            local model, options = "gen/models/" .. case[1] .. ".lua", table.move(case, 2, #case, 1, {})
            local output =
                call(compile.joined(set.emulator, { check.lookupc, "verify", model, "--isa", name }, options))
            check.matches(output, "\n" .. name .. " +%a+ +ok ")
            check.equal(output:find "FAILED", nil)
        end
    end
end

-- A bundle with all instruction sets, on CPUs that have some of them. Nehalem has no XGETBV, Conroe no SSE4.1.
function test.a_bundle_chooses_what_the_CPU_runs()
    local folder = process.temporary_directory()
    local model, weights, blob = "gen/models/tiny.lua", folder .. "/w.safetensors", folder .. "/w.bin"
    call { check.lookupc, "sample", model, "-o", weights }
    call { check.lookupc, "pack", model, "--weights", weights, "-o", blob }
    call { check.lookupc, "emit", model, "--isa", table.concat(isa.names, ","), "-o", folder .. "/tiny" }
    local objects = { folder .. "/dispatch.o" }
    call {
        "gcc",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I" .. folder .. "/tiny",
        "-c",
        "tests/isa/dispatch.c",
        "-o",
        objects[1],
    }
    for _, file in ipairs(json.decode(assert(host.read(folder .. "/tiny/MANIFEST.json"))).files) do
        if file.name:find "%.c$" then
            objects[#objects + 1] = folder .. "/" .. file.name .. ".o"
            call(compile.joined({ "gcc", "-O1", "-ffp-contract=off" }, file.flags or {}, {
                "-c",
                folder .. "/tiny/" .. file.name,
                "-o",
                objects[#objects],
            }))
        end
    end
    call(compile.joined({ "gcc", "-static", "-o", folder .. "/dispatch" }, objects))
    local function chosen(emulator)
        local number, result = call(compile.joined(emulator, { folder .. "/dispatch", blob })):match "(%d+) (%a+)\n$"
        check.equal(result, "right")
        return isa.names[math.tointeger(tonumber(number)) + 1]
    end
    local facts = cpu.describe()
    check.equal(chosen {}, facts.isa[#facts.isa])
    for _, case in ipairs { { "Conroe", "scalar" }, { "Nehalem", "sse4" }, { "Haswell", "avx2" } } do
        local emulator = { "qemu-x86_64-static", "-cpu", case[1] }
        if can_emulate(emulator) then check.equal({ case[1], chosen(emulator) }, case) end
    end
end

return test
