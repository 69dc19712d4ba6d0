-- `lookupc import` of folders: whole model files of configurations, and weights of TensorFlow.js and minGPT, which
-- become safetensors; what is damaged ends in one line and writes nothing.
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local gguf = require "tests.support.gguf"
local host = require "host"
local import = require "gen.import.import"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local request = require "gen.request.request"
local small = require "tests.support.small_tokenizers"

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()

-- A new folder with files by name: text, or tables that become JSON.
local made = 0
local function with_files(files)
    made = made + 1
    local path = folder .. "/" .. made
    assert(process.run { "mkdir", path })
    for name, content in pairs(files) do
        assert(
            host.write_file(path .. "/" .. name, type(content) == "string" and content or assert(json.encode(content)))
        )
    end
    return path
end

-- The model file of the folder as a table, and what import printed.
local function imported(path, ...)
    local output = path .. ".lua"
    local result = works { "import", path, "-o", output, ... }
    works { "plan", output }
    return assert(load(assert(host.read(output))))(), result
end

local bert = {
    model_type = "bert",
    architectures = json.array { "BertForMaskedLM" },
    hidden_size = 16,
    intermediate_size = 32,
    num_attention_heads = 2,
    num_hidden_layers = 2,
    vocab_size = 30,
    max_position_embeddings = 20,
    hidden_act = "gelu",
    layer_norm_eps = 1e-12,
    type_vocab_size = 2,
}
local llama = {
    model_type = "llama",
    hidden_size = 16,
    intermediate_size = 24,
    num_attention_heads = 2,
    num_hidden_layers = 2,
    vocab_size = 30,
    max_position_embeddings = 20,
    hidden_act = "silu",
    rms_norm_eps = 1e-5,
}

local function changed(config, changes)
    local copy = {}
    for _, source in ipairs { config, changes } do
        for key, value in pairs(source) do
            copy[key] = value
        end
    end
    return copy
end

function test.whole_encoders()
    local norm = { kind = "layernorm", eps = 1e-12 }
    local m = imported(with_files { ["config.json"] = bert })
    check.equal(m.embedding, { norm = norm })
    check.equal(m.output, {
        dense = { width = 16, activation = "gelu", norm = norm },
        head = { bias = true },
    })
    check.equal({ m.positions, m.token_types, m.tied, m.attention.causal, m.norm.place, m.skip }, {
        20,
        2,
        true,
        false,
        "post",
        true,
    })
    m = imported(with_files {
        ["config.json"] = changed(bert, {
            architectures = json.array { "BertForSequenceClassification" },
            id2label = { ["0"] = "no", ["1"] = "maybe", ["2"] = "yes" },
        }),
    })
    check.equal(m.output, { pool = "first", dense = { width = 16, activation = "tanh" }, classes = 3 })
    check.equal(m.tied, nil)
    m = imported(with_files {
        ["config.json"] = changed(bert, {
            model_type = "roberta",
            architectures = json.array { "RobertaForTokenClassification" },
            pad_token_id = 1,
            type_vocab_size = 1,
        }),
    })
    check.equal(m.output, { classes = 2 })
    check.equal({ m.embedding.first_position, m.attention.context, m.positions }, { 2, 18, 20 })
end

-- A folder as it is downloaded: bare names, old norms, and a pooler that nobody asked for.
function test.a_folder_is_packed_as_it_is()
    local path = with_files { ["config.json"] = changed(bert, { architectures = json.array { "BertModel" } }) }
    imported(path)
    local sampled = path .. "/sampled"
    works { "sample", path .. ".lua", "-o", sampled }
    program.python(
        [[
def bare(name):
    return name.replace("bert.", "").replace("LayerNorm.weight", "LayerNorm.gamma")
tensors = {bare(name): tensor for name, tensor in load(sys.argv[1]).items()}
tensors["pooler.dense.weight"], tensors["pooler.dense.bias"] = ("F32", np.ones((16, 16))), ("F32", np.ones(16))
save(sys.argv[2], tensors)
]],
        sampled,
        path .. "/model.safetensors"
    )
    local function pack(...) return { "pack", path .. ".lua", "--weights", path, "-o", path .. ".bin", ... } end
    refuses(
        1,
        "tensors pooler.dense.bias, pooler.dense.weight: are no part of model bert: the model file has no \z
            output.pool with output.dense; ",
        pack()
    )
    works(pack("--ignore", "pooler.*"))
    local blob = assert(host.read(path .. ".bin"))
    works { "pack", path .. ".lua", "--weights", sampled, "-o", path .. ".bin" }
    check.equal(assert(host.read(path .. ".bin")) == blob, true)
