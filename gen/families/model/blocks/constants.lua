-- The constants that kernels of a run of blocks use by name.
local layout = require "gen.families.model.blocks.layout"

local constants = {}

-- What C calls the distance of the rows of a buffer: rows of a token's width share one.
local function pitch_name(buffer, d_pitch)
    local shares = buffer.pitch == d_pitch and (buffer.storage or "float") == "float"
    return (shares and "D" or buffer.name:upper()) .. "_PITCH"
end

-- What lies between the layers of a run, by add(name, value, doc).
local function add_layers(p, add)
    local shape = p.shape
    for _, map in ipairs(p.maps) do
        local words = layout.stored(map.words, shape.type, shape.rounded)
        local what = (shape.rounded or shape.type.groups) and "words of weights of " or "weights of "
        add(map.letter .. "_LAYER", words, what .. map.letter .. " of a layer")
        local scales = shape.type.scaled and ", and scales" or ""
        add(map.letter .. "_BIAS_LAYER", map.pitch, "its biases of a layer" .. scales)
    end
    for _, part in ipairs(p.parts) do
        for _, section in ipairs(part.sections) do
            if section.own and section.layers > 1 then
                add(section.name:upper() .. "_LAYER", section.step, "elements of a layer")
            end
        end
    end
    if shape.qk_norm then add("HEAD_NORM_LAYER", shape.width, "gains of the norm of heads of q or k of a layer") end
    local lsh = shape.lsh
    if lsh then add("SIGNS_LAYER", lsh.rounds * lsh.padded, "floats of attention_signs of a layer") end
    if shape.unit then add("ATTENTION_SCALE_LAYER", shape.heads, "floats of attention_scale of a layer") end
    if shape.shaped then add("ATTENTION_SHAPE_LAYER", 3 * shape.heads, "floats of attention_shape of a layer") end
    if not (shape.sequences or shape.mixed) then add("CACHE_LAYER_BYTES", shape.cache.layer_bytes, "of the cache") end
end

-- Those of an instruction set with these buffers.
local function list_of(p, buffers)
    local list, pitches, shape = {}, {}, p.shape
    local d_pitch = layout.pitch(shape.d)
    local prefix, title = p.names.prefix, nil
    local function open(what, more) title = what .. (more or "") .. "." end
    local function add(name, value, doc)
        list[#list + 1] = { name = prefix .. name, value = value, doc = doc, title = title }
    end
    local function add_pitch(buffer, what)
        local name = pitch_name(buffer, d_pitch)
        local of = name == "D_PITCH" and "buffers with rows of D" or buffer.name
        if not pitches[name] then add(name, buffer.pitch, what .. " from token to token of " .. of) end
        pitches[name], pitches[buffer.name] = true, name
    end
    open("Widths", ": of tokens, and of linear maps")
    if prefix ~= "" then
        add("D", shape.d, "width of a token")
        if shape.input ~= shape.d then add("D_IN", shape.input, "width of a token's input") end
    end
    for _, map in ipairs(p.maps) do
        add(map.letter .. "_INPUTS", map.inputs, "inputs of " .. map.letter)
        add(map.letter .. "_PANELS", map.panels, "its panels of " .. layout.panel .. " outputs")
    end
    open("Elements from layer to layer")
    if shape.layers > 1 then add_layers(p, add) end
    open("The cache")
    for _, part in ipairs(shape.cache.parts) do
        local name = part.name:upper()
        local mixed = shape.mixed and " for each of its positions" or ""
        if part.at > 0 then
            add(name .. "_AT", shape.mixed and part.position_at or part.at, "bytes into a layer's cache" .. mixed)
        end
        if shape.cached_heads > 1 then
            add(name .. "_HEAD", shape.mixed and part.step or part.head, "elements of a head in the cache" .. mixed)
        end
    end
    add("CACHE_POSITIONS", shape.cache.positions, "positions that the cache holds")
    if shape.mixed then add("RING_POSITIONS", shape.cache.ring_positions, "of a layer with the window") end
    add("TILE_POSITIONS", layout.keys, "positions whose keys lie side by side")
    if not (shape.from_keys or shape.lsh) then
        add("KEY_TILE", shape.cache.key_tile, (shape.cache.words and "words" or "elements") .. " of these keys")
    end
    local row = shape.from_keys and "row of keys" or "value"
    add("VALUE_PITCH", shape.cache.pitch, "elements of a " .. row .. ", filled up")
    if shape.cache.limit then add("SUM_LIMIT", shape.cache.limit, "units: sums in rows of tables are below it") end
    if shape.cache.code_pitch then add("CODE_PITCH", shape.cache.code_pitch, "codes from table to table") end
    if p.sums then
        add("SUMS_PITCH", shape.sums.pitch, "floats from row to row of sums over tokens")
        if p.sums.hidden then add("SUMS_HIDDEN_AT", p.sums.hidden, "where those of hidden values begin") end
    end
    if shape.rope then add("ROPE_PAIRS", shape.rope.half, "pairs of elements of a head that are rotated") end
    local rows = ", in scratch: buffers behind each other, with a row for each token of a chunk"
    open("Rows of tokens", rows .. ". _AT: floats before one, for each token")
    if shape.given then
        add("IN_K", shape.q, "where k lies in the input of a block")
        add("IN_V", shape.q + shape.e, "and v")
    end
    if shape.qkv then
        add("LOOKED_K", shape.q, "where k lies in a row of tables, behind q")
        add("LOOKED_V", shape.q + shape.e, "then v")
        add("LOOKED_OUTPUT", shape.output_at, "and what is added to attention's output")
    end
    if shape.projected and shape.skip then
        add("IN_SKIPPED", shape.q + 2 * shape.e, "and what the skip connection adds")
    end
    for _, buffer in ipairs(buffers.tokens) do
        local name = buffer.name:upper()
        local what = buffer.storage == "float" and "floats" or "words"
        add_pitch(buffer, what)
        add(name .. "_AT", buffer.at)
    end
    local kept = buffers.of_call
    if kept then add_pitch(kept, "floats") end
    add("TOKEN_FLOATS", buffers.token_floats, "of all of these")
    if buffers.tile_floats > 0 then add("TILE_FLOATS", buffers.tile_floats, "behind them: of the keys of a tile") end
    open("What attention", " works in, behind them, for each token that attends. _AT: floats before that")
    for _, buffer in ipairs(buffers.queries) do
        add(buffer.name:upper() .. "_AT", buffer.at)
    end
    return list, pitches
end

-- The offsets and strides that kernels use by name: { name, value, doc, title: of those that follow each other }; and
-- the names of pitches by those of buffers. All instruction sets share them: a value that differs is a mistake in the
-- plan.
function constants.of(p)
    local list, pitches = list_of(p, p.variants[1].buffers)
    for _, v in ipairs(p.variants) do
        for i, row in ipairs((list_of(p, v.buffers))) do
            assert(row.value == list[i].value, row.name .. ": differs from one instruction set to another")
        end
    end
    return list, pitches
end

return constants
