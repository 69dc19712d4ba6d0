-- The rules of model files, between keys that are valid alone, and what follows from them: widths, and the runs of
-- equal blocks.
local copied = require "gen.schema.copied"
local ffn_parts = require "gen.schema.ffn_parts"
local figures = require "gen.plan.figures"
local keys = require "gen.families.model.keys"
local lookup_model = require "gen.families.lookup.model"
local misuse = require "gen.schema.misuse"
local same = require "gen.schema.same"
local schema = require "gen.schema.schema"
local tokenizer_model = require "gen.families.tokenizer.model"
local validated = require "gen.schema.validated"

local rules = {}

-- FFN `ffn` of blocks of width `d`, filled in: a LookupFFN of few operations that learns as a dense FFN does
-- (docs/training.md). Two rows of each table are the choice only together with h, the number of tables.
function rules.filled(ffn, d)
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

function rules.head_width(m) return m.head_dim or m.d // m.heads end

-- How many values of a head are rotated, where model `m` has rotary positions.
function rules.rotated(m)
    return math.floor(m.attention.rope.share * rules.head_width(m) + 0.5)
end

-- The width of q, and e, that of k and v.
function rules.q_width(m) return rules.head_width(m) * m.heads end
function rules.kv_width(m) return rules.head_width(m) * m.kv_heads end

-- The width of the rows of a block's tables, but where they deliver the next block's q, k and v.
function rules.row_width(m)
    return m.ffn.qkv and rules.q_width(m) + 2 * rules.kv_width(m) + m.d or m.d
end

-- The width of the first block's input, but where tables deliver q, k and v.
function rules.input_width(m) return m.d_in or m.d end

