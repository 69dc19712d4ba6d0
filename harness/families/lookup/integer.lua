-- Runs compiled kernels of integers on this CPU, compares them with their reference, and times them.
local budget = require "harness.verify.budget"
local integer = require "harness.verify.integer"
local integers_there = require "harness.families.lookup.integers_there"
local packed = require "harness.families.lookup.packed"
local statistics = require "harness.base.statistics"
local timed = require "harness.families.lookup.timed_integers"

local integers = {}

-- What the module `integer` needs to know to run plan `p` with the packed weights `blob`.
local function job_of(p, library, blob)
    return {
        library = library,
        bind = p.names.bind,
        ffn = p.names.ffn,
        project = p.variants[1].stages[1].names.project,
        blob = blob,
        d = p.shape.d,
        d_out = p.shape.d_out,
        slots = p.shape.slots,
        scratch_bytes = p.scratch_bytes,
        weights_struct_bytes = p.weights_struct_bytes,
        x_unit = p.unit,
        y_unit = 2.0 ^ -p.fraction,
    }
end

-- The same with what the reference needs to know of the blob.
local function reference_job_of(p, library, files, seed)
    local job = job_of(p, library, files.output)
    job.model = packed.reference_model(p.model, p.model.d, p.model.d_out)
    job.weights, job.prefix, job.blocks_in_out = files.weights, files.prefix, files.blocks_in_out or false
    job.at, job.element, job.pitch, job.seed = p.integer_packing.at, p.shape.projection.bytes, p.pitch, seed
    job.halves = p.tables.bytes < 1
    return job
end

-- Applies the kernels of the build `b` (harness/families/lookup/execute.lua) to the file `input`. Returns the number
-- of tokens.
function integers.run(b, input, output)
    return assert(integer.run(job_of(b.plan, b.library, b.files.output), input, output))
end

-- Tokens of a self-test and what the reference makes of them: { {x, y} }. Needs no library.
function integers.vectors(p, files, seed)
    local job, list = reference_job_of(p, "", files, seed), {}
    job.tokens = packed.vectors
    local x, y, special = integer.answers(job)
    for i = 1, packed.vectors do
        list[i] = packed.vector("i2", x, job.d, "i4", y, job.d_out, special + i - 1)
    end
    return list
end

-- Compares the kernels of plan `p`, packed in `files`, with the reference, and what they cost with a budget; `options`
-- as of verify.all (harness/families/lookup/verify.lua), nil: none.
function integers.check(p, library, files, seed, options)
    options = options or {}
    local job = reference_job_of(p, library, files, seed)
    job.tokens = math.max(16, math.min(512, 200000000 // math.floor(1e6 * p.mflop.projection + 1)))
    local device = options.device
    local called = device and function(of, x) return integers_there.called(of, x, device) end
    local result = assert(integer.check(job, called))
    result.isa, result.projection, result.tables = p.variants[1].isa.name, p.projection.name, p.tables.name
    budget.check(result, options.budget or budget.of(p.model), "the codes of integer arithmetic")
    return result
end

-- One result for every build and number of tokens, by options.callers at a time.
function integers.results(builds, options)
    local results = {}
    for _, b in ipairs(builds) do
        local p, checked = b.plan, b.checked[b.plan.variants[1].isa.name .. "_all"]
        for _, batch in ipairs(options.batches) do
            local job = job_of(p, b.library, b.files.output)
            local samples, shares = timed(p.model.name, job, batch, options)
            local share = statistics.median(shares)
            results[#results + 1] = {
                model = p.model.name,
                isa = checked.isa,
                arithmetic = "integer",
                projection_dtype = p.projection.name,
                table_dtype = p.tables.name,
                batch = batch,
                threads = options.callers,
                us_per_token = statistics.median(samples),
                cpu_over_wall = share,
                counts = statistics.counts(share),
                rel_err = checked.rel_err,
                code_flips = checked.code_flips,
            }
        end
    end
    return results
end

return integers
