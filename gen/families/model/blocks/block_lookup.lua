-- Plans the lookup FFNs of a transformer's blocks: LookupFFN kernels whose weights are those of a layer, and where
-- these lie in the blob.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local ffn_parts = require "gen.schema.ffn_parts"
local layout = require "gen.families.model.blocks.layout"
local names = require "gen.schema.names"
local plan = require "gen.families.lookup.plan"
local schedule = require "gen.families.lookup.schedule"
local lookup_sections = require "gen.families.lookup.sections"
local validated = require "gen.schema.validated"

local block_lookup = {}

-- The weights that make codes: those of all layers lie in one section.
local shared = {
    projection_scales = true,
    projection = true,
    projection_bias = true,
    dense_projection_scales = true,
    dense_projection = true,
}

-- The choices of a schedule that decide how codes and scores are made, and where they wait.
local of_codes = {
    "project.dense",
    "tile.vectors",
    "product.outputs",
    "project.tiles",
    "butterfly.radix",
    "chunk.tokens",
    "few.threshold",
    "few.tokens",
}

-- The layers of model `m`, of blocks of `shape`, by the width of their tables' rows: { word, first, count, d_out }:
-- those of the last block make no block's input.
local function ranges_of(m, shape)
    if not shape.delivered or m.layers == 1 then
        return { { word = "lookup", first = 0, count = m.layers, d_out = shape.row } }
    end
    return {
        { word = "lookup", first = 0, count = m.layers - 1, d_out = shape.made },
        { word = "last", first = m.layers - 1, count = 1, d_out = shape.row },
    }
end

-- The FFN as a LookupFFN of its own.
local function model_of(m, range)
    local own = { name = m.name .. "_" .. range.word, d = m.d, d_out = range.d_out }
    local ffn = ffn_parts.add_lookup(own, m.ffn)
    return validated.note_part(ffn, m, function(own) return { "ffn", table.unpack(own) } end)
end

-- Choices for every instruction set: codes of a block's chunk of tokens wait in scratch together, or in training of all
-- tokens of a step, and by which matrix they are made is a choice of the block's; a second part has the choices of
-- `first`, whose codes it reads.
local function choices_of(ffn, isas, block_choices, types, training, first)
    local wanted = {}
    for i, isa in ipairs(isas) do
        local own = {}
        if first then
            for _, key in ipairs(of_codes) do
                own[key] = first.variants[i].schedule[key]
            end
        else
            local shape, key = plan.shape(ffn, types.tables, types.projection, types.multiplied), "chunk.tokens"
            own["project.dense"] = block_choices[i]["project.dense"]
            for _, choice in ipairs(training and {} or schedule.legal(shape, isa, schedule.make(shape, isa, own))) do
                if choice.key == key then
                    own[key] = math.min(choice.chosen, schedule.nearest(choice.values, block_choices[i][key]))
                end
            end
        end
        wanted[isa.name] = own
    end
    return wanted
end

-- The parts of the FFNs of the blocks of plan `of`: { word, first, count, plan, sections }, of layers first … first +
-- count - 1. The weights that a layer's kernels call `field` are those of a section: { field, name, first, layers,
-- stride, step, of, own }, of layers `first` on, `stride` elements apart, `step` of what kernels read; own: not one of
-- another part; of: the section of one layer. choices: of the blocks' schedule, for each of `isas`. options: unpadded,
-- rows of tables lie close together; training, the kernels are also those of training.
function block_lookup.parts(of, isas, choices, options)
    local parts, m, types, shape = {}, of.model, of.lookup_types, of.shape
    for i, range in ipairs(ranges_of(m, shape)) do
        local ffn, first = model_of(m, range), parts[1]
        local part_names = names.part(of.names, range.word)
        if first then part_names.weights = first.plan.names.weights end
        local wanted = choices_of(ffn, isas, choices, types, options.training, first and first.plan)
        local p = plan.build(ffn, isas, wanted, types.tables.name, types.projection.name, {
            names = part_names,
            x_step = layout.pitch(shape.d),
            y_step = layout.pitch(math.max(shape.made, shape.row)),
            codes_of = first and first.plan,
            one_by_one = of.one_by_one,
            unpadded = options.unpadded,
            multiply_out = types.multiplied,
        })
        local part = { word = range.word, first = range.first, count = range.count, plan = p, sections = {} }
        for _, section in ipairs(p.sections) do
            local all = shared[section.name]
            part.sections[#part.sections + 1] = {
                field = section.name,
                of = section,
                stride = dtype.held(section.dtype, blob.round_up(section.bytes, blob.align)),
                step = blob.round_up(section.bytes, blob.align) * section.count // section.bytes,
                name = (all and parts[1] and parts[1].word or range.word) .. "_" .. section.name,
                own = not (all and parts[1]),
                first = all and 0 or range.first,
                layers = all and m.layers or range.count,
            }
        end
        parts[i] = part
    end
    return parts
