-- The sections of a transformer's blob, and the pieces that the packer fills them with.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.model.blocks.block_lookup"
local checkpoint = require "gen.model.checkpoint_names"
local dtype = require "gen.plan.dtype"
local layout = require "gen.families.model.blocks.layout"
local maps = require "gen.families.model.blocks.maps"

local sections = {}

-- The sections of the blob, each with the layers of one kind of weights behind each other, and the pieces that the
-- packer fills them with: from place `at` on, behind the header if absent; layer 0 is number `first` in the checkpoint.
function sections.of(m, shape, list_of_maps, parts, first, at)
    local list, pieces = {}, {}
    at = at or blob.header_bytes
    local f32 = dtype.get "f32"
    local function add(name, type, elements, doc)
        local section = {
            name = name,
            dtype = type,
            type = type.name,
            storage = type.storage,
            elements = elements,
            count = elements,
            at = at,
            bytes = elements * type.bytes,
            doc = doc,
        }
        at = blob.round_up(at + section.bytes, blob.align)
        list[#list + 1] = section
        return section
    end
    local rounded = shape.rounded
    local function piece(section, layer, elements, more)
        local p = {
            name = section.name .. " of layer " .. first + layer,
            dtype = section.dtype,
            type = section.type,
            elements = elements,
            at = section.at + layer * elements * section.dtype.bytes,
            steps = {},
        }
        for key, value in pairs(more) do
            p[key] = value
        end
        pieces[#pieces + 1] = p
    end
    local function whole(count) return { { from = 0, to = 0, dims = { { count = count, from = 1, to = 1 } } } } end
    for _, map in ipairs(list_of_maps) do
        local scales = shape.type.scaled
            and add(map.field .. "_scales", f32, m.layers * map.pitch, "scales of the rows of " .. map.letter)
        local matrix = add(
            map.field,
            shape.type,
            m.layers * map.words,
            map.letter
                .. ", ["
                .. m.layers
                .. "]["
                .. map.panels
                .. "]["
                .. (rounded and maps.filled(map.inputs, rounded) // rounded.rows or map.inputs)
                .. (rounded and " words][" or " inputs][")
                .. layout.panel
                .. " outputs]"
                .. (rounded and ", " .. rounded.rows .. " inputs in a word" or "")
        )
        if rounded then maps.in_words(matrix, rounded) end
        local bias = add(
            map.field .. "_bias",
            f32,
            m.layers * map.pitch,
            "[" .. m.layers .. "][" .. map.pitch .. "] biases of " .. map.letter .. ", zeros if it has none"
        )
        for layer = 0, m.layers - 1 do
            local view = map.view(layer)
            local function of(part)
                return {
                    from = part.tensor,
                    shape = part.shape,
                    rows = part.rows,
                    columns = part.columns,
                    group = part.group,
                    stride = part.stride,
                    offset = part.offset,
                    transposed = part.transposed,
                }
            end
            local weights, offsets = of(view.weight), of(view.bias)
            weights.row = map.inputs
            weights.boxes, weights.slices = maps.boxes(map, not weights.group and not weights.transposed, rounded)
            weights.scales = scales and scales.at + layer * map.pitch * 4 or nil
            piece(matrix, layer, map.words, weights)
            offsets.boxes, offsets.optional = whole(map.outputs), true
            piece(bias, layer, map.pitch, offsets)
        end
    end
    block_lookup.add_sections(m, parts, first, add, piece)
    if m.norm then
        for i = shape.projected and m.norm.place == "pre" and 2 or 1, 2 do
            local word, width = i == 1 and "first" or "second", shape.norm_widths[i]
            local gain = add(
                word .. "_norm",
                f32,
                m.layers * width,
                "[" .. m.layers .. "][" .. width .. "] gains of the " .. word .. " norm"
            )
            local offset = m.norm.kind == "layernorm"
                and add(word .. "_norm_offset", f32, m.layers * width, "its offsets")
            for layer = 0, m.layers - 1 do
                local norm = checkpoint.norm(m, first + layer, i, width)
                local function of(view) return { from = view.tensor, shape = view.shape, boxes = whole(width) } end
                piece(gain, layer, width, of(norm.gain))
                if offset then piece(offset, layer, width, of(norm.offset)) end
            end
        end
    end
    if shape.shaped then
        local section = add(
            "attention_shape",
            f32,
            m.layers * 3 * shape.heads,
            "[" .. m.layers .. "][" .. shape.heads .. "] alpha, beta and gamma of heads"
        )
        for layer = 0, m.layers - 1 do
            local view = checkpoint.attention_shape(m, first + layer)
            piece(section, layer, 3 * shape.heads, {
                from = view.tensor,
                shape = view.shape,
                boxes = whole(3 * shape.heads),
            })
        end
    end
    if shape.rope then
        local half, digits = shape.rope.half, shape.rope.digits
        local count = (digits and 256 or shape.context) * half
        local rows = digits and "[" .. #digits .. " bytes of a position][256]" or "[" .. shape.context .. " positions]"
        for _, word in ipairs { "cosines", "sines" } do
            local section = add(
                word,
                f32,
                (digits and #digits or 1) * count,
                rows .. "[" .. half .. "] " .. word .. " of the rotary angles"
            )
            for i, step in ipairs(digits or { 1 }) do
                pieces[#pieces + 1] = {
                    name = word,
                    type = "f32",
                    elements = count,
                    at = section.at + (i - 1) * count * 4,
                    angles = word,
                    theta = shape.rope.theta,
                    half = half,
                    step = step,
                }
            end
        end
    end
    return list, pieces, at
end

return sections
