-- How attention, while it computes with a tile of keys and values, asks for the next tile: by the schedule's attention.ahead.
local transformer_plan = require "gen.transformer_plan"

-- The largest power of two up to `most` that divides all of `numbers`.
local function power_in(most, numbers)
    local power, divides = 1, true
    while divides and 2 * power <= most do
        for _, number in ipairs(numbers) do divides = divides and number % (2 * power) == 0 end
        power = divides and 2 * power or power
    end
    return power
end

-- How scores or sums ask: at each of `every` steps for a line of every stream, { base, at }, `stride` elements further on with each step. They take
-- the addresses `bases`. In `values`, scores are `asks_of_strip` elements further on with each position of a strip, sums `asks_further` with each
-- element of a block, from `asks_from` on.
local function asks(bases, streams, every, stride) return { bases = bases, streams = streams, every = every, stride = stride } end

local function ask_nothing(_, values)
    local nothing = asks({}, {}, 1, 0)
    values.score_asks, values.asks_of_strip = nothing, 0
    for _, block in ipairs(values.sum_blocks) do block.asks, block.asks_from, block.asks_further = nothing, 0, 0 end
end

-- Line by line: scores ask for the next tile's keys, sums for its values, as many as they read.
local function ask_in_line(p, values)
    local keys, line = transformer_plan.keys, values.line_elements
    local function of(base, elements)
        local streams = {}
        for at = 0, elements - 1, line do streams[#streams + 1] = { base = base, at = at } end
        return asks({ base }, streams, 1, elements)
    end
    values.score_asks, values.asks_of_strip = of("next_key", values.score_vectors * values.lanes), p.shape.width
    for _, block in ipairs(values.sum_blocks) do block.asks, block.asks_from, block.asks_further = of("next_value", block.vectors * values.lanes), block.at * keys, keys end
end

-- A line of each of the tile's pages in turn: memory then gives what it gives to as many streams, but no more than to one stream where sixteen lines of
-- a page come after each other. Scores ask for the first half of all pages of keys and values, sums for the second one.
local function ask_in_pages(p, values)
    local pitch, keys, line, width = p.shape.cache.pitch, transformer_plan.keys, values.line_elements, p.shape.width
    local bases, streams, lines, steps, strip = { "next_key", "next_value" }, {}, 0, 0, values.score_vectors * values.lanes
    for i, elements in ipairs { keys * width, keys * pitch } do
        local all = -(-elements // line)
        local pages = -(-all // (4096 // 64))
        local each = -(-all // pages)
        for page = 0, pages - 1 do streams[#streams + 1] = { base = bases[i], at = page * each * line } end
        lines = math.max(lines, each)
    end
    for _, block in ipairs(values.sum_blocks) do steps = steps + block.count * keys end
    local half = (lines + 1) // 2
    local function of(most, numbers)
        local every = power_in(most, { line, table.unpack(numbers) })
        return asks(bases, streams, every, line // every)
    end
    values.score_asks = of(width * (keys // strip) // half, { width })
    values.asks_of_strip = width * values.score_asks.stride // strip
    local of_sums, from = of(steps // half, { keys }), half * line
    for _, block in ipairs(values.sum_blocks) do
        block.asks, block.asks_from, block.asks_further = of_sums, from, keys * of_sums.stride // (block.vectors * values.lanes)
        from = from + block.count * keys * of_sums.stride
    end
end

return { [0] = ask_nothing, ask_in_line, ask_in_pages }
