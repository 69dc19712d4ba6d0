-- The schedule of a transformer's blocks: what each choice may be.
local attention = require "gen.families.model.blocks.attention"
local defaults = require "gen.families.model.blocks.defaults"
local layout = require "gen.families.model.blocks.layout"
local lookup_schedule = require "gen.families.lookup.schedule"
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

-- Where tables deliver what all tokens attend to, all of them go through a block together.
local function chunks(shape, isa)
    if shape.delivered and not shape.causal then return { shape.most_tokens } end
    local list = { 12, 24, 48, 96, 192, 384, 768, 1536 }
    if shape.lsh and not shape.causal then list[#list + 1] = 2048 end -- tables are filled once a chunk
    if isa.lanes == 1 then list = { 1, 4, table.unpack(list) } end -- of firmware, which is short of memory
    while list[2] and list[#list - 1] >= shape.most_tokens do
        list[#list] = nil
    end
    return list
end

-- See gen/plan/space.lua. The kernels for few tokens are those for the products of a token alone.
return space.new({
    {
        key = "few.vectors",
        doc = "vectors of outputs of a token alone held in registers",
        values = function(_, isa) return parts(isa, panel, 1) end,
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
    },
    {
        key = "few.unroll",
        doc = "inputs of a token alone with sums of their own",
        values = function(shape, isa, s)
            if shape.rounded or shape.type.groups then return { 1 } end
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
    },
    {
        key = "product.vectors",
        doc = "vectors of outputs of several tokens held in registers",
        values = function(_, isa) return parts(isa, panel, 1) end,
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
    },
    {
        key = "product.depth",
        doc = "inputs of a product of several tokens that stay in cache",
        values = function(shape) return shape.rounded and { 1024 } or { 128, 256, 512, 1024, 2048, 4096 } end,
    },
    {
        key = "product.prefetch",
        doc = "what products of several tokens prefetch: 1: the next panel's weights and outputs, into L2; 512 and \z
            more: weights so many bytes ahead; 0: nothing",
        values = function(shape, isa)
            if not isa.prefetch_l2 or shape.type.groups and shape.rounded then return { 0 } end
            if layout.converts(shape.type, shape.rounded) then return { 0, 1 } end
            return { 0, 1, 512, 1024, 2048, 4096, 8192 }
        end,
    },
    {
        key = "chunk.tokens",
        doc = "tokens that go through a block together",
        values = chunks,
    },
    {
        key = "project.dense",
        doc = "whether several tokens are projected by the dense matrix that lookup FFNs have multiplied out \z
            (--multiply-out); 0: no, 1: yes",
        values = function(shape, isa, s)
            return shape.looked and lookup_schedule.choice("project.dense").values(shape.looked, isa, s) or { 0 }
        end,
    },
    {
        key = "attention.tokens",
        doc = "tokens that attend together to each tile of the cache",
        values = function(shape) return shape.lsh and { 1 } or powers(1, tile) end, -- a ring has room for no more
    },
    {
        key = "attention.sums",
        doc = "vectors of sums of a row held in registers",
        values = function(shape, isa, s)
            return shape.lsh and { 1 } or parts(isa, 8 * isa.lanes, attention.rows(shape, s))
        end,
    },
    {
        key = "attention.prefetch",
        doc = "keys and values that are read next are prefetched: 1: line by line, 2: a line of each of some pages in \z
            turn, 3: the first page of what comes next, into L2; 0: not",
        values = function(shape, isa) return not shape.lsh and isa.prefetch_l2 and { 0, 1, 2, 3 } or { 0 } end,
    },
}, defaults)
