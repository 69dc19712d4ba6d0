-- Compares the emitted product of rounded inputs with one in int64: the kernel `symbol` of the library at the path, for
-- `inputs` inputs of the type of that name and several numbers of outputs and tokens. Raises one line.
local compiled = require "compiled"
local exact_products = require "exact_products"
local guarded = require "harness.base.guarded"

local panel = 32 -- outputs

return function(library, symbol, type, inputs)
    local own = assert(compiled.open { library = library })
    for n, tokens in ipairs { 1, 2, 3, 13, 29 } do
        local panels = n % 2 == 0 and 1 or 5
        local outputs = panels * panel
        local step, scales = outputs + 5, { name = "scale", text = ("f"):pack(1):rep(outputs) }
        local x, w, x_step = exact_products.inputs(type, inputs, panels, tokens, inputs + n)
        local words = {
            { name = "x", text = x, alignment = 4 },
            x_step,
            { name = "w", text = w },
            { name = "bias", text = ("\0"):rep(4 * outputs) },
            { name = "y", bytes = 4 * ((tokens - 1) * step + outputs), alignment = 4, result = true },
            step,
            inputs,
            panels,
            tokens,
        }
        if type == "i8" or type == "i7" then table.insert(words, 4, scales) end
        local _, around, y = guarded(own, symbol, table.unpack(words))
        if around then error(string.format("%s: %s wrote beyond its memory", library, symbol), 0) end
        local fault = exact_products.fault(type, inputs, panels, tokens, x, w, y, step)
        if fault then error(symbol .. ": " .. fault, 0) end
    end
end
