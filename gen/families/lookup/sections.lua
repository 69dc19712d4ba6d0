-- The sections of a LookupFFN's blob, the checkpoint's tensors they come from, and the exact folding on the way.
local blob = require "gen.plan.blob"
local copied = require "gen.schema.copied"
local dtype = require "gen.plan.dtype"
local host = require "host"
local json = require "json"

local sections = {}

-- The folding steps of the projection's tensor; see gen/weights/sections.c for what they do.
function sections.projection_steps(m, shape)
    local steps = {}
    if shape.kind == "dense" then
        local of = shape.of
        if of then
            steps[1] = {
                step = "multiply_out",
                d = of.d,
                bits = of.bits,
                block = of.block,
                padded = of.padded,
                repeats = of.repeats,
                decay = of.decay,
            }
        end
        if m.norm then
            steps[#steps + 1] = {
                step = "scale_by",
                tensor = "LayerNorm.weight",
                at = 0,
                by_at = 0,
                dims = { { count = shape.bits, from = shape.d, by = 0 }, { count = shape.d, from = 1, by = 1 } },
            }
        end
        return steps
    end
    local b, N = shape.block, shape.padded
    steps[#steps + 1] = { step = "hadamard", size = b }
    steps[#steps + 1] = {
        step = "scale",
        factor = shape.decay,
        at = 3 * N * b,
        dims = { { count = shape.repeats, from = 4 * N * b }, { count = N * b, from = 1 } },
    }
    if m.norm then
        local function gain(first, count, width)
            if count == 0 or width == 0 then return end
            steps[#steps + 1] = {
                step = "scale_by",
                tensor = "LayerNorm.weight",
                at = first * b * b,
                by_at = first * b,
                dims = {
                    { count = shape.repeats, from = 4 * N * b, by = 0 },
                    { count = count, from = b * b, by = b },
                    { count = b, from = b, by = 0 },
                    { count = width, from = 1, by = 1 },
                },
            }
        end
        gain(0, shape.d // b, b)
        gain(shape.d // b, 1, shape.d % b)
    end
    return steps
end

-- Those of the other tensors: of the bias of z, of LayerNorm's gain for the residual, and of one table.
function sections.bias_steps(m, shape)
    return m.norm
            and {
                {
                    step = "add_projection_of",
                    tensor = "LayerNorm.bias",
                    kind = shape.kind,
                    d = shape.d,
                    bits = shape.bits,
                    block = shape.block,
                    padded = shape.padded,
                    repeats = shape.repeats,
                    decay = shape.decay or 1.0,
                },
            }
        or {}
end
function sections.residual_steps(shape)
    return { { step = "scale", factor = 1 - shape.decay, at = 0, dims = { { count = shape.d, from = 1 } } } }
end
-- Of the latter so many rows.
function sections.table_steps(m, shape, rows)
    return m.scale == "1/h"
            and {
                {
                    step = "scale",
                    factor = 1 / shape.h,
                    at = 0,
                    dims = { { count = rows * shape.d_out, from = 1 } },
                },
            }
        or {}
end

-- The elements of a row of the projection's weights, which have one scale: inputs of an output, in BH4 of one block.
function sections.projection_row(shape) return shape.kind == "bh4" and shape.block or shape.d end

-- The shape of the projection's tensor in a checkpoint.
function sections.projection_shape(shape)
    if shape.kind == "dense" then return { shape.bits, shape.d } end
    return { shape.repeats, 4, shape.padded // shape.block, shape.block, shape.block }
end

-- One piece, as it is in the tensor.
local function whole(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end

-- The weights of a projection of `shape`, packed as `projection` says, in sections whose names begin with `name`, and
-- with what the section of the words has beside.
local function add_words(add, m, shape, projection, name, doc)
    local word, bh4 = shape.projection.word, shape.of or shape
    if shape.projection.scaled then
        local rows, outputs = shape.bits, "[" .. shape.bits .. "]"
        if shape.kind == "bh4" then
            rows = 4 * shape.repeats * shape.padded
            outputs = "[" .. shape.repeats .. "][4][" .. shape.padded .. "]"
        end
        add { name = name .. "_scales", elements = rows, doc = outputs .. " scales of the outputs' weights" }
    end
    add {
        name = name,
        row = sections.projection_row(shape),
        dtype = shape.projection,
        elements = projection.words * word.rows,
        storage = word.storage,
        count = projection.words,
        from = "hash.projection.weight",
        shape = sections.projection_shape(bh4),
        blocks = bh4.kind == "bh4" and bh4.block or nil,
        steps = sections.projection_steps(m, shape),
        boxes = projection.boxes,
        raised = word.offset,
        doc = doc
            .. (word.rows > 1 and ", " .. word.rows .. " in " .. shape.projection.name .. " to a word" or "")
            .. (word.offset and ", each " .. word.offset .. " larger" or ""),
    }
end

local function add_projection(add, m, shape, projection, multiplied)
    add_words(add, m, shape, projection, "projection", "packed projection weights")
    add {
        name = "projection_bias",
        elements = shape.bits,
        from = "hash.projection.bias",
        shape = { shape.bits },
        steps = sections.bias_steps(m, shape),
        boxes = whole(shape.bits),
        doc = "bias of z" .. (m.norm and ", LayerNorm's offset folded in" or ""),
    }
    if m.norm and shape.kind == "bh4" and shape.decay < 1 then
        add {
            name = "residual",
            elements = shape.d,
            from = "LayerNorm.weight",
            shape = { shape.d },
            steps = sections.residual_steps(shape),
            boxes = whole(shape.d),
            doc = "(1 - decay) times LayerNorm's gain",
        }
    end
    if multiplied then
        add_words(add, m, shape.multiplied, multiplied, "dense_projection", "the same weights multiplied out")
    end
end

local function add_tables(add, m, shape, tables)
    if shape.tables.scaled then
        add {
            name = "table_scales",
            elements = shape.h * shape.rows,
            doc = "[" .. shape.h .. "][" .. shape.rows .. "] scales of the tables' rows",
        }
    end
    add {
        name = "tables",
        dtype = shape.tables,
        elements = tables.elements,
        row = shape.d_out,
        from = "tables",
        shape = { shape.h, shape.rows, shape.d_out },
        slices = shape.h,
        -- Rows are rounded as a checkpoint in their type has them, and then scaled.
        steps = not shape.tables.scaled and sections.table_steps(m, shape, shape.rows) or {},
        times = shape.tables.scaled and m.scale == "1/h" and 1 / shape.h or nil,
        boxes = tables.boxes,
        doc = "[" .. shape.h .. "][" .. shape.rows .. "][" .. tables.pitch .. "] tables, rows of " .. shape.d_out,
        slow = true,
    }
    add {
        name = "bias",
        elements = shape.d_out,
        from = "bias",
        shape = { shape.d_out },
        boxes = whole(shape.d_out),
        doc = "bias of y",
    }
end

-- The sections of the blob: what the packer writes, what <model>_bind finds.
--   name, dtype (a row of gen/plan/dtype.lua), type = its name, elements, at (byte offset), bytes, from = tensor, shape
--   = its shape,
--   slices, steps, boxes; rows, columns, group, stride, offset: the rows of a matrix that lies in a larger tensor,
--   `group` of every `stride`
--   from row `offset` on; optional: zeros if the tensor is absent; angles = "cosines" or "sines", frequencies, factor,
--   step: no tensor but rotary angles;
--   storage, count: how kernels read it, as so many of that C type; row, scales: width of the rows of a
--   scaled type, and byte offset of the section that takes their scales; a section without `from` is filled by another
--   one; raised: added to the elements of a scaled type; times: a factor of its scales; slow: a token reads few of its
--   rows, so that firmware may have it in slower memory
-- multiplied: the projection that BH4 is multiplied out to, nil: it is not
function sections.of(m, shape, projection, tables, multiplied)
    local list = {}
    local function add(section)
        section.dtype = section.dtype or dtype.get "f32"
        section.type = section.dtype.name
        section.storage = section.storage or section.dtype.storage
        section.count = section.count or dtype.units(section.dtype, section.elements)
        section.steps, section.boxes = section.steps or {}, section.boxes or {}
        list[#list + 1] = section
    end
    add_projection(add, m, shape, projection, multiplied)
    add_tables(add, m, shape, tables)
    local bytes = blob.place(list)
    for i, section in ipairs(list) do
        if section.dtype.scaled then section.scales = list[i - 1].at end
    end
    return list, bytes
end

-- What the packer is told to calibrate a projection of plan `p`, whose sections are `found` by name, behind the
-- sections: projection (its section), the shape, tau; of z bias_at and residual, the factor of x, or residual_at,
-- place of a section with one for each element, 0: none; norm_eps, 0 without a norm. It also needs x, the .npy file
-- with the rows.
function sections.calibration(p, found)
    local m, shape = p.model, p.shape
    return {
        projection = found.projection,
        d = shape.d,
        bits = shape.bits,
        block = shape.kind == "bh4" and shape.block or 0,
        padded = shape.padded or 0,
        repeats = shape.repeats or 0,
        tau = shape.tau,
        bias_at = found.projection_bias.at,
        residual_at = found.residual and found.residual.at or 0,
        residual = shape.kind == "bh4" and 1 - shape.decay or 0.0,
        norm_eps = m.norm and m.norm.eps or 0.0,
    }
end

-- Every tensor a checkpoint must have, in the order in which `sample` writes them: { name, shape, dims, mean,
-- deviation, zero_every }; dims: the shape in messages. Every eighth bias of z is exactly 0: with a zero input that is
-- the tie where bit and sign disagree.
-- With these random values z and y stay near 1: a BH4 stage multiplies the variance by b N, a dense row by d.
function sections.tensors(m, shape)
    local list = {}
    local function add(name, tensor_shape, dims, mean, deviation, zero_every)
        list[#list + 1] = {
            name = name,
            shape = tensor_shape,
            dims = dims,
            mean = mean,
            deviation = deviation,
            zero_every = zero_every,
        }
    end
    local deviation = shape.kind == "bh4" and (shape.block * shape.padded) ^ -0.5 or shape.d ^ -0.5
    local projection = shape.kind == "bh4" and "[R][4][N/b][b out][b in]" or "[h*tau][d]"
    add("hash.projection.weight", sections.projection_shape(shape), projection, 0.0, deviation)
    add("hash.projection.bias", { shape.bits }, "[h*tau]", 0.0, 0.1, 8)
    add("tables", { shape.h, shape.rows, shape.d_out }, "[h][2^tau][d_out]", 0.0, shape.h ^ -0.5)
    add("bias", { shape.d_out }, "[d_out]", 0.0, 0.1)
    if m.norm then
        add("LayerNorm.weight", { shape.d }, "[d]", 1.0, 0.1)
        add("LayerNorm.bias", { shape.d }, "[d]", 0.0, 0.1)
    end
    return list
end

-- The digest of all that decides a blob's bytes but the weights; its first half stands in the blob's header. A budget
-- rules out, it changes nothing, as does what kernels do for how many tokens; `formats`: of integers, in the place of
-- the model's, nil: there are none. `own`: what else decides, by name.
function sections.digest(m, list, formats, own)
    local model, described = copied(m), {}
    model.budget, model.same_codes, model.integer = nil, nil, formats
    for i, section in ipairs(list) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    own.format, own.model, own.sections = blob.format, model, described
    return host.sha256(json.encode(own, "compact"))
end

return sections
