-- The keys of model files: those of blocks, of which a transformer consists, and those of what stands before and behind
-- them in a whole model. Q, K, V and P are the attention's projections, M and O the FFN's input and output (arXiv
-- 2404.12362).
local checkpoint = require "gen.schema.checkpoint_names"
local copied = require "gen.schema.copied"
local eliminations = require "gen.families.model.blocks.eliminations"
local lookup_model = require "gen.families.lookup.model"
local schema = require "gen.schema.schema"
local tokenizer_model = require "gen.families.tokenizer.model"

local keys = {}

-- The keys of a LookupFFN that an FFN may have. What it leaves out is filled in when the width is known.
local function rows_of_lookup(...)
    local rows = {}
    for _, wanted in ipairs { ... } do
        for _, row in ipairs(lookup_model.keys) do
            if row.key == wanted then
                rows[#rows + 1] = { key = row.key, rule = row.rule, doc = row.doc, only = "lookup", optional = true }
            end
        end
    end
    return rows
end

local function positive(last) return schema.integer(1, last) end
local eps_rule = schema.number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end)
local function number_from(first, last)
    local words = string.format("must be a number from %g to %g", first, last)
    return schema.number(words, function(v) return v >= first and v <= last end)
end
local by_turns = { "llama3", "yarn" }
local scaling_keys = {
    {
        key = "kind",
        rule = schema.choice("linear", "llama3", "yarn"),
        doc = "what is slowed down: all pairs, or those that turn seldom, by frequency or by number",
    },
    { key = "factor", rule = number_from(1, 1e6), doc = "how much: the ratio of new and original context" },
    { key = "original", rule = positive(1 << 24), only = by_turns, doc = "context of the training before" },
    {
        key = "slow",
        rule = number_from(1e-3, 1e6),
        only = by_turns,
        default = 1,
        doc = "turns within the original context up to which a pair is slowed down",
    },
    { key = "fast", rule = number_from(1e-3, 1e6), only = by_turns, doc = "turns from which on it is not" },
    {
        key = "truncate",
        rule = schema.boolean,
        only = "yarn",
        default = true,
        doc = "the numbers of the pairs that turn so often are rounded, outwards",
    },
    {
        key = "attention_factor",
        rule = number_from(1e-3, 1e3),
        only = "yarn",
        optional = true,
        doc = "factor of cosines and sines; absent: 0.1 ln(factor) + 1",
    },
}
local rope_keys = {
    {
        key = "theta",
        rule = schema.number("must be a number from 1 to 1e12", function(v) return v >= 1 and v <= 1e12 end),
        default = 10000,
        doc = "base of the frequencies",
    },
    {
        key = "share",
        rule = schema.number("must be a number above 0, at most 1", function(v) return v > 0 and v <= 1 end),
        default = 1,
        doc = "share of a head that is rotated, its first part",
    },
    {
        key = "pairs",
        rule = schema.choice("half", "interleaved"),
        default = "half",
        doc = "what is rotated together: i and i + half of that part, or 2i and 2i + 1",
    },
    {
        key = "scaling",
        rule = schema.table("kind, factor, and what the kind takes", scaling_keys),
        optional = true,
        doc = "frequencies for contexts longer than that of training",
    },
}
local soft_cap_rule =
    schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end)
local layer_numbers = { words = "must be a list of rising integers from 0 to 4095" }
function layer_numbers.holds(v)
    if type(v) ~= "table" then return false end
    local count = 0
    for key, number in pairs(v) do
        local before = math.type(key) == "integer" and (key == 1 and -1 or v[key - 1])
        if math.type(before) ~= "integer" or math.type(number) ~= "integer" then return false end
        if number <= before or number > 4095 then return false end
        count = count + 1
    end
    return count == #v
