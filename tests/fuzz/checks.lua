-- Compares the compiled kernels of random plans with the reference, for each family that has one.
local blob = require "gen.plan.blob"
local fuzz = require "tests.fuzz.fuzz"
local lookup = require "harness.families.lookup.verify"
local packing = require "gen.families.packing"
local verify = require "harness.families.model.verify"
local weights = require "weights"
local whole_models = require "tests.fuzz.whole_models"

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

-- The path of a checkpoint for plan `p` that was quantised, where its draw says so; nil: verify makes one itself.
function checks.quantised(p, directory, seed)
    if not whole_models.quantised[p] then return nil end
    local given, path = directory .. "/given.safetensors", directory .. "/quantised.safetensors"
    assert(weights.sample(given, "", p.samples, seed))
    assert(weights.quantise(given, path, packing.forms(p, packing.files { weights = given })))
    return path
end

local function of_model(p, library, directory, seed, cc)
    local options = { seed = seed, cc = cc, weights = checks.quantised(p, directory, seed) }
    local lines, prepared = {}, verify.prepare(p, directory, options)
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
