-- Sets of characters, as sorted lists { first, last, first, last, … } of ranges that do not touch.
local tables = require "gen.tokenizer.unicode_tables"
local unicode = require "unicode"

local sets = {}

local last_character = 0x10ffff

-- The set of ranges { {first, last} } in any order.
function sets.of(ranges)
    table.sort(ranges, function(a, b) return a[1] < b[1] end)
    local set = {}
    for _, range in ipairs(ranges) do
        if set[1] and range[1] <= set[#set] + 1 then
            set[#set] = math.max(set[#set], range[2])
        else
            set[#set + 1], set[#set + 2] = range[1], range[2]
        end
    end
    return set
end

function sets.union(...)
    local ranges = {}
    for _, set in ipairs { ... } do
        for i = 1, #set, 2 do
            ranges[#ranges + 1] = { set[i], set[i + 1] }
        end
    end
    return sets.of(ranges)
end

function sets.complement(set)
    local other, from = {}, 0
    for i = 1, #set, 2 do
        if set[i] > from then
            other[#other + 1], other[#other + 2] = from, set[i] - 1
        end
        from = set[i + 1] + 1
    end
    if from <= last_character then
        other[#other + 1], other[#other + 2] = from, last_character
    end
    return other
end

function sets.has(set, character)
    for i = 1, #set, 2 do
        if character <= set[i + 1] then return character >= set[i] end
    end
    return false
end

-- The characters of general categories by their names, L and Lu, made once.
local categories

local function read_categories()
    local all, at, ranges = unicode.categories(), 1, {}
    while at <= #all do
        local value = all:sub(at, at)
        local behind = all:find("[^" .. value .. "]", at) or #all + 1
        local name = unicode.category_names[value:byte() + 1]
        for _, key in ipairs { name, name:sub(1, 1) } do
            ranges[key] = ranges[key] or {}
            table.insert(ranges[key], { at - 1, behind - 2 })
        end
        at = behind
    end
    categories = {}
    for name, list in pairs(ranges) do
        categories[name] = sets.of(list)
    end
end

-- The characters of a general category, nil: there is none of that name.
function sets.category(name)
    if not categories then read_categories() end
    return categories[name]
end

function sets.space() return sets.of(table.move(tables.spaces, 1, #tables.spaces, 1, {})) end

function sets.digit() return sets.category "Nd" end

-- Alphabetic of the Unicode Character Database beside letters, marks and numbers.
local circled = { 0x24b6, 0x24e9, 0x1f130, 0x1f149, 0x1f150, 0x1f169, 0x1f170, 0x1f189 }

-- The characters of words: Alphabetic, marks, decimal digits and connectors.
function sets.word()
    local category = sets.category
    return sets.union(category "L", category "M", category "Nd", category "Nl", category "Pc", circled)
end

-- The set with the other cases of the letters of ASCII in it; two letters beyond ASCII are such.
function sets.fold(set)
    local more = {}
    for upper = 0x41, 0x5a do
        local cases = { upper, upper + 0x20, upper == 0x53 and 0x17f or upper == 0x4b and 0x212a or nil }
        local found = false
        for _, case in ipairs(cases) do
            found = found or sets.has(set, case)
        end
        for _, case in ipairs(found and cases or {}) do
            more[#more + 1] = { case, case }
        end
    end
    return sets.union(set, sets.of(more))
end

-- The classes of characters that `list` of sets cannot tell apart: ranges { {first, class} } over all characters, the
-- number of classes, and for each set which classes, from 0, are in it. U+FFFD is of class 0.
function sets.partition(list)
    local events, places = { [0] = 0 }, { 0 }
    for number, set in ipairs(list) do
        for i = 1, #set do
            local place = set[i] + (i % 2 == 0 and 1 or 0)
            if not events[place] then
                events[place], places[#places + 1] = 0, place
            end
            events[place] = events[place] ~ 1 << number
        end
    end
    table.sort(places)
    local ranges, classes, count, mask, broken = {}, {}, 0, 0, 0
    for i, place in ipairs(places) do
        mask = mask ~ events[place]
        if place <= last_character then
            if not classes[mask] then
                classes[mask], count = count, count + 1
            end
            ranges[i] = { place, classes[mask] }
            if place <= 0xfffd then broken = mask end
        end
    end
    local members = {}
    for number in ipairs(list) do
        members[number] = {}
    end
    -- The class of U+FFFD and class 0 change places.
    local swapped = classes[broken]
    local function renumbered(class) return class == swapped and 0 or class == 0 and swapped or class end
    for _, range in ipairs(ranges) do
        range[2] = renumbered(range[2])
    end
    for bits, class in pairs(classes) do
        for number in ipairs(list) do
            members[number][renumbered(class)] = bits >> number & 1 == 1
        end
    end
    return ranges, count, members
end

return sets
