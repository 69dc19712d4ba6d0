-- The schedule of a LookupFFN: what each choice may be, and defaults from a small cost model.
local gather = require "gen.families.lookup.gather"
local gather_i8 = require "gen.families.lookup.gather_i8"
local isa_list = require "gen.isa.list"
local machine = require "gen.plan.machine"
local product = require "gen.families.lookup.product"
local space = require "gen.plan.space"

local powers = space.powers

local function power_of_two_at_most(n)
    local power = 1
    while power * 2 <= n do
        power = power * 2
    end
    return power
end

-- The largest of the ascending values in `list` that is at most n.
local function largest_at_most(n, list)
    local largest
    for _, value in ipairs(list) do
        if value <= n then largest = value end
    end
    return largest
end

local function clamp(n, min, max) return math.max(min, math.min(max, n)) end

local max_chunk = 4096 -- tokens of a chunk by default
local two_lines = 128 -- bytes
local max_rows_at_once = 128 -- two lines of each of them and of those that come next fill L1
local max_long_strips = 64 -- 1 KiB of each, twice, in an eighth of L2
local max_i8_lines = 16 -- of four rows each, written out
local rows_followed = 16 -- rows of floats from memory that a core follows at a time
-- Times that a call meets a row on average: from then on slices of tables are gathered faster than whole rows, where a
-- machine does not say otherwise.
local slices_from = 4
local slices_beyond_l3 = 512 -- rows of a table that a call meets before they pay where tables come from memory (Zen 5)
local max_code_bytes = 128 << 20 -- codes and scores of a pass by default

local function machine_of(isa) return isa.machine or machine.nominal end

local function table_bytes(shape) return shape.h * shape.rows * shape.d_out * shape.tables.bytes end

local function tables_in_cache(shape, isa) return table_bytes(shape) <= isa.l2_bytes // 2 end

-- Whether tables are known to leave L3.
local function beyond_l3(shape, isa) return table_bytes(shape) > (machine_of(isa).l3_bytes or math.maxinteger) end

-- Which calls prefetch rows of all tables into L2, from token to token: "few", "all" or nil.
local function into_l2(shape, isa)
    local row = machine_of(isa)
    return table_bytes(shape) > (row.l3_bytes or 0) and row.prefetches_l2 or nil
end

-- Whether calls that are not few, but gather whole rows, prefetch them into L2 likewise.
local function whole_into_l2(shape, isa) return beyond_l3(shape, isa) or into_l2(shape, isa) == "all" end

local function from_memory(shape, isa) return isa.prefetch_l2 and not tables_in_cache(shape, isa) end

-- Whether a slice of the tables is worth copying side by side: it comes from memory, and a chunk meets most of its rows
-- several times.
local function packs(shape, isa)
    return isa.lanes > 1 and from_memory(shape, isa) and 4 * shape.rows <= max_chunk
end

-- Whether each row's strips are long, so that few tokens come back to a page seldom: 0.7 of the gather's time (Zen 5).
local function beyond_tlb(shape, isa)
    local bytes = machine_of(isa).tlb_bytes
    return bytes and table_bytes(shape) > bytes and not gather_i8.words(shape, isa)
end

-- Whether tables of floats are so large that few tokens read a line of each row at a time.
local function short_strips(shape, isa)
    return table_bytes(shape) >= (machine_of(isa).short_strips_from or math.maxinteger)
end

-- Whether the next slice comes into L2 while tokens read a copied one.
local function prefetches_next(shape, isa)
    local ahead = machine_of(isa).copies_ahead
    return ahead and packs(shape, isa) and (ahead == "all" or gather_i8.words(shape, isa))
end

-- Whether copied slices are narrower because the next one comes meanwhile.
local function narrower(shape, isa)
    local fills = machine_of(isa).fills_l2 and not gather_i8.words(shape, isa)
    return prefetches_next(shape, isa) and not fills
end

