-- The reference of blocks with lookup FFNs notes codes that rounding may decide either way; verify lets it decide those
-- as kernels did, and no others.
local block_reference = require "block_reference"
local check = require "tests.support.check"
local compare = require "harness.families.model.compare"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local program = require "tests.support.program"
local reference = require "harness.families.model.reference"
local verify = require "harness.families.model.verify"

local test = {}
local folder = program.folder()
local width, most = 24, 1e-9

-- What the reference computes for a model, with ties within `margin`.
local function found_with(margin, neighbours)
    local path = program.model(
        folder,
        "ties",
        string.format(
            [[return { name = "ties", d = %d, heads = 2, layers = 2, vocab = 20,
        attention = { eliminate = "QKV", context = 12 },
        ffn = { kind = "lookup", h = 5, tau = 4, projection = { kind = "dense" }, score = "gelu", neighbours = %d } }]],
            width,
            neighbours
        )
    )
    local p = model_plan.build(model.load(path), isa.select "scalar", {})
    local prepared = verify.prepare(p, program.folder(), { seed = 3 })
    local job = prepared.answers[1].job
    job.margin = margin
    return reference.answer_blocks(job, prepared.x), p.model
end

local function turned(found, ...)
    return reference.answer_blocks(setmetatable({ turned = { ... } }, { __index = found.job }), found.x)
end
local function off(a, b, from, to)
    return (
        block_reference.difference(
            a.y:sub(8 * width * from + 1, 8 * width * to),
            b.y:sub(8 * width * from + 1, 8 * width * to),
            width
        )
    )
end

function test.ties_are_noted()
    check.equal(#found_with(0, 1).ties, 0)
    check.equal(#found_with(0.02, 16).ties, 0) -- all rows are taken
    for _, neighbours in ipairs { 1, 3 } do
        local found = found_with(0.02, neighbours)
        assert(#found.ties > 0 and #found.ties < 2 * 12 * 5 / 2, #found.ties)
        for _, tie in ipairs(found.ties) do
            assert(tie.layer < 2 and tie.token < 12 and tie.table < 5)
        end
    end
end

function test.a_turned_tie_changes_its_token_and_later_ones()
    local found = found_with(0.02, 1)
    for _, tie in ipairs(found.ties) do
        local other = turned(found, tie)
        if tie.token > 0 then check.equal(off(other, found, 0, tie.token), 0.0) end
        assert(off(other, found, tie.token, tie.token + 1) > 1e-3)
    end
    local none = turned(found, { layer = 0, token = 0, table = 99 })
    check.equal(off(none, found, 0, 12), 0.0)
end

function test.what_ties_explain_is_accepted()
    for _, neighbours in ipairs { 1, 3 } do
        local found, m = found_with(0.02, neighbours)
        local first, last = found.ties[1], found.ties[#found.ties]
        local kernel = turned(found, first, last)
        local same, count = compare.decided_as(kernel.y, found, m, 0, most)
        check.equal({ off(same, kernel, 0, 12), count }, { 0.0, 2 })
        check.equal(select(2, compare.decided_as(found.y, found, m, 0, most)), 0)
    end
end

function test.what_they_do_not_explain_is_not()
    local found, m = found_with(0.02, 1)
    local clear = found_with(0, 1)
    local kernel = turned(found, found.ties[1])
    local same = compare.decided_as(kernel.y, clear, m, 0, most)
    assert(off(same, kernel, 0, 12) > 1e-3)
    local values = { string.unpack(("d"):rep(12 * width), found.y) }
    values[5 * width + 3] = values[5 * width + 3] + 0.1
    local wrong = { y = string.pack(("d"):rep(12 * width), table.unpack(values, 1, 12 * width)) }
    same = compare.decided_as(wrong.y, found, m, 0, most)
    assert(off(same, wrong, 0, 12) > 1e-3)
end

return test
