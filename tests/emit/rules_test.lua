-- Emitted C keeps the rules of tests/support/rules.lua.
local check = require "tests.support.check"
local covering = require "tests.fuzz.covering"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local firmware_files = require "gen.emit.firmware"
local host = require "host"
local isa = require "gen.isa.list"
local plans = require "tests.fuzz.plans"
local program = require "tests.support.program"
local rules = require "tests.support.rules"

local test = {}

-- ## Rules find what breaks them

-- What breaks the rules in the text of one file, without the file's name.
local function broken(text)
    local lines = {}
    for i, one in ipairs(rules.broken { { name = "a.c", text = text } }) do
        lines[i] = one.line():gsub(": " .. rules.say[one.rule]:gsub("%p", "%%%0") .. "$", ""):gsub("^a%.c:", "")
    end
    return lines
end

function test.functions_of_many_parameters_are_found()
    local eight = "const float *a, int b[2][3], void (*c)(int, int), int d(int, int), size_t e, int f, int g, int h"
    check.equal(broken("static void f(" .. eight .. ")\n{\n    g();\n}\n\nint g(" .. eight .. ");\nint h(void);\n"), {})
    check.equal(
        broken("int z;\n\nstatic void f(" .. eight .. ",\n    int i)\n{\n}\n\nint g(" .. eight .. ", int i);\n"),
        { "3: f: 9 parameters", "8: g: 9 parameters" }
    )
    check.equal(broken("__attribute__((noinline))\nvoid f(" .. eight .. ", int i);\n"), { "1: f: 9 parameters" })
end

function test.a_function_that_stands_twice_is_found()
    local function one(name, own)
        return "static int " .. name .. "(int x)\n{\n    return x + " .. own .. ";\n}\n\n"
    end
    local sizes = "#define M_BLOCKS_1_D 8\n#define M_BLOCKS_2_D 8\n#define M_BLOCKS_2_E 9\n\n"
    check.equal(broken(sizes .. one("m_a", "M_BLOCKS_1_D") .. one("m_b", "M_BLOCKS_2_E")), {})
    local first, second = one("m_blocks_1_a", "M_BLOCKS_1_D"), one("m_blocks_2_a", "M_BLOCKS_2_D")
    check.equal(broken(sizes .. first .. "/* Not this. */\n" .. second), { "11: m_blocks_2_a: is m_blocks_1_a" })
end

function test.comments_with_rows_for_other_parameters_are_found()
    local declared = "void f(const float *x, size_t x_step, float *y);\n"
    check.equal(broken("/* Does it.\n   x     rows, x_step apart\n   y     the result. */\n" .. declared), {})
    check.equal(broken("/* Does it with y.\n   x, x_step  rows */\n" .. declared), {})
    check.equal(broken("/* Says nothing of rows. */\n" .. declared), {})
    check.equal(broken("/* Does it. Steps are floats.\n   x  rows\n   y  the result. */\n" .. declared), {})
    check.equal(
        broken("/* Does it.\n   x  rows\n   y  the result. */\n" .. declared),
        { "4: f: its comment has no x_step" }
    )
    check.equal(
        broken("/* x_step.\n   x        rows\n   y and z  the results. */\n" .. declared),
        { "4: f: its comment describes z" }
    )
end

function test.offsets_without_names_are_found()
    local named = "#define AT (2 + \\\n    12345)\nenum { N = 3 + 12345 };\nconst int t[] = { 3 + 12345 };\n"
    local code = "void f(void)\n{\n    g(x + 1234, 12345.0f + 2, 0x12345, w * 65536, x & 12345); /* x + 12345 */\n}\n"
    check.equal(broken(named .. code), {})
    check.equal(broken((code:gsub("1234,", "12340,"))), { "3: f: 12340" })
    check.equal(broken((code:gsub("1234,", "12340 * k,"))), { "3: f: 12340", "3: f: 12340" })
end

function test.what_does_nothing_is_found()
    local numbers = { PITCH = "16" }
    for line, expected in pairs {
        ["for (size_t i = 0; i < 16; i += 16)"] = true,
        ["for (uint32_t i = 0; i < 1; ++i, z += 8)"] = true,
        ["for (size_t i = 8; i < PITCH; i += 8)"] = true,
        ["for (size_t i = 0; i < PITCH; i += 8)"] = false,
        ["for (size_t i = 0; i < 2; ++i)"] = false,
        ["for (size_t i = 0; i < rows; ++i)"] = false,
    } do
        if (rules.one_turn(line, numbers) or false) ~= expected then error(line, 0) end
    end
    for text, expected in pairs {
        ["x + i * 1;"] = "* 1",
        ["x[(i + 1) * 1u];"] = "* 1",
        ["1 * x;"] = "1 *",
        ["x / 1;"] = "/ 1",
        ["x + 0;"] = "+ 0",
        ["0 + x;"] = "0 +",
        ["for (size_t i = 0; i < 1; ++i) ++x;"] = "a loop of one turn",
        ["x * 1.5f + 0.5f * 10 + 0x10 + 11 * 2; /* x * 1 + 0 */"] = false,
    } do
        check.equal(broken("void f(void)\n{\n    " .. text .. "\n}\n"), { expected and "3: f: " .. expected or nil })
    end
end

-- ## Bundles keep them

-- The instruction sets that bundles are for: with effort quick one or two of each architecture, and half of the
-- models.
local sets = { "scalar", "avx2", "amx_int8", "i8mm", "mve", "rvv", "wasm" }
local share = effort.full "covering" and 1 or 2

-- Calls look(files) for bundles of the covering list.
local function each_covering_bundle(look)
    for _, name in ipairs(effort.full "covering" and isa.all or sets) do
        local set, count = isa.get(name), 0
        for _, family in ipairs(plans.families) do
            for _, index in ipairs(covering[family.name].quick[name] or {}) do
                count = count + 1
                if count % share == 0 then
                    local p = family.draw(index, set, family.name .. "_" .. index)
                    local blob = plans.target_of(set) and ("\0"):rep(p.packed_bytes)
                    look(blob and firmware_files.unmeasured(p, blob) or emit.sources(p))
                end
            end
        end
    end
end

-- Likewise of models that train: with a dense FFN and by lookups.
local function each_training_bundle(look)
    for _, words in ipairs {
        { "gpt_nano_sort", "--isa", "avx512_bf16", "--type", "bf16" },
        { "roberta_small_whole", "--isa", "avx2", "--tables", "f32" },
    } do
        local folder, files = program.folder(), {}
        local path = "gen/models/" .. words[1] .. ".lua"
        program.works { "emit", path, "--training", "-o", folder, table.unpack(words, 2) }
        for i, name in ipairs(host.list(folder)) do
            files[i] = { name = name, text = assert(host.read(folder .. "/" .. name)) }
        end
        look(files)
    end
end

function test.bundles_keep_the_rules()
    local lines, count = {}, 0
    local function look(files)
        local c = {}
        for _, file in ipairs(files) do
            if file.name:find "%.[ch]$" then c[#c + 1] = file end
        end
        for _, one in ipairs(rules.broken(c)) do
            count = count + 1
            if count <= 20 then lines[count] = one.line() .. " (" .. one.template .. ")" end
        end
    end
    each_covering_bundle(look)
    each_training_bundle(look)
    if count > #lines then lines[#lines + 1] = "and " .. count - #lines .. " more" end
    if #lines > 0 then error(table.concat(lines, "\n"), 0) end
end

return test
