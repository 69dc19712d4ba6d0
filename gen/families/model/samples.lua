-- The tensors of a whole model's checkpoint with which `sample` fills one at random.
local samples = {}

-- Every tensor that plan `p` packs, as weights.sample writes them: those of the blocks as the transformer family draws
-- them for the field `key` of its plans, the others by what they are.
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
