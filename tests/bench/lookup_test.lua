-- What bench prints of a LookupFFN: beside which rivals, of which types and threads, and as a page.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local with = program.with
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"

-- What bench says does not depend on how fast its kernels are: they are compiled without optimisation.
local quick_bench = { "bench", tiny, "--isa", "scalar", "--cflags", "-O0", "--repetitions", "1" }

function test.bench_for_machines_and_as_a_page()
    local page = folder .. "/page.html"
    local words = with(quick_bench, "--batch", "1,3,200", "--html", page, "--json")
    local found = assert(json.decode(works(words)))
    for _, key in ipairs { "cpu", "isa", "compiler", "flags" } do
        check.equal(found.host[key] ~= nil and key, key)
    end
    check.equal(#found.results, 3)
    local r = found.results[2]
    check.equal(
        { r.model, r.batch, r.threads, r.isa, r.table_dtype, r.projection_dtype },
        { "tiny", 3, 1, "scalar", "f32", "f32" }
    )
    for _, value in ipairs {
        r.us_per_token,
        r.stages.project,
        r.stages.gather,
        r.dense_us_per_token,
        r.speedup,
        r.rel_err,
    } do
        check.equal(value > 0 and value < 1e6, true)
    end
    check.equal({ type(r.schedule), type(r.dense_library), math.type(r.code_flips) }, { "string", "string", "integer" })
    check.near(r.speedup, r.dense_us_per_token / r.us_per_token, 1e-6 * r.speedup)
    check.equal({ r.same_type, r.same_type_speedup, #r.rivals }, { "f32", r.speedup, 2 })
    check.equal(type(r.counts), "boolean")
    check.equal(r.counts and r.cpu_over_wall < 0.97, false)
    for name in ("fma_gflops l1_gbytes l2_gbytes l3_gbytes memory_gbytes random_rows_gbytes"):gmatch "%S+" do
        check.equal(found.limits[name] > 0 and found.limits[name] < 1e5, true)
    end
    check.near(r.limit_share, r.limit_us / r.us_per_token, 1e-6 * r.limit_share)
    check.equal(r.limit_us > 0, true)
    local text = program.page(page, 3)
    for _, name in ipairs { "tiny", "tokens a call", "GFLOP/s", "times as fast", "scalar", "share of limit" } do
        check.matches(text, name)
    end
end

function test.a_page_that_cannot_be_written()
    for path, fragment in pairs {
        [folder .. "/none/page.html"] = "there is no folder",
        [folder] = "must be a file",
    } do
        refuses(1, fragment, with(quick_bench, "--batch", "1", "--html", path))
    end
end

-- The fastest of the type or a wider one; each with its error, which is that of its type.
function test.bench_beside_rivals_of_the_same_type()
    local words = with(quick_bench, "--tables", "i8,bf16", "--batch", "1,40", "--json")
    local found = assert(json.decode(works(words)))
    local errors = { f32 = { 0, 1e-5 }, bf16 = { 5e-4, 2e-2 }, i8 = { 5e-3, 5e-2 } }
    for _, r in ipairs(found.results) do
        local best, known = nil, {}
        for _, rival in ipairs(r.rivals) do
            known[#known + 1] = rival.library .. " " .. rival.type
            local core = rival.library == "openblas" and found.host.openblas
            check.equal(rival.implementation, core or rival.implementation:match "^[%w_:, ]+$")
            check.near(rival.speedup, rival.us_per_token / r.us_per_token, 1e-6 * rival.speedup)
            local least, most = table.unpack(errors[rival.type])
            check.equal({ rival.type, rival.rel_err >= least, rival.rel_err <= most }, { rival.type, true, true })
            local takes = r.same_type == "i8" or rival.type ~= "i8"
            if takes and (not best or rival.us_per_token < best.us_per_token) then best = rival end
        end
        check.equal(r.same_type, r.table_dtype)
        check.equal(r.same_type_rival, best)
        check.equal(r.dense_implementation, r.rivals[r.dense_library == "openblas" and 1 or 2].implementation)
        check.equal(r.same_type_speedup, best.speedup)
        check.equal(r.speedup >= r.same_type_speedup, true)
        local bf16 = found.host.onednn_bf16 == "none" and {} or { "onednn bf16" }
        check.equal(known, { "openblas f32", "onednn f32", bf16[1] or "onednn i8", bf16[1] and "onednn i8" })
    end
end

function test.bench_beside_an_mlp_of_its_own()
    local words = with(quick_bench, "--batch", "1,20", "--tables", "i8", "--rivals", "same,mlp", "--json")
    for _, r in ipairs(assert(json.decode(works(words))).results) do
        local own = r.rivals[#r.rivals]
        check.equal({ own.library, own.type, own.implementation }, { "lookupc", "i8", "scalar" })
        check.equal(own.us_per_token > 0 and own.rel_err > 1e-3 and own.rel_err < 0.1, true)
    end
    refuses(2, "--rivals: mlp: runs on one thread", with(quick_bench, "--rivals", "mlp", "--threads", "2"))
end

function test.bench_beside_chosen_rivals()
    local words = with(quick_bench, "--batch", "1", "--tables", "i8", "--rivals")
    local text = works(with(words, "f32", "--projection", "bf16"))
    check.equal({ text:find("same type", 1, true) }, {})
    check.matches(text, "float32, projection in bf16, tables in i8, defaults for [%w-]+\n")
    check.matches(works(with(words, "f32", "--for", "skylake-x")), ", tables in i8, defaults for skylake%-x\n")
    check.matches(text, " x f32 ")
    local r = assert(json.decode(works(with(words, "same", "--json")))).results[1]
    check.equal({ r.same_type, r.speedup, r.dense_library, #r.rivals > 2 }, { "i8", nil, nil, true })
    refuses(2, '--rivals: "i8": must be one of same, f32', { "bench", tiny, "--rivals", "i8" })
    refuses(2, "--rivals", { "bench", "gen/models/kws.lua", "--arithmetic", "integer", "--rivals", "f32" })
end

-- All types of one run stand beside the same dense FFN, each with its own rows. Types of the projection combine with
-- those of the tables; half the bytes are twice the FLOP a byte.
function test.bench_of_several_types()
    local page = folder .. "/types.html"
    local words = with(quick_bench, "--projection", "f32,bf16", "--tables", "i8,f32", "--batch", "3,40")
    local results, seen = assert(json.decode(works(with(words, "--json", "--html", page)))).results, {}
    for i, r in ipairs(results) do
        seen[i] = r.projection_dtype .. " " .. r.table_dtype .. " " .. r.batch
        check.near(
            r.gather_gbytes,
            8 * 64 * (r.table_dtype == "i8" and 1 or 4) * 1e-3 / r.stages.gather,
            1e-6 * r.gather_gbytes
        )
        check.equal(r.random_rows_gbytes > 0, true)
        if r.projection_dtype == "f32" then
            local i8 = r.table_dtype == "i8"
            check.equal({ r.rel_err > 1e-3, r.rel_err < 2e-2, r.same_type }, { i8, true, r.table_dtype })
        end
    end
    check.equal(seen, {
        "f32 i8 3",
        "f32 i8 40",
        "f32 f32 3",
        "f32 f32 40",
        "bf16 i8 3",
        "bf16 i8 40",
        "bf16 f32 3",
        "bf16 f32 40",
    })
    check.equal(results[1].dense_us_per_token, results[3].dense_us_per_token)
    check.equal(results[1].random_rows_gbytes ~= results[3].random_rows_gbytes, true)
    local flop = results[1].flop_per_byte.project
    check.near(results[5].flop_per_byte.project, 2 * flop, 1e-9 * 2 * flop)
    check.matches(assert(host.read(page)), "tables i8, f32, projection f32, bf16,")
    local text = works(words)
    check.matches(text, " x same type .* x f32 ")
    check.matches(text, "\nisa     projection tables tokens ")
    check.matches(text, "\nscalar  bf16       i8          3 ")
    check.matches(text, "random rows of i8 %d+, of f32 %d+ GB/s")
end

-- A column for the types that differ.
function test.bench_of_one_projection()
    local page = folder .. "/tables.html"
    local words = with(quick_bench, "--batch", "2", "--html", page)
    local text = works(with(words, "--tables", "i8,f32"))
    check.matches(text, "\nisa     tables tokens ")
    check.matches(text, "\nscalar  i8          2 ")
    check.matches(assert(host.read(page)), "tables i8, f32,")
end

-- While it runs, lookupc and its measuring process are built again, as the compiler of the emitted code knows.
function test.bench_of_a_program_that_is_replaced()
    if not effort.full "programs" then return end -- tests/unit/process_test.lua has its heart
    local there = program.folder()
    local script = [=[
set -e
cp "$(dirname "$1")"/lookupc{,-measure} "$2/"
cat >"$2/cc" <<'END'
#!/bin/bash
cd "${0%/*}"
[[ ! -s lookupc ]] || { rm lookupc lookupc-measure; : >lookupc; : >lookupc-measure; }
cd "$OLDPWD"
exec gcc "$@"
END
chmod +x "$2/cc"
export XDG_CACHE_HOME="$2"
"$2/lookupc" bench gen/models/tiny.lua --isa scalar --batch 1 --repetitions 1 --rivals f32 --cc "$2/cc"
[[ ! -s $2/lookupc ]]
]=]
    local result = assert(process.run({ "bash", "-c", script, "bash", check.lookupc, there }, { timeout = 100 }))
    check.equal(result.status, 0)
    check.matches(result.output, "^tiny on ")
end

-- Every call of each model, with what Google Benchmark's compare.py reads.
function test.bench_writes_what_google_benchmark_does()
    local path = folder .. "/raw.json"
    local words = with(quick_bench, "gen/models/tiny_skipless.lua", "--batch", "2", "--raw", path)
    works(words)
    local found, counts = assert(json.decode(assert(host.read(path)))), {}
    check.equal({ found.context.executable, type(found.context.compiler) }, { "lookupc-measure", "string" })
    for _, one in ipairs(found.benchmarks) do
        counts[one.name] = (counts[one.name] or 0) + 1
        check.equal({ one.run_type, one.time_unit, one.threads }, { "iteration", "ns", 1 })
        check.equal(one.real_time > 0 and one.cpu_time > 0 and one.iterations > 0, true)
    end
    check.equal(counts["tiny/ffn/scalar_f32_f32_of_1_few/2/uniform_warm"], 1)
    check.equal(counts["tiny_skipless/scalar/f32/fused/2"], 1)
    check.equal(counts["tiny_skipless/scalar/f32/attention/openblas/2/0"], 1)
    local none = folder .. "/none/raw.json"
    refuses(1, "--raw: \"" .. none .. "\": there is no folder", with(quick_bench, "--raw", none))
end

function test.bench_of_several_threads()
    local words = with(quick_bench, "--threads", "2", "--batch", "1,100")
    local found = assert(json.decode(works(with(words, "--json"))))
    for _, r in ipairs(found.results) do
        check.equal({ r.threads, r.speedup > 0, r.cpu_over_wall > 0 }, { 2, true, true })
    end
    check.matches(found.host.flags, "%-fopenmp %-DTINY_OPENMP=2")
    check.matches(works(words), "^tiny on [^\n]*, 2 threads, .*wall times, FFN and dense FFN on up to 2 threads")
end

return test
