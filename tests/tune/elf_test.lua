-- The size of a library's machine code is that of its sections with instructions; other files count whole.
local check = require "tests.support.check"
local elf = require "harness.base.elf"
local host = require "host"
local process = require "process"

local test = {}

function test.sections_with_instructions_are_summed()
    check.equal(elf.code_bytes("no library"), 10)
    local layout = "<I4I4I8I8I8I8I4I4I8I8"
    local function section(flags, size) return layout:pack(0, 1, flags, 0, 0, size, 0, 0, 1, 0) end
    local head = "\x7fELF\2\1"
        .. ("\0"):rep(0x28 - 6)
        .. string.pack("<I8", 0x40)
        .. ("\0"):rep(0x3a - 0x30)
        .. string.pack("<I2I2I2", 64, 3, 0)
    check.equal(elf.code_bytes(head .. section(2 | 4, 1234) .. section(2, 5000) .. section(4, 66)), 1300)
end

-- What gcc makes of `source`, each function in a section of its own.
local function object_of(source)
    local folder = process.temporary_directory()
    assert(host.write_file(folder .. "/x.c", source))
    check.equal(
        assert(process.run({
            "gcc",
            "-O1",
            "-ffunction-sections",
            "-fno-asynchronous-unwind-tables",
            "-c",
            folder .. "/x.c",
            "-o",
            folder .. "/x.o",
        }, {})).status,
        0
    )
    return assert(host.read(folder .. "/x.o"))
end

function test.an_object_file_tells_what_it_takes_defines_and_calls()
    local object = object_of [[
int other(int);
static const int numbers[5] __attribute__((used)) = {1, 2, 3, 4, 5};
static int state[7] __attribute__((used));
static __attribute__((noinline)) int inner(int n) { return other(n) + 1; }
int outer(int n) { return inner(n) * inner(n + 1); }
]]
    local sizes = elf.sizes(object)
    check.equal(sizes.bss >= 28 and sizes.bss < 64, true)
    check.equal(sizes.rodata >= 20 and sizes.rodata < 200, true) -- with notes
    check.equal(sizes.text > 10, true)
    local symbols = elf.symbols(object)
    check.equal({ symbols.other.undefined, symbols.outer.undefined, symbols.inner ~= nil }, { true, false, true })
    local references = elf.references(object)
    check.equal({ references.inner[1], references.outer[1] }, { "other", "inner" })
end

return test
