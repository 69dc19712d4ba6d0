-- From a validated transformer to the plan of its blocks: sizes, offsets and names of what is emitted, packed, verified
-- and timed. Pure data. A block is a list of steps; projections that were eliminated have no step.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.transformer.block_lookup"
local checkpoint = require "gen.model.checkpoint_names"
local dtype = require "gen.plan.dtype"
local fuse = require "gen.families.transformer.fuse"
local host = require "host"
local isa_list = require "gen.isa.list"
local json = require "json"
local names = require "gen.model.names"
local schedule = require "gen.families.transformer.schedule"
local transformer_model = require "gen.families.transformer.model"
local validated = require "gen.model.validated"

local transformer_plan = {}

transformer_plan.panel = 32 -- outputs that lie side by side in packed weights: [panel][input][32]
transformer_plan.keys = 32 -- positions of keys that lie side by side in the cache: [tile][element][32]
transformer_plan.values = 16 -- a row of values in the cache is filled up to so many elements
transformer_plan.most_positions = 1 << 31 -- of a sequence whose cache is a ring

local round_up = blob.round_up

-- Why the blocks of a model cannot be emitted: a key chain, a value and a rule; nil: they can.
function transformer_plan.misfit(m)
    if m.attention.eliminate:find("QKV", 1, true) and (m.skip or m.norm) then
        return { "attention", "eliminate" },
            m.attention.eliminate,
            "tables that deliver q, k and v leave nothing to norms and skip connections"
    end
    return checkpoint.misfit(m)
end

