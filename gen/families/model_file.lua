-- From a model file to a validated model, or one line that says what is wrong.
local families = require "gen.families.list"
local inputs = require "gen.model.inputs"
local sandbox = require "sandbox"
local schema = require "gen.model.schema"
local validated = require "gen.model.validated"

local model_file = {}

-- The kinds of model files: a family's `model`, each once.
local function kinds()
    local list, seen = {}, {}
    for _, family in ipairs(families.rows) do
        if not seen[family.model] then list[#list + 1] = family.model end
        seen[family.model] = true
    end
    return list
end

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error.
function model_file.validate(given, source, path)
    local context = { source = source, path = path }
    local kind = families.of(given, {}).model
    local m = schema.validate(context, kind.keys, given, {})
    kind.check(context, m, {})
    return validated.note(m, context)
end

-- Reads and validates a model file; raises one line "path:line: field = value: rule".
function model_file.load(path)
    local given, source = sandbox.load(inputs.note(path))
    if not given then
        local json = path:find "%.json$" and ": lookupc import makes model files of a checkpoint's config.json" or ""
        error(source .. json, 0)
    end
    return model_file.validate(given, source, path)
end

-- The keys of all kinds as aligned lines: help and docs show them.
function model_file.describe()
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
    for _, kind in ipairs(kinds()) do
        lines[#lines + 1] = kind.title
        add(kind.keys, "")
    end
    return lines
end

return model_file
