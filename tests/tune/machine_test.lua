-- `lookupc tune --machine` writes the file of a CPU: what it holds, what is kept of a race, and that it goes on.
local check = require "tests.support.check"
local host = require "host"
local machine_file = require "harness.tune.machine_file"
local machines = require "gen.machines.list"
local program = require "tests.support.program"

local test = {}

-- The same numbers are the same bytes: every file as it is, read and written.
function test.files_are_written_as_they_stand()
    for _, name in ipairs(machines.names) do
        local path = "gen/machines/" .. name .. ".lua"
        check.equal(machine_file.text(machine_file.load(path)), host.read(path))
        check.equal(machine_file.load(path), machines.get(name))
    end
end

function test.what_is_no_file_of_a_cpu_is_refused()
    local path = program.folder() .. "/cpu.lua"
    local text = assert(host.read "gen/machines/zen3.lua")
    for _, row in ipairs {
        { "return 1", ": is no file of a CPU: cpus must be a table" },
        { text:gsub("far_rows = 16", 'far_rows = "16"'), ": is no file of a CPU: far_rows must be a number" },
        { "return {", ":1: unexpected symbol near <eof>" },
        { "return os", ": is no file of a CPU: cpus must be a table" },
    } do
        assert(host.write_file(path, row[1]))
        check.fails_with(path .. row[#row], machine_file.load, path)
    end
end

function test.the_nearest_cpu_of_the_vendor_is_the_start()
    for _, row in ipairs {
        { "AuthenticAMD", 25, 1, "zen3", 0 },
        { "AuthenticAMD", 25, 150, "zen4", 10 },
        { "AuthenticAMD", 23, 49, "zen3", 131072 },
        { "GenuineIntel", 6, 173, "sapphire-rapids", 30 },
        { "HygonGenuine", 24, 0, "generic", math.huge },
    } do
        local name, apart = machines.nearest(row[1], row[2], row[3])
        check.equal({ name, apart }, { row[4], row[5] })
        check.equal(machines.of_cpu(row[1], row[2], row[3]), row[5] == 0 and row[4] or machines.nominal)
    end
end

return test
