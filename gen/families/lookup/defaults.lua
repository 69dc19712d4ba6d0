-- The default schedule of a LookupFFN, from the sizes of a model and the numbers of a CPU (gen/machines/list.lua).
local dense = require "gen.families.lookup.dense"
local dtype = require "gen.plan.dtype"
local gather = require "gen.families.lookup.gather"
local integer_sums = require "gen.families.lookup.integer_sums"
local machines = require "gen.machines.list"
local product = require "gen.families.lookup.product"

local all = math.huge
local line = 64 -- bytes
local max_chunk = 4096 -- tokens
local max_code_bytes = 128 << 20 -- codes and scores of a pass
local rows_followed = 16 -- rows of floats from memory that a core follows at a time
local integer_sums_held = 16 -- in registers, where there are 32; else as many as fit
local max_lines = 16 -- of integers, of four rows each: code that is written out

-- What several choices depend on. packs: whether a slice of tables is worth copying, as it comes from memory and a
-- chunk meets most of its rows several times; ahead: what part of L2 it takes while the next one is prefetched, all of
-- it where eight tables of two lines of floats leave less than half; meets: rows of a table that a call takes until
-- slices come faster than whole rows.
local function facts_of(shape, isa, byte_scores)
    local cpu = isa.machine or machines.get(machines.nominal)
    local words = integer_sums.words(shape, isa, byte_scores)
    local bytes = shape.h * shape.rows * shape.d_out * shape.tables.bytes
    local in_cache = bytes <= isa.l2_bytes // 2
    local from_memory = isa.prefetch_l2 and not in_cache
    local packs = isa.lanes > 1 and from_memory and 4 * shape.rows <= max_chunk
    local floats_ahead = math.min(cpu.floats_ahead, 16 * line * shape.rows <= isa.l2_bytes // 2 and 4 or 1)
    return {
        cpu = cpu,
        words = words,
        bytes = bytes,
        in_cache = in_cache,
        from_memory = from_memory,
        packs = packs,
        ahead = packs and (words and cpu.integers_ahead or floats_ahead) or 0,
        meets = (words and cpu.integers_met or cpu.floats_met) * shape.rows,
        whole_into_l2 = bytes > (words and cpu.integers_into_l2 or cpu.floats_into_l2),
        far = not words and bytes > cpu.far,
    }
end

local function project(shape, isa, facts, s, choose)
    choose("butterfly.radix", isa.registers // 2)
    local by_tiles = choose("project.dense", dense.pays(shape, isa) and 1 or 0) == 1
    choose("project.rows_first", isa.registers >= 32 and facts.cpu.rows_first or 0)
    -- With 32 registers 4 vectors by 4 outputs load 8 words for 16 products, 2 by 8 load 10. A stage's integers and 16
    -- rows of all blocks share L1 with fewer tokens. A matrix engine has 32 tokens at a time.
    local code_bytes = 6 * shape.slots * isa.lanes -- codes and scores of a vector of tokens
    local narrow = isa.registers < 32 or by_tiles or 4 * code_bytes > max_code_bytes or s["project.rows_first"] == 1
    local vectors = choose("tile.vectors", isa.lanes == 1 and 8 or math.min(facts.cpu.tile_vectors, narrow and 2 or 4))
    choose("product.outputs", isa.lanes == 1 and 4 or product.panel) -- compilers make vectors of 8 tokens' floats
    -- Two buffers of the projection in half of L2. 64 tokens share weights enough: no more where inputs and outputs
    -- beside those buffers leave L2.
    local tile, rows = vectors * isa.lanes, shape.d + (2 + shape.repeats) * shape.padded
    local tiles = math.min(8, isa.l2_bytes // (16 * shape.padded * tile), max_code_bytes // (vectors * code_bytes))
    tiles = math.min(tiles, math.max(64 // tile, isa.l2_bytes // (4 * rows * tile)))
    choose("project.tiles", s["project.rows_first"] == 1 and 1 or tiles)
end

-- The columns of a slice of tables. Pieces under two lines cost more to find than to read.
local function columns_of(shape, isa, facts)
    local bytes, two = shape.tables.bytes, dtype.held(shape.tables, 2 * line)
    if facts.packs then
        -- Sums of integers take four times as many bytes as the rows: narrow pieces keep more of them in cache. Over
        -- 64 columns leave a group too few tables, and room for the next slice.
        return facts.words and math.max(64, two // 2) or facts.ahead > 1 and two or math.max(64, two)
    end
    local columns = isa.l2_bytes // (32 * shape.rows * bytes) -- eight tables in a quarter of L2
    if bytes < 4 or not facts.in_cache and columns < 32 then return 1024 end
    return facts.in_cache and 64 or math.min(columns, 64)
end

local function gather_slices(shape, isa, facts, choose)
    local m, bytes, words = shape.neighbours, shape.tables.bytes, facts.words
    local columns = choose("gather.columns", columns_of(shape, isa, facts))
    -- Over 16 rows gain nothing; under 4, reading and writing sums once a group costs more than the misses it saves. Of
    -- a table that gives m rows the m-th part is enough. Copied integers have no loop to start: 32.
    local part = facts.ahead > 0 and facts.ahead or facts.packs and 2 or bytes < 4 and 1 or 4
    local least, most = (4 + m - 1) // m, ((facts.packs and words and 32 or 16) + m - 1) // m
    local tables = math.max(least, math.min(most, isa.l2_bytes // part // (shape.rows * columns * bytes)))
    choose("gather.group", 1 << math.floor(math.log(math.min(tables, shape.h), 2)))
    local vectors = choose("gather.accumulators", words and integer_sums_held or isa.lanes == 1 and 4 or 8)
    -- gcc 12 copies sums of integers in a loop: none, as long as the code stays short.
    local lines = words and math.min((columns + words.columns - 1) // words.columns, vectors // words.vectors)
    choose("gather.unroll", words and max_lines // lines * integer_sums.step(words, shape) or isa.lanes == 1 and 1 or 8)
    -- Tables that leave L2 are read once a chunk: each row is used about 16 times.
    choose("chunk.tokens", facts.in_cache and 0 or math.min(16 * shape.rows // m, max_chunk))
end

-- Calls between few and many tokens; `few`: the instruction set of the kernels for few tokens, nil: there are none.
local function whole(shape, isa, few, facts, s, choose)
    local m, cpu, words = shape.neighbours, facts.cpu, facts.words
    local meets = facts.from_memory and facts.meets <= max_chunk and facts.meets or 0
    if facts.bytes > cpu.whole_up_to then
        -- A token alone is slow to project where blocks are small, and two rows a table take as long whole.
        local quick = few and m == 1 and (shape.kind == "dense" or shape.block >= 64)
        meets = quick and 0 or math.min(meets, 512)
    end
    choose("whole.tokens", math.min(meets // m, s["chunk.tokens"]))
    local rows = words and (facts.whole_into_l2 and all or cpu.whole_rows) or rows_followed
    choose("whole.group", math.min(rows // m, words and cpu.tables_at_once or all))
    local strip = dtype.held(shape.tables, line) // isa.lanes
    choose("whole.accumulators", words and s["gather.accumulators"] or strip)
    choose("whole.prefetch", facts.whole_into_l2 and 3 or 1)
end

-- Calls of up to so many tokens are few. Tables in cache: as soon as half a tile is filled, tokens in the lanes win.
-- Where whole rows are gathered, too, only the projection decides: three quarters of a tile pay for all of it, three
-- eighths where a matrix engine multiplies. Else only a call of a few hundred tokens uses a group of tables often
-- enough to make up for leaving rows in pieces.
local function threshold_of(shape, isa, few, facts, s)
    if not few then return 0 end
    local tile = s["tile.vectors"] * few.lanes
    if few.lanes < isa.lanes and (facts.words or s["whole.tokens"] > 0) then return few.lanes end
    if facts.in_cache then return tile // 2 end
    if s["whole.tokens"] > 0 then return s["project.dense"] == 1 and tile * 3 // 8 or tile * 3 // 4 end
    return math.min(512, facts.meets > 0 and facts.meets or all) // shape.neighbours
end

local function few_tokens(shape, isa, facts, choose)
    local m, words, cpu, bytes = shape.neighbours, facts.words, facts.cpu, shape.tables.bytes
    choose("few.tokens", 4)
    -- One token's rows come from memory: read a few tables side by side, a strip of each after the other while the next
    -- one is prefetched, they come as fast as memory can give them.
    local strip = dtype.held(shape.tables, (facts.far and cpu.far_lines or 2) * line) // isa.lanes
    strip = facts.from_memory and strip or all
    choose("few.accumulators", words and integer_sums_held or isa.lanes == 1 and 4 or strip)
    -- Sums of all tables never wait; with two rows of each, two lines of 128 rows and of those that come next fill L1.
    -- Of floats as many rows as a core follows; short ones end before it sees that they go on.
    local tables = words and (m == 1 and cpu.tables_at_once or 64) or all
    local long = not words and facts.from_memory and shape.d_out * bytes >= 1024
    if long then tables = (facts.far and cpu.far_rows or rows_followed) // m end
    choose("few.group", facts.bytes > cpu.few_into_l2 and not (long and facts.far) and all or tables)
end

-- What is copied, prefetched and written past the caches.
local function memory(shape, isa, few, facts, s, choose)
    local often = s["chunk.tokens"] >= 4 * shape.rows -- pieces of rows come slowly when met at random
    local pack = facts.packs and often and gather.pack(shape, s["gather.columns"], s["gather.group"], 1)
    choose("gather.pack", pack and pack.bytes <= 4 * isa.l2_bytes and facts.cpu.copies or 0)
    -- Where y is larger than L2, its lines need not be read before they are overwritten.
    choose("gather.stream", facts.from_memory and s["chunk.tokens"] * shape.d_out * 4 > 2 * isa.l2_bytes and 1 or 0)
    local ready = facts.ahead > 0 or s["gather.pack"] == 0
    choose("gather.prefetch_next", facts.from_memory and often and ready and 1 or 0)
    choose("gather.prefetch_codes", facts.from_memory and facts.cpu.codes_ahead or 0)
    local prefetch = few.words and shape.neighbours == 1 and few.cpu.few_prefetch or 1
    if few.bytes > few.cpu.few_into_l2 and gather.finds_rows(shape) then prefetch = 3 end
    choose("few.prefetch", few.from_memory and prefetch or 0)
end

-- Chooses the schedule `s` of `isa`, with kernels for few tokens of the instruction set `few`, nil: there are none.
-- choose(key, value) as gen/plan/space.lua says.
return function(shape, isa, few, s, choose)
    local facts = facts_of(shape, isa, choose("gather.byte_scores", 0))
    local of_few = facts_of(shape, few or isa, choose("few.byte_scores", 0))
    project(shape, isa, facts, s, choose)
    gather_slices(shape, isa, facts, choose)
    whole(shape, isa, few, facts, s, choose)
    choose("few.threshold", threshold_of(shape, isa, few, facts, s))
    few_tokens(shape, few or isa, of_few, choose)
    memory(shape, isa, of_few, facts, s, choose)
end
