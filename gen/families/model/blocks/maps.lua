-- The linear maps of a block: products of packed matrices. A projection that was eliminated is none.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.schema.checkpoint_names"
local fusable = require "gen.schema.fusable"
local layout = require "gen.families.model.blocks.layout"

local maps = {}

-- Makes `section`, of weights one by one, one of words of them.
function maps.in_words(section, rounded)
    section.storage, section.type, section.count = rounded.storage, rounded.packed, section.elements // rounded.rows
end

-- The linear maps of a block's attention and skip connection, { letter, rows, columns } each, before any is eliminated.
-- S makes what is d wide of the block's input where that is not.
function maps.of_attention(shape)
    if shape.qkv then return {} end
    return {
        { "Q", shape.q, shape.read },
        { "K", shape.e, shape.read },
        { "V", shape.e, shape.read },
        { "P", shape.d, shape.q },
        shape.skip_map and { "S", shape.d, shape.read } or nil,
    }
end

-- Whether what a map of that letter makes is delivered with the block's input.
local function is_projected(shape, letter) return shape.projected and letter ~= "P" end

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
        map.words = map.pitch * layout.filled(inputs, shape.type, shape.rounded)
        list[#list + 1], by_letter[letter] = map, map
    end
    -- What fuse leaves of packed and transposed tensors stands alone.
    local function left(map) return fusable.is_fused(m) and checkpoint.alone(map) or map end
    local function view_of(layer, letter, rows, columns)
        local map = checkpoint.linear(m, first + layer, letter, rows, columns)
        return shape.from_keys and letter == "V" and checkpoint.from_keys(map) or left(map)
    end
    for _, row in ipairs(maps.of_attention(shape)) do
        local letter, rows, columns = table.unpack(row)
        local gone = m.attention.eliminate ~= "none" and m.attention.eliminate:find(letter, 1, true)
        if not gone and not is_projected(shape, letter) then
            add(letter, columns, rows, function(layer) return view_of(layer, letter, rows, columns) end)
        end
    end
    if not shape.f then return list, by_letter end
    -- The first input of a gated FFN is its gate.
    for i, letter in ipairs(shape.gated and { "G", "M" } or { "M" }) do
        add(letter, shape.d, shape.f, function(layer) return left(checkpoint.inputs(m, first + layer)[i]) end)
    end
    add("O", shape.f, shape.d, function(layer) return view_of(layer, "O", shape.d, shape.f) end)
    return list, by_letter
end

-- Where `panels` panels of `width` rows each go, the first of which is number `first`, in words of so many inputs:
-- those of full words, and what fills the last one in part.
local function add_words(boxes, map, per_word, first, panels, width)
    local panel, filled = layout.panel, blob.round_up(map.inputs, per_word)
    local function add(word, words, inputs)
        if words == 0 or inputs == 0 then return end
        boxes[#boxes + 1] = {
            from = first * map.inputs + word * per_word,
            to = first * filled + word * panel * per_word,
            slice_to = panel * filled,
            dims = {
                { count = panels, from = panel * map.inputs, to = panel * filled },
                { count = words, from = per_word, to = panel * per_word },
                { count = width, from = map.inputs, to = per_word },
                { count = inputs, from = 1, to = 1 },
            },
        }
    end
    add(0, map.inputs // per_word, per_word)
    add(map.inputs // per_word, 1, map.inputs % per_word)
end

-- Where the rows of a matrix go in [panel][input][32], or [panel][word][32]: runs of rows of equal width, or, where all
-- panels are full and the matrix is a tensor of its own, one panel after the other, so that the packer holds one at a
-- time.
function maps.boxes(map, whole_tensor, rounded)
    if rounded then
        local boxes, panel = {}, layout.panel
        local sliced = whole_tensor and map.outputs == map.pitch
        local full, rest = sliced and 1 or map.outputs // panel, map.outputs % panel
        if full > 0 then add_words(boxes, map, rounded.rows, 0, full, panel) end
        if rest > 0 then add_words(boxes, map, rounded.rows, full * panel, 1, rest) end
        return boxes, sliced and map.panels or nil
    end
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
