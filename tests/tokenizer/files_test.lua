-- Files of tokenizers: what is wrong in one is said in one line, and what the emitted C cannot do is refused.
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local models = require "gen.families.model_file"
local plan = require "gen.families.tokenizer.plan"
local program = require "tests.support.program"
local read = require "gen.tokenizer.read"
local small = require "tests.support.small_tokenizers"

local field, piece, hugging_face = small.field, small.piece, small.hugging_face

local test = {}

local function number_field(number, value) return string.char(number << 3 & 127 | 128, number >> 4, value) end

local function model_file(folder, fields)
    local path = folder .. "/m.lua"
    assert(host.write_file(path, 'return { name = "m", tokenizer = { ' .. fields .. " } }\n"))
    return path
end

-- An added piece that is found in text whose spaces have become `to`.
local function normalized(text, to, more)
    return hugging_face(function(o)
        o.normalizer = { type = "Replace", pattern = { String = " " }, content = to }
        o.added_tokens = json.array { { id = 256, content = text, normalized = true } }
        for key, value in pairs(more or {}) do
            o.added_tokens[1][key] = value
        end
    end)
end

-- GPT-2's split with a behaviour of its own.
local function split_by(behavior, invert)
    local pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
    return hugging_face(function(o)
        local split = { type = "Split", pattern = { Regex = pattern }, behavior = behavior, invert = invert }
        o.pre_tokenizer.use_regex = false
        o.pre_tokenizer = { type = "Sequence", pretokenizers = { split, o.pre_tokenizer } }
    end)
end

-- A split by a pattern of its own.
local function split_on(pattern, behavior)
    return hugging_face(
        function(o)
            o.pre_tokenizer = { type = "Split", pattern = { Regex = pattern }, behavior = behavior or "Isolated" }
        end
    )
end

local function behind_byte_level(object)
    return hugging_face(
        function(o) o.pre_tokenizer = { type = "Sequence", pretokenizers = { o.pre_tokenizer, object } } end
    )
end

-- A tokenizer.json of `model` with an added piece.
local function with_added(text, id, model)
    return assert(json.encode {
        added_tokens = { { id = id, content = text, special = true, normalized = false } },
        model = model,
    })
end