end

-- How a sentence-transformers folder makes one vector.
function test.sentence_transformers()
    local function modules(list) return changed({}, { ["modules.json"] = json.array(list) }) end
    local function module(word, path) return { type = "sentence_transformers.models." .. word, path = path } end
    local files = modules { module("Transformer", ""), module("Pooling", "1"), module("Normalize", "2") }
    files["config.json"] = changed(bert, { architectures = json.array { "BertModel" } })
    local path = with_files(files)
    assert(process.run { "mkdir", path .. "/1" })
    local settings = path .. "/1/config.json"
    assert(host.write_file(settings, '{ "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false }'))
    local m = imported(path)
    check.equal({ m.output, m.attention.context }, { { pool = "mean", unit = true }, 20 })
    -- the pooler is no part of such a model
    local function pack(...) return { "pack", path .. ".lua", "--weights", ..., "-o", path .. ".bin" } end
    local sampled = path .. "/sampled"
    works { "sample", path .. ".lua", "-o", sampled }
    local pooler = { "bert.pooler.dense.weight", "bert.pooler.dense.bias" }
    works(pack(checkpoints.with(sampled, pooler)))
    local other = checkpoints.with(sampled, { "bert.pooler.other.weight" })
    refuses(1, "tensor bert.pooler.other.weight: is no part", pack(other))
    assert(host.write_file(path .. "/sentence_bert_config.json", '{ "max_seq_length": 8, "do_lower_case": false }'))
    m = imported(path)
    check.equal({ m.attention.context, m.positions }, { 8, 20 })
    local function refused(name, text, message)
        assert(host.write_file(path .. "/" .. name, text))
        refuses(1, path .. "/" .. name .. ": " .. message, { "import", path, "-o", path .. ".lua" })
        assert(host.remove(path .. "/" .. name))
    end
    refused("sentence_bert_config.json", '{ "do_lower_case": true }', "do_lower_case = true: is not known here: only a")
    refused("sentence_bert_config.json", '{ "max_seq_length": 0 }', "max_seq_length = 0: must be at least 1")
    local prompt = '{ "prompts": { "query": "q: " }, "default_prompt_name": "query" }'
    refused("config_sentence_transformers.json", prompt, "default_prompt_name = query: a text before every text is not")
    assert(host.write_file(settings, '{ "pooling_mode_max_tokens": true }'))
    refuses(1, settings .. ": pooling_mode_max_tokens: is not known here", { "import", path, "-o", path .. ".lua" })
    files["modules.json"] = json.array { module("Dense", "2") }
    refuses(1, "modules.json: [1].type = sentence_transformers.models.Dense: must be Transformer, Pooling or", {
        "import",
        with_files(files),
        "-o",
        folder .. "/never.lua",
    })
end

