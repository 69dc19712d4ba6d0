-- The size of a library's machine code is that of its sections with instructions; other files count whole.
local check = require "tests.check"
local elf = require "harness.elf"

local test = {}

function test.sections_with_instructions_are_summed()
    check.equal(elf.code_bytes("no library"), 10)
    local function section(flags, size) return string.pack("<I4I4I8I8I8I8I4I4I8I8", 0, 1, flags, 0, 0, size, 0, 0, 1, 0) end
    local head = "\x7fELF\2\1" .. ("\0"):rep(0x28 - 6) .. string.pack("<I8", 0x40) .. ("\0"):rep(0x3a - 0x30) .. string.pack("<I2I2I2", 64, 3, 0)
    check.equal(elf.code_bytes(head .. section(2 | 4, 1234) .. section(2, 5000) .. section(4, 66)), 1300)
end

return test
