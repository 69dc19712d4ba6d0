-- Reads how a sentence-transformers folder makes one vector of a sentence: modules.json and the settings that it names.
local fields = require "gen.import.fields"
local files_read = require "gen.host.files_read"
local host = require "host"
local json = require "json"

local pooling = {}

local largest = 1 << 20 -- bytes of a file

local modes = {
    pooling_mode_cls_token = "first",
    pooling_mode_mean_tokens = "mean",
    pooling_mode_mean_sqrt_len_tokens = "sqrt_n",
    pooling_mode_lasttoken = "last",
}

local function decoded(path)
    local text, message = host.read_regular(files_read.note(path), largest)
    if not text then error(message, 0) end
    local object, why = json.decode(text)
    if type(object) ~= "table" then error(path .. ": " .. (why or "must be an object or a list"), 0) end
    return object
end

-- The word of `output.pool` that the settings at `path` mean.
local function pool_of(path)
    local found
    for key, value in pairs(decoded(path)) do
        if type(key) == "string" and key:find "^pooling_mode_" and value == true then
            if not modes[key] or found then fields.refuse(path, key, nil, "is not known here, or not with others") end
            found = modes[key]
        end
    end
    if not found then fields.refuse(path, "pooling_mode_mean_tokens", nil, "or another mode must be true") end
    return found
end

-- The most ids of a text by the settings of the folder `path`, or nil; raises one line for what changes texts.
local function length_of(path)
    path = path .. "/sentence_bert_config.json"
    if host.kind(path) ~= "file" then return nil end
    local settings = decoded(path)
    if fields.typed(path, settings, "", "do_lower_case", "boolean", false) then
        fields.refuse(path, "do_lower_case", true, "is not known here: only a tokenizer's own lower case is")
    end
    local most = fields.typed(path, settings, "", "max_seq_length", "integer", false)
    if most and most < 1 then fields.refuse(path, "max_seq_length", most, "must be at least 1") end
    return most or nil
end

-- Raises one line where every text gets a prompt.
local function check_prompt(folder)
    local path = folder .. "/config_sentence_transformers.json"
    local name = host.kind(path) == "file" and decoded(path).default_prompt_name
    if name and name ~= json.null then
        fields.refuse(path, "default_prompt_name", name, "a text before every text is not known here")
    end
end

-- The table `output` of a model file for the folder, and the most ids of a text; each nil if the folder does not say.
function pooling.of(folder)
    local path = folder .. "/modules.json"
    if host.kind(path) ~= "file" then return nil end
    check_prompt(folder)
    local output, most = {}, nil
    for i, module in ipairs(decoded(path)) do
        local key = "[" .. i .. "]"
        if type(module) ~= "table" then fields.refuse(path, key, nil, "must be an object") end
        local type_of = fields.typed(path, module, key .. ".", "type", "string")
        local word = type_of:match "%w+$"
        local function inside()
            local name = fields.typed(path, module, key .. ".", "path", "string")
            if name:find("..", 1, true) or name:find "^/" then
                fields.refuse(path, key .. ".path", name, "must be a folder inside this one")
            end
            return name == "" and folder or folder .. "/" .. name
        end
        if word == "Pooling" then
            output.pool = pool_of(inside() .. "/config.json")
        elseif word == "Normalize" then
            output.unit = true
        elseif word == "Transformer" then
            most = length_of(inside())
        else
            fields.refuse(path, key .. ".type", type_of, "must be Transformer, Pooling or Normalize")
        end
    end
    return output, most
end

return pooling
