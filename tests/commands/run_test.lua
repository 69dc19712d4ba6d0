-- What run computes, compares and keeps.
local check = require "tests.support.check"
local host = require "host"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local works, refuses = program.works, program.refuses
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local odd, weights = odd_ffn.model, odd_ffn.weights

local function run(input, output, ...)
    return works { "run", odd, "--weights", weights, "--input", input, "--output", output, ... }
end

function test.run_converts_float64()
    local there = program.folder()
    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    program.python(
        "x = np.linspace(-1, 1, 128).astype('<f4').reshape(2, 64); np.save(sys.argv[1], x); \z
         np.save(sys.argv[2], x.astype('<f8'))",
        there .. "/x.npy",
        there .. "/wide.npy"
    )
    local function run(input, output)
        return program.run {
            "run",
            tiny,
            "--weights",
            there .. "/w.safetensors",
            "--isa",
            "scalar",
            "--input",
            there .. input,
            "--output",
            there .. output,
        }
    end
    local plain, wide = run("/x.npy", "/y.npy"), run("/wide.npy", "/z.npy")
    check.equal({ plain.status, plain.errors, wide.status }, { 0, "", 0 })
    check.equal(wide.errors, "lookupc run: " .. there .. "/wide.npy: float64 is converted to float32\n")
    check.equal(host.read(there .. "/y.npy"), host.read(there .. "/z.npy"))
end

-- What run compiled is kept in the user's cache under everything it depends on.
function test.run_compiles_once()
    local there = program.folder()
    local cc, calls, cache = there .. "/cc", there .. "/calls", there .. "/cache"
    assert(host.write_file(cc, '#!/bin/sh\necho "$*" >>' .. calls .. '\nexec gcc "$@"\n'))
    assert(process.run { "chmod", "+x", cc })
    program.python("np.save(sys.argv[1], np.linspace(-1, 1, 4 * 27, dtype='<f4').reshape(4, 27))", there .. "/x.npy")
    -- y of a run, and how many files were compiled for it.
    local function run(flags, ...)
        assert(host.write_file(calls, ""))
        local words = { "run", odd, "--weights", weights, "--input", there .. "/x.npy", "--output", there .. "/y.npy" }
        for _, word in ipairs { "--isa", "scalar", "--cc", cc, "--cflags", flags, ... } do
            words[#words + 1] = word
        end
        works(words, { env = { XDG_CACHE_HOME = cache } })
        local _, count = assert(host.read(calls)):gsub(" %-c ", "")
        return assert(host.read(there .. "/y.npy")), count
    end
    local y, count = run "-O0"
    check.equal(count > 0, true)
    check.equal({ run "-O0" }, { y, 0 })
    check.equal({ run "-O1" }, { y, count })
    local other, compiled = run("-O0", "--tables", "i8")
    check.equal({ other ~= y, compiled }, { true, count })
    for _, name in ipairs(host.list(cache .. "/lookupc")) do
        assert(host.write_file(cache .. "/lookupc/" .. name, "damaged"))
    end
    check.equal({ run "-O0" }, { y, count })
    -- A cache that is a file keeps nothing, and costs nothing.
    cache = there .. "/x.npy"
    check.equal({ run "-O0" }, { y, count })
    check.equal({ run "-O0" }, { y, count })
end

function test.run_treats_each_token_alone()
    local all, y_all = folder .. "/all.npy", folder .. "/y_all.npy"
    local function part(letter, count) return folder .. "/" .. letter .. "_" .. count .. ".npy" end
    local counts = { "0", "1", "3", "33" }
    program.python(
        [[
x = np.random.default_rng(3).standard_normal((67, 27)).astype("<f4")
np.save(sys.argv[1] + "/all.npy", x)
for count in sys.argv[2:]:
    np.save(sys.argv[1] + "/x_" + count + ".npy", x[67 - int(count):])
]],
        folder,
        table.unpack(counts)
    )
    check.matches(run(all, y_all, "--cflags", "-O0"), "^wrote [^\n]*/y_all.npy, 67 tokens, %w+\n$")
    for _, count in ipairs(counts) do
        run(part("x", count), part("y", count), "--cflags", "-O0")
    end
    check.equal(
        program.python(
            [[
y = np.load(sys.argv[1] + "/y_all.npy")
for count in sys.argv[2:]:
    part = np.load(sys.argv[1] + "/y_" + count + ".npy")
    print(part.shape, part.dtype, part.flags.c_contiguous, np.allclose(y[67 - len(part):], part, rtol=1e-5, atol=1e-6))
]],
            folder,
            table.unpack(counts)
        ),
        "(0, 19) float32 True True\n(1, 19) float32 True True\n(3, 19) float32 True True\n(33, 19) float32 True True\n"
    )
end

function test.run_reads_both_versions_of_npy()
    local one, two = folder .. "/v1.npy", folder .. "/v2.npy"
    program.python(
        [[
x = np.random.default_rng(4).standard_normal((5, 27)).astype("<f4")
for path, version in zip(sys.argv[1:], [(1, 0), (2, 0)]):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, x, version)
]],
        one,
        two
    )
    run(one, folder .. "/y1.npy", "--isa", "scalar", "--cflags", "-O0")
    run(two, folder .. "/y2.npy", "--isa", "scalar", "--cflags", "-O0")
    check.equal(host.read(folder .. "/y1.npy"), host.read(folder .. "/y2.npy"))
