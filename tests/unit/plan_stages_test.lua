-- What the kernels of a plan take at a time, by numbers of tokens, and what machines choose.
local check = require "tests.support.check"
local cost = require "gen.plan.cost"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local isa = require "gen.isa.list"
local lookup_plans = require "tests.support.lookup_plans"
local machines = require "gen.machines.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local request = require "gen.request.request"
local schedule = require "gen.families.lookup.schedule"

local sets, plan_of, for_random_models = lookup_plans.sets, lookup_plans.of, lookup_plans.for_random_models
local test = {}

-- What the gather sums: tiles of columns one after the other, each held in whole strips, whole vectors and a partial
-- one.
function test.the_gather_takes_every_column_once()
    for_random_models(function(p, m)
        for _, v in ipairs(p.variants) do
            for _, stage in ipairs(v.stages) do
                for _, gather in ipairs(stage.gathers) do
                    local at, lanes = 0, gather.integers and gather.integers.columns or stage.isa.lanes
                    for _, tile in ipairs(gather.tiles) do
                        local s = tile.strips
                        check.equal(tile.from, at)
                        check.equal(s.floats, s.vectors * lanes)
                        check.equal(s.rest_at, s.count * s.floats)
                        check.equal(s.rest_at + s.vectors_left * lanes + s.partial, tile.width)
                        check.equal(s.vectors_left < s.vectors and s.partial < lanes, true)
                        at = at + tile.count * tile.width
                    end
                    check.equal(at, m.d_out)
                end
            end
        end
    end)
end