-- One row a bad file: its name, its bytes, keys beside file, and the line that lookupc ends with.
local rows = {
    { "t.bin", "", "", "t.bin: must end in .json, .txt, .model or .gguf" },
    { "t.json", "{", "", "t.json: " },
    { "t.json", "3", "", "t.json: " },
    { "t.json", hugging_face(function(o) o.model.type = "WordLevel" end), "", 'model.type = "WordLevel": must be' },
    { "t.json", hugging_face(function(o) o.model.dropout = 0.1 end), "", "model.dropout = 0.1: is not supported" },
    { "t.json", hugging_face(function(o) o.model.extra = 1 end), "", "model.extra = 1: is not supported" },
    { "t.json", hugging_face(function(o) o.model.vocab.a = nil end), "", "vocab = 97" },
    { "t.json", hugging_face(function(o) o.model.vocab.a = 98 end), "", "is the id of" },
    { "t.json", hugging_face(function(o) o.model.merges[1] = "a" end), "", 'model.merges.0 = "a": must be two pieces' },
    { "t.json", hugging_face(function(o) o.model.merges[1] = "a bc" end), "", 'merges.1 = "bc": is no piece' },
    { "t.json", normalized("<x_y>", "_"), "", "normalized = true: is not supported beside a normalizer" },
    { "t.json", normalized("<x>", "_", { lstrip = true }), "", "added_tokens.0.normalized = true: is not supported" },
    { "t.json", hugging_face(function(o) o.normalizer = { type = "Nmt" } end), "", 'normalizer.type = "Nmt"' },
    {
        "t.json",
        hugging_face(function(o)
            o.normalizer = { type = "Replace", pattern = { Regex = "a+" }, content = "" }
            o.added_tokens = nil
        end),
        "",
        'normalizer.pattern = "a+": is no regular expression',
    },
    { "t.json", behind_byte_level { type = "ByteLevel" }, "", "pretokenizers.1.type: a second ByteLevel is not" },
    { "t.json", split_on("a", "Other"), "", 'pre_tokenizer.behavior = "Other": is not supported' },
    { "t.json", split_on "", "", 'pre_tokenizer.pattern = "": must have 1 to 4096 bytes' },
    { "t.json", split_by("Removed", false), "", 'behavior = "Removed": leaves nothing of any text by this pattern' },
    { "t.json", split_by("Other", false), "", 'behavior = "Other": is not supported' },
    { "t.json", split_by("Removed", 1), "", "invert = 1: must be a boolean" },
    { "t.json", '{"model":{"vocab":{"a\\u0000":0}}}', "", "a key has the character U+0000" },
    { "t.json", hugging_face(function(o) o.post_processor.type = "Other" end), "", 'post_processor.type = "Other"' },
    { "t.json", hugging_face(function(o) o.added_tokens[1].single_word = 1 end), "", "single_word = 1: must be a" },
    { "t.json", hugging_face(function() end), 'kind = "unigram"', 'kind = "bpe": the model file says unigram' },
    { "t.json", hugging_face(function() end), "lower = true", "lower: is for vocab.txt" },
    { "t.json", '[["\u{fffd}",0],["a","b"]]', "", "pieces.1: must be a list of a piece and its score" },
    { "t.json", '[["a",-1]]', "", "pieces.0.score = -1: must be 0" },
    { "t.json", '{"a":0}', "", "t.json: is a vocab.json, which needs its merges: " },
    { "t.json", '{"name":"a"}', "", "t.json: is no tokenizer: must be" },
    { "t.json", "{}", "", "t.json: is no tokenizer: must be" },
    { "t.model", "", "", "t.model: is empty" },
    { "t.txt", "a\n", "", "lower: is missing" },
    { "t.txt", "a\n[UNK]\na\n", "lower = true", 'line.3 = "a": stands in line 1 already' },
    { "t.txt", "a\n[CLS]\n[SEP]\n", "lower = true", "[UNK]: is missing" },
    { "t.json", hugging_face(function() end), 'added = "<x>"', "added: is for other files" },
    { "t.json", hugging_face(function() end), 'last = "<y>"', 'last = "<y>": is no piece' },
    {
        "t.json",
        hugging_face(
            function(o) o.post_processor = { type = "BertProcessing", sep = { "<x>", 256 }, cls = { "<x>", 256 } } end
        ),
        'last = "<x>"',
        "last: is for other files",
    },
    { "t.txt", "[UNK]\n[CLS]\n[SEP]\n", 'lower = true, space = "first"', "space: is for SentencePiece's .model" },
    { "t.txt", "[UNK]\n[CLS]\n[SEP]\n", 'lower = true, first = "<s>"', 'first = "<s>": is no piece' },
    { "t.model", piece("?", 2) .. piece("a", 1), 'ids = "fairseq"', 'ids = "fairseq": needs unigram pieces that' },
    { "t.model", "no", "", "model: is no message" },
    { "t.model", field(2, "\x18\x03"), "", "trainer_spec.model_type = 3" },
    { "t.model", piece("a", 1), "", "has no piece of type unknown" },
    { "t.model", piece("a", 4), "", 'pieces.0 = "user defined": must be of type' },
    { "t.model", piece("?", 2) .. piece("a", 1) .. piece("a", 1), "", 'pieces.2 = "a": is piece 1 already' },
    { "t.model", piece("?", 2) .. field(2, number_field(35, 1)), "", "<0x00>" },
    { "t.model", piece("?", 2) .. field(3, field(2, "\4\0\0\0\1\2\3\4a")), "", "precompiled_charsmap: is damaged" },
    { "t.model", piece("?", 2) .. field(3, "\x15\0\0\0\0"), "", "normalizer_spec.field 2: is of type float: must" },
    { "t.model", piece("?", 2) .. field(2, field(3, "a")), "", "trainer_spec.field 3: is of type string: must" },
    { "t.model", piece("?", 2) .. field(1, number_field(2, 1)), "", "pieces.1.field 2: is of type integer: must" },
    { "t.model", piece("?", 2) .. number_field(2, 1), "", "model.field 2: is of type integer: must be of type string" },
}

