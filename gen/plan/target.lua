-- The list of targets of the firmware profile: one row a target, everything else loops over it.
--
--   name, doc          what `--target` takes, and what it is
--   isa                its kernels: an instruction set of gen/isa/
--   compiler, flags    what text and stack are measured with, and the flags that choose CPU and ABI
--   more_flags         those that --target-flags has added to them, nil: none
--   pointer_bytes      of the target
--   vector_bytes       of the longest vectors that its stack is declared for, where their length is known at run time
--                      only, nil: it is fixed
--   soft_float         its float operations are calls of the compiler's own library (libgcc), each of which takes so
--                      many bytes of stack at most, nil: instructions
--   doubles            it has instructions for doubles, nil: not
--   object             "elf" or "wasm"
-- and how tests/firmware/targets_test.lua runs it:
--   start, script      files of tests/firmware/boards/: start-up code, and the linker script; nil: the linker's own
--   link               flags of the link
--   emulator           the command that runs a program, its path behind; nil: this machine itself
--   others             such commands for other CPUs of the kind, with longer vectors, nil: none
--   trace              flags with which the emulator writes what it executes to a file, its path behind; nil: it cannot
--   packages           Debian packages with all that
local copied = require "gen.schema.copied"
local misuse = require "gen.schema.misuse"
local one_of = require "gen.schema.one_of"

local target = {}

