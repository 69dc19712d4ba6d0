-- The blob that a plan describes holds every element of the tensors once, whatever the instruction sets.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local isa = require "gen.isa.list"
local lookup_plans = require "tests.support.lookup_plans"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local plan = require "gen.families.lookup.plan"
local product = require "gen.families.lookup.product"

local sets, plan_of, for_random_models = lookup_plans.sets, lookup_plans.of, lookup_plans.for_random_models
local test = {}

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
        local bytes, row_bytes = dtype.size(p.tables, pitch), dtype.size(p.tables, m.d_out)
        if row_bytes < 64 then
            check.equal(bytes, row_bytes)
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

function test.a_projection_multiplied_out_is_in_the_blob_that_asks_for_it()
    local m = model.load "gen/models/roberta_base.lua"
    local function built(wanted, multiply_out)
        local own = { avx2 = wanted and { ["project.dense"] = wanted } }
        return plan.build(m, isa.select "avx2", own, nil, "i8", multiply_out and { multiply_out = true } or nil)
    end
    local plain, both, chosen = built(nil), built(nil, true), built(1, true)
    check.equal({ plain.multiplied, both.multiplied.bytes }, { nil, 170 * 9 * 768 })
    check.equal({ #both.sections - #plain.sections, both.digest == plain.digest }, { 2, false })
    check.equal({ chosen.digest, chosen.sections }, { both.digest, both.sections })
    local function kinds(p) return { p.variants[1].stages[1].shape.kind, p.variants[1].stages[2].shape.kind } end
    check.equal({ kinds(plain), kinds(both) }, { { "bh4", "bh4" }, { "bh4", "bh4" } })
    check.equal(kinds(chosen), { "dense", "bh4" })
    check.fails_with("--schedule: project.dense = 1: avx2: must be one of 0", built, 1)
    m.same_codes = true
    check.equal({ kinds(built(nil)), kinds(built(nil, true)) }, { { "bh4", "bh4" }, { "dense", "dense" } })
    check.equal(built(nil, true).digest, both.digest)
    check.fails_with("--schedule: project.dense = 0: avx2: must be one of 1", built, 0, true)
end

function test.a_matrix_engine_takes_projections_multiplied_out_by_default()
    local function taken(d, projection, name, wanted)
        local given = { name = "m", d = d, h = 8, tau = 8, projection = { kind = "bh4", block = 16 }, score = "gelu" }
        local m, own = model.validate(given, "", "m"), { [name] = { ["project.dense"] = wanted } }
        local p = plan.build(m, isa.select(name), own, "i8", projection, { multiply_out = true })
        local many = p.variants[1].stages[1]
        return many.shape.kind .. (many.projection.tiled and " by tiles" or "")
    end
    check.equal({ taken(512, "i8", "amx_int8"), taken(2048, "i7", "amx_bf16") }, { "dense by tiles", "dense by tiles" })
    check.equal({ taken(96, "bf16", "amx_bf16"), taken(96, "bf16", "amx_int8") }, { "dense by tiles", "bh4" })
    check.equal({ taken(64, "i16", "amx_int8"), taken(64, "i16", "amx_int8", 1) }, { "bh4", "dense by tiles" })
    check.equal({ taken(512, "i8", "avx512"), taken(512, "i16", "avx512") }, { "bh4", "bh4" })
    check.equal({ taken(500, "i8", "amx_int8"), taken(4096, "i8", "amx_int8") }, { "bh4", "bh4" })
end

function test.lookup_ffns_of_blocks_have_their_projections_multiplied_out()
    local m = model.load "gen/models/lookup_skipless.lua"
    local function built(name, wanted, multiply_out)
        return model_plan.build(m, isa.select(name), {
            projection = "i8",
            ["multiply-out"] = multiply_out,
            schedule = { [name] = { ["project.dense"] = wanted } },
        })
    end
    local function forms(p)
        local list = {}
        for _, part in ipairs(p.segments[1].plan.parts) do
            for _, stage in ipairs(part.plan.variants[1].stages) do
                list[#list + 1] = stage.shape.kind .. (stage.projection.tiled and " by tiles" or "")
            end
        end
        return table.concat(list, ", ")
    end
    local plain, both = built("avx2", nil), built("avx2", nil, true)
    check.equal({ forms(both), forms(built("avx2", 1, true)) }, { "bh4, bh4, bh4, bh4", "dense, bh4, dense, bh4" })
    check.equal(forms(built("amx_int8", nil, true)), "dense by tiles, bh4, dense by tiles, bh4")
    check.equal({ both.options["multiply-out"], plain.options["multiply-out"] }, { true, nil })
    -- the words of 4 layers, each 64 tables of 7 bits, and their scales, once for rows of both widths
    check.equal(both.packed_bytes - plain.packed_bytes, 4 * 64 * 7 * (256 + 4))
    check.fails_with("--schedule: project.dense = 1: avx2: must be one of 0", built, "avx2", 1)
    m.ffn.same_codes = true
    check.equal(forms(built("avx2", nil, true)), "dense, dense, dense, dense")
    check.equal(built("avx2", nil, true).digest, both.digest)
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

return test
