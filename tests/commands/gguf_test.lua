-- GGUF files: damaged ones end in one clear line, and so does what lookupc cannot do of a good one; its tokenizer is
-- that of files in other formats.
local changed = require "tests.support.changed"
local check = require "tests.support.check"
local gguf = require "tests.support.gguf"
local host = require "host"
local import = require "gen.import.import"
local program = require "tests.support.program"
local read = require "gen.tokenizer.read"
local small = require "tests.support.small_tokenizers"
local weights = require "weights"

local test = {}
local folder = program.folder()
local path = folder .. "/model.gguf"

local good = gguf.file(gguf.metadata, gguf.tensors)

-- Makes `path` that file; nobody waits for the disk.
local function write(bytes) assert(host.write_directory(folder, { ["model.gguf"] = bytes }, true)) end

-- What is said of a file of these bytes, which may be nothing.
local function said(bytes)
    write(bytes)
    local tensors, message = weights.tensors(path)
    local metadata, same = weights.metadata(path)
    check.equal({ tensors == nil, message }, { metadata == nil, same })
    if message then check.matches(message, "^" .. path:gsub("%p", "%%%0") .. ": [^\n]+$") end
    return message
end

function test.a_good_file_is_good()
    check.equal(said(good), nil)
    for _, parts in ipairs { 0, 1 } do -- merging leaves 0
        check.equal(said(gguf.file(gguf.with(gguf.metadata, { { "split.count", "u16", parts } }), gguf.tensors)), nil)
    end
    check.equal(said(gguf.file(gguf.metadata, gguf.tensors, { version = 2 })), nil)
    local tensors = assert(weights.tensors(path))
    check.equal(tensors["blk.0.ffn_down.weight"], { dtype = "F32", shape = { 8, 4 } })
    check.equal(assert(weights.metadata(path))["tokenizer.ggml.token_type"][2], 3)
    check.equal(program.works { "import", path, "-o", folder .. "/m.lua" }, "wrote " .. folder .. "/m.lua\n")
    program.works { "pack", folder .. "/m.lua", "--weights", path, "-o", folder .. "/m.bin" }
end

local function with_metadata(...) return gguf.file(gguf.with(gguf.metadata, { ... }), gguf.tensors) end
local function with_tensors(...) return gguf.file(gguf.metadata, gguf.with(gguf.tensors, { ... })) end
local function with_options(options) return gguf.file(gguf.metadata, gguf.tensors, options) end
local function raw(type, bytes) return { "x.y", raw = string.pack("<I4", type) .. bytes } end

local nested = string.pack("<I4I8", 9, 1):rep(5) .. string.pack("<I4I8", 0, 0)