end

-- Floats of scratch that calls of the parts need on instruction set number `number`: { alone = for one token, many }.
function block_lookup.scratch_floats(parts, number)
    local floats = { alone = 0, many = 0 }
    for _, part in ipairs(parts) do
        local v = part.plan.variants[number]
        floats.alone = math.max(floats.alone, v.scratch_bytes_one // 4)
        floats.many = math.max(floats.many, v.scratch_bytes // 4)
    end
    return floats
end

-- The tensors of the FFN of a layer stand after this.
function block_lookup.prefix(m, layer)
    local family = checkpoint.family(m)
    return family.layer:format(layer) .. family.lookup
end

-- Adds the sections of `parts`, and what the packer fills them with, to the collector `c` (sections.lua); layer 0 is
-- number `first` in the checkpoint.
function block_lookup.add_sections(m, parts, first, c)
    for _, part in ipairs(parts) do
        for _, section in ipairs(part.sections) do
            if section.own then
                local of = section.of
                section.placed = c.add(
                    section.name,
                    of.dtype,
                    section.layers * section.stride,
                    of.doc
                        .. (
                            section.layers > 1
                                and ", of " .. section.layers .. " layers, " .. section.stride .. " apart"
                            or ""
                        )
                )
                section.placed.slow = of.slow
                -- elements as kernels find them: of a projection some lie in a word
                section.placed.storage = of.storage
                section.placed.count = section.layers * section.step
            end
        end
        local scales
        for _, section in ipairs(part.sections) do
            local of = section.of
            if section.own and of.from then
                for index = 0, section.layers - 1 do
                    c.piece(section.placed, nil, {
                        elements = section.stride,
                        name = section.name .. " of layer " .. first + section.first + index,
                        from = block_lookup.prefix(m, first + section.first + index) .. of.from,
                        shape = of.shape,
                        slices = of.slices,
                        steps = of.steps,
                        boxes = of.boxes,
                        blocks = of.blocks,
                        row = of.row,
                        raised = of.raised,
                        times = of.times,
                        scales = of.scales and scales.placed.at + dtype.size(scales.of.dtype, index * scales.stride),
                    }, index)
                end
            end
            scales = section
        end
    end
end

-- What `pack --calibrate` tells the packer of each lookup FFN of `blocks`, plans of transformers, beside its inputs: of
-- those whose projection is in i8 or i7.
function block_lookup.calibrations(blocks)
    local list = {}
    for _, p in ipairs(blocks) do
        local part = p.lookup_types and p.lookup_types.projection.word.offset and p.parts[1]
        local projections, biases = {}, {}
        for _, section in ipairs(part and part.sections or {}) do
            local own = section.field == "projection" and projections or section.field == "projection_bias" and biases
            for _, piece in ipairs(own and p.pieces or {}) do
                if piece.name:sub(1, #section.name + 10) == section.name .. " of layer " then own[#own + 1] = piece end
            end
        end
        for i, projection in ipairs(projections) do
            local found = { projection = projection, projection_bias = biases[i] }
            list[#list + 1] = lookup_sections.calibration(part.plan, found)
            list[#list].layer = math.tointeger(projection.name:match "%d+$")
        end
    end
    return list
end

-- The tensors of a layer's FFN, with rows of that width, as `sample` writes them. A wide bias, and tables that make up
-- for scores that grow with z: values neither grow nor vanish from block to block.
function block_lookup.samples(m, layer, width)
    local ffn = model_of(m, { word = "lookup", d_out = width })
    local shape = plan.shape(ffn, dtype.get "f32", dtype.get "f32")
    local list = lookup_sections.tensors(ffn, shape)
    for _, tensor in ipairs(list) do
        if tensor.name == "bias" then tensor.deviation = 0.7 end
        if tensor.name == "tables" then
            tensor.deviation = tensor.deviation
                * (shape.score.along and 1 / ffn.tau or 1)
                * (ffn.scale == "1/h" and ffn.h or 1)
        end
        tensor.name = block_lookup.prefix(m, layer) .. tensor.name
    end
    return list
end

return block_lookup
