-- Bytes of GGUF files, good ones and others.
local gguf = {}

local formats =
    { u8 = "<B", u16 = "<I2", u32 = "<I4", i32 = "<i4", f32 = "<f", u64 = "<I8", bool = "<B", string = "<s8" }
local numbers = { u8 = 0, u16 = 2, u32 = 4, i32 = 5, f32 = 6, bool = 7, string = 8, array = 9, u64 = 10 }

-- A value of metadata with its type: { kind, value }, or { kind, list } of an array.
local function typed(kind, value)
    if type(value) ~= "table" then return string.pack("<I4", numbers[kind]) .. string.pack(formats[kind], value) end
    local parts = { string.pack("<I4I4I8", numbers.array, numbers[kind], #value) }
    for i, item in ipairs(value) do
        parts[i + 1] = string.pack(formats[kind], item)
    end
    return table.concat(parts)
end

-- metadata: { { key, kind, value } }; tensors: { { name, shape, type = 0, bytes = 4 for each element, at = offset } },
-- shapes with the dimension of rows last. options: version, tensors, entries, alignment.
function gguf.file(metadata, tensors, options)
    local o = options or {}
    local alignment, at, data = o.alignment or 32, 0, {}
    local parts = { "GGUF", string.pack("<I4I8I8", o.version or 3, o.tensors or #tensors, o.entries or #metadata) }
    for _, row in ipairs(metadata) do
        parts[#parts + 1] = string.pack("<s8", row[1]) .. (row.raw or typed(row[2], row[3]))
    end
    for _, tensor in ipairs(tensors) do
        local count = 1
        parts[#parts + 1] = string.pack("<s8I4", tensor[1], #tensor[2])
        for i = #tensor[2], 1, -1 do
            parts[#parts + 1], count = string.pack("<I8", tensor[2][i]), count * tensor[2][i]
        end
        parts[#parts + 1] = string.pack("<I4I8", tensor.type or 0, tensor.at or at)
        local bytes = tensor.bytes or ("\0"):rep(4 * count)
        data[#data + 1] = bytes .. ("\0"):rep(-#bytes % alignment)
        at = at + #data[#data]
    end
    local header = table.concat(parts)
    return header .. ("\0"):rep(-#header % alignment) .. table.concat(data)
end

-- The rows of `list` with those of `more` in place of rows of the same first field, or behind them; { name } alone:
-- without that row.
function gguf.with(list, more)
    local result, places = {}, {}
    for i, row in ipairs(list) do
        result[i], places[row[1]] = row, i
    end
    for _, row in ipairs(more) do
        result[places[row[1]] or #result + 1] = row
    end
    for i = #result, 1, -1 do
        if #result[i] == 1 and not result[i].raw then table.remove(result, i) end
    end
    return result
end

-- A llama of one block: metadata and tensors.
gguf.metadata = {
    { "general.architecture", "string", "llama" },
    { "llama.embedding_length", "u32", 8 },
    { "llama.block_count", "u32", 1 },
    { "llama.context_length", "u32", 16 },
    { "llama.feed_forward_length", "u32", 4 },
    { "llama.attention.head_count", "u32", 2 },
    { "llama.attention.layer_norm_rms_epsilon", "f32", 1e-5 },
    { "tokenizer.ggml.model", "string", "llama" },
    { "tokenizer.ggml.tokens", "string", { "<unk>", "<s>", "</s>", "a", "b", "ab", "\u{2581}", "\u{2581}a" } },
    { "tokenizer.ggml.scores", "f32", { 0, 0, 0, -4, -5, -1, -6, -2 } },
    { "tokenizer.ggml.token_type", "i32", { 2, 3, 3, 1, 1, 1, 1, 1 } },
    { "tokenizer.ggml.bos_token_id", "u32", 1 },
    { "tokenizer.ggml.eos_token_id", "u32", 2 },
}
gguf.tensors = {
    { "token_embd.weight", { 8, 8 } },
    { "blk.0.attn_norm.weight", { 8 } },
    { "blk.0.attn_q.weight", { 8, 8 } },
    { "blk.0.attn_k.weight", { 8, 8 } },
    { "blk.0.attn_v.weight", { 8, 8 } },
    { "blk.0.attn_output.weight", { 8, 8 } },
    { "blk.0.ffn_norm.weight", { 8 } },
    { "blk.0.ffn_gate.weight", { 4, 8 } },
    { "blk.0.ffn_up.weight", { 4, 8 } },
    { "blk.0.ffn_down.weight", { 8, 4 } },
    { "output_norm.weight", { 8 } },
}

return gguf
