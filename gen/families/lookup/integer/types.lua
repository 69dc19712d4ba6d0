-- The types of a blob of integers; fields as in gen/plan/dtype.lua, `max`: the largest |weight|.
local misuse = require "gen.schema.misuse"

local types = { projection_names = { "i8", "i16" } }

local function projection(name, bytes, storage, max)
    local word = { storage = storage, rows = 1 }
    return { name = name, bytes = bytes, storage = storage, scaled = false, word = word, max = max }
end
local of_projections = { i8 = projection("i8", 1, "int8_t", 127), i16 = projection("i16", 2, "int16_t", 32767) }

types.tables = { name = "i8", bytes = 1, storage = "int8_t", scaled = true }

-- Of the other sections.
types.u8 = { name = "u8", bytes = 1, storage = "uint8_t" }
types.u16 = { name = "u16", bytes = 2, storage = "uint16_t" }
types.i16 = { name = "i16", bytes = 2, storage = "int16_t" }
types.i32 = { name = "i32", bytes = 4, storage = "int32_t" }

-- The type of the projection's weights of that name; raises one line for another.
function types.projection(name)
    local names = table.concat(types.projection_names, ", ")
    return of_projections[name or "i16"]
        or misuse(string.format('--projection: "%s": must be one of %s with --arithmetic integer', name, names))
end

return types
