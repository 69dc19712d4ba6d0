-- From a validated transformer to the plan of its blocks: sizes, offsets and names of what is emitted, packed, verified
-- and timed. Pure data.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.model.blocks.block_lookup"
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local fusable = require "gen.schema.fusable"
local host = require "host"
local isa_list = require "gen.isa.list"
local misuse = require "gen.schema.misuse"
local words = require "gen.isa.words"
local json = require "json"
local layout = require "gen.families.model.blocks.layout"
local maps_of = require "gen.families.model.blocks.maps"
local names = require "gen.schema.names"
local phases = require "gen.families.model.blocks.phases"
local samples = require "gen.families.model.samples"
local schedule = require "gen.families.model.blocks.schedule"
local sections = require "gen.families.model.sections"
local shape_of = require "gen.families.model.blocks.shape"
local steps_of = require "gen.families.model.blocks.steps"
local validated = require "gen.schema.validated"
local variant = require "gen.families.model.blocks.variant"

local transformer_plan = {}

-- Why the blocks of a model cannot be emitted: a key chain, a value and a rule; nil: they can.
function transformer_plan.misfit(m)
    if m.attention.eliminate:find("QKV", 1, true) and (m.skip or m.norm) then
        return { "attention", "eliminate" },
            m.attention.eliminate,
            "tables that deliver q, k and v leave nothing to norms and skip connections"
    end
    return checkpoint.misfit(m)
end

