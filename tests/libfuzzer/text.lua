-- What the commands for whole models read beside text: rows of CSV, which are read back as they are written, and ids.
local csv = require "harness.families.model.csv"
local host = require "host"
local ids = require "harness.families.model.ids"
local rules = require "tests.libfuzzer.rules"

local vocab = 300

-- The text of `rows` with every field in quotes.
local function quoted(rows)
    local lines = {}
    for i, row in ipairs(rows) do
        local fields = {}
        for f, field in ipairs(row.fields) do
            fields[f] = '"' .. field:gsub('"', '""') .. '"'
        end
        lines[i] = table.concat(fields, ",") .. "\r\n"
    end
    return table.concat(lines)
end

return function(path)
    local rows = rules.try(path, csv.rows, path, assert(host.read(path)))
    if rows then
        local again, last = csv.rows(path, quoted(rows)), 0
        rules.same("rows", #again, #rows)
        for i, row in ipairs(rows) do
            rules.same("row " .. i, again[i].fields, row.fields)
            if row.line <= last then error("row " .. i .. " stands in line " .. row.line, 0) end
            last = row.line
        end
    end
    for _, id in ipairs(rules.try(path, ids.read, path, vocab) or {}) do
        if math.type(id) ~= "integer" or id < 0 or id >= vocab then error("reads the id " .. id, 0) end
    end
end
