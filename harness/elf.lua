-- How much of a compiled library is machine code: the file itself is filled up to whole pages.
local elf = {}

local executable = 4 -- SHF_EXECINSTR

-- The bytes of all sections that hold instructions, of an ELF file of 64 bits, little-endian; those of the whole file for any other.
-- Source: System V ABI, "Object files": file header and section headers.
function elf.code_bytes(file)
    if file:sub(1, 6) ~= "\x7fELF\2\1" then return #file end
    local first, size, count = string.unpack("<I8", file, 0x28 + 1), string.unpack("<I2", file, 0x3a + 1), string.unpack("<I2", file, 0x3c + 1)
    local sum = 0
    for i = 0, count - 1 do
        local header = first + i * size + 1
        if string.unpack("<I8", file, header + 8) & executable ~= 0 then sum = sum + string.unpack("<I8", file, header + 0x20) end
    end
    return sum
end

return elf
