-- Packs a checkpoint for a plan: all tensors that the model has, and no others under its prefix.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.schema.checkpoint_names"
local copied = require "gen.schema.copied"
local dtype = require "gen.plan.dtype"
local families = require "gen.families.list"
local files_read = require "gen.host.files_read"
local ignored = require "gen.schema.ignored"
local unused_tensors = require "gen.schema.unused_tensors"
local weights = require "weights"

local packing = {}

-- A copy of a record of the plan with another value of `key`.
local function with(record, key, value)
    local copy = copied(record)
    copy[key] = value
    return copy
end

local function itself(name) return name end

-- The plan `p` with the names that the file has for its tensors `found`, by name, a function back from those, and one
-- to the name of what a tensor may be a copy of.
local function spelled(p, files, found)
    if not p.model.checkpoint or not p.pieces or files.prefix ~= "" then return p, itself, itself end
    local spell, back, original = checkpoint.spelling(p.model, found)
    local copy = setmetatable({ tensors = {}, pieces = {} }, { __index = p })
    for i, tensor in ipairs(p.tensors) do
        copy.tensors[i] = with(tensor, "name", spell(tensor.name))
    end
    for i, piece in ipairs(p.pieces) do
        local own = piece.from and with(piece, "from", spell(piece.from)) or piece
        local folded = piece.projected
        copy.pieces[i] = folded and with(own, "projected", checkpoint.respelled(folded, spell)) or own
    end
    local prefixes = {}
    for i, prefix in ipairs(p.blocks_prefixes or {}) do
        prefixes[i] = spell(prefix)
    end
    copy.blocks_prefixes = p.blocks_prefixes and prefixes
    return copy, back, original
end

