-- What stands twice in a bundle under two names becomes one, and nothing else does.
local check = require "tests.support.check"
local twins = require "gen.print.twins"

local test = {}

-- The texts of files after this, given { name, text, public } each.
local function joined(files, open)
    twins.joined(files, open)
    local texts = {}
    for i, file in ipairs(files) do
        texts[i] = file.text
    end
    return table.unpack(texts)
end

-- A function called `name` that returns `value`.
local function one(name, value, static)
    local head = "/* It. */\n" .. (static or "static ") .. "int " .. name .. "(int x)\n"
    return head .. "{\n    return x + " .. value .. ";\n}\n"
end

function test.functions_of_runs_and_of_few_tokens_become_one()
    local text = one("m_blocks_1_add", "1") .. "\n" .. one("m_few_get", "3") .. "\n" .. one("m_get", "3")
    text = text .. "\n" .. one("m_blocks_2_add", "1") .. "\n" .. one("m_all", "m_blocks_2_add(m_few_get(x))")
    check.equal(
        joined { { name = "m.c", text = text } },
        one("m_blocks_add", "1") .. "\n" .. one("m_get", "3") .. "\n" .. one("m_all", "m_blocks_add(m_get(x))")
    )
end

function test.what_calls_the_same_is_the_same()
    local function run(n)
        local before = "m_blocks_" .. n .. "_"
        return one(before .. "get", "2") .. "\n" .. one(before .. "put", before .. "get(x)")
    end
    check.equal(
        joined { { name = "m.c", text = run(1) .. "\n" .. run(2) } },
        one("m_blocks_get", "2") .. "\n" .. one("m_blocks_put", "m_blocks_get(x)")
    )
end

function test.constants_and_structs_are_of_runs()
    local header = "/* Widths. */\n#define M_BLOCKS_1_D 8 /* of a token */\n#define M_BLOCKS_1_E 8\n\n"
        .. "/* More widths. */\n#define M_BLOCKS_2_D 8 /* of a token */\n\n/* And more. */\n#define M_BLOCKS_2_E 9\n\n"
        .. "typedef struct m_blocks_1_rows {\n    int at;\n} m_blocks_1_rows;\n\n"
        .. "typedef struct m_other {\n    int at;\n} m_other;\n\n"
        .. "/* Rows. */\ntypedef struct m_blocks_2_rows {\n    int at;\n} m_blocks_2_rows;\n\n/* They. */\n"
        .. "void m_blocks_1_run(int x);\nvoid m_blocks_2_run(int x);\n"
    local function run(n, static)
        return one("m_blocks_" .. n .. "_run", "M_BLOCKS_" .. n .. "_D + sizeof(m_blocks_" .. n .. "_rows)", static)
    end
    local source = run(1, "") .. "\n" .. run(2, "") .. "\n" .. one("m_e", "M_BLOCKS_1_E + M_BLOCKS_2_E")
    local kept = "/* Widths. */\n#define M_BLOCKS_D 8 /* of a token */\n#define M_BLOCKS_1_E 8\n\n"
        .. "/* And more. */\n#define M_BLOCKS_2_E 9\n\n"
        .. "typedef struct m_blocks_rows {\n    int at;\n} m_blocks_rows;\n\n"
        .. "typedef struct m_other {\n    int at;\n} m_other;\n\n/* They. */\n"
    local new_header, new_source = joined { { name = "m.h", text = header }, { name = "m.c", text = source } }
    check.equal(new_header, kept .. "void m_blocks_run(int x);\n")
    local expected = one("m_blocks_run", "M_BLOCKS_D + sizeof(m_blocks_rows)", "")
    check.equal(new_source, expected .. "\n" .. one("m_e", "M_BLOCKS_1_E + M_BLOCKS_2_E"))
end

function test.names_that_others_know_or_that_mean_more_stay()
    local apart = one("m_blocks_1_a", "1") .. "\n" .. one("m_blocks_2_a", "2")
    check.equal(joined { { name = "m.c", text = apart } }, apart)
    local api = one("m_step", "1", "") .. "\n" .. one("m_next", "1", "")
    local header = "int m_step(int x);\nint m_next(int x);\n"
    check.equal(select(2, joined { { name = "m.h", text = header, public = true }, { name = "m.c", text = api } }), api)
    check.equal(joined({ { name = "m.c", text = api } }, true), api) -- found by their names
    local used = one("m_blocks_1_a", "1") .. "\n" .. one("m_blocks_2_a", "1") .. "\n" .. one("m_blocks_a", "2")
    check.equal(joined { { name = "m.c", text = used } }, one("m_blocks_1_a", "1") .. "\n" .. one("m_blocks_a", "2"))
end

return test
