-- The text of a model file out of its table.
local model_text = {}

-- The value as Lua source.
local function literal(value)
    if type(value) == "string" then return string.format("%q", value) end
    if math.type(value) == "integer" or type(value) == "boolean" then return tostring(value) end
    local short = string.format("%.15g", value)
    return tonumber(short) == value and short or string.format("%.17g", value)
end

local fields

-- A value of the key of `row`: a table in the order of its keys, a list of numbers, or one of tables as `layers` may
-- be.
local function source(row, keys, value)
    if type(value) ~= "table" then return literal(value) end
    if value[1] == nil then
        local inner = fields(row.rule.table, value, true)
        return inner == "" and "{}" or "{ " .. inner .. " }"
    end
    if type(value[1]) == "number" then return "{ " .. table.concat(value, ", ") .. " }" end
    local list = {}
    for i, entry in ipairs(value) do
        local of_entry = { { key = "count" }, table.unpack(keys) }
        list[i] = "{ " .. fields(of_entry, entry, true) .. " }"
    end
    return "{ " .. table.concat(list, ", ") .. " }"
end

-- The fields of a table in the order of `keys`, on one line; defaults only in inner tables.
function fields(keys, t, inner)
    local list = {}
    for _, row in ipairs(keys) do
        local value = t[row.key]
        if value ~= nil and (type(value) == "table" or inner or value ~= row.default) then
            list[#list + 1] = row.key .. " = " .. source(row, keys, value)
        end
    end
    return table.concat(list, ", ")
end

-- The text of the model file of the table `m`, whose keys are the rows `keys`, below the comment.
function model_text.of(comment, keys, m)
    local lines = { "-- " .. comment, "return {" }
    for _, row in ipairs(keys) do
        local line = fields({ row }, m)
        if row.key == "layers" and type(m.layers) == "table" then line = "layers = " .. source(row, keys, m.layers) end
        if line ~= "" then lines[#lines + 1] = "    " .. line .. "," end
    end
    lines[#lines + 1] = "}"
    return table.concat(lines, "\n") .. "\n"
end

return model_text
