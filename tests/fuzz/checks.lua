-- Compares the compiled kernels of random plans with the reference, for each family that has one.
local blob = require "gen.plan.blob"
local fuzz = require "tests.fuzz.fuzz"
local lookup = require "harness.families.lookup.verify"
local verify = require "harness.families.model.verify"
local weights = require "weights"

local checks = {}

local function packed(p, directory, seed)
    local files = { weights = directory .. "/w.safetensors", prefix = "", output = directory .. "/w.bin" }
    assert(weights.sample(files.weights, "", p.tensors, seed))
    assert(weights.pack(blob.packing(p, files)))
    return files
end

local function add_checks(lines, result)
    for _, row in ipairs(result.checks) do
        if not row.ok then lines[#lines + 1] = row.name .. ": " .. row.detail end
    end
end

local function of_model(p, library, directory, seed, cc)
    local lines, prepared = {}, verify.prepare(p, directory, { seed = seed, cc = cc })
    for _, result in ipairs(verify.check_library(p, library, prepared)) do
        if not result.ok then lines[#lines + 1] = result.call .. ": " .. result.message end
    end
    return lines
end

local by_family = {
    lookup = function(p, library, directory, seed)
        local lines, options = {}, { work = fuzz.work }
        for _, result in ipairs(lookup.variants(p, library, packed(p, directory, seed), seed, 1, options)) do
            add_checks(lines, result)
        end
        return lines
    end,
    transformer = of_model,
    whole = of_model,
}

-- What is wrong with the kernels of plan `p`, a line each: (p, library, directory, seed, cc), `cc` compiled the
-- library, weights of that seed go to `directory`.
function checks.failures(p, ...) return by_family[p.family](p, ...) end

return checks
