-- Which ids end a text where a tokenizer's own file does not say it: those of control pieces that are spelt as the
-- models in use spell them.
local ends = {}

-- What a piece ends, in the order of GGUF's keys: a text, a turn, a message within a turn.
ends.roles = { "eos", "eot", "eom" }

local spellings = {
    ["</s>"] = "eos",
    ["<eos>"] = "eos",
    ["<|endoftext|>"] = "eos",
    ["<|end_of_text|>"] = "eos",
    ["<|return|>"] = "eos",
    ["<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>"] = "eos", -- of DeepSeek
    ["[SEP]"] = "eos",
    ["<|eot_id|>"] = "eot",
    ["<|im_end|>"] = "eot",
    ["<|end|>"] = "eot",
    ["<|END_OF_TURN_TOKEN|>"] = "eot",
    ["<end_of_turn>"] = "eot",
    ["<|eom_id|>"] = "eom",
}

-- The ids of `pieces` that end a text, those of a role side by side; said: { role = id } that a file says itself.
function ends.of(pieces, said)
    local by_role, list, seen = { eos = {}, eot = {}, eom = {} }, {}, {}
    for i, piece in ipairs(pieces) do
        local role = piece.type == "control" and spellings[piece.text]
        if role then table.insert(by_role[role], i - 1) end
    end
    for _, role in ipairs(ends.roles) do
        for _, id in ipairs(said[role] and { said[role] } or by_role[role]) do
            if not seen[id] then list[#list + 1] = id end
            seen[id] = true
        end
    end
    return list
end

return ends