-- Patterns, and what is said of them.
local patterns = {
    { "a(b", 'pre_tokenizer.pattern = "a(b": character 2, "(": has no end' },
    { "a)b", 'character 2, ")": has no beginning' },
    { "a|*", 'character 3, "*": has nothing to repeat' },
    { "^a", 'character 1, "^": is no anchor that is supported' },
    { "a\\b", 'character 3, "b": is no escape that is supported' },
    { "\\p{Han}", 'character 3, "{": must be {L}, {Lu} or another general category' },
    { "(?<=a)b", 'character 1, "(": begins no group that is supported' },
    { "a(?!bc)", 'character 2, "(": looks ahead for what is not one character' },
    { "[[:alpha:]]", 'character 2, "[": within brackets must have a backslash before it' },
    { "[z-a]", 'character 2, "z": must begin a range of characters that rise' },
    { "[ab", 'character 1, "[": has no end' },
    { "(?i:\u{e9})", "is beyond ASCII, within (?i: )" },
    { "(?i:\\p{Lu})", "is a case, within (?i: )" },
    { "a{2,1}", 'character 2, "{": must begin counts that rise from 0 to 255' },
    { "a{1,3}+", 'character 7, "+": behind {n,m} repeats it in some libraries' },
    { "(?:ab)++", 'character 8, "+": is possessive, of what is not one character' },
    { "a+?", 'character 3, "?": behind a quantifier is not supported' },
    { "(?:a?)*", 'character 1, "(": may be empty and is repeated' },
    { "a*", 'pre_tokenizer.pattern = "a*": may match nothing' },
    { "a+b|a", "may take time in proportion to the square of the text" },
    { "(?:(?:a{99}){99})", "takes more than 1024 places" },
    { "[ab]*a[ab]{9}", "takes more than 255 states" },
    { ("\u{ff5c}"):rep(50) .. "a+?", 'pattern = "' .. ("\u{ff5c}"):rep(19) .. '...": character 53, "?": behind' },
    { ("\u{e9}"):rep(50) .. "a+?", 'pattern = "' .. ("\u{e9}"):rep(28) .. '...": character 53, "?": behind' },
    { ("("):rep(33), 'character 33, "(": is nested deeper than 32' },
}

function test.patterns_that_are_refused()
    local path = program.folder() .. "/t.json"
    for _, row in ipairs(patterns) do
        assert(host.write_file(path, split_on(row[1])))
        local good, message = pcall(read.record, path, {})
        check.equal(good, false)
        check.equal(message:find(path .. ": pre_tokenizer.pattern = ", 1, true), 1)
        check.equal(message:find("\n", 1, true), nil)
        check.equal({ row[1], message:find(row[2], 1, true) ~= nil }, { row[1], true })
    end
end

-- Matches of these patterns are all of a text: only Removed and Contiguous make other words of it.
function test.behaviours_of_a_split()
    local path = program.folder() .. "/t.json"
    local function words_of(behavior, invert)
        assert(host.write_file(path, split_by(behavior, invert)))
        return read.record(path, {}).split
    end
    for _, behavior in ipairs { "Isolated", "MergedWithPrevious", "MergedWithNext" } do
        check.equal({ words_of(behavior, false), words_of(behavior, true) }, { "gpt2", "gpt2" })
    end
    check.equal(words_of("Removed", true), "gpt2")
    check.equal({ words_of("Contiguous", false), words_of("Contiguous", true) }, { "none", "none" })
end

