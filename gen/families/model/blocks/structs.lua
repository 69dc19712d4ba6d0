-- The structs that the functions of a run of blocks take: the weights of a layer, its part of the cache, the rows of a
-- chunk of tokens, and what attention works in. Every run has them; what a model lacks is a field that does not exist.
local product = require "gen.families.model.blocks.product"
local steps_of = require "gen.families.model.blocks.steps"

local structs = {}

-- A field: { type, name, doc }. One that is a place in the blob has { of: the section, step: the constant of its
-- distance from layer to layer, or nil }.
local function place(name, of, step, doc)
    return { type = "const float *", name = name, of = of, step = step, doc = doc }
end

-- The places of the fields of a linear map.
local function of_map(p, map)
    local shape, letter = p.shape, map.letter
    local list = { place("weights", map.field, letter .. "_LAYER") }
    if shape.type.scaled then list[2] = place("scales", map.field .. "_scales", letter .. "_BIAS_LAYER") end
    list[#list + 1] = place("bias", map.field .. "_bias", letter .. "_BIAS_LAYER")
    return list
end

-- The weights of a layer as the kernels of each part of its FFN find them: { count: of layers, places }.
local function lookups_of(p)
    local lookups = {}
    for i, part in ipairs(p.parts) do
        local places = {}
        for n, section in ipairs(part.sections) do
            places[n] = place(section.field, section.name, section.layers > 1 and section.name:upper() .. "_LAYER")
        end
        lookups[i] = { count = part.count, places = places }
    end
    return lookups
end

-- The weights of a layer: { fields, maps: { name, letter, places }, lookups }. What a single step reads is no field,
-- but filled right before: a linear map, the weights of a LookupFFN. Fields that the kernel of attention reads, too,
-- are marked: a window where only some layers have one, and angles where keys are rotated when they are read.
local function layer_of(p)
    local shape, fields, maps = p.shape, {}, {}
    local function add(field, attends)
        field.attends = attends
        fields[#fields + 1] = field
    end
    add { type = "const " .. p.names.weights .. " *", name = "weights", doc = "of all layers" }
    add { type = "size_t ", name = "number", doc = "of the layer" }
    for i, map in ipairs(p.maps) do
        maps[i] = { name = map.field, letter = map.letter, places = of_map(p, map) }
    end
    local sections = {}
    for _, section in ipairs(p.sections) do
        sections[section.name] = true
    end
    for _, norm in ipairs(shape.norms) do
        local name = norm.word .. "_norm"
        if sections[name] then add(place(name, name, "D", "gains of the " .. norm.doc)) end
        if sections[name .. "_offset"] then
            add(place(name .. "_offset", name .. "_offset", "D", "and its offsets"))
        end
    end
    if shape.qk_norm then
        add(place("q_norm", "q_norm", "HEAD_NORM_LAYER", "gains of the norm of heads of q"))
        add(place("k_norm", "k_norm", "HEAD_NORM_LAYER", "and of k"))
    end
    local step = "ATTENTION_SCALE_LAYER"
    if shape.unit then add(place("attention_scale", "attention_scale", step, "of each head")) end
    step = "ATTENTION_SHAPE_LAYER"
    if shape.shaped then add(place("attention_shape", "attention_shape", step, "alpha, beta, gamma of each head")) end
    if shape.lsh then add(place("signs", "attention_signs", "SIGNS_LAYER", "that heads are multiplied by")) end
    if shape.rope then
        add(place("cosines", "cosines", nil, "of the angles of positions, the same in all layers"), shape.from_keys)
        add(place("sines", "sines", nil, "likewise"), shape.from_keys)
    end
    local window = { type = "size_t ", name = "window", doc = "positions that a token attends to" }
    if shape.full_layers then add(window, true) end
    return { fields = fields, maps = maps, lookups = lookups_of(p) }
end

-- A layer's part of the cache, from the position on at which a sequence starts.
local function cache_of(p)
    local fields = {}
    for _, part in ipairs(p.shape.cache.parts) do
        fields[#fields + 1] = { type = part.storage .. " *", name = part.name, at = part.at }
    end
    if p.shape.mixed then
        fields[#fields + 1] = { type = "size_t ", name = "positions", doc = "that the layer holds" }
    end
    return fields
end

-- The rows of a chunk, each of a buffer in scratch (variant.lua), and what else its steps work in.
local function buffers_of(p)
    local fields, v, names = {}, p.variants[1], p.names
    fields[1] = { type = names.rows .. " ", name = "in", doc = "the block's input, which is only read" }
    for _, item in ipairs(v.buffers.tokens) do
        local types = { float = names.rows .. " ", uint32_t = names.rounded_rows .. " ", uint16_t = "uint16_t *" }
        fields[#fields + 1] = { type = types[item.storage], name = item.name, storage = item.storage }
    end
    local kept = v.buffers.of_call
    if kept then
        fields[#fields + 1] = { type = names.rows .. " ", name = kept.name, doc = "kept of all tokens of a call" }
    end
    for _, item in ipairs(p.shape.lsh and v.buffers.queries or {}) do
        fields[#fields + 1] = { type = item.storage .. " *", name = item.name, item = item }
    end
    if not p.shape.lsh then
        fields[#fields + 1] = { type = "float *", name = "attention", doc = "what attention works in" }
    end
    if structs.converts(p) then
        local doc = "room for weights converted to floats, or null"
        fields[#fields + 1] = { type = "float *", name = "strip", doc = doc }
    end
    return fields
end

-- The rows that attention of plan `p` reads and writes, by name, q, k, v and y: { from: the buffer that they are rows
-- of, at: the constant where they begin in these, or nil }.
local function rows_of(p)
    local rows = {}
    local function add(name, from, at)
        rows[name] = { from = from, at = at and at > 0 and steps_of.constant_of(p.shape, at) or nil }
    end
    for _, steps in ipairs { p.before, p.after } do
        for _, step in ipairs(steps) do
            local attends = step.op == "attend"
            if attends then add("q", step.from) end
            if step.k then add("k", step.k, step.k_at) end
            if step.v then add("v", step.v, step.v_at) end
            if attends then add("y", step.to) end
        end
    end
    return rows
end

-- What the kernel of attention by tables reads, works in and writes: of a head of k and v.
local function table_attention_of(p)
    local fields = {}
    for _, name in ipairs(p.shape.causal and { "q", "k", "v", "y" } or { "q", "y" }) do
        fields[#fields + 1] = { type = p.names.rows .. " ", name = name }
        local codes = { type = "uint16_t *", name = name .. "_codes" }
        if name == "q" or name == "k" then fields[#fields + 1] = codes end
    end
    if not p.shape.causal then fields[#fields + 1] = { type = "float *", name = "table" } end
    return fields
end

-- What the kernel of attention reads, works in and writes; first what is of the layer.
local function attention_of(p, layer)
    if p.shape.lsh then return table_attention_of(p) end
    local fields = {}
    for _, field in ipairs(layer.fields) do
        if field.attends then
            fields[#fields + 1] = { type = field.type, name = field.name, doc = field.doc, of_layer = true }
        end
    end
    for _, item in ipairs(p.variants[1].buffers.queries) do
        fields[#fields + 1] = { type = item.storage .. " *", name = item.name, item = item }
    end
    if p.variants[1].buffers.tile_floats > 0 then
        fields[#fields + 1] = { type = "float *", name = "tile", doc = "keys of a tile as floats" }
    end
    return fields
end

-- A call: rows, and where these stand.
local function call_of(p)
    local names, fields = p.names, {}
    local function add(type, name, doc) fields[#fields + 1] = { type = type, name = name, doc = doc } end
    add("const " .. names.weights .. " *", "weights")
    add("unsigned char *", "cache")
    add("float *", "in", "rows of the layer at hand, which are only read")
    if p.shape.delivered then add("size_t ", "in_step") end
    add("float *", "y")
    if p.shape.sequences then
        add("const size_t *", "offsets", "of sequence s from offsets[s] - offsets[0] on")
    else
        add("size_t ", "first", "the position of the first token")
    end
    add("size_t ", "tokens")
    return fields
end

-- Whether products of plan `p`, of a run of blocks or of a model, convert weights to floats for some instruction set.
function structs.converts(p)
    for _, v in ipairs(p.variants) do
        if v.product.unpacks then return true end
    end
    return false
end

-- The struct of a linear map of plan `p`: { name, storage, scaled, converts, product: what the kernel of products is
-- called }.
function structs.matrix(p)
    local kernel = product.name(p.type, p.rounded)
    return {
        name = p.names.matrix((kernel:gsub("^product_", ""))),
        storage = p.rounded and p.rounded.storage or p.type.storage,
        scaled = p.type.scaled,
        converts = structs.converts(p),
        product = kernel,
    }
end

-- What steps do: the widths of rows that they copy, each once, whether they add rows up, and whether they look up.
local function row_steps_of(p)
    local copied, seen, adds, looks_up = {}, {}, false, false
    for _, list in ipairs { p.before, p.after } do
        for _, step in ipairs(list) do
            looks_up = looks_up or step.op == "lookup"
            local copies = step.op == "copy" or step.op == "output" and step.from
            local width = step.op == "copy" and step.width or p.shape.d
            adds = adds or step.op == "add" or step.op == "output" and not step.from
            if copies and not seen[width] then
                copied[#copied + 1], seen[width] = width, true
            end
        end
    end
    return copied, adds, looks_up
end

-- All of them, and what fills them:
--   layer         fields, { type, name, doc } each, of: the section that it is a place in, step: the constant of its
--                 distance from layer to layer; maps: { name, letter, places: such fields of a linear map };
--                 lookups: { count, places }
--   cache, buffers, attention, call   fields; at: where a part of the cache lies; item: a buffer in scratch;
--                 of_layer: a field of the layer, too
--   lookup        the struct of the weights of a LookupFFN; false: no step looks up
--   rows          q, k, v and y of attention, as rows_of has them
--   matrix        the struct of its linear maps
--   converts      whether weights are converted to floats
--   copied, adds  widths of rows that steps copy, and whether they add some up
function structs.of(p)
    local copied, adds, looks_up = row_steps_of(p)
    local layer = layer_of(p)
    return {
        layer = layer,
        cache = cache_of(p),
        buffers = buffers_of(p),
        attention = attention_of(p, layer),
        lookup = looks_up and p.parts[1].plan.names.weights or false,
        rows = rows_of(p),
        call = call_of(p),
        matrix = structs.matrix(p).name,
        converts = structs.converts(p),
        copied = copied,
        adds = adds,
    }
end

return structs
