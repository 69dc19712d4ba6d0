-- The schedule of a transformer's blocks: what each choice may be, and defaults from a small cost model.
local layout = require "gen.families.model.blocks.layout"
local space = require "gen.plan.space"

local powers, panel, tile = space.powers, layout.panel, layout.keys

-- Vectors that divide `elements` which lie side by side, as many as a product of `rows` rows has registers for.
local function parts(isa, elements, rows)
    local list = {}
    for _, vectors in ipairs(powers(1, elements // isa.lanes)) do
        if vectors == 1 or space.product_fits(isa, rows, vectors) then list[#list + 1] = vectors end
    end
    return list
end

local function largest(list, max)
    local best = list[1]
    for _, value in ipairs(list) do
        if value <= max then best = value end
    end
    return best
end

-- Whether `isa` is there for products of rounded inputs: it has an instruction for them.
local function serves(shape, isa)
    for _, name in ipairs(shape.rounded and isa.serves or {}) do
        if name == shape.rounded.needs then return true end
    end
    return false
end

-- Whether products of rounded inputs take several instructions, for which 16 registers are few: eight sums are left.
local function in_steps(shape, isa)
    return shape.rounded and isa.registers == 16 and not serves(shape, isa) or false
end

-- Bytes from the loads to what is prefetched; 0: nothing is.
local function distances(_, isa) return isa.prefetch_l2 and { 0, 512, 1024, 2048, 4096, 8192 } or { 0 } end

-- The same of products of several tokens: of other types they unpack weights before, and read floats.
local function ahead_of_products(shape, isa)
    return (shape.type.plain or shape.rounded) and distances(shape, isa) or { 0 }
end

-- Where tables deliver what all tokens attend to, all of them go through a block together.
local function chunks(shape, isa)
    if shape.delivered and not shape.causal then return { shape.most_tokens } end
    local list = { 12, 24, 48, 96, 192, 384, 768, 1536 }
    if isa.lanes == 1 then list = { 1, 4, table.unpack(list) } end -- of firmware, which is short of memory
    while list[2] and list[#list - 1] >= shape.most_tokens do
        list[#list] = nil
    end
    return list
end

-- How many tokens should go through a block together. Their hidden values in memory's larger caches, weights read
-- seldom; where rows of tables are gathered, more of them meet the same rows. Products of bytes wait for hidden values
-- that have left L2: 48 tokens are 6 % faster than 192 (Zen 5, 1536 hidden values). So few read weights often, which
-- pays where a layer's lie in L3.
local function chunk_of(shape, isa)
    if shape.lookup then return 768 end
    local of_attention = shape.input * (shape.q + 2 * shape.e) + shape.q * shape.d
    local of_ffn = (shape.gated and 3 or 2) * shape.d * shape.f
    if not shape.rounded or not shape.rounded.integers or of_attention + of_ffn > 8 << 20 then return 192 end
    return math.max(24, math.min(192, isa.l2_bytes // 2 // (4 * shape.f)))
end

-- See gen/plan/space.lua. The kernels for few tokens are those for the products of a token alone.
return space.new {
    {
        key = "few.threshold",
        doc = "calls of up to so many tokens take the products of a token alone",
        values = function() return { 1 } end,
        default = function() return 1 end,
    },
    {
        key = "few.vectors",
        doc = "vectors of outputs of a token alone held in registers",
        values = function(_, isa) return parts(isa, panel, 1) end,
        default = function(_, isa) return largest(parts(isa, panel, 1), isa.lanes == 1 and 4 or panel) end,
    },
    {
        key = "few.streams",
        doc = "panels that a token alone reads side by side",
        values = function(_, isa, s)
            local list = {}
            for _, streams in ipairs { 1, 2, 4, 8 } do
                if streams == 1 or isa.lanes > 1 and s["few.vectors"] * (streams + 1) + 1 <= isa.registers then
                    list[#list + 1] = streams
                end
            end
            return list
        end,
        -- Memory delivers four a tenth faster than one.
        default = function(_, isa, s)
            return isa.lanes == 1 and 1 or largest({ 1, 2, 4 }, (isa.registers - 1) // s["few.vectors"] - 1)
        end,
    },
    {
        key = "few.unroll",
        doc = "inputs of a token alone with sums of their own",
        values = function(shape, isa, s)
            if shape.rounded then return { 1 } end
            local list = {}
            for _, inputs in ipairs { 1, 2, 4, 8 } do
                if
                    inputs == 1
                    or isa.lanes == 1
                    or s["few.vectors"] * (s["few.streams"] * inputs + 1) + 1 <= isa.registers
                then
                    list[#list + 1] = inputs
                end
            end
            return list
        end,
        -- Half of the registers hold sums: they hide the latency of an addition, and cache lines are used whole.
        default = function(shape, isa, s)
            if shape.rounded then return 1 end
            local sums = s["few.vectors"] * s["few.streams"]
            return isa.lanes == 1 and 1
                or largest(
                    { 1, 2, 4 },
                    math.min(-(-isa.registers // 2 // sums), (isa.registers - 1 - s["few.vectors"]) // sums)
                )
        end,
    },
    {
        key = "few.prefetch",
        doc = "bytes from the weights of a token alone to those that are prefetched; 0: none",
        values = distances,
        default = function(_, isa, s) return isa.prefetch_l2 and (s["few.streams"] > 1 and 1024 or 4096) or 0 end,
    },
    {
        key = "product.vectors",
        doc = "vectors of outputs of several tokens held in registers",
        values = function(_, isa) return parts(isa, panel, 1) end,
        default = function(shape, isa)
            if isa.lanes == 1 then return 8 end
            -- A panel at a time: 0.8 to 0.9 of the time of one sequence of 16 tokens, whose weights come from memory,
            -- and 0.96 to 1 of a batch (Zen 3). Of floats as many accumulators do not fit.
            local whole = panel // isa.lanes
            return whole <= 4 and in_steps(shape, isa) and whole or math.min(whole, 2)
        end,
    },
    {
        key = "product.tokens",
        doc = "tokens of a product held in registers",
        values = function(_, isa, s)
            local list = {}
            for _, tokens in ipairs { 1, 2, 3, 4, 6, 8, 12, 14 } do
                if tokens == 1 or isa.lanes > 1 and space.product_fits(isa, tokens, s["product.vectors"]) then
                    list[#list + 1] = tokens
                end
            end
            return list
        end,
        default = function(shape, isa, s)
            if isa.lanes > 1 and in_steps(shape, isa) then
                return largest({ 1, 2, 4 }, 8 // s["product.vectors"])
            end
            -- Beside 24 sums of products in bf16 gcc 12 puts weights on the stack: 0.92 of the speed of 16 (Zen 4).
            if shape.rounded and not shape.rounded.integers and isa.lanes > 1 then
                return largest({ 1, 2, 4, 8 }, (isa.registers - 1) // s["product.vectors"] - 1)
            end
            return isa.lanes == 1 and 1
                or largest({ 1, 2, 3, 4, 6, 12 }, (isa.registers - 1) // s["product.vectors"] - 1)
        end,
    },
    {
        key = "product.depth",
        doc = "inputs of a product of several tokens that stay in cache",
        values = function(shape) return shape.rounded and { 1024 } or { 128, 256, 512, 1024, 2048, 4096 } end,
        default = function() return 1024 end,
    },
    {
        key = "product.prefetch",
        doc = "bytes from the weights of a product of several tokens to those that are prefetched; 0: none",
        values = ahead_of_products,
        default = function(shape, isa)
            local wanted = isa.machine and isa.machine.product_prefetch or 0
            return largest(ahead_of_products(shape, isa), wanted)
        end,
    },
    {
        key = "chunk.tokens",
        doc = "tokens that go through a block together",
        values = chunks,
        default = function(shape, isa) return largest(chunks(shape, isa), chunk_of(shape, isa)) end,
    },
    {
        key = "attention.tokens",
        doc = "tokens that attend together to each tile of the cache",
        values = function() return powers(1, tile) end, -- a ring has room for no more
        default = function(shape) return largest(powers(1, tile), math.max(1, 16 // shape.group)) end,
    },
    {
        key = "attention.rows",
        doc = "rows of queries that share a load of keys or values",
        values = function(_, isa) return isa.lanes == 1 and { 1, 2, 4 } or { 1, 2, 4, 8 } end,
        default = function() return 4 end,
    },
    {
        key = "attention.scores",
        doc = "vectors of scores of a row held in registers",
        values = function(_, isa, s) return parts(isa, tile, s["attention.rows"]) end,
        default = function(_, isa, s)
            local fitting = parts(isa, tile, s["attention.rows"])
            return largest(fitting, isa.lanes == 1 and 8 or 2)
        end,
    },
    {
        key = "attention.sums",
        doc = "vectors of sums of a row held in registers",
        values = function(_, isa, s) return parts(isa, 8 * isa.lanes, s["attention.rows"]) end,
        default = function(_, isa, s) return largest(parts(isa, 8 * isa.lanes, s["attention.rows"]), 4) end,
    },
    {
        key = "attention.prefetch",
        doc = "keys and values that are read next are prefetched: 1: line by line, 2: a line of each of some pages in \z
            turn, 3: the first page of what comes next, into L2; 0: not",
        values = function(_, isa) return isa.prefetch_l2 and { 0, 1, 2, 3 } or { 0 } end,
        -- What is converted takes longer than memory to deliver it, on short vectors so long that the order does not
        -- count, only what the prefetches cost.
        default = function(shape, isa)
            if not isa.prefetch_l2 then return 0 end
            local row = isa.machine or {}
            local converts = not shape.cache.type.plain and not shape.cache.words
            if not converts then return row.attention_prefetch or 2 end
            return row.attention_prefetch_converted or isa.lanes < 16 and 1 or 2
        end,
    },
}
