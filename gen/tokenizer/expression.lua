-- Reads the regular expressions that split text: from their text to a tree of sets of characters.
--
-- A node of the tree has `op`
--   set      one character of `set`
--   ahead    nothing, where the next character is one of `set`; `negative`: where it is none, or the text ends
--   list     nodes behind each other
--   either   the first node, else the second, …
--   repeated nodes[1], `least` to `most` times, as often as it goes; most nil: without end
-- `\p{L}++` takes all letters and gives none back: the same as letters with no letter ahead. So possessive quantifiers
-- are nodes of these kinds, too.
local sets = require "gen.tokenizer.character_sets"

local expression = {}

local most_depth = 32
local most_times = 255

local controls = { t = 9, n = 10, v = 11, f = 12, r = 13, a = 7, e = 27 }

local named = { s = sets.space, d = sets.digit, w = sets.word }

-- Raises one line for the character number `at` of the pattern.
local function fail(p, at, rule)
    p.refuse(string.format("character %d, %s: %s", at, p[at] and '"' .. p[at] .. '"' or "the end", rule))
end

local function one(character) return { character, character } end

-- What `expected` names stands here: goes behind it.
local function take(p, expected)
    if p[p.at] ~= expected then fail(p, p.at, 'must be "' .. expected .. '"') end
    p.at = p.at + 1
end

-- The number of hexadecimal digits from here on: `count`, or those up to "}".
local function hexadecimal(p, count)
    local from, digits = p.at, ""
    if not count then take(p, "{") end
    while p[p.at] and p[p.at]:find "^%x$" and #digits < (count or 6) do
        digits, p.at = digits .. p[p.at], p.at + 1
    end
    if not count then take(p, "}") end
    local value = #digits >= (count or 1) and tonumber(digits, 16)
    if not value or value > 0x10ffff then fail(p, from, "must be a character in hexadecimal") end
    return value
end

-- The set of \p{NAME}; p.at is behind the p.
local function property(p)
    local from, name = p.at, ""
    take(p, "{")
    while p[p.at] and p[p.at] ~= "}" do
        name, p.at = name .. p[p.at], p.at + 1
    end
    take(p, "}")
    local set = sets.category(name)
    if not set then fail(p, from, "must be {L}, {Lu} or another general category") end
    if p.fold and name:find "^L[ult]$" then fail(p, from, "is a case, within (?i: )") end
    return set
end

-- The set of an escape, and its character if it is one; p.at is at the backslash.
local function escape(p)
    local from, letter = p.at, p[p.at + 1]
    p.at = p.at + 2
    if not letter then fail(p, from, "has nothing behind it") end
    local small = letter:lower()
    if named[small] then
        local set = named[small]()
        return letter == small and set or sets.complement(set)
    elseif small == "p" then
        local set = property(p)
        return letter == "p" and set or sets.complement(set)
    end
    local character = controls[letter]
    if letter == "x" then
        character = hexadecimal(p, p[p.at] ~= "{" and 2 or nil)
    elseif letter == "u" then
        character = hexadecimal(p, 4)
    elseif not character then
        if letter:find "^%w$" then fail(p, from + 1, "is no escape that is supported") end
        character = utf8.codepoint(letter)
    end
    return one(character), character
end

-- Raises one line for a letter whose other cases are not known.
local function check_case(p, at, character)
    if p.fold and character > 127 then fail(p, at, "is beyond ASCII, within (?i: )") end
end

