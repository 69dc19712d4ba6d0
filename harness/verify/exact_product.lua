-- Compares the emitted product of rounded inputs with one in int64: the kernel `symbol` of the library at the path, for
-- `inputs` inputs of the type of that name and several numbers of outputs and tokens. Raises one line.
local compiled = require "compiled"
local exact_products = require "exact_products"
local guarded = require "harness.base.guarded"

local panel = 32 -- outputs

-- Memory between guard pages, alignment as compiled.memory takes it, that holds `text` if there is one.
local function memory_of(bytes, text, alignment)
    local memory = compiled.memory(bytes or #text, "end", alignment)
    if text then memory:write(text) end
    return memory
end

-- A struct of pointers to memories, and of sizes.
local function struct_of(...)
    local text = ""
    for _, field in ipairs { ... } do
        text = text .. ("=I8"):pack(math.type(field) and field or field:address())
    end
    return { name = "a struct", text = text, alignment = 8 }
end

return function(library, symbol, type, inputs)
    local own = assert(compiled.open { library = library })
    for n, tokens in ipairs { 1, 2, 3, 13, 29 } do
        local panels = n % 2 == 0 and 1 or 5
        local outputs = panels * panel
        local step = outputs + 5
        local x, w, x_step = exact_products.inputs(type, inputs, panels, tokens, inputs + n)
        local from, weights = memory_of(nil, x, 4), memory_of(nil, w)
        local bias, scales = memory_of(nil, ("\0"):rep(4 * outputs)), memory_of(nil, ("f"):pack(1):rep(outputs))
        local to = memory_of(4 * ((tokens - 1) * step + outputs), nil, 4)
        local map = type:find "^i[78]$" and struct_of(weights, scales, bias, inputs, panels)
            or struct_of(weights, bias, inputs, panels)
        for _, memory in ipairs { from, weights, bias, scales } do
            memory:read_only()
        end
        guarded(own, symbol, map, from, x_step, to, step, tokens)
        if not to:intact() then error(string.format("%s: %s wrote beyond its memory", library, symbol), 0) end
        local fault = exact_products.fault(type, inputs, panels, tokens, x, w, to:read(), step)
        if fault then error(symbol .. ": " .. fault, 0) end
        for _, memory in ipairs { from, weights, bias, scales, to } do
            memory:free()
        end
    end
end
