-- The model file of a transformer: its keys, and the rules between them. Q, K, V and P are the attention's projections,
-- M and O the FFN's input and output (arXiv 2404.12362).
local checkpoint = require "gen.model.checkpoint_names"
local eliminations = require "gen.families.model.blocks.eliminations"
local ffn_parts = require "gen.model.ffn_parts"
local lookup_model = require "gen.families.lookup.model"
local misuse = require "gen.model.misuse"
local schema = require "gen.model.schema"

local transformer_model = { title = "A transformer" }

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

-- FFN `ffn` of blocks of width `d`, filled in: a LookupFFN of few operations that learns as a dense FFN does
-- (docs/training.md). Two rows of each table are the choice only together with h, the number of tables.
function transformer_model.filled(ffn, d)
    if ffn.kind ~= "lookup" then return ffn end
    local block = math.min(16, lookup_model.power_of_two_at_least(d))
    local filled = {
        h = math.max(1, d // 4),
        tau = 8,
        projection = { kind = "bh4", block = block, decay = lookup_model.decay },
        score = "gelu",
        scale = "none",
        neighbours = ffn.h and 1 or 2,
    }
    for key, value in pairs(ffn) do
        filled[key] = value
    end
    return filled
end

local function positive(last) return schema.integer(1, last) end
local eps_rule = schema.number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end)
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
}
local attention_keys = {
    {
        key = "eliminate",
        rule = schema.choice(table.unpack(eliminations)),
        default = "none",
        doc = "projections that are merged into others",
    },
    { key = "context", rule = positive(1 << 24), doc = "maximum number of tokens that are attended to" },
    { key = "window", rule = positive(1 << 24), optional = true, doc = "sliding window: only the last so many tokens" },
    { key = "causal", rule = schema.boolean, default = true, doc = "a token attends to no later ones" },
    {
        key = "rope",
        rule = schema.table("theta, share, pairs", rope_keys),
        optional = true,
        doc = "rotary positions of q and k",
    },
    {
        key = "scale",
        rule = schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end),
        optional = true,
        doc = "factor of q k; absent: 1 / sqrt(width of a head)",
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
    table.unpack(rows_of_lookup("h", "tau", "projection", "score", "scale", "neighbours")),
}
local norm_keys = {
    { key = "kind", rule = schema.choice("layernorm", "rmsnorm"), doc = "normalisation in a block" },
    { key = "eps", rule = eps_rule, default = 1e-5, doc = "added to the variance, or to the mean square" },
    {
        key = "place",
        rule = schema.choice("pre", "post"),
        default = "pre",
        doc = "before attention and FFN, or after each and its skip connection",
    },
}

transformer_model.keys = {
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
        rule = schema.table("eliminate, context, window, causal, rope, scale, shaped", attention_keys),
        doc = "makes it a transformer",
    },
    {
        key = "ffn",
        rule = schema.table("kind, f, activation, or those of a LookupFFN", ffn_keys),
        doc = "the feed-forward network",
    },
    { key = "skip", rule = schema.boolean, default = false, doc = "skip connections around attention and FFN" },
    { key = "norm", rule = schema.table("kind, eps, place", norm_keys), optional = true, doc = "normalisation" },
    {
        key = "checkpoint",
        rule = schema.choice(table.unpack(checkpoint.kinds)),
        default = checkpoint.default,
        doc = "whose tensor names the weights have",
    },
}

function transformer_model.head_width(m) return m.head_dim or m.d // m.heads end

-- How many values of a head are rotated, where model `m` has rotary positions.
function transformer_model.rotated(m)
    return math.floor(m.attention.rope.share * transformer_model.head_width(m) + 0.5)
end

-- The width of q, and e, that of k and v.
function transformer_model.q_width(m) return transformer_model.head_width(m) * m.heads end
function transformer_model.kv_width(m) return transformer_model.head_width(m) * m.kv_heads end

-- The width of the first block's input, but where tables deliver q, k and v.
function transformer_model.input_width(m) return m.d_in or m.d end

-- Why "QKV" is only of blocks alone.
transformer_model.not_whole = "whole models have q, k and v of their own"

