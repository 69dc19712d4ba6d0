-- What the lookup FFNs of a model read in float32, of rows, text or ids: what pack --calibrate calibrates for.
local calibration_text = require "harness.families.model.calibration_text"
local compiled_model = require "harness.calls.compiled_model"
local execute = require "harness.families.model.execute"
local host = require "host"
local input = require "harness.verify.input"
local npy = require "npy"
local observed_lookups = require "harness.families.model.observed_lookups"
local process = require "process"
local rules = require "gen.families.model.model"
local weights = require "weights"
local whole_model = require "harness.calls.whole_model"

local lookup_inputs = {}
lookup_inputs.__index = lookup_inputs

-- The options of the float model that they are taken from.
local function float_options(options)
    local own = {}
    for _, name in ipairs { "weights", "ignore", "blocks-in-out", "cc", "cflags" } do
        own[name] = options[name]
    end
    return own
end

-- The widths of what the lookup FFNs of `blocks`, plans of transformers, read: of each layer that has one.
local function widths_of(blocks)
    local list = {}
    for _, p in ipairs(blocks) do
        for _ = 1, p.lookup_types and p.model.layers or 0 do
            list[#list + 1] = p.parts[1].plan.shape.d
        end
    end
    return list
end

-- For the lookup FFNs of `blocks`, from the first to the last.
local function inputs_of(blocks)
    local self = setmetatable({ widths = widths_of(blocks), rows = {} }, lookup_inputs)
    for i in ipairs(self.widths) do
        self.rows[i] = {}
    end
    return self
end

-- Adds what a run has noted: `notes`, the string of harness/calls for the job `job` of observed_lookups.lua,
-- whose notes begin with a pointer to the weights of their layer (harness/verify/interposed.c). Raises one line.
function lookup_inputs:add(job, notes)
    local bytes = (8 + 4 * (job.d + job.slots) + 2 * (job.slots + 1) + 7) // 8 * 8
    local of, order = {}, {}
    for at = 1, #(notes or ""), bytes do
        local layer = string.unpack("=I8", notes, at)
        if not of[layer] then
            of[layer], order[#order + 1] = {}, layer
        end
        table.insert(of[layer], at + 8)
    end
    if #order ~= #self.widths then
        error("lookup FFNs are not seen at work: a compiler has joined functions that others may replace", 0)
    end
    table.sort(order, math.ult)
    for i, layer in ipairs(order) do
        for _, at in ipairs(of[layer]) do
            table.insert(self.rows[i], notes:sub(at, at + 4 * self.widths[i] - 1))
        end
    end
end

-- Writes them into `directory`, a .npy file for each lookup FFN, and returns the paths. Raises one line about `source`,
-- the file that they come from, if they are too few.
function lookup_inputs:save(directory, source)
    local paths = {}
    for i, width in ipairs(self.widths) do
        if #self.rows[i] < weights.least_calibration_rows then
            local form = "%s: %d tokens: calibration takes at least %d"
            error(form:format(source, #self.rows[i], weights.least_calibration_rows), 0)
        end
        paths[i] = string.format("%s/lookup_inputs_%d.npy", directory, i)
        assert(npy.write(paths[i], width, table.concat(self.rows[i])))
    end
    return paths
end

-- Adds what blocks alone read for the rows of options.calibrate.
function lookup_inputs:add_blocks(p, options, own)
    local count, job_seen = input.check(options.calibrate, p.shape.input), nil
    execute.check_context(p, options.calibrate, count, "tokens")
    local function watched(compiled)
        job_seen = observed_lookups.of({ p }, compiled, own.cc, count)
        return job_seen
    end
    local _, notes = execute.blocks(p, options.calibrate, own, false, watched)
    self:add(job_seen, notes)
end

-- Adds what a whole model reads for the sequences that the options name.
function lookup_inputs:add_whole(p, path, options, own)
    local sequences = calibration_text(path, p, options.calibrate and p.facts and compiled_model.of(p, own), options)
    local compiled, blob = execute.made(p, own)
    local job = compiled_model.job(p, compiled, blob, 1)
    job.seen = observed_lookups.of(rules.blocks_of(p), compiled, own.cc, p.context)
    for i, ids in ipairs(sequences) do
        host.status(string.format("calibrating: %d of %d sequences", i, #sequences))
        local call = { what = p.causal and "prefill" or "encode", sequences = { ids } }
        local rows, notes = whole_model.run(job, p.causal and { { what = "start" }, call } or { call })
        if not rows then error(notes, 0) end
        self:add(job.seen, notes)
    end
    host.status ""
end

-- The .npy files of what the lookup FFNs of the model of the file `path` read, in the order of their layers.
return function(path, options)
    local own = float_options(options)
    own.threads = 1
    local p = execute.plan(path, own)
    local inputs = inputs_of(rules.blocks_of(p))
    if p.embedding then
        inputs:add_whole(p, path, options, own)
    else
        inputs:add_blocks(p, options, own)
    end
    return inputs:save(process.temporary_directory(), options.calibrate or options["calibrate-ids"])
end