end
local qk_norm_keys = {
    { key = "eps", rule = eps_rule, default = 1e-6, doc = "added to the mean square" },
}
local attention_keys = {
    {
        key = "kind",
        rule = schema.choice("exact", "lsh"),
        optional = true,
        doc = "lsh: what tables of values keyed by sign hashes of k tell q; absent: exact, a softmax",
    },
    {
        key = "eliminate",
        rule = schema.choice(table.unpack(eliminations)),
        default = "none",
        doc = "projections that are merged into others",
    },
    { key = "context", rule = positive(1 << 24), doc = "maximum number of tokens that are attended to" },
    {
        key = "window",
        rule = schema.integer(0, 1 << 24),
        optional = true,
        doc = "sliding window: only the last so many tokens; lsh: these without tables (16)",
    },
    { key = "tables", rule = positive(256), only = "lsh", default = 16, doc = "tables of a head of k and v" },
    { key = "tau", rule = positive(16), only = "lsh", default = 8, doc = "bits of a code, a table has 2^tau rows" },
    {
        key = "eps",
        rule = schema.number("must be a number from 1e-6 to 1", function(v) return v >= 1e-6 and v <= 1 end),
        only = "lsh",
        default = 0.3,
        doc = "an output y of a head becomes y / sqrt(|y|^2 + eps^2)",
    },
    { key = "seed", rule = schema.integer(0, 0xffffffff), only = "lsh", default = 1, doc = "of the signs of hashes" },
    {
        key = "full_layers",
        rule = layer_numbers,
        optional = true,
        doc = "numbers of the layers, from 0, that have no window; a cache holds the context then",
    },
    { key = "causal", rule = schema.boolean, default = true, doc = "a token attends to no later ones" },
    {
        key = "rope",
        rule = schema.table("theta, share, pairs, scaling", rope_keys),
        optional = true,
        doc = "rotary positions of q and k",
    },
    {
        key = "qk_norm",
        rule = schema.table("eps", qk_norm_keys),
        optional = true,
        doc = "RMSNorm of every head of q and k, before they are rotated",
    },
    {
        key = "unit",
        rule = schema.boolean,
        optional = true,
        doc = "a score is the cosine of q and k, times sqrt(width of a head) and a learned factor of the head",
    },
    {
        key = "scale",
        rule = schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end),
        optional = true,
        doc = "factor of q k; absent: 1 / sqrt(width of a head)",
    },
    {
        key = "soft_cap",
        rule = soft_cap_rule,
        optional = true,
        doc = "a score x becomes soft_cap tanh(x / soft_cap)",
    },
    {
        key = "cache",
        rule = schema.choice("kv", "k"),
        optional = true,
        doc = "what is kept of tokens: keys and values, or keys alone, of which values are made; absent: kv",
    },
    {
        key = "shifted",
        rule = positive(65536),
        optional = true,
        doc = "the first so many heads of k and v have the key of the token before beside a token's value",
    },
    {
        key = "shaped",
        rule = schema.boolean,
        optional = true,
        doc = "shaped attention: a head mixes itself, the softmax and the mean in learned parts",
    },
}
local dense = { "mlp", "glu" }
-- What is hidden in a dense FFN, of the kinds `only`.
local function hidden_keys(only)
    return { key = "f", rule = positive(1 << 20), only = only, doc = "hidden width" },
        {
            key = "activation",
            rule = schema.choice("gelu", "gelu_tanh", "silu", "relu"),
            only = only,
            doc = "of the hidden values, or of their gates",
        }
end
local width_key, activation_key = hidden_keys(dense)
local dense_keys = {
    { key = "kind", rule = schema.choice(table.unpack(dense)), doc = "two products, or a gated one with a third" },
    hidden_keys(nil),
}
local ffn_keys = {
    {
        key = "kind",
        rule = schema.choice("mlp", "glu", "lookup"),
        doc = "two products, a gated one with a third, or a LookupFFN",
    },
    width_key,
    activation_key,
    {
        key = "dense",
        rule = schema.table("kind, f, activation", dense_keys),
        only = "lookup",
        optional = true,
        doc = "a narrow dense FFN beside the LookupFFN, whose outputs are added",
    },
    {
        key = "qkv",
        rule = schema.boolean,
        only = "lookup",
        optional = true,
        doc = "rows of tables hold q, k and v before the FFN's output; the block has no Q, K, V and P",
    },
    table.unpack(rows_of_lookup("h", "tau", "projection", "score", "scale", "neighbours", "same_codes")),
}
local norm_keys = {
    { key = "kind", rule = schema.choice("layernorm", "rmsnorm"), doc = "normalisation in a block" },
    { key = "eps", rule = eps_rule, default = 1e-5, doc = "added to the variance, or to the mean square" },
    {
        key = "place",
        rule = schema.choice("pre", "post", "both"),
        default = "pre",
        doc = "before attention and FFN; after each and its skip connection; or before each and behind it, inside that",
    },
    {
        key = "shared",
        rule = schema.boolean,
        optional = true,
        doc = "attention and FFN of a parallel block read one norm, the first",
    },
}

