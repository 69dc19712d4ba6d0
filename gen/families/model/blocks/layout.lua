-- How packed weights and the cache of a transformer lie in memory: what packer, plans and kernels agree on.
local blob = require "gen.plan.blob"

local layout = {}

-- Outputs that lie side by side in packed weights: [panel][input][32], or, in words, [panel][word][32].
layout.panel = 32
layout.keys = 32 -- positions of keys that lie side by side in the cache: [tile][element][32]
layout.values = 16 -- a value's elements in the cache are filled up to a multiple of so many
layout.max_positions = 1 << 31 -- of a sequence whose cache is a ring

local cache_line = blob.align // 4

-- Floats from token to token of a buffer whose rows have so many, filled up to what products in whole panels write.
-- Rows an odd number of lines apart: at powers of two those of several tokens would drive each other out of the cache.
function layout.pitch(floats) return blob.round_up(blob.round_up(floats, layout.panel), cache_line) | cache_line end

-- Words from token to token of the rounded inputs of a product, `inputs` of them, as `rounded` says (shape.rounded):
-- filled up to what vectors write, with room for two words more behind those that have integers, at an odd number of
-- cache lines.
function layout.rounded_pitch(inputs, rounded)
    local line, per_word = 16, rounded.rows
    local written = (inputs + per_word * line - 1) // (per_word * line) * line
    local words = math.max(written, (inputs + per_word - 1) // per_word + (rounded.integers and 2 or 0))
    return ((words + line - 1) // line * line) | line
end

return layout
