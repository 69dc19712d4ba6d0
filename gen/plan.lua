-- From a validated model to the plan: every size, offset and name of what is emitted, packed, verified and timed.
-- Pure data; nobody else computes any of it.
local bh4 = require "gen.bh4"
local cost = require "gen.cost"
local dense = require "gen.dense"
local dtype = require "gen.dtype"
local gather = require "gen.gather"
local host = require "host"
local isa_list = require "gen.isa"
local json = require "json"
local model_file = require "gen.model"
local names = require "gen.names"
local product = require "gen.product"
local schedule = require "gen.schedule"

local plan = {}

plan.format = 1      -- version of the blob
plan.align = 64      -- of blob, sections and scratch, in bytes
plan.header_bytes = 64
plan.magic = "LOOKUPC\0"

local function round_up(n, step) return (n + step - 1) // step * step end

local function shape_of(m, tables)
    local shape = { tables = tables, d = m.d, d_out = m.d_out, h = m.h, tau = m.tau, rows = 1 << m.tau, bits = m.h * m.tau, kind = m.projection.kind }
    if shape.kind == "bh4" then
        shape.block = m.projection.block
        shape.decay = m.projection.decay
        shape.padded = model_file.power_of_two_at_least(m.d)
        shape.repeats = (shape.bits + shape.padded - 1) // shape.padded
    else
        shape.block, shape.padded, shape.repeats = 0, m.d, 1
    end
    return shape
end

local function projection_plan(shape, radix, align)
    if shape.kind == "bh4" then return bh4.plan(shape, radix, align) end
    return dense.plan(shape)
end

