-- Plans the BH4 projection (LookupFFN, "Efficient projection: BH4"): for every repeat four stages of block product and
-- Hadamard transform.
--
-- Exact folding, all of it done when weights are packed: the Hadamard inside a block (H_b W), decay (fourth W), the
-- gain of LayerNorm (first W) and its offset (bias). What remains at run time is H_{N/b} over whole blocks. Zero blocks
-- of the padded input vanish from stage 1, outputs beyond h*tau from stage 4: there an unused half of the transform
-- turns its butterflies into sums, and the sums into one longer accumulation (`folds`).
local butterfly = require "gen.families.lookup.butterfly"
local figures = require "gen.plan.figures"
local lookup_model = require "gen.families.lookup.model"
local product = require "gen.families.lookup.product"

local bh4 = {}

-- What a stage does, in words.
local function text_of(stage)
    local list = {}
    for i, p in ipairs(stage.products) do
        list[i] = string.format(
            "%s of %s and %s",
            p.count > 1 and p.count .. " blocks" or "a block",
            p.folds > 1 and p.folds .. "*" .. p.rows .. " inputs" or figures.plural(p.rows, "input"),
            figures.plural(p.outputs, "output")
        )
    end
    return table.concat(list, " and ") .. (#stage.passes > 0 and ", then a Hadamard transform over the blocks" or "")
end

-- The four stages of a repeat of which the first `need` outputs are read. It starts at element `from` of the tensor and
-- at word `at` of the packed weights.
local function stages(shape, radix, align, need, from, at, repeats)
    local b, N, blocks = shape.block, shape.padded, shape.padded // shape.block
    local list, words = {}, 0
    -- What is rounded before its product need not be kept: outputs take its place.
    local second = shape.projection.word.integers and "a" or "b"
    local buffers = { { "x", "a" }, { "a", second }, { second, "a" }, { "a", "z" } }
    for s = 1, 4 do
        local stage = { number = s, source = buffers[s][1], target = buffers[s][2], products = {} }
        local source = { at = from + (s - 1) * N * b, block = b * b, fold = 0, row = 1, output = b }
        local function add(first_block, spec)
            local shifted = {
                at = source.at + first_block * source.block,
                block = source.block,
                fold = source.fold,
                row = source.row,
                output = source.output,
            }
            local p = product.plan(spec, at + words, shape.projection.word.rows, shifted, repeats)
            p.first_block, p.offset, p.scale_at = first_block, words, (s - 1) * N + first_block * b
            words = words + p.words
            stage.products[#stage.products + 1] = p
        end
        local out_blocks, live, read = blocks, N, N
        if s == 1 then
            local full, rest = shape.d // b, shape.d % b
            if full > 0 then add(0, { count = full, rows = b, outputs = b, folds = 1, x_stride = b }) end
            if rest > 0 then add(full, { count = 1, rows = rest, outputs = b, folds = 1, x_stride = b }) end
            live = (full + (rest > 0 and 1 or 0)) * b
        elseif s == 4 and need < N then
            out_blocks = lookup_model.power_of_two_at_least((need + b - 1) // b)
            read = need
            source.fold = out_blocks * b * b
            add(0, {
                count = out_blocks,
                rows = b,
                outputs = out_blocks == 1 and need or b,
                folds = blocks // out_blocks,
                fold_gap = out_blocks * b,
                x_stride = b,
            })
        else
            add(0, { count = blocks, rows = b, outputs = b, folds = 1, x_stride = b })
        end
        stage.outputs = out_blocks == 1 and math.min(read, b) or out_blocks * b
        stage.passes =
            butterfly.passes(out_blocks, b, radix, live, out_blocks == 1 and b or (read + align - 1) // align * align)
        stage.text = text_of(stage)
        list[s] = stage
    end
    return list, words
end

-- A product's offset is that of its words in those of a repeat; its scale_at is where the scales of its outputs begin
-- among those of a repeat, 4 N.
-- shape: d, h, tau, bits, block, padded, repeats, projection; radix: the widest butterfly held in registers; align:
-- butterflies work on so many rows at a time (the lanes, where they hold rows). Returns { groups = { {count, first,
-- words (per repeat), stages, need} }, words, panel_floats (of the largest panel), max_lines (of words of a block),
-- max_folds, boxes, rows = {x, a, b (nil if not used), z}, flops }.
function bh4.plan(shape, radix, align)
    local b, N = shape.block, shape.padded
    local plan = { groups = {}, words = 0, panel_floats = 0, max_lines = 0, max_folds = 1, boxes = {}, flops = 0 }
    local tensor_repeat = 4 * N * b
    local function add(first, count, need)
        -- Planned twice: the distance of two repeats is known once the words of one are counted.
        local _, words = stages(shape, radix, align, need, 0, 0)
        local list = stages(
            shape,
            radix,
            align,
            need,
            first * tensor_repeat,
            plan.words,
            { count = count, words = words, source = tensor_repeat }
        )
        plan.groups[#plan.groups + 1] =
            { first = first, count = count, words = words, at = plan.words, stages = list, need = need }
        plan.words = plan.words + count * words
        for _, stage in ipairs(list) do
            for _, p in ipairs(stage.products) do
                plan.flops = plan.flops + count * p.flops
                plan.panel_floats = math.max(plan.panel_floats, p.panel_floats)
                plan.max_lines = math.max(plan.max_lines, p.depth)
                plan.max_folds = math.max(plan.max_folds, p.folds)
                for _, box in ipairs(p.boxes) do
                    plan.boxes[#plan.boxes + 1] = box
                end
            end
            for _, pass in ipairs(stage.passes) do
                plan.flops = plan.flops + count * pass.additions
            end
        end
    end
    local whole, rest = shape.bits // N, shape.bits % N
    if whole > 0 then add(0, whole, N) end
    if rest > 0 then add(whole, 1, rest) end
    local last = plan.groups[#plan.groups]
    local z = (shape.repeats - 1) * N + last.stages[4].outputs
    plan.rows = {
        x = shape.d,
        a = N,
        b = not shape.projection.word.integers and N or nil,
        z = (z + align - 1) // align * align,
    }
    return plan
end

return bh4
