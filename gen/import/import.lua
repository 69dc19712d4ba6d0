-- What `lookupc import` makes of a folder or a file: a model file, and weights where they are in another format.
local config_json = require "gen.import.config_json"
local families = require "gen.families.list"
local ends = require "gen.import.ends"
local fields = require "gen.import.fields"
local files_read = require "gen.host.files_read"
local fuse = require "gen.families.model.blocks.fuse"
local gguf = require "gen.import.gguf"
local host = require "host"
local json = require "json"
local mingpt_json = require "gen.import.mingpt_json"
local model_file = require "gen.families.model_file"
local model_text = require "gen.import.model_text"
local names = require "gen.schema.names"
local read_tokenizer = require "gen.tokenizer.read"
local sentence_encoder = require "gen.import.sentence_encoder"
local slow_tokenizer = require "gen.import.slow_tokenizer"
local tensorflow_js = require "gen.import.tensorflow_js"
local weights = require "weights"

local import = {}

local largest_json = 1 << 28 -- bytes

-- A name for emitted symbols out of any text.
local function name_from(text)
    local name = text:lower():gsub("[^%l%d]+", "_"):gsub("^[_%d]+", ""):gsub("_+$", ""):sub(1, 40):gsub("_+$", "")
    return names.valid(name) and name or "model"
end

-- What is wrong with the file `path` if it holds weights; nil: it does not.
local function as_weights(path)
    if weights.metadata(path) then return "is a GGUF file: give it a name that ends in .gguf" end
    local tensors, message = weights.tensors(path)
    if tensors then return "holds tensors: give the folder of the checkpoint, or its config.json" end
    return message:match ": (is not a safetensors file but .*)"
end

-- The object in the JSON file `path`, which lookupc has `found` by its name, or else the user names.
local function decoded(path, found)
    local text, message
    if found then
        text, message = host.read_regular(files_read.note(path), largest_json)
    else
        text, message = host.read(files_read.note(path), largest_json)
    end
    if not text then error(message, 0) end
    local object, why = json.decode(text)
    if object == nil and not found then why = as_weights(path) or why end
    if object == nil then error(path .. ": " .. why, 0) end
    if type(object) ~= "table" then error(path .. ": must be an object", 0) end
    return object
end

-- The file of a folder that says what is in it.
local function main_file(folder)
    for _, name in ipairs { "config.json", "model.json" } do
        if host.kind(folder .. "/" .. name) == "file" then return folder .. "/" .. name end
    end
    local help = ""
    for _, name in ipairs(host.list(folder) or {}) do
        if name:find "%.gguf$" then help = "; it has " .. name .. ": give the path of that file" end
    end
    error(folder .. ": has neither config.json nor TensorFlow.js's model.json" .. help, 0)
end