-- The cache: positions that it holds, and per layer, in bytes, the keys [kv_heads][tile][width][32], the values
-- [kv_heads][position][pitch] and, where elements are integers, the scales of both, [kv_heads][position]. A window's
-- cache is a ring of tiles: a token's keys and values are put where those were that no token sees any more. So that up
-- to a tile of tokens can enter before they attend, it holds that many more.
local function cache_of(shape, type)
    local pitch, positions = round_up(shape.width, transformer_plan.values), shape.context
    if shape.ring then positions = shape.window - 1 + transformer_plan.keys end
    local cache = {
        type = type,
        pitch = pitch,
        positions = round_up(positions, transformer_plan.keys),
        layer_bytes = 0,
        parts = {},
    }
    local function part(name, element, elements)
        local one =
            { name = name, storage = element.storage, head = cache.positions * elements, at = cache.layer_bytes }
        cache.parts[#cache.parts + 1] = one
        cache[name] = one
        cache.layer_bytes = round_up(one.at + shape.kv_heads * one.head * element.bytes, blob.align)
    end
    part("keys", type, shape.width)
    part("values", type, pitch)
    if type.scaled then
        part("key_scales", dtype.get "f32", 1)
        part("value_scales", dtype.get "f32", 1)
    end
    cache.position_bytes = shape.layers
        * shape.kv_heads
        * ((shape.width + pitch) * type.bytes + (type.scaled and 8 or 0))
    return cache
end

local function shape_of(m, type, cache_type)
    local width = m.d // m.heads
    local shape = {
        type = type,
        d = m.d,
        heads = m.heads,
        kv_heads = m.kv_heads,
        group = m.heads // m.kv_heads,
        width = width,
        e = transformer_model.kv_width(m),
        f = m.ffn.f,
        layers = m.layers,
        context = m.attention.context,
        window = m.attention.window,
        causal = m.attention.causal,
        ring = m.attention.causal and m.attention.window ~= nil,
        parallel = m.parallel,
        skip = m.skip,
        scale = m.attention.scale or width ^ -0.5,
        gated = m.ffn.kind == "glu",
        activation = m.ffn.activation,
        norm = m.norm,
        lookup = m.ffn.kind == "lookup",
    }
    -- What makes a block's input delivers its q, k and v, side by side.
    shape.delivered = m.attention.eliminate:find("QKV", 1, true) ~= nil
    shape.input = shape.delivered and shape.d + 2 * shape.e or shape.d
    local rope = m.attention.rope
    if rope then
        shape.rotated = math.tointeger(rope.share * width) or 0
        shape.rope = { theta = rope.theta, half = shape.rotated // 2, interleaved = rope.pairs == "interleaved" }
    end
    shape.cache = cache_of(shape, cache_type)
    if shape.ring then
        -- Positions go on beyond the context: the angles of a position are those of its bytes, added up.
        shape.context = transformer_plan.most_positions
        if shape.rope then shape.rope.digits = { 1, 1 << 8, 1 << 16, 1 << 24 } end
    end
    return shape
end

-- The linear maps that a block has: { letter, field, inputs, outputs, panels, words of a layer, view(layer) }.
local function maps_of(m, shape)
    local list, by_letter = {}, {}
    local function add(letter, inputs, outputs, view)
        local map = {
            letter = letter,
            field = letter:lower(),
            inputs = inputs,
            outputs = outputs,
            panels = (outputs + transformer_plan.panel - 1) // transformer_plan.panel,
            view = view,
        }
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
    if shape.lookup then return list, by_letter end
    -- The first input of a gated FFN is its gate.
    for i, letter in ipairs(shape.gated and { "G", "M" } or { "M" }) do
        add(letter, shape.d, shape.f, function(layer) return checkpoint.inputs(m, layer)[i] end)
    end
    add("O", shape.f, shape.d, function(layer) return checkpoint.linear(m, layer, "O", shape.d, shape.f) end)
    return list, by_letter
end

-- Where the rows of a matrix go in [panel][input][32]: runs of rows of equal width, or, where all panels are full and
-- the matrix is a tensor of its own, one panel after the other, so that the packer holds one at a time.
function transformer_plan.matrix_boxes(map, whole_tensor)
    if whole_tensor and map.outputs == map.pitch then
        local panel = transformer_plan.panel
        return {
            {
                from = 0,
                to = 0,
                slice_to = panel * map.inputs,
                dims = { { count = map.inputs, from = 1, to = panel }, { count = panel, from = map.inputs, to = 1 } },
            },
        },
            map.panels
    end
    local panel, whole, rest =
        transformer_plan.panel, map.outputs // transformer_plan.panel, map.outputs % transformer_plan.panel
    local boxes = {}
    local function add(first, panels, width)
        if panels == 0 or width == 0 then return end
        boxes[#boxes + 1] = {
            from = first * map.inputs,
            to = first * map.inputs,
            dims = {
                { count = panels, from = panel * map.inputs, to = panel * map.inputs },
                { count = map.inputs, from = 1, to = panel },
                { count = width, from = map.inputs, to = 1 },
            },
        }
    end
    add(0, whole, panel)
    add(whole * panel, 1, rest)
    return boxes
end

-- The sections of the blob, each with the layers of one kind of weights behind each other, and the pieces that the
-- packer fills them with.
local function sections_of(m, shape, maps, parts)
    local sections, pieces, at = {}, {}, blob.header_bytes
    local f32 = dtype.get "f32"
    local function add(name, type, elements, doc)
        local section = {
            name = name,
            dtype = type,
            type = type.name,
            storage = type.storage,
            elements = elements,
            count = elements,
            at = at,
            bytes = elements * type.bytes,
            doc = doc,
        }
        at = round_up(at + section.bytes, blob.align)
        sections[#sections + 1] = section
        return section
    end
    local function piece(section, layer, elements, more)
        local p = {
            name = section.name .. " of layer " .. layer,
            dtype = section.dtype,
            type = section.type,
            elements = elements,
            at = section.at + layer * elements * section.dtype.bytes,
            steps = {},
        }
        for key, value in pairs(more) do
            p[key] = value
        end
        pieces[#pieces + 1] = p
    end
    local function line(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end
    for _, map in ipairs(maps) do
        local scales = shape.type.scaled
            and add(map.field .. "_scales", f32, m.layers * map.pitch, "scales of the rows of " .. map.letter)
        local matrix = add(
            map.field,
            shape.type,
            m.layers * map.words,
            map.letter
                .. ", ["
                .. m.layers
                .. "]["
                .. map.panels
                .. "]["
                .. map.inputs
                .. " inputs]["
                .. transformer_plan.panel
                .. " outputs]"
        )
        local bias = add(
            map.field .. "_bias",
            f32,
            m.layers * map.pitch,
            "[" .. m.layers .. "][" .. map.pitch .. "] biases of " .. map.letter .. ", zeros if it has none"
        )
        for layer = 0, m.layers - 1 do
            local view = map.view(layer)
            local function of(part)
                return {
                    from = part.tensor,
                    shape = part.shape,
                    rows = part.rows,
                    columns = part.columns,
                    group = part.group,
                    stride = part.stride,
                    offset = part.offset,
                }
            end
            local weights, offsets = of(view.weight), of(view.bias)
            weights.row = map.inputs
            weights.boxes, weights.slices = transformer_plan.matrix_boxes(map, not weights.group)
            weights.scales = scales and scales.at + layer * map.pitch * 4 or nil
            piece(matrix, layer, map.words, weights)
            offsets.boxes, offsets.optional = line(map.outputs), true
            piece(bias, layer, map.pitch, offsets)
        end
    end
    block_lookup.add_sections(m, parts, add, piece)
    if m.norm then
        for i, word in ipairs { "first", "second" } do
            local gain = add(
                word .. "_norm",
                f32,
                m.layers * shape.d,
                "[" .. m.layers .. "][" .. shape.d .. "] gains of the " .. word .. " norm"
            )
            local offset = m.norm.kind == "layernorm"
                and add(word .. "_norm_offset", f32, m.layers * shape.d, "its offsets")
            for layer = 0, m.layers - 1 do
                local name = checkpoint.norm(m, layer, i)
                piece(gain, layer, shape.d, { from = name .. ".weight", shape = { shape.d }, boxes = line(shape.d) })
                if offset then
                    piece(
                        offset,
                        layer,
                        shape.d,
                        { from = name .. ".bias", shape = { shape.d }, boxes = line(shape.d) }
                    )
                end
            end
        end
    end
    if shape.rope then
        local half, digits = shape.rope.half, shape.rope.digits
        local count = (digits and 256 or shape.context) * half
        local rows = digits and "[" .. #digits .. " bytes of a position][256]" or "[" .. shape.context .. " positions]"
        for _, word in ipairs { "cosines", "sines" } do
            local section = add(
                word,
                f32,
                (digits and #digits or 1) * count,
                rows .. "[" .. half .. "] " .. word .. " of the rotary angles"
            )
            for i, step in ipairs(digits or { 1 }) do
                pieces[#pieces + 1] = {
                    name = word,
                    type = "f32",
                    elements = count,
                    at = section.at + (i - 1) * count * 4,
                    angles = word,
                    theta = shape.rope.theta,
                    half = half,
                    step = step,
                }
            end
        end
    end
    return sections, pieces, at
end

-- The steps of a block on the tokens of a chunk, in two parts: what must be done for all tokens that are attended to,
-- and the rest. Buffers are named; "in" is the block's input, "rows" the same at distances that suit the cache.
local function steps_of(shape, has, parts)
    local before, after = {}, {}
    local function add(list, step) list[#list + 1] = step end
    local function product(list, letter, from, to)
        if not has[letter] then return from end
        add(list, { op = "product", map = has[letter], from = from, to = to })
        return to
    end
    local pre, post = shape.norm and shape.norm.place == "pre", shape.norm and shape.norm.place == "post"
    local source = pre and "normed" or "rows"
    local function prepare(list)
        add(
            list,
            pre and { op = "norm", which = "first", from = "in", to = source }
                or { op = "copy", from = "in", to = source }
        )
    end
    local q, k, v, k_at, v_at = "in", "in", "in", shape.d, shape.d + shape.e
    if not shape.delivered then
        prepare(before)
        k, v, k_at, v_at = product(before, "K", source, "k"), product(before, "V", source, "v"), 0, 0
    end
    -- Into a ring tokens enter a few at a time, just before they attend: more would push out what the first of them
    -- still sees.
    if not shape.ring then add(before, { op = "append", k = k, k_at = k_at, v = v, v_at = v_at }) end
    if not shape.delivered then
        if not shape.causal then prepare(after) end
        q = product(after, "Q", source, "q")
    end
    add(
        after,
        { op = "attend", from = q, to = "mixed", k = shape.ring and k, k_at = k_at, v = shape.ring and v, v_at = v_at }
    )
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
    local out = "out"
    if shape.lookup then
        add(after, { op = "lookup", parts = parts, from = inner, to = out })
    else
        if shape.gated then product(after, "G", inner, "gate") end
        product(after, "M", inner, "hidden")
        add(after, { op = "activate", gate = shape.gated and "gate" or false, to = "hidden" })
        product(after, "O", "hidden", out)
    end
    if shape.parallel then
        add(after, { op = "add", a = mixed, b = out, to = "out" })
        if shape.skip then add(after, { op = "add", a = "in", b = out, to = "out" }) end
    elseif shape.skip then
        add(after, { op = "add", a = stream, b = out, to = "out" })
    end
    if post then add(after, { op = "norm", which = "second", from = "out", to = "out" }) end
    add(after, { op = "output", from = out })
    return before, after
end

local line_floats = blob.align // 4

-- Floats from token to token of a buffer whose rows have so many, filled up to what products in whole panels write.
-- Rows an odd number of lines apart: at powers of two those of several tokens would drive each other out of the cache.
local function pitch_of(floats) return round_up(round_up(floats, transformer_plan.panel), line_floats) | line_floats end

-- Buffers in scratch, { name, pitch, at }, in floats: behind each other as many rows of `pitch` of each as a call has
-- tokens, a chunk at most, from tokens * at on; and of what tokens need that attend together, a group of heads each,
-- from so many tokens * at on. A call for few tokens needs little scratch.
local function buffers_of(shape, before, after, lanes)
    local buffers = {
        tokens = {},
        queries = {},
        pitches = { ["in"] = shape.delivered and "in_step" or shape.d },
        token_floats = 0,
        query_floats = 0,
    }
    for _, steps in ipairs { before, after } do
        for _, step in ipairs(steps) do
            if step.to and not buffers.pitches[step.to] then
                local pitch = pitch_of(step.map and step.map.outputs or step.op == "lookup" and shape.input or shape.d)
                table.insert(buffers.tokens, { name = step.to, pitch = pitch, at = buffers.token_floats })
                buffers.pitches[step.to], buffers.token_floats = pitch, buffers.token_floats + pitch
            end
        end
    end
    for _, row in ipairs {
        { "queries", shape.width },
        { "sums", shape.cache.pitch },
        { "scores", transformer_plan.keys },
        { "totals", lanes },
    } do
        table.insert(buffers.queries, { name = row[1], at = buffers.query_floats })
        buffers.query_floats = round_up(buffers.query_floats + shape.group * row[2], line_floats)
    end
    return buffers
end

local function variant_of(m, shape, before, after, isa, choices, parts, number)
    local v = {
        isa = isa,
        schedule = choices,
        schedule_text = schedule.text(choices),
        chunk = choices["chunk.tokens"],
        queries = choices["attention.tokens"],
    }
    v.rows = v.queries * shape.group
    v.buffers = buffers_of(shape, before, after, isa.lanes)
    v.number, v.lookup_floats = number, block_lookup.scratch_floats(parts, number) -- of a token alone, of any number
    v.decode_scratch_bytes = 4 * v.lookup_floats.alone + 4 * (v.buffers.token_floats + v.buffers.query_floats)
    v.scratch_bytes = 4 * v.lookup_floats.many
        + 4 * (v.chunk * v.buffers.token_floats + math.min(v.chunk, v.queries) * v.buffers.query_floats)
    -- Several tokens share what converting a strip of weights takes: its floats, from so many of scratch on.
    if shape.type.name ~= "f32" and choices["product.tokens"] > 1 then
        v.unpacked_at = round_up(v.scratch_bytes, blob.align) // 4
        v.scratch_bytes = 4 * (v.unpacked_at + choices["product.depth"] * choices["product.vectors"] * isa.lanes)
    end
    v.names = {
        product = names.variant(m.name, "product_" .. shape.type.name, isa.name),
        attention = names.variant(m.name, "attention_" .. shape.cache.type.name, isa.name),
        blocks = names.variant(m.name, "blocks", isa.name),
    }
    return v
end

-- Every tensor that an unfused checkpoint of the model has, or, if it is an architecture of its own, the checkpoint
-- that `pack` reads, as weights.sample writes them. Square maps are near 1, so that values neither grow nor shrink much
-- from block to block and what is inverted is well-conditioned.
local function samples_of(m, shape, own)
    local family, list, known = checkpoint.family(m), {}, {}
    local function add(name, tensor_shape, deviation, more)
        if known[name] then return end
        known[name] = true
        list[#list + 1] = { name = name, shape = tensor_shape, mean = 0.0, deviation = deviation }
        for key, value in pairs(more or {}) do
            list[#list][key] = value
        end
    end
    local biased = m.checkpoint ~= "llama"
    local function add_map(map, deviation, diagonal, bias)
        local v = map.weight
        add(v.tensor, v.shape, deviation, diagonal and { diagonal = shape.d, group = v.group, stride = v.stride })
        if biased or bias then add(map.bias.tensor, map.bias.shape, bias or 0.1) end
    end
    for _, row in ipairs { { "word", m.vocab }, { "positions", m.positions }, { "token_types", m.token_types } } do
        if row[2] then
            add(family.embeddings[row[1]], { row[2], own and shape.input or shape.d }, row[1] == "word" and 1.0 or 0.3)
        end
    end
    for layer = 0, m.layers - 1 do
        for _, letter in ipairs { "Q", "K", "V", "P" } do
            local map =
                checkpoint.linear(m, layer, letter, (letter == "K" or letter == "V") and shape.e or shape.d, shape.d)
            if not (own and m.attention.eliminate:find(letter, 1, true)) then
                add_map(own and checkpoint.alone(map) or map, 0.3 * shape.d ^ -0.5, true)
            end
        end
        if shape.lookup then
            local delivers = own and shape.delivered and layer < m.layers - 1
            for _, tensor in ipairs(block_lookup.samples(m, layer, delivers and shape.input or shape.d)) do
                add(tensor.name, tensor.shape, tensor.deviation, tensor)
            end
        else
            local inputs = checkpoint.inputs(m, layer)
            add_map(inputs[#inputs], 1.5 * shape.d ^ -0.5)
            -- A gate that is mostly its bias: products of two values of the input would grow or vanish from block to
            -- block.
            if shape.gated then add_map(inputs[1], 0.3 * shape.d ^ -0.5, false, 1.0) end
            add_map(checkpoint.linear(m, layer, "O", shape.d, shape.f), shape.f ^ -0.5)
        end
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
local function digest_of(m, sections, parts)
    local described = {}
    for i, section in ipairs(sections) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    for _, part in ipairs(parts) do
        described[#described + 1] = part.plan.digest
    end
    return host.sha256(
        json.encode(
            { format = blob.format, model = m, sections = described, panel = transformer_plan.panel },
            "compact"
        )
    )
end

-- The plan of the blocks of model `m` for the instruction sets `isas`. options, all optional: type, cache, of weights
-- and cache (names, default f32); schedule, the choices wanted by name of the instruction set; part(maps, before,
-- after), for timing: what is left of linear maps and steps.
function transformer_plan.build(m, isas, options)
    local chain, value, rule = transformer_plan.misfit(m)
    if chain then validated.refuse(m, chain, value, rule) end
    local shape = shape_of(m, dtype.get(options.type, "type"), dtype.get(options.cache, "cache"))
    local maps, has = maps_of(m, shape)
    local own = m.attention.eliminate ~= "none" and not pcall(fuse.check, m, m.attention.eliminate)
    local public, types, sets, choices, wanted = names.public(m.name), { shape.type }, {}, {}, options.schedule or {}
    if shape.cache.type ~= shape.type then types[2] = shape.cache.type end
    for i, isa in ipairs(isas) do
        for _, one in ipairs(types) do
            -- What integers need is for the sums of a LookupFFN's tables.
            if not one.scaled then isa = isa_list.with_types(isa, { one }) end
        end
        sets[i], choices[i] = isa, schedule.make(shape, isa, wanted[isa.name] or {})
    end
    local parts = shape.lookup
            and block_lookup.parts(
                m,
                sets,
                choices,
                shape.type,
                public,
                shape.input,
                pitch_of(shape.d),
                pitch_of(shape.input)
            )
        or {}
    local before, after = steps_of(shape, has, parts)
    if options.part then
        maps, before, after = options.part(maps, before, after)
    end
    local sections, pieces, bytes = sections_of(m, shape, maps, parts)
    local p =
        { -- own: an architecture of its own, that no unfused checkpoint becomes; packed_samples: of the checkpoint that pack reads
            family = "transformer",
            model = m,
            shape = shape,
            names = public,
            maps = maps,
            parts = parts,
            sections = sections,
            pieces = pieces,
            tensors = {},
            own = own,
            samples = samples_of(m, shape, own),
            packed_samples = samples_of(m, shape, m.attention.eliminate ~= "none"),
            packed_bytes = bytes,
            digest = digest_of(m, sections, parts),
            before = before,
            after = after,
            variants = {},
            scratch_bytes = 0,
            decode_scratch_bytes = 0,
            cache_bytes = m.layers * shape.cache.layer_bytes,
            weights_struct_bytes = 8 * #sections + 8,
            types = types,
            kept_type = shape.cache.type,
            -- as the manifest records them
            options = { type = shape.type.name, cache = shape.cache.type.name, schedule = wanted },
        }
    for i, isa in ipairs(sets) do
        p.variants[i] = variant_of(m, shape, before, after, isa, choices[i], parts, i)
        p.scratch_bytes = math.max(p.scratch_bytes, p.variants[i].scratch_bytes)
        p.decode_scratch_bytes = math.max(p.decode_scratch_bytes, p.variants[i].decode_scratch_bytes)
    end
    return p
end

return transformer_plan
