-- Packs a checkpoint for a plan: all tensors that the model has, and no others under its prefix.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.model.checkpoint_names"
local families = require "gen.families.list"
local inputs = require "gen.model.inputs"
local leftovers = require "gen.model.leftovers"
local weights = require "weights"

local packing = {}

-- A copy of a record of the plan with another value of `key`.
local function with(record, key, value)
    local copy = {}
    for name, own in pairs(record) do
        copy[name] = own
    end
    copy[key] = value
    return copy
end

-- The plan `p` with the names that the file has for its tensors, and a function back from those.
local function spelled(p, files)
    if not p.model.checkpoint or not p.pieces or files.prefix ~= "" then
        return p, function(name) return name end
    end
    local found, message = weights.tensors(files.weights)
    if not found then error(message, 0) end
    local spell, back = checkpoint.spelling(p.model, found)
    local copy = setmetatable({ tensors = {}, pieces = {} }, { __index = p })
    for i, tensor in ipairs(p.tensors) do
        copy.tensors[i] = with(tensor, "name", spell(tensor.name))
    end
    for i, piece in ipairs(p.pieces) do
        copy.pieces[i] = piece.from and with(piece, "from", spell(piece.from)) or piece
    end
    copy.blocks_prefix = p.blocks_prefix and spell(p.blocks_prefix)
    return copy, back
end

-- Raises one line for tensors of the checkpoint that the model leaves out. Where others are missing, the packer says
-- so, unless what is left out explains that. model_name(name): what the model calls a tensor.
local function check_leftovers(p, files, model_name)
    local found, message = weights.tensors(files.weights)
    if not found then error(message, 0) end
    local read, missing, names = {}, false, {}
    for _, tensor in ipairs(p.tensors) do
        read[files.prefix .. tensor.name] = true
        missing = missing or not found[files.prefix .. tensor.name]
    end
    for _, piece in ipairs(p.pieces or {}) do
        if piece.from then read[files.prefix .. piece.from] = true end
    end
    local prefix = files.prefix .. (p.blocks_prefix or "")
    for name in pairs(found) do
        if name:sub(1, #prefix) == prefix and not read[name] and not checkpoint.is_buffer(name) then
            names[#names + 1] = name
        end
    end
    names = leftovers.without(names, files.ignore)
    local left_out, explained = families.get(p.family).left_out, false
    local function reason(m, name) return left_out(m, model_name(name)) end
    for _, name in ipairs(names) do
        explained = explained or select(2, reason(p.model, name)) ~= nil
    end
    if not missing or explained then leftovers.refuse(files.weights, p.model, names, reason) end
    leftovers.check_ignored(files.weights, found, files.ignore)
end

-- What weights.pack is told to do for plan `p`, whose leftovers are none; raises one line.
local function job_of(p, files)
    if families.get(p.family).without_weights then return blob.packing(p, files) end
    inputs.note_checkpoint(files.weights)
    local own, model_name = spelled(p, files)
    check_leftovers(own, files, model_name)
    return blob.packing(own, files)
end

-- Packs for plan `p`; files: { weights, output, prefix, blocks_in_out, ignore }, the last one the option --ignore.
-- Returns the relative errors that rounding made, by section, and whether the blob is another one than before: if not,
-- the file was left alone. Raises one line.
function packing.pack(p, files) return assert(weights.pack(job_of(p, files))) end

-- Raises the line that packing would raise for other tensors than those of plan `p`, without reading their values.
function packing.check(p, files) assert(weights.check(job_of(p, files))) end

return packing
