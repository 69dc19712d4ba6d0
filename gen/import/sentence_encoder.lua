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

-- The name of a layer, and of the tensor of its q, k and v.
local function name_of(number) return "Layer_" .. number .. "/TransformerLayer/" end
local function packed_of(layer)
    return variables .. layer .. "MultiheadAttention/qkv_transform_single/kernel/part_0"
end

-- Whether these are the tensors of such an encoder.
function sentence_encoder.claims(tensors)
    local found = by_name(tensors)
    return found["module/Embeddings_en"] ~= nil and found[packed_of(name_of(0))] ~= nil
end

-- Reads the graph; each function raises one line where it is another one.
local function reader(path, object, tensors)
    local r, nodes = { found = by_name(tensors) }, nodes_of(object)
    function r.other(what)
        fields.refuse(path, "modelTopology", nil, "is no sentence encoder as known here: " .. what)
    end
    function r.tensor(name, rank)
        local one = r.found[name]
        if not one or #one.shape ~= rank or not one.bytes or #one.bytes == 0 then r.other(name .. " is missing") end
        return one
    end
    function r.number(name)
        local one = r.tensor(name, 0)
        if one.dtype ~= "F32" then r.other(name .. " is no float32") end
        return (string.unpack("<f", one.bytes))
    end
    function r.has(name, op, inputs)
        local node = nodes[name]
        if not node or node.op ~= op then r.other(name .. " must be " .. op) end
        for i, input in ipairs(inputs or {}) do
            if type(node.input) ~= "table" or node.input[i] ~= input then r.other(name .. " must take " .. input) end
        end
    end
    return r
end

-- The embedding of words that are `width` wide: a word's row is added to itself with its position.
local function embedding_of(r, width)
    local signal = encode .. "TransformerStack/Layer_0/AddTimingSignal/"
    r.has(
        encode .. "TransformerStack/Layer_0/add",
        "Add",
        { encode .. "Scatter/ScatterNd", signal .. "Scatter/ScatterNd" }
    )
    local steps = r.tensor(signal .. "TimingSignal/ExpandDims_1", 2)
    local count = steps.shape[2]
    for i = 0, count - 1 do
        local frequency = string.unpack("<f", steps.bytes, 4 * i + 1)
        if math.abs(frequency - 10000.0 ^ (-i / (count - 1))) > 1e-6 then r.other "frequencies of positions" end
    end
    if 2 * count ~= width then r.other "positions are as wide as words" end
    return { scale = 2, sinusoidal = { order = "halves", steps = "n-1" } }
end

-- The entry of `layer` in a model's layers, whose input is `width` wide, and the hidden width of its FFN.
local function entry_of(r, layer, width)
    local stack = encode .. "TransformerStack/" .. layer
    local packed = r.tensor(packed_of(layer), 4)
    local out = r.tensor(variables .. layer .. "MultiheadAttention/output_transform_single/kernel/part_0", 4)
    local first = r.tensor(stack .. "FFN/conv1/Tensordot/Reshape_1", 2)
    local scale = r.number(stack .. "MultiheadAttention/mul/y")
    local head = math.floor(scale ^ -2 + 0.5)
    local all = packed.shape[4] // 3
    if not (scale > 0) or head < 1 or all % head ~= 0 then r.other(layer .. " has no whole heads") end
    r.has(stack .. "FFN/conv1/Relu", "Relu")
    local entry = { d = out.shape[4], heads = all // head }
    if head * entry.heads ~= entry.d then entry.head_dim = head end
    if width ~= entry.d then entry.d_in = width end
    return entry, first.shape[2]
end

-- Gives model `m` its layers, and what is the same for most of them.
local function add_layers(m, r, width)
    m.layers = {}
    while r.found[packed_of(name_of(#m.layers))] do
        if #m.layers == most_layers then r.other("more than " .. most_layers .. " layers") end
        local entry, f = entry_of(r, name_of(#m.layers), width)
        m.layers[#m.layers + 1] = entry
        m.ffn = { kind = "mlp", f = f, activation = "relu" }
        width = entry.d
    end
    local last = m.layers[#m.layers]
    m.d, m.heads = last.d, last.heads
    for _, entry in ipairs(m.layers) do
        if entry.d == m.d then entry.d = nil end
        if entry.heads == m.heads then entry.heads = nil end
        if next(entry) == nil then entry.count = 1 end
    end
    local norm = encode .. "TransformerStack/" .. name_of(#m.layers - 1) .. "FFN/layer_prepostprocess/layer_norm/"
    m.norm = { kind = "layernorm", eps = tonumber(string.format("%.7g", r.number(norm .. "Cast/x"))) }
end

-- The table of its model file: sizes from the tensors' shapes, and what is no size from the graph. Raises one line
-- where the graph is another one.
function sentence_encoder.model(path, object, tensors)
    local r = reader(path, object, tensors)
    local words = r.tensor("module/Embeddings_en", 2)
    local m = { vocab = words.shape[1], skip = true, checkpoint = "use" }
    m.embedding = embedding_of(r, words.shape[2])
    add_layers(m, r, words.shape[2])
    local most = r.tensor(scope .. "ClipToMaxLength/Less/y", 0)
    if most.dtype ~= "I32" then r.other "ClipToMaxLength/Less/y is no int32" end
    m.attention = { causal = false, context = (string.unpack("<i4", most.bytes)) }
    r.has("module_apply_default/Encoder_en/hidden_layers/tanh_layer_0/Tanh", "Tanh")
    r.has("module_apply_default/Encoder_en/hidden_layers/l2_normalize", "Mul")
    local dense = r.tensor("module/Encoder_en/hidden_layers/tanh_layer_0/weights", 2)
    m.output = { pool = "mean", dense = { width = dense.shape[2], activation = "tanh" }, unit = true }
    return m
end

return sentence_encoder
