-- Recognises the Universal Sentence Encoder lite among the tensors of a TensorFlow.js graph, and makes its model file.
local fields = require "gen.import.fields"

local sentence_encoder = {}

local scope = "module_apply_default/Encoder_en/KonaTransformer/"
local encode = scope .. "Encode/"
local variables = "module/Encoder_en/KonaTransformer/Encode/"
local most_layers = 64

-- The graph's nodes by name.
local function nodes_of(object)
    local topology, nodes = object.modelTopology, {}
    for _, node in ipairs(type(topology) == "table" and type(topology.node) == "table" and topology.node or {}) do
        if type(node) == "table" and type(node.name) == "string" then nodes[node.name] = node end
    end
    return nodes
end

local function by_name(tensors)
    local found = {}
    for _, tensor in ipairs(tensors) do
        found[tensor.name] = tensor
    end
    return found
end

-- Whether these are the tensors of such an encoder.
function sentence_encoder.claims(tensors)
    local found = by_name(tensors)
    return found["module/Embeddings_en"] ~= nil
        and found[variables .. "Layer_0/TransformerLayer/MultiheadAttention/qkv_transform_single/kernel/part_0"]
            ~= nil
end

-- The table of its model file: sizes from the tensors' shapes, and what is no size from the graph. Raises one line
-- where the graph is another one.
function sentence_encoder.model(path, object, tensors)
    local found, nodes = by_name(tensors), nodes_of(object)
    local function other(what)
        fields.refuse(path, "modelTopology", nil, "is no sentence encoder as known here: " .. what)
    end
    local function tensor(name, rank)
        local one = found[name]
        if not one or #one.shape ~= rank or not one.bytes or #one.bytes == 0 then other(name .. " is missing") end
        return one
    end
    local function number(name)
        local one = tensor(name, 0)
        if one.dtype ~= "F32" then other(name .. " is no float32") end
        return (string.unpack("<f", one.bytes))
    end
    local function has(name, op, inputs)
        local node = nodes[name]
        if not node or node.op ~= op then other(name .. " must be " .. op) end
        for i, input in ipairs(inputs or {}) do
            if type(node.input) ~= "table" or node.input[i] ~= input then other(name .. " must take " .. input) end
        end
    end
    local words = tensor("module/Embeddings_en", 2)
    local m = {
        vocab = words.shape[1],
        layers = {},
        skip = true,
        checkpoint = "use",
        norm = { kind = "layernorm" },
    }
    -- A word's row is added to itself with its position.
    has(
        encode .. "TransformerStack/Layer_0/add",
        "Add",
        { encode .. "Scatter/ScatterNd", encode .. "TransformerStack/Layer_0/AddTimingSignal/Scatter/ScatterNd" }
    )
    m.embedding = { scale = 2, sinusoidal = { order = "halves", steps = "n-1" } }
    local steps = tensor(encode .. "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1", 2)
    local count = steps.shape[2]
    for i = 0, count - 1 do
        local frequency = string.unpack("<f", steps.bytes, 4 * i + 1)
        if math.abs(frequency - 10000.0 ^ (-i / (count - 1))) > 1e-6 then other "frequencies of positions" end
    end

    local width = words.shape[2]
    if 2 * count ~= width then other "positions are as wide as words" end
    local packed_end = "MultiheadAttention/qkv_transform_single/kernel/part_0"
    local function packed_of(layer) return variables .. layer .. packed_end end
    local function name_of(number_of) return "Layer_" .. number_of .. "/TransformerLayer/" end
    while found[packed_of(name_of(#m.layers))] do
        local number_of, layer = #m.layers, name_of(#m.layers)
        if number_of == most_layers then other("more than " .. most_layers .. " layers") end
        local packed = tensor(packed_of(layer), 4)
        local out = tensor(variables .. layer .. "MultiheadAttention/output_transform_single/kernel/part_0", 4)
        local first = tensor(encode .. "TransformerStack/" .. layer .. "FFN/conv1/Tensordot/Reshape_1", 2)
        local scale = number(encode .. "TransformerStack/" .. layer .. "MultiheadAttention/mul/y")
        local head = math.floor(scale ^ -2 + 0.5)
        local all = packed.shape[4] // 3
        if not (scale > 0) or head < 1 or all % head ~= 0 then other(layer .. " has no whole heads") end
        has(encode .. "TransformerStack/" .. layer .. "FFN/conv1/Relu", "Relu")
        local entry = { d = out.shape[4], heads = all // head }
        if head * entry.heads ~= entry.d then entry.head_dim = head end
        if width ~= entry.d then entry.d_in = width end
        m.layers[number_of + 1] = entry
        m.ffn = { kind = "mlp", f = first.shape[2], activation = "relu" }
        width = entry.d
    end
    local last = m.layers[#m.layers]
    m.d, m.heads = last.d, last.heads
    for _, entry in ipairs(m.layers) do
        if entry.d == m.d then entry.d = nil end
        if entry.heads == m.heads then entry.heads = nil end
        if next(entry) == nil then entry.count = 1 end
    end
    local eps = encode .. "TransformerStack/" .. name_of(#m.layers - 1) .. "FFN/layer_prepostprocess/layer_norm/Cast/x"
    m.norm.eps = tonumber(string.format("%.7g", number(eps)))
    local most = tensor(scope .. "ClipToMaxLength/Less/y", 0)
    if most.dtype ~= "I32" then other "ClipToMaxLength/Less/y is no int32" end
    m.attention = { causal = false, context = (string.unpack("<i4", most.bytes)) }
    has("module_apply_default/Encoder_en/hidden_layers/tanh_layer_0/Tanh", "Tanh")
    has("module_apply_default/Encoder_en/hidden_layers/l2_normalize", "Mul")
    local dense = tensor("module/Encoder_en/hidden_layers/tanh_layer_0/weights", 2)
    m.output = { pool = "mean", dense = { width = dense.shape[2], activation = "tanh" }, unit = true }
    return m
end

return sentence_encoder