-- One row a bad file: its bytes, and what is said.
local bad = {
    { with_options { version = 1 }, "version = 1: must be 2 or 3" },
    { with_options { version = 3 << 24 }, "version = 50331648: must be 2 or 3; this file is big-endian" },
    { with_options { tensors = 1 << 40 }, "tensor_count = 1099511627776: must be at most 65536" },
    { with_options { tensors = 60000 }, "tensor_count = 60000: the file has only" },
    { with_options { entries = 1 << 63 }, "metadata_kv_count = 9223372036854775808: must be at most 65536" },
    { with_options { entries = 12 }, "" },
    { with_metadata { "", "u8", 1 }, "a key of metadata: length 0: must be from 1 to 900" },
    { with_metadata { ("a"):rep(901), "u8", 1 }, "a key of metadata: length 901: must be" },
    { with_metadata { "a\0b", "u8", 1 }, "a key of metadata: a: must have no zero byte" },
    { with_metadata(raw(13, "")), "x.y: type 13: must be below 13" },
    { with_metadata(raw(7, "\2")), "x.y: 2: must be 0 or 1" },
    { with_metadata(raw(8, string.pack("<I8", -1))), "x.y: 18446744073709551615 bytes: the file has only" },
    { with_metadata(raw(9, string.pack("<I4I8", 14, 1))), "x.y: an array of type 14: must be below 13" },
    { with_metadata(raw(9, string.pack("<I4I8", 12, 1 << 61))), "2305843009213693952 elements: must be at most" },
    { with_metadata(raw(9, string.pack("<I4I8", 12, 1 << 20))), "x.y: 8388608 bytes: the file has only" },
    { with_metadata(raw(9, string.pack("<I4I8", 8, 1 << 24))), "x.y: " },
    { with_metadata(raw(9, nested)), "x.y: more than 4 arrays in arrays" },
    { with_metadata({ "x.y", "u8", 1 }, { "x.z", "u8", 1 }):gsub("x%.z", "x.y"), "x.y: stands twice" },
    { with_metadata { "general.alignment", "u32", 0 }, "general.alignment: must be from 1 to 1048576" },
    { with_metadata { "general.alignment", "u32", 12 }, "general.alignment = 12: must be a multiple of 8" },
    { with_metadata { "general.alignment", "i32", -8 }, "general.alignment: must be from 1" },
    { with_metadata { "general.alignment", "string", "8" }, "general.alignment: must be one whole number" },
    { with_metadata { "split.count", "u32", 2 }, "split.count = 2: must be 0 or 1: merge the parts" },
    { with_tensors { "x", { 1, 1, 1, 1, 1 } }, "tensor x: 5 dimensions: must be at most 4" },
    { with_tensors { "x", { 0 } }, "tensor x: dimension 0: must be from 1 on" },
    { with_tensors { "x", { 1 << 32, 1 << 32 }, bytes = "" }, "tensor x: dimension 4294967296: must be from 1" },
    { with_tensors { "x", { 1 << 62 }, bytes = "" }, "tensor x: the number of bytes overflows" },
    { with_tensors { "x", { 1 << 40 }, bytes = "" }, "tensor x: offset " },
    { with_tensors { "x", { 1 }, type = 16 }, "tensor x: type IQ2_XXS (16): must be F32, F16, BF16" },
    { with_tensors { "x", { 1 }, type = 20 }, "tensor x: type IQ4_NL (20): must be F32" },
    { with_tensors { "x", { 1 }, type = 36 }, "tensor x: type IQ4_NL_4_4 (36): must be F32" },
    { with_tensors { "x", { 1 }, type = 1000 }, "tensor x: type 1000: must be F32" },
    { with_tensors { "x", { 2, 40 }, type = 2 }, "tensor x: rows of 40: must be a multiple of 32 in Q4_0" },
    { with_tensors { "x", { 2, 32 }, type = 14 }, "tensor x: rows of 32: must be a multiple of 256 in Q6_K" },
    { with_tensors { "x", { 1 }, at = 4 }, "tensor x: offset 4: must be a multiple of the alignment, 32" },
    { with_tensors { "x", { 1 }, at = -32 }, "tensor x: offset 18446744073709551584, 4 bytes: the file has only" },
    { with_tensors { "x", { 1 }, at = 0 }, "overlaps tensor " },
    { with_tensors({ "x", { 1 } }, { "y", { 1 } }):gsub("y(\1\0\0\0\1)", "x%1"), "tensor x: stands twice" },
}

function test.each_field_has_a_rule()
    for i, row in ipairs(bad) do
        local message = said(row[1])
        if not message or not message:find(row[2], 1, true) then
            error(string.format("file %d: %q, expected %q", i, tostring(message), row[2]))
        end
    end
end

function test.a_file_is_named_by_its_ending_or_its_folder()
    write(good)
    assert(host.write_file(folder .. "/model.bin", good))
    for name, line in pairs {
        ["/model.bin"] = "/model.bin: is a GGUF file: give it a name that ends in .gguf",
        [""] = ": has neither config.json nor TensorFlow.js's model.json; it has model.gguf: give the path of",
    } do
        program.refuses(1, folder .. line, { "import", folder .. name, "-o", folder .. "/m.lua" })
    end
