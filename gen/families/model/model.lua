-- The model file of a whole model: the keys of a transformer, and those of what stands before its first block and
-- behind its last one.
local same = require "gen.model.same"
local schema = require "gen.model.schema"
local tokenizer_model = require "gen.families.tokenizer.model"
local transformer_model = require "gen.families.model.blocks.model"
local validated = require "gen.model.validated"

local whole_model = { title = "A whole model" }

-- The row of key `key` in `keys`.
local function row_of(keys, key)
    for _, row in ipairs(keys) do
        if row.key == key then return row end
    end
    error("no key is called " .. key)
end

-- That row with another meaning of an absent key: none.
local function optional(keys, key)
    local copy = {}
    for name, value in pairs(row_of(keys, key)) do
        copy[name] = value
    end
    copy.default, copy.optional = nil, true
    return copy
end

local function positive(last) return schema.integer(1, last) end
local eps_rule = schema.number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end)

local norm_keys = {
    { key = "kind", rule = schema.choice("layernorm", "rmsnorm"), doc = "of the norm" },
    { key = "eps", rule = eps_rule, default = 1e-5, doc = "added to the variance, or to the mean square" },
}
local function norm_of(what)
    return { key = "norm", rule = schema.table("kind, eps", norm_keys), optional = true, doc = "norm " .. what }
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