-- Whether copied slices that need not be narrower still are, as eight tables of so many columns leave the other half of
-- L2 to the next ones: 0.92 to 0.97 of the time with 256 rows a table; 1.03 with 512, which fill it (Zen 3).
local function halves_l2(shape, isa, columns)
    local slice = 8 * shape.rows * columns * shape.tables.bytes
    return prefetches_next(shape, isa) and not narrower(shape, isa) and slice <= isa.l2_bytes // 2
end

-- Bytes of a copied slice at most: so legal choices do not depend on the machine.
local max_pack_bytes = 4 * machine.most_l2_bytes

-- Codes and scores of `tokens` tokens in scratch, in bytes: of a chunk at most 2 GiB.
local function code_bytes(shape, tokens) return tokens * shape.slots * 6 end
local function codes_fit(shape, tokens) return code_bytes(shape, tokens) <= 2 << 30 end

local function fitting(isa, candidates, vectors)
    local list = {}
    for _, rows in ipairs(candidates) do
        if rows == 1 or space.product_fits(isa, rows, vectors) then list[#list + 1] = rows end
    end
    return list
end

-- What divides the lines of words of every block, as its largest power of two does.
local function product_lines(shape)
    local word = shape.projection.word
    local function lines(rows) return not word.integers and rows or (rows + word.rows - 1) // word.rows end
    if shape.kind ~= "bh4" then return lines(shape.d) end
    return lines(shape.block) | lines(shape.d % shape.block)
end

-- The most tables that are summed in one go: all, of rows of integers those whose scores can have one unit.
local function all_tables(shape, isa)
    return gather_i8.words(shape, isa) and math.min(shape.h, gather_i8.max_tables(shape)) or shape.h
end

-- How many accumulators a gather may have: those of whole lines of columns where rows are summed as integers.
local function accumulators(shape, isa)
    local words = gather_i8.words(shape, isa)
    return powers(words and words.vectors or 1, isa.registers - (words and 2 * words.rows or 4))
end

-- The default of them where rows are summed as integers: two lines of columns, one where registers are short.
local function integer_accumulators(shape, isa)
    local list = accumulators(shape, isa)
    return math.min(2 * gather_i8.words(shape, isa).vectors, list[#list])
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

-- See gen/plan/space.lua. The kernels for few tokens have choices of their own.
local choices = {
    {
        key = "butterfly.radix",
        doc = "wires of the widest butterfly held in registers",
        values = function(_, isa) return powers(2, isa.registers // 2) end,
        default = function(_, isa) return isa.registers // 2 end,
    },
    {
        key = "project.rows_first",
        doc = "what a stage of a projection in i8 does first; 0: all rows of a block; 1: 16 rows of all blocks, and \z
            their butterflies, while they are in L1",
        values = function(shape, isa, s)
            return rows_first_possible(shape, isa, s["butterfly.radix"]) and { 0, 1 } or { 0 }
        end,
        default = function(shape, isa, s)
            -- 0.9 to 0.95 of the time of projection and hash (AVX-512, Emerald Rapids); elsewhere not measured.
            local pays = machine_of(isa).rows_first and isa.registers >= 32
            return pays and rows_first_possible(shape, isa, s["butterfly.radix"]) and 1 or 0
        end,
    },
    {
        key = "tile.vectors",
        doc = "vectors of tokens in a tile, whose features lie side by side",
        values = function(_, isa) return isa.lanes == 1 and { 1, 2, 4, 8 } or { 1, 2, 3, 4 } end,
        -- With 32 registers 4 vectors by 4 outputs load 8 words for 16 products, 2 by 8 load 10: 1.5 to 2 % of the
        -- layer (Cascade Lake).
        default = function(shape, isa, s)
            if isa.lanes == 1 then return 8 end
            if machine_of(isa).tile_vectors then return machine_of(isa).tile_vectors end
            if s["project.rows_first"] == 1 then return 2 end -- a stage's integers and 16 rows of all blocks in L1
            return isa.registers >= 32 and code_bytes(shape, 4 * isa.lanes) <= max_code_bytes and 4 or 2
        end,
    },
    {
        key = "product.outputs",
        doc = "outputs of the block product held in registers",
        values = function(_, isa, s) return fitting(isa, powers(1, product.panel), s["tile.vectors"]) end,
        default = function(_, isa, s)
            if isa.lanes == 1 then return 4 end -- compilers make vectors of 8 tokens' floats
            return power_of_two_at_most(math.max(1, (isa.registers - 1 - s["tile.vectors"]) // s["tile.vectors"]))
        end,
    },
    {
        key = "product.unroll",
        doc = "lines of weights written out in one step of the block product's loop",
        values = function(shape)
            local lines = product_lines(shape)
            return powers(1, math.min(4, lines & -lines))
        end,
        -- A second line makes the layer 1 to 3 % faster (Cascade Lake, gcc 12), four are no better.
        default = function(shape, isa) return isa.lanes > 1 and product_lines(shape) & 1 == 0 and 2 or 1 end,
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
        default = function(shape, isa, s) -- two ping-pong buffers of the projection in half of L2, codes in 128 MiB
            local tile = s["tile.vectors"] * isa.lanes
            if s["project.rows_first"] == 1 then return 1 end
            local tiles =
                math.min(isa.l2_bytes // 2 // (2 * shape.padded * tile * 4), max_code_bytes // code_bytes(shape, tile))
            tiles = clamp(power_of_two_at_most(math.max(1, tiles)), 1, 8)
            -- Weights are shared enough by 64 tokens: no more where inputs and outputs beside those buffers leave L2.
            local rows = shape.d + (2 + shape.repeats) * shape.padded
            while tiles > 1 and tiles * tile > 64 and rows * tiles * tile * 4 > isa.l2_bytes do
                tiles = tiles // 2
            end
            return tiles
        end,
    },
    {
        key = "gather.columns",
        doc = "columns of the tables gathered in one pass over the tokens",
        values = function(shape)
            local list = powers(math.min(16, shape.d_out), shape.d_out)
            if list[#list] ~= shape.d_out then list[#list + 1] = shape.d_out end
            return list
        end,
        default = function(shape, isa)
            -- Pieces under two lines cost more to find than to read. Where they are copied, over 64 columns leave a
            -- group too few tables.
            if packs(shape, isa) then
                -- Sums of integers take four times as many bytes as the rows: narrow pieces keep more of them in cache.
                if gather_i8.words(shape, isa) then return math.min(shape.d_out, 64) end
                local two = two_lines // shape.tables.bytes
                if narrower(shape, isa) or halves_l2(shape, isa, two) then return math.min(shape.d_out, two) end
                return math.min(shape.d_out, math.max(64, two))
            end
            -- Elsewhere pieces of rows, if those of eight tables fit a quarter of L2 (with the next eight and the sums
            -- it is then full); otherwise, and for short elements, whole rows.
            local columns =
                power_of_two_at_most(math.max(1, isa.l2_bytes // 4 // (8 * shape.rows * shape.tables.bytes)))
            local pieces = tables_in_cache(shape, isa) and 64 or columns >= 32 and math.min(columns, 64) or 1024
            return math.min(shape.d_out, shape.tables.bytes < 4 and 1024 or pieces)
        end,
    },
    {
        key = "gather.group",
        doc = "tables gathered in one pass over the tokens",
        values = function(shape, isa)
            local words = gather_i8.words(shape, isa) -- whole words of scores
            local least = words and math.min(shape.h, gather_i8.step(words, shape)) or 1
            local list = powers(least, math.min(shape.h, 64))
            if shape.h <= 64 and list[#list] ~= shape.h then list[#list + 1] = shape.h end
            return list
        end,
        default = function(shape, isa, s)
            -- A group's slice of the tables in half of L2 if it is copied, in a quarter or in all of it if the next one
            -- comes meanwhile; otherwise in a quarter, or in all of it where rows are short. Over 16 rows gain nothing;
            -- under 4, reading and writing sums once a group costs more than the misses it saves. Of a table that gives
            -- m rows the m-th part is enough. Sums of integers that wait cost as much, but their kernels have no loop
            -- to start: 32.
            local m = shape.neighbours
            local max = packs(shape, isa) and gather_i8.words(shape, isa) and 32 or 16
            local slice = shape.rows * s["gather.columns"] * shape.tables.bytes
            local fills = prefetches_next(shape, isa) and not halves_l2(shape, isa, s["gather.columns"])
            local part = narrower(shape, isa) and 4 or fills and 1 or 2
            local room = packs(shape, isa) and isa.l2_bytes // part
                or shape.tables.bytes < 4 and isa.l2_bytes
                or isa.l2_bytes // 4
            local tables = math.min(clamp(room // slice, (4 + m - 1) // m, (max + m - 1) // m), shape.h)
            local words = gather_i8.words(shape, isa)
            return words and tables < gather_i8.step(words, shape) and tables or power_of_two_at_most(tables)
        end,
    },
    {
        key = "gather.vectors",
        doc = "accumulators of the gather",
        values = accumulators,
        default = function(shape, isa)
            if gather_i8.words(shape, isa) then return integer_accumulators(shape, isa) end
            return isa.lanes == 1 and 4 or power_of_two_at_most(math.min(8, isa.registers // 2))
        end,
    },
    {
        key = "gather.unroll",
        doc = "tables written out in one step of the gather's loop",
        values = function(shape, isa, s)
            local words = gather_i8.words(shape, isa)
            local step = words and gather_i8.step(words, shape)
            return words and powers(step, math.max(step, s["gather.group"]))
                or powers(1, math.min(8, s["gather.group"]))
        end,
        default = function(shape, isa, s)
            -- gcc 12 copies sums of integers in a loop: none, as long as the code stays short.
            local words = gather_i8.words(shape, isa)
            if words then
                local lines = math.max(
                    1,
                    math.min(
                        s["gather.vectors"] // words.vectors,
                        (s["gather.columns"] + words.columns - 1) // words.columns
                    )
                )
                local step = gather_i8.step(words, shape)
                return power_of_two_at_most(
                    clamp(max_i8_lines // lines * step, step, math.max(step, s["gather.group"]))
                )
            end
            return isa.lanes == 1 and 1 or power_of_two_at_most(math.min(8, s["gather.group"]))
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
        default = function(shape, isa, s) -- tables that leave L2 are read once a chunk: each row is used about 16 times
            local step = s["project.tiles"] * s["tile.vectors"] * isa.lanes
            if tables_in_cache(shape, isa) then return step end
            return step
                * power_of_two_at_most(math.max(1, math.min(16 * shape.rows // shape.neighbours, max_chunk) // step))
        end,
    },
}

-- The instruction set of the kernels for few tokens, which hold outputs, features and tables in the lanes: whole blocks
-- must fill vectors. Where they do not fill those of `isa`, it is the widest narrower set whose vectors they fill,
-- under the name of `isa`; nil: there is none. Tables in f16 and e4m3 take instructions that `isa` need not name.
local function few_isa(shape, isa)
    if shape.kind == "dense" or shape.block % isa.lanes == 0 or shape.block == shape.padded then return isa end
    if not isa.narrower or shape.tables.name == "f16" or shape.tables.name == "e4m3" then return nil end
    local narrow = {}
    for key, value in pairs(isa_list.with_types(isa_list.get(isa.narrower), { shape.tables, shape.projection })) do
        narrow[key] = value
    end
    narrow.name, narrow.machine, narrow.l2_bytes = isa.name, isa.machine, isa.l2_bytes
    return few_isa(shape, narrow)
end

local function few_possible(shape, isa) return few_isa(shape, isa) ~= nil end

local function add(choice)
    choices[#choices + 1] = choice
    if not choice.key:find "^few%." or choice.key == "few.threshold" then return end
    local values, default = choice.values, choice.default
    choice.values = function(shape, isa, s) return values(shape, few_isa(shape, isa) or isa, s) end
    choice.default = function(shape, isa, s) return default(shape, few_isa(shape, isa) or isa, s) end
end
add {
    key = "whole.tokens",
    doc = "calls and last chunks of up to so many tokens, if they are not few, gather whole rows; 0: none",
    values = function(_, isa) return isa.lanes > 1 and { 0, 64, 128, 256, 512, 1024, 2048, 4096 } or { 0 } end,
    default = function(shape, isa, s)
        local row = machine_of(isa)
        local times = gather_i8.words(shape, isa) and (row.slices_from or slices_from) or row.float_slices_from or 0
        local meets = times * shape.rows
        if not from_memory(shape, isa) or meets > max_chunk then return 0 end
        -- Beyond L3 the gather of few tokens takes 0.75 to 0.93 of the time, and then slices, unless a token alone is
        -- slow to project: the whole layer takes 0.75 with two rows a table and blocks of 16 (Zen 5).
        if beyond_l3(shape, isa) then
            local few = shape.neighbours == 1 and few_possible(shape, isa)
            if few and (shape.kind == "dense" or shape.block >= 64) then return 0 end
            meets = math.min(meets, slices_beyond_l3)
        end
        local tokens = power_of_two_at_most(math.max(1, math.min(meets // shape.neighbours, s["chunk.tokens"])))
        return tokens >= 64 and tokens or 0
    end,
}
-- How many tables such calls of a schedule `s` may gather at a time.
local function whole_groups(shape, isa, s)
    local words = gather_i8.words(shape, isa)
    local least = words and math.min(shape.h, gather_i8.step(words, shape)) or 1
    if not words and s["whole.tokens"] == 0 then return { least } end
    local list, all = powers(least, math.min(shape.h, 64)), all_tables(shape, isa)
    if list[#list] ~= all then list[#list + 1] = all end
    return list
end

add {
    key = "whole.group",
    doc = "tables gathered in one pass over such tokens",
    values = whole_groups,
    default = function(shape, isa, s)
        local groups = whole_groups(shape, isa, s)
        if not gather_i8.words(shape, isa) then
            return largest_at_most(rows_followed // shape.neighbours, groups) or groups[1]
        end
        -- Sums never wait, and as many rows as can be are under way.
        if whole_into_l2(shape, isa) then return groups[#groups] end
        local row = machine_of(isa)
        local tables = row.tables_at_once or (row.rows_at_once or 32) // shape.neighbours
        return largest_at_most(tables, groups) or groups[1]
    end,
}
add {
    key = "whole.accumulators",
    doc = "accumulators of that gather",
    values = function(shape, isa, s)
        local list = accumulators(shape, isa)
        return s["whole.tokens"] > 0 and list or { list[1] }
    end,
    default = function(shape, isa, s)
        if s["whole.tokens"] == 0 then return accumulators(shape, isa)[1] end
        if gather_i8.words(shape, isa) then return s["gather.vectors"] end
        -- A line of each row: 0.86 to 0.94 of the time of two (64 to 256 tokens, Zen 3).
        return clamp(two_lines // 2 // (isa.lanes * shape.tables.bytes), 1, isa.registers // 2)
    end,
}
add {
    key = "whole.prefetch",
    doc = "what that gather prefetches: 0: nothing, 1: the next strip of its rows, 2: the same into L2, behind a \z
        token's last strip that of the next token",
    values = function(_, isa) return isa.prefetch_l2 and { 0, 1, 2 } or { 0 } end,
    default = function(shape, isa)
        if not isa.prefetch_l2 then return 0 end
        local row = machine_of(isa)
        -- Of floats, into L1: 0.94 of the time of L2, with larger tables 1.06 times as long (Zen 3).
        local floats = row.short_strips_from and not gather_i8.words(shape, isa)
        if floats and not short_strips(shape, isa) then return 1 end
        return row.whole_prefetch or whole_into_l2(shape, isa) and 2 or 1
    end,
}
local thresholds = { 0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 65536 }
add {
    key = "few.threshold",
    doc = "calls of up to so many tokens take the kernels for few tokens; 0: none",
    values = function(shape, isa) return few_possible(shape, isa) and thresholds or { 0 } end,
    default = function(shape, isa, s)
        local few = few_isa(shape, isa)
        if not few then return 0 end
        -- On vectors of eight nine tokens take as long as a tile, on vectors of four five (8 and 15 of 71 µs, Zen 5).
        -- Slices of floats are gathered slowly for so few: as many as elsewhere then.
        if few ~= isa and (gather_i8.words(shape, isa) or s["whole.tokens"] > 0) then return few.lanes end
        -- Tables in cache: as soon as half a tile is filled, tokens in the lanes win. Larger tables: only a call of a
        -- few hundred tokens, each with one row, uses a group of tables often enough to make up for leaving rows in
        -- pieces.
        if tables_in_cache(shape, isa) then
            return power_of_two_at_most(math.max(1, s["tile.vectors"] * few.lanes // 2))
        end
        -- Where whole rows are gathered, too, only the projection decides: three quarters of a tile pay for all of it.
        if s["whole.tokens"] > 0 and s["tile.vectors"] ~= 3 then
            return largest_at_most(s["tile.vectors"] * isa.lanes * 3 // 4, thresholds)
        end
        local most = math.min(512, (machine_of(isa).slices_from or math.huge) * shape.rows)
        return power_of_two_at_most(math.max(1, most // shape.neighbours))
    end,
}
add {
    key = "few.vectors",
    doc = "vectors of outputs of a few-token product held in registers",
    values = function(_, isa)
        local list = {}
        for _, vectors in ipairs(powers(1, product.panel)) do
            local whole_panels = vectors * isa.lanes % product.panel == 0
            local fits = space.product_fits(isa, 1, vectors) or #list == 0 -- a panel is what weights are packed for
            if whole_panels and fits then list[#list + 1] = vectors end
        end
        return list
    end,
    default = function(_, isa) return isa.lanes == 1 and product.panel or 4 end,
}
add {
    key = "few.tokens",
    doc = "tokens of a few-token product held in registers",
    values = function(_, isa, s) return fitting(isa, powers(1, isa.lanes == 1 and 1 or 8), s["few.vectors"]) end,
    default = function(_, isa, s)
        local list = fitting(isa, powers(1, isa.lanes == 1 and 1 or 4), s["few.vectors"])
        return list[#list]
    end,
}
add {
    key = "few.accumulators",
    doc = "accumulators of the few-token gather",
    values = accumulators,
    default = function(shape, isa)
        -- One token's rows come from memory: read a few tables side by side, a strip of two cache lines of each after
        -- the other while the next one is prefetched, they come as fast as memory can give them.
        if gather_i8.words(shape, isa) then return integer_accumulators(shape, isa) end
        if isa.lanes == 1 then return 4 end
        if from_memory(shape, isa) and not beyond_tlb(shape, isa) then
            local strip = short_strips(shape, isa) and two_lines // 2 or two_lines
            return clamp(strip // (isa.lanes * shape.tables.bytes), 1, isa.registers // 2)
        end
        return isa.registers // 2
    end,
}
add {
    key = "few.group",
    doc = "tables gathered in one pass over a few tokens",
    values = function(shape, isa)
        local max = all_tables(shape, isa)
        local list = powers(1, max)
        if list[#list] ~= max then list[#list + 1] = max end
        return list
    end,
    default = function(shape, isa)
        if beyond_tlb(shape, isa) then return math.min(all_tables(shape, isa), max_long_strips) end
        if into_l2(shape, isa) then return all_tables(shape, isa) end
        if gather_i8.words(shape, isa) then
            -- All, as sums then never wait. With two rows of a table, two lines of 128 rows: as many that come next,
            -- and L1 is full (0.8 to 0.9 of the time of twice as many, Ice Lake).
            local most = shape.neighbours == 1 and shape.h or max_rows_at_once // 2
            if most > max_rows_at_once then most = machine_of(isa).few_rows or most end
            return math.min(most, all_tables(shape, isa))
        end
        -- As many rows as a core follows at a time; short ones end before it sees that they go on. With two and four
        -- rows of each of 16 tables calls take 1.2 to 1.4 times as long (Zen 3).
        return from_memory(shape, isa)
                and shape.d_out * shape.tables.bytes >= 1024
                and power_of_two_at_most(math.min(shape.h, math.max(1, rows_followed // shape.neighbours)))
            or shape.h
    end,
}
add {
    key = "gather.pack",
    doc = "whether a slice of tables is copied side by side before the tokens read it; 0: no, 1: yes, 2: yes, \z
        prefetched into L2, 3: yes, without a prefetch",
    values = function(shape, isa, s)
        local pack = isa.lanes > 1 and gather.pack(shape, s["gather.columns"], s["gather.group"], 1)
        if not pack or pack.bytes > max_pack_bytes then return { 0 } end
        return isa.prefetch_l2 and { 0, 1, 2, 3 } or { 0, 1 }
    end,
    default = function(shape, isa, s)
        local pack = packs(shape, isa) and gather.pack(shape, s["gather.columns"], s["gather.group"], 1)
        if not pack or pack.bytes > 4 * isa.l2_bytes or s["chunk.tokens"] < 4 * shape.rows then return 0 end
        return machine_of(isa).copies or 1
    end,
}
add {
    key = "gather.stream",
    doc = "whether aligned y is written past the caches; 0: no, 1: yes",
    values = function(shape, isa, s) return isa.stream and gather.streams(shape, isa, s) and { 0, 1 } or { 0 } end,
    -- Where y is larger than L2: reading its lines before they are overwritten takes 1 to 2 % of the layer.
    default = function(shape, isa, s)
        local fits = s["chunk.tokens"] * shape.d_out * 4 <= 2 * isa.l2_bytes
        return isa.stream and not fits and from_memory(shape, isa) and gather.streams(shape, isa, s) and 1 or 0
    end,
}
add {
    key = "gather.prefetch_next",
    doc = "whether the tokens prefetch the slice of tables that comes next; 0: no, 1: yes",
    values = function(_, isa) return isa.prefetch_l2 and { 0, 1 } or { 0 } end,
    -- pieces of rows come slowly from memory when met at random; worth it if most of them are met
    default = function(shape, isa, s)
        if not from_memory(shape, isa) or s["chunk.tokens"] < 4 * shape.rows then return 0 end
        return (s["gather.pack"] == 0 or prefetches_next(shape, isa)) and 1 or 0
    end,
}
add {
    key = "gather.prefetch",
    doc = "whether the gather prefetches the next strip of its rows; 0: no, 1: yes",
    values = function(_, isa) return isa.prefetch_l2 and { 0, 1 } or { 0 } end,
    default = function() return 0 end,
}
add {
    key = "gather.prefetch_codes",
    doc = "whether the gather of a tile prefetches codes and scores of the next one; 0: no, 1: yes",
    values = function(shape, isa) return isa.prefetch_l2 and gather_i8.words(shape, isa) and { 0, 1 } or { 0 } end,
    default = function(shape, isa)
        local pays = machine_of(isa).prefetches_codes and from_memory(shape, isa)
        return pays and gather_i8.words(shape, isa) and 1 or 0
    end,
}
add {
    key = "few.prefetch",
    doc = "what the few-token gather prefetches: 0: nothing, 1: the next strip of its rows, 2: also the first one, \z
        as soon as its code is known, 3: the same into L2, behind a token's last strip that of the next token",
    values = function(shape, isa)
        if not isa.prefetch_l2 then return { 0 } end
        return gather.finds_rows(shape) and { 0, 1, 2, 3 } or { 0, 1 }
    end,
    default = function(shape, isa)
        if not from_memory(shape, isa) then return 0 end
        if into_l2(shape, isa) and gather.finds_rows(shape) then return 3 end
        if machine_of(isa).few_prefetch then return machine_of(isa).few_prefetch end
        -- Pays for rows of i8 (0.97 of one token's time); with those of float32 one token takes 1.12 times as long,
        -- eight 1.05 times. With two rows a table one token takes 0.98 of the time, 8 and 64 tokens 1.02 times as long.
        return gather_i8.words(shape, isa) and shape.neighbours == 1 and 2 or 1
    end,
}

local schedule = space.new(choices)
schedule.few_possible, schedule.few_isa = few_possible, few_isa
return schedule
