-- The schedule of a LookupFFN: what each choice may be.
local copied = require "gen.schema.copied"
local defaults = require "gen.families.lookup.defaults"
local gather = require "gen.families.lookup.gather"
local integer_sums = require "gen.families.lookup.integer_sums"
local isa_list = require "gen.isa.list"
local product = require "gen.families.lookup.product"
local space = require "gen.plan.space"

local powers = space.powers

-- Bytes of a copied slice at most: four times the largest L2 of gen/machines/, so that legal choices do not depend on
-- the CPU.
local max_pack_bytes = 8 << 20

-- Whether codes and scores of `tokens` tokens take at most 2 GiB of scratch.
local function codes_fit(shape, tokens) return tokens * shape.slots * 6 <= 2 << 30 end

-- The powers of two from `first` to `last`, and `max`.
local function powers_and(first, last, max)
    local list = powers(first, last)
    if list[#list] ~= max then list[#list + 1] = max end
    return list
end

local function fitting(isa, candidates, vectors)
    local list = {}
    for _, rows in ipairs(candidates) do
        if rows == 1 or space.product_fits(isa, rows, vectors) then list[#list + 1] = rows end
    end
    return list
end

-- The choices that every gather has. Their keys begin with `prefix`: "gather", of slices of the tables; "whole", of
-- whole rows; "few". `of`, `over`: words for it and its tokens.

local function group(prefix, over)
    return {
        key = prefix .. ".group",
        doc = "tables gathered in one pass over " .. over,
        values = function(shape, isa, s)
            local words, least, most = integer_sums.words(shape, isa), 1, math.min(shape.h, 64)
            -- Whole words of scores.
            if words and prefix ~= "few" then least = math.min(shape.h, integer_sums.step(words, shape)) end
            if prefix == "gather" then return powers_and(least, most, most) end
            if prefix == "whole" and not words and s["whole.tokens"] == 0 then return { least } end
            -- All, of rows of integers those whose scores can have one unit, are summed in one go.
            local all = words and math.min(shape.h, integer_sums.max_tables(shape)) or shape.h
            return powers_and(least, prefix == "few" and all or most, all)
        end,
    }
end

local function byte_scores(prefix, of)
    return {
        key = prefix .. ".byte_scores",
        doc = "whether " .. of .. " rounds scores to 8 bits where it sums integers, which changes y; 0: no, 1: yes",
        values = function(shape) return integer_sums.possible(shape) and { 0, 1 } or { 0 } end,
        rounds = true,
    }
end

local function accumulators(prefix, of)
    return {
        key = prefix .. ".accumulators",
        doc = "accumulators of " .. of,
        values = function(shape, isa, s)
            -- Those of whole lines of columns where rows are summed as integers.
            local words = integer_sums.words(shape, isa, s[(prefix == "few" and "few" or "gather") .. ".byte_scores"])
            local list = powers(words and words.vectors or 1, isa.registers - (words and 2 * words.rows or 4))
            return (prefix ~= "whole" or s["whole.tokens"] > 0) and list or { list[1] }
        end,
    }
end

-- The hash of tokens in the lanes prefetches no rows.
local function prefetch(prefix, of)
    return {
        key = prefix .. ".prefetch",
        doc = "what " .. of .. " prefetches: 0: nothing, 1: the next strip of its rows, " .. (
            prefix == "few" and "2: also the first one, as soon as its code is known, " or ""
        ) .. "3: the same into L2, behind a token's last strip that of the next token",
        values = function(shape, isa)
            if not isa.prefetch_l2 then return { 0 } end
            if prefix == "whole" then return { 0, 1, 3 } end
            return gather.finds_rows(shape) and { 0, 1, 2, 3 } or { 0, 1 }
        end,
    }
end

-- Whether a projection's stages may go by rows: where each block has a unit of its own, and one pass of butterflies
-- makes the inputs of all, which finds their maxima in registers.
local function rows_first_possible(shape, isa, radix)
    return shape.kind == "bh4"
        and shape.projection.word.offset ~= nil
        and shape.padded > shape.block
        and shape.padded // shape.block <= radix
        and shape.block > product.panel
        and shape.block % product.panel == 0
        and isa.lanes > 1
        and isa.max_magnitude ~= nil
        and not isa.sizeless
end

-- The instruction set of the kernels for few tokens, which hold outputs, features and tables in the lanes: whole blocks
-- must fill vectors. Where they do not fill those of `isa`, it is the widest narrower set whose vectors they fill,
-- under the name of `isa`; nil: there is none. Tables in f16 and e4m3 take instructions that `isa` need not name.
local function few_isa(shape, isa)
    local dense = shape.kind == "dense" or shape.multiplied and shape.same_codes
    if dense or shape.block % isa.lanes == 0 or shape.block == shape.padded then return isa end
    if not isa.narrower or shape.tables.name == "f16" or shape.tables.name == "e4m3" then return nil end
    local narrow = copied(isa_list.with_types(isa_list.get(isa.narrower), { shape.tables, shape.projection }))
    narrow.name, narrow.machine, narrow.l2_bytes = isa.name, isa.machine, isa.l2_bytes
    return few_isa(shape, narrow)
end

local function few_possible(shape, isa) return few_isa(shape, isa) ~= nil end

local thresholds = { 0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 65536 }

-- See gen/plan/space.lua. The kernels for few tokens have choices of their own.
local choices = {
    {
        key = "butterfly.radix",
        doc = "wires of the widest butterfly held in registers",
        values = function(_, isa) return powers(2, isa.registers // 2) end,
    },
    {
        key = "project.dense",
        doc = "how many tokens are projected where the blob has BH4 multiplied out (--multiply-out), too; 0: by BH4; \z
            1: by the dense matrix, of a model with same_codes few tokens, too",
        values = function(shape) return not shape.multiplied and { 0 } or shape.same_codes and { 1 } or { 0, 1 } end,
    },
    {
        key = "project.rows_first",
        doc = "what a stage of a projection in i8 does first; 0: all rows of a block; 1: 16 rows of all blocks, and \z
            their butterflies, while they are in L1",
        values = function(shape, isa, s)
            local possible = s["project.dense"] == 0 and rows_first_possible(shape, isa, s["butterfly.radix"])
            return possible and { 0, 1 } or { 0 }
        end,
    },
    {
        key = "tile.vectors",
        doc = "vectors of tokens in a tile, whose features lie side by side",
        values = function(_, isa) return isa.lanes == 1 and { 1, 2, 4, 8 } or { 1, 2, 3, 4 } end,
    },
    {
        key = "product.outputs",
        doc = "outputs of the block product held in registers",
        values = function(_, isa, s) return fitting(isa, powers(1, product.panel), s["tile.vectors"]) end,
    },
    {
        key = "project.tiles",
        doc = "tiles that share one pass over the projection's weights",
        values = function(shape, isa, s)
            local list = {}
            for _, tiles in ipairs(powers(1, 16)) do
                if tiles == 1 or codes_fit(shape, tiles * s["tile.vectors"] * isa.lanes) then
                    list[#list + 1] = tiles
                end
            end
            return list
        end,
    },
    {
        key = "gather.columns",
        doc = "columns of the tables gathered in one pass over the tokens",
        values = function(shape) return powers_and(math.min(16, shape.d_out), shape.d_out, shape.d_out) end,
    },
    group("gather", "the tokens"),
    byte_scores("gather", "the gather"),
    accumulators("gather", "the gather"),
    {
        key = "gather.unroll",
        doc = "tables written out in one step of the gather's loop",
        values = function(shape, isa, s)
            local words = integer_sums.words(shape, isa)
            local step = words and integer_sums.step(words, shape)
            return words and powers(step, math.max(step, s["gather.group"]))
                or powers(1, math.min(8, s["gather.group"]))
        end,
    },
    {
        key = "chunk.tokens",
        doc = "tokens whose codes wait in scratch between projection and gather",
        values = function(shape, isa, s)
            local step = s["project.tiles"] * s["tile.vectors"] * isa.lanes
            local list = {}
            for _, passes in ipairs(powers(1, math.max(1, 16384 // step))) do
                if passes == 1 or codes_fit(shape, passes * step) then list[#list + 1] = passes * step end
            end
            return list
        end,
    },
    {
        key = "whole.tokens",
        doc = "calls and last chunks of up to so many tokens, if they are not few, gather whole rows; 0: none",
        values = function(_, isa) return isa.lanes > 1 and { 0, 64, 128, 256, 512, 1024, 2048, 4096 } or { 0 } end,
    },
    group("whole", "such tokens"),
    accumulators("whole", "that gather"),
    prefetch("whole", "that gather"),
    {
        key = "few.threshold",
        doc = "calls of up to so many tokens take the kernels for few tokens; 0: none",
        values = function(shape, isa) return few_possible(shape, isa) and thresholds or { 0 } end,
    },
    {
        key = "few.tokens",
        doc = "tokens of a few-token product held in registers",
        values = function(_, isa)
            return fitting(isa, powers(1, isa.lanes == 1 and 1 or 8), product.few_vectors(isa))
        end,
    },
    byte_scores("few", "the few-token gather"),
    accumulators("few", "the few-token gather"),
    group("few", "a few tokens"),
    {
        key = "gather.pack",
        doc = "whether a slice of tables is copied side by side before the tokens read it; 0: no, 1: yes, 2: yes, \z
            prefetched into L2, 3: yes, without a prefetch",
        values = function(shape, isa, s)
            local pack = isa.lanes > 1 and gather.pack(shape, s["gather.columns"], s["gather.group"], 1)
            if not pack or pack.bytes > max_pack_bytes then return { 0 } end
            return isa.prefetch_l2 and { 0, 1, 2, 3 } or { 0, 1 }
        end,
    },
    {
        key = "gather.stream",
        doc = "whether aligned y is written past the caches; 0: no, 1: yes",
        values = function(shape, isa, s) return isa.stream and gather.streams(shape, isa, s) and { 0, 1 } or { 0 } end,
    },
    {
        key = "gather.prefetch_next",
        doc = "whether the tokens prefetch the slice of tables that comes next; 0: no, 1: yes",
        values = function(_, isa) return isa.prefetch_l2 and { 0, 1 } or { 0 } end,
    },
    {
        key = "gather.prefetch_codes",
        doc = "whether the gather of a tile prefetches codes and scores of the next one; 0: no, 1: yes",
        values = function(shape, isa)
            return isa.prefetch_l2 and integer_sums.words(shape, isa) and { 0, 1 } or { 0 }
        end,
    },
    prefetch("few", "the few-token gather"),
}

-- Choices of the kernels for few tokens are those of their instruction set.
for _, choice in ipairs(choices) do
    local values = choice.values
    if choice.key:find "^few%." and choice.key ~= "few.threshold" then
        choice.values = function(shape, isa, s) return values(shape, few_isa(shape, isa) or isa, s) end
    end
end

local schedule = space.new(choices, function(shape, isa, s, choose)
    defaults(shape, isa, few_isa(shape, isa), s, choose)
end)
schedule.few_possible, schedule.few_isa = few_possible, few_isa
return schedule
