-- How packed weights and the cache of a transformer lie in memory: what packer, plans and kernels agree on.
local layout = {}

layout.panel = 32 -- outputs that lie side by side in packed weights: [panel][input][32]
layout.keys = 32 -- positions of keys that lie side by side in the cache: [tile][element][32]
layout.values = 16 -- a value's elements in the cache are filled up to a multiple of so many
layout.max_positions = 1 << 31 -- of a sequence whose cache is a ring

return layout