-- Whatever id the file gives it, as Hugging Face reads it.
function test.an_added_piece_of_the_vocabulary_has_the_id_of_that()
    local folder = program.folder()
    local path = model_file(folder, 'file = "t.json"')
    local function write(text) assert(host.write_file(folder .. "/t.json", text)) end
    for _, model in ipairs {
        { type = "WordPiece", vocab = { a = 0, ["[UNK]"] = 1 }, unk_token = "[UNK]" },
        { type = "Unigram", vocab = { { "a", -1.0 }, { "<unk>", 0.0 } }, unk_id = 1 },
    } do
        write(with_added("a", 2, model))
        local r = read.record(folder .. "/t.json", {})
        check.equal({ r.added[1].id, #r.pieces }, { 0, 2 })
    end
    write(hugging_face(function(o)
        o.added_tokens[1].content, o.added_tokens[2] = "a", { id = 300, content = "\u{e9}" }
        o.model.vocab.bc, o.model.merges = 256, json.array { "b c" }
    end))
    check.equal(program.works { "tokenize", path, "abc\u{e9}\u{e8}" }, "97 256 233 195 168\n")
end

-- Where the normalizer leaves it alone.
function test.normalized_pieces()
    local folder = program.folder()
    local path = model_file(folder, 'file = "good.json"')
    assert(host.write_file(folder .. "/good.json", normalized("<x>", "_")))
    check.equal(program.works { "tokenize", path, "a <x> b" }, "97 95 256 95 98\n")
end

-- Where the normalizer may change them, or make another text to one, their place in normalised text is not known.
function test.pieces_that_a_normalizer_leaves_alone()
    local path = program.folder() .. "/t.json"
    local function reads(normalizer, text)
        local object = hugging_face(function(o)
            o.normalizer = { type = normalizer }
            o.added_tokens = json.array { { id = 256, content = text, normalized = true } }
        end)
        assert(host.write_file(path, object))
        return (pcall(read.record, path, {}))
    end
    local marks = { NFC = "|a| 1", NFD = "| 1", NFKC = "\u{2581}", Lowercase = "1.  \u{4e2d}" }
    for normalizer, text in pairs(marks) do
        check.equal({ text, reads(normalizer, text) }, { text, true })
    end
    for _, row in ipairs {
        { "NFC", "|a>" }, -- a mark joins the last one
        { "NFC", "|K|" }, -- the Kelvin sign becomes it
        { "NFC", "|\u{e9}|" }, -- a letter and a mark become it
        { "NFC", "|\u{301}|" }, -- marks change places
        { "NFC", "\u{ac00}|" },
        { "NFD", "|a|" },
        { "NFKC", "|a|" },
        { "NFKD", "1" },
        { "Lowercase", "a" },
        { "Lowercase", "A" },
        { "StripAccents", "|" },
    } do
        check.equal({ row[1], row[2], reads(row[1], row[2]) }, { row[1], row[2], false })
    end
end

function test.bad_files_are_refused_in_one_line()
    for _, row in ipairs(rows) do
        local folder = program.folder()
        assert(host.write_file(folder .. "/" .. row[1], row[2]))
        local path = model_file(folder, string.format('file = "%s", %s', row[1], row[3]))
        program.refuses(1, row[4], { "plan", path })
    end
end

function test.bad_model_files_are_refused_in_one_line()
    local folder = program.folder()
    program.refuses(1, "tokenizer.file: is missing", { "plan", model_file(folder, "") })
    local missing = model_file(folder, 'file = "none.json"')
    program.refuses(1, 'tokenizer.file = "none.json": there is no file ', { "plan", missing })
    program.refuses(1, 'tokenizer.kind = "x"', { "plan", model_file(folder, 'kind = "x"') })
    program.refuses(1, "needs a file", { "plan", model_file(folder, 'kind = "bytes", lower = true') })
    program.refuses(1, 'first = "a": needs a file', { "plan", model_file(folder, 'kind = "bytes", first = "a"') })
    local no_ids = model_file(folder, 'kind = "bytes", ends = { "a" }')
    program.refuses(1, "tokenizer.ends = {...}: must be a list of ids", { "plan", no_ids })
    local far = model_file(folder, 'kind = "bytes", ends = { 10, 256 }')
    program.refuses(1, "m.lua:1: tokenizer.ends = 256: is the id of no piece", { "plan", far })
    program.refuses(1, "must be pieces with a space between", { "plan", model_file(folder, 'file = "a", added = " "') })
    program.refuses(1, "has no file", { "plan", model_file(folder, 'kind = "bytes", file = "a.json"') })
end

function test.commands_for_weights_refuse_a_tokenizer()
    local folder = program.folder()
    local path = model_file(folder, 'kind = "bytes"')
    program.refuses(1, "has no weights", { "sample", path, "-o", folder .. "/w" })
    program.refuses(2, "has no weights", { "pack", path, "--weights", path, "-o", folder .. "/b" })
    program.refuses(1, "has no choices", { "schedules", path })
    program.refuses(1, "has no choices", { "tune", path })
    program.refuses(2, "is not for a tokenizer", {
        "emit",
        path,
        "--profile",
        "firmware",
        "--target",
        "cortex-m4f",
        "--weights",
        path,
        "-o",
        folder .. "/f",
    })
    program.refuses(1, "is a tokenizer", { "verify", path })
    program.refuses(1, "is a tokenizer", { "bench", path })
    program.refuses(2, "--type: bf16: is for a transformer", { "emit", path, "--type", "bf16", "-o", folder .. "/e" })
    local how = "gen/models/sentence_encoder.lua: tokenizer: is missing: text needs one, and ./build.sh models makes"
    program.refuses(1, how, { "tokenize", "gen/models/sentence_encoder.lua", "a" })
    program.refuses(1, "only models that have one take text", { "tokenize", "gen/models/tiny.lua", "a" })
    program.refuses(2, "--weights is missing", { "pack", "gen/models/tiny.lua", "-o", folder .. "/b" })
end

-- Where a text ends: at the ids of the model file, else at control pieces of known spellings, of texts before turns.
function test.ids_that_end_a_text()
    local folder = program.folder()
    local added = { "<|eom_id|>", "<|im_end|>", "<x>", "<|endoftext|>" }
    local file = hugging_face(function(o)
        o.model.vocab["</s>"] = 256 -- a piece like others
        for i, text in ipairs(added) do
            o.added_tokens[i] = { id = 256 + i, content = text, special = true, normalized = false }
        end
    end)
    assert(host.write_file(folder .. "/t.json", file))
    for more, expected in pairs {
        [""] = { 260, 258, 257 },
        [", ends = { 256, 97 }"] = { 256, 97 },
        [", ends = {}"] = {},
    } do
        local _, _, ends = plan.facts(models.load(model_file(folder, 'file = "t.json"' .. more)))
        check.equal({ more, ends }, { more, expected })
    end
end

-- A model file without a tokenizer takes text with --tokenizer, as one with it does.
function test.a_tokenizer_beside_the_model_file()
    local folder = program.folder()
    local text = 'return { name = "m", d = 8, heads = 1, layers = 1, vocab = 257, positions = 16, skip = true, \z
        norm = { kind = "layernorm" }, attention = { context = 16, causal = false }, \z
        ffn = { kind = "mlp", f = 8, activation = "relu" }, embedding = {}, output = { pool = "mean" }, \z
        checkpoint = "mingpt"%s }\n'
    local file, weights, plain, whole = folder .. "/t.json", folder .. "/w", folder .. "/p.lua", folder .. "/m.lua"
    assert(host.write_file(file, hugging_face(function() end)))
    assert(host.write_file(plain, text:format ""))
    assert(host.write_file(whole, text:format ', tokenizer = { file = "t.json" }'))
    program.works { "sample", plain, "-o", weights }
    local function embed(...)
        return { "embed", ..., "--weights", weights, "--isa", "scalar", "--cflags", "-O0", "ab<x>" }
    end
    program.refuses(2, "--tokenizer: " .. file .. ": cannot be given beside tokenizer of " .. whole, {
        "tokenize",
        whole,
        "--tokenizer",
        file,
        "a",
    })
    check.equal(program.works { "tokenize", plain, "--tokenizer", file, "ab<x>" }, "97 98 256\n")
    local words = embed(plain)
    program.refuses(1, "p.lua: tokenizer: is missing: text needs one", words)
    words[#words + 1], words[#words + 2] = "--tokenizer", file
    check.equal(program.works(words), program.works(embed(whole)))
    program.refuses(2, "--tokenizer: t.json: is for a whole model, not for a LookupFFN", {
        "tokenize",
        "gen/models/tiny.lua",
        "--tokenizer",
        "t.json",
        "a",
    })
end

-- A good file gives ids; a bundle of it is fresh without the file, and stale when it was edited.
function test.a_bundle_is_checked_without_its_file()
    local folder = program.folder()
    assert(host.write_file(folder .. "/t.json", hugging_face(function() end)))
    local path = model_file(folder, 'file = "t.json"')
    check.equal(program.works { "tokenize", path, "a<x>\u{e9}" }, "97 256 195 169\n")
    local plan = json.decode(program.works { "plan", path, "--json" })
    check.equal(plan.tokenizer.pieces, 257)
    local bundle = folder .. "/bundle"
    program.works { "emit", path, "-o", bundle }
    assert(host.remove(folder .. "/t.json"))
    check.equal(program.works { "check", bundle }, bundle .. ": fresh\n")
    local manifest = assert(host.read(bundle .. "/MANIFEST.json"))
    assert(host.write_file(bundle .. "/MANIFEST.json", (manifest:gsub('"kind": "bpe"', '"kind": "unigram"'))))
    program.refuses(1, "MANIFEST.json: options.facts: is not what lookupc records", { "check", bundle })
    assert(host.write_file(bundle .. "/MANIFEST.json", manifest))
    assert(host.append_line(bundle .. "/m.c", "int edited;"))
    check.matches(program.run({ "check", bundle }).errors, "m.c: edited")
end

return test
