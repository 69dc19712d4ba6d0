-- The figures of a plan are those of the paper, and memory that it lays out has neither gaps nor overlaps.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local json = require "json"
local lookup_model = require "gen.families.lookup.model"
local lookup_plans = require "tests.support.lookup_plans"
local machines = require "gen.machines.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local schedule = require "gen.families.lookup.schedule"

local sets, plan_of, for_random_models = lookup_plans.sets, lookup_plans.of, lookup_plans.for_random_models
local test = {}

function test.figures_of_the_paper()
    local p = plan_of "roberta_base"
    check.equal(p.mflop.dense, 2 * (768 * 3072 + 3072 * 768) / 1e6)
    check.equal(string.format("%.2f", p.mflop.dense), "9.44")
    -- 2 repeats of 4 stages over 1024 rows: blocks of 64, 10 levels of the transform; 170 rows of 768.
    check.equal(p.mflop.lookup, (2 * 4 * 1024 * (2 * 64 + 10) + 2 * 170 * 768) / 1e6)
    check.equal(string.format("%.2f", p.mflop.lookup), "1.39")
    check.equal(plan_of("roberta_small").mflop.lookup, (2 * 4 * 512 * (2 * 64 + 9) + 2 * 128 * 512) / 1e6)
end

function test.figures_after_folding_counted_by_hand()
    -- roberta_base: d 768 = 12 of 16 blocks of 64, 1530 outputs = 1024 + 506.
    local stage_1 = 12 * 2 * 64 * 64 -- blocks of zeros are gone
        + (8 + 3 * 16) * 64 -- 16 blocks, of which 4 are zero: the first level has 4 butterflies and 4 copies
    local stage_2 = 16 * 2 * 64 * 64 + 4 * 16 * 64
    local last = 8 * 2 * 128 * 64 -- 506 outputs lie in 8 blocks of 16: each sums two inputs
        + 3 * 8 * 64
        - (512 - 506) -- the transform of 8 blocks, without the final addition of 6 unread outputs
    local projection = (stage_1 + 3 * stage_2) + (stage_1 + 2 * stage_2 + last)
    check.equal(projection, 1012218)
    check.equal(plan_of("roberta_base").mflop.folded, (projection + 2 * 170 * 768) / 1e6)
    check.equal(plan_of("roberta_base").mflop.folded, 1.273338)

    -- roberta_small: nothing is cut; 3 of 9 levels of the transform remain.
    check.equal(plan_of("roberta_small").mflop.folded, (2 * 4 * (8 * 2 * 64 * 64 + 3 * 512) + 2 * 128 * 512) / 1e6)

    -- tiny: 48 of 64 outputs, that is 3 of 4 blocks of 16.
    check.equal(plan_of("tiny").mflop.folded, (4 * (4 * 2 * 16 * 16 + 2 * 64) - 16 + 2 * 8 * 64) / 1e6)
end

function test.folding_never_adds_work()
    for_random_models(function(p, m)
        if m.projection.kind == "bh4" then
            check.equal(p.mflop.folded < p.mflop.lookup, true)
        else
            check.equal(p.mflop.folded, p.mflop.lookup)
            check.equal(p.mflop.folded, (2 * m.d * m.h * m.tau + 2 * m.h * m.neighbours * m.d_out) / 1e6)
        end
        check.equal(p.mflop.dense, 2 * 4 * m.d * (m.d + m.d_out) / 1e6)
    end)
end

function test.bytes()
    local p = plan_of "roberta_small"
    check.equal(p.table_bytes, 128 * 256 * 512 * 4)
    -- Packed: header, projection, bias of z, residual gain, tables with rows of 33 lines of 16 floats, bias of y.
    check.equal(p.packed_bytes, 64 + 2 * 4 * 512 * 64 * 4 + 1024 * 4 + 512 * 4 + 128 * 256 * 528 * 4 + 512 * 4)
    local sections = {}
    for i, section in ipairs(p.sections) do
        sections[i] = section.name .. " " .. section.elements .. " " .. section.at
    end
    check.equal(sections, {
        "projection 262144 64",
        "projection_bias 1024 1048640",
        "residual 512 1052736",
        "tables 17301504 1054784",
        "bias 512 70260800",
    })
end

