-- How attention, while it computes with a tile of keys and values, asks for what it reads next: by the schedule's
-- attention.ahead.
local transformer_plan = require "gen.families.transformer.plan"

-- The largest power of two up to `most` that divides all of `numbers`.
local function power_in(most, numbers)
    local power, divides = 1, true
    while divides and 2 * power <= most do
        for _, number in ipairs(numbers) do
            divides = divides and number % (2 * power) == 0
        end
        power = divides and 2 * power or power
    end
    return power
end

-- Addresses that are asked for: the parameter's name, the first rows of queries' argument, and that of other rows, for
-- which all is there.
local own_values = { name = "next", first = "tile_value", other = "tile_key" }
local only_keys = { name = "next", first = "next_key", other = "tile_value" }
local next_keys = { name = "next_key", first = "next_key", other = "tile_key" }
local next_values = { name = "next_value", first = "next_value", other = "tile_value" }

-- How scores or sums ask: at each of `every` steps for a line of every stream, { base, at }, `stride` elements further
-- on with each step. They take the addresses `bases`. In `values`, scores are `asks_of_strip` elements further on with
-- each position of a strip, sums `asks_further` with each element of a block, from `asks_from` on.
local function asks(bases, streams, every, stride)
    return { bases = bases, streams = streams, every = every, stride = stride }
end

local function ask_nothing(_, values)
    local nothing = asks({}, {}, 1, 0)
    values.score_asks, values.asks_of_strip = nothing, 0
    for _, block in ipairs(values.sum_blocks) do
        block.asks, block.asks_from, block.asks_further = nothing, 0, 0
    end
end

-- Line by line: scores ask for the tile's values, sums for the next tile's keys, as many as they read.
local function ask_in_line(p, values)
    local keys, line = transformer_plan.keys, values.line_elements
    local function of(base, elements)
        local streams = {}
        for at = 0, elements - 1, line do
            streams[#streams + 1] = { base = base.name, at = at }
        end
        return asks({ base }, streams, 1, elements)
    end
    values.score_asks, values.asks_of_strip = of(own_values, values.score_vectors * values.lanes), p.shape.width
    for _, block in ipairs(values.sum_blocks) do
        block.asks, block.asks_from, block.asks_further =
            of(only_keys, block.vectors * values.lanes), block.at * keys, keys
    end
end

-- Adds the pages that `elements` from `base` on lie in to `pages`: streams, of so many lines.
local function add_pages(pages, base, elements, line)
    local lines = -(-elements // line)
    local count = -(-lines // (4096 // 64))
    local each = -(-lines // count)
    for page = 0, count - 1 do
        pages.streams[#pages.streams + 1] = { base = base.name, at = page * each * line }
    end
    table.insert(pages.bases, base)
    pages.lines = math.max(pages.lines, each)
    return pages
end

-- A line of each page in turn: memory then gives what it gives to as many streams, but no more than to one where
-- sixteen lines of a page come after each other. Where there are few pages, scores ask for the first half of those of
-- the next tile's keys and values, sums for the second one.
local function ask_in_pages(p, values)
    local keys, line, width, pitch = transformer_plan.keys, values.line_elements, p.shape.width, p.shape.cache.pitch
    local function pages() return { bases = {}, streams = {}, lines = 0 } end
    local all = add_pages(add_pages(pages(), next_keys, keys * width, line), next_values, keys * pitch, line)
    local of_scores, of_sums, share, from, steps, strip =
        all, all, 2, (all.lines + 1) // 2 * line, 0, values.score_vectors * values.lanes
    if #all.streams > 4 then
        of_scores, of_sums, share, from =
            add_pages(pages(), own_values, keys * pitch, line), add_pages(pages(), only_keys, keys * width, line), 1, 0
    end
    for _, block in ipairs(values.sum_blocks) do
        steps = steps + block.count * keys
    end
    local function of(from_pages, most, number)
        local every = power_in(most // -(-from_pages.lines // share), { line, number })
        return asks(from_pages.bases, from_pages.streams, every, line // every)
    end
    values.score_asks = of(of_scores, width * (keys // strip), width)
    values.asks_of_strip = width * values.score_asks.stride // strip
    local sum_asks = of(of_sums, steps, keys)
    for _, block in ipairs(values.sum_blocks) do
        block.asks, block.asks_from, block.asks_further =
            sum_asks, from, keys * sum_asks.stride // (block.vectors * values.lanes)
        from = from + block.count * keys * sum_asks.stride
    end
end

return { [0] = ask_nothing, ask_in_line, ask_in_pages }
