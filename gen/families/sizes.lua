-- What <model>_sizes() tells: one row a member of <model>_description, from which the bindings of other languages are
-- printed as well.
local families = require "gen.families.list"

local sizes = {}

-- A kind of member: its type in C, in Python's ctypes and in Rust.
local kinds = {
    size = { c = "size_t ", ctypes = "c_size_t", rust = "usize" },
    number = { c = "float ", ctypes = "c_float", rust = "f32" },
    text = { c = "const char *", ctypes = "c_char_p", rust = "*const c_char" },
}

-- The members for plan `p`: { name, doc, value: a C expression, declared: in C, ctypes, rust }. A family's own rows are
-- { name, doc }, of which the header has a macro, with `text`, the value, for words, or with `kind`.
function sizes.of(p)
    local list, isas = {}, {}
    for i, v in ipairs(p.variants) do
        isas[i] = v.isa.name
    end
    local function add(row)
        local name, kind = row[1], kinds[row.text and "text" or row.kind or "size"]
        list[#list + 1] = {
            name = name,
            doc = row[2],
            value = row.value or row.text and '"' .. row.text .. '"' or p.names.macro(name:upper()),
            declared = kind.c .. name,
            ctypes = kind.ctypes,
            rust = kind.rust,
        }
    end
    add { "model", "its name", text = p.names.model }
    add { "family", "its kind", text = p.family }
    add { "digest", "of the model, as blobs have it: 32 hexadecimal digits", text = p.digest:sub(1, 32) }
    if isas[1] then
        add { "isas", "names of instruction sets, in the order of weights.isa", text = table.concat(isas, ",") }
    end
    add { "align", "of all memory that a call takes as bytes" }
    add { "weights_bytes", "of a blob" }
    add { "struct_bytes", "of a " .. p.names.weights, value = "sizeof(" .. p.names.weights .. ")" }
    for _, row in ipairs(families.get(p.family).sizes(p)) do
        add(row)
    end
    return list
end

return sizes