-- A set in brackets; p.at is at the first.
local function class(p)
    local start, parts = p.at, {}
    p.at = p.at + 1
    local negative = p[p.at] == "^"
    if negative then p.at = p.at + 1 end
    while p[p.at] ~= "]" or #parts == 0 do
        local from = p.at
        local text = p[from]
        if not text then fail(p, start, "has no end") end
        if text == "[" or text == "]" or text == "&" and p[from + 1] == "&" then
            fail(p, from, "within brackets must have a backslash before it")
        end
        local function next_of()
            if p[p.at] == "\\" then return escape(p) end
            p.at = p.at + 1
            local code = utf8.codepoint(p[p.at - 1])
            return one(code), code
        end
        local set, character = next_of()
        if p[p.at] == "-" and p[p.at + 1] and p[p.at + 1] ~= "]" then
            p.at = p.at + 1
            local _, last = next_of()
            if not character or not last or last < character then
                fail(p, from, "must begin a range of characters that rise")
            end
            set, character = { character, last }, last
        end
        if character then check_case(p, from, character) end
        parts[#parts + 1] = set
    end
    p.at = p.at + 1
    local set = sets.union(table.unpack(parts))
    if p.fold then set = sets.fold(set) end
    return negative and sets.complement(set) or set
end

-- The set that a node stands for if that takes one character, or nil.
local function single(node)
    if node.op == "set" then return node.set end
    if node.op == "list" then return #node == 1 and single(node[1]) or nil end
    if node.op ~= "either" then return nil end
    local parts = {}
    for i, inner in ipairs(node) do
        parts[i] = single(inner)
        if not parts[i] then return nil end
    end
    return sets.union(table.unpack(parts))
end

-- Whether a node can take no character.
local function may_be_empty(node)
    if node.op == "set" then return false end
    if node.op == "ahead" then return true end
    if node.op == "repeated" then return node.least == 0 or may_be_empty(node[1]) end
    for _, inner in ipairs(node) do
        if may_be_empty(inner) ~= (node.op == "list") then return node.op == "either" end
    end
    return node.op == "list"
end

local alternatives

-- What stands in parentheses; p.at is at the first.
local function group(p)
    local start, fold, kind = p.at, p.fold, ""
    p.at, p.depth = p.at + 1, p.depth + 1
    if p.depth > most_depth then fail(p, start, "is nested deeper than " .. most_depth) end
    if p[p.at] == "?" then
        kind = p[p.at + 1] or ""
        if kind == "i" and p[p.at + 2] == ":" then
            p.fold, p.at = true, p.at + 1
        elseif kind ~= ":" and kind ~= "=" and kind ~= "!" then
            fail(p, start, "begins no group that is supported")
        end
        p.at = p.at + 2
    end
    local node = alternatives(p)
    if p[p.at] ~= ")" then fail(p, start, "has no end") end
    p.at, p.depth, p.fold = p.at + 1, p.depth - 1, fold
    if kind ~= "=" and kind ~= "!" then return node end
    local set = single(node)
    if not set then fail(p, start, "looks ahead for what is not one character") end
    return { op = "ahead", set = set, negative = kind == "!" }
end

local function atom(p)
    local at = p.at
    local text = p[at]
    if text == "(" then return group(p) end
    if text == "[" then return { op = "set", set = class(p) } end
    if text:find "^[*+?{^]$" then
        fail(p, at, text == "^" and "is no anchor that is supported" or "has nothing to repeat")
    end
    if text == "\\" and p[at + 1] == "z" then -- the end of the text: no character ahead
        p.at = at + 2
        return { op = "ahead", set = sets.complement {}, negative = true }
    end
    local set, character
    if text == "\\" then
        set, character = escape(p)
    else
        p.at = at + 1
        if text == "$" then return { op = "ahead", set = sets.complement(one(10)), negative = true } end -- of a line
        character = utf8.codepoint(text)
        set = text == "." and sets.complement(one(10)) or one(character)
    end
    if character and text ~= "." then check_case(p, at, character) end
    return { op = "set", set = p.fold and character and sets.fold(set) or set }
end

-- The least and the most times of a quantifier, nil: there is none here.
local function times(p)
    local text = p[p.at]
    if text == "*" or text == "+" or text == "?" then
        p.at = p.at + 1
        return text == "+" and 1 or 0, text == "?" and 1 or nil
    elseif text ~= "{" then
        return nil
    end
    local from = p.at
    while p[p.at] and p[p.at] ~= "}" do
        p.at = p.at + 1
    end
    local inside = table.concat(p, "", from + 1, p.at - 1)
    local least, comma, most = inside:match "^(%d+)(,?)(%d*)$"
    least, most = tonumber(least), tonumber(most)
    if not p[p.at] or not least or comma == "" and most then
        fail(p, from, "must begin {n}, {n,} or {n,m}, or have a backslash before it")
    end
    if comma == "" then most = least end
    if (most or least) > most_times or most and (most < least or most == 0) then
        fail(p, from, "must begin counts that rise from 0 to " .. most_times)
    end
    p.at = p.at + 1
    return least, most
end

local function quantified(p)
    local at = p.at
    local node = atom(p)
    local sign = p.at
    local least, most = times(p)
    if not least then return node end
    if (not most or most > 1) and may_be_empty(node) then fail(p, at, "may be empty and is repeated") end
    local all = { op = "repeated", node, least = least, most = most }
    local behind = p[p.at]
    if behind == "+" and p[sign] ~= "{" then
        local set = single(node)
        if not set then fail(p, p.at, "is possessive, of what is not one character") end
        p.at = p.at + 1
        local ahead = { op = "ahead", set = set, negative = true }
        all = most and { op = "either", node, ahead } or { op = "list", all, ahead }
    elseif behind == "+" then
        fail(p, p.at, "behind {n,m} repeats it in some libraries and is possessive in others")
    end
    if p[p.at] and p[p.at]:find "^[*+?{]$" then fail(p, p.at, "behind a quantifier is not supported") end
    return all
end

function alternatives(p)
    local either = { op = "either" }
    repeat
        local list = { op = "list" }
        while p[p.at] and p[p.at] ~= "|" and p[p.at] ~= ")" do
            list[#list + 1] = quantified(p)
        end
        either[#either + 1] = list
        local more = p[p.at] == "|"
        if more then p.at = p.at + 1 end
    until not more
    return #either == 1 and either[1] or either
end

-- The tree of the pattern `text`; `refuse(rule)` raises one line about it.
function expression.read(text, refuse)
    if not utf8.len(text) then refuse "must be UTF-8" end
    local p = { at = 1, depth = 0, fold = false, refuse = refuse }
    for _, code in utf8.codes(text) do
        p[#p + 1] = utf8.char(code)
    end
    local node = alternatives(p)
    if p[p.at] then fail(p, p.at, "has no beginning") end
    return node
end

-- The tree of `text` itself.
function expression.text(text)
    local list = { op = "list" }
    for _, code in utf8.codes(text) do
        list[#list + 1] = { op = "set", set = one(code) }
    end
    return list
end

return expression
