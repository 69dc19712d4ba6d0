-- Where attention with rotary positions starts to learn from, beside random weights: heads that find tokens like their
-- own, maps that give back what they mix or pass it on, and one head that looks at the token before. Pure data.
--
-- Random heads look at nothing in particular, and copying what followed the last time needs two layers of heads that
-- do. LookupFFNs learn what follows a few tokens so fast that such heads form late; docs/decisions.md says what this
-- start gains.
--
-- A box is { at, row, column, rows, columns } of the flat array of parameters, row and column the distances of its
-- elements, and either { from, from_row, from_column, factor }, the elements that it copies and what these are
-- multiplied by, or { value }.
local first_weights = {}

local alike = 1 -- numbers of an embedding that start alike: with more of them codes would start alike, too
local gap = 2.0 -- nats by which that head prefers the token before to its neighbours
-- 1 - cos of the angle that a pair turns from token to token: pairs that turn less tell neighbours less apart than
-- lengths of embeddings do.
local least_difference = 0.01

-- The place of weight [output][input] of a projection, and the distances to the next output and input. place: { map;
-- offset, group, stride of a part of a packed map, or of rows of tables, whose map has `tensor` instead of `at` }.
local function weight_at(place, output, input)
    local map = place.map
    if place.group then output = place.offset + output // place.group * place.stride + output % place.group end
    local row, column = map.step, 1
    if map.across then
        row, column = 1, map.step
    end
    return (map.at or map.tensor.at) + output * row + input * column, row, column
end

local function box(place, output, input, rows, columns)
    local at, row, column = weight_at(place, output, input)
    return { at = at, row = row, column = column, rows = rows, columns = columns }
end

local function copy(list, to, place, output, input, transposed)
    local from, row, column = weight_at(place, output, input)
    if transposed then
        row, column = column, row
    end
    to.from, to.from_row, to.from_column, to.factor = from, row, column, 1.0
    list[#list + 1] = to
end

-- Whether attention of that shape starts from more than random weights: only such models were measured.
local function starts(shape) return shape.rope and shape.causal end

-- Appends to `list` those of a block whose heads find tokens like their own: each head of K starts as the head of Q
-- that reads it first. shape: of the block's attention; places: of its projections by their letters, those that it has.
function first_weights.find_alike(list, shape, places)
    local q, k, width = places.Q, places.K, shape.width
    if not starts(shape) or not q or not k then return end
    for head = 0, shape.kv_heads - 1 do
        local to = box(k, head * width, 0, width, k.map.inputs)
        copy(list, to, q, head * shape.group * width, 0, false)
    end
end

-- Appends to `list` the columns `place` of rows of tables multiplied by their factor.
function first_weights.shrink(list, place)
    local to = box(place, 0, 0, place.columns, place.map.inputs)
    copy(list, to, place, 0, 0, false)
    to.factor = place.factor
end

-- Whether V and P, of attention of that shape, are maps of as many outputs as inputs.
local function square(shape, v, p)
    local d = shape.heads * shape.width
    return shape.kv_heads == shape.heads and v.map.inputs == d and p.map.inputs == d and p.map.outputs == d
end

-- Likewise of a block that gives back what it mixes: P starts as V transposed. Where attention passes on its input,
-- both start as the identity, if they are square.
function first_weights.give_back(list, shape, places, passes_on)
    local v, p, width = places.V, places.P, shape.width
    if not starts(shape) or not v or not p or v.map.inputs ~= p.map.outputs then return end
    local identity = passes_on and square(shape, v, p)
    for head = 0, shape.heads - 1 do
        for _, place in ipairs(identity and { v, p } or {}) do
            local zeros = box(place, head * width, 0, width, place.map.inputs)
            local ones = box(place, head * width, head * width, width, 1)
            zeros.value, ones.value, ones.row = 0.0, 1.0, ones.row + ones.column
            list[#list + 1], list[#list + 2] = zeros, ones
        end
        if not identity then
            local to = box(p, 0, head * width, p.map.outputs, width)
            copy(list, to, v, head // shape.group * width, 0, true)
        end
    end
end

-- Likewise of the first block's first head whose keys are not shifted, which looks at the token before. Some numbers of
-- all embeddings start alike; from them alone q and k take, for each pair that turns enough, (1, 0) and (cos, sin) of
-- the angle of one position, so that their product is largest one position apart. embedding: the tensor of words.
function first_weights.look_back(list, shape, places, embedding)
    local q, k = places.Q, places.K
    local head = shape.shifted -- of k
    if not starts(shape) or not q or not k or shape.qkv or head == shape.kv_heads then return end
    if q.map.inputs ~= embedding.columns or k.map.inputs ~= embedding.columns then return end
    local half, turns, differs = shape.rope.half, {}, 0.0
    for i = 0, half - 1 do
        local turn = shape.rope.frequencies[i + 1]
        local difference = 1 - math.cos(turn)
        if difference < least_difference then break end
        turns[#turns + 1], differs = turn, differs + difference
    end
    if differs == 0 then return end
    list[#list + 1] = {
        at = embedding.at,
        row = embedding.columns,
        column = 1,
        rows = embedding.rows,
        columns = alike,
        value = embedding.init.deviation,
    }
    -- Behind the norm those numbers are near 1; where heads are of unit length their factor makes the gap.
    local each = math.sqrt(gap / (shape.scale * differs)) / alike
    if shape.unit then
        local factor = gap * #turns / (math.sqrt(shape.width) * differs)
        local at = places.scales + head * shape.group
        list[#list + 1] = { at = at, row = 1, column = 1, rows = 1, columns = 1, value = factor }
    end
    local function fill(place, output, rows, columns, value)
        local to = box(place, output, 0, rows, columns)
        to.value = value
        list[#list + 1] = to
    end
    for _, place in ipairs { q, k } do
        local at = (place == q and head * shape.group or head) * shape.width
        fill(place, at, shape.width, embedding.columns, 0.0)
        for i, turn in ipairs(turns) do
            local first, second = i - 1, i - 1 + half
            if shape.rope.interleaved then
                first, second = 2 * (i - 1), 2 * (i - 1) + 1
            end
            local angle = place == k and turn or 0.0
            fill(place, at + first, 1, alike, each * math.cos(angle))
            fill(place, at + second, 1, alike, each * math.sin(angle))
        end
    end
end

return first_weights