-- How the path `to` is written from the folder `from` on; both absolute.
local function path_from(from, to)
    local a, b, shared = {}, {}, 0
    for part in from:gmatch "[^/]+" do
        a[#a + 1] = part
    end
    for part in to:gmatch "[^/]+" do
        b[#b + 1] = part
    end
    while shared < #a and shared < #b - 1 and a[shared + 1] == b[shared + 1] do
        shared = shared + 1
    end
    return ("../"):rep(#a - shared) .. table.concat(b, "/", shared + 1)
end

-- The files that tokenizers come in, the one that says most first, and the kind that they have to be.
local tokenizers = {
    { "tokenizer.json" },
    { "tokenizer.model" },
    { "sentencepiece.bpe.model" },
    { "spiece.model" },
    { "vocab.json", kind = "bpe", beside = "merges.txt" },
    { "vocab.json", kind = "unigram" },
    { "vocab.txt" },
}

-- The record of the tokenizer in the file `path` with those keys; raises one line unless pieces have the ids that the
-- folder says, and those of the model's vocabulary.
local function checked_record(path, keys, ids, m)
    local r = read_tokenizer.record(path, keys)
    for _, row in ipairs(r.added) do
        local wanted = ids[row.text]
        if wanted and wanted ~= row.id then
            local rule = "%s: %s has id %d here, and %d by the folder's files"
            error(string.format(rule, path, row.text, row.id, wanted), 0)
        end
    end
    if #r.pieces > m.vocab then
        error(string.format("%s: has %d pieces, more than vocab_size = %d", path, #r.pieces, m.vocab), 0)
    end
    return r
end

-- The keys of a model file for the tokenizer in the file `row` of the folder, and its record. Raises one line.
local function keys_of(folder, row, config, m)
    local path, keys, ids = folder .. "/" .. row[1], { kind = row.kind }, {}
    if config and row[1] ~= "tokenizer.json" then
        keys, ids = slow_tokenizer.keys(folder, row[1], config)
        keys.kind = row.kind
    end
    local r = checked_record(path, keys, ids, m)
    if config and row[1] == "tokenizer.json" then keys = slow_tokenizer.beside(folder, r, config) end
    return keys, r
end

-- How the model file `output` writes the path of a file.
local function path_for(output, path)
    local folder = output:match "^(.*/)[^/]*$" or "."
    local absolute, message = host.absolute(path)
    if not absolute then error(message, 0) end
    return path_from(assert(host.absolute(folder)), absolute)
end

-- The ids that the files of the folder say end a text, of the tokenizer `r`; and lines on those that are no piece's.
local function ends_of(folder, config, r)
    local generation, path = fields.settings(folder, "generation_config.json")
    local files = { { path = path, object = generation }, { path = folder .. "/config.json", object = config or {} } }
    return ends.of(files, #r.pieces)
end

-- The table `tokenizer` of the model file `output` of `m`: of the first file of the folder that lookupc can read; and a
-- line on those that it cannot, or nil. config: the decoded config.json, nil: of a folder in another format.
local function tokenizer_of(folder, output, config, m)
    local tried, reasons = {}, {}
    for _, row in ipairs(tokenizers) do
        local path = folder .. "/" .. row[1]
        local there = host.kind(path) == "file" and (not row.beside or host.kind(folder .. "/" .. row.beside) == "file")
        if there and not tried[path] then
            tried[path] = true
            local good, keys, r = pcall(keys_of, folder, row, config, m)
            if good then
                keys.file = path_for(output, path)
                local lines
                keys.ends, lines = ends_of(folder, config, r)
                if r.ignored and r.ignored[1] then
                    local sections = table.concat(r.ignored, ", ")
                    lines[#lines + 1] = path .. ": ignored, texts keep all of their ids: " .. sections
                elseif reasons[1] then
                    lines[#lines + 1] = string.format("tokenizer from %s: %s", row[1], table.concat(reasons, "; "))
                end
                return keys, lines[1] and table.concat(lines, "\n")
            end
            reasons[#reasons + 1] = tostring(keys)
        end
    end
    return nil, reasons[1] and "no tokenizer: " .. table.concat(reasons, "; ")
end

-- What the name of a file or folder suggests as a name of the model.
local function name_of_path(path) return (path:gsub("/+$", ""):gsub("%.[^./]*$", ""):match "[^/]+$" or "model") end

-- The table of a model file, its comment, and the tensors to be written { name, dtype, shape, bytes } or nil; options
-- as in import.file.
local function model_of(path, object, options)
    local folder = options.folder
    if config_json.claims(object) then
        local without = options.skipless and ", without skip connections and norms" or ""
        local whole = folder and not options.skipless
        local m = config_json.model(path, object, {
            eliminate = options.eliminate,
            skipless = options.skipless,
            folder = whole and folder or nil,
        })
        return m, string.format("From the config.json of a %s%s.", object.model_type, without)
    end
    if mingpt_json.claims(object) then
        local m = mingpt_json.model(path, object)
        m.name = name_of_path(path)
        return m, "From a minGPT checkpoint.", mingpt_json.tensors(path, object)
    end
    if object.weightsManifest ~= nil then
        local tensors, m = tensorflow_js.tensors(path, object), nil
        if sentence_encoder.claims(tensors) then
            m = sentence_encoder.model(path, object, tensors)
            m.name = "sentence_encoder"
        end
        return m, "The Universal Sentence Encoder lite, from its TensorFlow.js graph.", tensors
    end
    -- as if it were a configuration: says what is missing
    return config_json.model(path, object, options)
end

-- The text of the model file of `m`, which is checked.
local function text_of(path, m, comment, options)
    local text = model_text.of(comment, families.of(m).model.keys, m)
    local valid = model_file.validate(m, "", path)
    if options.skipless and options.eliminate ~= "none" then fuse.check(valid, options.eliminate, true) end
    return text
end

-- What becomes of the JSON file `path`: { text = of the model file, or nil; tensors = { name, dtype, shape, bytes }
-- that are not in a safetensors file yet, or nil; note = a line for people, or nil }. options: name; eliminate,
-- skipless as in config_json.lua; output: path of the model file; folder: of the checkpoint, if all of the model is
-- wanted. Raises one line.
function import.file(path, options)
    local object = decoded(path, options.folder)
    local m, comment, tensors = model_of(path, object, options)
    local floats
    if tensors then
        floats = {}
        for _, tensor in ipairs(tensors) do
            if tensor.dtype == "F32" or tensor.dtype == "F16" then floats[#floats + 1] = tensor end
        end
    end
    if not m then return { tensors = floats } end
    m.name = options.name or name_from(m.name)
    local note = object.model_type and config_json.note(path, object) or nil
    if m.embedding and options.folder then
        local own
        m.tokenizer, own = tokenizer_of(options.folder, options.output, object.model_type and object, m)
        note = note and own and note .. "\n" .. own or note or own
    end
    return { text = text_of(path, m, comment, options), tensors = floats, note = note }
end

-- The same of a GGUF file.
local function of_gguf(path, options)
    local m, comment, note = gguf.model(files_read.note(path), options)
    m.name = options.name or name_from(m.name)
    local notes = { note }
    if m.embedding then
        local good, r = pcall(checked_record, path, {}, {}, m)
        if good then
            m.tokenizer = { file = path_for(options.output, path), ends = r.ends[1] and r.ends }
            table.move(r.no_pieces, 1, #r.no_pieces, #notes + 1, notes)
        else
            notes[#notes + 1] = "no tokenizer: " .. tostring(r)
        end
    end
    return { text = text_of(path, m, comment, options), note = notes[1] and table.concat(notes, "\n") }
end

-- The same of a file, or of a folder: all of the model that lies there.
function import.read(path, options)
    if path:find "%.gguf$" then return of_gguf(path, options) end
    if host.kind(path) ~= "directory" then return import.file(path, options) end
    local folder = path:gsub("(.)/+$", "%1")
    files_read.note_checkpoint(folder) -- it is not read, but what is written is beside it
    return import.file(main_file(folder), setmetatable({ folder = folder }, { __index = options }))
end

return import