function test.whole_decoders()
    local slides = "sliding_attention"
    local rms = { kind = "rmsnorm", eps = 1e-5 }
    for _, kind in ipairs { "llama", "mistral", "qwen2" } do
        local m = imported(with_files { ["config.json"] = changed(llama, { model_type = kind }) })
        check.equal({ m.output, m.embedding, m.checkpoint }, { { norm = rms, head = {} }, {}, nil })
    end
    local function attention(changes)
        return imported(with_files { ["config.json"] = changed(llama, changes) }).attention
    end
    local long = { max_position_embeddings = 8000 }
    for _, row in ipairs {
        { "mistral", {}, 4096 },
        { "mistral", { sliding_window = json.null }, nil },
        { "mistral", { sliding_window = 100 }, 100 },
        { "qwen2", { sliding_window = 100, max_window_layers = 0 }, nil },
        { "qwen2", { use_sliding_window = true }, nil },
        { "qwen2", { use_sliding_window = true, max_window_layers = 0 }, 4096 },
        { "qwen2", { use_sliding_window = true, layer_types = json.array { slides, slides } }, 4096 },
    } do
        check.equal(attention(changed(changed(long, { model_type = row[1] }), row[2])).window, row[3])
    end
    local m = imported(with_files { ["config.json"] = changed(llama, { model_type = "gemma2", head_dim = 8 }) })
    check.equal(m.output.head, { soft_cap = 30 })
    m = imported(with_files {
        ["config.json"] = {
            model_type = "gpt2",
            n_embd = 16,
            n_head = 2,
            n_layer = 2,
            n_positions = 20,
            vocab_size = 30,
            activation_function = "gelu_new",
        },
    })
    check.equal(
        { m.ffn, m.tied, m.positions, m.checkpoint, m.output.head },
        { { kind = "mlp", f = 64, activation = "gelu_tanh" }, true, 20, "gpt2", {} }
    )
    m = imported(with_files {
        ["config.json"] = changed(llama, {
            model_type = "gpt_neox",
            rms_norm_eps = json.null,
            hidden_act = "gelu",
            architectures = json.array { "GPTNeoXModel" },
        }),
    })
    check.equal(m.output, { norm = { kind = "layernorm", eps = 1e-5 } })
    refuses(1, "architectures = LlamaForQuestionAnswering: must end in one of CausalLM, LMHeadModel, Model", {
        "import",
        with_files { ["config.json"] = changed(llama, { architectures = json.array { "LlamaForQuestionAnswering" } }) },
        "-o",
        folder .. "/never.lua",
    })
    -- config.json alone gives the blocks.
    local path = with_files { ["config.json"] = llama }
    works { "import", path .. "/config.json", "-o", path .. ".lua" }
    check.equal(assert(load(assert(host.read(path .. ".lua"))))().embedding, nil)
end

-- The tokenizer of the folder, as the model file finds it from its own folder; one that lookupc cannot read is noted.
function test.tokenizers()
    local words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nlook\n##up\n"
    local path = with_files {
        ["config.json"] = bert,
        ["vocab.txt"] = words,
        ["tokenizer_config.json"] = { do_lower_case = false },
    }
    local m = imported(path)
    check.equal(m.tokenizer, { file = path:match "[^/]+$" .. "/vocab.txt", lower = false })
    assert(process.run { "mkdir", "-p", folder .. "/a/b" })
    works { "import", path, "-o", folder .. "/a/b/m.lua" }
    m = assert(load(assert(host.read(folder .. "/a/b/m.lua"))))()
    check.equal(m.tokenizer.file, "../../" .. path:match "[^/]+$" .. "/vocab.txt")
    assert(host.write_file(path .. "/tokenizer.json", '{ "model": { "type": "Other" } }'))
    local result
    m, result = imported(path)
    local other = "tokenizer%.json: model%.type = \"Other\": [^\n]*\n$"
    check.equal(m.tokenizer.lower, false)
    check.matches(result, "\ntokenizer from vocab%.txt: " .. path:gsub("%p", "%%%0") .. "/" .. other)
    assert(host.remove(path .. "/vocab.txt"))
    m, result = imported(path)
    check.equal(m.tokenizer, nil)
    check.matches(result, "\nno tokenizer: " .. path:gsub("%p", "%%%0") .. "/" .. other)
end

-- The class of Llama puts pieces around texts of a tokenizer.json that puts none there; by its own default, if there is
-- such a piece.
function test.pieces_that_the_class_adds()
    local function tokenizer_of(settings, map)
        local path = with_files {
            ["config.json"] = changed(llama, { vocab_size = 300 }),
            ["tokenizer.json"] = small.hugging_face(function() end),
            ["tokenizer_config.json"] = changed({ tokenizer_class = "LlamaTokenizerFast" }, settings),
            ["special_tokens_map.json"] = map,
        }
        local made = import.read(path, { output = path .. ".lua", eliminate = "none" })
        local t = assert(load(made.text))().tokenizer
        return t and { t.first, last = t.last } or made.note:match "_config%.json: (.*)"
    end
    local function bos(more) return changed({ bos_token = "<x>" }, more) end
    check.equal(tokenizer_of(bos { add_bos_token = true }), { "<x>" })
    check.equal(tokenizer_of(bos {}), { "<x>" })
    check.equal(tokenizer_of(bos { add_bos_token = false }), {})
    check.equal(tokenizer_of(bos { tokenizer_class = "PreTrainedTokenizerFast" }), {})
    check.equal(tokenizer_of({}, { bos_token = { content = "<x>" } }), { "<x>" })
    check.equal(tokenizer_of {}, {})
    local both = bos { add_bos_token = true, add_eos_token = true, eos_token = { content = "<x>" } }
    check.equal(tokenizer_of(both), { "<x>", last = "<x>" })
    local lacks = "add_bos_token = true: tokenizer.json has no bos_token"
    check.equal(tokenizer_of(bos { add_bos_token = true, bos_token = "<y>" }), lacks)
