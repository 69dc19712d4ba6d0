-- The linear maps of a block: products of packed matrices. A projection that was eliminated is none.
local checkpoint = require "gen.model.checkpoint_names"
local layout = require "gen.families.transformer.layout"

local maps = {}

-- The linear maps of a block's attention and skip connection, { letter, rows, columns } each, before any is eliminated.
-- S makes what is d wide of the block's input where that is not.
function maps.of_attention(shape)
    local input = shape.delivered and shape.d or shape.input
    return {
        { "Q", shape.q, input },
        { "K", shape.e, input },
        { "V", shape.e, input },
        { "P", shape.d, shape.q },
        shape.skip_map and { "S", shape.d, input } or nil,
    }
end

-- The linear maps that a block has: { letter, field, inputs, outputs, panels, words of a layer, view(layer) }; layer 0
-- is number `first` in the checkpoint.
function maps.of(m, shape, first)
    local list, by_letter = {}, {}
    local function add(letter, inputs, outputs, view)
        local map = {
            letter = letter,
            field = letter:lower(),
            inputs = inputs,
            outputs = outputs,
            panels = (outputs + layout.panel - 1) // layout.panel,
            view = view,
        }
        map.pitch = map.panels * layout.panel
        map.words = map.pitch * inputs
        list[#list + 1], by_letter[letter] = map, map
    end
    -- What fuse leaves of packed and transposed tensors stands alone.
    local function left(map) return m.attention.eliminate == "none" and map or checkpoint.alone(map) end
    for _, row in ipairs(maps.of_attention(shape)) do
        local letter, rows, columns = table.unpack(row)
        local gone = m.attention.eliminate ~= "none" and m.attention.eliminate:find(letter, 1, true)
        if not gone then
            add(
                letter,
                columns,
                rows,
                function(layer) return left(checkpoint.linear(m, first + layer, letter, rows, columns)) end
            )
        end
    end
    if shape.lookup then return list, by_letter end
    -- The first input of a gated FFN is its gate.
    for i, letter in ipairs(shape.gated and { "G", "M" } or { "M" }) do
        add(letter, shape.d, shape.f, function(layer) return left(checkpoint.inputs(m, first + layer)[i]) end)
    end
    add(
        "O",
        shape.f,
        shape.d,
        function(layer) return left(checkpoint.linear(m, first + layer, "O", shape.d, shape.f)) end
    )
    return list, by_letter
end

-- Where the rows of a matrix go in [panel][input][32]: runs of rows of equal width, or, where all panels are full and
-- the matrix is a tensor of its own, one panel after the other, so that the packer holds one at a time.
function maps.boxes(map, whole_tensor)
    if whole_tensor and map.outputs == map.pitch then
        local panel = layout.panel
        return {
            {
                from = 0,
                to = 0,
                slice_to = panel * map.inputs,
                dims = { { count = map.inputs, from = 1, to = panel }, { count = panel, from = map.inputs, to = 1 } },
            },
        },
            map.panels
    end
    local panel, whole, rest = layout.panel, map.outputs // layout.panel, map.outputs % layout.panel
    local boxes = {}
    local function add(first, panels, width)
        if panels == 0 or width == 0 then return end
        boxes[#boxes + 1] = {
            from = first * map.inputs,
            to = first * map.inputs,
            dims = {
                { count = panels, from = panel * map.inputs, to = panel * map.inputs },
                { count = map.inputs, from = 1, to = panel },
                { count = width, from = map.inputs, to = 1 },
            },
        }
    end
    add(0, whole, panel)
    add(whole * panel, 1, rest)
    return boxes
end

return maps