-- Vectors added to the projection's tensor before packing; see gen/weights/lua_weights.c for the steps.
local function projection_steps(m, shape)
    local steps = {}
    if shape.kind == "dense" then
        if m.norm then
            steps[1] = { step = "scale_by", tensor = "LayerNorm.weight", at = 0, by_at = 0,
                dims = { { count = shape.bits, from = shape.d, by = 0 }, { count = shape.d, from = 1, by = 1 } } }
        end
        return steps
    end
    local b, N = shape.block, shape.padded
    local blocks = N // b
    steps[#steps + 1] = { step = "hadamard", size = b }
    steps[#steps + 1] = { step = "scale", factor = shape.decay, at = 3 * N * b,
        dims = { { count = shape.repeats, from = 4 * N * b }, { count = N * b, from = 1 } } }
    if m.norm then
        local function gain(first, count, width)
            if count == 0 or width == 0 then return end
            steps[#steps + 1] = { step = "scale_by", tensor = "LayerNorm.weight", at = first * b * b, by_at = first * b,
                dims = { { count = shape.repeats, from = 4 * N * b, by = 0 }, { count = count, from = b * b, by = b },
                    { count = b, from = b, by = 0 }, { count = width, from = 1, by = 1 } } }
        end
        gain(0, shape.d // b, b)
        gain(shape.d // b, 1, shape.d % b)
    end
    assert(blocks * b == N)
    return steps
end

-- The sections of the blob: what the packer writes, what <model>_bind finds.
--   name, type (a name of gen/dtype.lua), elements, at (byte offset), bytes, from = tensor, shape = its shape, slices, steps,
--   boxes; row, scales: width of the rows of a scaled type, and byte offset of the section that takes their scales; a
--   section without `from` is filled by another one
local function sections_of(m, shape, projection, tables)
    local list = {}
    local function add(section)
        section.dtype = dtype.get(section.type)
        section.type = section.dtype.name
        list[#list + 1] = section
    end
    local function whole(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end

    local tensor_shape = shape.kind == "bh4"
        and { shape.repeats, 4, shape.padded // shape.block, shape.block, shape.block } or { shape.bits, shape.d }
    add { name = "projection", elements = projection.weights, from = "hash.projection.weight", shape = tensor_shape,
        blocks = shape.kind == "bh4" and shape.block or nil, steps = projection_steps(m, shape), boxes = projection.boxes,
        doc = "packed projection weights" }
    add { name = "projection_bias", elements = shape.bits, from = "hash.projection.bias", shape = { shape.bits },
        steps = m.norm and { { step = "add_projection_of", tensor = "LayerNorm.bias", kind = shape.kind, d = shape.d, bits = shape.bits,
            block = shape.block, padded = shape.padded, repeats = shape.repeats, decay = shape.decay or 1.0 } } or {},
        boxes = whole(shape.bits), doc = "bias of z, LayerNorm's offset folded in" }
    if m.norm and shape.kind == "bh4" and shape.decay < 1 then
        add { name = "residual", elements = shape.d, from = "LayerNorm.weight", shape = { shape.d },
            steps = { { step = "scale", factor = 1 - shape.decay, at = 0, dims = { { count = shape.d, from = 1 } } } },
            boxes = whole(shape.d), doc = "(1 - decay) times LayerNorm's gain" }
    end
    if shape.tables.scaled then
        add { name = "table_scales", elements = shape.h * shape.rows, steps = {}, boxes = {},
            doc = "[" .. shape.h .. "][" .. shape.rows .. "] scales of the tables' rows" }
    end
    add { name = "tables", type = shape.tables.name, elements = tables.elements, row = shape.d_out, from = "tables", shape = { shape.h, shape.rows, shape.d_out }, slices = shape.h,
        steps = m.scale == "1/h" and { { step = "scale", factor = 1 / shape.h, at = 0, dims = { { count = shape.rows * shape.d_out, from = 1 } } } } or {},
        boxes = tables.boxes, doc = "[" .. shape.h .. "][" .. shape.rows .. "][" .. tables.pitch .. "] tables, rows of " .. shape.d_out }
    add { name = "bias", elements = shape.d_out, from = "bias", shape = { shape.d_out }, steps = {}, boxes = whole(shape.d_out), doc = "bias of y" }

    local at = plan.header_bytes
    for _, section in ipairs(list) do
        section.at, section.bytes = at, section.elements * section.dtype.bytes
        at = round_up(at + section.bytes, plan.align)
    end
    for i, section in ipairs(list) do
        if section.dtype.scaled then section.scales = list[i - 1].at end
    end
    return list, at
end

-- Every tensor a checkpoint must have, in the order in which `sample` writes them: { name, shape, mean, deviation,
-- zero_every }. Every eighth bias of z is exactly 0: with a zero input that is the tie where bit and sign disagree.
-- With these random values z and y stay near 1: a BH4 stage multiplies the variance by b N, a dense row by d.
local function tensors_of(m, shape)
    local list = {}
    local function add(name, tensor_shape, mean, deviation, zero_every)
        list[#list + 1] = { name = name, shape = tensor_shape, mean = mean, deviation = deviation, zero_every = zero_every }
    end
    if shape.kind == "bh4" then
        add("hash.projection.weight", { shape.repeats, 4, shape.padded // shape.block, shape.block, shape.block }, 0.0, (shape.block * shape.padded) ^ -0.5)
    else
        add("hash.projection.weight", { shape.bits, shape.d }, 0.0, shape.d ^ -0.5)
    end
    add("hash.projection.bias", { shape.bits }, 0.0, 0.1, 8)
    add("tables", { shape.h, shape.rows, shape.d_out }, 0.0, shape.h ^ -0.5)
    add("bias", { shape.d_out }, 0.0, 0.1)
    if m.norm then
        add("LayerNorm.weight", { shape.d }, 1.0, 0.1)
        add("LayerNorm.bias", { shape.d }, 0.0, 0.1)
    end
    return list
end

-- Places of buffers in scratch, and their end.
local function scratch_of(list)
    local places, at = {}, 0
    for _, buffer in ipairs(list) do
        places[buffer.name] = at
        at = round_up(at + buffer.bytes, plan.align)
    end
    return places, at
end

local function buffers_of(shape, projection, chunk, tokens)
    local list = { { name = "code", bytes = chunk * shape.h * 2 }, { name = "score", bytes = chunk * shape.h * 4 } }
    for _, name in ipairs { "x", "a", "b", "z" } do
        if projection.rows[name] then list[#list + 1] = { name = name, bytes = projection.rows[name] * tokens * 4 } end
    end
    return list
end

-- The kernels for few tokens of `isa`: a token is a tile of its own, outputs, features and tables are in the lanes.
local function few_of(m, shape, isa, choices)
    local projection = projection_plan(shape, choices["butterfly.radix"], isa.lanes)
    local few = {
        isa = isa, threshold = choices["few.threshold"], tile = 1, vectors = choices["few.vectors"], tokens = choices["few.tokens"],
        chunk = math.min(8, choices["few.threshold"]), group = shape.h, prefetch = choices["few.prefetch"], projection = projection,
        gather = gather.tiles(shape, shape.d_out, isa.lanes, choices["few.accumulators"]),
    }
    few.scratch, few.scratch_bytes = scratch_of(buffers_of(shape, projection, few.chunk, few.chunk))
    few.names = {
        load = names.variant(m.name, "normalise_f32", isa.name, "few"),
        projection = names.variant(m.name, shape.kind .. "_f32", isa.name, "few_v" .. few.vectors .. "_n" .. few.tokens),
        hash = names.variant(m.name, "sign_hash_" .. m.score .. "_f32", isa.name, "few"),
        gather = names.variant(m.name, "gather_" .. shape.tables.name, isa.name, "few"),
        project = names.variant(m.name, "project", isa.name, "few"),
        ffn = names.variant(m.name, "ffn", isa.name, "few"),
    }
    return few
end

-- The kernels of one instruction set, their buffers in scratch, names and loops: those for many tokens, tokens in the
-- lanes, and in `few` those for few tokens, if the schedule has any.
local function variant_of(m, shape, isa, choices)
    local tile = choices["tile.vectors"] * isa.lanes
    local projection = projection_plan(shape, choices["butterfly.radix"], 1)
    local v = {
        isa = isa, schedule = choices, schedule_text = schedule.text(choices), projection = projection,
        vectors = choices["tile.vectors"], tile = tile, tiles = choices["project.tiles"], chunk = choices["chunk.tokens"],
        outputs = choices["product.outputs"], group = choices["gather.group"], prefetch = choices["gather.prefetch"],
        gather = gather.tiles(shape, choices["gather.columns"], isa.lanes, choices["gather.vectors"]),
    }
    v.scratch, v.scratch_bytes = scratch_of(buffers_of(shape, projection, v.chunk, tile * v.tiles))
    local t = "t" .. tile
    v.names = {
        load = names.variant(m.name, "load_f32", isa.name, t),
        projection = names.variant(m.name, shape.kind .. "_f32", isa.name, t .. "_o" .. v.outputs .. "_m" .. v.tiles),
        hash = names.variant(m.name, "sign_hash_" .. m.score .. "_f32", isa.name, t),
        gather = names.variant(m.name, "gather_" .. shape.tables.name, isa.name, t .. "_g" .. v.group .. "_c" .. choices["gather.columns"]),
        project = names.variant(m.name, "project", isa.name, "many"),
        many = names.variant(m.name, "ffn", isa.name, "many"),
        ffn = names.variant(m.name, "ffn", isa.name),
    }
    if choices["few.threshold"] > 0 then
        v.few = few_of(m, shape, isa, choices)
        v.scratch_bytes = math.max(v.scratch_bytes, v.few.scratch_bytes)
    end
    return v
end

-- What the blob depends on: a budget rules out, it changes nothing.
local function packed_model(m)
    local copy = {}
    for key, value in pairs(m) do copy[key] = value end
    copy.budget = nil
    return copy
end

-- Builds the plan of model `m` (validated) for the instruction sets `isas`, with the choices in `wanted` (optional) and
-- tables of the type named `tables` (default f32).
function plan.build(m, isas, wanted, tables)
    local shape = shape_of(m, dtype.get(tables))
    local sets = {}
    for i, set in ipairs(isas) do sets[i] = isa_list.with_tables(set, shape.tables) end
    isas = sets
    if m.neighbours > 1 then
        model_file.refuse(m, { "neighbours" }, m.neighbours, "emitted kernels take one row of a table so far")
    end
    local choices = {}
    for i, isa in ipairs(isas) do choices[i] = schedule.make(shape, isa, wanted or {}) end
    local layout = gather.layout(shape)
    local projection = projection_plan(shape, 2, 1)
    local sections, packed_bytes = sections_of(m, shape, projection, layout)

    local p = {
        model = m, shape = shape, names = names.public(m.name), sections = sections, tensors = tensors_of(m, shape),
        packed_bytes = packed_bytes, table_bytes = shape.h * shape.rows * shape.d_out * shape.tables.bytes,
        projection_bytes = projection.weights * 4, variants = {}, scratch_bytes = 0,
        wanted = wanted or {}, tables = shape.tables, pitch = layout.pitch, residual = shape.kind == "bh4" and shape.decay < 1,
        weights_struct_bytes = 8 * #sections + 8,
        dense_hidden = cost.dense_hidden(shape),
    }
    local described = {}
    for i, section in ipairs(sections) do described[i] = { section.name, section.type, section.elements, section.at } end
    p.digest = host.sha256(json.encode({ format = plan.format, model = packed_model(m), sections = described, panel = product.panel, pitch = layout.pitch }, "compact"))
    for i, isa in ipairs(isas) do
        p.variants[i] = variant_of(m, shape, isa, choices[i])
        p.scratch_bytes = math.max(p.scratch_bytes, p.variants[i].scratch_bytes)
    end
    local folded = p.variants[#p.variants].projection.flops
    p.mflop = { lookup = cost.lookup(shape), projection = folded / 1e6, folded = cost.folded(shape, folded), dense = cost.dense(shape) }
    return p
end

-- What variant `v` does for a call of `tokens` tokens, as gen/cost.lua wants it; `few`: with its kernels for few tokens.
function plan.work(p, v, few, tokens)
    return {
        projection_flops = p.mflop.projection * 1e6, projection_bytes = p.projection_bytes, pass = few and v.few.tokens or v.tile * v.tiles,
        row_bytes = p.table_bytes // p.shape.rows, table_bytes = p.table_bytes, tokens = tokens, chunk = v.chunk,
    }
end

-- What the packer interprets: sections, tensors and header of the blob, with the paths in `files`
-- { weights, output, prefix, blocks_in_out }.
function plan.packing(p, files)
    return {
        weights = files.weights, output = files.output, prefix = files.prefix, blocks_in_out = files.blocks_in_out,
        tensors = p.tensors, sections = p.sections, bytes = p.packed_bytes, header_bytes = plan.header_bytes,
        magic = plan.magic, format = plan.format, digest = p.digest,
    }
end

-- The plan as the stable JSON object of `plan --json`.
function plan.summary(p)
    local variants = {}
    for i, v in ipairs(p.variants) do
        variants[i] = { isa = v.isa.name, schedule = v.schedule_text, tile = v.tile, chunk = v.chunk, scratch_bytes = v.scratch_bytes }
    end
    local sections = {}
    for i, s in ipairs(p.sections) do sections[i] = { name = s.name, type = s.type, elements = s.elements, offset = s.at } end
    local s = p.shape
    return {
        model = p.model, digest = p.digest, d = s.d, d_out = s.d_out, h = s.h, tau = s.tau, block = s.block, padded = s.padded, repeats = s.repeats,
        mflop_per_token = p.mflop.lookup, mflop_per_token_folded = p.mflop.folded, dense_mflop_per_token = p.mflop.dense,
        tables = s.tables.name, table_bytes = p.table_bytes, packed_bytes = p.packed_bytes, scratch_bytes = p.scratch_bytes,
        sections = sections, variants = variants,
    }
end

return plan