-- What decides the bytes of a blob but the weights: the model, its own sections, and the plans of its parts.
function transformer_plan.digest(m, sections, parts)
    local described = {}
    for i, section in ipairs(sections) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    for _, part in ipairs(parts) do
        described[#described + 1] = part.plan.digest
    end
    return host.sha256(
        json.encode({ format = blob.format, model = m, sections = described, panel = layout.panel }, "compact")
    )
end

-- The tensors that a checkpoint must have: all that pieces of the blob come from, but biases.
function transformer_plan.tensors(pieces)
    local list = {}
    local function add(name, shape) list[#list + 1] = { name = name, shape = shape } end
    for _, piece in ipairs(pieces) do
        if piece.from and not piece.optional then add(piece.from, piece.shape) end
        for _, key in ipairs { "view", "weight", "gain", "plus" } do
            local view = piece.projected and piece.projected[key]
            if view then add(view.tensor, view.shape) end
        end
    end
    return list
end

-- The offsets and strides that kernels use by name: { name, value, doc }. All instruction sets share them.
local function constants_of(p)
    local list, shape, buffers = {}, p.shape, p.variants[1].buffers
    local prefix = p.names.prefix
    local function add(name, value, doc) list[#list + 1] = { name = prefix .. name, value = value, doc = doc } end
    if prefix ~= "" then
        add("D", shape.d, "width of a token")
        if shape.input ~= shape.d then add("D_IN", shape.input, "width of a token's input") end
    end
    for _, map in ipairs(p.maps) do
        add(map.letter .. "_INPUTS", map.inputs, "inputs of " .. map.letter)
        add(map.letter .. "_PANELS", map.panels, "its panels of " .. layout.panel .. " outputs")
    end
    if shape.layers > 1 then
        for _, map in ipairs(p.maps) do
            local words = shape.rounded and map.words // shape.rounded.rows or map.words
            local what = shape.rounded and "words of weights of " or "weights of "
            add(map.letter .. "_LAYER", words, what .. map.letter .. " of a layer")
            add(
                map.letter .. "_BIAS_LAYER",
                map.pitch,
                "its biases of a layer" .. (shape.type.scaled and ", and scales" or "")
            )
        end
        for _, part in ipairs(p.parts) do
            for _, section in ipairs(part.sections) do
                if section.own and section.layers > 1 then
                    add(section.name:upper() .. "_LAYER", section.step, "elements of a layer")
                end
            end
        end
        if shape.shaped then add("ATTENTION_SHAPE_LAYER", 3 * shape.heads, "floats of attention_shape of a layer") end
        if not shape.sequences then add("CACHE_LAYER_BYTES", shape.cache.layer_bytes, "of the cache") end
    end
    for _, part in ipairs(shape.cache.parts) do
        local name = part.name:upper()
        if part.at > 0 then add(name .. "_AT", part.at, "bytes into a layer's cache") end
        if shape.kv_heads > 1 then add(name .. "_HEAD", part.head, "elements of a head in the cache") end
    end
    add("CACHE_POSITIONS", shape.cache.positions, "positions that the cache holds")
    add("TILE_POSITIONS", layout.keys, "positions whose keys lie side by side")
    add("KEY_TILE", shape.cache.key_tile, (shape.cache.words and "words" or "elements") .. " of these keys")
    add("VALUE_PITCH", shape.cache.pitch, "elements of a value, filled up")
    if p.sums then
        add("SUMS_PITCH", shape.sums.pitch, "floats from row to row of sums over tokens")
        if p.sums.hidden then add("SUMS_HIDDEN_AT", p.sums.hidden, "where those of hidden values begin") end
    end
    if shape.rope then add("ROPE_PAIRS", shape.rope.half, "pairs of elements of a head that are rotated") end
    if shape.given then
        add("IN_K", shape.q, "where k lies in the input of a block")
        add("IN_V", shape.q + shape.e, "and v")
    end
    if shape.projected and shape.skip then
        add("IN_SKIPPED", shape.q + 2 * shape.e, "and what the skip connection adds")
    end
    for _, buffer in ipairs(buffers.tokens) do
        local name = buffer.name:upper()
        local what = buffer.storage == "float" and "floats" or "words"
        add(name .. "_PITCH", buffer.pitch, what .. " from token to token of " .. buffer.name)
        add(name .. "_AT", buffer.at, "floats before it in scratch, for each token of a chunk")
    end
    local kept = buffers.of_call
    if kept then add(kept.name:upper() .. "_PITCH", kept.pitch, "floats from token to token of " .. kept.name) end
    add("TOKEN_FLOATS", buffers.token_floats, "floats of all of these, for each token of a chunk")
    for _, buffer in ipairs(buffers.queries) do
        local doc = "floats before attention's " .. buffer.name .. ", for each token that attends"
        add(buffer.name:upper() .. "_AT", buffer.at, doc)
    end
    return list
end

-- The types for which instruction sets need more (isa_list.with_types): of weights, cached values and inputs of
-- products, rows of gen/plan/dtype.lua, the last one nil where they are not rounded; looked: { tables, projection } of
-- lookup FFNs, nil without. Integers are converted and need nothing, unless inputs are integers, too, or rows of
-- tables are summed.
function transformer_plan.isa_types(type, cache, activations, looked)
    local list = { activations and activations.products }
    if not type.integer_gather then list[#list + 1] = type end
    if not cache.integer_gather then list[#list + 1] = cache end
    if looked then
        list[#list + 1] = looked.tables
        if looked.projection.word.integers then list[#list + 1] = looked.projection end
    end
    return list
end

-- Whether one of `steps` does `op`, on the buffer in its field `key` if that is given.
local function has_step(steps, op, key)
    for _, step in ipairs(steps) do
        if step.op == op and (not key or step[key]) then return true end
    end
    return false
end

-- The sums over tokens that `steps` end with: { hidden: where those of hidden values begin, nil: there are none,
-- activates: whether these are activated as they are summed, map: which they are still to go through, pitch }; nil:
-- they end with rows.
local function sums_of(shape, steps, has)
    local last = steps[#steps]
    if not last or last.op ~= "sum" then return nil end
    local of_hidden = last.from ~= nil
    return {
        hidden = of_hidden and shape.sums.hidden,
        activates = of_hidden and last.activates,
        map = of_hidden and has.O,
        pitch = shape.sums.pitch,
    }
end

-- Whether one of `steps` reads the block's input.
local function reads_input(steps)
    for _, step in ipairs(steps) do
        if step.from == "in" or step.a == "in" or step.b == "in" then return true end
    end
    return false
end

-- The inputs of the steps in the lists that round some, each number once; where keys and values are words, also the
-- width of a head.
local function rounded_inputs(shape, lists)
    local list, seen = {}, {}
    if shape.cache.words then
        list[1], seen[shape.width] = shape.width, true
    end
    for _, steps in ipairs(lists) do
        for _, step in ipairs(steps) do
            if step.rounded and not seen[step.inputs] then
                list[#list + 1], seen[step.inputs] = step.inputs, true
            end
        end
    end
    return list
end

-- The types { tables, projection } of lookup FFNs in blocks whose weights are of `type`, from the options of a plan.
function transformer_plan.lookup_types(type, options)
    return {
        tables = options.tables and dtype.get(options.tables) or type,
        projection = dtype.get(options.projection, "projection"),
    }
end

-- Raises one line for options that mean nothing where no block of the model `name` looks up.
function transformer_plan.check_lookup(name, looks_up, options)
    for _, key in ipairs { "tables", "projection" } do
        if options[key] and not looks_up then
            misuse(string.format("--%s: %s: %s has no LookupFFN", key, options[key], name))
        end
    end
end

-- The plan of the blocks of model `m` for the instruction sets `isas`. options, all optional: type, cache, activations,
-- of weights, cache and inputs of products (names, default f32); tables, projection, of lookup FFNs (default type, and
-- f32); schedule, the choices wanted by name of the instruction set; part(maps, before, after), for timing: what is
-- left of linear maps and steps; sequences = { positions = N, means }, where tokens attend to all: calls are for
-- several sequences of together N positions at most, each filled up to a multiple of 32, and give sums over their
-- tokens where only `means` are asked for and shape.sums allows it. Of blocks that are a part of a model:
-- names, of the part (names.part); first_layer, the number of their first layer in the checkpoint; at, where their
-- sections begin in the blob; shared_product(number, isa, product), the name of the model's own kernel for products
-- that are planned so, or nil; one_by_one: schedules have chunks of one token, and calls give no products of several;
-- float_sums: norms sum in floats instead of doubles; unpadded: rows of tables lie close together; threads: the names {
-- ranges, range } of the functions that share a call's tokens among threads of the model's OpenMP build.
function transformer_plan.build(m, isas, options)
    local chain, value, rule = transformer_plan.misfit(m)
    if chain then validated.refuse(m, chain, value, rule) end
    local type = dtype.get(options.type, "type")
    local activations = dtype.activations(options.activations, type)
    local cached = dtype.cached(options.cache, activations, m.attention.shaped)
    local shape = shape_of.of(m, type, cached, activations, options.sequences)
    if shape.shaped and not shape.cache.type.plain then
        misuse("--cache: " .. shape.cache.type.name .. ": must be f32 with attention.shaped")
    end
    local first_layer = options.first_layer or 0
    local own_maps, has = maps_of.of(m, shape, first_layer)
    for _, map in ipairs(activations and own_maps or {}) do
        local most = activations.products.most_inputs
        if most and map.inputs > most then
            local form = '--activations: "%s": %d inputs of %s: must be at most %d'
            misuse(form:format(activations.name, map.inputs, map.letter, most))
        end
    end
    local own = m.attention.eliminate ~= "none" and fusable.obstacle(m, m.attention.eliminate) ~= nil
    local public, sets, choices, wanted = options.names or names.public(m.name), {}, {}, options.schedule or {}
    local looked = shape.lookup and transformer_plan.lookup_types(type, options) or nil
    shape.tables = looked and looked.tables -- their type
    local types = transformer_plan.isa_types(shape.type, shape.cache.type, activations, looked)
    local demanded = { "few", "many", "masks", "cache", shape.type.name, shape.cache.type.name }
    demanded[7] = looked and looked.tables.name
    for i, isa in ipairs(isas) do
        isa = isa_list.with_types(isa, types)
        words.demand(isa, demanded, m.name)
        if activations then words.demand(isa, activations.products.tiers, m.name) end
        sets[i], choices[i] = isa, schedule.make(shape, isa, wanted[isa.name] or {})
    end
    local parts = shape.lookup
            and block_lookup.parts(
                m,
                sets,
                choices,
                looked,
                public,
                shape.made,
                variant.pitch(shape.d),
                variant.pitch(shape.made),
                options.one_by_one,
                options.unpadded
            )
        or {}
    local before, after = steps_of.of(shape, has, parts, options.one_by_one)
    if options.part then
        own_maps, before, after = options.part(own_maps, before, after, shape)
    end
    after = steps_of.joined(shape, after)
    local c = sections.collector(options.at or blob.header_bytes, shape.type, shape.rounded, first_layer)
    sections.add_blocks(c, m, shape, own_maps, parts, first_layer)
    local p = {
        family = "transformer",
        model = m,
        shape = shape,
        names = public,
        maps = own_maps,
        parts = parts,
        sections = c.list,
        pieces = c.pieces,
        tensors = transformer_plan.tensors(c.pieces),
        blocks_prefixes = checkpoint.blocks_prefixes(m), -- the checkpoint's tensors under them are all the model's
        own = own, -- an architecture of its own, that no unfused checkpoint becomes
        -- of what pack reads, and fuse
        samples = samples.of_blocks(m, shape, m.attention.eliminate ~= "none", own, options.first_layer),
        unfused_samples = not own and samples.of_blocks(m, shape, false, false, options.first_layer) or nil,
        packed_bytes = c.at,
        digest = transformer_plan.digest(m, c.list, parts),
        before = before,
        after = after,
        sums = sums_of(shape, after, has),
        reads_input = reads_input(after),
        activates = has_step(after, "activate"),
        copies = has_step(before, "copy") or has_step(after, "copy") or has_step(after, "output", "from"),
        float_sums = options.float_sums or false,
        activations = activations or dtype.get "f32",
        rounded_inputs = rounded_inputs(shape, { before, after }),
        threads = options.threads or false,
        variants = {},
        scratch_bytes = 0,
        decode_scratch_bytes = 0,
        cache_bytes = (shape.sequences and 1 or m.layers) * shape.cache.layer_bytes,
        weights_struct_bytes = 8 * #c.list + 8,
        -- as the manifest records them
        options = {
            type = shape.type.name,
            cache = shape.cache.type.name,
            activations = activations and activations.name,
            tables = looked and options.tables and looked.tables.name,
            projection = looked and options.projection and looked.projection.name,
            schedule = wanted,
            ["for"] = options.machine, -- which LookupFFNs of blocks have their defaults for
        },
        lookup_types = looked,
    }
    for i, isa in ipairs(sets) do
        local v =
            variant.of(m, shape, before, after, isa, choices[i], parts, i, options.shared_product, options.one_by_one)
        if p.threads then
            local by_count = false
            for _, part in ipairs(parts) do
                by_count = by_count or phases.kernels(part, v) ~= nil
            end
            v.phases = phases.of(shape, before, after, v.unpacked_at ~= nil, by_count)
            v.part = phases.part(v, own_maps, parts)
        end
        v.sums_tokens = p.threads and v.part.many or v.chunk -- that a row of sums is of, whatever threads share
        p.variants[i] = v
        p.scratch_bytes = math.max(p.scratch_bytes, v.scratch_bytes)
        p.decode_scratch_bytes = math.max(p.decode_scratch_bytes, v.decode_scratch_bytes)
    end
    p.constants = constants_of(p)
    return p
end

return transformer_plan