end

-- What import says of a good file with other metadata or tensors: its refusal, or its note.
local function imported(metadata, tensors)
    write(gguf.file(gguf.with(gguf.metadata, metadata), gguf.with(gguf.tensors, tensors or {})))
    local good_model, result = pcall(import.read, path, { output = folder .. "/m.lua", eliminate = "none" })
    return good_model and (result.note or result.text) or result
end

function test.what_import_cannot_do_is_refused()
    for i, row in ipairs {
        { { "general.architecture", "string", "mamba" }, "general.architecture = mamba: must be one of bert, gemma, " },
        { { "general.architecture" }, "general.architecture: is missing" },
        { { "llama.block_count" }, "llama.block_count: is missing" },
        { { "llama.block_count", "u32", 0 }, "llama.block_count = 0: must be at least 1" },
        { { "llama.block_count", "u32", 2147483647 }, "llama.block_count = 2147483647: must be at most 4096" },
        { { "llama.embedding_length", "u32", 1 << 31 }, "llama.embedding_length = 2147483648: must be at most 65536" },
        { { "llama.attention.key_length", "u32", 1 << 31 }, "key_length = 2147483648: must be at most 65536" },
        { { "llama.feed_forward_length", "u32", { 4, 4 } }, "feed_forward_length: must be one number, or equal ones" },
        { { "llama.attention.head_count", "u32", {} }, "head_count: must be one number, or equal ones of 1 layers" },
        { { "llama.attention.head_count_kv", "f32", { 2 } }, "head_count_kv = 2.0: must be an integer" },
        { { "llama.context_length", "u32", { 16 } }, "llama.context_length: must be an integer" },
        { { "llama.vocab_size", "u32", 9 }, "llama.vocab_size = 9: must be the rows of token_embd.weight, 8" },
        { { "llama.attention.causal", "bool", 0 }, "llama.attention.causal = false: is not known here" },
        { { "llama.attn_logit_softcapping", "f32", 50.0 }, "llama.attn_logit_softcapping = 50.0: is not known here" },
        { { "llama.attention.sliding_window", "u32", 4 }, "llama.attention.sliding_window = 4: is not known here" },
        { { "llama.logit_scale", "f32", 2.0 }, "llama.logit_scale = 2.0: is not known here" },
        { { "llama.rope.scaling.attn_factor", "f32", 2.0 }, "attn_factor = 2.0: must be 1 where rope.scaling.type is" },
        { { "llama.rope.scaling.type", "string", "yarn" }, "rope.scaling.factor: must be given and not 0, for yarn" },
        { { "llama.rope.freq_base", "f32", math.huge }, "llama.rope.freq_base = inf: must be finite" },
        { { "llama.expert_count", "u32", 8 }, "llama.expert_count = 8: is not known here" },
        { { "llama.rope.scaling.type", "string", "longrope" }, "scaling.type = longrope: must be none, linear" },
        { { "llama.rope.dimension_count", "u32", 3 }, "llama.rope.dimension_count = 3: must be even and" },
        { { "llama.attention.value_length", "u32", 2 }, "llama.attention.value_length = 2: must be 4, as" },
        { { "tokenizer.ggml.model", "string", "t5" }, 'no tokenizer: %s: tokenizer.ggml.model = "t5": must be gpt2' },
        { { "tokenizer.ggml.model", "string", "gpt2" }, "no tokenizer: %s: tokenizer.ggml.pre: is missing" },
        { { "tokenizer.ggml.scores", "f32", { 1 } }, "tokenizer.ggml.scores = 1: must be as many as pieces, 8" },
        { { "tokenizer.ggml.scores", "string", { "" } }, "tokenizer.ggml.scores = 1: must be as many" },
        { { "tokenizer.ggml.token_type", "i32", { 2, 3, 3, 1, 1, 1, 1, 7 } }, "token_type.7 = 7: must be an integer" },
        { { "tokenizer.ggml.bos_token_id", "u32", 8 }, "tokenizer.ggml.bos_token_id = 8: is the id of no piece" },
        { { "tokenizer.ggml.bos_token_id" }, "tokenizer.ggml.bos_token_id: is missing" },
        { { "tokenizer.ggml.add_bos_token", "u8", 1 }, "tokenizer.ggml.add_bos_token: must be a boolean" },
    } do
        local message = imported { row[1] }
        local expected = row[2]:gsub("%%s", (path:gsub("%%", "%%%%")))
        if not message:find(expected, 1, true) then
            error(string.format("file %d: %q, expected %q", i, message, expected))
        end
    end
    local unknown = { { "tokenizer.ggml.model", "string", "gpt2" }, { "tokenizer.ggml.pre", "string", "other" } }
    check.matches(imported(unknown), 'tokenizer%.ggml%.pre = "other": is no split that is known here')
    check.matches(imported({}, { { "rope_freqs.weight", { 2 } } }), "rope_freqs%.weight: must be the factors of")
    check.matches(imported({}, { { "token_embd.weight" } }), "tensor token_embd%.weight: is missing")
    check.matches(imported({}, { { "token_embd.weight", { 7, 8 } } }), "has 8 pieces, more than vocab_size = 7")
