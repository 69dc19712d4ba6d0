-- Which options of a command exclude each other, and which say nothing without another one.
local misuse = require "gen.schema.misuse"
local words = require "commands.words"

local option_rules = {}

-- The name in a word of a rule, such as quick or method=hash-w, and the value, nil: any.
local function parts(word)
    local name, value = word:match "^([^=]+)=(.*)$"
    return name or word, value
end

-- Such a word as it is typed: --method hash-w.
local function typed(word)
    local name, value = parts(word)
    return words.dashes { name = name } .. (value and " " .. value or "")
end

-- Whether the options that were typed say what the word does; an empty text says nothing.
local function says(options, word)
    local name, value = parts(word)
    local own = options[name]
    if value then return own == value end
    return own ~= nil and own ~= ""
end

local function refuse(option, value, rule)
    local text = type(value) == "table" and value[1] or value
    local field = words.dashes(option) .. (text ~= true and ": " .. tostring(text) or "")
    misuse(field .. ": " .. rule)
end

-- Raises one line for options of `command` that contradict each other, or that would not be read. `options`: those that
-- were typed, without defaults.
function option_rules.check(command, options)
    local given = {}
    for _, option in ipairs(command.options) do
        if says(options, option.name) then given[#given + 1] = option end
    end
    for _, option in ipairs(given) do
        for _, word in ipairs(option.not_beside or {}) do
            if says(options, word) then
                refuse(option, options[option.name], "cannot be given beside " .. typed(word))
            end
        end
    end
    for _, option in ipairs(given) do
        if option.needs and not says(options, option.needs) then
            refuse(option, options[option.name], "needs " .. typed(option.needs))
        end
    end
end

-- The rules of an option as help says them, or nothing.
function option_rules.text(option)
    local list = {}
    for i, word in ipairs(option.not_beside or {}) do
        list[i] = typed(word)
    end
    local others = #list > 0 and "; not beside " .. table.concat(list, ", ") or ""
    return (option.needs and "; needs " .. typed(option.needs) or "") .. others
end

return option_rules