-- Whether a name starts with one of the prefixes.
local function is_under(name, prefixes)
    for _, prefix in ipairs(prefixes) do
        if name:sub(1, #prefix) == prefix then return true end
    end
    return false
end

-- Raises one line for tensors `copies` of the checkpoint that are none: they have other values than their originals.
local function check_copies(path, copies, original)
    local pairs_of = {}
    for i, name in ipairs(copies) do
        pairs_of[i] = { name, original(name) }
    end
    if not pairs_of[1] then return end
    local differing, message = weights.differing(path, pairs_of)
    if message then error(message, 0) end
    if not differing then return end
    local name, other = table.unpack(pairs_of[differing])
    local form = "%s: tensors %s and %s: are names of one tensor and must be equal; --ignore %s leaves it out"
    error(form:format(path, name, other, name), 0)
end

-- Whether a model may leave a tensor out: it holds no weights, or those of an output that the model does not have.
local function is_free(m, name, model_name)
    return checkpoint.is_buffer(name) or m.checkpoint and checkpoint.is_other_output(m, model_name(name))
end

-- Raises one line for tensors of the checkpoint, `found`, that the model leaves out. Where others are missing, the
-- packer says so, unless what is left out explains that; so it does where some are FP8, whose scales would be left out.
-- model_name(name): what the model calls a tensor;
-- original(name): the name of what it may be a copy of.
local function check_unused(p, files, found, model_name, original)
    local read, missing, names, copies = {}, false, {}, {}
    for _, tensor in ipairs(p.tensors) do
        local name = files.prefix .. tensor.name
        if found[name] and found[name].dtype:find "^F8_" then return end
        read[name] = true
        missing = missing or not found[name]
    end
    for _, piece in ipairs(p.pieces or {}) do
        if piece.from then read[files.prefix .. piece.from] = true end
        local bias = piece.projected and piece.projected.bias -- which may be absent
        if bias then read[files.prefix .. bias.tensor] = true end
    end
    local prefixes = p.blocks_prefixes or { files.prefix }
    for name in pairs(found) do
        if not read[name] and read[original(name)] then
            copies[#copies + 1] = name
        elseif not read[name] and is_under(name, prefixes) and not is_free(p.model, name, model_name) then
            names[#names + 1] = name
        end
    end
    unused_tensors.refuse_parts(files.weights, names, read)
    names, copies = ignored.without(names, files.ignore), ignored.without(copies, files.ignore)
    local left_out, explained = families.get(p.family).left_out, false
    local function reason(m, name) return left_out(m, model_name(name)) end
    for _, name in ipairs(names) do
        explained = explained or select(2, reason(p.model, name)) ~= nil
    end
    if not missing or explained then unused_tensors.refuse(files.weights, p.model, names, reason) end
    if not missing then check_copies(files.weights, copies, original) end
    ignored.check(files.weights, found, files.ignore)
end

-- The calibrations of the list `given` for a plan with the pieces `own` in place of `pieces`.
local function respelled(given, pieces, own)
    local copies, list = {}, {}
    for i, piece in ipairs(pieces) do
        copies[piece] = own[i]
    end
    for i, calibration in ipairs(given) do
        list[i] = with(calibration, "projection", copies[calibration.projection])
    end
    return list
end

-- What weights.pack is told to do for plan `p`; raises one line, also for tensors that it does not use.
local function job_of(p, files)
    if families.get(p.family).without_weights then return blob.packing(p, files) end
    files_read.note_checkpoint(files.weights)
    local found, message = weights.tensors(files.weights)
    if not found then error(message, 0) end
    local own, model_name, original = spelled(p, files, found)
    check_unused(own, files, found, model_name, original)
    local job = blob.packing(own, files)
    if job.calibrations and own.pieces then job.calibrations = respelled(job.calibrations, p.pieces, own.pieces) end
    return job
end

-- What the options of a command say of a checkpoint, which is packed into the file `output`; nil: it is only read.
function packing.files(options, output)
    return {
        weights = options.weights,
        output = output,
        prefix = options.prefix or "",
        ignore = options.ignore,
        blocks_in_out = options["blocks-in-out"],
    }
end

-- A line on tensors of the checkpoint in groups that the job's sections do not keep as they are; nil: there are none.
local function dequantised(job)
    local found, seen, counts, list = weights.tensors(job.weights), {}, {}, {}
    for _, section in ipairs(job.sections) do
        local name = section.from and job.prefix .. section.from
        local blocks = name and found and found[name] and found[name].blocks
        if blocks and not seen[name] and (section.kept ~= blocks or section.transposed) then
            seen[name], counts[blocks] = true, (counts[blocks] or 0) + 1
        end
    end
    for _, type in ipairs(dtype.list) do
        local count = counts[type.gguf]
        local name = type.name
        if count then list[#list + 1] = string.format("%d in %s, which --type %s keeps", count, name, name) end
    end
    return list[1] and job.weights .. ": tensors in groups are dequantised: " .. table.concat(list, "; ") or nil
end

-- Packs for plan `p`; files: { weights, output, prefix, blocks_in_out, ignore, calibrations }: ignore is the option
-- --ignore, calibrations those of the family, with inputs, nil: none. Returns the relative errors that rounding made,
-- by section, whether the blob is another one than before: if not, the file was left alone; and a line about what was
-- in groups and no longer is, or nil. Raises one line.
function packing.pack(p, files)
    local job = job_of(p, files)
    local errors, changed = assert(weights.pack(job))
    return errors, changed, job.weights and dequantised(job)
end

-- Raises the line that packing would raise for other tensors than those of plan `p`, without reading their values.
function packing.check(p, files) assert(weights.check(job_of(p, files))) end

-- The forms in which weights.quantise writes the tensors that plan `p` reads, by name: in groups where all that reads
-- them is, along their rows, in I8 where it is, else in F32; and how many are in F32 because they lie transposed.
-- Raises what packing would raise.
function packing.forms(p, files)
    local job, forms = job_of(p, files), {}
    assert(weights.check(job))
    for _, tensor in ipairs(job.tensors) do
        forms[job.prefix .. tensor.name] = "f32"
    end
    local seen, transposed = {}, 0
    for _, section in ipairs(job.sections) do
        local name = section.from and job.prefix .. section.from
        local form = section.form or section.type
        if form == "i4" and not section.groups then form = "tables_i4" end
        if section.groups and section.transposed and not seen[name] then transposed = transposed + 1 end
        if section.transposed or not (section.groups or form == "i8" or form == "tables_i4") then form = "f32" end
        if name then
            forms[name], seen[name] = (seen[name] or form) == form and form or "f32", form
        end
    end
    return forms, transposed
end

return packing
