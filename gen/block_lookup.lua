-- Plans the lookup FFNs of a transformer's blocks: LookupFFN kernels whose weights are those of a layer, and where these lie in the blob.
local blob = require "gen.blob"
local checkpoint = require "gen.checkpoint"
local dtype = require "gen.dtype"
local names = require "gen.names"
local plan = require "gen.plan"
local schedule = require "gen.schedule"

local block_lookup = {}

-- What layers share that the parts of a block's FFN have in common; the others are each part's own.
local shared = { projection = true, projection_bias = true }

-- The choices of a schedule that decide how codes and scores are made, and where they wait.
local of_codes = { "tile.vectors", "product.outputs", "project.tiles", "butterfly.radix", "chunk.tokens", "few.threshold", "few.vectors", "few.tokens" }

-- The layers of model `m` by the width of their tables' rows: { word, first, count, d_out }. With `delivered` the tables of a block hold q, k and v
-- of the next one, those of the last block do not.
local function ranges_of(m, delivered)
    if delivered == m.d or m.layers == 1 then return { { word = "lookup", first = 0, count = m.layers, d_out = m.d } } end
    return { { word = "lookup", first = 0, count = m.layers - 1, d_out = delivered }, { word = "last", first = m.layers - 1, count = 1, d_out = m.d } }
end

-- The FFN as a LookupFFN of its own.
local function model_of(m, range)
    local ffn = { name = m.name .. "_" .. range.word, d = m.d, d_out = range.d_out }
    for key, value in pairs(m.ffn) do
        if key ~= "kind" then ffn[key] = value end
    end
    return ffn
end

-- Choices for every instruction set: a call's codes wait in scratch together, up to `chunk` tokens; a second part has the choices of `first`, whose
-- codes it reads.
local function choices_of(ffn, isas, type, chunk, first)
    local wanted = {}
    for i, isa in ipairs(isas) do
        local own = {}
        if first then
            for _, key in ipairs(of_codes) do own[key] = first.variants[i].schedule[key] end
        else
            local shape = plan.shape(ffn, type, dtype.get "f32")
            for _, choice in ipairs(schedule.legal(shape, isa, schedule.make(shape, isa, {}))) do
                if choice.key == "chunk.tokens" then own[choice.key] = math.min(choice.chosen, schedule.nearest(choice.values, chunk)) end
            end
        end
        wanted[isa.name] = own
    end
    return wanted
end

-- The parts of the FFNs of model `m`: { word, first, count, plan, sections = { { field, name, stride } } }: layer first + i of `count` finds the weights
-- that the kernels call `field` at `name` + i * stride; the name stands for `layers` layers.
--   delivered    width of the rows that deliver a block's input
--   x_step       floats from token to token of the kernels' input, y_step of their output
--   chunk        tokens of a call
function block_lookup.parts(m, isas, type, of, delivered, x_step, y_step, chunk)
    local parts = {}
    for i, range in ipairs(ranges_of(m, delivered)) do
        local ffn, first = model_of(m, range), parts[1]
        local part_names = names.part(of, range.word)
        if first then part_names.weights = first.plan.names.weights end
        local p = plan.build(ffn, isas, choices_of(ffn, isas, type, chunk, first and first.plan), type.name, "f32",
            { names = part_names, x_step = x_step, y_step = y_step, codes_of = first and first.plan })
        local part = { word = range.word, first = range.first, count = range.count, plan = p, sections = {} }
        for _, section in ipairs(p.sections) do
            local all = shared[section.name]
            part.sections[#part.sections + 1] = {
                field = section.name, name = (all and "lookup" or range.word) .. "_" .. section.name, of = section, layers = all and m.layers or range.count,
                first = all and 0 or range.first, own = i == 1 or not all, stride = blob.round_up(section.bytes, blob.align) // section.dtype.bytes,
                stride_units = blob.round_up(section.bytes, blob.align) // section.dtype.bytes * section.count // section.elements,
            }
        end
        parts[i] = part
    end
    return parts
end

-- The tensors of the FFN of a layer stand after this.
function block_lookup.prefix(m, layer)
    local family = checkpoint.family(m)
    return family.layer:format(layer) .. family.lookup
end

-- The unfused FFN of a layer as `sample` writes it.
function block_lookup.samples(m, layer)
    local list = blob.tensors(model_of(m, { word = "lookup", d_out = m.d }), plan.shape(model_of(m, { word = "lookup", d_out = m.d }), dtype.get "f32", dtype.get "f32"))
    for _, tensor in ipairs(list) do tensor.name = block_lookup.prefix(m, layer) .. tensor.name end
    return list
end

return block_lookup
