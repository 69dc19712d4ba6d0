-- From a validated transformer to the plan of its blocks: sizes, offsets and names of what is emitted, packed, verified and timed.
-- Pure data. A block is a list of steps; projections that were eliminated have no step.
local blob = require "gen.blob"
local checkpoint = require "gen.checkpoint"
local dtype = require "gen.dtype"
local fuse = require "gen.fuse"
local host = require "host"
local isa_list = require "gen.isa"
local json = require "json"
local model_file = require "gen.model"
local names = require "gen.names"
local transformer_model = require "gen.transformer_model"

local transformer_plan = {}

transformer_plan.panel = 32  -- outputs that lie side by side in packed weights: [panel][input][32]
transformer_plan.keys = 32   -- positions of keys that lie side by side in the cache: [tile][element][32]
transformer_plan.values = 16 -- a row of values in the cache is filled up to so many floats

local round_up = blob.round_up

-- Why the blocks of a model cannot be emitted: a key chain, a value and a rule; nil: they can.
function transformer_plan.misfit(m)
    if m.ffn.kind == "lookup" then return { "ffn", "kind" }, m.ffn.kind, "lookup FFNs inside blocks are merged by fuse, but not emitted so far" end
    if m.attention.window and not m.attention.causal then return { "attention", "window" }, m.attention.window, "is emitted for causal = true only" end
    return checkpoint.misfit(m)
end

