-- What `lookupc import` makes of a folder or a file: a model file, and weights where they are in another format.
local config_json = require "gen.import.config_json"
local fuse = require "gen.families.transformer.fuse"
local families = require "gen.families.list"
local host = require "host"
local json = require "json"
local mingpt_json = require "gen.import.mingpt_json"
local model_file = require "gen.families.model_file"
local model_text = require "gen.import.model_text"
local names = require "gen.model.names"
local read_tokenizer = require "gen.tokenizer.read"
local sentence_encoder = require "gen.import.sentence_encoder"
local tensorflow_js = require "gen.import.tensorflow_js"

local import = {}

local largest_json = 1 << 28 -- bytes

-- A name for emitted symbols out of any text.
local function name_from(text)
    local name = text:lower():gsub("[^%l%d]+", "_"):gsub("^[_%d]+", ""):gsub("_+$", ""):sub(1, 40):gsub("_+$", "")
    return names.valid(name) and name or "model"
end

-- The object in the JSON file `path`, which lookupc has `found` by its name, or else the user names.
local function decoded(path, found)
    local text, message
    if found then
        text, message = host.read_regular(path, largest_json)
    else
        text, message = host.read(path, largest_json)
    end
    if not text then error(message, 0) end
    local object, why = json.decode(text)
    if object == nil then error(path .. ": " .. why, 0) end
    if type(object) ~= "table" then error(path .. ": must be an object", 0) end
    return object
end

-- The file of a folder that says what is in it.
local function main_file(folder)
    for _, name in ipairs { "config.json", "model.json" } do
        if host.kind(folder .. "/" .. name) == "file" then return folder .. "/" .. name end
    end
    error(folder .. ": has neither config.json nor TensorFlow.js's model.json", 0)
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

-- The files that tokenizers come in, the one that says most first, and what else the model file says of them.
local tokenizers = {
    { "tokenizer.json" },
    { "tokenizer.model" },
    { "sentencepiece.bpe.model" },
    { "spiece.model" },
    { "vocab.json", kind = "bpe", beside = "merges.txt" },
    { "vocab.json", kind = "unigram" },
    { "vocab.txt", lower = true },
}

-- Whether the folder's tokenizer makes text lower case; true unless it says otherwise.
local function is_lower(folder)
    local path = folder .. "/tokenizer_config.json"
    return host.kind(path) ~= "file" or decoded(path, true).do_lower_case ~= false
end

-- The table `tokenizer` of the model file in `output_folder`, or nil and, if there is a file that lookupc cannot read,
-- why.
local function tokenizer_of(folder, output_folder)
    for _, row in ipairs(tokenizers) do
        local path = folder .. "/" .. row[1]
        if host.kind(path) == "file" and (not row.beside or host.kind(folder .. "/" .. row.beside) == "file") then
            local lower
            if row.lower then lower = is_lower(folder) end
            local good, why = pcall(read_tokenizer.record, path, { kind = row.kind, lower = lower })
            if not good then return nil, tostring(why) end
            local absolute, message = host.absolute(path)
            if not absolute then error(message, 0) end
            return { file = path_from(assert(host.absolute(output_folder)), absolute), kind = row.kind, lower = lower }
        end
    end
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

-- What becomes of the JSON file `path`: { text = of the model file, or nil; tensors = { name, dtype, shape, bytes }
-- that are not in a safetensors file yet, or nil; note = a line for people, or nil }. options: name; eliminate,
-- skipless as in config_json.lua; output: path of the model file; folder: of the checkpoint, if all of the model is
-- wanted. Raises one line.
function import.file(path, options)
    local m, comment, tensors = model_of(path, decoded(path, options.folder), options)
    local floats
    if tensors then
        floats = {}
        for _, tensor in ipairs(tensors) do
            if tensor.dtype == "F32" or tensor.dtype == "F16" then floats[#floats + 1] = tensor end
        end
    end
    if not m then return { tensors = floats } end
    m.name = options.name or name_from(m.name)
    local note
    if m.embedding and options.folder then
        m.tokenizer, note = tokenizer_of(options.folder, options.output:match "^(.*/)[^/]*$" or ".")
    end
    local text = model_text.of(comment, families.of(m, {}).model.keys, m)
    local valid = model_file.validate(m, "", path)
    if options.skipless and options.eliminate ~= "none" then fuse.check(valid, options.eliminate, true) end
    return { text = text, tensors = floats, note = note and "no tokenizer: " .. note }
end

-- The same of a file, or of a folder: all of the model that lies there.
function import.read(path, options)
    if host.kind(path) ~= "directory" then return import.file(path, options) end
    local folder = path:gsub("(.)/+$", "%1")
    return import.file(main_file(folder), setmetatable({ folder = folder }, { __index = options }))
end

return import
