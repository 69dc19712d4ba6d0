-- The tensor names and layouts of transformers' checkpoints: where a projection's matrix, stored [out][in], and its
-- bias are found.
local ffn_parts = require "gen.schema.ffn_parts"
local fusable = require "gen.schema.fusable"

local checkpoint = {}

-- What names of the Universal Sentence Encoder lite start or end with.
local tensorflow = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
local variables = "module/Encoder_en/KonaTransformer/Encode/"
local norm_scale = "layer_prepostprocess/layer_norm/layer_norm_scale/ConcatPartitions/concat"
local norm_bias = "layer_prepostprocess/layer_norm/layer_norm_bias/ConcatPartitions/concat"

-- What bert and roberta share.
local function bert(base)
    return {
        base = base,
        embeddings = {
            word = base .. "embeddings.word_embeddings.weight",
            positions = base .. "embeddings.position_embeddings.weight",
            token_types = base .. "embeddings.token_type_embeddings.weight",
            norm = base .. "embeddings.LayerNorm",
            map = base .. "embeddings_project",
        },
        layer = base .. "encoder.layer.%d.",
        q = "attention.self.query",
        k = "attention.self.key",
        v = "attention.self.value",
        p = "attention.output.dense",
        mlp = { "intermediate.dense" },
        o = "output.dense",
        s = "skip.dense",
        lookup = "FFN.",
        norms = { "attention.output.LayerNorm", "output.LayerNorm" },
    }
end

-- The row with more fields.
local function with(row, more)
    for key, value in pairs(more) do
        row[key] = value
    end
    return row
end

-- What GPT-2 and minGPT share.
local function gpt(more)
    return with({
        base = "transformer.",
        embeddings = { word = "transformer.wte.weight", positions = "transformer.wpe.weight" },
        output = {
            norm = "transformer.ln_f",
            head = "lm_head",
            classes = "score",
        },
        behind = { "lm_head.", "transformer.ln_f.", "score." },
        layer = "transformer.h.%d.",
        packed = { name = "attn.c_attn", parts = true },
        q = "attn.query",
        k = "attn.key",
        v = "attn.value",
        p = "attn.c_proj",
        mlp = { "mlp.c_fc" },
        o = "mlp.c_proj",
        lookup = "mlp.",
        norms = { "ln_1", "ln_2" },
    }, more)
end

-- How the output of blocks becomes what RoBERTa's head reads.
local lm_head = { dense = "lm_head.dense", norm = "lm_head.layer_norm" }

-- What the family of Llama shares.
local function llama(more)
    return with({
        base = "model.",
        embeddings = { word = "model.embed_tokens.weight" },
        output = { norm = "model.norm", head = "lm_head", classes = "score" },
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
        s = "skip_proj",
        lookup = "mlp.",
        norms = { "input_layernorm", "post_attention_layernorm" },
        both_norms = {
            "input_layernorm",
            "pre_feedforward_layernorm",
            "post_attention_layernorm",
            "post_feedforward_layernorm",
        },
        head_norms = { q = "self_attn.q_norm", k = "self_attn.k_norm" },
    }, more)
end

-- What Phi 3 has instead of maps of its own: q, k and v in one tensor, gate and up in one.
local function fused(qkv, gate_up) return { packed = { name = qkv, parts = true }, gate_up = gate_up } end

-- What GGUF files of all architectures share.
local function gguf(more)
    return with({
        base = "",
        embeddings = {
            word = "token_embd.weight",
            positions = "position_embd.weight",
            token_types = "token_types.weight",
            norm = "token_embd_norm",
        },
        output = { norm = "output_norm", head = "output" },
        needs_head = true,
        behind = { "output_norm.", "output." },
        layer = "blk.%d.",
        q = "attn_q",
        k = "attn_k",
        v = "attn_v",
        p = "attn_output",
        mlp = { "ffn_up" },
        glu = { "ffn_gate", "ffn_up" },
        o = "ffn_down",
        s = "skip_proj",
        lookup = "ffn.",
        norms = { "attn_norm", "ffn_norm" },
        both_norms = { "attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm" },
        head_norms = { q = "attn_q_norm", k = "attn_k_norm" },
    }, more)
