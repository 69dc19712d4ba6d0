-- From a model file to a validated model, or one line that says what is wrong. There are two kinds: a LookupFFN, and,
-- known by its key `attention`, a transformer.
local lookup_model = require "gen.families.lookup.model"
local sandbox = require "sandbox"
local schema = require "gen.model.schema"
local transformer_model = require "gen.families.transformer.model"

local model =
    { kinds = { lookup_model, transformer_model }, power_of_two_at_least = lookup_model.power_of_two_at_least }

-- Where the keys of a validated model stand, for errors that only show later.
local contexts = setmetatable({}, { __mode = "k" })

-- Raises one line for the key chain of the validated model `m`.
function model.refuse(m, chain, value, rule) schema.refuse(contexts[m], chain, value, rule) end

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error.
function model.validate(given, source, path)
    local context = { source = source, path = path }
    local kind = given.attention ~= nil and transformer_model or lookup_model
    local m = schema.validate(context, kind.keys, given, {})
    kind.check(context, m, {})
    contexts[m] = context
    return m
end

-- Reads and validates a model file; raises one line "path:line: field = value: rule".
function model.load(path)
    local given, source = sandbox.load(path)
    if not given then error(source, 0) end
    return model.validate(given, source, path)
end

-- Raises one line if `m` is not a LookupFFN.
function model.only_lookup(m)
    if m.attention then model.refuse(m, { "attention" }, nil, "is a transformer's key, this is for a LookupFFN") end
end

-- Raises one line if `m` is not a transformer.
function model.only_transformer(m)
    if not m.attention then
        model.refuse(m, { "attention" }, nil, "required key is missing; only a transformer has weights to fuse")
    end
end

-- The keys of both kinds as aligned lines: help and README show them.
function model.describe()
    local lines = {}
    local function add(keys, prefix)
        for _, row in ipairs(keys) do
            local default = row.default ~= nil and "default " .. tostring(row.default)
                or row.optional and "optional"
                or "required"
            local only = row.only and ", " .. schema.only(row, "") .. " only" or ""
            lines[#lines + 1] = string.format("  %-23s %-26s %s", prefix .. row.key, default .. only, row.doc)
            if row.rule.table then
                add(row.rule.table, prefix .. row.key .. ".")
            else
                lines[#lines + 1] = string.format("  %-23s %-26s   %s", "", "", row.rule.words)
            end
        end
    end
    for _, kind in ipairs(model.kinds) do
        lines[#lines + 1] = kind.title
        add(kind.keys, "")
    end
    return lines
end

return model