end

-- The ids that end a text: of the first file that names a piece; those of no piece are ignored with a line.
function test.ids_that_end_a_text()
    local function ends_of(config, generation)
        local path = with_files {
            ["config.json"] = changed(llama, { vocab_size = 300, eos_token_id = config }),
            ["generation_config.json"] = generation,
            ["tokenizer.json"] = small.hugging_face(function() end),
        }
        local made = import.read(path, { output = path .. ".lua", eliminate = "none" })
        return assert(load(made.text))().tokenizer.ends, made.note and made.note:gsub("^.*/", "")
    end
    check.equal({ ends_of() }, { nil })
    check.equal({ ends_of(3) }, { { 3 } })
    check.equal({ ends_of(json.null, {}) }, { nil })
    check.equal({ ends_of(3, { eos_token_id = json.array { 256, 4, 256 } }) }, { { 256, 4 } })
    check.equal({ ends_of(3, { eos_token_id = json.null }) }, { { 3 } })
    local ignored = "generation_config.json: eos_token_id = %s: ignored: is the id of no piece"
    check.equal({ ends_of(3, { eos_token_id = json.array { 257, 5 } }) }, { { 5 }, ignored:format "257" })
    check.equal({ ends_of(3, { eos_token_id = -1 }) }, { { 3 }, ignored:format "-1" })
    local path = with_files {
        ["config.json"] = changed(llama, { vocab_size = 300, eos_token_id = "</s>" }),
        ["tokenizer.json"] = small.hugging_face(function() end),
    }
    refuses(1, "config.json: eos_token_id = </s>: must be the id of a piece", { "import", path, "-o", path .. ".lua" })
end

-- Sections of tokenizer.json for batches do not count; settings that contradict it do.
function test.settings_beside_tokenizer_json()
    local function answer(settings, class, change)
        return select(
            2,
            imported(with_files {
                ["config.json"] = changed(llama, { vocab_size = 300 }),
                ["tokenizer.json"] = small.hugging_face(change or function() end),
                ["tokenizer_config.json"] = changed({ tokenizer_class = class }, settings),
            })
        )
    end
    local function cut_and_filled(object)
        object.truncation = { max_length = 128, direction = "Right", strategy = "LongestFirst", stride = 0 }
        object.padding = { strategy = { Fixed = 128 }, pad_id = 0, pad_token = "a" }
    end
    local result = answer({}, "GPT2TokenizerFast", cut_and_filled)
    check.matches(result, "/tokenizer%.json: ignored, texts keep all of their ids: truncation, padding\n$")
    check.equal(answer({ add_prefix_space = false }, "GPT2TokenizerFast"):find("tokenizer", 1, true), nil)
    for _, row in ipairs {
        { "GPT2TokenizerFast", "add_prefix_space" },
        { "BertTokenizer", "do_lower_case" },
    } do
        result = answer({ [row[2]] = true }, row[1])
        check.matches(result, "\nno tokenizer: [^\n]*: " .. row[2] .. " = true: contradicts tokenizer%.json\n$")
    end
    result = answer({ add_bos_token = false }, "LlamaTokenizer", function(o)
        o.post_processor = { type = "BertProcessing", sep = { "<x>", 256 }, cls = { "<x>", 256 } }
    end)
    check.matches(result, "\nno tokenizer: [^\n]*: add_bos_token = false: contradicts tokenizer%.json\n$")
