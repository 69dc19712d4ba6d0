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

-- The weights of a layer: { fields, maps: { name, letter, places }, lookups }.
local function layer_of(p)
    local shape, fields, maps = p.shape, {}, {}
    local function add(field) fields[#fields + 1] = field end
    for _, map in ipairs(p.maps) do
        add { type = structs.matrix(p).name .. " ", name = map.field, doc = "the linear map " .. map.letter }
        maps[#maps + 1] = { name = map.field, letter = map.letter, places = of_map(p, map) }
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
        add(place("cosines", "cosines", nil, "of the angles of positions, the same in all layers"))
        add(place("sines", "sines", nil, "likewise"))
    end
    if shape.full_layers then add { type = "size_t ", name = "window", doc = "positions that a token attends to" } end
    if p.parts[1] then
        add { type = p.parts[1].plan.names.weights .. " ", name = "lookup", doc = "the LookupFFN" }
        if p.parts[2] then add { type = "size_t ", name = "number", doc = "of the layer" } end
    end
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
    fields[#fields + 1] = { type = "float *", name = "attention", doc = "what attention works in" }
    if structs.converts(p) then
        local doc = "room for weights converted to floats, or null"
        fields[#fields + 1] = { type = "float *", name = "strip", doc = doc }
    end
    return fields
end

-- The rows that attention of plan `p` reads and writes, q, k, v and y, and codes: { name, from: the buffer that they
-- are rows of, at: the constant where they begin in these, or nil, codes: whether they are no rows }.
function structs.attended(p)
    local list = {}
    local function add(name, from, at)
        local constant = at and at > 0 and steps_of.constant_of(p.shape, at) or nil
        list[#list + 1] = { name = name, from = from, at = constant, codes = name:find "_codes$" ~= nil }
    end
    for _, steps in ipairs { p.before, p.after } do
        for _, step in ipairs(steps) do
            local attends = step.op == "attend"
            if attends then add("q", step.from) end
            if step.k then add("k", step.k, step.k_at) end
            if step.v then add("v", step.v, step.v_at) end
            if attends then add("y", step.to) end
            if step.q_codes then add("q_codes", step.q_codes) end
            if step.k_codes then add("k_codes", step.k_codes) end
        end
    end
    return list
end

-- What attention reads, works in and writes. Where only a part of the steps is timed, rows of others are no rows.
local function attention_of(p)
    local fields, seen, rows = {}, {}, structs.attended(p)
    for _, list in ipairs { p.attended, rows } do
        for _, item in ipairs(list) do
            local type = item.codes and "uint16_t *" or p.names.rows .. " "
            if not seen[item.name] then fields[#fields + 1] = { type = type, name = item.name } end
            seen[item.name] = true
        end
    end
    for _, item in ipairs(p.variants[1].buffers.queries) do
        fields[#fields + 1] = { type = item.storage .. " *", name = item.name, item = item }
    end
    if p.variants[1].buffers.tile_floats > 0 then
        fields[#fields + 1] = { type = "float *", name = "tile", doc = "keys of a tile as floats" }
    end
    return fields, rows
end

-- A call: rows, and where these stand.
local function call_of(p)
    local names, fields = p.names, {}
    local function add(type, name, doc) fields[#fields + 1] = { type = type, name = name, doc = doc } end
    add("const " .. names.weights .. " *", "weights")
    add("unsigned char *", "cache")
    add(names.rows .. " ", "in", "of the layer at hand, which are only read")
    add(names.rows .. " ", "y")
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

-- The widths of rows that steps copy, each once, and whether they add rows up.
local function row_steps_of(p)
    local copied, seen, adds = {}, {}, false
    for _, list in ipairs { p.before, p.after } do
        for _, step in ipairs(list) do
            local copies = step.op == "copy" or step.op == "output" and step.from
            local width = step.op == "copy" and step.width or p.shape.d
            adds = adds or step.op == "add" or step.op == "output" and not step.from
            if copies and not seen[width] then
                copied[#copied + 1], seen[width] = width, true
            end
        end
    end
    return copied, adds
end

-- All of them, and what fills them:
--   layer         fields, { type, name, doc } each, of: the section that it is a place in, step: the constant of its
--                 distance from layer to layer; maps: { name, letter, places: such fields of a linear map };
--                 lookups: { count, places }
--   cache, buffers, attention, call   fields; at: where a part of the cache lies; item: a buffer in scratch
--   attention_rows   those of attention that lie in buffers, as structs.attended has them
--   matrix        the struct of its linear maps
--   uses_weights, converts   whether there are weights of layers, and whether some are converted to floats
--   copied, adds  widths of rows that steps copy, and whether they add some up
function structs.of(p)
    local attention, rows = attention_of(p)
    local copied, adds = row_steps_of(p)
    local layer = layer_of(p)
    return {
        layer = layer,
        cache = cache_of(p),
        buffers = buffers_of(p),
        attention = attention,
        attention_rows = rows,
        call = call_of(p),
        matrix = structs.matrix(p).name,
        uses_weights = #layer.fields > 0,
        converts = structs.converts(p),
        copied = copied,
        adds = adds,
    }
end

return structs
