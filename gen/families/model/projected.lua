-- What the maps of the first block's input make of words and positions, as sections of the blob instead of these maps.
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local maps = require "gen.families.model.blocks.maps"
local sections = require "gen.families.model.sections"

local projected = {}

-- What `sample` draws where the model has no section of its own for it: the rows that `names` has, and those of a norm.
local function draws_of(names, norm)
    local list = {}
    local function draw(view, mean, deviation)
        if view then list[#list + 1] = { view = view, mean = mean, deviation = deviation } end
    end
    draw(names.word, 0.0, 1.0)
    draw(names.positions, 0.0, 0.3)
    draw(names.token_types, 0.0, 0.3)
    draw(norm and norm.gain, 1.0 - (norm and norm.gain.raised or 0), 0.1)
    draw(norm and norm.offset, 0.0, 0.1)
    return list
end

-- Positions 0 … count - 1 of model `m` as rows of `width`: sines, or those that it learned.
local function positions_of(m, names, width, count)
    if m.embedding.sinusoidal then return sections.sinusoids(m.embedding.sinusoidal, width) end
    local view = sections.some_rows(m.embedding.first_position or 0, count, width)
    view.tensor, view.shape = names.positions.tensor, names.positions.shape
    return { view = view }
end

-- The sections of what the linear map `map` makes of model `m`, called after `part`: rows of words, which the first
-- token type is added to, rows of positions if there are any, and biases. Where a norm { gain, offset, centred } stands
-- before the map, its gains are in the rows, and differences from a mean where it takes one; what becomes of its
-- offsets is in the biases. Pieces say so to packing_projected of gen/weights/projected.c.
local function add_part(c, part, m, map, norm, names)
    local width, outputs = map.weight.columns, map.weight.rows
    local doc = "what " .. part.letter .. " makes of %s, [%d][" .. outputs .. "]"
    local function add_rows(name, type, rows, source, more)
        local section = c.add(name .. "_" .. part.name, type, rows * outputs, doc:format(name, rows))
        section.slow = true
        source.weight, source.gain, source.centred = map.weight, norm and norm.gain, norm and norm.centred
        more.projected = source
        c.piece(section, nil, more)
    end
    local scales
    if c.rows.scaled then
        local name = "words_" .. part.name
        scales = c.f32(name .. "_scales", m.vocab, "scales of the rows of " .. name)
        scales.slow = true
    end
    local words = { view = names.word, plus = names.token_types, plus_factor = 1 / m.embedding.scale }
    add_rows("words", c.rows, m.vocab, words, { scales = scales and scales.at, draws = draws_of(names, norm) })
    part.positions = m.embedding.sinusoidal ~= nil or m.positions ~= nil
    if part.positions then
        local count = m.attention.context
        add_rows("positions", dtype.get "f32", count, positions_of(m, names, width, count), {})
    end
    local bias = { weight = map.weight, bias = map.bias }
    local offset = norm and norm.offset
    bias.view = offset and { tensor = offset.tensor, shape = offset.shape, rows = 1, columns = width } or nil
    local section = c.f32("bias_" .. part.name, outputs, "[" .. outputs .. "] biases of " .. part.letter)
    c.piece(section, nil, { projected = bias })
end

-- Adds the sections to the collector `c` (sections.lua). Returns { parts, norm, copied_at, reads_rows }: of each part {
-- name, letter, width, at: where it lies in the block's input, normed, positions: whether it has rows of these }, the
-- norm of rows before the maps, where rows are copied to, nil: there is no norm, or they are not copied, and whether
-- rows of the embedding are read for either. names: of embeddings; block: the first one as a model, of `shape`.
function projected.add(c, m, names, block, shape)
    local made, views = { parts = {} }, nil
    if m.embedding.norm then
        made.norm, views = m.embedding.norm, names.norm
    elseif block.norm and block.norm.place ~= "post" then
        made.norm, views = block.norm, checkpoint.norm(block, 0, 1, shape.read)
    end
    local centred = made.norm and made.norm.kind == "layernorm"
    local norm = views and { gain = views.gain, offset = centred and views.offset or nil, centred = centred }
    local at = 0
    for _, row in ipairs(maps.of_attention(shape)) do
        local letter, outputs, inputs = table.unpack(row)
        if letter ~= "P" then
            local part = { name = letter:lower(), letter = letter, width = outputs, at = at }
            -- A skip connection goes around the block's own norm.
            part.normed = norm ~= nil and (letter ~= "S" or m.embedding.norm ~= nil)
            local map = checkpoint.linear(block, 0, letter, outputs, inputs)
            add_part(c, part, m, map, part.normed and norm or nil, names)
            made.parts[#made.parts + 1], at = part, at + outputs
        end
    end
    if shape.skip and not shape.skip_map then made.copied_at = at end
    made.reads_rows = made.norm ~= nil or made.copied_at ~= nil
    return made
end

return projected