end

-- One row a kind. `base` stands before all names but those of heads: files may have another, or none; the first of
-- `wrappers` that fits stands before everything. `layer` stands before the names of layer %d; q, k, v, p (attention), m
-- and o (FFN), s (skip connection) are linear maps, norms[1] and norms[2] those of attention and FFN, head_norms those
-- of heads of q and k; both_norms: where norm.place is "both", also those behind attention and FFN. less_one: files
-- hold the gains of norms less 1. unbiased: files of the kind have no biases. A name stands for name.weight and
-- name.bias; where these differ, it is a table of both, whose names are whole: `layers` says then what stands before a
-- layer's number. `packed` holds q, k and v below each other: per head, [heads][3][head], or one after the other
-- ("parts", [heads + 2 kv_heads][head]); `gate_up` both maps of a gated FFN, [2][f]. `transposed`: matrices are stored
-- [in][out], behind dimensions of 1 where `leading` says so. Where they are packed, q, k, v and those of glu are the
-- names that fuse leaves. `behind`: what follows the last block and stays as it is when others are merged.
local families = {
    llama = llama { unbiased = true },
    gemma = llama { unbiased = true, less_one = true },
    -- One norm a block, norm.shared.
    phi = llama {
        output = { norm = "model.final_layernorm", head = "lm_head", classes = "score" },
        behind = { "lm_head.", "model.final_layernorm.", "score." },
        p = "self_attn.dense",
        mlp = { "mlp.fc1" },
        glu = false,
        o = "mlp.fc2",
        norms = { "input_layernorm" },
        both_norms = false,
        head_norms = false,
    },
    phi3 = with(llama { unbiased = true }, fused("self_attn.qkv_proj", "mlp.gate_up_proj")),
    gpt_neox = {
        base = "gpt_neox.",
        embeddings = { word = "gpt_neox.embed_in.weight" },
        output = { norm = "gpt_neox.final_layer_norm", head = "embed_out", classes = "score" },
        needs_head = true,
        behind = { "embed_out.", "gpt_neox.final_layer_norm.", "score." },
        layer = "gpt_neox.layers.%d.",
        packed = { name = "attention.query_key_value" },
        q = "attention.query",
        k = "attention.key",
        v = "attention.value",
        p = "attention.dense",
        mlp = { "mlp.dense_h_to_4h" },
        o = "mlp.dense_4h_to_h",
        s = "skip",
        lookup = "mlp.",
        norms = { "input_layernorm", "post_attention_layernorm" },
    },
    roberta = with(bert "roberta.", {
        output = {
            pooled = { dense = "roberta.pooler.dense" },
            lm = lm_head,
            classified = { dense = "classifier.dense" },
            head = { weight = "lm_head.decoder.weight", bias = "lm_head.bias" },
            classes = "classifier.out_proj",
            tokens = "classifier",
        },
        behind = { "lm_head.", "classifier.", "roberta.pooler." },
    }),
    bert = with(bert "bert.", {
        output = {
            pooled = { dense = "bert.pooler.dense" },
            lm = { dense = "cls.predictions.transform.dense", norm = "cls.predictions.transform.LayerNorm" },
            head = { weight = "cls.predictions.decoder.weight", bias = "cls.predictions.bias" },
            classes = "classifier",
        },
        behind = { "cls.", "classifier.", "bert.pooler." },
    }),
    gpt2 = gpt { transposed = true },
    mingpt = gpt { needs_head = true },
    -- The authors of LookupFFN: pre-norm blocks in a RoBERTa, with their names of the dense FFN.
    lookupffn = with(bert "roberta.", {
        output = {
            norm = "roberta.encoder.LayerNorm",
            lm = lm_head,
            head = { weight = "lm_head.decoder.weight", bias = "lm_head.bias" },
        },
        behind = { "lm_head.", "roberta.encoder.LayerNorm." },
        q = "attention.query",
        k = "attention.key",
        v = "attention.value",
        p = "attention.dense",
        mlp = { "FFN.1" },
        o = "FFN.3",
        norms = { "attention.LayerNorm", "FFN.LayerNorm" },
        mlp_norm = "FFN.0",
    }),
    gguf = gguf {},
    gguf_gpt2 = gguf { packed = { name = "attn_qkv", parts = true } },
    gguf_phi3 = gguf(fused("attn_qkv", "ffn_up")),
    gguf_bert = gguf { norms = { "attn_output_norm", "layer_output_norm" }, needs_head = false },
    -- Universal Sentence Encoder lite, as TensorFlow.js converts its graph.
    use = {
        base = "",
        embeddings = { word = "module/Embeddings_en" },
        output = {
            dense = {
                weight = "module/Encoder_en/hidden_layers/tanh_layer_0/weights",
                bias = "module/Encoder_en/hidden_layers/tanh_layer_0/bias",
            },
        },
        behind = { "module/Encoder_en/hidden_layers/" },
        layer = "Layer_%d/",
        layers = { "Layer_", variables .. "Layer_", tensorflow .. "Layer_", tensorflow .. "TransformerStack/Layer_" },
        transposed = true,
        packed = {
            name = {
                weight = variables .. "Layer_%d/TransformerLayer/MultiheadAttention/qkv_transform_single/kernel/part_0",
                bias = tensorflow
                    .. "Layer_%d/TransformerLayer/MultiheadAttention/qkv_transform_single/bias/ConcatPartitions/concat",
            },
            parts = true,
            leading = true,
        },
        q = "query",
        k = "key",
        v = "value",
        p = {
            weight = variables .. "Layer_%d/TransformerLayer/MultiheadAttention/output_transform_single/kernel/part_0",
            bias = tensorflow
                .. "Layer_%d/TransformerLayer/MultiheadAttention/output_transform_single/bias/ConcatPartitions/concat",
            leading = true,
        },
        mlp = {
            {
                weight = tensorflow .. "TransformerStack/Layer_%d/TransformerLayer/FFN/conv1/Tensordot/Reshape_1",
                bias = tensorflow .. "Layer_%d/TransformerLayer/FFN/conv1/bias/ConcatPartitions/concat",
            },
        },
        o = {
            weight = tensorflow .. "TransformerStack/Layer_%d/TransformerLayer/FFN/conv2/Tensordot/Reshape_1",
            bias = tensorflow .. "Layer_%d/TransformerLayer/FFN/conv2/bias/ConcatPartitions/concat",
        },
        s = {
            weight = tensorflow .. "Layer_%d/TransformerLayer/dense/kernel/ConcatPartitions/concat",
            bias = tensorflow .. "Layer_%d/TransformerLayer/dense/bias/ConcatPartitions/concat",
        },
        lookup = "FFN/",
        norms = {
            {
                weight = tensorflow .. "Layer_%d/TransformerLayer/" .. norm_scale,
                bias = tensorflow .. "Layer_%d/TransformerLayer/" .. norm_bias,
            },
            {
                weight = tensorflow .. "Layer_%d/TransformerLayer/FFN/" .. norm_scale,
                bias = tensorflow .. "Layer_%d/TransformerLayer/FFN/" .. norm_bias,
            },
        },
    },
}

