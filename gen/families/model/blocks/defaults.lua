-- The default schedule of a transformer's blocks, from the sizes of a model and the numbers of a CPU
-- (gen/machines/list.lua).
local dense = require "gen.families.lookup.dense"
local layout = require "gen.families.model.blocks.layout"
local machines = require "gen.machines.list"

local panel = layout.panel
local l3_bytes = 8 << 20 -- of a layer's weights that surely lie in L3

-- Whether `isa` is there for products of rounded inputs: it has an instruction for them.
local function serves(shape, isa)
    for _, name in ipairs(shape.rounded and isa.serves or {}) do
        if name == shape.rounded.needs then return true end
    end
    return false
end

-- How many tokens should go through a block together. Their hidden values in memory's larger caches, weights read
-- seldom; where rows of tables are gathered, more of them meet the same rows. Products of bytes wait for hidden values
-- that have left L2. So few read weights often, which pays where a layer's lie in L3.
local function chunk_of(shape, isa)
    if shape.lsh then return shape.causal and 768 or 2048 end -- tables are filled, or at least met, once a chunk
    if shape.lookup then return 768 end
    if shape.rounded and isa[shape.rounded.tiles] then return 192 end -- six blocks of a matrix engine share weights
    local of_attention = shape.input * (shape.q + 2 * shape.e) + shape.q * shape.d
    local of_ffn = (shape.gated and 3 or 2) * shape.d * shape.f
    if not shape.rounded or not shape.rounded.integers or of_attention + of_ffn > l3_bytes then return 192 end
    return math.max(24, math.min(192, isa.l2_bytes // 2 // (4 * shape.f)))
end

local function few_tokens(isa, s, choose)
    choose("few.vectors", isa.lanes == 1 and 4 or panel)
    choose("few.streams", 4) -- memory delivers four a tenth faster than one
    -- Half of the registers hold sums: they hide the latency of an addition, and cache lines are used whole.
    local sums = s["few.vectors"] * s["few.streams"]
    choose("few.unroll", isa.lanes == 1 and 1 or math.min(4, (isa.registers // 2 + sums - 1) // sums))
end

local function products(shape, isa, cpu, choose)
    -- Products of rounded inputs that take several instructions have few registers left of 16: for eight sums, of a
    -- panel at a time if it can be. Beside 24 sums of products in bf16 gcc 12 puts weights on the stack.
    local in_steps = isa.lanes > 1 and shape.rounded and isa.registers == 16 and not serves(shape, isa)
    local whole = in_steps and panel // isa.lanes <= 4
    local vectors = choose("product.vectors", isa.lanes == 1 and 8 or whole and 4 or 2)
    local of_bf16 = shape.rounded and not shape.rounded.integers
    choose("product.tokens", in_steps and 8 // vectors or of_bf16 and 8 or 12)
    choose("product.depth", 1024)
    -- Weights that are converted before are not read so many bytes ahead.
    local ahead = cpu.product_prefetch > 1
    choose("product.prefetch", ahead and layout.converts(shape.type, shape.rounded) and 0 or cpu.product_prefetch)
end

local function attention(shape, isa, cpu, choose)
    -- A matrix engine takes 16 rows of queries at a time, whatever the group.
    local words = shape.cache.words
    choose("attention.tokens", words and isa[words.tiles] and 16 or shape.from_keys and 4 or 16 // shape.group)
    choose("attention.sums", 4)
    -- What is converted takes longer than memory to deliver it, on short vectors so long that the order does not count,
    -- only what the prefetches cost.
    local converts = not shape.cache.type.plain and not shape.cache.words
    local converted = isa.lanes < 16 and 1 or cpu.attention_converted
    choose("attention.prefetch", converts and converted or cpu.attention_prefetch)
end

-- Chooses the schedule `s` of `isa`; choose(key, value) as gen/plan/space.lua says.
return function(shape, isa, s, choose)
    local cpu = isa.machine or machines.get(machines.nominal)
    few_tokens(isa, s, choose)
    products(shape, isa, cpu, choose)
    choose("chunk.tokens", chunk_of(shape, isa))
    choose("project.dense", shape.looked and dense.pays(shape.looked, isa) and 1 or 0)
    attention(shape, isa, cpu, choose)
end
