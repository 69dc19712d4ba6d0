-- The sections of a whole model's blob beside those of its blocks, and the pieces that the packer fills them with.
local blob = require "gen.plan.blob"
local dtype = require "gen.plan.dtype"
local layout = require "gen.families.model.blocks.layout"
local maps = require "gen.families.model.blocks.maps"

local sections = {}

local large = 1 << 22 -- elements of a tensor that is packed row by row

-- Collects sections from place `at` of the blob on; `group` says to people which part of the model has them. `slow`: as
-- in gen/families/lookup/sections.lua.
-- rounded: as of shapes (gen/families/model/blocks/shape.lua).
function sections.collector(at, type, rounded)
    local c = { list = {}, pieces = {}, at = at, type = type, rounded = rounded }
    local f32 = dtype.get "f32"

    function c.add(group, name, of_type, elements, doc)
        local section = {
            group = group,
            name = name,
            dtype = of_type,
            type = of_type.name,
            storage = of_type.storage,
            elements = elements,
            count = elements,
            at = c.at,
            bytes = elements * of_type.bytes,
            doc = doc,
        }
        c.at = blob.round_up(c.at + section.bytes, blob.align)
        c.list[#c.list + 1] = section
        return section
    end

    function c.f32(group, name, elements, doc) return c.add(group, name, f32, elements, doc) end

    -- A piece that fills `section`, from the view `view` of a checkpoint if there is one.
    function c.piece(section, view, more)
        local piece = {
            name = section.name,
            dtype = section.dtype,
            type = section.type,
            elements = section.elements,
            at = section.at,
            steps = {},
        }
        for key, value in pairs(view or {}) do
            piece[key] = value
        end
        piece.from, piece.tensor = view and view.tensor, nil
        for key, value in pairs(more) do
            piece[key] = value
        end
        c.pieces[#c.pieces + 1] = piece
    end

    return c
end

local function whole(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end

-- A section of a vector of the checkpoint in float32, and how `sample` draws it.
local function add_vector(c, group, name, count, view, doc, mean)
    local section = c.f32(group, name, count, doc)
    c.piece(section, view, { boxes = whole(count), draw = { mean = mean, deviation = 0.1 } })
end

-- Gain and offset of a norm of `width` values.
function sections.add_norm(c, group, name, norm, width, views)
    add_vector(c, group, name, width, views.gain, "[" .. width .. "] gains of a norm", 1.0)
    if norm.kind == "layernorm" then
        add_vector(c, group, name .. "_offset", width, views.offset, "its offsets", 0.0)
    end
end

-- A matrix in panels, as products read it, and scales if its type has them. Returns what kernels need to know of it.
function sections.add_matrix(c, group, name, inputs, outputs, view, doc)
    local map = { name = name, inputs = inputs, outputs = outputs }
    map.panels = (outputs + layout.panel - 1) // layout.panel
    map.pitch = map.panels * layout.panel
    local rounded = c.rounded
    local filled = maps.filled(inputs, rounded)
    map.words = map.pitch * filled
    map.panel_step = layout.panel * (rounded and filled // rounded.rows or inputs)
    local boxes, slices = maps.boxes(map, not (view.group or view.transposed), rounded)
    local scales = c.type.scaled and c.f32(group, name .. "_scales", map.pitch, "scales of the rows of " .. name)
    local matrix = c.add(
        group,
        name,
        c.type,
        map.words,
        rounded
                and string.format(
                    "%s, [%d][%d words][%d outputs], %d inputs in a word",
                    doc,
                    map.panels,
                    filled // rounded.rows,
                    layout.panel,
                    rounded.rows
                )
            or string.format("%s, [%d][%d inputs][%d outputs]", doc, map.panels, inputs, layout.panel)
    )
    if rounded then maps.in_words(matrix, rounded) end
    c.piece(matrix, view, {
        row = inputs,
        boxes = boxes,
        slices = slices,
        scales = scales and scales.at,
        draw = { mean = 0.0, deviation = inputs ^ -0.5 },
    })
    return map
end

-- The biases of `map` as the section `name`: zeros, unless `view` says where they are found. optional: they may be
-- missing there.
function sections.add_bias(c, group, map, name, view, optional)
    local doc = "biases of " .. map.name .. (not view and ": zeros" or optional and ", zeros if it has none" or "")
    local section = c.f32(group, name, map.pitch, doc)
    if view then
        c.piece(section, view, {
            boxes = whole(map.outputs),
            optional = optional,
            draw = { mean = 0.0, deviation = 0.1 },
        })
    end
    map.bias = name
end

-- Matrix and bias of a linear map; its biases may be missing in the checkpoint.
function sections.add_map(c, group, name, inputs, outputs, view, doc)
    local map = sections.add_matrix(c, group, name, inputs, outputs, view.weight, doc)
    sections.add_bias(c, group, map, name .. "_bias", view.bias, true)
    return map
end

-- Rows of a table one behind the other, and their scales.
function sections.add_rows(c, group, name, rows, width, view, doc)
    local scales = c.type.scaled and c.f32(group, name .. "_scales", rows, "scales of the rows of " .. name)
    local section = c.add(group, name, c.type, rows * width, string.format("%s, [%d][%d]", doc, rows, width))
    section.slow = true
    if scales then scales.slow = true end
    local by_row = rows * width > large and not (view.group or view.transposed)
    local boxes = by_row and { { from = 0, to = 0, slice_to = width, dims = { { count = width, from = 1, to = 1 } } } }
        or whole(rows * width)
    c.piece(section, view, {
        row = width,
        boxes = boxes,
        slices = by_row and rows or nil,
        scales = scales and scales.at,
        draw = { mean = 0.0, deviation = 1.0 },
    })
end

-- What a piece says of rows first … first + count - 1 of a matrix of the checkpoint.
function sections.some_rows(first, count, width)
    return { rows = count, columns = width, group = count, stride = count, offset = first }
end

-- What a piece says of sines and cosines of positions.
function sections.sinusoids(sinusoidal, width)
    return {
        sinusoids = sinusoidal.order,
        columns = width,
        steps_of = sinusoidal.steps == "n" and width // 2 or width // 2 - 1,
        max = sinusoidal.max,
    }
end

-- Rows first … first + count - 1 of a matrix of the checkpoint in float32.
function sections.add_some_rows(c, group, name, first, count, width, view, doc)
    local section = c.f32(group, name, count * width, string.format("%s, [%d][%d]", doc, count, width))
    section.slow = count > 1
    local piece = sections.some_rows(first, count, width)
    piece.draw, piece.boxes = { mean = 0.0, deviation = 0.3 }, whole(count * width)
    c.piece(section, view, piece)
end

-- Sines and cosines of positions 0 … count - 1.
function sections.add_sinusoids(c, group, name, count, width, sinusoidal)
    local section =
        c.f32(group, name, count * width, string.format("sines and cosines of positions, [%d][%d]", count, width))
    section.slow = true
    c.piece(section, nil, sections.sinusoids(sinusoidal, width))
end

return sections