end

-- What a file may say without another model for it.
function test.keys_that_change_nothing()
    local plain = imported {}
    for _, row in ipairs {
        { "llama.attention.head_count_kv", "u32", { 2 } },
        { "llama.feed_forward_length", "u32", { 4 } },
        { "llama.attention.causal", "bool", 1 },
        { "llama.attention.clamp_kqv", "f32", 0 },
        { "llama.expert_count", "u32", 0 },
        { "llama.logit_scale", "f32", 1.0 },
        { "llama.rope.scale_linear", "f32", 1.0 },
        { "llama.rope.scaling.attn_factor", "f32", 1.0 },
        { "llama.rope.scaling.factor", "f32", 0 },
        { "llama.rope.scaling.finetuned", "bool", 1 },
        { "llama.rope.scaling.original_context_length", "u32", 8 },
        { "llama.rope.scaling.type", "string", "linear" },
        { "llama.tensor_data_layout", "string", "Meta AI original pth" },
        { "llama.vocab_size", "u32", 8 },
    } do
        local text = imported { row }
        if text ~= plain then error(row[1] .. ": " .. text) end
    end
end

-- A good file of another architecture, whose blocks have these tensors; more: what is added to or taken from both.
local function of_architecture(name, blocks, metadata, tensors)
    local keys, list = {}, {}
    for i, row in ipairs(gguf.metadata) do
        keys[i] = row[3] == "llama" and row[1]:find "^general" and { row[1], "string", name }
            or { (row[1]:gsub("^llama", name)), row[2], row[3] }
    end
    for i, row in ipairs(gguf.tensors) do
        list[i] = row[1]:find "^blk" and { row[1] } or row
    end
    for part, shape in pairs(blocks) do
        list[#list + 1] = shape and { "blk.0." .. part, shape } or nil
    end
    table.sort(list, function(a, b) return a[1] < b[1] end)
    return gguf.file(gguf.with(keys, metadata or {}), gguf.with(gguf.with({}, list), tensors or {}))
end

-- What pack says of the model that import makes of such a file; what import says, if it makes none.
local function packed(...)
    write(of_architecture(...))
    local good_model, result = pcall(import.read, path, { output = folder .. "/m.lua", eliminate = "none" })
    if not good_model then return result end
    assert(host.write_file(folder .. "/m.lua", result.text))
    return program.run({ "pack", folder .. "/m.lua", "--weights", path, "-o", folder .. "/m.bin" }).errors
end

function test.phi_has_the_tensors_that_it_needs()
    local phi3 = {
        ["attn_norm.weight"] = { 8 },
        ["attn_qkv.weight"] = { 24, 8 },
        ["attn_output.weight"] = { 8, 8 },
        ["ffn_norm.weight"] = { 8 },
        ["ffn_up.weight"] = { 8, 8 },
        ["ffn_down.weight"] = { 8, 4 },
    }
    local phi2 = {
        ["attn_norm.weight"] = { 8 },
        ["attn_norm.bias"] = { 8 },
        ["attn_qkv.weight"] = { 24, 8 },
        ["attn_output.weight"] = { 8, 8 },
        ["ffn_up.weight"] = { 4, 8 },
        ["ffn_down.weight"] = { 8, 4 },
    }
    local eps = { { "phi2.attention.layer_norm_epsilon", "f32", 1e-5 }, { "phi2.attention.layer_norm_rms_epsilon" } }
    local ends = { { "output_norm.bias", { 8 } }, { "output.bias", { 8 } } }
    check.equal({ packed("phi2", phi2, eps, ends), packed("phi3", phi3) }, { "", "" })
    local long = { "rope_factors_long.weight", { 2 } }
    for i, row in ipairs {
        { packed("phi2", phi2, eps, { ends[1] }), "tensor output.bias is missing" },
        { packed("phi2", changed(phi2, { ["attn_norm.bias"] = false }), eps, ends), "blk.0.attn_norm.bias is missing" },
        { packed("phi3", phi3, {}, { long }), "tensor rope_factors_long.weight: frequencies that change with" },
        { packed("phi3", phi3, { { "phi3.attention.sliding_window", "i32", -1 } }), "sliding_window = -1: must be at" },
        { packed("phi3", phi3, { { "phi3.attention.sliding_window", "u32", 5 } }), "" },
        { packed("phi3", phi3, { { "phi3.attention.head_count_kv", "u32", 1 } }), "shape [24][8]: must be [16][8]" },
        { packed("phi3", changed(phi3, { ["ffn_up.weight"] = { 4, 8 } })), "shape [4][8]: must be [8][8]" },
        { packed("phi3", changed(phi3, { ["attn_qkv.weight"] = false })), "tensor blk.0.attn_qkv.weight is missing" },
    } do
        if not row[1]:find(row[2], 1, true) or row[2] == "" and row[1] ~= "" then
            error(string.format("file %d: %q, expected %q", i, row[1], row[2]))
        end
    end
end

-- Each architecture with so many blocks as it may have at least, and what it cannot do without.
function test.one_block_of_each_architecture()
    local layernorm = { "attention.layer_norm_epsilon", "f32", 1e-5 }
    local positions = { "position_embd.weight", { 16, 8 } }
    for _, row in ipairs {
        { "bert", layernorm, positions },
        { "gemma" },
        { "gemma2" },
        { "gpt2", layernorm, positions },
        { "llama" },
        { "phi2", layernorm },
        { "phi3" },
        { "qwen2" },
        { "qwen3" },
    } do
        local name, eps, tensor = table.unpack(row)
        local rms = "attention.layer_norm_rms_epsilon"
        local metadata = eps and { { name .. "." .. rms }, { name .. "." .. eps[1], eps[2], eps[3] } } or {}
        local function text_of(tensors)
            write(of_architecture(name, {}, metadata, tensors))
            local good_model, result =
                pcall(import.read, path, { name = "m", output = folder .. "/m.lua", eliminate = "none" })
            return good_model, good_model and result.text or result
        end
        local good_model, text = text_of { tensor }
        if not good_model then error(text) end
        check.matches(text, "layers = 1,")
        if tensor then check.matches(select(2, text_of {}), "tensor position_embd%.weight: is missing$") end
    end
end

-- The scaling of the model file that such metadata and tensors become.
local function scaling_of(metadata, tensors)
    return load(imported(metadata, tensors))().attention.rope.scaling
end

function test.scaled_rotary_positions()
    check.equal(scaling_of {}, nil)
    local function kind(word) return { "llama.rope.scaling.type", "string", word } end
    local factor = { "llama.rope.scaling.factor", "f32", 4.0 }
    check.equal(scaling_of { kind "linear", factor }, { kind = "linear", factor = 4 })
    -- as llama.cpp reads it: linear without a type, of a factor that had another name
    check.equal(scaling_of { factor }, { kind = "linear", factor = 4 })
    check.equal(scaling_of { { "llama.rope.scale_linear", "f32", 4.0 } }, { kind = "linear", factor = 4 })
    check.equal(scaling_of { factor, { "llama.rope.scale_linear", "f32", 2.0 } }, { kind = "linear", factor = 4 })
    check.equal(scaling_of { factor, kind "none" }, nil)
    local original = { "llama.rope.scaling.original_context_length", "u32", 8 }
    local found = scaling_of { kind "yarn", factor, original, { "llama.rope.scaling.attn_factor", "f32", 2.0 } }
    check.near(found.attention_factor, 2 * (0.1 * math.log(4) + 1), 1e-6)
    found.attention_factor = nil
    check.equal(found, { kind = "yarn", factor = 4, original = 8, slow = 1, fast = 32 })
    -- Llama 3.2: of heads of 8 one pair turns seldom enough for the whole factor
    local wider, list = { { "llama.attention.head_count", "u32", 1 }, { "llama.rope.freq_base", "f32", 500000.0 } }, {}
    for i = 0, 3 do
        local kept = (8192 / (2 * math.pi * 500000 ^ (i / 4)) - 1) / 3
        kept = math.max(0, math.min(1, kept))
        list[i + 1] = 1 / ((1 - kept) / 32 + kept)
    end
    local whole = { "rope_freqs.weight", { 4 }, bytes = string.pack("<ffff", table.unpack(list)) }
    check.equal(
        scaling_of(wider, { whole }),
        { kind = "llama3", factor = 32, original = 8192, slow = 1, fast = 4 }
    )
    check.matches(imported({}, { whole }), "rope_freqs%.weight: 4 elements: must be at most 2")
    whole.bytes = string.pack("<ffff", 1, 2, 16, 32)
    check.matches(imported(wider, { whole }), "rope_freqs%.weight: must be the factors of Llama 3")
end

-- What a tokenizer's record is made of, without what says where it comes from.
local function record_of(file, keys)
    local r = read.record(file, keys)
    r.says_all, r.ends, r.no_pieces = nil, nil, nil
    for _, row in ipairs(r.added) do
        row.symbol = nil
    end
    table.sort(r.added, function(a, b) return a.id < b.id end)
    return r
end

function test.a_sentencepiece_tokenizer_is_that_of_its_model()
    write(good)
    local pieces = {}
    local metadata = assert(weights.metadata(path))
    for i, text in ipairs(metadata["tokenizer.ggml.tokens"]) do
        local kind, score = metadata["tokenizer.ggml.token_type"][i], metadata["tokenizer.ggml.scores"][i]
        pieces[i] = small.piece(text, kind, score)
    end
    -- BPE, without removing white space
    local model = table.concat(pieces) .. small.field(2, "\x18\2") .. small.field(3, "\x20\0")
    assert(host.write_file(folder .. "/t.model", model))
    local theirs = record_of(folder .. "/t.model", { first = "<s>", added = "<unk> <s> </s>" })
    local ours = record_of(path, {})
    check.equal({ theirs.real, theirs.penalty }, { "f32", 10.0 }) -- of unigram
    theirs.real, theirs.penalty = nil, nil
    check.equal(ours, theirs)
    local ends = { { "tokenizer.ggml.add_bos_token", "bool", 0 }, { "tokenizer.ggml.add_eos_token", "bool", 1 } }
    write(gguf.file(gguf.with(gguf.metadata, ends), {}))
    check.equal({ record_of(path, {}).first, record_of(path, {}).last }, { {}, { 2 } })
end

-- Where a text ends: what the file says of texts, turns and messages; where it does not, control pieces of known
-- spellings. Ids of no piece are ignored with a line.
function test.ids_that_end_a_text()
    local tokens = { "<unk>", "<s>", "</s>", "<|end|>", "<|eom_id|>", "a", "b", "c" }
    local types = { 2, 3, 3, 3, 3, 1, 1, 1 }
    local function key(role, kind, id) return { "tokenizer.ggml." .. role .. "_token_id", kind or "u32", id } end
    local function ends_of(...)
        local given = {
            { "tokenizer.ggml.tokens", "string", tokens },
            { "tokenizer.ggml.token_type", "i32", types },
            { "tokenizer.ggml.eos_token_id" },
        }
        local text = imported(gguf.with(given, { ... }))
        return text:match "ends = { ([%d, ]*) }" or text
    end
    check.equal(ends_of(), "2, 3, 4")
    check.equal(ends_of(key("eos", nil, 6), key("eot", nil, 7), key("eom", nil, 6)), "6, 7")
    check.equal(ends_of(key("eot", nil, 7)), "2, 7, 4")
    write(gguf.file(gguf.with(gguf.metadata, { key("eos", "i32", -1), key("eot", nil, 8) }), gguf.tensors))
    check.equal(read.record(path, {}).ends, { 2 })
    local lines = {}
    for i, said in ipairs { "eos_token_id = -1", "eot_token_id = 8" } do
        lines[i] = path .. ": tokenizer.ggml." .. said .. ": ignored: is the id of no piece"
    end
    check.equal(imported { key("eos", "i32", -1), key("eot", nil, 8) }, table.concat(lines, "\n"))
end

-- White space behind pieces of Phi 3 belongs to them, but for three; the architecture or the name says that it is one.
function test.pieces_of_phi_3_take_white_space_behind_them()
    local tokens = { "<unk>", "<s>", "</s>", "<|endoftext|>", "<|end|>", "<x>", "a", "b" }
    local function rights(...)
        local given = {
            { "tokenizer.ggml.tokens", "string", tokens },
            { "tokenizer.ggml.token_type", "i32", { 2, 3, 3, 3, 3, 4, 1, 1 } },
        }
        write(gguf.file(gguf.with(gguf.with(gguf.metadata, given), { ... }), {}))
        local list = {}
        for _, row in ipairs(read.record(path, {}).added) do
            if row.right then list[#list + 1] = row.text end
        end
        return table.concat(list, " ")
    end
    check.equal(rights(), "")
    check.equal(rights { "general.name", "string", "Phi 2" }, "")
    check.equal(rights { "general.name", "string", "Sophi-3b" }, "")
    check.equal(rights { "general.name", "string", "My Phi-3.5 mini" }, "</s> <|end|> <x>")
    check.equal(rights { "general.architecture", "string", "phi3" }, "</s> <|end|> <x>")
end

-- Llama 3 names its split, takes words that are pieces whole, and begins texts.
function test.llama_3_begins_texts_and_takes_pieces_whole()
    local tokens, kinds = {}, {}
    for text, id in pairs(small.byte_vocabulary(0)) do
        tokens[id + 1], kinds[id + 1] = text, 1
    end
    tokens[257], kinds[257], tokens[258], kinds[258] = "<|begin|>", 3, "unused piece", 5
    write(gguf.file({
        { "tokenizer.ggml.model", "string", "gpt2" },
        { "tokenizer.ggml.pre", "string", "llama-bpe" },
        { "tokenizer.ggml.tokens", "string", tokens },
        { "tokenizer.ggml.token_type", "i32", kinds },
        { "tokenizer.ggml.bos_token_id", "u32", 256 },
    }, {}))
    local r = record_of(path, {})
    check.equal({ r.split, r.whole_words, r.first, r.broken }, { "llama3", true, { 256 }, "keep" })
    check.equal(r.added, { { id = 256, text = "<|begin|>", left = false, right = false } })
    check.equal({ r.pieces[257].type, r.pieces[258].type }, { "control", "control" })
end

return test