-- How the heads of blocks `m` hash q and k, and what they keep, nil: they attend exactly. rows: of a table; padded: a
-- head's width, filled up with zeros; per_round: codes of its outputs of one transform, rounds: of these, each with
-- signs of its own. together: tables at a time. stages: of the transform, each of butterflies of up to eight outputs,
-- half apart.
function rules.lsh(m)
    local a = m.attention
    if a.kind ~= "lsh" then return nil end
    local padded = lookup_model.power_of_two_at_least(rules.head_width(m))
    local per_round, stages, half = padded // a.tau, {}, 1
    while half < padded do
        local ways = 8 * half <= padded and 8 or padded // half
        stages[#stages + 1], half = { half = half, ways = ways }, half * ways
    end
    return {
        stages = stages,
        tables = a.tables,
        together = a.tables % 4 == 0 and 4 or a.tables % 2 == 0 and 2 or 1,
        tau = a.tau,
        rows = 1 << a.tau,
        window = a.window,
        eps = a.eps,
        seed = a.seed,
        padded = padded,
        per_round = per_round,
        rounds = (a.tables + per_round - 1) // per_round,
    }
end

-- What attention `a` keeps of the tokens of a sequence.
local function kept_by(a)
    if a.kind ~= "lsh" then return a.cache == "k" and "keys" or "keys and values" end
    if not a.causal then return "keys, values and codes" end
    return a.window > 0 and "tables and the last " .. figures.plural(a.window, "token") or "tables"
end

-- What the layers of model `m` keep of the tokens of a sequence.
function rules.cached(m)
    local list, seen = {}, {}
    for _, segment in ipairs(rules.segments(m)) do
        local kept = kept_by(segment.attention)
        if not seen[kept] then
            list[#list + 1], seen[kept] = kept, true
        end
    end
    return table.concat(list, " or ")
end

-- Why "QKV" is only of blocks alone.
rules.not_whole = "whole models have q, k and v of their own"

-- Why the projections in the word `eliminate` cannot be done without in model `m`, or nil.
function rules.impossible(m, eliminate)
    if not keys.eliminate.holds(eliminate) then return keys.eliminate.words end
    local first, q = eliminate:sub(1, 1), rules.q_width(m)
    if eliminate ~= "none" and m.ffn.qkv then
        return "must be none beside ffn.qkv: the blocks have no Q, K, V and P"
    elseif eliminate ~= "none" and q ~= m.d then
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
            rules.kv_width(m)
        )
    elseif m.attention.cache and eliminate:find("V", 1, true) then
        return 'needs attention.cache = "kv": V is what makes values of keys'
    elseif m.attention.qk_norm and eliminate ~= "none" and first ~= "V" then
        return "needs attention without qk_norm, across which Q and K cannot be merged; V can be eliminated"
    end
end

-- Why blocks `m` cannot make values of keys, v = V K^-1 k, or nil.
local function valueless(m)
    local attention, q = m.attention, rules.q_width(m)
    if not attention.causal then return "needs attention.causal = true: others keep nothing from call to call" end
    if m.kv_heads ~= m.heads then
        return string.format(
            "needs kv_heads = heads: K is a %d by %d matrix and has no inverse",
            rules.kv_width(m),
            rules.input_width(m)
        )
    elseif q ~= rules.input_width(m) then
        local rule = "needs heads * head_dim = %d, the width of the block's input, not %d: K has no inverse"
        return rule:format(rules.input_width(m), q)
    end
    for _, key in ipairs { "qk_norm", "unit", "shifted", "shaped" } do
        if attention[key] then return "needs attention without " .. key .. ", which parts keys from values" end
    end
    return m.projected and "needs embedding without projected, which delivers values" or nil
end

-- Why rows of tables of blocks `m` cannot hold q, k and v, or nil.
local function unlookable(m)
    local q = rules.q_width(m)
    if not m.parallel then return "needs parallel = true: attention and FFN read one hash of the block's input" end
    if m.ffn.dense then return "needs an FFN without ffn.dense: all that the block makes comes out of tables" end
    if m.attention.cache then return "needs attention without cache: nothing makes values of keys" end
    if m.norm and m.norm.place ~= "pre" then
        return string.format('needs norm.place = "pre", not "%s": the hash has one norm, before it', m.norm.place)
    end
    local rule = "needs heads * head_dim = d = %d, not %d: heads' outputs are added to the residual without P"
    return q ~= m.d and rule:format(m.d, q) or nil
end

-- Why attention and FFN of blocks `m` cannot share a norm, or nil.
local function unshareable(m)
    if not m.parallel then return "needs parallel = true: serial blocks norm attention's output before the FFN" end
    if m.norm.place ~= "pre" then return string.format('needs norm.place = "pre", not "%s"', m.norm.place) end
    return m.ffn.qkv and "must be absent beside ffn.qkv, which has one norm" or nil
end

local function itself(chain) return chain end

-- What rotary positions must be in heads that are `width` wide; refuse(chain, value, rule).
local function check_rope(m, width, refuse)
    local rope = m.attention.rope
    local rotated = rules.rotated(m)
    local off = math.abs(rope.share * width - rotated) -- by rounding, as of 14 / 50 * 50
    if rotated % 2 ~= 0 or rotated == 0 or off > 1e-9 * width then
        refuse(
            { "attention", "rope" },
            nil,
            string.format(
                "rotates share = %g of heads of %s = %d: must be an even number of elements",
                rope.share,
                m.head_dim and "head_dim" or "d / heads",
                width
            )
        )
    end
    local scaling = rope.scaling
    if scaling and scaling.fast and scaling.fast <= scaling.slow then
        local rule = string.format("must be above slow = %g", scaling.slow)
        refuse({ "attention", "rope", "scaling", "fast" }, scaling.fast, rule)
    end
    if scaling and scaling.kind == "yarn" and rope.theta == 1 then
        refuse({ "attention", "rope", "theta" }, 1, 'must be above 1 for scaling.kind = "yarn"')
    end
end

local most_rows = 1 << 20 -- of the tables of a head

-- Takes what holds without it out of `attention`.
local function without_defaults(attention)
    for key, value in pairs { kind = "exact", cache = "kv", unit = false, shaped = false } do
        if attention[key] == value then attention[key] = nil end
    end
end

-- The window of attention by tables `a`, of so many tokens, that says none.
local function fill_window(a, context) a.window = a.window or math.min(16, context) end

-- Fills in what `own`, the attention of an entry of `layers`, does not say and the model cannot, as it is of another
-- kind.
local function fill_attention(own, model)
    if own.kind == "exact" then own.kind = nil end
    if not own.kind or model.kind == own.kind then return end
    for key, value in pairs(keys.attention_defaults) do
        if own[key] == nil then own[key] = value end
    end
    fill_window(own, model.context)
end

-- What attention by tables needs in blocks `m`; refuse(chain, value, rule). Its window is filled in.
local function check_lsh(m, refuse)
    local a = m.attention
    for _, key in ipairs { "unit", "scale", "soft_cap", "cache", "shaped", "full_layers" } do
        if a[key] then refuse({ "attention", "kind" }, "lsh", "needs attention without " .. key) end
    end
    fill_window(a, a.context)
    if a.tables << a.tau > most_rows then
        local rule = ("times 2^tau, %d, must be at most %d"):format(1 << a.tau, most_rows)
        refuse({ "attention", "tables" }, a.tables, rule)
    end
    local padded = lookup_model.power_of_two_at_least(rules.head_width(m))
    if a.tau > padded then
        refuse({ "attention", "tau" }, a.tau, "must be at most the width of a head, filled up to " .. padded)
    end
end

-- Raises one line if values of blocks `m` that are valid alone do not go together. place(chain): where the file has a
-- key.
local function check_blocks(context, m, place)
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
    local attention, width = m.attention, rules.head_width(m)
    without_defaults(attention)
    if attention.kind then
        check_lsh(m, refuse)
    elseif attention.window == 0 then
        refuse({ "attention", "window" }, 0, 'must be an integer from 1 to 16777216 without kind = "lsh"')
    end
    if attention.window and attention.window > attention.context then
        refuse(
            { "attention", "window" },
            attention.window,
            string.format("must be at most attention.context = %d", attention.context)
        )
    end
    if attention.rope then check_rope(m, width, refuse) end
    for _, key in ipairs { "qk_norm", "scale" } do
        if attention.unit and attention[key] then
            refuse({ "attention", "unit" }, true, "must be absent beside attention." .. key)
        end
    end
    if attention.shifted and attention.shifted > m.kv_heads then
        refuse({ "attention", "shifted" }, attention.shifted, "must be at most kv_heads = " .. m.kv_heads)
    end
    if attention.shaped and attention.window then
        refuse({ "attention", "shaped" }, true, "must be absent beside attention.window = " .. attention.window)
    end
    local why = attention.cache and valueless(m)
    if why then refuse({ "attention", "cache" }, "k", why) end
    m.ffn = rules.filled(m.ffn, m.d)
    if m.ffn.qkv == false then m.ffn.qkv = nil end
    if m.ffn.kind == "lookup" then
        local alone = ffn_parts.add_lookup({ d = m.d, d_out = rules.row_width(m) }, m.ffn)
        lookup_model.check(context, alone, place { "ffn" })
    end
    if m.norm and m.norm.shared == false then m.norm.shared = nil end
    local apart = m.norm and m.norm.shared and unshareable(m)
    if apart then refuse({ "norm", "shared" }, true, apart) end
    local unfit = m.ffn.qkv and unlookable(m)
    if unfit then refuse({ "ffn", "qkv" }, true, unfit) end
    local reason = rules.impossible(m, attention.eliminate)
    if reason then refuse({ "attention", "eliminate" }, attention.eliminate, reason) end
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

-- The attention of the blocks of `entry` in model `m`.
local function attention_of(m, entry)
    if not entry.attention then return m.attention end
    local own, one_kind = copied(m.attention), entry.attention.kind == m.attention.kind
    for _, key in ipairs(keys.attention_varied) do
        if entry.attention[key] ~= nil or not one_kind then own[key] = entry.attention[key] end
    end
    without_defaults(own)
    return own
end

-- Runs of equal blocks as transformers of their own, whose names and layers are theirs: { model }. A transformer is
-- one.
function rules.segments(m)
    if not m.embedding then return { m } end
    local list, entries = {}, {}
    for _, row in ipairs(numbered_entries(m)) do
        local entry = row.entry
        local segment = { projected = row.projected }
        for key, value in pairs(m) do
            if not of_whole[key] then segment[key] = value end
        end
        segment.attention = attention_of(m, entry)
        -- Heads of k and v follow those of q where they are as many in the model.
        if entry.heads and m.kv_heads == m.heads then segment.kv_heads = "heads" end
        for _, key in ipairs(keys.varied) do
            if entry[key] ~= nil then segment[key] = entry[key] end
        end
        if segment.kv_heads == "heads" then segment.kv_heads = segment.heads end
        -- As rules.check leaves them.
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
function rules.looks_up(m)
    for _, segment in ipairs(rules.segments(m)) do
        if segment.ffn.kind == "lookup" then return true end
    end
    return false
end

-- Whether a layer of model `m` attends by tables.
function rules.has_tables(m)
    for _, segment in ipairs(rules.segments(m)) do
        if segment.attention.kind == "lsh" then return true end
    end
    return false
end

-- The plans of the runs of blocks of plan `p`.
function rules.blocks_of(p)
    local list = {}
    for i, segment in ipairs(p.segments) do
        list[i] = segment.plan
    end
    return list
end

-- Model `m` with the keys of its blocks, all of one shape, and their number in `layers`; nil: they differ.
function rules.of_one_shape(m)
    local segments = rules.segments(m)
    if segments[2] then return nil end
    local one = segments[1]
    one.name, one.embedding, one.output = m.name, m.embedding, m.output
    return one
end

-- The number of blocks of model `m`.
function rules.count(m)
    local count = 0
    for _, entry in ipairs(entries_of(m)) do
        count = count + entry.count
    end
    return count
end

-- Width of the rows of the embeddings, of the last block's output, of what the head reads, and of the results.
function rules.widths(m)
    local segments = rules.segments(m)
    local output = m.output or {}
    local w = { input = rules.input_width(segments[1]), last = segments[#segments].d }
    w.embedding = m.embedding.d or w.input
    w.features = output.dense and output.dense.width or w.last
    w.out = output.classes or output.head and m.vocab or w.features
    return w
end

local function check_layers(context, m)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    without_defaults(m.attention)
    if m.attention.kind then fill_window(m.attention, m.attention.context) end
    if type(m.layers) == "table" then
        for i, entry in ipairs(m.layers) do
            local valid = schema.validate(context, keys.entry, entry, { "layers", tostring(i) })
            valid.ffn = valid.ffn and rules.filled(valid.ffn, valid.d or m.d)
            if valid.attention then fill_attention(valid.attention, m.attention) end
            m.layers[i] = valid
        end
    end
    m.ffn = rules.filled(m.ffn, m.d)
    if rules.count(m) > 4096 then refuse({ "layers" }, rules.count(m), "must be at most 4096 blocks") end
    local segments, entries = rules.segments(m)
    local before
    for i, segment in ipairs(segments) do
        check_blocks(context, segment, function(chain) return chain_in(m, entries[i], chain) end)
        local width = rules.input_width(segment)
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
        refuse({ "attention", "eliminate" }, m.attention.eliminate, rules.not_whole)
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
    local width = rules.widths(m).embedding
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
    local widths = rules.widths(m)
    local function refuse(rule) schema.refuse(context, { "embedding", "projected" }, true, rule) end
    if m.parallel then refuse "needs serial blocks: the FFN of parallel ones reads what Q, K and V read" end
    if widths.embedding ~= widths.input then
        local rule = "needs rows as wide as the first block's input, %d, not %d"
        refuse(rule:format(widths.input, widths.embedding))
    end
    if e.norm and m.norm and m.norm.place ~= "post" then
        local rule = 'needs one norm before the maps: the model has embedding.norm and norm.place = "%s"'
        refuse(rule:format(m.norm.place))
    end
end

local function check_output(context, m)
    local function refuse(chain, value, rule) schema.refuse(context, chain, value, rule) end
    local output, widths = m.output or {}, rules.widths(m)
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

local function check_full_layers(context, m)
    local attention, chain = m.attention, { "attention", "full_layers" }
    local full = attention.full_layers
    if not full then return end
    if not attention.window then
        schema.refuse(context, chain, nil, "is of layers without attention.window, which is missing")
    end
    local last, count = full[#full], rules.count(m)
    if last and last >= count then
        schema.refuse(context, chain, nil, string.format("has %d: must be below the number of layers, %d", last, count))
    end
    -- As with other keys: what holds without it makes no other model.
    if not last then attention.full_layers = nil end
end

-- Raises one line if values that are valid alone do not go together.
local function check(context, m)
    if not m.embedding then
        check_full_layers(context, m)
        return check_blocks(context, m, itself)
    end
    if m.kv_heads == "heads" then m.kv_heads = m.heads end
    check_layers(context, m)
    check_full_layers(context, m)
    check_positions(context, m)
    check_projected(context, m)
    check_output(context, m)
    if m.tokenizer then tokenizer_model.check(context, m) end
end

local function has_bh4(m) return m.ffn.kind == "lookup" and m.ffn.projection.kind == "bh4" end

-- Raises one line for options of a command that mean nothing for model `m`.
local function check_options(m, options)
    for _, run in ipairs(rules.segments(m)) do
        if has_bh4(run) then return end
    end
    for _, name in ipairs { "blocks-in-out", "multiply-out" } do
        if options[name] then
            misuse(string.format("--%s: is for lookup FFNs with projection.kind = bh4: %s has none", name, m.name))
        end
    end
end

-- The names of the options that are types.
rules.types = { "type", "cache", "activations", "tables", "projection" }

-- `more` with those of `options`, and what decides beside them what a blob has.
function rules.with_types(options, more)
    more["multiply-out"] = options["multiply-out"]
    for _, key in ipairs(rules.types) do
        more[key] = options[key]
    end
    return more
end

-- The two kinds of model files, and whether the table of one, or a validated model, is one of them.
rules.blocks = {
    title = "A transformer",
    keys = keys.blocks,
    marks = { "attention" },
    check = check,
    check_options = check_options,
    claims = function(given) return given.attention ~= nil and given.embedding == nil end,
}
rules.whole = {
    title = "A whole model",
    keys = keys.whole,
    marks = { "attention", "embedding" },
    check = check,
    check_options = check_options,
    claims = function(given) return given.attention ~= nil and given.embedding ~= nil end,
}

return rules
