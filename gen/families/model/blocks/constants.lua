-- The constants that kernels of a run of blocks use by name.
local layout = require "gen.families.model.blocks.layout"

local constants = {}

-- The offsets and strides that kernels use by name: { name, value, doc }. All instruction sets share them.
function constants.of(p)
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

return constants
