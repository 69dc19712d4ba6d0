-- Random models, with the default schedule and a random one, random transformers and whole models, and models in which
-- something was once found, run clean under the address and undefined-behaviour sanitizers of both compilers.
local check = require "tests.support.check"
local checks = require "tests.fuzz.checks"
local cpu = require "harness.base.cpu"
local compile = require "harness.base.compile"
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local process = require "process"
local transformers = require "tests.fuzz.transformers"
local verify = require "harness.families.model.verify"
local whole_models = require "tests.fuzz.whole_models"

local path = "tests/fuzz/sanitized_test.lua"
local optimised = "-Og " .. fuzz.sanitizers -- for LookupFFNs, which are verified for longer than they are compiled

-- Random plans that plan_of makes, each on the next of the instruction sets, verified.
local function verify_plans(cc, plan_of)
    local names, directory = cpu.describe().isa, process.temporary_directory()
    local first, last = fuzz.share(cc, effort.fuzz_transformers)
    for index = first, last do
        local p, given = plan_of(index, { isa.get(names[index % #names + 1]) })
        local options = { seed = index, weights = checks.quantised(p, directory, index) }
        local prepared = verify.prepare(p, directory, options)
        local cflags = "-O0 " .. fuzz.sanitizers -- compiling takes longer than what is compiled
        local library = compile.library({ p }, directory .. "/source", cc, cflags)
        for _, result in ipairs(verify.check_library(p, library, prepared, 1)) do
            if not result.ok then
                error(
                    string.format(
                        "%s %s %s --type %s --cache %s --activations %s --tables %s --projection %s --schedule %s: %s\n"
                            .. "  %sLOOKUPC_SEED=%d repeats this",
                        cc,
                        result.isa,
                        result.call,
                        result.type,
                        result.cache,
                        result.activations or "f32",
                        result.tables or "-",
                        result.projection or "-",
                        p.variants[1].schedule_text,
                        result.message,
                        fuzz.text(given),
                        effort.seed
                    ),
                    0
                )
            end
        end
    end
end

-- Models of which random ones are rare.
local found = {
    -- One function for blocks whose sums are folded and others, whose distance of two folds is 0: less than their rows.
    { d = 37, block = 8 },
    { d = 37, block = 4 },
}

local function verify_found(cc)
    for _, row in ipairs(found) do
        fuzz.verify_model(cc, optimised, {
            name = "found",
            d = row.d,
            h = 2,
            tau = 3,
            projection = { kind = "bh4", block = row.block, decay = 0.7 },
            score = "gelu",
        }, isa.select "scalar")
    end
end

local test = {}

for _, cc in ipairs { "gcc", "clang" } do
    local function add(name, run)
        test[name] = function() fuzz.sanitized(path, name, check.lookupc, cc, run) end
    end
    if effort.full "compilers" or cc == "gcc" then -- LookupFFNs with one compiler otherwise
        add("random_models_run_clean_with_" .. cc, function() fuzz.verify(cc, optimised, 1, isa.select "scalar") end)
        add("what_was_found_runs_clean_with_" .. cc, function() verify_found(cc) end)
    end
    add("random_transformers_run_clean_with_" .. cc, function() verify_plans(cc, transformers.plan) end)
    add("random_whole_models_run_clean_with_" .. cc, function() verify_plans(cc, whole_models.plan) end)
end

return test
