-- What tokenizers ask of single characters: classes, decompositions, compositions and lower case, from utf8proc's
-- tables.
local unicode = require "unicode"

local tables = {}

local characters = 0x110000

-- The bits of a character's class.
tables.letter, tables.number, tables.space, tables.mark = 1, 2, 4, 8
tables.punctuation, tables.cjk, tables.control, tables.any_mark = 16, 32, 64, 128

-- White_Space of the Unicode Character Database.
tables.spaces = {
    { 0x09, 0x0d },
    { 0x20, 0x20 },
    { 0x85, 0x85 },
    { 0xa0, 0xa0 },
    { 0x1680, 0x1680 },
    { 0x2000, 0x200a },
    { 0x2028, 0x2029 },
    { 0x202f, 0x202f },
    { 0x205f, 0x205f },
    { 0x3000, 0x3000 },
}

-- The ideographs that BERT takes for words of their own.
local ideographs = {
    { 0x3400, 0x4dbf },
    { 0x4e00, 0x9fff },
    { 0xf900, 0xfaff },
    { 0x20000, 0x2a6df },
    { 0x2a700, 0x2b73f },
    { 0x2b740, 0x2b81f },
    { 0x2b920, 0x2ceaf },
    { 0x2f800, 0x2fa1f },
}

-- What BERT takes for punctuation beside Unicode's: all of ASCII that is neither letter, number, space nor control.
local ascii_punctuation = { { 0x21, 0x2f }, { 0x3a, 0x40 }, { 0x5b, 0x60 }, { 0x7b, 0x7e } }

-- Characters that BERT removes although they are no controls.
local removed = { { 0x00, 0x00 }, { 0xfffd, 0xfffd } }

-- Tabs and ends of lines are spaces, no controls.
local kept_controls = { { 0x09, 0x0a }, { 0x0d, 0x0d } }

local bits_of_category = {
    L = tables.letter,
    N = tables.number,
    M = tables.any_mark,
    P = tables.punctuation,
    C = tables.control,
}

-- A table over all characters as pages of 256 values, each page once: { pages = u16 of each 256 characters, values }.
function tables.paged(bytes)
    local places, pages, values, count = {}, {}, {}, 0
    for at = 1, characters, 256 do
        local page = bytes:sub(at, at + 255)
        if not places[page] then
            places[page], values[#values + 1] = count, page
            count = count + 1
        end
        pages[#pages + 1] = string.pack("<I2", places[page])
    end
    return { pages = table.concat(pages), values = table.concat(values) }
end

local memo = {}

-- The table that `make` makes, made once: { pages, values }.
local function once(name, make)
    if not memo[name] then memo[name] = make() end
    return memo[name]
end

-- The classes of all characters, paged.
function tables.classes()
    return once("classes", function()
        local bits = {}
        for i, name in ipairs(unicode.category_names) do
            local class = bits_of_category[name:sub(1, 1)] or 0
            if name == "Mn" then class = class | tables.mark end
            if name == "Cn" then class = 0 end
            bits[string.char(i - 1)] = string.char(class)
        end
        local all = unicode.categories():gsub(".", bits)
        local changes = {}
        local function change(ranges, function_of)
            for _, range in ipairs(ranges) do
                for c = range[1], range[2] do
                    changes[c] = function_of(changes[c] or all:byte(c + 1))
                end
            end
        end
        change(tables.spaces, function(class) return class | tables.space end)
        change(ideographs, function(class) return class | tables.cjk end)
        change(ascii_punctuation, function(class) return class | tables.punctuation end)
        change(removed, function(class) return class | tables.control end)
        change(kept_controls, function(class) return class & ~tables.control end)
        local list, parts, from = {}, {}, 0
        for c in pairs(changes) do
            list[#list + 1] = c
        end
        table.sort(list)
        for _, c in ipairs(list) do
            parts[#parts + 1] = all:sub(from + 1, c) .. string.char(changes[c])
            from = c + 1
        end
        return tables.paged(table.concat(parts) .. all:sub(from + 1))
    end)
end

-- The canonical combining classes of all characters, paged.
function tables.orders()
    return once("orders", function() return tables.paged(unicode.combining_classes()) end)
end

-- What becomes of single characters, { {from, to} } in UTF-8: their canonical or compatible decompositions but those of
-- Hangul syllables.
function tables.decompositions(compatible)
    return once(compatible and "nfkd" or "nfd", function()
        local list = {}
        for i, row in ipairs(unicode.decompositions(compatible)) do
            list[i] = { utf8.char(row[1]), row[2] }
        end
        return list
    end)
end

function tables.lower_case()
    return once("lower", function()
        local list = {}
        for i, row in ipairs(unicode.lower_case()) do
            list[i] = { utf8.char(row[1]), row[2] }
        end
        return list
    end)
end

-- The pairs of characters that NFC makes one, { {first, second, composite} }, without Hangul.
function tables.compositions()
    return once("compositions", function()
        local list = {}
        for _, row in ipairs(unicode.decompositions(false)) do
            local composite, parts = row[1], row[2]
            local start = utf8.offset(parts, -1)
            if start > 1 and unicode.composed(parts) == utf8.char(composite) then
                local first = unicode.composed(parts:sub(1, start - 1))
                if utf8.len(first) == 1 then
                    list[#list + 1] = { utf8.codepoint(first), utf8.codepoint(parts, start), composite }
                end
            end
        end
        return list
    end)
end

return tables
