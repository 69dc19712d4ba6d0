-- The types of a blob of integers.
local misuse = require "gen.model.misuse"
local types = {}

-- The types that the projection's weights may have; fields as in gen/plan/dtype.lua, `max`: the largest |weight|.
local projection_types = {
    { name = "i8", bytes = 1, storage = "int8_t", scaled = false, word = { storage = "int8_t", rows = 1 }, max = 127 },
    {
        name = "i16",
        bytes = 2,
        storage = "int16_t",
        scaled = false,
        word = { storage = "int16_t", rows = 1 },
        max = 32767,
    },
}
types.projection_names = { "i8", "i16" }
types.tables = { name = "i8", bytes = 1, storage = "int8_t", scaled = true }

-- The types of the other sections, by name.
for _, row in ipairs {
    { name = "u8", bytes = 1, storage = "uint8_t" },
    { name = "u16", bytes = 2, storage = "uint16_t" },
    { name = "i16", bytes = 2, storage = "int16_t" },
    { name = "i32", bytes = 4, storage = "int32_t" },
} do
    types[row.name] = row
end

-- The type of the projection's weights of that name; raises one line for another.
function types.projection(name)
    for _, row in ipairs(projection_types) do
        if row.name == (name or "i16") then return row end
    end
    misuse(
        '--projection: "'
            .. name
            .. '": must be one of '
            .. table.concat(types.projection_names, ", ")
            .. " with --arithmetic integer"
    )
end

return types
