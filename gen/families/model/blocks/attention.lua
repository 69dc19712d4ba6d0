-- Plans the attention of a group of heads: rows and vectors at a time, and what is prefetched meanwhile, by the
-- schedule's attention.prefetch.
local layout = require "gen.families.model.blocks.layout"
local product = require "gen.families.model.blocks.product"
local space = require "gen.plan.space"

local attention = {}

local cache_line, page = 64, 4096 -- bytes

-- The largest power of two up to `max` that divides all of `numbers`.
local function power_in(max, numbers)
    local power, divides = 1, true
    while divides and 2 * power <= max do
        for _, number in ipairs(numbers) do
            divides = divides and number % (2 * power) == 0
        end
        power = divides and 2 * power or power
    end
    return power
end

-- Addresses of what is prefetched: the parameter's name, the argument with the first rows of queries, and that with
-- other rows, for which all is there.
local own_values = { name = "next", first = "tile_value", other = "tile_key" }
local only_keys = { name = "next", first = "next_key", other = "tile_value" }
local next_keys = { name = "next_key", first = "next_key", other = "tile_key" }
local next_values = { name = "next_value", first = "next_value", other = "tile_value" }

-- How scores or sums prefetch: at each of `every` steps a cache line of every stream, { base, at }, `stride` elements
-- further on with each step. They take the addresses `bases`.
local function prefetch(bases, streams, every, stride)
    return { bases = bases, streams = streams, every = every, stride = stride }
end

local function prefetch_nothing(_, a)
    local nothing = prefetch({}, {}, 1, 0)
    a.score_prefetch, a.score_prefetch_step = nothing, 0
    for _, block in ipairs(a.sum_blocks) do
        block.prefetch, block.prefetch_from, block.prefetch_step = nothing, 0, 0
    end
end

