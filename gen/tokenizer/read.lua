-- From a file of a tokenizer to its record, whatever its format.
local around = require "gen.tokenizer.around"
local files_read = require "gen.host.files_read"
local gguf = require "gen.tokenizer.gguf"
local host = require "host"
local hugging_face = require "gen.tokenizer.hugging_face"
local json = require "json"
local lists = require "gen.tokenizer.word_lists"
local record = require "gen.tokenizer.record"
local sentencepiece = require "gen.tokenizer.sentencepiece"

local read = {}

local most_bytes = 1 << 28

local function contents(path)
    local bytes, message = host.read_regular(files_read.note(path), most_bytes)
    if not bytes then error(message, 0) end
    return bytes
end

-- Whether `object` is what a vocab.json holds: a number by each piece.
local function is_vocabulary(object)
    for _, id in pairs(object) do
        if type(id) ~= "number" then return false end
    end
    return next(object) ~= nil
end

-- The merges of the vocab.json `path`, whose option is `merges`.
local function merges_of(path, merges)
    local good, bytes = pcall(contents, merges)
    if good then return bytes end
    error(path .. ": is a vocab.json, which needs its merges: " .. bytes, 0)
end

local function by_name(path, options)
    if path:find "%.gguf$" then return gguf.read(files_read.note(path)) end
    local bytes = contents(path)
    local known = path:find "%.model$" or path:find "%.txt$" or path:find "%.json$"
    if not known then error(path .. ": must end in .json, .txt, .model or .gguf", 0) end
    if bytes == "" then error(path .. ": is empty", 0) end
    if path:find "%.model$" then return sentencepiece.read(path, bytes) end
    if path:find "%.txt$" then
        if options.lower == nil then
            error(path .. ": lower: is missing: vocab.txt does not say whether text becomes lower case", 0)
        end
        return lists.wordpiece(path, bytes, options.lower)
    end
    local object, message = json.decode(bytes)
    if type(object) ~= "table" then error(path .. ": " .. (message or "must be an object or a list"), 0) end
    if object[1] ~= nil then return lists.scored(path, object) end
    if type(object.model) == "table" then return hugging_face.read(path, object) end
    if not is_vocabulary(object) then
        error(path .. ": is no tokenizer: must be a tokenizer.json, a vocab.json or a list of pieces and scores", 0)
    end
    local merges = options.merges or path:gsub("[^/]*$", "") .. "merges.txt"
    return lists.gpt2(path, object, merges, merges_of(path, merges), around.texts(options))
end

-- Keys that a model file may have beside a file that says all, but has nothing there.
local may_be_empty = { first = true, last = true }

-- Raises one line for a key of `options` that the file `path` leaves no room for.
local function check_keys(path, r, options)
    for _, key in ipairs(around.keys) do
        local only = (key == "ids" or key == "space") and "%.model$"
        local says = r.says_all and not (may_be_empty[key] and not r[key][1])
        if options[key] ~= nil and (only and not path:find(only) or says) then
            error(string.format("%s: %s: is for %s", path, key, only and "SentencePiece's .model" or "other files"), 0)
        end
    end
end

-- The record of a tokenizer. `path`: its file, nil: every byte is an id. `options`: `kind`, which the record must be
-- of; `merges`, the path of the merges beside vocab.json (merges.txt in its folder); `lower`, which vocab.txt needs;
-- and the keys of gen/tokenizer/around.lua.
function read.record(path, options)
    local r = path and by_name(path, options) or lists.bytes()
    if options.lower ~= nil and not path:find "%.txt$" then
        error(path .. ": lower: is for vocab.txt: other files say it themselves", 0)
    end
    if options.kind and options.kind ~= r.kind then
        record.refuse(path, { "kind" }, r.kind, "the model file says " .. options.kind)
    end
    if not path then return r end
    check_keys(path, r, options)
    return around.apply(path, r, options)
end

return read
