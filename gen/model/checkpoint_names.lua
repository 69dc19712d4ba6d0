-- The tensor names and layouts of transformers' checkpoints: where a projection's matrix, stored [out][in], and its
-- bias are found.
local checkpoint = {}

-- One row a family: `layer` stands before the names of layer %d; q, k, v, p (attention), m and o (FFN) are linear maps,
-- `packed` holds q, k and v as [heads][3][d / heads][d]. `norms`: of attention and FFN. `behind`: what follows the last
-- block and stays as it is. `separate`: names of q, k, v once they are not packed any more.
local families = {
    llama = {
        output = { norm = "model.norm", head = "lm_head", dense = "dense" },
        embeddings = { word = "model.embed_tokens.weight" },
        head = "lm_head.weight",
        needs_head = true,
        behind = { "lm_head.", "model.norm.", "score." },
        layer = "model.layers.%d.",
        q = "self_attn.q_proj",
        k = "self_attn.k_proj",
        v = "self_attn.v_proj",
        p = "self_attn.o_proj",
        mlp = { "mlp.up_proj" },
        glu = { "mlp.gate_proj", "mlp.up_proj" },
        o = "mlp.down_proj",
        lookup = "mlp.",
        norms = { "input_layernorm", "post_attention_layernorm" },
    },
    gpt_neox = {
        output = { norm = "gpt_neox.final_layer_norm", head = "embed_out", dense = "dense" },
        embeddings = { word = "gpt_neox.embed_in.weight" },
        head = "embed_out.weight",
        needs_head = true,
        behind = { "embed_out.", "gpt_neox.final_layer_norm." },
        layer = "gpt_neox.layers.%d.",
        packed = "attention.query_key_value",
        q = "attention.query",
        k = "attention.key",
        v = "attention.value",
        p = "attention.dense",
        mlp = { "mlp.dense_h_to_4h" },
        o = "mlp.dense_4h_to_h",
        lookup = "mlp.",
        norms = { "input_layernorm", "post_attention_layernorm" },
    },
    roberta = {
        output = {
            dense = "lm_head.dense",
            dense_norm = "lm_head.layer_norm",
            head = "lm_head.decoder",
            classes = "classifier.out_proj",
        },
        embeddings = {
            norm = "roberta.embeddings.LayerNorm",
            word = "roberta.embeddings.word_embeddings.weight",
            positions = "roberta.embeddings.position_embeddings.weight",
            token_types = "roberta.embeddings.token_type_embeddings.weight",
        },
        head = "lm_head.decoder.weight",
        behind = { "lm_head.", "classifier.", "roberta.pooler." },
        layer = "roberta.encoder.layer.%d.",
        q = "attention.self.query",
        k = "attention.self.key",
        v = "attention.self.value",
        p = "attention.output.dense",
        mlp = { "intermediate.dense" },
        o = "output.dense",
        lookup = "FFN.",
        norms = { "attention.output.LayerNorm", "output.LayerNorm" },
    },
}

-- Ends of names of buffers that some versions save beside the weights; they hold no weights.
local buffers = {
    "%.rotary_emb%.inv_freq$",
    "%.position_ids$",
    "%.embeddings%.token_type_ids$",
    "%.attention%.bias$",
    "%.attention%.masked_bias$",
}

function checkpoint.family(m) return families[m.checkpoint] end

-- Whether a tensor only repeats what the model file says.
function checkpoint.is_buffer(name)
    for _, pattern in ipairs(buffers) do
        if ("." .. name):find(pattern) then return true end
    end
    return false
end

-- What the names of the tensors of all blocks start with.
function checkpoint.blocks_prefix(m) return (families[m.checkpoint].layer:match "^(.-)%%d") end

-- Names of norms that some models have inside attention.
local inner_norms = { "[qk]_norm%.", "[qk]_layernorm%.", "query_norm%.", "key_norm%.", "query_layernorm%." }

