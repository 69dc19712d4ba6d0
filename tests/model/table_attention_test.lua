-- Attention by tables of values: its reference, and what verify finds of its kernels.
local block_reference = require "block_reference"
local check = require "tests.support.check"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local program = require "tests.support.program"
local verify = require "harness.families.model.verify"

local test = {}
local folder = program.folder()

-- The job of the reference for a block whose output is a linear map of what its heads mix, and what it is given.
local function linear_job(causal)
    local text = [[return { name = "linear", d = 64, heads = 2, head_dim = 64, kv_heads = 1, layers = 1, vocab = 20,
        attention = { kind = "lsh", tau = 3, window = 2, context = 24, causal = %s },
        ffn = { kind = "mlp", f = 64, activation = "relu" } }]]
    local p = model_plan.build(model.load(program.model(folder, "linear", text:format(causal))), isa.select "scalar", {})
    local prepared = verify.prepare(p, program.folder(), { seed = 3 })
    local job = prepared.answers[1].job
    local function answer(lsh, margin, turned)
        lsh.eps = 1000 -- beside which |y| is nothing: an output of a head is a thousandth of y
        local own = { activation = "none", margin = margin or 0, turned = turned }
        own.lsh = setmetatable(lsh, { __index = job.lsh })
        return block_reference.answers(setmetatable(own, { __index = job }), prepared.x)
    end
    return answer, p.shape.d
end

-- The mean of strings of doubles.
local function mean_of(list)
    local sums = {}
    for _, values in ipairs(list) do
        for i = 1, #values // 8 do
            sums[i] = (sums[i] or 0) + string.unpack("<d", values, 8 * i - 7)
        end
    end
    for i, sum in ipairs(sums) do
        sums[i] = string.pack("<d", sum / #list)
    end
    return table.concat(sums)
end

function test.the_mean_over_seeds_is_what_is_expected()
    for _, causal in ipairs { true, false } do
        local answer, d = linear_job(causal)
        local expected, list = answer { expected = true }, {}
        local function off() return select(3, block_reference.difference(mean_of(list), expected, d)) end
        local first
        for seed = 1, 128 do
            list[seed] = answer { seed = seed }
            first = seed == 2 and off() or first
        end
        assert(first > 0.05 and off() < first / 4, off())
        -- All tokens are near: nothing is sampled.
        check.equal(answer { window = 24 }, expected)
        check.equal(answer { window = 24, seed = 7 }, expected)
    end
end

function test.ties_of_codes_are_noted_and_turned()
    local answer, d = linear_job(false)
    local y, ties = answer({}, 0.002)
    assert(#ties > 0 and #ties < 24 * 3 * 16 / 4, #ties)
    local moved = 0
    for i = 1, math.min(#ties, 8) do
        check.equal(ties[i].token < 24 and ties[i].layer, 0)
        if block_reference.difference(answer({}, 0.002, { ties[i] }), y, d) > 1e-3 then moved = moved + 1 end
    end
    assert(moved > 0)
end

return test
