-- SVE of servers: 8 lanes, the first 256 bits of longer vectors. Vectors of 128 bits do no more than NEON's.

local sve = require "gen.isa.parts.sve_words"("sve", 8)

sve.cpu = { { name = "sve", register = "id_aa64pfr0_el1", shift = 32 }, vector_bytes = 32 }
-- Where bind can choose it: clang 19 makes no SVE for macOS and Windows.
sve.condition = "defined(__aarch64__) && defined(__linux__)"
sve.target = "aarch64-sve"
sve.emulator = { "qemu-aarch64-static", "-cpu", "max,sve256=on" }
sve.other_emulators = { { "qemu-aarch64-static", "-cpu", "max,sve512=on" } }

return sve