local function shape_of(m, type)
    local width = m.d // m.heads
    local shape = {
        type = type, d = m.d, heads = m.heads, kv_heads = m.kv_heads, group = m.heads // m.kv_heads, width = width, e = transformer_model.kv_width(m),
        f = m.ffn.f, layers = m.layers, context = m.attention.context, window = m.attention.window, causal = m.attention.causal, parallel = m.parallel, skip = m.skip,
        scale = m.attention.scale or width ^ -0.5, gated = m.ffn.kind == "glu", activation = m.ffn.activation, norm = m.norm,
    }
    local rope = m.attention.rope
    if rope then
        shape.rotated = math.tointeger(rope.share * width) or 0
        shape.rope = { theta = rope.theta, half = shape.rotated // 2, interleaved = rope.pairs == "interleaved" }
    end
    -- The cache: per layer the keys [kv_heads][tile][width][32], then the values [kv_heads][position][value_pitch].
    shape.value_pitch = round_up(width, transformer_plan.values)
    shape.positions = round_up(shape.context, transformer_plan.keys)
    shape.key_head, shape.value_head = shape.positions * width, shape.positions * shape.value_pitch
    shape.layer_values = m.kv_heads * shape.key_head
    shape.layer_cache = shape.layer_values + m.kv_heads * shape.value_head
    return shape
end

-- The linear maps that a block has: { letter, field, inputs, outputs, panels, words of a layer, view(layer) }.
local function maps_of(m, shape)
    local list, by_letter = {}, {}
    local function add(letter, inputs, outputs, view)
        local map = { letter = letter, field = letter:lower(), inputs = inputs, outputs = outputs, panels = (outputs + transformer_plan.panel - 1) // transformer_plan.panel, view = view }
        map.pitch = map.panels * transformer_plan.panel
        map.words = map.pitch * inputs
        list[#list + 1], by_letter[letter] = map, map
    end
    local widths = { Q = shape.d, K = shape.e, V = shape.e, P = shape.d }
    for _, letter in ipairs { "Q", "K", "V", "P" } do
        local gone = m.attention.eliminate ~= "none" and m.attention.eliminate:find(letter, 1, true)
        if not gone then
            add(letter, shape.d, widths[letter], function(layer)
                local map = checkpoint.linear(m, layer, letter, widths[letter], shape.d)
                -- What fuse leaves of a packed tensor stands alone.
                return m.attention.eliminate == "none" and map or checkpoint.alone(map)
            end)
        end
    end
    -- The first input of a gated FFN is its gate.
    for i, letter in ipairs(shape.gated and { "G", "M" } or { "M" }) do
        add(letter, shape.d, shape.f, function(layer) return checkpoint.inputs(m, layer)[i] end)
    end
    add("O", shape.f, shape.d, function(layer) return checkpoint.linear(m, layer, "O", shape.d, shape.f) end)
    return list, by_letter
end

-- Where the rows of a matrix go in [panel][input][32]: runs of rows of equal width, or, where all panels are full and the matrix is a tensor
-- of its own, one panel after the other, so that the packer holds one at a time.
function transformer_plan.matrix_boxes(map, whole_tensor)
    if whole_tensor and map.outputs == map.pitch then
        local panel = transformer_plan.panel
        return { { from = 0, to = 0, slice_to = panel * map.inputs, dims = { { count = map.inputs, from = 1, to = panel }, { count = panel, from = map.inputs, to = 1 } } } }, map.panels
    end
    local panel, whole, rest = transformer_plan.panel, map.outputs // transformer_plan.panel, map.outputs % transformer_plan.panel
    local boxes = {}
    local function add(first, panels, width)
        if panels == 0 or width == 0 then return end
        boxes[#boxes + 1] = { from = first * map.inputs, to = first * map.inputs, dims = {
            { count = panels, from = panel * map.inputs, to = panel * map.inputs }, { count = map.inputs, from = 1, to = panel }, { count = width, from = map.inputs, to = 1 },
        } }
    end
    add(0, whole, panel)
    add(whole * panel, 1, rest)
    return boxes
end

-- The sections of the blob, each with the layers of one kind of weights behind each other, and the pieces that the packer fills them with.
local function sections_of(m, shape, maps)
    local sections, pieces, at = {}, {}, blob.header_bytes
    local f32 = dtype.get "f32"
    local function add(name, type, elements, doc)
        local section = { name = name, dtype = type, type = type.name, storage = type.storage, elements = elements, count = elements, at = at, bytes = elements * type.bytes, doc = doc }
        at = round_up(at + section.bytes, blob.align)
        sections[#sections + 1] = section
        return section
    end
    local function piece(section, layer, elements, more)
        local p = { name = section.name .. " of layer " .. layer, dtype = section.dtype, type = section.type, elements = elements, at = section.at + layer * elements * section.dtype.bytes, steps = {} }
        for key, value in pairs(more) do p[key] = value end
        pieces[#pieces + 1] = p
    end
    local function line(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end
    for _, map in ipairs(maps) do
        local scales = shape.type.scaled and add(map.field .. "_scales", f32, m.layers * map.pitch, "scales of the rows of " .. map.letter)
        local matrix = add(map.field, shape.type, m.layers * map.words, map.letter .. ", [" .. m.layers .. "][" .. map.panels .. "][" .. map.inputs .. " inputs][" .. transformer_plan.panel .. " outputs]")
        local bias = add(map.field .. "_bias", f32, m.layers * map.pitch, "[" .. m.layers .. "][" .. map.pitch .. "] biases of " .. map.letter .. ", zeros if it has none")
        for layer = 0, m.layers - 1 do
            local view = map.view(layer)
            local function of(part) return { from = part.tensor, shape = part.shape, rows = part.rows, columns = part.columns, group = part.group, stride = part.stride, offset = part.offset } end
            local weights, offsets = of(view.weight), of(view.bias)
            weights.row = map.inputs
            weights.boxes, weights.slices = transformer_plan.matrix_boxes(map, not weights.group)
            weights.scales = scales and scales.at + layer * map.pitch * 4 or nil
            piece(matrix, layer, map.words, weights)
            offsets.boxes, offsets.optional = line(map.outputs), true
            piece(bias, layer, map.pitch, offsets)
        end
    end
    if m.norm then
        for i, word in ipairs { "first", "second" } do
            local gain = add(word .. "_norm", f32, m.layers * shape.d, "[" .. m.layers .. "][" .. shape.d .. "] gains of the " .. word .. " norm")
            local offset = m.norm.kind == "layernorm" and add(word .. "_norm_offset", f32, m.layers * shape.d, "its offsets")
            for layer = 0, m.layers - 1 do
                local name = checkpoint.norm(m, layer, i)
                piece(gain, layer, shape.d, { from = name .. ".weight", shape = { shape.d }, boxes = line(shape.d) })
                if offset then piece(offset, layer, shape.d, { from = name .. ".bias", shape = { shape.d }, boxes = line(shape.d) }) end
            end
        end
    end
    if shape.rope then
        local count = shape.context * shape.rope.half
        for _, word in ipairs { "cosines", "sines" } do
            local section = add(word, f32, count, "[" .. shape.context .. " positions][" .. shape.rope.half .. "] " .. word .. " of the rotary angles")
            pieces[#pieces + 1] = { name = word, type = "f32", elements = count, at = section.at, angles = word, theta = shape.rope.theta, half = shape.rope.half }
        end
    end
    return sections, pieces, at
end

-- The steps of a block on the tokens of a chunk, in two parts: what must be done for all tokens that are attended to, and the rest.
-- Buffers are named; "in" is the block's input, "rows" the same at distances that suit the cache.
local function steps_of(shape, has)
    local before, after = {}, {}
    local function add(list, step) list[#list + 1] = step end
    local function product(list, letter, from, to)
        if not has[letter] then return from end
        add(list, { op = "product", map = has[letter], from = from, to = to })
        return to
    end
    local pre, post = shape.norm and shape.norm.place == "pre", shape.norm and shape.norm.place == "post"
    local source = pre and "normed" or "rows"
    local function prepare(list) add(list, pre and { op = "norm", which = "first", from = "in", to = source } or { op = "copy", from = "in", to = source }) end
    prepare(before)
    local k, v = product(before, "K", source, "k"), product(before, "V", source, "v")
    add(before, { op = "append", k = k, v = v })
    if not shape.causal then prepare(after) end
    add(after, { op = "attend", from = product(after, "Q", source, "q"), to = "mixed" })
    local mixed = product(after, "P", "mixed", "projected")
    local inner = shape.parallel and source or mixed
    if not shape.parallel and shape.skip then
        add(after, { op = "add", a = "in", b = mixed, to = "stream" })
        inner = "stream"
    end
    local stream = inner
    if post and not shape.parallel then
        add(after, { op = "norm", which = "first", from = stream, to = "normed" })
        inner, stream = "normed", "normed"
    elseif pre then
        add(after, { op = "norm", which = "second", from = shape.parallel and "in" or stream, to = "normed" })
        inner = "normed"
    end
    if shape.gated then product(after, "G", inner, "gate") end
    product(after, "M", inner, "hidden")
    add(after, { op = "activate", gate = shape.gated and "gate" or false, to = "hidden" })
    local out = product(after, "O", "hidden", "out")
    if shape.parallel then
        add(after, { op = "add", a = mixed, b = out, to = "out" })
        if shape.skip then add(after, { op = "add", a = "in", b = out, to = "out" }) end
    elseif shape.skip then
        add(after, { op = "add", a = stream, b = out, to = "out" })
    end
    if post then
        add(after, { op = "norm", which = "second", from = "out", to = "out" })
    end
    add(after, { op = "output", from = out })
    return before, after
end

-- Buffers in scratch for chunks of `chunk` tokens and `rows` rows of queries that are attended together: { name, pitch, bytes, at }.
local function buffers_of(shape, before, after, chunk, rows, lanes)
    local list, pitches, at = {}, {}, 0
    local wide = round_up(shape.d, transformer_plan.panel)
    local function add(name, floats, pitch)
        list[#list + 1] = { name = name, at = at, pitch = pitch }
        pitches[name] = pitch
        at = round_up(at + 4 * floats, blob.align)
    end
    pitches["in"] = shape.d
    -- Rows an odd number of lines apart: at powers of two those of several tokens would drive each other out of the cache.
    local function use(name, floats)
        local pitch = round_up(floats, 16) | 16
        if name and not pitches[name] then add(name, chunk * pitch, pitch) end
    end
    for _, steps in ipairs { before, after } do
        for _, step in ipairs(steps) do use(step.to, step.map and step.map.pitch or wide) end
    end
    add("queries", rows * shape.width)
    add("sums", rows * shape.value_pitch)
    add("scores", rows * transformer_plan.keys)
    add("totals", rows * lanes)
    return list, pitches, at
end

-- The choices that change speed and never results, with values that suit the instruction set.
function transformer_plan.choices(isa)
    local lanes = isa.lanes
    local c = { lanes = lanes }
    -- A product holds a strip of a panel's outputs of some tokens in registers; a token alone splits its sum over its inputs.
    c.strip = lanes == 1 and 8 or math.min(transformer_plan.panel // lanes, 2)
    c.tokens = lanes == 1 and { 1 } or lanes == 8 and { 6, 2, 1 } or { 12, 4, 1 }
    c.alone = lanes == 1 and 4 or transformer_plan.panel // lanes
    c.unroll = lanes == 1 and 1 or lanes == 8 and 2 or 4
    c.ahead = isa.prefetch and 4096 or 0 -- bytes that a token alone asks for ahead
    c.depth = 1024                       -- inputs of a product of several tokens that stay in cache
    -- Attention: rows of queries of the same keys, vectors of positions and of elements in registers.
    c.rows = { 4, 2, 1 }
    c.cache_ahead = 512 -- floats of the cache that are asked for ahead
    c.score_vectors = lanes == 1 and 8 or 2
    c.sum_vectors = lanes == 1 and 4 or lanes == 8 and 2 or 4
    return c
end

local function variant_of(m, shape, before, after, isa)
    local choices = transformer_plan.choices(isa)
    local v = { isa = isa, choices = choices, chunk = math.min(192, round_up(shape.context, 12)), queries = math.max(1, 16 // shape.group) }
    v.rows = v.queries * shape.group
    v.buffers, v.pitches, v.scratch_bytes = buffers_of(shape, before, after, v.chunk, v.rows, isa.lanes)
    v.names = {
        product = names.variant(m.name, "product_" .. shape.type.name, isa.name),
        attention = names.variant(m.name, "attention_f32", isa.name),
        blocks = names.variant(m.name, "blocks", isa.name),
    }
    return v
end

-- Every tensor that an unfused checkpoint of the model has, or, if it is an architecture of its own, the checkpoint that `pack` reads, as
-- weights.sample writes them. Square maps are near 1, so that values neither
-- grow nor shrink much from block to block and what is inverted is well-conditioned.
local function samples_of(m, shape, own)
    local family, list, known = checkpoint.family(m), {}, {}
    local function add(name, tensor_shape, deviation, more)
        if known[name] then return end
        known[name] = true
        list[#list + 1] = { name = name, shape = tensor_shape, mean = 0.0, deviation = deviation }
        for key, value in pairs(more or {}) do list[#list][key] = value end
    end
    local biased = m.checkpoint ~= "llama"
    local function add_map(map, deviation, diagonal, bias)
        local v = map.weight
        add(v.tensor, v.shape, deviation, diagonal and { diagonal = shape.d, group = v.group, stride = v.stride })
        if biased or bias then add(map.bias.tensor, map.bias.shape, bias or 0.1) end
    end
    for _, row in ipairs { { "word", m.vocab }, { "positions", m.positions }, { "token_types", m.token_types } } do
        if row[2] then add(family.embeddings[row[1]], { row[2], shape.d }, row[1] == "word" and 1.0 or 0.3) end
    end
    for layer = 0, m.layers - 1 do
        for _, letter in ipairs { "Q", "K", "V", "P" } do
            local map = checkpoint.linear(m, layer, letter, (letter == "K" or letter == "V") and shape.e or shape.d, shape.d)
            if not (own and m.attention.eliminate:find(letter, 1, true)) then add_map(own and checkpoint.alone(map) or map, 0.3 * shape.d ^ -0.5, true) end
        end
        local inputs = checkpoint.inputs(m, layer)
        add_map(inputs[#inputs], 1.5 * shape.d ^ -0.5)
        -- A gate that is mostly its bias: products of two values of the input would grow or vanish from block to block.
        if shape.gated then add_map(inputs[1], 0.3 * shape.d ^ -0.5, false, 1.0) end
        add_map(checkpoint.linear(m, layer, "O", shape.d, shape.f), shape.f ^ -0.5)
        for i = 1, m.norm and 2 or 0 do
            local name = checkpoint.norm(m, layer, i)
            add(name .. ".weight", { shape.d }, 0.1, { mean = 1.0 })
            if m.norm.kind == "layernorm" then add(name .. ".bias", { shape.d }, 0.1) end
        end
    end
    if not m.tied then add(family.head, { m.vocab, shape.d }, shape.d ^ -0.5) end
    return list
end

-- What decides a blob's bytes but the weights.
local function digest_of(m, sections)
    local described = {}
    for i, section in ipairs(sections) do described[i] = { section.name, section.type, section.elements, section.at } end
    return host.sha256(json.encode({ format = blob.format, model = m, sections = described, panel = transformer_plan.panel }, "compact"))
end

-- The plan of the blocks of model `m` for the instruction sets `isas`, weights of the type of that name (default f32).
function transformer_plan.build(m, isas, type)
    local chain, value, rule = transformer_plan.misfit(m)
    if chain then model_file.refuse(m, chain, value, rule) end
    local shape = shape_of(m, dtype.get(type, "type"))
    local maps, has = maps_of(m, shape)
    local own = m.attention.eliminate ~= "none" and not pcall(fuse.check, m, m.attention.eliminate)
    local sections, pieces, bytes = sections_of(m, shape, maps)
    local before, after = steps_of(shape, has)
    local p = { -- own: an architecture of its own, that no unfused checkpoint becomes
        model = m, shape = shape, names = names.public(m.name), maps = maps, sections = sections, pieces = pieces, tensors = {}, own = own, samples = samples_of(m, shape, own), packed_bytes = bytes,
        digest = digest_of(m, sections), before = before, after = after, variants = {}, scratch_bytes = 0,
        cache_bytes = m.layers * shape.layer_cache * 4, weights_struct_bytes = 8 * #sections + 8, types = { shape.type },
        options = { type = shape.type.name }, -- as the manifest records them
    }
    for i, set in ipairs(isas) do
        local isa = shape.type.scaled and set or isa_list.with_tables(set, shape.type)
        p.variants[i] = variant_of(m, shape, before, after, isa)
        p.scratch_bytes = math.max(p.scratch_bytes, p.variants[i].scratch_bytes)
    end
    return p
end

return transformer_plan