end

function test.run_compares_with_what_is_expected()
    local x, y = folder .. "/compared.npy", folder .. "/expected.npy"
    program.python("np.save(sys.argv[1], np.random.default_rng(5).standard_normal((4, 27)).astype('<f4'))", x)
    run(x, y, "--isa", "scalar", "--cflags", "-O0")
    local words =
        { "run", odd, "--weights", weights, "--input", x, "--isa", "scalar", "--cflags", "-O0", "--expect" }
    local function compared(...)
        local given = { ... }
        return program.run(table.move(given, 1, #given, #words + 1, { table.unpack(words) }))
    end
    local function other(name) return folder .. "/other_" .. name .. ".npy" end
    program.python(
        [[
y = np.load(sys.argv[1])
near, nan = y.copy(), y.copy()
near[1] *= 1.001
near[2, 7] += 0.25
nan[3, 0] = np.nan
others = {"same": y, "wide": y.astype(float)[None], "deep": y.reshape(2, 2, -1), "near": near, "nan": nan,
          "rows": y[1:], "bad": y.astype("<i4")}
for name, value in others.items():
    np.save(sys.argv[2] % name, value)
]],
        y,
        other "%s"
    )
    -- What other frameworks write: float64, more dimensions, one.
    for _, name in ipairs { "same", "wide", "deep" } do
        local same = table.move({ other(name) }, 1, 1, #words + 1, { table.unpack(words) })
        check.matches(works(same), "^relative error 0 in row 0 of 4; largest difference 0 [^\n]*\n$")
    end
    local near = other "near"
    local wrong = compared(near)
    check.equal(wrong.status, 1)
    check.matches(
        wrong.output,
        "^relative error [%d.]+ in row 2 of 4; largest difference 0.25 in row 2, column 7 of 19: "
    )
    check.matches(
        wrong.errors,
        "^lookupc: %-%-tolerance: 1e%-05: the relative error of row 2 is [%d.]+; a checkpoint does not say these: "
            .. "score = %w+, projection.decay = [%d.]+, "
            .. "[^\n]*blocks stored %[b out%]%[b in%] %(no %-%-blocks%-in%-out%)\n$"
    )
    check.equal(compared(near, "--tolerance", "1").status, 0)
    local relative = tonumber(wrong.output:match "relative error ([%d.]+)")
    local wanted = program.python(
        "a, b = (np.load(p)[2].astype(float) for p in sys.argv[1:])\n"
            .. "print(np.linalg.norm(a - b) / np.linalg.norm(b))",
        y,
        near
    )
    check.near(relative, tonumber(wanted), 0.06 * relative)
    check.equal(compared(other "nan", "--tolerance", "1e300").status, 1)
    for _, row in ipairs {
        { "has rows × columns 3 × 19: must be 4 × 19", other "rows" },
        { "descr: '<i4': must be '<f4' or '<f8'", other "bad" },
        { "none.npy: ", "none.npy" },
        { "--tolerance: -1: must be", y, "--tolerance", "-1", status = 2 },
    } do
        -- Refused before a compiler is called: there is none.
        local given = table.move(row, 2, #row, #words + 1, { table.unpack(words) })
        table.move({ "--cc", "/bin/false" }, 1, 2, #given + 1, given)
        program.refuses(row.status or 1, row[1], given)
    end
end

-- The shape of the result is known before anything is compiled: `--cc` names no compiler.
function test.every_family_refuses_an_expected_file_of_another_shape_before_it_compiles()
    local x, expected, ids = folder .. "/rows.npy", folder .. "/other_shape.npy", folder .. "/rows.ids"
    program.python("np.save(sys.argv[1], np.zeros((7, 5), 'f4'))", expected)
    assert(host.write_file(ids, "2 1 0"))
    program.python("np.save(sys.argv[1], np.ones((3, 64), 'f4'))", x)
    for _, row in ipairs {
        { "tiny", "input", "3 × 64" },
        { "tiny", "input", "3 × 64", "--arithmetic", "integer" },
        { "tiny_skipless", "input", "3 × 64" },
        { "gpt_nano_sort", "ids", "3 × 3" },
    } do
        local name, input, shape = table.unpack(row, 1, 3)
        local model, checkpoint = "gen/models/" .. name .. ".lua", folder .. "/" .. name .. ".safetensors"
        works { "sample", model, "-o", checkpoint }
        local given = { "run", model, "--weights", checkpoint, "--" .. input, input == "ids" and ids or x }
        table.move({ "--expect", expected, "--cc", "/bin/false" }, 1, 4, #given + 1, given)
        table.move(row, 4, #row, #given + 1, given)
        refuses(1, expected .. ": has rows × columns 7 × 5: must be " .. shape, given)
    end
end

function test.instruction_sets_agree()
    local x, outputs = folder .. "/x.npy", {}
    program.python("np.save(sys.argv[1], np.random.default_rng(6).standard_normal((41, 27)).astype('<f4'))", x)
    for i, isa in ipairs(sets.here()) do
        outputs[i] = folder .. "/y_" .. isa .. ".npy"
        check.matches(run(x, outputs[i], "--isa", isa, "--cflags", "-O0"), ", " .. isa .. "\n$")
    end
    check.equal(
        program.python(
            [[
first = np.load(sys.argv[1])
least = np.linalg.norm(first, axis=1).min()
worst = max(np.linalg.norm(np.load(path) - first, axis=1).max() / least for path in sys.argv[1:])
print(worst <= 1e-5 or worst)
]],
            table.unpack(outputs)
        ),
        "True\n"
    )
end

function test.run_gives_what_verified_kernels_give()
    for _, cc in ipairs { "gcc", "clang" } do
        check.matches(
            works { "verify", odd, "--weights", weights, "--isa", "scalar", "--cc", cc, "--cflags", "-O0" },
            "\nscalar [^\n]* ok "
        )
        local x = folder .. "/cc.npy"
        program.python("np.save(sys.argv[1], np.random.default_rng(7).standard_normal((9, 27)).astype('<f4'))", x)
        run(x, folder .. "/y_" .. cc .. ".npy", "--isa", "scalar", "--cc", cc, "--cflags", "-O0")
    end
    check.equal(
        program.python(
            "print(np.allclose(np.load(sys.argv[1]), np.load(sys.argv[2]), rtol=1e-5, atol=1e-6))",
            folder .. "/y_gcc.npy",
            folder .. "/y_clang.npy"
        ),
        "True\n"
    )
end

return test
