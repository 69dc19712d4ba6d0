-- The least time of a token against numbers computed by hand.
local check = require "tests.support.check"
local cost = require "gen.plan.cost"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"

-- The core of shared/goals.md in round numbers: 180 GFLOP/s, 340, 134, 29, 17 and 16 GB/s.
local limits =
    { fma_gflops = 180, l1_gbytes = 340, l2_gbytes = 134, l3_gbytes = 29, memory_gbytes = 17, random_rows_gbytes = 16 }
local caches = { l1d = 48 << 10, l2 = 2 << 20, l3 = 256 << 20 }

local function roberta_small(changes)
    local work = {
        projection_flops = 536576,
        projection_bytes = 1 << 20,
        pass = 256,
        row_bytes = 262144,
        table_bytes = 67108864,
        tokens = 4096,
        chunk = 4096,
    }
    for key, value in pairs(changes) do
        work[key] = value
    end
    return work
end

local test = {}

function test.many_tokens()
    local us, parts = cost.limit(roberta_small {}, limits, caches)
    check.near(parts.projection, 2.9810, 1e-4) -- 0.536576 MFLOP / 180 GFLOP/s
    check.near(parts.gather, 1.9563 + 0.5650, 1e-4) -- 256 KiB / 134 GB/s, 64 MiB / 29 GB/s / 4096
    check.near(us, 5.5023, 1e-4)
    -- Tables that leave L3 come from memory: 64 MiB / 17 GB/s / 4096. Chunks of 1024 read them four times as often.
    check.near(cost.limit(roberta_small {}, limits, { l1d = 48 << 10, l2 = 2 << 20, l3 = 32 << 20 }), 5.9011, 1e-4)
    check.near(cost.limit(roberta_small { chunk = 1024 }, limits, caches), 2.9810 + 1.9563 + 2.2598, 1e-4)
    -- A last chunk that is not full, and more chunks than one, cost what a whole one does.
    check.near(cost.limit(roberta_small { tokens = 65536 }, limits, caches), 5.5023, 1e-4)
end

function test.few_tokens()
    local us, parts = cost.limit(roberta_small { tokens = 1, pass = 4 }, limits, caches)
    check.near(parts.projection, 7.8252, 1e-4) -- 1 MiB / 134 GB/s
    check.near(parts.gather, 16.384, 1e-4) -- 256 KiB / 16 GB/s
    check.near(us, 24.2092, 1e-4)
    -- Two tokens of one pass share the weights; of four, operations take longer, and so for all calls above.
    check.near(select(2, cost.limit(roberta_small { tokens = 2, pass = 4 }, limits, caches)).projection, 3.9126, 1e-4)
    check.near(select(2, cost.limit(roberta_small { tokens = 4, pass = 4 }, limits, caches)).projection, 2.9810, 1e-4)
    check.near(select(2, cost.limit(roberta_small { tokens = 64, pass = 1 }, limits, caches)).projection, 7.8252, 1e-4)
    -- Weights of 4 MiB come from L3.
    local work = roberta_small { tokens = 1, pass = 4, projection_bytes = 4 << 20 }
    check.near(select(2, cost.limit(work, limits, caches)).projection, 144.6312, 1e-4)
end

function test.between_the_two_the_cheaper_way_counts()
    -- 160 tokens: 64 MiB / 29 GB/s / 160 = 14.463 and 1.956 are a little more than 16.384.
    check.near(select(2, cost.limit(roberta_small { tokens = 160 }, limits, caches)).gather, 16.384, 1e-4)
    check.near(select(2, cost.limit(roberta_small { tokens = 320 }, limits, caches)).gather, 1.9563 + 7.2316, 1e-4)
end

function test.tables_in_cache_are_read_there()
    check.near(select(2, cost.limit(roberta_small { table_bytes = 2 << 20 }, limits, caches)).gather, 1.9563, 1e-4)
    check.near(
        select(2, cost.limit(roberta_small { table_bytes = 32 << 10, tokens = 1 }, limits, caches)).gather,
        0.7710,
        1e-4
    ) -- 340 GB/s
end

function test.the_plan_says_what_is_done()
    local p = plan.build(model.load("gen/models/roberta_small.lua"), isa.select("avx512"))
    local v = p.variants[1]
    local many = v.stages[1]
    check.equal(
        plan.work(p, v, 4096),
        roberta_small { projection_flops = p.mflop.projection * 1e6, pass = many.tile * many.tiles, chunk = many.chunk }
    )
    check.near(p.mflop.projection, 0.536576, 1e-9)
    check.equal(plan.work(p, v, 1).pass, v.schedule["few.tokens"])
    -- VNNI multiplies what a word holds. AVX2 adds up pairs: bytes after they were widened, or two products of bytes.
    local at_once = {}
    for i, type in ipairs { "i16", "i8", "i7" } do
        local of = plan.build(model.load("gen/models/roberta_small.lua"), isa.select("avx2,avx512"), nil, nil, type)
        at_once[i] = plan.work(of, of.variants[1], 4096).products_at_once
        at_once[i + 3] = plan.work(of, of.variants[2], 4096).products_at_once
    end
    check.equal(at_once, { 2, 2, 8 / 3, 2, 4, 4 })
    -- Four rows of a table are four times the bytes.
    local given = {}
    for key, value in pairs(model.load("gen/models/roberta_small.lua")) do
        given[key] = value
    end
    given.neighbours = 4
    local four = plan.build(model.validate(given, "", "m"), isa.select("avx512"))
    check.equal(plan.work(four, four.variants[1], 4096).row_bytes, 4 * 262144)
    check.near(four.mflop.lookup - p.mflop.lookup, 3 * 2 * 128 * 512 / 1e6, 1e-9)
    check.near(four.mflop.folded - p.mflop.folded, 3 * 2 * 128 * 512 / 1e6, 1e-9)
end

return test
