-- From a model file to a validated model, or one line that says what is wrong.
local duplicate_fields = require "gen.schema.duplicate_fields"
local families = require "gen.families.list"
local files_read = require "gen.host.files_read"
local host = require "host"
local json = require "json"
local sandbox = require "sandbox"
local schema = require "gen.schema.schema"
local validated = require "gen.schema.validated"

local model_file = {}

-- The kinds of model files: every family's `model`.
function model_file.kinds()
    local list = {}
    for i, family in ipairs(families.rows) do
        list[i] = family.model
    end
    return list
end

local function has(keys, key)
    for _, row in ipairs(keys) do
        if row.key == key then return row end
    end
end

-- How the table `given` fits the kind of model files `kind`: { missing: rows of the keys that make a file one of that
-- kind and are not there, unknown: keys that it does not have, misspelt: those of them that are nearly one of
-- `missing`, by its name }.
local function fit_of(given, kind)
    local fit, marks = { kind = kind, missing = {}, unknown = {}, misspelt = {} }, {}
    for _, mark in ipairs(kind.marks or {}) do
        if given[mark] == nil then
            table.insert(fit.missing, has(kind.keys, mark))
            marks[#marks + 1] = mark
        end
    end
    for key in pairs(given) do
        if not has(kind.keys, key) then
            local near = type(key) == "string" and schema.nearest(key, marks)
            if near then fit.misspelt[near] = key end
            if not near then table.insert(fit.unknown, key) end
        end
    end
    return fit
end

-- Raises one line for a table that has keys of another kind of model file than `kind`, all but the one that makes it a
-- file of that kind.
local function check_kind(context, given, kind)
    local own, best = fit_of(given, kind), nil
    if #own.unknown == 0 then return end -- no other kind has fewer
    for _, other in ipairs(model_file.kinds()) do
        local fit = fit_of(given, other)
        local fewer = best and #fit.unknown < #best.unknown
        local as_few = best and #fit.unknown == #best.unknown and #fit.missing < #best.missing
        if #fit.missing > 0 and #fit.unknown < #own.unknown and (not best or fewer or as_few) then best = fit end
    end
    if not best then return end
    local row = best.missing[1]
    local word = best.misspelt[row.key]
    if word then schema.refuse(context, { word }, given[word], 'unknown key; did you mean "' .. row.key .. '"?') end
    table.sort(own.unknown, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(own.unknown) do
        if has(best.kind.keys, key) then
            local title = best.kind.title:gsub("^A", "a")
            local form = "is of %s, whose required key %s is missing; it %s"
            schema.refuse(context, { key }, given[key], form:format(title, row.key, row.rule.words))
        end
    end
end

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error.
-- `included`: the files that this one includes, { {path, source} }, nil: none.
function model_file.validate(given, source, path, included)
    local context = { source = source, path = path, included = included }
    local kind = families.of(given).model
    check_kind(context, given, kind)
    local m = schema.validate(context, kind.keys, given, {})
    kind.check(context, m)
    return validated.note(m, context)
end

local largest_json = 1 << 20

-- The object of a JSON file, and its text as one of Lua, in which schema.refuse finds the lines of keys.
local function load_json(path)
    local text = assert(host.read(files_read.note(path), largest_json))
    local given, message = json.decode(text)
    if message then error(path .. ":" .. message, 0) end
    if type(given) ~= "table" or given[1] ~= nil then error(path .. ": must be a JSON object", 0) end
    if given.model_type or given.architectures then
        error(path .. ": is a checkpoint's configuration: lookupc import makes a model file of it", 0)
    end
    return given, "return " .. text:gsub('"([%w_.]+)"(%s*):', "%1%2=")
end

-- The line `message` of a file that cannot be loaded, and what may help.
local function explained(message, path)
    if host.kind(path) ~= "file" and host.kind(path .. ".lua") == "file" then
        return message .. "; did you mean " .. path .. ".lua?"
    end
    return (message:gsub("unexpected symbol near '{'$", "must begin with return {"))
end

-- Reads and validates a model file, in Lua or, by the name of the file, JSON; raises one line
-- "path:line: field = value: rule".
function model_file.load(path)
    if path:find "%.json$" then
        local given, source = load_json(path)
        return model_file.validate(given, source, path)
    end
    local given, source, included = sandbox.load(files_read.note(path))
    if not given then error(explained(source, path), 0) end
    duplicate_fields.refuse(source, path)
    for _, file in ipairs(included) do
        files_read.note(file.path)
        duplicate_fields.refuse(file.source, file.path)
    end
    return model_file.validate(given, source, path, included)
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
    for _, kind in ipairs(model_file.kinds()) do
        lines[#lines + 1] = kind.title
        add(kind.keys, "")
    end
    return lines
end

return model_file
