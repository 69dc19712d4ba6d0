-- Whether a text is found in normalised text exactly where it stands before, so that it may be looked for first.
local tables = require "gen.tokenizer.unicode_tables"
local unicode = require "unicode"

local untouched = {}

local memo = {}

-- What one of the four forms does to characters, sets by character: `changed`, or moved, by it; `made` of others;
-- `joined` with what follows.
local function form_of(name)
    if memo[name] then return memo[name] end
    local form = { changed = {}, made = {}, joined = {} }
    local composes, compatible = name:find "c$" ~= nil, name:find "^nfk" ~= nil
    for _, row in ipairs(tables.decompositions(compatible)) do
        local result = composes and unicode.composed(row[2]) or row[2]
        if result ~= row[1] then
            form.changed[row[1]] = true
            for character in result:gmatch(utf8.charpattern) do
                form.made[character] = true
            end
        end
    end
    for _, row in ipairs(composes and tables.compositions() or {}) do
        form.joined[utf8.char(row[1])], form.changed[utf8.char(row[2])], form.made[utf8.char(row[3])] = true, true, true
    end
    for at in unicode.combining_classes():gmatch "()[^\0]" do
        form.changed[utf8.char(at - 1)] = true -- marks change places
    end
    memo[name] = form
    return form
end

local function form_leaves(name, text)
    local form, last = form_of(name), nil
    for character in text:gmatch(utf8.charpattern) do
        local code = utf8.codepoint(character)
        local hangul = code >= 0x1100 and code <= 0x11ff or code >= 0xac00 and code <= 0xd7a3
        if hangul or form.changed[character] or form.made[character] then return false end
        last = character
    end
    return not form.joined[last]
end

-- Whether `text` has none of the characters of pairs { from, to }.
local function pairs_leave(list, text)
    for _, pair in ipairs(list) do
        for character in (pair[1] .. pair[2]):gmatch(utf8.charpattern) do
            if text:find(character, 1, true) then return false end
        end
    end
    return true
end

-- By the op of a step: whether it leaves a text alone.
local leaves = {
    lower = function(_, text) return pairs_leave(tables.lower_case(), text) end,
    runs = function(step, text) return pairs_leave({ { " ", step.to } }, text) end,
    replace = function(step, text) return pairs_leave(step.pairs, text) end,
}
for _, name in ipairs { "nfc", "nfd", "nfkc", "nfkd" } do
    leaves[name] = function(_, text) return form_leaves(name, text) end
end

-- Whether all `steps` of a record leave `text`, not empty, alone.
function untouched.by(steps, text)
    for _, step in ipairs(steps) do
        if not leaves[step.op] or not leaves[step.op](step, text) then return false end
    end
    return true
end

return untouched
