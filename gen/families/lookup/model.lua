-- The model file of a LookupFFN: its keys, and the rules between them.
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local schema = require "gen.schema.schema"
local score = require "gen.plan.score"

local lookup_model = {
    title = "A LookupFFN",
    decay = 0.7, -- of a BH4 projection, by default
}

local norm_keys = {
    { key = "kind", rule = schema.choice("layernorm"), doc = "normalisation of the input" },
    {
        key = "eps",
        rule = schema.number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end),
        default = 1e-5,
        doc = "added to the variance",
    },
}
local projection_keys = {
    { key = "kind", rule = schema.choice("bh4", "dense"), doc = "block-Hadamard product of four, or one dense matrix" },
    {
        key = "block",
        rule = schema.integer(2, 65536),
        only = "bh4",
        doc = "block size b, a power of two, at most d padded to one",
    },
    {
        key = "decay",
        rule = schema.number("must be a number from 0 to 1", function(v) return v >= 0 and v <= 1 end),
        default = lookup_model.decay,
        only = "bh4",
        doc = "share of the projection; the input keeps 1 - decay",
    },
}
local integer_keys = {
    {
        key = "input",
        rule = schema.number("must be a number above 0, at most 1e6", function(v) return v > 0 and v <= 1e6 end),
        default = 8.0,
        doc = "largest |x|, 32768 units of the int16 input",
    },
    { key = "fraction", rule = schema.integer(0, 30), default = 16, doc = "binary places of the int32 output" },
}
lookup_model.keys = {
    {
        key = "name",
        rule = {
            words = names.rule,
            type = "string",
            holds = function(v) return type(v) == "string" and names.valid(v) end,
        },
        doc = "prefix of every emitted symbol",
    },
    { key = "d", rule = schema.integer(1, 65536), doc = "input width" },
    { key = "d_out", rule = schema.integer(1, 65536), default = "d", doc = "output width" },
    { key = "h", rule = schema.integer(1, 65536), doc = "number of hash tables" },
    { key = "tau", rule = schema.integer(1, 16), doc = "bits of a code; a table has 2^tau rows" },
    {
        key = "projection",
        rule = schema.table("kind, block, decay", projection_keys),
        doc = "how the hashed vector z is computed",
    },
    {
        key = "score",
        rule = schema.choice(table.unpack(score.names)),
        doc = "factor of a row: "
            .. table.concat(score.docs, ", ", 1, #score.docs - 1)
            .. ", or "
            .. score.docs[#score.docs],
    },
    { key = "scale", rule = schema.choice("none", "1/h"), default = "none", doc = "optional factor of every table" },
    {
        key = "norm",
        rule = schema.table("kind, eps", norm_keys),
        optional = true,
        doc = "LayerNorm before the projection",
    },
    { key = "neighbours", rule = schema.integer(1, 65536), default = 1, doc = "rows taken from a table, 1 to 2^tau" },
    {
        key = "integer",
        rule = schema.table("input, fraction", integer_keys),
        optional = true,
        doc = "formats of x and y in integer arithmetic",
    },
    {
        key = "same_codes",
        rule = schema.boolean,
        optional = true,
        doc = "--multiply-out is for calls of any number of tokens, so that a token's codes do not depend on it",
    },
    {
        key = "budget",
        rule = schema.number("must be a number above 0, at most 1", function(v) return v > 0 and v <= 1 end),
        optional = true,
        doc = "largest relative error of y that verify and bench accept",
    },
}

-- The smallest power of two that is at least n.
function lookup_model.power_of_two_at_least(n)
    local power = 1
    while power < n do
        power = power * 2
    end
    return power
end

-- Raises one line if values that are valid alone do not go together; `chain` is the place of `m` in its file, nil: all
-- of it.
function lookup_model.check(context, m, chain)
    chain = chain or {}
    local function refuse(keys, value, rule)
        schema.refuse(context, table.move(keys, 1, #keys, #chain + 1, { table.unpack(chain) }), value, rule)
    end
    if m.d_out == "d" then m.d_out = m.d end
    if m.projection.kind == "bh4" then
        local block, padded = m.projection.block, lookup_model.power_of_two_at_least(m.d)
        if m.d == 1 then refuse({ "projection", "kind" }, "bh4", 'needs d of at least 2; use "dense"') end
        if block & (block - 1) ~= 0 or block > padded then
            refuse(
                { "projection", "block" },
                block,
                string.format("must be a power of two from 2 to %d (d padded to a power of two)", padded)
            )
        end
    end
    if m.neighbours > 1 << m.tau then
        refuse({ "neighbours" }, m.neighbours, string.format("must be at most 2^tau = %d", 1 << m.tau))
    end
    if m.neighbours > 1 and m.neighbours == 1 << m.tau and not score.get(m.score).scored then
        refuse(
            { "neighbours" },
            m.neighbours,
            string.format(
                'must be below 2^tau = %d with score "%s": the sum of all rows would be the same for every token',
                1 << m.tau,
                m.score
            )
        )
    end
    if m.h * m.neighbours > 1 << 20 then
        refuse(
            { "neighbours" },
            m.neighbours,
            string.format("h * neighbours = %d rows a token, at most %d are allowed", m.h * m.neighbours, 1 << 20)
        )
    end
    local bytes = m.h * (1 << m.tau) * m.d_out * 4
    if bytes > 1 << 40 then
        refuse(
            { "h" },
            m.h,
            string.format("tables of h * 2^tau * d_out float32 take %.1f TiB, at most 1 TiB is allowed", bytes / 2 ^ 40)
        )
    end
end

-- Raises one line for options of a command that mean nothing for model `m`.
function lookup_model.check_options(m, options)
    for _, name in ipairs { "blocks-in-out", "multiply-out" } do
        if options[name] and m.projection.kind ~= "bh4" then
            misuse(string.format("--%s: is for projection.kind = bh4: %s has %s", name, m.name, m.projection.kind))
        end
    end
end

-- Whether the table of a model file, or a validated model, is a LookupFFN.
function lookup_model.claims(given) return given.attention == nil and given.tokenizer == nil end

-- What would help with a tensor of a checkpoint that model `m` leaves out; nil: nobody knows.
function lookup_model.left_out(m, name)
    if not m.norm and name:find "LayerNorm%.%a+$" then return "the model file has no norm" end
end

return lookup_model
