-- The plan's figures are those of the paper, and its layouts have neither gaps nor overlaps.
local check = require "tests.support.check"
local sets_of = require "tests.support.sets"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local schedule = require "gen.families.lookup.schedule"
local process = require "process"
local product = require "gen.families.lookup.product"
local request = require "gen.request.request"
local lookup_model = require "gen.families.lookup.model"
local machines = require "gen.machines.list"

local sets = isa.select(sets_of.bundled)

local function plan_of(name) return plan.build(model.load("gen/models/" .. name .. ".lua"), sets) end

-- Calls `tried(plan, model)` for random models; a failure says which.
local function for_random_models(tried)
    for index = 1, effort.plan_models do
        local given, tables, projection = fuzz.model(index)
        local m = model.validate(given, "", "fuzz")
        local good, message = pcall(function() tried(plan.build(m, sets, nil, tables, projection), m) end)
        if not good then
            error(
                string.format(
                    "model %d, projection in %s, tables in %s, %s%s",
                    index,
                    projection,
                    tables,
                    fuzz.text(given),
                    message
                ),
                0
            )
        end
    end
end

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
        local line = stage.isa.integer_sums.columns
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

-- Where each element of a section comes from, as the packer reads the boxes: calls found(to, from, count, step,
-- to_step) for runs of elements that lie `step` apart in the tensor and `to_step` in the section.
local function runs(box, to_shift, from_shift, found)
    local dims = box.dims
    local last = dims[#dims]
    local function walk(level, to, from)
        if level == #dims then return found(to, from, last.count, last.from, last.to) end
        local dim = dims[level]
        for i = 0, dim.count - 1 do
            walk(level + 1, to + i * dim.to, from + i * dim.from)
        end
    end
    walk(1, box.to + to_shift, box.from + from_shift)
end

-- The elements of the tensor in the order in which the packed section holds them, and how many those are.
local function packed(section)
    local from_at, count = {}, 0
    for _, box in ipairs(section.boxes) do
        runs(box, 0, 0, function(to, from, length, step, to_step)
            for i = 0, length - 1 do
                local at = to + i * to_step
                if from_at[at] then error(section.name .. ": element " .. at .. " is written twice", 0) end
                if at >= section.elements then error(section.name .. ": element " .. at .. " does not exist", 0) end
                from_at[at] = from + i * step
            end
            count = count + length
        end)
    end
    return from_at, count
end

-- The same order by the definition: [block][panel of outputs][words of inputs][outputs][inputs of a word], nothing
-- where a block has no input left for a word.
local function blocks_in_order(list, inputs_a_word)
    local order, at = {}, 0
    for _, block in ipairs(list) do
        for panel = 0, block.outputs - 1, product.panel do
            for input = 1, #block.inputs, inputs_a_word do
                for output = panel, math.min(panel + product.panel, block.outputs) - 1 do
                    for part = 0, inputs_a_word - 1 do
                        local from = block.inputs[input + part]
                        order[at] = from and from + output * block.output_step or nil
                        at = at + 1
                    end
                end
            end
        end
    end
    return order, at
end

-- Of blocks that are added up, each fills words of its own.
local function bh4_blocks(shape, inputs_a_word)
    local b, N, list = shape.block, shape.padded, {}
    local blocks = N // b
    for r = 0, shape.repeats - 1 do
        local need = math.min(N, shape.bits - r * N)
        -- Blocks of outputs that remain: a power of two that covers what is read.
        local left = blocks
        while left > 1 and left // 2 * b >= need do
            left = left // 2
        end
        for s = 0, 3 do
            for k = 0, (s == 3 and left or blocks) - 1 do
                local inputs = {}
                for block = k, blocks - 1, s == 3 and left or blocks do
                    for i = 0, b - 1 do
                        if s > 0 or block * b + i < shape.d then
                            inputs[#inputs + 1] = ((r * 4 + s) * blocks + block) * b * b + i
                        end
                    end
                    while #inputs % inputs_a_word > 0 do
                        inputs[#inputs + 1] = false
                    end
                end
                list[#list + 1] =
                    { inputs = inputs, output_step = b, outputs = s == 3 and left == 1 and math.min(need, b) or b }
            end
        end
    end
    return list
end

local function dense_blocks(shape)
    local list = {}
    for output = 0, shape.bits - 1, product.panel do
        local inputs = {}
        for i = 0, shape.d - 1 do
            inputs[i + 1] = output * shape.d + i
        end
        list[#list + 1] =
            { inputs = inputs, output_step = shape.d, outputs = math.min(product.panel, shape.bits - output) }
    end
    return list
end

function test.packed_projections_hold_every_element_once()
    for_random_models(function(p, m)
        local section = p.sections[p.projection.scaled and 2 or 1]
        check.equal(section.name, "projection")
        local actual = packed(section)
        local inputs_a_word = 4 // p.projection.bytes
        local blocks = m.projection.kind == "bh4" and bh4_blocks(p.shape, inputs_a_word) or dense_blocks(p.shape)
        local expected, count = blocks_in_order(blocks, inputs_a_word)
        check.equal({ section.elements, section.count * inputs_a_word }, { count, count })
        local size, seen = 1, {}
        for _, n in ipairs(section.shape) do
            size = size * n
        end
        for to = 0, count - 1 do
            local from = expected[to]
            if actual[to] ~= from then
                error(string.format("element %d comes from %s, expected %s", to, actual[to], from), 0)
            end
            if from and (from >= size or seen[from]) then
                error("element " .. from .. " is used twice or does not exist", 0)
            end
            if from then seen[from] = true end
        end
    end)
end

-- Tables are packed [h][2^tau][pitch], rows whole and the elements between them unused; a table is a slice of the
-- tensor.
function test.packed_tables_hold_every_row_once()
    for_random_models(function(p, m)
        local section = p.sections[#p.sections - 1]
        check.equal(section.name, "tables")
        check.equal(section.slices, m.h)
        local rows, from_at = m.h << m.tau, {}
        local pitch = section.elements // rows
        check.equal(section.elements, rows * pitch)
        -- A row starts a cache line of 64 bytes, an odd number of lines after the last; shorter ones are not padded.
        local bytes, row_bytes = pitch * p.tables.bytes, m.d_out * p.tables.bytes
        if row_bytes < 64 then
            check.equal(pitch, m.d_out)
        else
            check.equal({ bytes % 128, bytes >= row_bytes, bytes < row_bytes + 128 }, { 64, true, true })
        end
        local count = 0
        for slice = 0, m.h - 1 do
            for _, box in ipairs(section.boxes) do
                runs(box, slice * box.slice_to, slice * (m.d_out << m.tau), function(to, from, length, step)
                    if length ~= m.d_out or step ~= 1 and length > 1 then error("a row is torn", 0) end
                    if from_at[to] then error("element " .. to .. " is written twice", 0) end
                    from_at[to], count = from, count + 1
                end)
            end
        end
        check.equal(count, rows)
        for row = 0, rows - 1 do
            if from_at[row * pitch] ~= row * m.d_out then
                error(string.format("row %d comes from %s", row, from_at[row * pitch]), 0)
            end
        end
    end)
end

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
                        local line, parts = 64 // p.tables.bytes, 0
                        local gather = v.stages[1].gathers[1]
                        for _, tile in ipairs(gather.tiles) do
                            for k = 0, tile.count - 1 do
                                local from = tile.from + k * tile.width
                                check.equal(from % line, 0)
                                check.equal((from + tile.width + line - 1) // line * line <= p.pitch, true)
                                check.equal(tile.width <= gather.pack.pitch, true)
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

function test.vectors_are_copied_whole()
    for_random_models(function(p, m)
        local lengths = { projection_bias = m.h * m.tau, residual = m.d, bias = m.d_out }
        for _, section in ipairs(p.sections) do
            if lengths[section.name] then
                check.equal(section.elements, lengths[section.name])
                local from, count = packed(section)
                check.equal(count, section.elements)
                for i = 0, section.elements - 1 do
                    check.equal(from[i], i)
                end
            end
        end
    end)
end

function test.sections_come_from_tensors_of_the_same_shape()
    for_random_models(function(p, m)
        local shapes = {}
        for _, tensor in ipairs(p.tensors) do
            shapes[tensor.name] = tensor.shape
        end
        for _, section in ipairs(p.sections) do
            if section.from then
                check.equal(section.shape, shapes[section.from])
            else
                check.equal({ section.name:match("_scales$"), section.boxes }, { "_scales", {} })
            end
        end
        check.equal(shapes["LayerNorm.weight"] ~= nil, m.norm ~= nil)
        check.equal(shapes["LayerNorm.bias"] ~= nil, m.norm ~= nil)
    end)
end

function test.tensors_of_a_checkpoint()
    local shapes = {}
    for i, tensor in ipairs(plan_of("roberta_base").tensors) do
        shapes[i] = tensor.name .. " " .. table.concat(tensor.shape, ",")
    end
    check.equal(shapes, {
        "hash.projection.weight 2,4,16,64,64",
        "hash.projection.bias 1530",
        "tables 170,512,768",
        "bias 768",
        "LayerNorm.weight 768",
        "LayerNorm.bias 768",
    })
end

-- Tables of a scaled type have the scales of their rows in a section of floats; others have none.
function test.scales_of_rows()
    for_random_models(function(p, m)
        local scales, filled = nil, nil
        for _, section in ipairs(p.sections) do
            if section.name == "table_scales" then scales = section end
            if section.name == "tables" then filled = section.scales end
            if section.name == "projection" then check.equal(section.scales, p.projection.scaled and 64 or nil) end
        end
        if p.tables.scaled then
            check.equal({ scales.elements, scales.type, scales.at }, { m.h << m.tau, "f32", filled })
        else
            check.equal({ scales, filled }, {})
        end
    end)
end

function test.types_of_tables()
    local m = model.load("gen/models/roberta_small.lua")
    local seen = {}
    for _, name in ipairs(dtype.names) do
        local p = plan.build(m, sets, nil, name)
        check.equal(p.table_bytes, 128 * 256 * 512 * dtype.get(name).bytes)
        check.equal(seen[p.digest], nil)
        seen[p.digest] = true
    end
    check.equal(seen[plan.build(m, sets).digest], true)
    -- Rows of 33, 17 and 9 lines; a float a row for the scales of scaled types.
    local rest = 64 + 2 * 4 * 512 * 64 * 4 + 1024 * 4 + 512 * 4 + 512 * 4
    for _, name in ipairs(dtype.names) do
        local type = dtype.get(name)
        local bytes = (8 * type.bytes + 1) * 64 + (type.scaled and 4 or 0)
        check.equal(plan.build(m, sets, nil, name).packed_bytes, rest + 128 * 256 * bytes)
    end
    check.fails_with(
        '--tables: "i4": must be one of ' .. table.concat(dtype.names, ", "),
        plan.build,
        m,
        sets,
        nil,
        "i4"
    )
    -- A budget changes nothing of a blob.
    local with_budget = {}
    for key, value in pairs(m) do
        with_budget[key] = value
    end
    with_budget.budget = 1e-2
    check.equal(plan.build(with_budget, sets).digest, plan.build(m, sets).digest)
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

function test.the_blob_does_not_depend_on_the_instruction_sets()
    for _, name in ipairs { "tiny", "roberta_small", "roberta_base" } do
        local m = model.load("gen/models/" .. name .. ".lua")
        for _, projection in ipairs(dtype.projection_names) do
            local all = plan.build(m, sets, nil, nil, projection)
            for _, set in ipairs(sets) do
                local one = plan.build(m, { set }, nil, nil, projection)
                check.equal(one.digest, all.digest)
                check.equal(one.sections, all.sections)
            end
        end
    end
end

function test.models_that_need_other_blobs_have_other_digests()
    local base = { name = "m", d = 60, h = 8, tau = 6, projection = { kind = "bh4", block = 16 }, score = "gelu" }
    local seen, digests = {}, 0
    local function add(changes)
        local given = {}
        for key, value in pairs(base) do
            given[key] = value
        end
        for key, value in pairs(changes) do
            given[key] = value
        end
        local digest = plan.build(model.validate(given, "", "m"), sets).digest
        check.matches(digest, "^" .. ("%x"):rep(64) .. "$")
        check.equal(seen[digest], nil)
        seen[digest], digests = true, digests + 1
    end
    for _, changes in ipairs {
        {},
        { name = "n" },
        { d = 61 },
        { d_out = 61 },
        { h = 9 },
        { tau = 7 },
        { score = "softmax" },
        { scale = "1/h" },
        { projection = { kind = "bh4", block = 32 } },
        { projection = { kind = "bh4", block = 16, decay = 0.6 } },
        { projection = { kind = "dense" } },
        { norm = { kind = "layernorm" } },
        { norm = { kind = "layernorm", eps = 1e-6 } },
    } do
        add(changes)
    end
    check.equal(digests, 13)
    -- What is left out is what the default says.
    local function digest(d_out)
        return plan.build(
            model.validate(
                { name = "m", d = 60, d_out = d_out, h = 8, tau = 6, projection = { kind = "dense" }, score = "gelu" },
                "",
                "m"
            ),
            sets
        ).digest
    end
    check.equal(digest(nil), digest(60))
end

-- A range of whole tiles that starts where a chunk could puts the same tokens into a tile as one call does.
function test.threads_get_whole_tiles_and_enough_work()
    for_random_models(function(p)
        for _, v in ipairs(p.variants) do
            for _, kernels in ipairs(v.stages) do
                local split = kernels.split
                if split then
                    check.equal({ split.min % split.tile, kernels.chunk % split.tile }, { 0, 0 })
                    check.equal(
                        { split.min * p.mflop.folded >= 7.9, (split.min - split.tile) * p.mflop.folded < 8 },
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
            for _, machine_name in ipairs(effort.turns(machines.names, effort.machines_stride)) do
                local names = table.concat(machines.get(machine_name).isa or isa.names, ",")
                local options = { [option] = type, ["for"] = machine_name, isa = names }
                request.plan(path, isa.select(names, { dtype.get(type) }), options)
            end
        end
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
