-- In a bundle of several instruction sets each gives what portable C gives: random models, by the bundle's own
-- benchmark, which compares before it times. verify compiles each set by itself.
local compilers = require "harness.base.compilers"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local host = require "host"
local process = require "process"
local runnable = require "harness.base.runnable"
local transformers = require "tests.fuzz.transformers"
local whole_models = require "tests.fuzz.whole_models"

local test = {}

-- Compiles the bundle of plan `p` with its benchmark in `directory` and runs that. Returns what is wrong, or nil.
local function wrong(p, directory)
    local commands, objects = {}, {}
    local given = setmetatable({}, { __index = p }) -- is told what its benchmark calls
    for i, file in ipairs(emit.files(given, { benchmark = {} })) do
        local path = directory .. "/" .. file.name
        assert(host.write_file(path, file.text))
        if file.name:find "%.c$" then
            local object = string.format("%s/%d.o", directory, i)
            local flags = file.isa and file.isa.flags or {}
            local what = { "-c", path, "-o", object }
            commands[#commands + 1] = compilers.joined({ "gcc", "-std=c99", "-O1" }, flags, what)
            objects[#objects + 1] = object
        end
    end
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then return failure end
    end
    local name = p.model.name
    local program, source = directory .. "/benchmark", string.format("%s/%s_benchmark.cc", directory, name)
    compilers.call(compilers.joined({ "g++", "-std=c++14", "-O1", source }, objects, {
        "-o",
        program,
        "-lbenchmark",
        "-pthread",
    }))
    local result = assert(process.run({ program, "--benchmark_min_time=0.0001" }, { timeout = 300 }))
    if result.status == 0 then return nil end
    return result.output:match "[^\n]*ERROR OCCURRED[^\n]*" or result.output:match "[^\n]+[\n]*$"
end

function test.all_sets_of_a_bundle_agree()
    local failures, kinds, sets, names = {}, { transformers, whole_models }, runnable.sets(nil, {}), {}
    for i, set in ipairs(sets) do
        names[i] = set.name
    end
    for index = effort.seed, effort.seed + effort.several_sets - 1 do
        for n, kind in ipairs(kinds) do
            local directory = process.temporary_directory() .. "/" .. index .. "_" .. n
            assert(host.write_directory(directory, {}))
            local p = kind.plan(index, sets, "several")
            local failure = wrong(p, directory)
            -- BH4 that is multiplied out, too, has no random weights
            if failure and not failure:find("a BLOB is missing", 1, true) then
                failures[#failures + 1] = string.format("%s %d: %s", p.family, index, failure)
            end
        end
    end
    local form = "models from %d on, %d of each kind, for %s"
    host.print(form:format(effort.seed, effort.several_sets, table.concat(names, ",")))
    if #failures > 0 then error(table.concat(failures, "\n"), 0) end
end

return test