local arm = { "-mthumb", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables" }
local no_tables = { "-fno-unwind-tables", "-fno-asynchronous-unwind-tables" }

local function flags(...)
    local list = {}
    for _, words in ipairs { ... } do
        for _, word in ipairs(type(words) == "table" and words or { words }) do
            list[#list + 1] = word
        end
    end
    return list
end

-- One instruction a block, blocks not chained: the log has a line for every instruction that is executed.
local trace = { "-singlestep", "-d", "exec,nochain", "-D" }
-- The same with blocks of several, listed before they are executed first: qemu 7.2 fails with vectors of RISC-V one by
-- one.
local trace_blocks = { "-d", "in_asm,exec,nochain", "-D" }

local function cortex_m(row, board, link)
    row.compiler, row.pointer_bytes, row.object = "arm-none-eabi-gcc", 4, "elf"
    row.start, row.script, row.link = "start_cortex_m.c", "cortex_m.ld", flags("-nostartfiles", link or {})
    row.emulator = {
        "qemu-system-arm",
        "-machine",
        board,
        "-semihosting-config",
        "enable=on,target=native",
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-kernel",
    }
    row.trace = trace
    row.packages = { "gcc-arm-none-eabi", "qemu-system-arm" }
    return row
end

local function linux(row, compiler, emulator, packages, link, trace_flags)
    row.compiler, row.object = compiler, "elf"
    row.start, row.link = "start_linux.c", flags("-static", "-nostartfiles", link or {})
    row.emulator, row.trace = emulator, trace_flags or trace
    row.packages = packages
    return row
end

local riscv32 =
    { "riscv64-unknown-elf-gcc", { "qemu-riscv32-static" }, { "gcc-riscv64-unknown-elf", "qemu-user-static" } }

target.list = {
    cortex_m({
        name = "cortex-m0plus",
        doc = "Cortex-M0+, no FPU",
        isa = "scalar",
        soft_float = 32,
        flags = flags("-mcpu=cortex-m0plus", "-mfloat-abi=soft", arm),
    }, "mps2-an385"),
    cortex_m({
        name = "cortex-m4f",
        doc = "Cortex-M4 with FPU",
        isa = "scalar",
        flags = flags("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", arm),
    }, "mps2-an386"),
    cortex_m({
        name = "cortex-m7",
        doc = "Cortex-M7 with FPU",
        isa = "scalar",
        flags = flags("-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard", arm),
    }, "mps2-an500"),
    -- Its board starts in the secure state, in which memory has these addresses.
    cortex_m({
        name = "cortex-m33",
        doc = "Cortex-M33 with FPU",
        isa = "scalar",
        flags = flags("-mcpu=cortex-m33", "-mfloat-abi=hard", arm),
    }, "mps2-an505", { "-Wl,--defsym=board_flash=0x10000000", "-Wl,--defsym=board_ram=0x38000000" }),
    cortex_m({
        name = "cortex-m55",
        doc = "Cortex-M55 with Helium",
        isa = "mve",
        doubles = true,
        flags = flags("-mcpu=cortex-m55", "-mfloat-abi=hard", arm),
    }, "mps3-an547"),
    -- Its flags as Armv8.1-M's: the compiler does not know the CPU. There is no board of it in the emulator, but all
    -- its instructions that are used are Cortex-M55's, too.
    cortex_m({
        name = "cortex-m85",
        doc = "Cortex-M85 with Helium",
        isa = "mve",
        doubles = true,
        flags = flags("-march=armv8.1-m.main+mve.fp+fp.dp+dsp", "-mfloat-abi=hard", arm),
    }, "mps3-an547"),
    linux({
        name = "aarch64",
        doc = "AArch64 with NEON",
        isa = "neon",
        doubles = true,
        pointer_bytes = 8,
        flags = flags("-march=armv8-a", no_tables),
    }, "aarch64-linux-gnu-gcc", { "qemu-aarch64-static" }, { "gcc-aarch64-linux-gnu", "qemu-user-static" }),
    linux(
        {
            name = "aarch64-sve",
            doc = "AArch64 with SVE",
            isa = "sve128",
            doubles = true,
            pointer_bytes = 8,
            vector_bytes = 64,
            others = {
                { "qemu-aarch64-static", "-cpu", "max,sve128=on" },
                { "qemu-aarch64-static", "-cpu", "max,sve512=on" },
            },
            flags = flags("-march=armv8.2-a+sve", no_tables),
        },
        "aarch64-linux-gnu-gcc",
        { "qemu-aarch64-static", "-cpu", "max,sve256=on" },
        { "gcc-aarch64-linux-gnu", "qemu-user-static" }
    ),
    -- The compiler makes no vectors of its own: what it puts of them on the stack is in no stack usage file.
    linux(
        {
            name = "rv64gcv",
            doc = "RISC-V RV64GC with vectors",
            isa = "rvv",
            doubles = true,
            pointer_bytes = 8,
            vector_bytes = 64,
            others = {
                { "qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256" },
                { "qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=512" },
            },
            flags = flags(
                "--target=riscv64-unknown-elf",
                "-march=rv64gcv",
                "-mabi=lp64d",
                "-mcmodel=medany",
                "-fno-vectorize",
                "-fno-slp-vectorize",
                no_tables
            ),
        },
        "clang-19",
        { "qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128" },
        { "clang-19", "lld-19", "qemu-user-static" },
        { "-fuse-ld=lld-19" },
        trace_blocks
    ),
    linux({
        name = "rv32imc",
        doc = "RISC-V RV32IMC, no FPU",
        isa = "scalar",
        soft_float = 32,
        pointer_bytes = 4,
        flags = flags("-march=rv32imc", "-mabi=ilp32", no_tables),
    }, table.unpack(riscv32)),
    linux({
        name = "rv32imafc",
        doc = "RISC-V RV32IMAFC with FPU",
        isa = "scalar",
        pointer_bytes = 4,
        flags = flags("-march=rv32imafc", "-mabi=ilp32f", no_tables),
    }, table.unpack(riscv32)),
    {
        name = "wasm32",
        doc = "WebAssembly with SIMD128",
        isa = "wasm",
        doubles = true,
        compiler = "clang-19",
        pointer_bytes = 4,
        object = "wasm",
        flags = flags("--target=wasm32"),
        link = {
            "-Wl,--no-entry",
            "-Wl,--export=run_selftest",
            "-Wl,--export=run_others",
            "-Wl,--export=run_bind",
            "-Wl,--export=run_token",
            "-Wl,--export=__stack_pointer",
            "-Wl,-z,stack-size=65536",
            "-Wl,--stack-first",
        },
        emulator = { "node", "tests/firmware/boards/run_wasm.js" },
        packages = { "clang-19", "lld-19", "nodejs" },
    },
    linux({
        name = "generic",
        doc = "this machine's own C compiler, portable C",
        isa = "scalar",
        doubles = true,
        pointer_bytes = 8,
        flags = flags("-mno-red-zone", no_tables),
    }, "gcc", nil, { "gcc" }),
}

target.names = {}
for i, row in ipairs(target.list) do
    target.names[i] = row.name
end

-- The row of that name; raises one line for an unknown one.
function target.get(name)
    for _, row in ipairs(target.list) do
        if row.name == name then return row end
    end
    one_of.check("--target", name, target.names)
end

-- The row `row` for another CPU of the kind, which `text`, flags of the compiler, chooses; raises one line for what are
-- none.
function target.with_flags(row, text)
    local copy = copied(row)
    copy.more_flags = {}
    for word in text:gmatch "%S+" do
        if not word:find "^%-[%w_.+=,%-]+$" then
            misuse('--target-flags: "' .. word .. '": must be a flag such as -mcpu=cortex-m35p')
        end
        table.insert(copy.more_flags, word)
    end
    if #copy.more_flags == 0 then misuse('--target-flags: "' .. text .. '": has no flag') end
    copy.flags = flags(row.flags, copy.more_flags)
    return copy
end

return target
