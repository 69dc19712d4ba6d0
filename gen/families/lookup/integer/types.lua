-- The types of a blob of integers; fields as in gen/plan/dtype.lua, `max`: the largest |element| of weights.
local misuse = require "gen.schema.misuse"

local types = { projection_names = { "i8", "i16" }, tables_names = { "i8", "i4" } }

local function projection(name, bytes, storage, max)
    local word = { storage = storage, rows = 1 }
    return { name = name, bytes = bytes, storage = storage, scaled = false, word = word, max = max }
end
local of_projections = { i8 = projection("i8", 1, "int8_t", 127), i16 = projection("i16", 2, "int16_t", 32767) }

local of_tables = {
    i8 = { name = "i8", bytes = 1, storage = "int8_t", scaled = true, max = 127 },
    i4 = { name = "i4", bytes = 0.5, storage = "int8_t", scaled = true, max = 7 },
}

-- Of the other sections.
types.u8 = { name = "u8", bytes = 1, storage = "uint8_t" }
types.u16 = { name = "u16", bytes = 2, storage = "uint16_t" }
types.i16 = { name = "i16", bytes = 2, storage = "int16_t" }
types.i32 = { name = "i32", bytes = 4, storage = "int32_t" }

local function named(rows, name, option, names)
    local form = '--%s: "%s": must be one of %s with --arithmetic integer'
    return rows[name] or misuse(form:format(option, name, table.concat(names, ", ")))
end

-- The types of the projection's weights and of the tables of those names, nil: of the default; raise one line for
-- others.
function types.projection(name) return named(of_projections, name or "i16", "projection", types.projection_names) end
function types.tables(name) return named(of_tables, name or "i8", "tables", types.tables_names) end

return types
