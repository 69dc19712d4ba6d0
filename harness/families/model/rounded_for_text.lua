-- Matrices of a whole model rounded to 4 bits for what a text brings them: quantise --calibrate.
local block_reference = require "block_reference"
local calibration_text = require "harness.families.model.calibration_text"
local compiled_model = require "harness.calls.compiled_model"
local host = require "host"
local input_rounding = require "input_rounding"
local outer = require "whole_reference"
local reference = require "harness.families.model.reference"

-- The jobs of the reference for plan `p`, everything in float64.
local function exact_jobs(p, files)
    local jobs = reference.jobs(p, files, "f32", "f32")
    for _, job in ipairs(jobs.blocks) do
        job.type, job.tables, job.projection = "f32", job.tables and "f32", job.projection and "f32"
    end
    jobs.embedding.type, jobs.embedding.map_type, jobs.embedding.projected_type = "f32", "f32", "f32"
    jobs.output.type = "f32"
    return jobs
end

-- The doubles that the head reads, of the rows x of sequences of such lengths. pointer: as `stand_in` of a job, for a
-- map before a head that reads a row of each token.
local function head_inputs(job, width, x, lengths, pointer)
    local own = setmetatable({ head = false }, { __index = job })
    own.out = job.dense and job.dense.weight.rows or width
    if job.pool == nil then
        own.stand_in = pointer
        return assert(outer.finish(own, x))
    end
    local rows, at = {}, 1
    for i, length in ipairs(lengths) do
        local bytes = 8 * width * length
        rows[i] = assert(outer.finish(own, x:sub(at, at + bytes - 1)))
        at = at + bytes
    end
    return table.concat(rows)
end

-- Rounds the matrices of plan `p`, of the model file `path`, whose tensors have the `forms` of packing.forms; files: as
-- of packing.files. Options: calibrate or calibrate-ids, cc, cflags. Returns what weights.quantise takes as given, and
-- by how much outputs of matrices are off, relatively: rounded to the nearest, and for the text. Raises one line.
return function(path, p, forms, files, options)
    if not p.embedding then
        local file = options.calibrate or options["calibrate-ids"]
        error(string.format("--calibrate: %s: %s has blocks alone, and takes no text", file, p.model.name), 0)
    end
    local own = { weights = files.weights, ignore = files.ignore, cc = options.cc, cflags = options.cflags }
    own.threads = 1
    local model = options.calibrate and p.facts and compiled_model.of(p, own)
    local sequences = calibration_text(path, p, model, options)
    local count, done = 0, {}
    for _, form in pairs(forms) do
        if form:find "^[iu]4$" then count = count + 1 end
    end
    local rounding = input_rounding.new(function(name)
        local form = forms[name]
        if not form or not form:find "^[iu]4$" then return nil end
        if not done[name] then
            done[name], done[#done + 1] = true, name
            host.status(string.format("calibrating: %s, %d of %d", name, #done, count))
        end
        return form
    end)
    local jobs, rows, lengths = exact_jobs(p, files), {}, {}
    jobs.embedding.stand_in = rounding:pointer()
    for i, ids in ipairs(sequences) do
        rows[i], lengths[i] = assert(outer.embed(jobs.embedding, ids)), #ids
    end
    local x = table.concat(rows)
    for _, job in ipairs(jobs.blocks) do
        job.lengths, job.stand_in = lengths, rounding:pointer()
        x = assert(block_reference.answers(job, x))
    end
    local head = jobs.output.head
    if head then
        x = head_inputs(jobs.output, p.widths.last, x, lengths, rounding:pointer())
        assert(rounding:map(files.weights, head, x))
    end
    host.status ""
    return rounding, rounding:errors()
end
