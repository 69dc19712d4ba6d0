-- Which dense FFNs a LookupFFN is compared with: those of its type and wider ones, the fastest of them.
local check = require "tests.support.check"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local host = require "host"
local program = require "tests.support.program"
local rivals = require "harness.measure.rivals"

local test = {}

local function same_type(projection, tables)
    return rivals.same_type(dtype.get(projection, "projection"), dtype.get(tables))
end

function test.the_narrower_of_two_types_counts()
    check.equal(same_type("f32", "f32"), "f32")
    for _, tables in ipairs { "bf16", "f16" } do
        check.equal({ same_type("f32", tables), same_type("bf16", tables) }, { "bf16", "bf16" })
    end
    check.equal({ same_type("bf16", "f32"), same_type("i16", "f32") }, { "bf16", "bf16" })
    for _, projection in ipairs { "f32", "bf16", "i16" } do
        check.equal({ same_type(projection, "i8"), same_type(projection, "e4m3") }, { "i8", "i8" })
    end
end

-- Every type that a LookupFFN may have has one.
function test.every_type_has_a_rival()
    for _, projection in ipairs(dtype.projection_names) do
        for _, tables in ipairs(dtype.names) do
            check.equal(#rivals.as_wide_as(same_type(projection, tables)) >= 2, true)
        end
    end
end

function test.wider_types_are_rivals_too()
    local function names(type)
        local list = {}
        for i, row in ipairs(rivals.as_wide_as(type)) do
            list[i] = rivals.name(row)
        end
        return list
    end
    check.equal(names "f32", { "openblas/f32", "onednn/f32" })
    check.equal(names "bf16", { "openblas/f32", "onednn/f32", "onednn/bf16" })
    check.equal(#rivals.as_wide_as "i8", #rivals.list)
end

function test.the_fastest_that_was_timed()
    local function samples_of(times)
        local samples = {}
        for name, us in pairs(times) do
            samples["dense/" .. name .. "/8"] = { cpu = { us, 2 * us, us / 2 }, wall = { 10 / us } }
        end
        return samples
    end
    local samples = samples_of { ["openblas/f32"] = 4, ["onednn/f32"] = 5, ["onednn/bf16"] = 3 }
    local function fastest(type, clock)
        local us, row = rivals.fastest(samples, rivals.as_wide_as(type), 8, clock)
        return { us, row.library, row.type }
    end
    check.equal(fastest("f32", "cpu"), { 4.0, "openblas", "f32" })
    check.equal(fastest("bf16", "cpu"), { 3.0, "onednn", "bf16" })
    check.equal(fastest("i8", "cpu"), { 3.0, "onednn", "bf16" }) -- no i8 on this CPU
    check.equal(fastest("i8", "wall"), { 2.0, "onednn", "f32" })
    check.equal({ rivals.fastest(samples, rivals.list, 9, "cpu") }, {})
end

function test.the_option()
    check.equal(rivals.select "same,f32", { same = true, f32 = true })
    check.equal({ rivals.select "same", rivals.select "f32" }, { { same = true }, { f32 = true } })
end

function test.what_a_cpu_lacks_is_said()
    local results = { { same_type = "bf16" }, { same_type = "i8" } }
    check.equal(rivals.note({ onednn_bf16 = "native", onednn_i8 = "vnni" }, results), nil)
    check.equal(rivals.note({ onednn_bf16 = "none", onednn_i8 = "7-bit weights" }, {}), nil)
    check.equal(
        rivals.note({ onednn_bf16 = "none", onednn_i8 = "7-bit weights" }, results),
        "bf16: oneDNN has no such products for this CPU. "
            .. "i8: without VNNI weights have 7 bits, so that no sum overflows."
    )
    check.matches(
        rivals.note({ onednn_bf16 = "emulated", onednn_i8 = "vnni" }, results),
        "^bf16: [^\n]* emulates them.$"
    )
    check.equal(rivals.note({ onednn_bf16 = "amx", onednn_i8 = "amx" }, results), nil)
end

-- Behind a mask the libraries are those of such a CPU.
function test.a_mask_holds_for_the_libraries()
    if cpu.real().architecture ~= "x86_64" then return host.print "skipped: masked libraries: for x86 alone" end
    local words = { "bench", "gen/models/tiny.lua", "--batch", "1", "--repetitions", "1" }
    local text = program.works(words, { env = { LOOKUPC_CPU = "scalar" } })
    check.matches(text, "(LOOKUPC_CPU=scalar)")
    check.matches(text, "\nscalar +1 ")
    check.matches(text, "\nOpenBLAS ran as Prescott, with SSE3, oneDNN with SSE4.1: neither has less.\n")
    check.equal(text:find "avx", nil)
end

function test.names_of_implementations_are_short()
    for implementation, words in pairs {
        ["brgemm:avx512_core_amx_int8"] = "onednn i8 amx_int8",
        ["brgemm:avx512_core_amx_bf16, brgemm:avx512_core_bf16"] = "onednn i8 amx_bf16, avx512_bf16",
        ["brgemm:avx512_core"] = "onednn i8 avx512",
        ["x64:gemm_s8u8s32:jit"] = "onednn i8 gemm_s8u8s32",
        SkylakeX = "onednn i8 SkylakeX",
    } do
        check.equal(rivals.words { library = "onednn", type = "i8", implementation = implementation }, words)
    end
    check.equal(rivals.words { library = "onednn", type = "i8" }, "onednn i8")
    check.equal(rivals.through "openblas", "openblas")
    check.equal({ rivals.words(nil), rivals.words { us_per_token = 3 }, rivals.through() }, {})
end

return test
