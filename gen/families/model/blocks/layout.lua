-- How packed weights and the cache of a transformer lie in memory: what packer, plans and kernels agree on.
local blob = require "gen.plan.blob"

local layout = {}

-- Outputs that lie side by side in packed weights: [panel][input][32], or, in words, [panel][word][32].
layout.panel = 32
layout.keys = 32 -- positions of keys that lie side by side in the cache: [tile][element][32]
layout.values = 16 -- a value's elements in the cache are filled up to a multiple of so many
layout.max_positions = 1 << 31 -- of a sequence whose cache is a ring

local cache_line = blob.align // 4

layout.rows = 2 -- of an embedding in groups that lie side by side, as outputs of a panel do

-- Words of a group of inputs of a panel, and the first one behind the scales: of each output a scale in half precision,
-- where the type has them then minima likewise, then words [][panel] of the weights of an output in 4 or 8 bits, in
-- units of its scale and `offset` of the type more, or more than the minimum. Inputs 0 to 3 of a word are in its bytes,
-- of eight in their low halves, and 4 to 7 in the high ones. `order`: inputs of a word from its lowest bits on.
function layout.group(type, panel)
    local first = type.minimum and panel or panel // 2
    return {
        first_word = first,
        words = first + panel * type.groups // type.weights,
        order = type.bits == 8 and { 0, 1, 2, 3 } or { 0, 4, 1, 5, 2, 6, 3, 7 },
    }
end

-- How many inputs a map has with those that fill up its last word or group.
function layout.filled(inputs, type, rounded)
    return blob.round_up(inputs, type.groups or rounded and rounded.rows or 1)
end

-- The elements, or words, that `weights` weights of whole panels take, with those that fill them up.
function layout.stored(weights, type, rounded)
    if type.groups then
        return weights // (layout.panel * type.groups) * layout.group(type, layout.panel).words
    end
    return weights // (rounded and rounded.rows or 1)
end

-- Floats from token to token of a buffer whose rows have so many, filled up to what products in whole panels write.
-- Rows an odd number of lines apart: at powers of two those of several tokens would drive each other out of the cache.
function layout.pitch(floats) return blob.round_up(blob.round_up(floats, layout.panel), cache_line) | cache_line end

-- Words from token to token of the rounded inputs of a product, `inputs` of them, as `rounded` says (shape.rounded):
-- filled up to what vectors write, with room for two words more behind those that have integers, then one for each
-- group of inputs, at an odd number of cache lines.
function layout.rounded_pitch(inputs, rounded)
    local line, per_word = 16, rounded.rows
    local written = (inputs + per_word * line - 1) // (per_word * line) * line
    local behind = rounded.integers and 2 + (rounded.groups and -(-inputs // rounded.groups) or 0) or 0
    local words = math.max(written, (inputs + per_word - 1) // per_word + behind)
    return ((words + line - 1) // line * line) | line
end

-- Whether products convert weights of `type` to floats before they multiply; rounded: inputs as shape.rounded, or nil.
function layout.converts(type, rounded) return not type.plain and not rounded end

return layout