-- The words of the model file's key `checkpoint`.
checkpoint.kinds = {
    "llama",
    "gemma",
    "phi",
    "phi3",
    "gpt_neox",
    "roberta",
    "bert",
    "gpt2",
    "mingpt",
    "lookupffn",
    "use",
    "gguf",
    "gguf_gpt2",
    "gguf_phi3",
    "gguf_bert",
}
checkpoint.default = "llama"

-- Ends of names of buffers that some versions save beside the weights; they hold no weights.
local buffers = {
    "%.rotary_emb%.inv_freq$",
    "%.rope_freqs%.weight$",
    "%.position_ids$",
    "%.embeddings%.token_type_ids$",
    "%.attention%.bias$",
    "%.attention%.masked_bias$",
    "%.attn%.bias$",
    "%.attn%.masked_bias$",
    "/TimingSignal/ExpandDims_1$",
    "/mul/y$",
    "/Cast/x$",
    "/Maximum/y$",
}

-- Names of the same tensor, of which a file may have either, or both as copies: a start, the end that models use, and
-- another.
local synonyms = {
    { "^(.*%.)", "LayerNorm.weight", "LayerNorm.gamma" },
    { "^(.*%.)", "LayerNorm.bias", "LayerNorm.beta" },
    { "^(lm_head%.)", "bias", "decoder.bias" },
    { "^(cls%.predictions%.)", "bias", "decoder.bias" },
}