-- Parts { at, bytes, name } lie one after the other, aligned, from `first` to `last`; `more` may follow them. Before z
-- there may be room, so that it lies half of 4 KiB off x.
local function apart(parts, first, last, more)
    table.sort(parts, function(a, b) return a.at < b.at end)
    local at, x = first, nil
    for _, part in ipairs(parts) do
        if part.at % 64 ~= 0 then error(part.name .. " is not aligned", 0) end
        if part.at < at then error(part.name .. " overlaps what is before it", 0) end
        if part.name == "x" then x = part.at end
        local off = part.name == "z" and x and (part.at - x) % 4096 == 2048 and part.at < at + 4096
        if part.at >= at + 64 and not off then error("a hole before " .. part.name, 0) end
        at = part.at + part.bytes
    end
    if at > last then error("the last part does not fit", 0) end
    if last >= at + 64 and not more then error("a hole at the end", 0) end
end

function test.sections_of_the_blob_lie_apart()
    for_random_models(function(p)
        local parts = {}
        for i, section in ipairs(p.sections) do
            parts[i] = { name = section.name, at = section.at, bytes = section.elements * section.dtype.bytes }
        end
        apart(parts, 64, p.packed_bytes)
        check.equal(p.packed_bytes % 64, 0)
    end)
end

-- What choosing m rows takes, in vectors of a float a lane: for m > 2 a cost and the flipped bits of as many vertices
-- as the next power of two; of all rows a share and, for gelu, <z, S>. Few tokens have tables in the lanes: their codes
-- and scores are then laid out table by table.
local function bytes_to_choose(stage, m)
    if m.neighbours == 1 then return nil end
    local all = m.neighbours == 1 << m.tau
    local lists = all and m.score == "softmax" and 1 or (all or m.neighbours > 2) and 2 or 0
    local slot = m.score == "one" and 2 or 6 -- bytes of a row's code and score
    local spread = stage.layout == "rows" and stage.isa.lanes > 1 and m.neighbours * slot or 0
    local bytes = stage.isa.lanes * (lists * 4 * lookup_model.power_of_two_at_least(m.neighbours) + spread)
    return bytes > 0 and bytes or nil
end

