-- Plans the training of a whole model: where its tensors lie in flat arrays, what its blocks compute forward and
-- backward, and the memory that a step works in. Pure data.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.model.blocks.block_lookup"
local checkpoint = require "gen.schema.checkpoint_names"
local first_weights = require "gen.families.model.training.first_weights"
local json = require "json"
local layout = require "gen.families.model.blocks.layout"
local lookup_training = require "gen.families.lookup.training"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local steps_of = require "gen.families.model.blocks.steps"
local tape = require "gen.families.model.training.tape"
local validated = require "gen.schema.validated"
local words = require "gen.isa.words"

local training = {}

local line = blob.align // 4 -- floats of a cache line
local head_rows = 512 -- tokens whose logits are held at a time
local query_rows = { f32 = 48, bf16 = 64 } -- queries of a head whose scores are held at a time, by the type of products
-- Where weights start: what blocks add to their input is small at first. Without skip connections they pass on its
-- variance. Shaped attention beside the FFN passes on its input, as a skip connection does.
local tables_beside_skip = 0.02
local share_beside_skip = 3 -- of a map's inputs: its outputs have a third of their variance, as with PyTorch's maps
local function skips(m) return m.skip or m.parallel and m.attention.shaped end

-- Whether shaped attention of model `m` takes the place of a skip connection.
local function passes_on(m) return not m.skip and skips(m) end

-- α, β and γ of shaped attention in layer `number`. Where it passes on its input α grows from layer to layer, as that
-- does behind a skip connection. docs/decisions.md says what others lose.
local function first_shape(m, number)
    if passes_on(m) then return { 0.3 * (1 + number), 1.8, 1.2 } end
    return { 1, 6, 0 }
end

-- What the variance of the maps' outputs is divided by: all of a block's, or those of its queries and keys.
local function share_of(m, letter)
    local asks = letter == "Q" or letter == "K"
    return (m.skip or asks and passes_on(m)) and share_beside_skip or 1
end

local function filled(floats) return blob.round_up(floats, line) end

