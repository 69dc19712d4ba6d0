-- Plans a transformer's dense products: how many outputs, tokens and inputs their kernels hold in registers and caches.
local expression = require "gen.isa.expression"
local layout = require "gen.families.model.blocks.layout"

local product = {}

-- So many at a time, then a `part`-th of that, down to one.
function product.falling(count, part)
    local list = { count }
    while list[#list] > 1 do
        list[#list + 1] = math.max(1, list[#list] // part)
    end
    return list
end

-- What kernels of products are called: by the type of the weights, and of inputs that are rounded.
function product.name(type, rounded) return "product_" .. type.name .. (rounded and "_by_" .. rounded.name or "") end

-- So many at a time, then two thirds and a third of that, and halves, down to two: a rest takes few calls.
local function thirds(count)
    local list = {}
    for _, next in ipairs { count, count * 2 // 3, count // 3, count // 6 } do
        if next > 1 and next < (list[#list] or count + 1) then list[#list + 1] = next end
    end
    return list
end

-- What kernels of several tokens prefetch while they multiply by a panel: their share of the next one's weights, some
-- bytes an input or a word, and where its outputs lie.
local function next_of(p, type, rounded)
    local panel = layout.panel
    local bytes = type.groups and 4 * layout.group(type, panel).words // type.groups
        or panel * (rounded and 4 or type.bytes)
    local next = {
        doc = " Prefetches `step` bytes a turn from `next` on, and where the next panel's outputs lie.",
        share = p.tokens[1] * bytes * p.strip // panel, -- divided by the tokens: of a kernel
        lines = {}, -- bytes of y, in each line that a strip of the next panel writes
    }
    for at = 64, math.max(64, 4 * p.strip), 64 do
        next.lines[#next.lines + 1] = 4 * panel + at - 1
    end
    -- Where the part of them begins that strip `at` prefetches, which begins with `output`: of `inputs`.
    function next.at(at, output, inputs)
        local place = expression.sum(at, expression.times("of_panel", (rounded or type.groups) and 4 or type.bytes))
        if p.strip == panel then return place end
        local of_output = bytes % panel > 0 and (" * %d / %d"):format(bytes, panel)
            or bytes > panel and " * " .. bytes // panel
            or ""
        return ("%s + %s %% %d * %s%s"):format(place, output, panel, inputs, of_output)
    end
    return next
end

-- The kernels of products by the schedule's choices, of weights of `type`, inputs rounded: as
-- shape.rounded, or nil, for `isa`:
--   several tokens  strip_vectors, strip: outputs at a time, in vectors and alone; tokens: how many at a time, falling;
--                   depth: inputs that stay in cache; unpacks: weights of a strip are converted to floats before, once
--                   for all tokens, unpacked_floats of them; next: what next_of says, or false
--                   of rounded inputs all sums stay in registers: depth says nothing; ahead: bytes from the loads of
--                   weights to what is prefetched, or false, strip_bytes: those of a step
--   several         false: there are no such kernels, tokens are given one by one
--   one token       alone_vectors, alone_outputs: outputs at a time; unroll: inputs with sums of their own; streams:
--                   panels side by side, falling; prefetch: bytes from the loads to what is prefetched, or false
--   tiles           { word, from, gates }: of a matrix engine, for calls of so many tokens, nil: it has none for such
--                   inputs; gates: tokens by panels whose gates stay in L2, 128 bytes each, until they are multiplied:
--                   at least a panel of a chunk
function product.plan(choices, isa, type, rounded, one_by_one)
    local lanes, tiles = isa.lanes, rounded and isa[rounded.tiles] and not one_by_one
    local tokens = choices["product.tokens"]
    local p = {
        strip_vectors = choices["product.vectors"],
        tokens = one_by_one and {} or rounded and thirds(tokens) or product.falling(tokens, 3),
        depth = choices["product.depth"],
        alone_vectors = choices["few.vectors"],
        unroll = (rounded or type.groups) and 1 or choices["few.unroll"],
        streams = choices["few.streams"] > 1 and { choices["few.streams"], 1 } or { 1 },
        -- Groups: 0.88 of the time with 1024 or without, from memory (AVX2, Zen 3).
        prefetch = isa.prefetch_l2 and (type.groups and 2048 or choices["few.streams"] > 1 and 1024 or 4096) or false,
        ahead = choices["product.prefetch"] > 1 and choices["product.prefetch"],
        tiles = tiles
                and { word = rounded.tiles, from = 16, gates = math.max(2048, choices["chunk.tokens"]) }
            or nil,
    }
    p.several = #p.tokens > 0
    p.strip, p.alone_outputs = p.strip_vectors * lanes, p.alone_vectors * lanes
    p.unpacks = p.several and layout.converts(type, rounded) and (p.tokens[1] > 1 or type.groups ~= nil)
    p.unpacked_floats = p.unpacks and p.depth * p.strip or 0
    -- Bytes of weights that a step reads of a strip, and one of a token alone of a panel, or a group of inputs.
    p.strip_bytes = p.strip * (rounded and rounded.rows or 1) * type.bytes
    p.step_bytes = type.groups and 4 * layout.group(type, layout.panel).words
        or (rounded and rounded.rows or p.unroll) * layout.panel * type.bytes
    if type.groups and rounded then
        p.ahead = false
    elseif type.groups then
        p.prefetch = false
    end
    local next = choices["product.prefetch"] == 1 and p.several and not (type.groups and rounded)
    p.next = next and next_of(p, type, rounded)
    return p
end

return product
