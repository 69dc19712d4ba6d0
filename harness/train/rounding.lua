-- What --quantise rounds for passes forward: tables and projections, as pack does.
local dtype = require "gen.plan.dtype"
local misuse = require "gen.schema.misuse"

local rounding = {}

-- The types of --quantise TABLES[,PROJECTION]: { tables, projection }; one type is for both, but one that only tables
-- have leaves projections as they are.
function rounding.types(text)
    local first, second = text:match "^([^,]*),?(.*)$"
    local function checked(name, use, what)
        local good, row = pcall(dtype.get, name, use)
        if not good then
            local names = table.concat(use == "tables" and dtype.names or dtype.projection_names, ", ")
            misuse(string.format("--quantise: %s: %s must be one of %s", text, what, names))
        end
        return row.name
    end
    local tables = checked(first, "tables", "tables")
    if second == "" then second = dtype.get(tables).only == "tables" and "f32" or first end
    return { tables = tables, projection = checked(second, "projection", "projections") }
end

-- How a tensor of a training plan is rounded (harness/train/rounding_at.h), nil: it is read as it is.
function rounding.of(tensor, types)
    local type = types[tensor.kind]
    if not type or type == "f32" then return nil end
    local before = tensor.kind == "tables" and dtype.get(type).scaled -- their factor, which is the scales'
    return { type = type, row = tensor.folded.row, steps = before and {} or tensor.folded.steps }
end

return rounding