-- The buffers of a stage and its gather number `number`.
local function buffers_lie_apart(stage, number, m, shape)
    local rows, tokens, gather = stage.projection.rows, stage.projected, stage.gathers[number]
    check.equal(rows.x, m.d)
    check.equal(rows.z >= shape.bits and rows.z < shape.bits + shape.padded + 16, true)
    if shape.kind == "bh4" then
        check.equal({ rows.a, rows.b }, { shape.padded, not shape.projection.word.integers and shape.padded or nil })
    end
    local slots = stage.chunk * m.h * m.neighbours
    local bytes = { code = 2 * slots, score = 4 * slots, vertices = bytes_to_choose(stage, m) }
    if m.score == "one" and not shape.tables.scaled then bytes.score = nil end
    for name, count in pairs(rows) do
        bytes[name] = count * tokens * 4
    end
    for _, buffer in ipairs(stage.work) do
        bytes[buffer.name] = buffer.bytes
    end
    -- scores as integers, four to two words; sums of whole lines; units of scores for each 256 rows
    local waiting = number == 1 and stage.chunk or (gather.up_to + stage.tile - 1) // stage.tile * stage.tile
    if stage.layout == "lanes" and gather.integers then
        local line = gather.integers.columns -- that one load has of a row
        local columns = (gather.columns + line - 1) // line * line
        bytes.words, bytes.score_units, bytes.zeros =
            waiting * ((m.h * m.neighbours + 3) // 4) * 8,
            waiting * ((m.h * m.neighbours + 255) // 256) * 4,
            columns * 4
        if gather.group < m.h then bytes.sums = 4 * waiting * columns end
    elseif gather.columns < m.d_out and gather.group < m.h then
        bytes.sums = 4 * waiting * gather.columns
    end
    if gather.pack then
        check.equal(gather.columns * shape.tables.bytes % 64, 0)
        bytes.slice = gather.group * shape.rows * gather.columns * shape.tables.bytes
    end
    local parts = {}
    for _, places in ipairs { stage.scratch, gather.scratch } do
        for name, at in pairs(places) do
            parts[#parts + 1] = { name = name, at = at, bytes = bytes[name] or error("unknown buffer " .. name) }
            bytes[name] = nil
        end
    end
    check.equal(bytes, {})
    return parts
end

function test.buffers_of_scratch_lie_apart()
    for_random_models(function(p, m)
        local most, most_of_one = 0, 0
        for _, v in ipairs(p.variants) do
            for _, stage in ipairs(v.stages) do
                local bytes = 0
                for number, gather in ipairs(stage.gathers) do
                    apart(buffers_lie_apart(stage, number, m, p.shape), 0, gather.scratch_bytes)
                    bytes = math.max(bytes, gather.scratch_bytes)
                end
                check.equal(bytes, stage.scratch_bytes)
                check.equal(stage.scratch_bytes <= v.scratch_bytes, true)
            end
            local many, few = table.unpack(v.stages)
            check.equal(many.tile % v.isa.lanes, 0)
            check.equal(many.chunk % (many.tile * many.tiles), 0)
            most = math.max(most, many.scratch_bytes, few and few.scratch_bytes or 0)
            most_of_one = math.max(most_of_one, (few or many).scratch_bytes)
        end
        check.equal({ p.scratch_bytes, p.scratch_bytes_one }, { most, most_of_one })
    end)
end

-- A token alone has kernels of its own, which keep few tokens in scratch: verify gives it no more.
function test.one_token_takes_little_scratch()
    local p = plan_of "roberta_small"
    check.equal(p.scratch_bytes_one * 8 < p.scratch_bytes, true)
end

-- With many rows a token, the default schedules keep fewer tokens waiting; no schedule takes more than some GiB.
function test.many_rows_a_token_take_little_scratch()
    local function build(h, tau, neighbours, wanted)
        local given = {
            name = "m",
            d = 64,
            h = h,
            tau = tau,
            neighbours = neighbours,
            projection = { kind = "dense" },
            score = "gelu",
        }
        return plan.build(model.validate(given, "", "m"), sets, wanted and schedule.for_all(sets, wanted))
    end
    local cases = { { 128, 8, 256 }, { 170, 9, 512 }, { 16, 16, 65536 }, { 65536, 4, 16 }, { 32, 16, 20000 } }
    for _, case in ipairs(cases) do
        check.equal(build(table.unpack(case)).scratch_bytes <= 256 << 20, true)
    end
    check.equal(build(16, 16, 65536, { ["tile.vectors"] = 4 }).scratch_bytes < 1 << 32, true)
    check.fails_with("--schedule: chunk.tokens = 4096: ", build, 16, 16, 65536, { ["chunk.tokens"] = 4096 })
    check.fails_with(
        "--schedule: project.tiles = 16: ",
        build,
        16,
        16,
        65536,
        { ["tile.vectors"] = 4, ["project.tiles"] = 16 }
    )
end

function test.types_of_tables()
    local m = model.load("gen/models/roberta_small.lua")
    local seen = {}
    for _, name in ipairs(dtype.names) do
        local p = plan.build(m, sets, nil, name)
        check.equal(p.table_bytes, dtype.size(dtype.get(name), 128 * 256 * 512))
        check.equal(seen[p.digest], nil)
        seen[p.digest] = true
    end
    check.equal(seen[plan.build(m, sets).digest], true)
    -- Rows of 33, 17 and 9 lines; a float a row for the scales of scaled types.
    local rest = 64 + 2 * 4 * 512 * 64 * 4 + 1024 * 4 + 512 * 4 + 512 * 4
    for _, name in ipairs(dtype.names) do
        local type = dtype.get(name)
        local bytes = dtype.size(type, 8 * 64) + 64 + (type.scaled and 4 or 0)
        check.equal(plan.build(m, sets, nil, name).packed_bytes, rest + 128 * 256 * bytes)
    end
    check.fails_with(
        '--tables: "i5": must be one of ' .. table.concat(dtype.names, ", "),
        plan.build,
        m,
        sets,
        nil,
        "i5"
    )
    -- A budget changes nothing of a blob.
    local with_budget = {}
    for key, value in pairs(m) do
        with_budget[key] = value
    end
    with_budget.budget = 1e-2
    check.equal(plan.build(with_budget, sets).digest, plan.build(m, sets).digest)
end

function test.types_of_projections()
    local m = model.load("gen/models/roberta_small.lua")
    local f32, bf16 = plan.build(m, sets), plan.build(m, sets, nil, nil, "bf16")
    check.equal(plan.build(m, sets, nil, nil, "f32").digest, f32.digest)
    check.equal(f32.digest == bf16.digest, false)
    check.equal({ f32.projection_bytes, bf16.projection_bytes }, { 1 << 20, 1 << 19 })
    check.equal(f32.packed_bytes - bf16.packed_bytes, 1 << 19)
    check.equal(plan.work(bf16, bf16.variants[1], 1).projection_bytes, 1 << 19)
    check.equal(bf16.mflop, f32.mflop)
    -- One panel of a block is unpacked at a time: 64 inputs of 16 outputs.
    for i, v in ipairs(bf16.variants) do
        check.equal(v.scratch_bytes - f32.variants[i].scratch_bytes, 64 * 16 * 4)
    end
    -- Integers have a float of scale an output of each block, and inputs of a block of 64 rounded to words, with the
    -- units of x and of a stage, and their inverses; outputs take the place of inputs that were rounded: one buffer of
    -- 512 floats a token less.
    local i16 = plan.build(m, sets, nil, nil, "i16")
    check.equal({ i16.projection_bytes, i16.packed_bytes - bf16.packed_bytes }, { 1 << 19, 2 * 4 * 512 * 4 })
    for i, v in ipairs(i16.variants) do
        local tokens = v.stages[1].projected
        check.equal(v.scratch_bytes - f32.variants[i].scratch_bytes, tokens * 32 * 4 + tokens * 16 - tokens * 512 * 4)
    end
    -- 13 inputs fill 7 words: the last has one weight and zeros.
    local odd = model.validate(
        { name = "odd", d = 13, h = 5, tau = 4, projection = { kind = "dense" }, score = "gelu" },
        "",
        "odd"
    )
    check.equal(
        { plan.build(odd, sets).projection_bytes, plan.build(odd, sets, nil, nil, "bf16").projection_bytes },
        { 13 * 20 * 4, 7 * 20 * 4 }
    )
    -- Bytes: half of that, one stage's inputs of a block; a unit and a start of each fold. Where rows come first, those
    -- of all 8 blocks, and their maxima.
    local there = machines.sets(sets, "sapphire-rapids")
    local floats, i8 = plan.build(m, there), plan.build(m, there, nil, nil, "i8")
    check.equal({ i8.projection_bytes, i8.packed_bytes - i16.packed_bytes }, { 1 << 18, -(1 << 18) })
    for i, v in ipairs(i8.variants) do
        local many = v.stages[1]
        local tokens, work = many.projected, 0
        for _, buffer in ipairs(many.work) do
            work = work + buffer.bytes
        end
        check.equal(work, tokens * (many.rows_first and 8 * (16 + 2 + 1 + 1) or 16 + 2 + 1) * 4)
        check.equal(many.rows_first, v.isa.name == "avx512")
        if not many.rows_first then
            check.equal(v.scratch_bytes - floats.variants[i].scratch_bytes, work - tokens * 512 * 4)
        end
    end
    for _, name in ipairs { "f16", "e4m3", "f64", "" } do
        check.fails_with(
            '--projection: "' .. name .. '": must be one of ' .. table.concat(dtype.projection_names, ", "),
            plan.build,
            m,
            sets,
            nil,
            nil,
            name
        )
    end
end

function test.the_command_says_it()
    local result = process.run { check.lookupc, "plan", "gen/models/roberta_base.lua" }
    check.equal(result.status, 0)
    check.matches(
        result.output,
        "MFLOP per token +1%.39 by the paper's formula, 1%.27 after folding; dense FFN 9%.44\n"
    )
    check.matches(result.output, "\nscratch +%S+ MiB with scalar,avx2,avx512\n$")
    local decoded = json.decode(process.run({ check.lookupc, "plan", "gen/models/roberta_base.lua", "--json" }).output)
    local p = plan_of "roberta_base"
    for key, value in pairs {
        d = 768,
        d_out = 768,
        h = 170,
        tau = 9,
        block = 64,
        padded = 1024,
        repeats = 2,
        mflop_per_token = 1.391616,
        mflop_per_token_folded = 1.273338,
        dense_mflop_per_token = 9.437184,
        table_bytes = 267386880,
        packed_bytes = p.packed_bytes,
        scratch_bytes = p.scratch_bytes,
    } do
        check.equal(decoded[key], value)
    end
end

-- In a line each, which are long: only for who asks.
function test.the_command_says_schedules_if_asked()
    for _, name in ipairs { "tiny", "tiny_skipless" } do
        local words = { check.lookupc, "plan", "gen/models/" .. name .. ".lua", "--isa", "scalar,avx2" }
        local short = process.run(words).output
        check.matches(short, "\nscratch +[^\n]* with scalar,avx2\n$")
        words[#words + 1] = "--schedules"
        local long = process.run(words).output
        check.equal(long:sub(1, #short), short)
        check.matches(long:sub(#short + 1), "^schedule scalar +%S+\nschedule avx2 +%S+\n$")
    end
end

return test