local dense_keys = {
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
        rule = schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end),
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
        rule = schema.table("width, activation, norm", dense_keys),
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
local varied = { "d", "heads", "kv_heads", "head_dim", "d_in", "ffn" }
local entry_keys = {
    { key = "count", rule = positive(4096), default = 1, doc = "blocks of this shape" },
}
for _, key in ipairs(varied) do
    entry_keys[#entry_keys + 1] = optional(transformer_model.keys, key)
end

local most_entries = 64
local layers_rule = {
    words = "must be an integer from 1 to 4096, or a list of up to "
        .. most_entries
        .. " tables of count, "
        .. table.concat(varied, ", "),
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

whole_model.keys = {}
for _, row in ipairs(transformer_model.keys) do
    local own = row
    if row.key == "layers" then
        own = { key = "layers", rule = layers_rule, doc = "number of blocks, or a list where they differ in width" }
    end
    table.insert(whole_model.keys, own)
end
for _, row in ipairs {
    {
        key = "embedding",
        rule = schema.table("d, scale, sinusoidal, first_position, norm, projected", embedding_keys),
        doc = "from ids to the first block; makes it a whole model",
    },
    {
        key = "output",
        rule = schema.table("norm, pool, dense, unit, head, classes", output_keys),
        optional = true,
        doc = "from the last block to the results, in this order",
    },
    optional(tokenizer_model.keys, "tokenizer"),
} do
    table.insert(whole_model.keys, row)
end

-- The entries of `layers`: a number is one.
local function entries_of(m) return type(m.layers) == "table" and m.layers or { { count = m.layers } } end

-- The keys that a run of blocks does not have.
local of_whole = { embedding = true, output = true, tokenizer = true, layers = true }

-- Where a key chain of the blocks of entry number `i` of `layers` stands in model `m`.
local function chain_in(m, i, chain)
    local entry = type(m.layers) == "table" and m.layers[i]
    if not entry or entry[chain[1]] == nil then return chain end
    return { "layers", tostring(i), table.unpack(chain) }
end

-- The entries of `layers` with their numbers; what the first block's maps make may be looked up, and it is then alone.
local function numbered_entries(m)
    local list = {}
    for i, entry in ipairs(entries_of(m)) do
        list[i] = { number = i, entry = entry, count = entry.count }
    end
    if m.embedding and m.embedding.projected then
        local first = list[1]
        first.projected = true
        if first.count > 1 then
            table.insert(list, 2, { number = 1, entry = first.entry, count = first.count - 1 })
            first.count = 1
        end
    end
    return list
end

-- Runs of equal blocks as transformers of their own, whose names and layers are theirs: { model }.
function whole_model.segments(m)
    local list, entries = {}, {}
    for _, row in ipairs(numbered_entries(m)) do
        local entry = row.entry
        local segment = { projected = row.projected }
        for key, value in pairs(m) do
            if not of_whole[key] then segment[key] = value end
        end
        -- Heads of k and v follow those of q where they are as many in the model.
        if entry.heads and m.kv_heads == m.heads then segment.kv_heads = "heads" end
        for _, key in ipairs(varied) do
            if entry[key] ~= nil then segment[key] = entry[key] end
        end
        if segment.kv_heads == "heads" then segment.kv_heads = segment.heads end
        -- As transformer_model.check leaves them.
        if segment.head_dim and segment.head_dim * segment.heads == segment.d then segment.head_dim = nil end
        if segment.d_in == segment.d then segment.d_in = nil end
        local before = list[#list]
        segment.layers = before and before.layers
        if before and not segment.d_in and same(segment, before) then
            before.layers = before.layers + row.count
        else
            segment.layers, list[#list + 1] = row.count, segment
            entries[#list] = row.number
        end
    end
    for i, segment in ipairs(list) do
        segment.name = m.name .. (#list > 1 and "_blocks_" .. i or "_blocks")
        validated.note_part(segment, m, function(chain) return chain_in(m, entries[i], chain) end)
    end
    return list, entries
end

-- Whether a layer of model `m` has a LookupFFN.
function whole_model.looks_up(m)
    for _, segment in ipairs(whole_model.segments(m)) do
        if segment.ffn.kind == "lookup" then return true end
    end
    return false
end

-- Model `m` with the keys of its blocks, all of one shape, and their number in `layers`; nil: they differ.
function whole_model.of_one_shape(m)
    local segments = whole_model.segments(m)
    if segments[2] then return nil end
    local one = segments[1]
    one.name, one.embedding, one.output = m.name, m.embedding, m.output
    return one
end

-- The number of blocks of model `m`.
function whole_model.count(m)
    local count = 0
    for _, entry in ipairs(entries_of(m)) do
        count = count + entry.count
    end
    return count
end

-- Width of the rows of the embeddings, of the last block's output, of what the head reads, and of the results.
function whole_model.widths(m)
    local segments = whole_model.segments(m)
    local output = m.output or {}
    local w = { input = transformer_model.input_width(segments[1]), last = segments[#segments].d }
    w.embedding = m.embedding.d or w.input
    w.features = output.dense and output.dense.width or w.last
    w.out = output.classes or output.head and m.vocab or w.features
    return w
end

local function check_layers(context, m)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    if type(m.layers) == "table" then
        for i, entry in ipairs(m.layers) do
            local valid = schema.validate(context, entry_keys, entry, { "layers", tostring(i) })
            valid.ffn = valid.ffn and transformer_model.filled(valid.ffn, valid.d or m.d)
            m.layers[i] = valid
        end
    end
    m.ffn = transformer_model.filled(m.ffn, m.d)
    if whole_model.count(m) > 4096 then refuse({ "layers" }, whole_model.count(m), "must be at most 4096 blocks") end
    local segments, entries = whole_model.segments(m)
    local before
    for i, segment in ipairs(segments) do
        transformer_model.check(context, segment, function(chain) return chain_in(m, entries[i], chain) end)
        local width = transformer_model.input_width(segment)
        if before and width ~= before then
            refuse(
                { "layers", tostring(entries[i]) },
                nil,
                string.format("a block takes %d values a token, but the one before makes %d", width, before)
            )
        end
        before = segment.d
    end
    if before ~= m.d then
        refuse({ "d" }, m.d, string.format("must be the width of the last block of layers, %d", before))
    end
    if m.attention.eliminate:find("QKV", 1, true) then
        refuse({ "attention", "eliminate" }, m.attention.eliminate, transformer_model.not_whole)
    end
    if m.attention.eliminate ~= "none" and m.embedding.projected then
        local rule = string.format('needs attention.eliminate = "none", not "%s"', m.attention.eliminate)
        refuse({ "embedding", "projected" }, true, rule)
    end
    if m.attention.eliminate ~= "none" and #segments > 1 then
        refuse({ "attention", "eliminate" }, m.attention.eliminate, "only of blocks that are all of one shape")
    end
end

local function check_positions(context, m)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    local embedding, first = m.embedding, m.embedding.first_position or 0
    if embedding.sinusoidal and m.positions then
        refuse(
            { "embedding", "sinusoidal" },
            nil,
            "must be absent where positions are learned: positions = " .. m.positions
        )
    end
    if embedding.first_position and not m.positions then
        refuse({ "embedding", "first_position" }, first, "is of learned positions: the key positions is missing")
    end
    if m.positions and m.positions < first + m.attention.context then
        refuse(
            { "positions" },
            m.positions,
            string.format(
                "must be at least attention.context + embedding.first_position = %d",
                first + m.attention.context
            )
        )
    end
    local width = whole_model.widths(m).embedding
    if embedding.sinusoidal and width % 2 ~= 0 then
        refuse({ "embedding", "sinusoidal" }, nil, string.format("needs rows of an even width, not of %d", width))
    end
    if embedding.sinusoidal and embedding.sinusoidal.steps == "n-1" and width < 4 then
        refuse({ "embedding", "sinusoidal", "steps" }, "n-1", string.format("needs rows wider than %d", width))
    end
end

local function check_projected(context, m)
    local e = m.embedding
    -- What holds without it makes no other model.
    if not e.projected then
        e.projected = nil
        return
    end
    local widths = whole_model.widths(m)
    local function refuse(rule) schema.refuse(context, { "embedding", "projected" }, true, rule) end
    if m.parallel then refuse "needs serial blocks: the FFN of parallel ones reads what Q, K and V read" end
    if widths.embedding ~= widths.input then
        local rule = "needs rows as wide as the first block's input, %d, not %d"
        refuse(rule:format(widths.input, widths.embedding))
    end
    if e.norm and m.norm and m.norm.place == "pre" then
        refuse "needs one norm before the maps: the model has embedding.norm and norm.place = \"pre\""
    end
end

local function check_output(context, m)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    local output, widths = m.output or {}, whole_model.widths(m)
    if output.pool and m.attention.causal then
        refuse({ "output", "pool" }, output.pool, "is of encoders: needs attention.causal = false")
    end
    if output.head and output.classes then
        refuse({ "output", "classes" }, output.classes, "must be absent beside output.head")
    end
    for _, key in ipairs { "head", "classes" } do
        if output.unit and output[key] then
            refuse({ "output", "unit" }, true, "must be absent beside output." .. key)
        end
    end
    if m.tied and not output.head then refuse({ "tied" }, true, "needs output.head, which is tied to the embedding") end
    if m.tied and widths.features ~= widths.embedding then
        refuse(
            { "tied" },
            true,
            string.format(
                "the head takes %d values, but rows of the embedding have %d",
                widths.features,
                widths.embedding
            )
        )
    end
end

-- Raises one line if values that are valid alone do not go together.
function whole_model.check(context, m)
    if m.kv_heads == "heads" then m.kv_heads = m.heads end
    check_layers(context, m)
    check_positions(context, m)
    check_projected(context, m)
    check_output(context, m)
    if m.tokenizer then tokenizer_model.check(context, m) end
end

whole_model.marks = { "attention", "embedding" }

function whole_model.check_options(m, options)
    transformer_model.check_options(m, options, whole_model.segments(m))
end

-- Whether the table of a model file, or a validated model, is a whole model.
function whole_model.claims(given) return given.embedding ~= nil and given.attention ~= nil end

return whole_model