-- Puts tensors into a flat array, one behind the other, each on a cache line. what: { name, shape, kind, init, … }.
local function placer()
    local c = { at = 0, list = {}, by_name = {} }
    function c.place(what)
        if c.by_name[what.name] then return c.by_name[what.name] end
        local elements = 1
        for _, count in ipairs(what.shape) do
            elements = elements * count
        end
        local columns = #what.shape > 1 and what.shape[#what.shape] or elements
        what.rows, what.columns = elements // columns, columns
        what.at = c.at
        c.at = filled(c.at + what.rows * (what.pitch or columns))
        c.list[#c.list + 1], c.by_name[what.name] = what, what
        return what
    end
    return c
end

-- Places constants, a section of each name, in a flat array: constants.add(name, elements, what fills it) -> at.
local function constants_placer()
    local constants, by_name = { list = {}, floats = 0 }, {}
    function constants.add(name, elements, section)
        if by_name[name] then return by_name[name].at end
        section.name, section.at, section.elements = name, constants.floats, elements
        constants.list[#constants.list + 1], by_name[name] = section, section
        constants.floats = filled(constants.floats + elements)
        return section.at
    end
    return constants
end

-- The tensor of a view of a checkpoint in the array of `c`.
local function matrix(c, view, kind, init, layer)
    return c.place { name = view.tensor, shape = view.shape, kind = kind, init = init, layer = layer }
end

-- A linear map as products read it, from the views of its weights and its bias: inputs, outputs, at: of the first
-- weight, step: floats from row to row, across: rows are inputs; bias: where they are, or nil. all: the whole tensor
-- of a packed one. share: of share_of.
local function map_of(c, views, kind, biased, share, layer, all)
    local v = views.weight
    local tensor = matrix(c, v, kind, { deviation = (share * v.columns) ^ -0.5 }, layer)
    local map = { inputs = v.columns, outputs = v.rows, at = tensor.at, across = v.transposed or false }
    map.step = v.transposed and v.shape[#v.shape] or v.columns
    if all then map.outputs = v.transposed and map.step or tensor.rows end
    if biased then map.bias = matrix(c, views.bias, "bias", { means = { 0 }, deviation = 0 }, layer).at end
    return map
end

-- Adds to tape `t` the norm of value `from`; names_of: its value and its statistics. Returns the value.
local function add_norm(t, c, from, names_of, norm, views, layer)
    local to = t.value(names_of[1], from.width)
    local operation = { op = "norm", from = from, to = to, kind = norm.kind, eps = norm.eps, width = from.width }
    operation.gain = matrix(c, views.gain, "norm", { means = { 1 }, deviation = 0 }, layer).at
    if norm.kind == "layernorm" then
        operation.offset = matrix(c, views.offset, "norm", { means = { 0 }, deviation = 0 }, layer).at
    end
    operation.statistics = t.value(names_of[2], 2)
    t.add(operation)
    return to
end

-- Adds to tape `t` the product of value `from` with `map`, called `name`; returns its value.
local function add_product(t, from, name, map)
    return t.add { op = "product", from = from, to = t.value(name, map.outputs), map = map }
end

-- The array that the tensor `placed` of a lookup FFN goes to: `tables` if it has tables, which have rows, and a number,
-- among those of all blocks.
local function array_of(placed, tensor, c, tables)
    if tensor.kind ~= "tables" then return c end
    placed.pitch, placed.state_at, placed.first_table = tensor.pitch, tables.rows, tables.count
    tables.rows, tables.count = tables.rows + tensor.rows, tables.count + tensor.shape[1]
    return tables
end

-- What records the operations of a block: `tape`; now, values by the names of steps; places, its projections by their
-- letters, as first_weights.lua here wants them; m, shape; layer, in its segment; number, of the model's layers; c,
-- tables: arrays of its tensors.
local function block_of(segment, layer, c, tables)
    local m, shape, t = segment.plan.model, segment.plan.shape, tape.new()
    t.first, t.sites = t.value("in", shape.input), 0
    return {
        tape = t,
        now = { ["in"] = t.first },
        places = {},
        packed = {}, -- what packed tensors make, by their inputs
        m = m,
        shape = shape,
        layer = layer,
        number = segment.first_layer + layer,
        c = c,
        tables = tables,
    }
end

local function drop(b, value)
    b.tape.sites = b.tape.sites + 1
    b.tape.add { op = "dropout", value = value, site = b.tape.sites }
end

-- A projection of a packed tensor is a part of what the tensor makes.
local function packed_view(b, step, views)
    local view, t, source = views.weight, b.tape, b.now[step.from]
    if not b.packed[source] then
        local map = map_of(b.c, views, "matrix", checkpoint.biased(b.m), share_of(b.m, "Q"), b.number, true)
        b.packed[source] = { value = add_product(t, source, "qkv", map), map = map }
    end
    local of = b.packed[source]
    b.places[step.map.letter] = { map = of.map, offset = view.offset, group = view.group, stride = view.stride }
    local head_step = view.group < view.rows and view.stride or b.shape.width
    return t.view(step.to, of.value, view.offset, view.rows, head_step)
end

-- What each step of blocks/steps.lua records in block `b`.
local records = {}

function records.norm(b, step)
    local views, word = checkpoint.norm(b.m, b.number, step.number, step.width), b.shape.norms[step.number].word
    local names_of = { word .. "_normed", word .. "_statistics" }
    b.now[step.to] = add_norm(b.tape, b.c, b.now[step.from], names_of, b.m.norm, views, b.number)
end

function records.copy(b, step) b.now[step.to] = b.now[step.from] end

records.norm_heads = records.copy -- attention norms heads as it reads them

function records.product(b, step)
    local views, letter = step.map.view(b.layer), step.map.letter
    if views.weight.group then
        b.now[step.to] = packed_view(b, step, views)
    else
        local map = map_of(b.c, views, "matrix", checkpoint.biased(b.m), share_of(b.m, letter), b.number)
        b.now[step.to] = add_product(b.tape, b.now[step.from], step.to == "out" and "made" or step.to, map)
        b.places[letter] = { map = map }
    end
    if letter == "P" or letter == "O" then drop(b, b.now[step.to]) end
end

-- What lies in buffer `name` from element `at` on, of `width` elements, called `word`: a part of rows of tables, or all
-- that is there.
local function part_of(b, name, at, width, word)
    local value = b.now[name]
    if name ~= "looked" then return value end
    return b.tape.view(word, value, at, width, b.shape.width)
end

function records.norm_heads(b, step)
    b.now[step.to] = part_of(b, step.from, step.at, step.width, step.to)
end

function records.append(b, step)
    b.k, b.v = part_of(b, step.k, step.k_at, b.shape.e, "k"), part_of(b, step.v, step.v_at, b.shape.e, "v")
end

function records.attend(b, step)
    local t, now = b.tape, b.now
    now[step.to] = t.value("mixed", b.shape.q)
    local parts = b.shape.shaped and checkpoint.attention_shape(b.m, b.number)
    local init = { means = first_shape(b.m, b.number), deviation = 0 }
    local scalars = parts and matrix(b.c, parts, "scalar", init, b.number)
    local scales = b.shape.unit
        and matrix(b.c, checkpoint.attention_scale(b.m, b.number), "scalar", { means = { 1 }, deviation = 0 }, b.number)
    b.places.scales = scales and scales.at
    t.add {
        op = "attend",
        shape = scalars and scalars.at or nil,
        scales = scales and scales.at or nil,
        q = part_of(b, step.from, 0, b.shape.q, "q"),
        k = b.k,
        v = b.v,
        to = now[step.to],
        softmax = not b.shape.lsh and t.value("softmax", 2 * b.shape.heads) or nil,
        sums = b.shape.lsh and t.value("sums", b.shape.q) or nil,
    }
    if not b.has.P then drop(b, now[step.to]) end
end

function records.activate(b)
    local value, now = b.tape.value("activated", b.shape.f), b.now
    local activation = b.shape.activation
    b.tape.add { op = "activate", gate = now.gate, hidden = now.hidden, to = value, activation = activation }
    now.hidden = value
end

-- The places of q, k, v and the output in rows of `tables`, as projections that read a number for each row.
local function add_places(b, tables)
    local s, map = b.shape, { tensor = tables, step = tables.pitch, across = true, inputs = tables.rows }
    local function add(name, offset, columns)
        b.places[name] = { map = map, offset = offset, group = columns, stride = columns, columns = columns }
    end
    add("Q", 0, s.q)
    add("K", s.q, s.e)
    if skips(b.m) then
        add("output", s.output_at, s.d)
        b.places.output.factor = tables_beside_skip / tables.init.deviation
    end
end

-- ffn: the plan of the lookup FFN; tensors by the fields of its kernels' parameters; z, code, score, slope: what it
-- keeps of each token.
function records.lookup(b, step)
    local t, p = b.tape, step.parts[1].plan
    local own, to = p.training, t.value("made", step.width)
    local function kept(name, floats)
        local value = t.value(name, floats)
        value.exact = true
        return value
    end
    local operation = { op = "lookup", from = b.now[step.from], to = to, ffn = p, tensors = {} }
    operation.z = kept("z", own.z)
    operation.code = kept("code", (own.slots + 1) // 2)
    operation.score, operation.slope = kept("score", own.slots), kept("slope", own.slots)
    for _, tensor in ipairs(own.tensors) do
        local beside = tensor.kind == "tables" and skips(b.m) and not b.shape.qkv
        local placed = {
            name = block_lookup.prefix(b.m, b.number) .. tensor.name,
            shape = tensor.shape,
            kind = tensor.kind,
            folded = tensor.folded,
            projection = b.m.ffn.projection.kind,
            layer = b.number,
            init = { means = { tensor.mean or 0 }, deviation = beside and tables_beside_skip or tensor.deviation },
        }
        operation.tensors[tensor.field] = array_of(placed, tensor, b.c, b.tables).place(placed)
    end
    b.now[step.to] = to
    t.add(operation)
    if b.shape.qkv then
        add_places(b, operation.tensors.tables)
    else
        drop(b, to)
    end
end

-- What the FFN adds, out of rows of tables.
local function columns_of(b, step)
    local from = part_of(b, step.b, step.b_at, step.width, "output")
    b.now[step.b] = b.tape.add { op = "columns", from = from, to = b.tape.value("added", step.width) }
    drop(b, b.now[step.b])
end

function records.add(b, step)
    if step.b_at then columns_of(b, step) end
    local value = b.tape.value(step.to == "out" and "sum" or step.to, step.width)
    b.tape.add { op = "add", a = b.now[step.a], b = b.now[step.b], to = value }
    b.now[step.to] = value
end

function records.output(b, step) b.tape.last = b.now[step.from] end

-- The operations of a block of `segment`, number `layer` in it, whose tensors go to the arrays `c` and `tables`; and
-- its places.
local function block_tape(segment, layer, c, tables)
    local b, own = block_of(segment, layer, c, tables), segment.plan
    b.has = {}
    for _, map in ipairs(own.maps) do
        b.has[map.letter] = map
    end
    local trained = setmetatable({ causal = true, ring = false, sums = false }, { __index = own.shape })
    for _, list in ipairs { steps_of.of(trained, b.has, own.parts) } do
        for _, step in ipairs(list) do
            if records[step.op] then records[step.op](b, step) end
        end
    end
    return b.tape, b.places
end

-- The operations from ids to the first block.
local function embedding_tape(p, c, constants)
    local m, e = p.model, p.embedding
    local views = checkpoint.embeddings(m, p.widths.embedding, p.widths.input)
    local t = tape.new()
    local value = t.value("embedded", e.width)
    local operation = { op = "embed", to = value, scale = e.scale }
    t.words = matrix(c, views.word, "embedding", { deviation = 0.3 })
    operation.word = t.words.at
    if views.positions then
        local tensor = matrix(c, views.positions, "embedding", { deviation = 0.02 })
        operation.first_position = m.embedding.first_position or 0
        operation.positions = tensor.at + operation.first_position * e.width
    elseif e.positions then
        operation.sinusoids = constants.add("sinusoids", m.attention.context * e.width, {
            sinusoids = m.embedding.sinusoidal.order,
            columns = e.width,
            steps_of = m.embedding.sinusoidal.steps == "n" and e.width // 2 or e.width // 2 - 1,
            max = m.embedding.sinusoidal.max,
        })
    end
    if views.token_types then
        operation.token_type = matrix(c, views.token_types, "embedding", { deviation = 0.02 }).at
    end
    t.add(operation)
    if e.norm then
        value = add_norm(t, c, value, { "embedding_normed", "embedding_statistics" }, e.norm, views.norm)
    end
    t.add { op = "dropout", value = value, site = 0 }
    if e.map then
        local map = map_of(c, views.map, "matrix", true, share_of(m))
        value = add_product(t, value, "mapped", map)
    end
    t.last, t.sites = value, 1
    return t
end

-- The operations from the last block to what the head reads, and the head; without a head to what a criterion of the
-- caller reads: the last block's output behind its norm.
local function output_tape(p, c)
    local m, o = p.model, p.output
    local views = checkpoint.output(m, p.widths.last)
    local t = tape.new()
    local value = t.value("in", p.widths.last)
    t.first = value
    local function add_normed(norm, of, word)
        value = add_norm(t, c, value, { word, word .. "_statistics" }, norm, of)
    end
    if o.norm then add_normed(o.norm, views.norm, "normed") end
    if o.dense and m.output.head then
        local map = map_of(c, views.dense, "matrix", true, share_of(m))
        value = add_product(t, value, "dense", map)
        if o.dense.activation then
            local activated = t.value("activated", map.outputs)
            t.add { op = "activate", hidden = value, to = activated, activation = o.dense.activation }
            value = activated
        end
        if o.dense.norm then add_normed(o.dense.norm, views.dense_norm, "dense_normed") end
    end
    t.last, t.sites = value, 0
    local head = {
        features = value.width,
        features_pitch = layout.pitch(value.width),
        rows = head_rows,
    }
    if m.output and m.output.head then
        head.vocab, head.pitch, head.padded = m.vocab, layout.pitch(m.vocab), filled(m.vocab)
        head.soft_cap = o.soft_cap
        head.at = matrix(c, views.head.weight, "matrix", { deviation = 0.02 }).at
        local bias = m.output.head.bias and matrix(c, views.head.bias, "bias", { means = { 0 }, deviation = 0 })
        head.bias = bias and bias.at or nil
        c.by_name[views.head.weight.tensor].role = "head"
    end
    return t, head
end

-- Gives the values of tape `t` their places, in floats for each token behind `at`: that of the first is the place of
-- the tape, that of the last the place of the next tape. Gradients likewise, in an arena of their own.
local function lay_out(t, at)
    local region = 0
    for _, value in ipairs(t.values) do
        local exact = value.name:find "statistics" or value.name == "softmax" or value.exact
        value.pitch = exact and value.width or layout.pitch(value.width)
    end
    local function put(value)
        value.at, region = region, region + value.pitch
    end
    if t.first then put(t.first) end
    for _, value in ipairs(t.values) do
        if value ~= t.first and (value ~= t.last or t.ends) then put(value) end
    end
    t.at, t.region = at, region
    if not t.ends then t.last.at = region end
    t.back = tape.backward(t, t.first, t.last)
    local arena = 0
    for _, gradient in ipairs(t.back.gradients) do
        gradient.pitch = gradient.exact and gradient.width or layout.pitch(gradient.width)
        gradient.at, arena = arena, arena + gradient.pitch
    end
    t.arena = arena
    return at + region
end

-- What attention of a segment takes; type: of the factors of products.
local function attention_of(segment, constants, helper, type)
    local m, shape, lsh = segment.plan.model, segment.plan.shape, segment.plan.shape.lsh
    local a = {
        helper = helper,
        width = shape.width,
        padded_width = blob.round_up(shape.width, 32),
        strip_floats = math.max(shape.width, blob.round_up(shape.width, 32) // 2), -- of a key, in f32 or in bf16
        heads = shape.heads,
        kv_heads = shape.kv_heads,
        group = shape.group,
        causal = shape.causal,
        window = shape.window,
        scale = lsh and 1 / shape.width or shape.scale,
        rows = query_rows[type],
        shifted = shape.shifted,
        unit = shape.unit or lsh ~= nil, -- whose scores are times a factor of each head if `scaled`
        scaled = shape.unit,
        head_eps = shape.head_norms[1] and shape.head_norms[1].eps or false,
        shaped = shape.shaped,
        first_layer = segment.first_layer,
    }
    if lsh then
        local signs, layers = lsh.rounds * lsh.padded, m.layers
        local section = { signs = signs, seed = lsh.seed, first_layer = a.first_layer }
        -- Heads of q come one by one; codes of tables do not lie at multiples of 4 KiB.
        a.lsh = setmetatable({
            signs = signs,
            shape = setmetatable({ group = 1 }, { __index = shape }),
            sparse = lsh.rows > 2 * m.attention.context,
            code_pitch = blob.round_up(m.attention.context, 32) + 32,
        }, { __index = lsh })
        a.lsh.signs_at = constants.add("signs" .. a.first_layer, layers * signs, section)
    end
    if shape.rope then
        local rope = m.attention.rope
        local half, scaled = shape.rope.half, rope.scaling and shape.rope or {}
        a.rope = { half = half, interleaved = shape.rope.interleaved }
        for _, word in ipairs { "cosines", "sines" } do
            a.rope[word] = constants.add(word .. half, m.attention.context * half, {
                angles = word,
                theta = rope.theta,
                half = half,
                frequencies = scaled.frequencies,
                factor = scaled.factor,
                step = 1,
            })
        end
    end
    return a
end

local function refuse_untrainable(p)
    local m = p.model
    local function refuse(chain, value, rule) validated.refuse(m, chain, value, rule) end
    if p.options.type ~= "f32" and p.options.type ~= "bf16" then
        misuse(string.format("--type: %s: --training takes f32 and bf16, factors of products", p.options.type))
    end
    if m.embedding.projected then
        local rule = "must be absent in training, which learns the maps; the trained weights pack with it, too"
        refuse({ "embedding", "projected" }, true, rule)
    end
    for _, key in ipairs { "qk_norm", "soft_cap" } do
        if m.attention[key] then refuse({ "attention", key }, nil, "cannot be trained") end
    end
    if m.attention.cache then
        refuse({ "attention", "cache" }, "k", "cannot be trained: fuse makes it of a trained model")
    end
    if checkpoint.less_one(m) then
        local rule = 'cannot be trained: its files hold gains of norms less 1; "llama" has the same names'
        refuse({ "checkpoint" }, m.checkpoint, rule)
    end
    if checkpoint.family(m).gate_up then
        local rule = 'cannot be trained: its files have gate and up in one tensor; "llama" has two'
        refuse({ "checkpoint" }, m.checkpoint, rule)
    end
    if m.attention.full_layers then
        refuse({ "attention", "full_layers" }, nil, "cannot be trained: all layers need the same window")
    end
    if not (m.output and m.output.head) then return end
    if m.output.dense and m.output.dense.activation == "tanh" then
        refuse({ "output", "dense", "activation" }, "tanh", "cannot be trained")
    end
end

-- Rounds the factors of products `product` to bf16, which a matrix engine multiplies if `isa` has one.
local function round_factors(isa, product)
    words.demand(isa, { "bf16_products" }, "--training in bf16")
    local own = { tiles = isa.tile_dot_bf16 ~= nil, counts = product.tokens, whole = isa.lanes }
    if own.tiles then
        own.counts, own.whole, product.rows = { 32 }, 32, 32 -- rows that lie in L1, together with a strip
    end
    product.bf16, product.depth = own, 512
    own.step = product.depth // 2 + 16 -- words; not at powers of two, which would drive each other out of the cache
    product.packed_a, product.packed_b = product.rows * own.step, product.depth // 2 * product.columns
end

-- Products for `isa`; type: that of their factors.
local function product_of(isa, type)
    local product = { depth = 256, columns = 1024, tokens = { 12, 4, 1 }, vectors = 2 }
    if isa.lanes == 1 then
        product.tokens, product.vectors = { 4, 1 }, 4
    elseif isa.registers < 32 then
        product.tokens = { 6, 2, 1 }
    end
    product.rows = 8 * product.tokens[1]
    product.strip = product.vectors * isa.lanes
    product.packed_b = product.depth * product.columns
    product.packed_a = product.depth * product.rows
    if type == "bf16" then round_factors(isa, product) end
    product.floats = product.packed_a + product.packed_b
    return product
end

-- Floats that the kernel of attention by tables takes of a sequence, but for codes and values: two codes are one.
local function tables_scratch(lsh, width, lanes)
    local pitch = lsh.shape.cache.pitch
    local floats = 2 * lsh.padded * lanes + lsh.together * lsh.rows * pitch + 4 * line
    if not lsh.shape.causal then return floats + (lsh.tables * lsh.code_pitch + 1) // 2 end
    return floats + lsh.shape.cache.rows * (width + pitch) + lsh.window * lsh.tables
end

-- Floats that attention needs for a sequence of `length` filled up to 32, on CPUs with vectors of `lanes`:
-- fixed + each * length.
local function attention_scratch(a, product, lanes)
    local w, padded = a.width, a.padded_width
    local need = {
        fixed = filled(line + 2 * a.rows * w + 3 * a.rows * padded + product.packed_a),
        each = w + 2 * a.strip_floats + 3 * padded + 2 * a.rows,
    }
    local lsh = a.lsh
    if lsh then
        need.fixed = need.fixed + filled(lsh.signs + tables_scratch(lsh, w, lanes))
        need.each = need.each + 6 * w + (a.causal and lsh.tables or lsh.shape.cache.pitch + (lsh.tables + 1) // 2)
    end
    return need
end

local function least_multiple(a, b)
    local x, y = a, b
    while y > 0 do
        x, y = y, x % y
    end
    return a // x * b
end

-- What a manifest says of the flat arrays.
local function described(t)
    local tensors = {}
    for i, tensor in ipairs(t.tensors) do
        tensors[i] = {
            name = tensor.name,
            shape = json.array(tensor.shape),
            kind = tensor.kind,
            at = tensor.at,
            pitch = tensor.pitch,
            state_at = tensor.state_at,
            first_table = tensor.first_table,
        }
    end
    return {
        parameters = t.parameters,
        gradients = t.gradients,
        table_rows = t.table_rows,
        constants = t.constants,
        sections_of_constants = json.array(t.sections_of_constants),
        tensors = json.array(tensors),
    }
end

-- The segment `segment`, number `i` of plan `p`, whose tensors go to the arrays `c` and `tables`. Adds to the places of
-- projections of training `t`, and to its prepared floats and tile.
local function add_segment(p, t, i, c, tables, constants)
    local segment = p.segments[i]
    local m, parts = segment.plan.model, segment.plan.parts
    local own = { word = segment.word, layers = m.layers, base = c.at, first_layer = segment.first_layer }
    local tables_base = tables.at
    for _, part in ipairs(parts) do
        lookup_training.add(part.plan)
    end
    for layer = 0, own.layers - 1 do
        if layer == 1 then
            own.stride, own.tables_stride = c.at - own.base, tables.at - tables_base
        end
        local made, places = block_tape(segment, layer, c, tables)
        t.places[#t.places + 1] = { segment = segment, places = places, first = i == 1 and layer == 0 }
        own.tape = own.tape or made
    end
    for _, step in ipairs(own.tape.forward) do
        if step.op == "lookup" then
            own.lookup, step.prepared_at = step, t.prepared
            t.prepared = t.prepared + own.layers * filled(step.ffn.training.prepared)
            t.tile = least_multiple(t.tile, step.ffn.training.tile)
        end
    end
    own.stride = own.stride or c.at - own.base
    own.attention = attention_of(segment, constants, p.names.model .. "_train_" .. segment.word, t.type)
    t.segments[i], t.by_tables = own, t.by_tables or own.attention.lsh ~= nil
end

-- Adds to the first weights of training `t` of plan `p` those of all blocks.
local function add_first_weights(p, t)
    for _, block in ipairs(t.places) do
        local own, places = block.segment.plan, block.places
        first_weights.find_alike(t.first_weights, own.shape, places)
        if places.output then first_weights.shrink(t.first_weights, places.output) end
        if #own.parts > 0 then
            first_weights.give_back(t.first_weights, own.shape, places, passes_on(own.model))
            if block.first and p.model.norm and not p.embedding.map then
                first_weights.look_back(t.first_weights, own.shape, places, t.embedding.words)
            end
        end
    end
end

-- Gives training `t` of plan `p` its places: values that are kept, in floats for each token; the arena of gradients,
-- the streams between tapes; and the sites of dropout.
local function lay_out_all(p, t)
    local at, stream, arena = lay_out(t.embedding, 0), layout.pitch(p.widths.input), t.embedding.arena
    local sites = 1
    t.embedding.layers = 1
    for _, own in ipairs(t.segments) do
        lay_out(own.tape, at)
        at, own.site, sites = at + own.layers * own.tape.region, sites, sites + own.layers * own.tape.sites
        arena = math.max(arena, own.tape.arena)
        stream = math.max(stream, layout.pitch(own.tape.last.width), own.tape.first.pitch)
    end
    t.kept = lay_out(t.output, at)
    t.arena, t.stream = math.max(arena, t.output.arena), math.max(stream, t.output.last.pitch)
end

-- The training kernels of variant `v` of plan `p`.
local function variant_of(p, t, v)
    local function name(word) return names.variant(p.model.name, "train_" .. word, v.isa.name) end
    local product, scratch = product_of(v.isa, t.type), { fixed = 0, each = 0 }
    for _, own in ipairs(t.segments) do
        local need = attention_scratch(own.attention, product, v.isa.lanes)
        scratch.fixed, scratch.each = math.max(scratch.fixed, need.fixed), math.max(scratch.each, need.each)
    end
    return {
        product = product,
        scratch = scratch,
        names = {
            step = name "step",
            loss = name "loss",
            workspace = name "workspace",
            apply = t.table_rows > 0 and name "apply" or nil,
        },
    }
end

-- Gives whole plan `p` the field `training`, and its variants theirs; type: of factors of products, nil: that of the
-- plan. Raises one line if it cannot be trained.
function training.add(p, type)
    if p.training then return end
    refuse_untrainable(p)
    local c, tables, constants = placer(), placer(), constants_placer()
    tables.rows, tables.count = 0, 0
    local t = { segments = {}, places = {}, first_weights = {}, prepared = 0, tile = 64, type = type or p.options.type }
    t.embedding = embedding_tape(p, c, constants)
    for i = 1, #p.segments do
        add_segment(p, t, i, c, tables, constants)
    end
    t.output, t.head = output_tape(p, c)
    t.output.ends = true
    t.gradients = c.at
    for _, tensor in ipairs(tables.list) do
        tensor.at = c.at + tensor.at
    end
    add_first_weights(p, t)
    t.parameters, t.table_rows = c.at + tables.at, tables.rows
    t.tensors = table.move(tables.list, 1, #tables.list, #c.list + 1, c.list)
    t.constants, t.sections_of_constants = constants.floats, constants.list
    lay_out_all(p, t)
    for _, v in ipairs(p.variants) do
        v.training = variant_of(p, t, v)
    end
    t.described = described(t)
    p.training = t
end

return training
