-- The tensors of a model's checkpoint with which `sample` fills one at random.
local block_lookup = require "gen.families.model.blocks.block_lookup"
local checkpoint = require "gen.schema.checkpoint_names"
local maps = require "gen.families.model.blocks.maps"

local samples = {}

-- Every tensor of a checkpoint of blocks `m` as weights.sample writes them: of the one that `pack` reads, without what
-- is eliminated, if it is `fused`, else of the one that `fuse` reads. own: the model is an architecture of its own,
-- whose checkpoint nobody fused. Square maps are near 1, so that values neither grow nor shrink much from block to
-- block and what is inverted is well-conditioned. first: the number of the first layer, of blocks that are a part of a
-- model, whose embeddings are not theirs.
function samples.of_blocks(m, shape, fused, own, first)
    local family, list, known = checkpoint.family(m), {}, {}
    local function add(name, tensor_shape, deviation, more)
        if known[name] then return end
        known[name] = true
        list[#list + 1] = { name = name, shape = tensor_shape, mean = 0.0, deviation = deviation }
        for key, value in pairs(more or {}) do
            list[#list][key] = value
        end
    end
    local function left(map) return fused and checkpoint.alone(map) or map end
    local biased = checkpoint.biased(m)
    local function add_map(map, deviation, diagonal, bias)
        local v = map.weight
        local width = v.transposed and v.shape[#v.shape] or nil
        local ones = { diagonal = v.columns, group = v.group, stride = v.stride, transposed = width }
        add(v.tensor, v.shape, deviation, diagonal and ones)
        if biased or bias then add(map.bias.tensor, map.bias.shape, bias or 0.1) end
    end
    for _, row in ipairs { { "word", m.vocab }, { "positions", m.positions }, { "token_types", m.token_types } } do
        if row[2] and not first then
            add(
                family.embeddings[row[1]],
                { row[2], (fused or not shape.delivered) and shape.input or shape.d },
                row[1] == "word" and 1.0 or 0.3
            )
        end
    end
    for layer = first or 0, (first or 0) + m.layers - 1 do
        for _, row in ipairs(maps.of_attention(shape)) do
            local letter, rows, columns = table.unpack(row)
            local map = checkpoint.linear(m, layer, letter, rows, columns)
            if not (fused and m.attention.eliminate:find(letter, 1, true)) then
                local made = fused and shape.from_keys and letter == "V" and checkpoint.from_keys(map)
                add_map(made or left(map), 0.3 * columns ^ -0.5, true)
            end
        end
        if shape.lookup then
            local delivers = fused and shape.delivered and layer < (first or 0) + m.layers - 1
            for _, tensor in ipairs(block_lookup.samples(m, layer, delivers and shape.made or shape.row)) do
                add(tensor.name, tensor.shape, tensor.deviation, tensor)
            end
        end
        if shape.f then
            local inputs = checkpoint.inputs(m, layer)
            add_map(left(inputs[#inputs]), 1.5 * shape.d ^ -0.5)
            -- A gate that is mostly its bias: products of two values of the input would grow or vanish from block to
            -- block.
            if shape.gated then add_map(left(inputs[1]), 0.3 * shape.d ^ -0.5, false, 1.0) end
            add_map(left(checkpoint.linear(m, layer, "O", shape.d, shape.f)), shape.f ^ -0.5)
        end
        for _, word in ipairs(shape.qk_norm and { "q", "k" } or {}) do
            local view = checkpoint.head_norm(m, layer, word, shape.width)
            add(view.tensor, view.shape, 0.1, { mean = 1.0 - (view.raised or 0) })
        end
        if shape.unit then
            local view = checkpoint.attention_scale(m, layer)
            add(view.tensor, view.shape, 0.2, { mean = 1.5 })
        end
        if shape.shaped then
            local view = checkpoint.attention_shape(m, layer)
            add(view.tensor, view.shape, 0.2, { mean = 0.8 })
        end
        for i, of in ipairs(shape.norms) do
            local norm = checkpoint.norm(m, layer, i, of.width)
            add(norm.gain.tensor, norm.gain.shape, 0.1, { mean = 1.0 - (norm.gain.raised or 0) })
            if m.norm.kind == "layernorm" then add(norm.offset.tensor, norm.offset.shape, 0.1) end
        end
    end
    -- What fuse merges into the embeddings parts them from a tied head.
    local head = checkpoint.head(m)
    if head and not first and (not m.tied or fused and not own) then add(head, { m.vocab, shape.d }, shape.d ^ -0.5) end
    return list
end

-- Every tensor that plan `p` packs, as weights.sample writes them: those of the blocks for the field
-- `key` of their plans, the others by what they are.
function samples.of(p, key)
    local list, known = {}, {}
    local function add(name, shape, mean, deviation)
        if known[name] then return end
        known[name] = true
        list[#list + 1] = { name = name, shape = shape, mean = mean, deviation = deviation }
    end
    for _, piece in ipairs(p.pieces) do
        if piece.draw then add(piece.from, piece.shape, piece.draw.mean, piece.draw.deviation) end
        for _, drawn in ipairs(piece.draws or {}) do
            add(drawn.view.tensor, drawn.view.shape, drawn.mean, drawn.deviation)
        end
    end
    for _, segment in ipairs(p.segments) do
        for _, tensor in ipairs(segment.plan[key]) do
            if not known[tensor.name] then
                known[tensor.name] = true
                list[#list + 1] = tensor
            end
        end
    end
    return list
end

return samples
