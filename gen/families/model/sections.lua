-- The sections of a model's blob, and the pieces that the packer fills them with.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.model.blocks.block_lookup"
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local host = require "host"
local json = require "json"
local layout = require "gen.families.model.blocks.layout"
local maps = require "gen.families.model.blocks.maps"

local sections = {}

local f32 = dtype.get "f32"
local large = 1 << 22 -- elements of a tensor that is packed row by row

-- Collects sections from place `at` of the blob on. type, rounded: of matrices, as of shapes (blocks/shape.lua); rows:
-- the type of an embedding, nil: there is none; first: the number that layer 0 has in the checkpoint, of blocks. Its
-- field `group` says to people which part of a whole model the next sections are of.
function sections.collector(at, type, rounded, rows, first)
    local c = { list = {}, pieces = {}, at = at, type = type, rows = rows, rounded = rounded }

    -- `slow`, of sections: as in gen/families/lookup/sections.lua.
    function c.add(name, of_type, elements, doc)
        local section = {
            group = c.group,
            name = name,
            dtype = of_type,
            type = of_type.packed or of_type.name,
            storage = of_type.storage,
            elements = elements,
            count = dtype.units(of_type, elements),
            at = c.at,
            bytes = dtype.size(of_type, elements),
            doc = doc,
        }
        c.at = blob.round_up(c.at + section.bytes, blob.align)
        c.list[#c.list + 1] = section
        return section
    end

    function c.f32(name, elements, doc) return c.add(name, f32, elements, doc) end

    -- A piece that fills `section`, or layer `layer` of it, from the view `view` of a checkpoint if there is one.
    function c.piece(section, view, more, layer)
        local piece = {
            name = section.name .. (layer and " of layer " .. first + layer or ""),
            dtype = section.dtype,
            type = section.type,
            elements = section.elements,
            steps = {},
        }
        for key, value in pairs(view or {}) do
            piece[key] = value
        end
        piece.from, piece.tensor = view and view.tensor, nil
        for key, value in pairs(more) do
            piece[key] = value
        end
        piece.at = section.at + (layer or 0) * dtype.size(section.dtype, piece.elements)
        c.pieces[#c.pieces + 1] = piece
    end

    return c
end

local function whole(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end

-- The functions below add a section for a tensor, or where `layers` is not nil for one of each of so many layers, and
-- return what adds the piece of one: fill(view, layer).

-- `count` values in float32. of: pitch, that they are filled up to, default count; optional: they may be missing; mean:
-- of what `sample` draws, nil: samples.lua says it.
local function vectors(c, name, layers, count, doc, of)
    local pitch = of.pitch or count
    local section = c.f32(name, (layers or 1) * pitch, doc)
    return function(view, layer)
        local draw = of.mean and { mean = of.mean, deviation = 0.1 }
        c.piece(section, view, { elements = pitch, boxes = whole(count), optional = of.optional, draw = draw }, layer)
    end
end

-- Gains of norms, described as `doc`, and offsets.
local function norms(c, name, layers, norm, width, doc, drawn)
    local gains = vectors(c, name, layers, width, doc, { mean = drawn and 1.0 })
    local offsets = norm.kind == "layernorm"
        and vectors(c, name .. "_offset", layers, width, (doc:gsub("gains", "offsets")), { mean = drawn and 0.0 })
    return function(views, layer)
        gains(views.gain, layer)
        if offsets then offsets(views.offset, layer) end
    end
end

-- Matrices of `map` in panels of outputs whose groups of inputs have scales of their own; how: { type, panel,
-- deviation: of what `sample` draws, nil: samples.lua says it }. Returns the section, too.
local function grouped(c, how, name, layers, map, doc)
    local type, panel = how.type, how.panel
    local groups, group = layout.filled(map.inputs, type) // type.groups, layout.group(type, panel)
    local stored, of = map.panels * groups * group.words, layers and "[" .. layers .. "]" or ""
    local form = "%s, %s[%d][%d groups][%d words]: [%d] scales, %s[%d][%d] words of %d inputs"
    local words, minima = type.groups // type.weights, type.minimum and "[" .. panel .. "] minima, " or ""
    doc = form:format(doc, of, map.panels, groups, group.words, panel, minima, words, panel, type.weights)
    local section = c.add(name, type, (layers or 1) * stored, doc)
    local function fill(view, layer)
        local whole_tensor = not (view.group or view.transposed)
        c.piece(section, view, {
            elements = stored,
            row = map.inputs,
            groups = type.groups,
            panel = panel,
            bits = type.bits,
            minimum = type.minimum,
            form = type.name,
            kept = type.gguf,
            slices = whole_tensor and map.outputs == map.panels * panel and map.panels or nil,
            draw = how.deviation and { mean = 0.0, deviation = how.deviation },
        }, layer)
    end
    return fill, section
end

-- Matrices of `map` in panels, as products read them, and scales of the rows of `what` if their type has them.
local function matrices(c, name, layers, map, what, doc, drawn)
    if c.type.groups then
        local how = { type = c.type, panel = layout.panel, deviation = drawn and map.inputs ^ -0.5 }
        return (grouped(c, how, name, layers, map, doc))
    end
    local rounded = c.rounded
    local scales = c.type.scaled
        and c.f32(name .. "_scales", (layers or 1) * map.pitch, "scales of the rows of " .. what)
    local form = "%s, %s[%d][%d inputs][%d outputs]"
    if rounded then form = "%s, %s[%d][%d words][%d outputs], %d inputs in a word" end
    doc = form:format(
        doc,
        layers and "[" .. layers .. "]" or "",
        map.panels,
        layout.filled(map.inputs, c.type, rounded) // (rounded and rounded.rows or 1),
        layout.panel,
        rounded and rounded.rows
    )
    local section = c.add(name, c.type, (layers or 1) * map.words, doc)
    if rounded then maps.in_words(section, rounded) end
    return function(view, layer)
        local boxes, slices = maps.boxes(map, not (view.group or view.transposed), rounded)
        c.piece(section, view, {
            elements = map.words,
            row = map.inputs,
            boxes = boxes,
            slices = slices,
            scales = scales and scales.at + (layer or 0) * map.pitch * 4,
            draw = drawn and { mean = 0.0, deviation = map.inputs ^ -0.5 },
        }, layer)
    end
end

-- The sections of blocks of `shape`, each with the layers of one kind of weights behind each other.
function sections.add_blocks(c, m, shape, list_of_maps, parts, first)
    for _, map in ipairs(list_of_maps) do
        local weights = matrices(c, map.field, m.layers, map, map.letter, map.letter)
        local doc = "[%d][%d] biases of %s, zeros if it has none"
        doc = doc:format(m.layers, map.pitch, map.letter)
        local of = { pitch = map.pitch, optional = true }
        local biases = vectors(c, map.field .. "_bias", m.layers, map.outputs, doc, of)
        for layer = 0, m.layers - 1 do
            local view = map.view(layer)
            weights(view.weight, layer)
            biases(view.bias, layer)
        end
    end
    block_lookup.add_sections(m, parts, first, c)
    for i, norm in ipairs(shape.norms) do
        if i > 1 or not shape.projected or m.norm.place == "post" then
            local doc = string.format("[%d][%d] gains of the %s", m.layers, norm.width, norm.doc)
            local fill = norms(c, norm.word .. "_norm", m.layers, m.norm, norm.width, doc)
            for layer = 0, m.layers - 1 do
                fill(checkpoint.norm(m, first + layer, i, norm.width), layer)
            end
        end
    end
    for _, word in ipairs(shape.qk_norm and { "q", "k" } or {}) do
        local doc = string.format("[%d][%d] gains of the norm of heads of %s", m.layers, shape.width, word)
        local fill = vectors(c, word .. "_norm", m.layers, shape.width, doc, {})
        for layer = 0, m.layers - 1 do
            fill(checkpoint.head_norm(m, first + layer, word, shape.width), layer)
        end
    end
    if shape.lsh then
        local rounds, padded = shape.lsh.rounds, shape.lsh.padded
        local doc = "[%d][%d rounds][%d] signs of the hashes of heads"
        local section = c.f32("attention_signs", m.layers * rounds * padded, doc:format(m.layers, rounds, padded))
        for layer = 0, m.layers - 1 do
            c.piece(section, checkpoint.attention_signs(m, first + layer, shape.lsh), {
                elements = rounds * padded,
                boxes = whole(rounds * padded),
                optional = true,
                signs = shape.lsh.seed << 32 | first + layer,
            }, layer)
        end
    end
    if shape.unit then
        local doc = string.format("[%d][%d] factors of the scores of heads", m.layers, shape.heads)
        local fill = vectors(c, "attention_scale", m.layers, shape.heads, doc, {})
        for layer = 0, m.layers - 1 do
            fill(checkpoint.attention_scale(m, first + layer), layer)
        end
    end
    if shape.shaped then
        local doc, count = "[%d][%d] alpha, beta and gamma of heads", 3 * shape.heads
        doc = doc:format(m.layers, shape.heads)
        local fill = vectors(c, "attention_shape", m.layers, count, doc, {})
        for layer = 0, m.layers - 1 do
            fill(checkpoint.attention_shape(m, first + layer), layer)
        end
    end
    if shape.rope then
        local half, digits = shape.rope.half, shape.rope.digits
        local count = (digits and 256 or shape.context) * half
        local rows = digits and "[" .. #digits .. " bytes of a position][256]" or "[" .. shape.context .. " positions]"
        for _, word in ipairs { "cosines", "sines" } do
            local doc = rows .. "[" .. half .. "] " .. word .. " of the rotary angles"
            local section = c.f32(word, (digits and #digits or 1) * count, doc)
            for i, step in ipairs(digits or { 1 }) do
                c.pieces[#c.pieces + 1] = {
                    name = word,
                    type = "f32",
                    elements = count,
                    at = section.at + (i - 1) * count * 4,
                    angles = word,
                    frequencies = shape.rope.frequencies,
                    factor = i == 1 and shape.rope.factor or 1, -- angles of bytes add up, factors would multiply
                    step = step,
                }
            end
        end
    end
end

-- Gain and offset of the norm of `of`, `width` values each.
function sections.add_norm(c, name, norm, width, views, of)
    norms(c, name, nil, norm, width, "[" .. width .. "] gains of the norm of " .. of, true)(views)
end

-- A matrix in panels. Returns what kernels need to know of it.
function sections.add_matrix(c, name, inputs, outputs, view, doc)
    local map = { name = name, inputs = inputs, outputs = outputs }
    local filled = layout.filled(inputs, c.type, c.rounded)
    map.panels = (outputs + layout.panel - 1) // layout.panel
    map.pitch = map.panels * layout.panel
    map.words = map.pitch * filled
    map.panel_step = layout.stored(layout.panel * filled, c.type, c.rounded)
    matrices(c, name, nil, map, name, doc, true)(view)
    return map
end

-- The biases of `map` as the section `name`: zeros, unless `view` says where they are found. optional: they may be
-- missing there.
function sections.add_bias(c, map, name, view, optional)
    local doc = "biases of " .. map.name .. (not view and ": zeros" or optional and ", zeros if it has none" or "")
    local fill = vectors(c, name, nil, map.outputs, doc, { pitch = map.pitch, optional = optional, mean = 0.0 })
    if view then fill(view) end
    map.bias = name
end

-- Matrix and bias of a linear map; its biases may be missing in the checkpoint.
function sections.add_map(c, name, inputs, outputs, view, doc)
    local map = sections.add_matrix(c, name, inputs, outputs, view.weight, doc)
    sections.add_bias(c, map, name .. "_bias", view.bias, true)
    return map
end

-- Rows of a table one behind the other, and their scales; in groups as a matrix, few of them side by side.
function sections.add_rows(c, name, rows, width, view, doc)
    if c.rows.groups then
        local map = { inputs = width, outputs = rows, panels = (rows + layout.rows - 1) // layout.rows }
        local how = { type = c.rows, panel = layout.rows, deviation = 1.0 }
        local fill, section = grouped(c, how, name, nil, map, doc)
        section.slow = true
        return fill(view)
    end
    local scales = c.rows.scaled and c.f32(name .. "_scales", rows, "scales of the rows of " .. name)
    local section = c.add(name, c.rows, rows * width, string.format("%s, [%d][%d]", doc, rows, width))
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
function sections.add_some_rows(c, name, first, count, width, view, doc)
    local section = c.f32(name, count * width, string.format("%s, [%d][%d]", doc, count, width))
    section.slow = count > 1
    local piece = sections.some_rows(first, count, width)
    piece.draw, piece.boxes = { mean = 0.0, deviation = 0.3 }, whole(count * width)
    c.piece(section, view, piece)
end

-- Sines and cosines of positions 0 … count - 1.
function sections.add_sinusoids(c, name, count, width, sinusoidal)
    local section =
        c.f32(name, count * width, string.format("sines and cosines of positions, [%d][%d]", count, width))
    section.slow = true
    c.piece(section, nil, sections.sinusoids(sinusoidal, width))
end

-- The table `value` without what `names` has in it; itself, if nothing is.
local function without(value, names)
    local copy, differs = {}, false
    for key, item in pairs(value) do
        local kept = item
        if names[key] then
            kept = nil
        elseif type(item) == "table" then
            kept = without(item, names)
        end
        copy[key], differs = kept, differs or kept ~= item
    end
    return differs and setmetatable(copy, getmetatable(value)) or value
end

-- What decides the bytes of a blob but the weights: the model, its own sections, and the plans of its parts; not what
-- kernels do for how many tokens.
function sections.digest(m, own, parts)
    local described = {}
    for i, section in ipairs(own) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    for _, part in ipairs(parts) do
        described[#described + 1] = part.plan.digest
    end
    local model = without(m, { same_codes = true, ends = true })
    return host.sha256(
        json.encode({ format = blob.format, model = model, sections = described, panel = layout.panel }, "compact")
    )
end

-- The tensors that a checkpoint must have: all that pieces of the blob come from, but biases.
function sections.tensors(pieces)
    local list = {}
    local function add(name, shape) list[#list + 1] = { name = name, shape = shape } end
    for _, piece in ipairs(pieces) do
        if piece.from and not piece.optional then add(piece.from, piece.shape) end
        for _, key in ipairs { "view", "weight", "gain", "plus" } do
            local view = piece.projected and piece.projected[key]
            if view then add(view.tensor, view.shape) end
        end
    end
    return list
end

return sections