-- Pieces are copied in whole lines, of the last tile more than there are columns: the rest must be the row's own.
function test.copied_pieces_stay_in_their_row()
    local copied = 0
    for _, d_out in ipairs { 65, 100, 128, 200, 240, 496, 512 } do
        for _, tables in ipairs(dtype.names) do
            local m = model.validate(
                { name = "m", d = 64, d_out = d_out, h = 64, tau = 8, projection = { kind = "dense" }, score = "gelu" },
                "",
                "m"
            )
            for _, columns in ipairs { 16, 32, 64, 128 } do
                if columns < d_out and columns * dtype.get(tables).bytes % 64 == 0 then
                    local p = plan.build(
                        m,
                        isa.select("avx2,avx512"),
                        schedule.for_all(
                            isa.select("avx2,avx512"),
                            { ["gather.columns"] = columns, ["gather.group"] = 4, ["gather.pack"] = 1 }
                        ),
                        tables
                    )
                    for _, v in ipairs(p.variants) do
                        local line, parts = dtype.held(p.tables, 64), 0
                        local gather = v.stages[1].gathers[1]
                        for _, tile in ipairs(gather.tiles) do
                            for k = 0, tile.count - 1 do
                                local from = tile.from + k * tile.width
                                check.equal(from % line, 0)
                                check.equal((from + tile.width + line - 1) // line * line <= p.pitch, true)
                                check.equal(dtype.units(p.tables, tile.width) <= gather.pack.pitch, true)
                                parts, copied = parts + 1, copied + 1
                            end
                        end
                        check.equal(gather.parts, parts)
                    end
                end
            end
        end
    end
    check.equal(copied > 200, true)
end

function test.a_slice_is_copied_where_rows_are_met_several_times()
    local function packs(tau, tables, wanted)
        local m = model.validate(
            { name = "m", d = 512, h = 128, tau = tau, projection = { kind = "dense" }, score = "gelu" },
            "",
            "m"
        )
        local list = {}
        for i, v in ipairs(plan.build(m, sets, wanted, tables).variants) do
            list[i] = v.schedule["gather.pack"]
        end
        return list
    end
    check.equal(packs(8, "f32"), { 0, 1, 1 })
    check.equal(packs(8, "i8"), { 0, 1, 1 })
    check.equal(packs(12, "f32"), { 0, 0, 0 }) -- 4096 rows a table, 4096 tokens a chunk
    check.equal(packs(2, "i8"), { 0, 0, 0 }) -- 256 KiB of tables lie in L2
    check.equal(packs(8, "f32", schedule.for_all(sets, { ["chunk.tokens"] = 512 })), { 0, 0, 0 })
end

-- Between few and many: rows of i8 that integers sum are gathered whole until a call meets each row several times, by
-- the machine's limits; with two rows a table it meets them in half as many tokens.
function test.tokens_between_few_and_many_gather_whole_rows()
    local m = model.load "gen/models/roberta_small.lua"
    local function choices(tables, neighbours)
        m.neighbours = neighbours
        local v = plan.build(m, { isa.get "avx512" }, nil, tables).variants[1]
        local whole = v.stages[1].gathers[2]
        check.equal(whole ~= nil, v.schedule["whole.tokens"] > 0)
        if whole then
            check.equal({ whole.up_to, whole.group, #whole.tiles, whole.tiles[1].width }, {
                v.schedule["whole.tokens"],
                v.schedule["whole.group"],
                1,
                m.d,
            })
        end
        return { v.schedule["few.threshold"], v.schedule["whole.tokens"], v.schedule["whole.group"] }
    end
    check.equal(choices("i8", 1), { 48, 1024, 32 })
    check.equal(choices("i8", 2), { 48, 512, 16 })
    check.equal(choices("f32", 1), { 512, 0, 1 })
end

-- Blocks that do not fill a vector have kernels for few tokens of the next narrower set that they fill.
function test.few_tokens_take_vectors_that_blocks_fill()
    local function few(block, tables, set)
        local m = model.validate({
            name = "m",
            d = 64,
            h = 64,
            tau = 8,
            projection = { kind = "bh4", block = block },
            score = "gelu",
        }, "", "m")
        local own = plan.build(m, { isa.get(set or "avx512") }, nil, tables).variants[1].stages[2]
        return own and { own.isa.lanes, own.isa.name }
    end
    check.equal(few(16, "f32"), { 16, "avx512" })
    check.equal(few(8, "f32"), { 8, "avx512" })
    check.equal(few(4, "i8"), { 4, "avx512" })
    check.equal(few(4, "bf16", "avx2"), { 4, "avx2" })
    check.equal({ few(2, "f32"), few(8, "f16") }, {})
end

-- Zen 5 has tables of roberta_small in i8 in L3: their rows come into L1. Those of floats, and of roberta_base, come
-- from memory into L2, in long strips where they leave the TLB. Of slices that are copied the next one is prefetched.
-- Where a token alone is slow to project, calls that are not few gather whole rows.
function test.zen5_prefetches_by_where_tables_lie()
    local here = machines.sets({ isa.get "avx512" }, machines.of_cpu("AuthenticAMD", 26, 2))
    local function choices(name, tables, block)
        local m = model.load("gen/models/" .. name .. ".lua")
        m.projection.block = block or m.projection.block
        local s = plan.build(m, here, nil, tables).variants[1].schedule
        check.equal({ s["gather.pack"], s["gather.prefetch_next"] }, { 2, 1 })
        local few = { s["few.prefetch"], s["few.accumulators"], s["few.group"] }
        local whole = { s["whole.tokens"], s["whole.prefetch"], s["whole.group"] }
        return { few, whole, s["few.threshold"], s["gather.columns"] }
    end
    check.equal(choices("roberta_small", "i8"), { { 1, 16, 128 }, { 1024, 1, 128 }, 48, 64 })
    check.equal(choices("roberta_base", "i8"), { { 3, 16, 170 }, { 0, 3, 170 }, 512, 64 })
    check.equal(choices("roberta_base", "i8", 16), { { 3, 16, 170 }, { 512, 3, 170 }, 48, 64 })
    check.equal(choices("roberta_base", "i8", 8)[2], { 512, 3, 170 })
    check.equal(choices("roberta_small", "f32"), { { 3, 2, 128 }, { 0, 3, 1 }, 512, 32 })
    check.equal(choices("roberta_base", "f32"), { { 3, 16, 64 }, { 0, 3, 1 }, 512, 32 })
end

-- Zen 3 gathers slices of tables where a call meets each row more than once, of floats more than twice.
function test.zen3_gathers_slices_of_rows_met_again()
    local here = machines.sets({ isa.get "avx2" }, machines.of_cpu("AuthenticAMD", 25, 1))
    local function choices(tables, neighbours)
        local m = model.load "gen/models/roberta_small.lua"
        m.neighbours = neighbours
        local s = plan.build(m, here, nil, tables).variants[1].schedule
        return { s["few.threshold"], s["whole.tokens"], s["whole.group"], s["whole.prefetch"] }
    end
    check.equal(choices("i8", 1), { 12, 256, 16, 3 })
    check.equal(choices("i8", 2), { 12, 128, 16, 3 })
    check.equal(choices("f32", 1), { 12, 512, 16, 1 })
    check.equal(choices("f32", 2), { 12, 256, 8, 1 })
end

-- 64 tokens are two tiles of 48, which are written whole: both scores as integers, two bytes each, and sums.
function test.tokens_between_few_and_many_fill_whole_tiles()
    local set = isa.get "avx512"
    local m = model.load "gen/models/roberta_small.lua"
    local s = { ["tile.vectors"] = 3, ["product.outputs"] = 8, ["whole.tokens"] = 64, ["chunk.tokens"] = 384 }
    m.neighbours = 1
    local whole = plan.build(m, { set }, { avx512 = s }, "i8").variants[1].stages[1].gathers[2]
    local scores = whole.integers.quads * whole.integers.rows * 2
    check.equal(whole.scratch.score_units - whole.scratch.words >= 96 * scores, true)
    check.equal(whole.scratch_bytes - whole.scratch.sums >= 96 * m.d * 4, true)
end

-- A range of whole tiles that starts where a chunk could puts the same tokens into a tile as one call does.
function test.threads_get_whole_tiles_and_enough_work()
    for_random_models(function(p)
        for _, v in ipairs(p.variants) do
            for _, kernels in ipairs(v.stages) do
                local split = kernels.split
                if split then
                    local mflop = cost.folded(kernels.shape, kernels.projection.flops)
                    check.equal({ split.min % split.tile, kernels.chunk % split.tile }, { 0, 0 })
                    check.equal(
                        { split.min * mflop >= 7.9, (split.min - split.tile) * mflop < 8 },
                        { true, true }
                    )
                end
                for _, tokens in ipairs { 1, 31, 1000, 65536 } do
                    local threads = plan.threads(kernels, tokens, 3)
                    check.equal(
                        { threads >= 1, threads <= 3, threads == 1 or threads * split.min <= tokens },
                        { true, true, true }
                    )
                end
            end
        end
    end)
    local many, few = table.unpack(plan_of("roberta_small").variants[3].stages)
    local threads = plan.threads
    check.equal({ many.split, few.split }, { { tile = 64, min = 64 }, { tile = 4, min = 12 } })
    check.equal(
        { threads(few, 23, 2), threads(few, 24, 2), threads(many, 4096, 2), threads(many, 4096, 1) },
        { 1, 2, 2, 1 }
    )
    check.equal(plan_of("tiny").variants[3].stages[2].split, nil)
end

-- A CPU's file has every number that the nominal one has, and no other.
function test.every_machine_says_everything()
    local function fields(cpu)
        local list = {}
        for key in pairs(cpu) do
            list[#list + 1] = key
        end
        table.sort(list)
        return list
    end
    local all = { architecture = "", isa = {} }
    for key, value in pairs(machines.get(machines.nominal)) do
        all[key] = value
    end
    for i = 2, #machines.names do
        check.equal({ machines.names[i], fields(machines.get(machines.names[i])) }, { machines.names[i], fields(all) })
    end
end

-- The choices that a machine makes are wanted ones for the plan, which refuses those that are not legal.
function test.what_a_machine_chooses_is_legal()
    local cases = {
        tiny = "tables",
        roberta_small = "tables",
        roberta_base = "tables",
        lookup_skipless = "type",
        skipless_1024 = "type",
    }
    for name, option in pairs(cases) do
        local path = "gen/models/" .. name .. ".lua"
        for _, type in ipairs(name == "tiny" and dtype.names or { "f32", "i8" }) do
            for _, machine_name in ipairs(effort.some("machines", machines.names, #machines.names // 3)) do
                local names = table.concat(machines.get(machine_name).isa or isa.names, ",")
                local options = { [option] = type, ["for"] = machine_name, isa = names }
                request.plan(path, isa.select(names, { dtype.get(type) }), options)
            end
        end
    end
end

return test
