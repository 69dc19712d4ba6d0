-- The command `lookupc schema`: the keys of model files as a JSON Schema, or as annotations of Lua.
local host = require "host"
local json = require "json"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local schema = require "gen.schema.schema"

local commands = {}

-- What a key means, in one line.
local function text_of(row)
    local only = row.only and "; " .. schema.only(row, "") .. " only" or ""
    return (row.doc or "") .. (row.rule.table and "" or "; " .. row.rule.words) .. only
end

-- The JSON Schema of a table with the rows `keys`.
local function object_of(keys)
    local properties, required = {}, {}
    for _, row in ipairs(keys) do
        local rule, property = row.rule
        if rule.table then
            property = object_of(rule.table)
        else
            property = { type = rule.type, minimum = rule.first, maximum = rule.last }
            property.enum = rule.values and json.array(rule.values) or nil
        end
        property.description = text_of(row)
        if type(row.default) ~= "table" then property.default = row.default end
        properties[row.key] = property
        local needed = not row.optional and row.default == nil and not row.only
        if needed then required[#required + 1] = row.key end
    end
    return {
        type = "object",
        properties = properties,
        required = json.array(required),
        additionalProperties = false,
    }
end

local function print_json()
    local list = {}
    for i, kind in ipairs(model_file.kinds()) do
        list[i] = object_of(kind.keys)
        list[i].title = kind.title
    end
    host.print(assert(json.encode {
        ["$schema"] = "https://json-schema.org/draft/2020-12/schema",
        title = "model file of lookupc",
        anyOf = json.array(list),
    }))
end

-- Appends the class `name` of a table with the rows `keys` to `lines`, and those of its tables.
local function add_class(lines, name, keys, doc)
    local inner = {}
    if doc then lines[#lines + 1] = "---" .. doc end
    lines[#lines + 1] = "---@class (exact) " .. name
    for _, row in ipairs(keys) do
        local rule, type = row.rule
        if rule.table then
            type = name .. "." .. row.key
            inner[#inner + 1] = { type, rule.table }
        elseif rule.values then
            local words = {}
            for i, value in ipairs(rule.values) do
                words[i] = '"' .. value .. '"'
            end
            type = table.concat(words, "|")
        else
            type = rule.type or "any"
        end
        local optional = (row.optional or row.default ~= nil or row.only) and "?" or ""
        lines[#lines + 1] = string.format("---@field %s%s %s # %s", row.key, optional, type, text_of(row))
    end
    lines[#lines + 1] = ""
    for _, class in ipairs(inner) do
        add_class(lines, class[1], class[2])
    end
end

local function print_lua()
    local lines, names =
        { "---@meta", "-- Model files of lookupc: write ---@type lookupc.model before their table.", "" }, {}
    for i, kind in ipairs(model_file.kinds()) do
        names[i] = "lookupc.model" .. i
        add_class(lines, names[i], kind.keys, kind.title)
    end
    lines[#lines + 1] = "---@alias lookupc.model " .. table.concat(names, "|")
    lines[#lines + 1] = ""
    lines[#lines + 1] = "---The table of another model file, in this one's folder or below."
    lines[#lines + 1] = "---@param path string"
    lines[#lines + 1] = "---@return table"
    lines[#lines + 1] = "function include(path) end"
    host.print(table.concat(lines, "\n"))
end

function commands.schema(_, options)
    if (options.json or false) == (options.lua or false) then misuse("--json: schema takes it or --lua") end
    if options.json then
        print_json()
    else
        print_lua()
    end
    return 0
end

return commands