-- The name with the end number `from` of a row of synonyms, with that number `to` instead, or nil.
local function with_end(name, row, from, to)
    local start = name:match(row[1] .. row[from]:gsub("%p", "%%%0") .. "$")
    return start and start .. row[to]
end

-- What models call a tensor that they may have under that name.
local function usual(name)
    for _, row in ipairs(synonyms) do
        local other = with_end(name, row, 3, 2)
        if other then return other end
    end
    return name
end

function checkpoint.family(m) return families[m.checkpoint] end

-- Whether checkpoints of the model's kind have biases of the maps of blocks.
function checkpoint.biased(m) return not families[m.checkpoint].unbiased end

-- Whether they hold the gains of norms less 1.
function checkpoint.less_one(m) return families[m.checkpoint].less_one or false end

-- The name of the matrix that makes logits, where kind and model have one.
function checkpoint.head(m)
    local head = families[m.checkpoint].output.head
    return head and (type(head) == "table" and head.weight or head .. ".weight")
end

-- Whether a tensor only repeats what the model file says.
function checkpoint.is_buffer(name)
    for _, pattern in ipairs(buffers) do
        if ("." .. name):find(pattern) then return true end
    end
    return false
end

-- Whether a tensor belongs to the pooler of an encoder whose model pools in another way: files have it all the same.
function checkpoint.is_other_output(m, name)
    local pooled, output = families[m.checkpoint].output.pooled, m.output
    if not pooled or not output or not output.pool or output.dense then return false end
    return name:sub(1, #pooled.dense + 1) == pooled.dense .. "."
end

-- What the names of the tensors of all blocks start with: a list.
function checkpoint.blocks_prefixes(m)
    local family = families[m.checkpoint]
    return family.layers or { (family.layer:match "^(.-)%%d") }
end

-- What files may have before all names, and instead of the row's `base`.
local wrappers = { "", "model.", "module.", "_orig_mod." }
local bases = { bert = { "electra." } }

-- How the checkpoint with the tensors `found`, by name, spells the names of model `m`: a function from a name to that
-- in the file, which is the same where the file has neither, one back, and one from a name in the file to that of the
-- tensor which it may be a copy of.
function checkpoint.spelling(m, found)
    local family = families[m.checkpoint]
    local function starts(name, start) return name:sub(1, #start) == start end
    local function spelled(wrapper, base, name)
        local inside = family.base ~= "" and starts(name, family.base)
        return wrapper .. (inside and base .. name:sub(#family.base + 1) or name)
    end
    -- Blocks may stand without embeddings: then any block's tensor decides.
    local blocks = checkpoint.blocks_prefixes(m)
    local function fits(wrapper, base)
        if found[spelled(wrapper, base, family.embeddings.word)] then return true end
        for _, prefix in ipairs(blocks) do
            local start = spelled(wrapper, base, prefix)
            for name in pairs(found) do
                if starts(name, start) then return true end
            end
        end
        return false
    end
    local wrapper, base
    for _, one in ipairs(wrappers) do
        for _, other in ipairs { family.base, "", table.unpack(bases[m.checkpoint] or {}) } do
            if not wrapper and fits(one, other) then
                wrapper, base = one, other
            end
        end
    end
    wrapper, base = wrapper or "", base or family.base
    local function to_file(name)
        local own = spelled(wrapper, base, name)
        for _, row in ipairs(found[own] and {} or synonyms) do
            local other = with_end(name, row, 2, 3)
            other = other and spelled(wrapper, base, other)
            if other and found[other] then return other end
        end
        return own
    end
    local function from_file(name)
        local rest = starts(name, wrapper) and name:sub(#wrapper + 1) or name
        for _, start in ipairs(family.behind) do
            if not starts(start, family.base) and starts(rest, start) then return rest end
        end
        return base ~= family.base and starts(rest, base) and family.base .. rest:sub(#base + 1) or rest
    end
    local function original(name)
        local own = from_file(name)
        if m.tied and own == checkpoint.head(m) then return to_file(family.embeddings.word) end
        return usual(own) ~= own and to_file(usual(own)) or name
    end
    return to_file, from_file, original
end

-- A copy of steps, pieces or maps whose tensors are called spell(name).
function checkpoint.respelled(value, spell)
    if type(value) ~= "table" then return value end
    local copy = {}
    for key, inner in pairs(value) do
        local name = (key == "tensor" or key == "prefix") and type(inner) == "string"
        copy[key] = name and spell(inner) or checkpoint.respelled(inner, spell)
    end
    return copy
end

-- Names of norms that some models have inside attention.
local inner_norms = { "[qk]_norm%.", "[qk]_layernorm%.", "query_norm%.", "key_norm%.", "query_layernorm%." }

-- How many blocks a model has, equal or not.
local function blocks_of(m)
    if math.type(m.layers) == "integer" then return m.layers end
    local count = 0
    for _, entry in ipairs(m.layers) do
        count = count + (entry.count or 1)
    end
    return count
end

-- The stems of a name, which may be two.
local function stems_of(name)
    if type(name) == "string" then return { name .. "." } end
    return name and { name.weight, name.bias } or {}
end

-- The keys of a whole model that would use a tensor before or behind its blocks, or nil.
function checkpoint.unused_outside(m, name)
    local names, embeddings = families[m.checkpoint].output, families[m.checkpoint].embeddings
    local pooled, lm = names.pooled or names.classified or {}, names.lm or {}
    for _, row in ipairs {
        { not m.embedding.norm and embeddings.norm, "embedding.norm" },
        { names.norm, "output.norm" },
        { pooled.dense, "output.pool with output.dense" },
        { names.classified and names.classified.dense, "output.classes" },
        { lm.dense, "output.head with output.dense" },
        { lm.norm, "output.dense.norm" },
        { names.head, m.output and m.output.head and "output.head.bias" or "output.head" },
        { names.classes, "output.classes" },
    } do
        for _, stem in ipairs(stems_of(row[1])) do
            if name:sub(1, #stem) == stem then return row[2] end
        end
    end
end

-- Why model `m` leaves a tensor out, or what would help; nil: nobody knows. Behind it true, if that also explains why
-- others are missing.
function checkpoint.left_out(m, name)
    local family = families[m.checkpoint]
    name = usual(name)
    local at = select(2, name:find(family.layer:match "^(.-)%%d", 1, true))
    local number, rest = name:match("^(%d+)[./](.*)$", at and at + 1 or #name + 1)
    rest = rest or name
    local function is_of(map)
        for _, stem in ipairs(stems_of(map)) do
            if rest:sub(1, #stem) == stem or number and name == stem:gsub("%%d", number) then return true end
        end
        return false
    end
    local word = m.attention.eliminate
    local trained_so = word ~= "none" and fusable.obstacle(m, word) ~= nil
    if m.attention.cache == "k" then word = word .. "V" end
    if number and tonumber(number) >= blocks_of(m) then return "the model file has layers = " .. blocks_of(m) end
    for letter in word:gmatch "%u" do
        if is_of(family[letter:lower()]) or letter ~= "P" and is_of(family.packed and family.packed.name) then
            if not trained_so then return "run lookupc fuse first", true end
            return string.format(
                'the model file has attention.eliminate = "%s", with which such a model is trained',
                m.attention.eliminate
            )
        end
    end
    for _, pattern in ipairs(inner_norms) do
        if rest:find(pattern) then
            return family.head_norms and "the model file has no attention.qk_norm"
                or "lookupc has no norms of q and k of a " .. m.checkpoint
        end
    end
    local without = m.embedding and checkpoint.unused_outside(m, name)
    if without then return "the model file has no " .. without end
    if not m.norm and rest:lower():find "norm" then return "the model file has no norm" end
    for _, norm in ipairs(family.norms) do
        if m.norm and m.norm.kind == "rmsnorm" and type(norm) == "string" and rest == norm .. ".bias" then
            return 'the model file has norm.kind = "rmsnorm", which has no bias'
        end
    end
    for _, norm in ipairs(m.norm and m.norm.place == "pre" and family.both_norms or {}) do
        if is_of(norm) then return 'the model file has norm.place = "pre"' end
    end
    if m.norm and m.norm.shared and is_of(family.norms[2]) then return "the model file has norm.shared" end
    local ffn = { family.o, table.unpack(family.glu or family.mlp) }
    table.insert(ffn, family.gate_up)
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

-- A tensor of that shape as a matrix of its own.
local function whole(tensor, shape)
    local rows = 1
    for i = 1, #shape - 1 do
        rows = rows * shape[i]
    end
    if #shape == 1 then return { tensor = tensor, shape = shape, rows = shape[1], columns = 1 } end
    return { tensor = tensor, shape = shape, rows = rows, columns = shape[#shape] }
end

-- The names of the tensors of a map or norm, and what both have in common.
local function names_of(name, prefix, layer)
    if type(name) == "string" then
        name = prefix .. name
        return name .. ".weight", name .. ".bias", name
    end
    local weight = name.weight:gsub("%%d", tostring(layer))
    return weight, name.bias:gsub("%%d", tostring(layer)), weight
end

-- The linear map of that name, `rows` by `columns`. layout: { transposed, leading, all = rows of the tensor, nil: its
-- own; group, stride, offset of its rows }.
local function map_of(name, prefix, layer, rows, columns, layout)
    local weight, bias, stem = names_of(name, prefix, layer)
    local all, shape = layout.all or rows, { rows, columns }
    if layout.transposed then
        shape = layout.leading and { 1, 1, columns, all } or { columns, all }
    else
        shape[1] = all
    end
    local function view(tensor, of, width)
        return {
            tensor = tensor,
            shape = of,
            rows = rows,
            columns = width,
            group = layout.group,
            stride = layout.stride,
            offset = layout.offset,
        }
    end
    local map = { weight = view(weight, shape, columns), bias = view(bias, { all }, 1), name = stem }
    map.weight.transposed = layout.transposed
    return map
end

-- The norm of that name; raised: what its gains are more than in the file.
local function norm_of(name, prefix, layer, width, less_one)
    local gain, offset, stem = names_of(name, prefix, layer)
    local norm = { gain = whole(gain, { width }), offset = whole(offset, { width }), name = stem }
    norm.gain.raised = less_one and 1 or nil
    return norm
end

-- The linear map `letter`, "Q", "K", "V", "P", "O", or "S" of the skip connection, of layer `layer` (from 0) of `rows`
-- by `columns`: { weight, bias, name }, views as gen/weights/view.h reads them; `name` is what it is called when it
-- stands alone.
function checkpoint.linear(m, layer, letter, rows, columns)
    local family, key = families[m.checkpoint], letter:lower()
    local prefix = family.layer:format(layer)
    local part = family.packed and ({ q = 0, k = 1, v = 2 })[key]
    if not part then
        local leading = type(family[key]) == "table" and family[key].leading
        return map_of(family[key], prefix, layer, rows, columns, { transposed = family.transposed, leading = leading })
    end
    local width = m.head_dim or m.d // m.heads
    local q, kv = m.heads * width, m.kv_heads * width
    local all, layout = q + 2 * kv, { transposed = family.transposed, leading = family.packed.leading }
    layout.all = all
    if family.packed.parts then
        layout.group, layout.stride, layout.offset = rows, all, part == 0 and 0 or q + (part - 1) * kv
    else
        layout.group, layout.stride, layout.offset = width, 3 * width, part * width
    end
    local map = map_of(family.packed.name, prefix, layer, rows, columns, layout)
    map.name = prefix .. family[key]
    return map
end

-- The same map as fuse leaves it: what was packed stands alone, [out][in].
function checkpoint.alone(map)
    if not map.weight.group and not map.weight.transposed then return map end
    local rows, columns = map.weight.rows, map.weight.columns
    local stem = map.weight.group and map.name or map.name:gsub("%.weight$", "")
    local copy = map_of(stem, "", 0, rows, columns, {})
    if not map.weight.group then
        copy.weight.tensor, copy.bias.tensor = map.weight.tensor, map.bias.tensor
    end
    return copy
end

-- What fuse makes of the map V where only keys are cached: v of k.
function checkpoint.from_keys(map)
    local stem = map.name:gsub("%.weight$", "") .. "_from_k"
    return map_of(stem, "", 0, map.weight.rows, map.weight.rows, {})
end

-- The first or second norm of a layer, of so many elements, or the third behind attention or fourth behind the FFN:
-- { gain, offset, name }.
function checkpoint.norm(m, layer, which, width)
    local family = families[m.checkpoint]
    if which == 2 and m.norm and m.norm.shared then which = 1 end
    local name = (m.norm and m.norm.place == "both" and family.both_norms or family.norms)[which]
    if which == 2 and m.ffn.kind ~= "lookup" then name = family.mlp_norm or name end
    return norm_of(name, family.layer:format(layer), layer, width, family.less_one)
end

-- The gains of the norm of heads of "q" or "k" of a layer, [width of a head].
function checkpoint.head_norm(m, layer, word, width)
    local family = families[m.checkpoint]
    return norm_of(family.head_norms[word], family.layer:format(layer), layer, width, family.less_one).gain
end

-- The factor of the scores of each head of a layer whose q and k are of unit length, [heads].
function checkpoint.attention_scale(m, layer)
    return whole(families[m.checkpoint].layer:format(layer) .. "attention_scale", { m.heads })
end

-- The signs of the hashes of a layer whose attention has tables, as `shape.lsh` describes them: optional.
function checkpoint.attention_signs(m, layer, lsh)
    return whole(families[m.checkpoint].layer:format(layer) .. "attention_signs", { lsh.rounds, lsh.padded })
end

-- Alpha, beta and gamma of each head of a layer whose attention is shaped, [heads][3].
function checkpoint.attention_shape(m, layer)
    return whole(families[m.checkpoint].layer:format(layer) .. "attention_shape", { m.heads, 3 })
end

-- The maps of the dense FFN, if there is one, that read its input, [f][d] each.
function checkpoint.inputs(m, layer)
    local family, dense, list = families[m.checkpoint], ffn_parts.dense(m.ffn), {}
    local prefix, packed = family.layer:format(layer), dense and dense.kind == "glu" and family.gate_up
    for i, name in ipairs(dense and family[dense.kind] or {}) do
        local layout, f = { transposed = family.transposed }, dense.f
        if packed then
            layout.all, layout.group, layout.stride, layout.offset = 2 * f, f, 2 * f, (i - 1) * f
        end
        list[i] = map_of(packed or name, prefix, layer, f, m.d, layout)
        if packed then list[i].name = prefix .. name end
    end
    return list
end

-- What stands before the first block, whose input is `input` wide, with rows of `width`: { word, positions,
-- token_types, norm, map }, those that the model has.
function checkpoint.embeddings(m, width, input)
    local names, embedding = families[m.checkpoint].embeddings, m.embedding or {}
    local function rows_of(name, count) return name and count and whole(name, { count, width }) or nil end
    return {
        word = rows_of(names.word, m.vocab),
        positions = rows_of(names.positions, m.positions),
        token_types = rows_of(names.token_types, m.token_types),
        norm = embedding.norm and names.norm and norm_of(names.norm, "", 0, width) or nil,
        map = input ~= width and names.map and map_of(names.map, "", 0, input, width, {}) or nil,
    }
end

-- Why checkpoints of the model's kind cannot hold a map between embedding and blocks, or nil.
function checkpoint.without_map(m)
    return not families[m.checkpoint].embeddings.map and m.checkpoint .. " checkpoints have no map to the blocks" or nil
end

-- What the names of the output's parts are, or nil.
local function output_names(m)
    local names, output = families[m.checkpoint].output, m.output or {}
    local own = not output.pool and names.lm or output.classes and names.classified or names.pooled
    return {
        norm = output.norm and (names.norm or false),
        dense = output.dense and (own and own.dense or names.dense or false),
        dense_norm = output.dense and output.dense.norm and (own and own.norm or false),
        head = output.head and (names.head or false),
        classes = output.classes and (not output.dense and names.tokens or names.classes or false),
    }
end

-- What stands behind the last block, whose output is `width` wide: { norm, dense, dense_norm, head, classes }, those
-- that the model has. A tied head's matrix is the word embedding.
function checkpoint.output(m, width)
    local names, output = output_names(m), m.output or {}
    local transposed = m.checkpoint == "use"
    local last = output.dense and output.dense.width or width
    local less_one = families[m.checkpoint].less_one
    local function norm(name, of) return name and norm_of(name, "", 0, of, less_one) or nil end
    local function map(name, rows, columns)
        return name and map_of(name, "", 0, rows, columns, { transposed = transposed or nil }) or nil
    end
    local parts = {
        norm = norm(names.norm, width),
        dense = map(names.dense, last, width),
        dense_norm = norm(names.dense_norm, last),
        head = map(names.head, m.vocab, last),
        classes = map(names.classes, output.classes, last),
    }
    if parts.head and m.tied then
        parts.head.weight = whole(families[m.checkpoint].embeddings.word, { m.vocab, last })
    end
    return parts
end

-- A key chain, its value, and the rule that checkpoints of the model's kind have no such thing.
local function none(m, chain, value, what)
    local rule = m.checkpoint .. " checkpoints have no such " .. what
    local default = m.checkpoint == checkpoint.default and "; checkpoint is " .. m.checkpoint .. " by default" or ""
    return chain, value, rule .. default
end

-- Why checkpoints of the model's kind cannot hold the blocks of `m`, all of one shape: a key chain, a value and a rule,
-- or nil.
function checkpoint.misfit_of_blocks(m)
    local family = families[m.checkpoint]
    local dense = ffn_parts.dense(m.ffn)
    if dense and not family[dense.kind] then
        local chain = m.ffn.kind == "lookup" and { "ffn", "dense", "kind" } or { "ffn", "kind" }
        return none(m, chain, dense.kind, "FFN")
    end
    if m.ffn.kind == "lookup" and dense and dense.kind == "glu" and family.gate_up then
        return none(m, { "ffn", "dense", "kind" }, "glu", "FFN")
    end
    if m.norm and not family.norms[2] and not (m.norm.shared or m.ffn.qkv) then
        return { "norm", "shared" }, nil, "must be true: " .. m.checkpoint .. " checkpoints have one norm a block"
    end
    if family.packed and not family.packed.parts and m.kv_heads ~= m.heads then
        return { "kv_heads" },
            m.kv_heads,
            "must be heads: " .. m.checkpoint .. " checkpoints hold q, k and v of equal widths"
    end
    if m.norm and m.norm.place == "both" and not family.both_norms then
        return none(m, { "norm", "place" }, "both", "norms")
    end
    if m.attention.qk_norm and not family.head_norms then
        return none(m, { "attention", "qk_norm" }, nil, "norms")
    end
    if m.d_in and m.skip and not family.s then return none(m, { "d_in" }, m.d_in, "map of a skip connection") end
    for _, key in ipairs { "positions", "token_types" } do
        if m[key] and not family.embeddings[key] then return none(m, { key }, m[key], "embeddings") end
    end
end

-- The same of what stands before and behind the blocks.
function checkpoint.misfit_of_ends(m)
    if m.embedding and m.embedding.norm and not families[m.checkpoint].embeddings.norm then
        return none(m, { "embedding", "norm" }, nil, "norm")
    end
    local names = output_names(m)
    for _, key in ipairs { "norm", "dense", "head", "classes" } do
        if names[key] == false then return none(m, { "output", key }, nil, "tensors") end
    end
    if names.dense_norm == false then return none(m, { "output", "dense", "norm" }, nil, "norm") end
end

-- The same of a model whose blocks are all of one shape.
function checkpoint.misfit(m)
    local chain, value, rule = checkpoint.misfit_of_blocks(m)
    if chain then return chain, value, rule end
    return checkpoint.misfit_of_ends(m)
end

return checkpoint
