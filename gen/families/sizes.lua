-- What <model>_sizes() tells: one row a member of <model>_description, from which the bindings of other languages are
-- printed as well.
local families = require "gen.families.list"

local sizes = {}

-- A kind of member: its declaration in C, its type in Python's ctypes and in Rust. Texts are arrays: pointers would
-- make the structure one that the loader writes to.
local kinds = {
    size = { c = "size_t %s", ctypes = "ctypes.c_size_t", rust = "usize" },
    number = { c = "float %s", ctypes = "ctypes.c_float", rust = "f32" },
}
for _, bytes in ipairs { 16, 48, 96 } do
    kinds[bytes] = {
        c = "char %s[" .. bytes .. "]",
        ctypes = "ctypes.c_char * " .. bytes,
        rust = "[c_char; " .. bytes .. "]",
    }
end

-- The members for plan `p`: { name, doc, value: a C expression, declared: in C, ctypes, rust }. A family's own rows are
-- { name, doc }, of which the header has a macro; with `text`, the value, of fewer than `bytes`, or 16; or with `kind`.
function sizes.of(p)
    local list, isas = {}, {}
    for i, v in ipairs(p.variants) do
        isas[i] = v.isa.name
    end
    local function add(row)
        local name, kind = row[1], kinds[row.text and (row.bytes or 16) or row.kind or "size"]
        assert(not row.text or #row.text < (row.bytes or 16))
        list[#list + 1] = {
            name = name,
            doc = row[2],
            value = row.value or row.text and '"' .. row.text .. '"' or p.names.macro(name:upper()),
            declared = kind.c:format(name),
            ctypes = kind.ctypes,
            rust = kind.rust,
        }
    end
    add { "model", "its name", text = p.names.model, bytes = 48 }
    add { "family", "its kind", text = p.family }
    add { "digest", "of the model, as blobs have it: 32 hexadecimal digits", text = p.digest:sub(1, 32), bytes = 48 }
    if isas[1] then
        add {
            "isas",
            "names of instruction sets, in the order of weights.isa",
            text = table.concat(isas, ","),
            bytes = 96,
        }
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