end

-- A SentencePiece model: <unk>, <s>, </s>, and the letters ▁, a, b, c, <, >, s, / as unigram pieces or of BPE.
local function sentencepiece(kind)
    local parts = { small.piece("<unk>", 2), small.piece("<s>", 3), small.piece("</s>", 3) }
    for i, letter in ipairs { "\u{2581}", "a", "b", "c", "<", ">", "s", "/" } do
        parts[#parts + 1] = small.piece(letter, 1, -i)
    end
    local trainer = small.field(2, "\x18" .. string.char(kind))
    return table.concat(parts) .. trainer .. small.field(3, "\x20\0")
end

-- GPT-2's files with RoBERTa's pieces: the byte b has the id b + 4.
local function roberta_files(settings)
    local vocabulary = small.byte_vocabulary(4)
    for i, text in ipairs { "<s>", "<pad>", "</s>", "<unk>" } do
        vocabulary[text] = i - 1
    end
    vocabulary["<mask>"] = 260
    return {
        ["config.json"] = changed(bert, { model_type = "roberta", pad_token_id = 1, vocab_size = 261 }),
        ["vocab.json"] = vocabulary,
        ["merges.txt"] = "#version: 0.2\n",
        ["tokenizer_config.json"] = settings,
    }
end

-- The files of a folder as links to others without endings, as the cache of Hugging Face has them: named as given.
function test.folders_of_links()
    local script = 'mkdir "$1/b"; cd "$1" && for f in *.*; do mv "$f" "b/${f/./_}"; ln -s "b/${f/./_}" "$f"; done'
    local function linked(files)
        local path = with_files(files)
        check.equal(process.run({ "bash", "-c", script, "bash", path }).status, 0)
        return path
    end
    local words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nlook\n##up\n"
    local gpt2 = { model_type = "gpt2", n_embd = 16, n_head = 2, n_layer = 2, n_positions = 20, vocab_size = 257 }
    gpt2.activation_function = "gelu"
    local bytes = changed(small.byte_vocabulary(0), { ["<|endoftext|>"] = 256 })
    local wide = changed(llama, { vocab_size = 257 })
    local pieces = small.hugging_face(function() end)
    for _, row in ipairs {
        { "tokenizer.json", { ["config.json"] = wide, ["tokenizer.json"] = pieces } },
        { "tokenizer.model", { ["config.json"] = llama, ["tokenizer.model"] = sentencepiece(2) } },
        { "vocab.json", { ["config.json"] = gpt2, ["vocab.json"] = bytes, ["merges.txt"] = "" } },
        { "vocab.txt", { ["config.json"] = bert, ["vocab.txt"] = words } },
    } do
        local path = linked(row[2])
        local m = imported(path)
        check.equal(m.tokenizer.file, path:match "[^/]+$" .. "/" .. row[1])
    end
    local path = linked { ["t.json"] = pieces, ["m.gguf"] = gguf.file(gguf.metadata, gguf.tensors) }
    works { "import", path .. "/m.gguf", "-o", path .. ".lua" }
    works { "pack", path .. ".lua", "--weights", path .. "/m.gguf", "-o", path .. ".bin" }
    works { "import", linked { ["config.json"] = wide }, "-o", path .. ".lua" }
    local given = request.model(path .. ".lua", { tokenizer = path .. "/t.json" }).tokenizer.file
    check.equal(given:match "[^/]+/[^/]+$", path:match "[^/]+$" .. "/t.json")
end

-- Files other than tokenizer.json: the ids are those of Hugging Face's tokenizers in Python.
function test.slow_tokenizers()
    local function ids(files, text)
        local path = with_files(files)
        works { "import", path, "-o", path .. ".lua" }
        return (works({ "tokenize", path .. ".lua", text }):gsub("\n$", ""))
    end
    local xlm = {
        ["config.json"] = changed(bert, { model_type = "xlm-roberta", pad_token_id = 1, vocab_size = 13 }),
        ["sentencepiece.bpe.model"] = sentencepiece(1),
    }
    check.equal(ids(xlm, "ab d<pad> <mask>c</s>"), "0 4 5 6 4 3 1 12 4 7 2 2")
    check.equal(ids(roberta_files {}, "a<s>b <mask>< "), "0 101 0 102 260 64 36 2")
    local with_added = roberta_files { added_tokens_decoder = { ["261"] = { content = "<x>", lstrip = false } } }
    with_added["config.json"].vocab_size = 262
    with_added["special_tokens_map.json"] = { bos_token = "not read beside added_tokens_decoder" }
    check.equal(ids(with_added, "a<x>"), "0 101 261 2")
    local gpt2 = {
        ["config.json"] = {
            model_type = "gpt2",
            n_embd = 16,
            n_head = 2,
            n_layer = 2,
            n_positions = 20,
            activation_function = "gelu",
            vocab_size = 257,
        },
        ["vocab.json"] = changed(small.byte_vocabulary(0), { ["<|endoftext|>"] = 256 }),
        ["merges.txt"] = "",
    }
    check.equal(ids(gpt2, "a<|endoftext|>"), "97 256")
    gpt2["tokenizer_config.json"] = { add_bos_token = true, tokenizer_class = "GPT2TokenizerFast" }
    check.equal(ids(gpt2, "a"), "256 97")
    local decoder = { ["config.json"] = llama, ["tokenizer.model"] = sentencepiece(2) }
    check.equal(ids(decoder, "ab<s>c"), "1 3 4 5 1 3 6")
    decoder["tokenizer_config.json"] = { add_bos_token = false, add_eos_token = true, legacy = false }
    check.equal(ids(decoder, "ab<s>c"), "3 4 5 1 6 2")
end

-- Tokenizers whose ids lookupc cannot make for sure are left out, with a reason.
function test.slow_tokenizers_that_are_left_out()
    local function reason(fragment, files)
        local path = with_files(files)
        local result = works { "import", path, "-o", path .. ".lua" }
        check.equal(host.read(path .. ".lua"):find "tokenizer = ", nil)
        check.equal(result:match "\nno tokenizer: [^\n]*\n$" ~= nil, true)
        check.equal(result:find(fragment, 1, true) ~= nil or result, true)
    end
    local function roberta(fragment, settings, more) reason(fragment, changed(roberta_files(settings), more or {})) end
    roberta("tokenizer_config.json: add_prefix_space = true: is not known here", { add_prefix_space = true })
    roberta("vocab.json: what a CodeTokenizer makes of it is not known", { tokenizer_class = "CodeTokenizer" })
    roberta("<s>: white space before it belongs to it", { bos_token = { content = "<s>", lstrip = true } })
    roberta("mask_token.rstrip = true: is not known", { mask_token = { content = "<mask>", rstrip = true } })
    roberta("<x> has id 261 here, and 300 by the folder's files", {}, { ["added_tokens.json"] = { ["<x>"] = 300 } })
    roberta("has 262 pieces, more than vocab_size = 261", {}, { ["added_tokens.json"] = { ["<x>"] = 261 } })
    roberta("what the tokenizer of a qwen2 makes of it is not known here; a tokenizer.json would say it", {}, {
        ["config.json"] = changed(llama, { model_type = "qwen2", vocab_size = 261 }),
    })
    roberta("vocab.json: what a BertTokenizer makes of it is not known", {}, {
        ["config.json"] = changed(bert, { tokenizer_class = "BertTokenizer" }),
    })
    roberta("split_special_tokens = true: is not known here", { split_special_tokens = true })
    local decoder = {
        ["config.json"] = llama,
        ["tokenizer.model"] = sentencepiece(2),
        ["added_tokens.json"] = { ["<x>"] = 11 },
        ["tokenizer_config.json"] = { legacy = false },
    }
    reason("<x>: is added and not special: legacy = false is not known here beside it", decoder)
    local words = { ["config.json"] = bert, ["vocab.txt"] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n" }
    words["tokenizer_config.json"] = { cls_token = "a" }
    reason(": a: is an added piece, which is not known here", words)
    words["tokenizer_config.json"] = { strip_accents = false }
    reason("strip_accents = false: is not known here", words)
end

-- What holds weights instead of a configuration is answered with what to do.
function test.weights_are_no_configuration()
    local path = with_files { ["a.ckpt"] = "PK\3\4" .. ("\0"):rep(100), ["b.json"] = "no" }
    local words = { "import", path .. "/a.ckpt", "-o", folder .. "/never.lua" }
    local rule = "/a.ckpt: is not a safetensors file but a ZIP file, as PyTorch checkpoints are; convert it with"
    refuses(1, path .. rule, words)
    words[2] = path .. "/b.json"
    refuses(1, path .. "/b.json: 1:2: invalid token", words)
    words[2] = path .. "/c.safetensors"
    works { "sample", "gen/models/tiny.lua", "-o", words[2] }
    refuses(1, words[2] .. ": holds tensors: give the folder of the checkpoint, or its config.json", words)
end

local function floats(...) return string.pack("<" .. ("f"):rep(select("#", ...)), ...) end

-- A TensorFlow.js model: one tensor of each kind in two shards, whose border is inside a tensor.
local function tensorflow(changes)
    local bytes = floats(1, 2, 3, 4, 5, 6)
        .. string.pack("<BBB", 0, 10, 255)
        .. string.pack("<I2I2", 0, 65535)
        .. string.pack("<i4i4", 7, 8)
        .. string.pack("<I2I2", 0x3C00, 0xC000)
        .. floats(9)
    local function quantised(dtype, scale, min) return { dtype = dtype, scale = scale, min = min } end
    local weights = {
        { name = "a/b", shape = json.array { 2, 3 }, dtype = "float32" },
        { name = "u8", shape = json.array { 3 }, dtype = "float32", quantization = quantised("uint8", 0.5, -1) },
        { name = "u16", shape = json.array { 2 }, dtype = "float32", quantization = quantised("uint16", 2.0, 0) },
        { name = "ints", shape = json.array { 2 }, dtype = "int32" },
        { name = "half", shape = json.array { 2 }, dtype = "float32", quantization = { dtype = "float16" } },
        { name = "scalar", shape = json.array {}, dtype = "float32" },
    }
    local model = {
        modelTopology = {},
        weightsManifest = json.array { { paths = json.array { "one", "two" }, weights = json.array(weights) } },
    }
    local files = { one = bytes:sub(1, 10), two = bytes:sub(11) }
    if changes then changes(model.weightsManifest[1], files, weights) end
    files["model.json"] = model
    return with_files(files)
end

function test.weights_of_tensorflow()
    local path, output = tensorflow(), folder .. "/tf.safetensors"
    works { "import", path, "-o", output }
    local bytes = assert(host.read(output))
    local length = string.unpack("<I8", bytes)
    local header, data = json.decode(bytes:sub(9, 8 + length)), bytes:sub(9 + length)
    local function tensor(name)
        local entry = header[name]
        local from, to = table.unpack(entry.data_offsets)
        return { entry.dtype, table.concat(entry.shape, " "), data:sub(from + 1, to) }
    end
    check.equal(tensor "a/b", { "F32", "2 3", floats(1, 2, 3, 4, 5, 6) })
    check.equal(tensor "u8", { "F32", "3", floats(-1, 4, 126.5) })
    check.equal(tensor "u16", { "F32", "2", floats(0, 131070) })
    check.equal(tensor "half", { "F16", "2", string.pack("<I2I2", 0x3C00, 0xC000) })
    check.equal(tensor "scalar", { "F32", "", floats(9) })
    check.equal(header.ints, nil) -- no weights
    refuses(2, "is no model that is known here: -o WEIGHTS.safetensors writes its tensors", {
        "import",
        path,
        "-o",
        folder .. "/never.lua",
    })
end

function test.damaged_tensorflow()
    local never = folder .. "/never.safetensors"
    for _, case in ipairs {
        { function(_, files) files.two = nil end, "/two: No such file" },
        { function(_, files) files.two = files.two:sub(1, -2) end, "weights[6].shape: tensor scalar ends at byte 47" },
        { function(_, files) files.two = files.two .. "x" end, "weights: end at byte 47 of their shards, which have" },
        { function(group) group.paths = json.array { "../one" } end, "paths[1] = ../one: must be the name of a file" },
        { function(group) group.paths = nil end, "weightsManifest[1].paths: is missing" },
        { function(_, _, w) w[2].name = "a/b" end, "weights[2].name = a/b: is the name of another tensor" },
        { function(_, _, w) w[1].shape = json.array { 2, -3 } end, "weights[1].shape = -3: must be integers from 0" },
        { function(_, _, w) w[1].shape = json.array { 1 << 30, 1 << 30 } end, "shape: must hold at most" },
        { function(_, _, w) w[1].dtype = "string" end, "weights[1].dtype = string: must be float32, float16" },
        { function(_, _, w) w[2].quantization.dtype = "uint4" end, "quantization.dtype = uint4: must be uint8" },
        { function(_, _, w) w[2].quantization.scale = "1" end, "quantization.scale = 1: must be a number" },
        { function(_, _, w) w[3] = json.array {} end, "weights[3].name: is missing" },
    } do
        refuses(1, case[2], { "import", tensorflow(case[1]), "-o", never })
        check.equal(host.kind(never), nil)
    end
    refuses(1, ": has neither config.json nor TensorFlow.js's model.json", { "import", with_files {}, "-o", never })
    refuses(1, "model.json: weightsManifest = 3: must be a list", {
        "import",
        with_files { ["model.json"] = { weightsManifest = 3 } },
        "-o",
        never,
    })
end

-- minGPT's JSON: a whole model file, and its weights.
function test.mingpt()
    local state = 7
    local function values(count)
        local list = {}
        for i = 1, count do
            state = state * 1103515245 + 12345 & 0x7fffffff
            list[i] = (state >> 16 & 255) / 256 - 0.5
        end
        return floats(table.unpack(list))
    end
    local object = {
        config = { n_embd = 4, n_head = 2, n_layer = 1, vocab_size = 3, block_size = 5 },
    }
    local function base64(bytes)
        local result = assert(process.run({ "base64", "-w0", bytes }, { directory = folder }))
        return (result.output:gsub("%s", ""))
    end
    local function add(name, ...)
        local count = 1
        for _, n in ipairs { ... } do
            count = count * n
        end
        assert(host.write_file(folder .. "/bytes", values(count)))
        object[name] = { shape = json.array { ... }, dtype = "torch.float32", data = base64(folder .. "/bytes") }
    end
    add("transformer.wte.weight", 3, 4)
    add("transformer.wpe.weight", 5, 4)
    for _, norm in ipairs { "transformer.h.0.ln_1", "transformer.h.0.ln_2", "transformer.ln_f" } do
        add(norm .. ".weight", 4)
        add(norm .. ".bias", 4)
    end
    for name, shape in pairs { ["attn.c_attn"] = { 12, 4 }, ["attn.c_proj"] = { 4, 4 }, ["mlp.c_fc"] = { 16, 4 } } do
        add("transformer.h.0." .. name .. ".weight", table.unpack(shape))
        add("transformer.h.0." .. name .. ".bias", shape[1])
    end
    add("transformer.h.0.mlp.c_proj.weight", 4, 16)
    add("transformer.h.0.mlp.c_proj.bias", 4)
    add("transformer.h.0.attn.bias", 1, 1, 5, 5)
    add("lm_head.weight", 3, 4)
    local path = with_files { ["my-GPT.json"] = object } .. "/my-GPT.json"
    local output = folder .. "/gpt.lua"
    works { "import", path, "-o", output }
    check.equal(assert(load(assert(host.read(output))))().name, "my_gpt")
    works { "pack", output, "--weights", folder .. "/gpt.safetensors", "-o", folder .. "/gpt.bin" }
    local function damaged(fragment, change)
        local copy = changed(object, {})
        copy["transformer.ln_f.bias"] = changed(object["transformer.ln_f.bias"], change)
        refuses(1, "transformer.ln_f.bias." .. fragment, {
            "import",
            with_files { ["m.json"] = copy } .. "/m.json",
            "-o",
            folder .. "/never.lua",
        })
    end
    damaged("data: must be base64", { data = "a" })
    damaged("data: must be base64", { data = "a?==" })
    damaged("data: has 3 bytes: must be 16", { data = "abcd" })
    damaged("dtype = torch.float16: must be torch.float32", { dtype = "torch.float16" })
    damaged("shape = 3: must be a list", { shape = 3 })
end

return test
