-- How much of a WebAssembly object file is code and constants. Source: WebAssembly core specification, "Modules",
-- binary format.
local wasm = {}

local code_section, data_section = 10, 11

-- An unsigned LEB128 number at byte `at`, and where the next thing starts.
local function unsigned(file, at)
    local value, shift = 0, 0
    while true do
        local byte = file:byte(at)
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128 then return value, at end
    end
end

-- { text, rodata, data, bss } as elf.sizes gives them. WebAssembly has no data that cannot be written.
function wasm.sizes(file)
    local sums, at = { text = 0, rodata = 0, data = 0, bss = 0 }, 9
    while at <= #file do
        local id = file:byte(at)
        local bytes
        bytes, at = unsigned(file, at + 1)
        if id == code_section then sums.text = sums.text + bytes end
        if id == data_section then sums.rodata = sums.rodata + bytes end
        at = at + bytes
    end
    return sums
end

return wasm