-- Why the projections in the word `eliminate` cannot be done without in model `m`, or nil.
function transformer_model.impossible(m, eliminate)
    local known = {}
    for _, word in ipairs(eliminations) do
        known[word] = true
    end
    if not known[eliminate] then return attention_keys[1].rule.words end
    local first, q = eliminate:sub(1, 1), transformer_model.q_width(m)
    if eliminate ~= "none" and q ~= m.d then
        return string.format(
            "needs heads * head_dim = d = %d, not %d: projections are merged as square matrices",
            m.d,
            q
        )
    elseif eliminate ~= "none" and m.d_in then
        return string.format("needs d_in = d = %d, not %d: projections are merged as square matrices", m.d, m.d_in)
    elseif eliminate:find("QKV", 1, true) then
        if m.ffn.kind ~= "lookup" or m.parallel then
            return 'needs ffn.kind = "lookup" in serial blocks, whose tables can hold q, k and v'
        elseif m.ffn.dense then
            return "needs an FFN without ffn.dense: tables hold q, k and v"
        end
    elseif (first == "K" or first == "V") and m.kv_heads ~= m.heads then
        return string.format(
            "needs kv_heads = heads: %s is a %d by %d matrix and has no inverse; Q can be eliminated",
            first,
            m.d,
            transformer_model.kv_width(m)
        )
    end
end

local function itself(chain) return chain end

-- Raises one line if values that are valid alone do not go together. place(chain): where the file has a key; nil: where
-- a transformer's file has it.
function transformer_model.check(context, m, place)
    place = place or itself
    local function refuse(chain, value, rule) schema.refuse(context, place(chain), value, rule) end
    if m.kv_heads == "heads" then m.kv_heads = m.heads end
    if not m.head_dim and m.d % m.heads ~= 0 then
        refuse({ "heads" }, m.heads, string.format("must divide d = %d, or head_dim says how wide a head is", m.d))
    end
    -- A key that says what holds without it makes no other model.
    if m.head_dim and m.head_dim * m.heads == m.d then m.head_dim = nil end
    if m.d_in == m.d then m.d_in = nil end
    if m.heads % m.kv_heads ~= 0 then
        refuse({ "kv_heads" }, m.kv_heads, string.format("must divide heads = %d", m.heads))
    end
    if m.d_in and m.layers > 1 then
        refuse(
            { "d_in" },
            m.d_in,
            string.format("must be d = %d: the next of %d layers reads what is d wide", m.d, m.layers)
        )
    end
    if m.d_in and m.parallel then
        refuse(
            { "d_in" },
            m.d_in,
            string.format("must be d = %d: attention and FFN of parallel blocks read one input", m.d)
        )
    end
    local attention, width = m.attention, transformer_model.head_width(m)
    if attention.window and attention.window > attention.context then
        refuse(
            { "attention", "window" },
            attention.window,
            string.format("must be at most attention.context = %d", attention.context)
        )
    end
    if attention.rope then
        local rotated = transformer_model.rotated(m)
        local off = math.abs(attention.rope.share * width - rotated) -- by rounding, as of 14 / 50 * 50
        if rotated % 2 ~= 0 or rotated == 0 or off > 1e-9 * width then
            refuse(
                { "attention", "rope" },
                nil,
                string.format(
                    "rotates share = %g of heads of %s = %d: must be an even number of elements",
                    attention.rope.share,
                    m.head_dim and "head_dim" or "d / heads",
                    width
                )
            )
        end
    end
    -- As with other keys: what holds without it makes no other model.
    if attention.shaped == false then attention.shaped = nil end
    if attention.shaped and attention.window then
        refuse({ "attention", "shaped" }, true, "must be absent beside attention.window = " .. attention.window)
    end
    m.ffn = transformer_model.filled(m.ffn, m.d)
    if m.ffn.kind == "lookup" then
        lookup_model.check(context, ffn_parts.add_lookup({ d = m.d, d_out = m.d }, m.ffn), place { "ffn" })
    end
    local reason = transformer_model.impossible(m, attention.eliminate)
    if reason then refuse({ "attention", "eliminate" }, attention.eliminate, reason) end
end

local function has_bh4(m) return m.ffn.kind == "lookup" and m.ffn.projection.kind == "bh4" end

-- Raises one line for options of a command that mean nothing for model `m`, which consists of `runs` of equal blocks;
-- nil: of one.
function transformer_model.check_options(m, options, runs)
    if not options["blocks-in-out"] then return end
    for _, run in ipairs(runs or { m }) do
        if has_bh4(run) then return end
    end
    misuse("--blocks-in-out: is for lookup FFNs with projection.kind = bh4: " .. m.name .. " has none")
end

transformer_model.marks = { "attention" }

-- Whether the table of a model file, or a validated model, is a transformer.
function transformer_model.claims(given) return given.attention ~= nil and given.embedding == nil end

return transformer_model