keys.blocks = {
    lookup_model.keys[1], -- name
    { key = "d", rule = positive(65536), doc = "width of a token" },
    { key = "heads", rule = positive(65536), doc = "heads of q, a divisor of d if there is no head_dim" },
    {
        key = "kv_heads",
        rule = positive(65536),
        default = "heads",
        doc = "heads of k and v, a divisor of heads: heads for MHA, 1 for MQA",
    },
    { key = "head_dim", rule = positive(65536), optional = true, doc = "width of a head; absent: d / heads" },
    { key = "d_in", rule = positive(65536), optional = true, doc = "width of the block's input; absent: d" },
    { key = "layers", rule = positive(4096), doc = "number of blocks" },
    { key = "vocab", rule = positive(1 << 24), doc = "rows of the embeddings" },
    {
        key = "tied",
        rule = schema.boolean,
        default = false,
        doc = "the checkpoint's output embedding is its input embedding",
    },
    { key = "positions", rule = positive(1 << 24), optional = true, doc = "rows of learned position embeddings" },
    { key = "token_types", rule = positive(1 << 16), optional = true, doc = "rows of token type embeddings" },
    {
        key = "parallel",
        rule = schema.boolean,
        default = false,
        doc = "attention and FFN side by side on one input, summed",
    },
    {
        key = "attention",
        rule = schema.table(
            "kind, eliminate, context, window, tables, tau, eps, seed, full_layers, causal, rope, qk_norm, unit, \z
                scale, soft_cap, shifted, cache, shaped",
            attention_keys
        ),
        doc = "makes it a transformer",
    },
    {
        key = "ffn",
        rule = schema.table("kind, f, activation, or those of a LookupFFN", ffn_keys),
        doc = "the feed-forward network",
    },
    { key = "skip", rule = schema.boolean, default = false, doc = "skip connections around attention and FFN" },
    {
        key = "norm",
        rule = schema.table("kind, eps, place, shared", norm_keys),
        optional = true,
        doc = "normalisation",
    },
    {
        key = "checkpoint",
        rule = schema.choice(table.unpack(checkpoint.kinds)),
        default = checkpoint.default,
        doc = "whose tensor names the weights have",
    },
}

-- A copy of the row of key `key` in `list`.
local function copied_row(list, key)
    for _, row in ipairs(list) do
        if row.key == key then return copied(row) end
    end
end

-- The same, but where an absent key means none.
local function optional(list, key)
    local copy = copied_row(list, key)
    copy.default, copy.optional = nil, true
    return copy
end

local end_norm_keys = {
    { key = "kind", rule = schema.choice("layernorm", "rmsnorm"), doc = "of the norm" },
    norm_keys[2],
}
local function norm_of(what)
    return { key = "norm", rule = schema.table("kind, eps", end_norm_keys), optional = true, doc = "norm " .. what }
end

local sinusoidal_keys = {
    {
        key = "order",
        rule = schema.choice("halves", "interleaved"),
        default = "interleaved",
        doc = "all sines and then all cosines, or a sine and a cosine in turn",
    },
    {
        key = "steps",
        rule = schema.choice("n", "n-1"),
        default = "n",
        doc = "of n = d / 2 frequencies, number i is max^(-i / n), or max^(-i / (n - 1))",
    },
    {
        key = "max",
        rule = schema.number("must be a number above 1, at most 1e12", function(v) return v > 1 and v <= 1e12 end),
        default = 10000,
        doc = "ratio of the first and the last frequency, or nearly",
    },
}

local embedding_keys = {
    { key = "d", rule = positive(65536), optional = true, doc = "width of a row; absent: that of a block's input" },
    {
        key = "scale",
        rule = schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end),
        default = 1,
        doc = "factor of a word's row",
    },
    {
        key = "sinusoidal",
        rule = schema.table("order, steps, max", sinusoidal_keys),
        optional = true,
        doc = "positions made of sines, instead of learned ones",
    },
    {
        key = "first_position",
        rule = schema.integer(0, 1 << 16),
        optional = true,
        doc = "row of learned positions that the first token takes; absent: 0",
    },
    norm_of "of the sum of word, position and token type",
    {
        key = "projected",
        rule = schema.boolean,
        optional = true,
        doc = "tables of what the first block's Q, K, V and skip connection make of a word, instead of these maps",
    },
}

