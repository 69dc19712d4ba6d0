-- The blob of packed weights: its format, where sections lie in it, and what the packer is told.
local dtype = require "gen.plan.dtype"

local blob = {}

blob.format = 1 -- version of the blob
blob.align = 64 -- of blob, sections and scratch, in bytes
blob.header_bytes = 64
blob.magic = "LOOKUPC\0"

-- The least multiple of `step` that is at least n.
function blob.round_up(n, step) return (n + step - 1) // step * step end

-- Gives the sections, in their order, their places behind the header. Returns the bytes of the blob.
function blob.place(sections)
    local at = blob.header_bytes
    for _, section in ipairs(sections) do
        section.at, section.bytes = at, dtype.size(section.dtype, section.elements)
        at = blob.round_up(at + section.bytes, blob.align)
    end
    return at
end

-- What the packer interprets: sections, tensors and header of the blob of plan `p`, with the paths in `files`
-- { weights, output, prefix, blocks_in_out, calibrations }, the last ones a family's, nil for none.
function blob.packing(p, files)
    return {
        weights = files.weights,
        output = files.output,
        prefix = files.prefix,
        takes_prefix = not p.model.checkpoint, -- a kind of checkpoint has names of its own: few commands take --prefix
        blocks_in_out = files.blocks_in_out,
        tensors = p.tensors,
        sections = p.pieces or p.sections,
        integer = p.integer_packing,
        calibrations = files.calibrations,
        bytes = p.packed_bytes,
        header_bytes = blob.header_bytes,
        magic = blob.magic,
        format = blob.format,
        digest = p.digest,
    }
end

return blob
