-- Blocks whose calls are for several sequences compute what they compute for each alone: chunks of tokens span
-- sequences and sequences span chunks, and attention stays within each.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local reference = require "harness.families.model.reference"
local verify = require "harness.families.model.verify"
local model = require "gen.families.model_file"
local program = require "tests.support.program"
local block_reference = require "block_reference"
local isa = require "gen.isa.list"
local sets = require "tests.support.sets"
local model_plan = require "gen.families.model.plan"

local test = {}

-- Verifies in every way of calling it what the keys `text` of a model file become, with calls of up to `positions`
-- positions. Returns the plan, and what verify.prepare makes.
local function verified(name, text, positions, options, choices)
    local directory, p, prepared = program.folder(), nil, nil
    local path = program.model(directory, name, "return { name = '" .. name .. "', vocab = 30, " .. text .. " }")
    options.sequences = { positions = positions }
    for _, set in ipairs(isa.select(sets.in_turn())) do
        options.schedule = { [set.name] = choices }
        p = model_plan.build(model.load(path), { set }, options)
        prepared = verify.prepare(p, directory, { seed = 7 })
        local library = compile.library({ p }, directory .. "/" .. set.name, "gcc", "-O0")
        local results = verify.check_library(p, library, prepared)
        check.equal({ results[1].call, results[2].call, #results }, { "batch", "single", 2 })
        for _, result in ipairs(results) do
            check.equal(result.message, nil)
            assert(result.kernel_rel_err > 0)
        end
    end
    return p, prepared
end

function test.calls_for_several_sequences()
    local p, prepared = verified(
        "small_chunks",
        "d = 24, heads = 4, kv_heads = 2, layers = 3, skip = true, norm = { kind = 'layernorm' }, checkpoint = \z
            'roberta', attention = { causal = false, rope = {}, context = 70 }, ffn = { kind = 'mlp', f = 40, \z
            activation = 'gelu_tanh' }",
        500,
        {},
        { ["chunk.tokens"] = 12 }
    )
    -- What the test is about: sequences longer than a chunk and chunks of several sequences, and some that are empty.
    local lengths, chunk = prepared.lengths, p.variants[1].chunk
    check.equal({ chunk, lengths[1], lengths[2], lengths[6] }, { 12, 0, 32, 70 })
    -- Each starts at a tile: keys and values of one layer, for 512 positions.
    check.equal(p.cache_bytes, 512 * 2 * (6 + 16) * 4)
    -- Tokens of a sequence do not depend on the others.
    local job = setmetatable({ lengths = false }, { __index = prepared.answers[1].job })
    local other = reference.answer_blocks(job, prepared.x)
    assert(block_reference.difference(other.y, prepared.answers[1].y, p.shape.d) > 0.01)
end

function test.windows_and_integers()
    verified(
        "window",
        "d = 20, heads = 2, head_dim = 6, layers = 1, d_in = 33, skip = true, norm = { kind = 'rmsnorm', place = \z
            'post' }, attention = { causal = false, window = 9, context = 64 }, ffn = { kind = 'glu', f = 24, \z
            activation = 'silu' }",
        300,
        { cache = "i8", type = "bf16" },
        { ["attention.tokens"] = 4 }
    )
end

function test.tables_that_deliver()
    verified(
        "tables",
        "d = 24, heads = 2, layers = 3, attention = { eliminate = 'QKV', causal = false, context = 40 }, \z
            ffn = { kind = 'lookup', h = 5, tau = 4, projection = { kind = 'dense' }, score = 'gelu' }",
        200,
        {},
        {}
    )
end

return test