local map_keys = {
    { key = "width", rule = positive(65536), doc = "outputs" },
    {
        key = "activation",
        rule = schema.choice("tanh", "gelu", "gelu_tanh", "relu"),
        optional = true,
        doc = "of the outputs; absent: none",
    },
    norm_of "of the outputs",
}

local head_keys = {
    { key = "bias", rule = schema.boolean, default = false, doc = "the checkpoint has a bias of the logits" },
    {
        key = "soft_cap",
        rule = soft_cap_rule,
        optional = true,
        doc = "a logit x becomes soft_cap tanh(x / soft_cap)",
    },
}

local output_keys = {
    norm_of "behind the last block",
    {
        key = "pool",
        rule = schema.choice("mean", "first", "last", "sqrt_n"),
        optional = true,
        doc = "one vector a sequence: mean of its tokens, one of them, or their sum / sqrt(n)",
    },
    {
        key = "dense",
        rule = schema.table("width, activation, norm", map_keys),
        optional = true,
        doc = "a linear map with bias",
    },
    { key = "unit", rule = schema.boolean, default = false, doc = "the vector is divided by its length" },
    {
        key = "head",
        rule = schema.table("bias, soft_cap", head_keys),
        optional = true,
        doc = "logits of the vocabulary",
    },
    { key = "classes", rule = positive(1 << 20), optional = true, doc = "or scores of so many classes" },
}

-- What an entry of `layers` may say beside `count`; the rest is that of the model.
keys.varied = { "d", "heads", "kv_heads", "head_dim", "d_in", "ffn" }
keys.entry = {
    { key = "count", rule = positive(4096), default = 1, doc = "blocks of this shape" },
}
for _, key in ipairs(keys.varied) do
    table.insert(keys.entry, optional(keys.blocks, key))
end

-- What `attention` of an entry says in place of the model's, which says the rest: only tables have a window there.
-- Where the model is of another kind, tables take `attention_defaults`.
keys.attention_varied = { "kind", "tables", "tau", "window", "eps", "seed", "unit" }
keys.attention_defaults = {}
local own_attention = {}
for i, key in ipairs(keys.attention_varied) do
    local row = copied_row(attention_keys, key)
    keys.attention_defaults[key], row.default = row.default, nil
    row.optional = key ~= "kind"
    if key == "window" then row.only = "lsh" end
    own_attention[i] = row
end
table.insert(keys.entry, {
    key = "attention",
    rule = schema.table(table.concat(keys.attention_varied, ", "), own_attention),
    optional = true,
    doc = "how these blocks attend, in place of what the model says",
})

local most_entries = 64
local layers_rule = {
    words = "must be an integer from 1 to 4096, or a list of up to "
        .. most_entries
        .. " tables of count, "
        .. table.concat(keys.varied, ", ")
        .. ", attention",
}
function layers_rule.holds(v)
    if type(v) ~= "table" then return math.type(v) == "integer" and v >= 1 and v <= 4096 end
    local count = 0
    for key, entry in pairs(v) do
        if math.type(key) ~= "integer" or type(entry) ~= "table" then return false end
        count = count + 1
    end
    return count > 0 and count <= most_entries and count == #v
end

keys.whole = {}
for i, row in ipairs(keys.blocks) do
    keys.whole[i] = row.key ~= "layers" and row
        or { key = "layers", rule = layers_rule, doc = "number of blocks, or a list where they differ in width" }
end
table.insert(keys.whole, {
    key = "embedding",
    rule = schema.table("d, scale, sinusoidal, first_position, norm, projected", embedding_keys),
    doc = "from ids to the first block; makes it a whole model",
})
table.insert(keys.whole, {
    key = "output",
    rule = schema.table("norm, pool, dense, unit, head, classes", output_keys),
    optional = true,
    doc = "from the last block to the results, in this order",
})
table.insert(keys.whole, optional(tokenizer_model.keys, "tokenizer"))

keys.eliminate = attention_keys[2].rule

return keys