-- Why model `m` leaves a tensor out, or what would help; nil: nobody knows. Behind it true, if that also explains why
-- others are missing.
function checkpoint.left_out(m, name)
    local family, prefix = families[m.checkpoint], checkpoint.blocks_prefix(m)
    local number, rest = name:match("^(%d+)%.(.*)$", name:sub(1, #prefix) == prefix and #prefix + 1 or #name + 1)
    rest = rest or name
    local function is_of(map) return map and rest:sub(1, #map + 1) == map .. "." end
    local trained_so = m.skip or m.norm or m.parallel and m.attention.eliminate:find("P", 1, true)
    if number and tonumber(number) >= m.layers then return "the model file has layers = " .. m.layers end
    for letter in m.attention.eliminate:gmatch "%u" do
        if is_of(family[letter:lower()]) or letter ~= "P" and is_of(family.packed) then
            if not trained_so then return "run lookupc fuse first", true end
            return string.format(
                'the model file has attention.eliminate = "%s", with which such a model is trained',
                m.attention.eliminate
            )
        end
    end
    for _, pattern in ipairs(inner_norms) do
        if rest:find(pattern) then return "lookupc has no norms of q and k" end
    end
    if not m.norm and rest:lower():find "norm" then return "the model file has no norm" end
    for _, norm in ipairs(family.norms) do
        if m.norm and m.norm.kind == "rmsnorm" and rest == norm .. ".bias" then
            return 'the model file has norm.kind = "rmsnorm", which has no bias'
        end
    end
    local ffn = { family.o, table.unpack(family.glu or family.mlp) }
    for _, map in ipairs(ffn) do
        if is_of(map) then return string.format('the model file has ffn.kind = "%s"', m.ffn.kind) end
    end
end

-- Whether a tensor belongs to what follows the last block.
function checkpoint.is_behind(m, name)
    for _, start in ipairs(families[m.checkpoint].behind) do
        if name:sub(1, #start) == start then return true end
    end
    return false
end

local function with_bias(name, shape, rows, columns, layout)
    layout = layout or {}
    local function view(suffix, of, width)
        return {
            tensor = name .. suffix,
            shape = of,
            rows = rows,
            columns = width,
            group = layout.group,
            stride = layout.stride,
            offset = layout.offset,
        }
    end
    local bias_shape = { table.unpack(shape, 1, #shape - 1) }
    return { weight = view(".weight", shape, columns), bias = view(".bias", bias_shape, 1) }
end

-- The linear map `letter`, "Q", "K", "V", "P" or "O", of layer `layer` (from 0) of `rows` by `columns`: { weight, bias,
-- name }, views as gen/weights/lua_fuse.c wants them; `name` is what it is called when it stands alone.
function checkpoint.linear(m, layer, letter, rows, columns)
    local family, key = families[m.checkpoint], letter:lower()
    local prefix = family.layer:format(layer)
    local map
    if family.packed and (key == "q" or key == "k" or key == "v") then
        local width, part = m.d // m.heads, ({ q = 0, k = 1, v = 2 })[key]
        map = with_bias(
            prefix .. family.packed,
            { 3 * m.d, m.d },
            rows,
            columns,
            { group = width, stride = 3 * width, offset = part * width }
        )
    else
        map = with_bias(prefix .. family[key], { rows, columns }, rows, columns)
    end
    map.name = prefix .. family[key]
    return map
end

-- The same map where it stands alone: as fuse leaves what was packed.
function checkpoint.alone(map)
    if not map.weight.group then return map end
    local rows, columns = map.weight.rows, map.weight.columns
    local copy = with_bias(map.name, { rows, columns }, rows, columns)
    copy.name = map.name
    return copy
end

-- Views of the embeddings of a whole model, `width` wide, which a map takes to `input` if that differs.
function checkpoint.embeddings(m, width, input)
    local found = families[m.checkpoint].embeddings
    local function rows(name, count)
        return name and { tensor = name, shape = { count, width }, rows = count, columns = width }
    end
    return {
        word = rows(found.word, m.vocab),
        positions = m.positions and rows(found.positions, m.positions),
        token_types = m.token_types and rows(found.token_types, m.token_types),
        norm = found.norm and checkpoint.norm_named(found.norm, width),
        map = found.map and with_bias(found.map, { input, width }, input, width),
    }
end

-- The gain and offset of a norm.
function checkpoint.norm_named(name, width)
    return {
        gain = { tensor = name .. ".weight", shape = { width }, rows = width, columns = 1 },
        offset = { tensor = name .. ".bias", shape = { width }, rows = width, columns = 1 },
    }
end

-- Views of what follows the last block of a whole model, whose outputs are `width` wide.
function checkpoint.output(m, width)
    local found, output = families[m.checkpoint].output, m.output or {}
    local last = output.dense and output.dense.width or width
    return {
        norm = found.norm and checkpoint.norm_named(found.norm, width),
        dense = found.dense and output.dense and with_bias(found.dense, { last, width }, last, width),
        dense_norm = found.dense_norm and checkpoint.norm_named(found.dense_norm, last),
        head = found.head and with_bias(found.head, { m.vocab, last }, m.vocab, last),
        classes = found.classes
            and output.classes
            and with_bias(found.classes, { output.classes, last }, output.classes, last),
    }
end

-- The name of the first or second norm of a layer.
function checkpoint.norm(m, layer, which)
    local family = families[m.checkpoint]
    return family.layer:format(layer) .. family.norms[which]
end

-- The maps that read the FFN's input, [f][d] each.
function checkpoint.inputs(m, layer)
    local family, list = families[m.checkpoint], {}
    for i, name in ipairs(family[m.ffn.kind] or {}) do
        local full = family.layer:format(layer) .. name
        list[i] = with_bias(full, { m.ffn.f, m.d }, m.ffn.f, m.d)
        list[i].name = full
    end
    return list
end

-- Why checkpoints of the model's family cannot hold the model: a key chain and a rule, or nil.
function checkpoint.misfit(m)
    local family = families[m.checkpoint]
    if m.ffn.kind ~= "lookup" and not family[m.ffn.kind] then
        return { "ffn", "kind" }, m.ffn.kind, m.checkpoint .. " checkpoints have no such FFN"
    end
    if family.packed and m.kv_heads ~= m.heads then
        return { "kv_heads" },
            m.kv_heads,
            "must be heads: " .. m.checkpoint .. " checkpoints hold q, k and v of equal widths"
    end
    for _, key in ipairs { "positions", "token_types" } do
        if m[key] and not family.embeddings[key] then
            return { key }, m[key], m.checkpoint .. " checkpoints have no such embeddings"
        end
    end
end

return checkpoint
