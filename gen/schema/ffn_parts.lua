-- The parts of an FFN of a model file: a dense FFN, a LookupFFN, or both side by side.
local ffn_parts = {}

-- The dense part, { kind, f, activation }; nil: there is none.
function ffn_parts.dense(ffn)
    if ffn.kind == "lookup" then return ffn.dense end
    return ffn
end

local of_block = { kind = true, dense = true, qkv = true } -- keys that no LookupFFN alone has

-- Adds the keys of the LookupFFN of `ffn` to those of `model`, and returns it.
function ffn_parts.add_lookup(model, ffn)
    for key, value in pairs(ffn) do
        if not of_block[key] then model[key] = value end
    end
    return model
end

return ffn_parts
