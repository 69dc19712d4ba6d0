-- Reads how a sentence-transformers folder makes one vector of a sentence: modules.json and the settings that it names.
local fields = require "gen.import.fields"
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
    local text, message = host.read_regular(path, largest)
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

-- The table `output` of a model file for the folder, or nil if it does not say.
function pooling.of(folder)
    local path = folder .. "/modules.json"
    if host.kind(path) ~= "file" then return nil end
    local output = {}
    for i, module in ipairs(decoded(path)) do
        local key = "[" .. i .. "]"
        if type(module) ~= "table" then fields.refuse(path, key, nil, "must be an object") end
        local type_of = fields.typed(path, module, key .. ".", "type", "string")
        local word = type_of:match "%w+$"
        if word == "Pooling" then
            local inside = fields.typed(path, module, key .. ".", "path", "string")
            if inside:find("..", 1, true) or inside:find "^/" then
                fields.refuse(path, key .. ".path", inside, "must be a folder inside this one")
            end
            output.pool = pool_of(folder .. "/" .. inside .. "/config.json")
        elseif word == "Normalize" then
            output.unit = true
        elseif word ~= "Transformer" then
            fields.refuse(path, key .. ".type", type_of, "must be Transformer, Pooling or Normalize")
        end
    end
    return output
end

return pooling