-- Line by line: scores prefetch the tile's values, sums the next tile's keys, as many as they read.
local function prefetch_in_line(shape, a)
    local cache = shape.cache
    local function of(base, elements)
        local streams = {}
        for at = 0, elements - 1, a.line_elements do
            streams[#streams + 1] = { base = base.name, at = at }
        end
        return prefetch({ base }, streams, 1, elements)
    end
    a.score_prefetch, a.score_prefetch_step = of(own_values, a.score_elements), cache.key_step
    local steps = layout.keys // cache.per_word
    for _, block in ipairs(a.sum_blocks) do
        block.prefetch = of(only_keys, block.elements)
        block.prefetch_from, block.prefetch_step = block.at * steps, steps
    end
end

-- Adds the pages that `elements` from `base` on lie in to `pages`: streams, of so many lines.
local function add_pages(pages, base, elements, line_elements)
    local lines = -(-elements // line_elements)
    local count = -(-lines // (page // cache_line))
    local each = -(-lines // count)
    for number = 0, count - 1 do
        pages.streams[#pages.streams + 1] = { base = base.name, at = number * each * line_elements }
    end
    table.insert(pages.bases, base)
    pages.lines = math.max(pages.lines, each)
    return pages
end

-- A line of each page in turn: memory then delivers as many streams, where sixteen lines of a page after each other
-- are one. Where there are few pages, scores prefetch the first half of those of the next tile's keys and values, sums
-- the second one.
local function prefetch_in_pages(shape, a)
    local cache, line = shape.cache, a.line_elements
    local keys, width, value_steps = layout.keys, cache.key_step, layout.keys // cache.per_word
    local function pages() return { bases = {}, streams = {}, lines = 0 } end
    local all =
        add_pages(add_pages(pages(), next_keys, cache.key_tile, line), next_values, cache.value_tile, line)
    local of_scores, of_sums, share, from, steps = all, all, 2, (all.lines + 1) // 2 * line, 0
    if #all.streams > 4 then
        of_scores = add_pages(pages(), own_values, cache.value_tile, line)
        of_sums = add_pages(pages(), only_keys, cache.key_tile, line)
        share, from = 1, 0
    end
    for _, block in ipairs(a.sum_blocks) do
        steps = steps + block.count * value_steps
    end
    local function of(from_pages, max, number)
        local every = power_in(max // -(-from_pages.lines // share), { line, number })
        return prefetch(from_pages.bases, from_pages.streams, every, line // every)
    end
    a.score_prefetch = of(of_scores, width * (keys // a.score_elements), width)
    a.score_prefetch_step = width * a.score_prefetch.stride // a.score_elements
    local sums = of(of_sums, steps, value_steps)
    for _, block in ipairs(a.sum_blocks) do
        block.prefetch, block.prefetch_from = sums, from
        block.prefetch_step = value_steps * sums.stride // block.elements
        from = from + block.count * value_steps * sums.stride
    end
end

-- Into L2 the first page of what is read next, in order: scores that of the tile's values, sums that of the next tile's
-- keys. CPUs whose own prefetchers follow a stream at the speed of memory need to be told where it begins.
local function prefetch_first_page(shape, a)
    local cache, line = shape.cache, a.line_elements
    local width, value_steps = cache.key_step, layout.keys // cache.per_word
    local function of(base, elements, steps, number)
        local lines = math.min(-(-elements // line), page // cache_line)
        local each = -(-lines // steps)
        local every = each > 1 and 1 or power_in(steps // lines, { line, number })
        local streams = {}
        for at = 0, each - 1 do
            streams[#streams + 1] = { base = base.name, at = at * line }
        end
        return prefetch({ base }, streams, every, each * line // every)
    end
    local steps, from = 0, 0
    for _, block in ipairs(a.sum_blocks) do
        steps = steps + block.count * value_steps
    end
    a.score_prefetch = of(own_values, cache.value_tile, width * (layout.keys // a.score_elements), width)
    a.score_prefetch_step = width * a.score_prefetch.stride // a.score_elements
    local sums = of(only_keys, cache.key_tile, steps, value_steps)
    for _, block in ipairs(a.sum_blocks) do
        block.prefetch, block.prefetch_from = sums, from
        block.prefetch_step = value_steps * sums.stride // block.elements
        from = from + block.count * value_steps * sums.stride
    end
    a.prefetch_word = "prefetch_l2"
end

-- Sums prefetch the rows of keys of the next tile, those elements that they read of this one.
local function prefetch_rows(shape, a)
    prefetch_nothing(shape, a)
    for _, block in ipairs(a.sum_blocks) do
        local streams = {}
        for at = 0, block.elements - 1, a.line_elements do
            streams[#streams + 1] = { base = only_keys.name, at = at }
        end
        block.prefetch = prefetch({ only_keys }, streams, 1, shape.cache.pitch)
    end
end

local orders = { [0] = prefetch_nothing, prefetch_in_line, prefetch_in_pages, prefetch_first_page }

-- Elements of a row of queries, or words of a rounded one.
function attention.query_step(shape)
    local words = shape.cache.words
    return words and layout.rounded_pitch(shape.width, words) or shape.width
end

-- Floats that a tile of keys takes in scratch where the cache has rows of them: rotated keys of a head, and rows that
-- are converted.
function attention.tile_floats(shape)
    if not shape.from_keys then return 0 end
    local rotated, converted = shape.rope and shape.width or 0, shape.cache.type.plain and 0 or shape.cache.pitch
    return layout.keys * (rotated + converted)
end

-- Rows of queries that share a load of keys or values.
function attention.rows(shape, choices)
    if choices["attention.tokens"] * shape.group == 1 then return 1 end
    if not shape.from_keys then return 4 end
    -- As many as registers allow, so that none is left: 6 of 12 instead of 4: 0.84 of the time (AVX2, Zen 3).
    return shape.group % 6 == 0 and 6 or shape.group % 5 == 0 and 5 or 4
end

-- Vectors of scores of each of these rows held in registers.
function attention.score_vectors(isa, rows)
    if isa.lanes == 1 then return 8 end
    return 2 * isa.lanes <= layout.keys and space.product_fits(isa, rows, 2) and 2 or 1
end

-- The kernel's loops:
--   rows            rows of queries at a time, falling
--   query_step      elements or words from row to row of queries; weight_step: of softmax weights
--   score_vectors, score_elements  positions at a time whose scores are held
--   sum_blocks      the elements of a value: { at, vectors, elements, count }
--   score_prefetch and a block's prefetch   as above; score_prefetch_step: elements further on with each position of a
--                   strip, prefetch_step: with each element of a block, from prefetch_from on
--   prefetch_word   the instruction set's word for it
--   tiles           16 rows at a time on a matrix engine, nil: not: the words that multiply queries by keys and
--                   softmax weights by values, and how many words of such weights a row has; short: so many have
--                   queries, too
function attention.plan(shape, choices, isa)
    local lanes, rows = isa.lanes, attention.rows(shape, choices)
    local score_vectors = attention.score_vectors(isa, rows)
    local a = {
        rows = product.falling(rows, 2),
        query_step = attention.query_step(shape),
        weight_step = layout.keys // shape.cache.per_word,
        score_vectors = score_vectors,
        score_elements = score_vectors * lanes,
        line_elements = cache_line // shape.cache.bytes,
        sum_blocks = {},
        prefetch_word = "prefetch_l1",
    }
    local words = shape.cache.words
    local key_step, many = shape.cache.key_step, choices["attention.tokens"] * shape.group >= 16
    if words and isa[words.tiles] and many and (key_step % 16 == 0 or key_step == a.weight_step) then
        a.tiles = {
            scores = words.tiles,
            sums = words.integers and "tile_dot_u8" or words.tiles,
            words = a.weight_step,
            short = key_step % 16 > 0,
        }
    end
    local whole, max, at = shape.cache.pitch // lanes, choices["attention.sums"], 0
    for _, block in ipairs { { max, whole // max }, { whole % max, 1 } } do
        local vectors, count = table.unpack(block)
        if vectors > 0 and count > 0 then
            table.insert(a.sum_blocks, { at = at, vectors = vectors, elements = vectors * lanes, count = count })
            at = at + vectors * count * lanes
        end
    end
    local order = orders[choices["attention.prefetch"]]
    if shape.from_keys and order ~= prefetch_nothing then order = prefetch_rows end
    order(shape, a)
    return a
end

return attention
