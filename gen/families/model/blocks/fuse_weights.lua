-- Fuses the checkpoint of a transformer: makes the steps of gen/families/model/blocks/fuse.lua and has them done.
local fuse = require "gen.families.model.blocks.fuse"
local host = require "host"
local json = require "json"
local interpreter = require "fuse"
local misuse = require "gen.schema.misuse"
local weights = require "weights"

-- The value of an option that is a number, or one line.
local function number_option(options, name)
    local value = tonumber(options[name])
    if not value or not (value > 0) then
        misuse(string.format("--%s: %s: must be a number above 0", name, options[name]))
    end
    return value
end

local dtypes = { f32 = "F32", bf16 = "BF16", f16 = "F16", f64 = "F64" }

-- Paths of the files to be written, and what else the job needs for several.
local function output_of(job, options, files)
    local path, names = options.o, {}
    if not options["shard-mib"] then
        job.files = { { path = path, tensors = files[1] } }
        return
    end
    job.files = {}
    for i, tensors in ipairs(files) do
        names[i] = string.format("model-%05d-of-%05d.safetensors", i, #files)
        job.files[i] = { path = path .. "/" .. names[i], tensors = tensors }
    end
    job.directory, job.index = path, path .. "/model.safetensors.index.json"
    job.index_text = assert(json.encode(fuse.index(files, names))) .. "\n"
    for _, file in ipairs { { path = job.index }, table.unpack(job.files) } do
        if host.kind(file.path) then error("-o: " .. file.path .. ": exists: choose another folder", 0) end
    end
end

-- The tensors of the checkpoint `path`, by name; raises one line for what cannot be fused.
local function tensors_of(path)
    local found, message = weights.tensors(path)
    if not found then error(message, 0) end
    local first
    for _, tensor in pairs(found) do
        local rounded = tensor.rounded or tensor.dtype == "I8" and "I8"
        if rounded and (not first or rounded < first) then first = rounded end
    end
    if first then
        error(path .. ": has tensors in " .. first .. ": fuse takes the checkpoint before it was quantised", 0)
    end
    return found
end

local fuse_weights = {}

-- Raises the line that fusing would raise for a checkpoint with other tensors than model `m` wants, without reading
-- their values. Options: { eliminate, weights, ignore }.
function fuse_weights.check(m, options)
    local steps = fuse.steps(m, tensors_of(options.weights), options)
    assert(interpreter.check { weights = options.weights, steps = steps.steps })
end

-- Options: { eliminate, type (nil: as it is), weights, ignore, o, shard-mib, max-condition, max-error }. Returns what
-- the steps found.
function fuse_weights.fuse(m, options)
    if options["shard-mib"] == 0 then misuse("--shard-mib: 0: must be at least 1") end
    local condition, most_error = number_option(options, "max-condition"), number_option(options, "max-error")
    local steps = fuse.steps(m, tensors_of(options.weights), options, dtypes[options.type])
    local job = {
        weights = options.weights,
        steps = steps.steps,
        work = steps.work,
        most_condition = condition,
        most_error = most_error,
    }
    output_of(job, options, fuse.files(steps.tensors, options["shard-mib"] and options["shard-mib"] << 20))
    return assert(interpreter.run(job))
end

return fuse_weights
