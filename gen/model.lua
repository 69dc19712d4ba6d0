-- The schema of a model file: from a Lua table of data to a validated model, or one line that says what is wrong.

local names = require "gen.names"
local sandbox = require "sandbox"
local schema = require "gen.schema"

local model = {}

-- Help and README print these lists.
local norm_keys = {
    { key = "kind", rule = schema.choice("layernorm"), doc = "normalisation of the input" },
    { key = "eps", rule = schema.number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end), default = 1e-5, doc = "added to the variance" },
}
local projection_keys = {
    { key = "kind", rule = schema.choice("bh4", "dense"), doc = "block-Hadamard product of four, or one dense matrix" },
    { key = "block", rule = schema.integer(2, 65536), only = "bh4", doc = "block size b, a power of two, at most d padded to one" },
    { key = "decay", rule = schema.number("must be a number from 0 to 1", function(v) return v >= 0 and v <= 1 end), default = 0.7, only = "bh4", doc = "share of the projection; the input keeps 1 - decay" },
}
model.keys = {
    { key = "name", rule = { words = names.rule, holds = function(v) return type(v) == "string" and names.valid(v) end }, doc = "prefix of every emitted symbol" },
    { key = "d", rule = schema.integer(1, 65536), doc = "input width" },
    { key = "d_out", rule = schema.integer(1, 65536), default = "d", doc = "output width" },
    { key = "h", rule = schema.integer(1, 65536), doc = "number of hash tables" },
    { key = "tau", rule = schema.integer(1, 16), doc = "bits of a code; a table has 2^tau rows" },
    { key = "projection", rule = schema.table("kind, block, decay", projection_keys), doc = "how the hashed vector z is computed" },
    { key = "score", rule = schema.choice("gelu", "softmax"), doc = "factor of a row: p_k times the sum of |z|, or p_k" },
    { key = "scale", rule = schema.choice("none", "1/h"), default = "none", doc = "optional factor of every table" },
    { key = "norm", rule = schema.table("kind, eps", norm_keys), optional = true, doc = "LayerNorm before the projection" },
    { key = "neighbours", rule = schema.integer(1, 65536), default = 1, doc = "rows taken from a table, 1 to 2^tau" },
    { key = "budget", rule = schema.number("must be a number above 0, at most 1", function(v) return v > 0 and v <= 1 end), optional = true,
        doc = "largest relative error of y that verify and bench accept" },
}

-- The smallest power of two that is at least n.
function model.power_of_two_at_least(n)
    local power = 1
    while power < n do power = power * 2 end
    return power
end

local function check_together(context, m)
    if m.d_out == "d" then m.d_out = m.d end
    if m.projection.kind == "bh4" then
        local block, padded = m.projection.block, model.power_of_two_at_least(m.d)
        if m.d == 1 then schema.refuse(context, { "projection", "kind" }, "bh4", 'needs d of at least 2; use "dense"') end
        if block & (block - 1) ~= 0 or block > padded then
            schema.refuse(context, { "projection", "block" }, block, string.format("must be a power of two from 2 to %d (d padded to a power of two)", padded))
        end
    end
    if m.neighbours > 1 << m.tau then
        schema.refuse(context, { "neighbours" }, m.neighbours, string.format("must be at most 2^tau = %d", 1 << m.tau))
    end
    if m.h * m.neighbours > 1 << 20 then
        schema.refuse(context, { "neighbours" }, m.neighbours, string.format("h * neighbours = %d rows a token, at most %d are allowed", m.h * m.neighbours, 1 << 20))
    end
    local bytes = m.h * (1 << m.tau) * m.d_out * 4
    if bytes > 1 << 40 then
        schema.refuse(context, { "h" }, m.h, string.format("tables of h * 2^tau * d_out float32 take %.1f TiB, at most 1 TiB is allowed", bytes / 2 ^ 40))
    end
end

-- Where the keys of a validated model stand, for errors that only show later.
local contexts = setmetatable({}, { __mode = "k" })

-- Raises one line for the key chain of the validated model `m`.
function model.refuse(m, chain, value, rule) schema.refuse(contexts[m], chain, value, rule) end

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error.
function model.validate(given, source, path)
    local context = { source = source, path = path }
    local m = schema.validate(context, model.keys, given, {})
    check_together(context, m)
    contexts[m] = context
    return m
end

-- Reads and validates a model file; raises one line "path:line: field = value: rule".
function model.load(path)
    local given, source = sandbox.load(path)
    if not given then error(source, 0) end
    return model.validate(given, source, path)
end

-- The list of keys as aligned lines: help and README show it.
function model.describe()
    local lines = {}
    local function add(keys, prefix)
        for _, row in ipairs(keys) do
            local default = row.default ~= nil and "default " .. tostring(row.default) or row.optional and "optional" or "required"
            local only = row.only and ", " .. row.only .. " only" or ""
            lines[#lines + 1] = string.format("  %-18s %-22s %s", prefix .. row.key, default .. only, row.doc)
            if row.rule.table then
                add(row.rule.table, prefix .. row.key .. ".")
            else
                lines[#lines + 1] = string.format("  %-18s %-22s   %s", "", "", row.rule.words)
            end
        end
    end
    add(model.keys, "")
    return lines
end

return model
