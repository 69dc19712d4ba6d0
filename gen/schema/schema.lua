-- What a file of data may hold: from a Lua table and a list of keys to a valid table, or one line that says file, line,
-- field, value and rule.
--
-- One row a key: `rule` says what a value must be, `default` what an absent key means (no default: required, unless
-- `optional`), `only` restricts the key to one kind of its table, or to a list of kinds.
local json = require "json"
local lua_text = require "gen.schema.lua_text"
local shortened = require "gen.schema.shortened"

local schema = {}

function schema.integer(first, last)
    return {
        words = string.format("must be an integer from %d to %d", first, last),
        type = "integer",
        first = first,
        last = last,
        holds = function(v) return math.type(v) == "integer" and v >= first and v <= last end,
    }
end

function schema.number(words, holds)
    return { words = words, type = "number", holds = function(v) return type(v) == "number" and holds(v) end }
end

function schema.choice(...)
    local list, set, values = { ... }, {}, { ... }
    for i, word in ipairs(list) do
        set[word] = true
        list[i] = '"' .. word .. '"'
    end
    return {
        words = "must be " .. table.concat(list, " or "),
        values = values,
        holds = function(v) return set[v] == true end,
    }
end

schema.boolean =
    { words = "must be true or false", type = "boolean", holds = function(v) return type(v) == "boolean" end }

-- The kinds that a row is restricted to.
local function kinds_of(row) return type(row.only) == "table" and row.only or { row.only } end

-- Whether a key applies to a table of that kind.
local function applies_to(row, kind)
    if not row.only then return true end
    for _, only in ipairs(kinds_of(row)) do
        if only == kind then return true end
    end
    return false
end

-- The kinds that a row is restricted to as text, each between `quote`s.
function schema.only(row, quote)
    local list = {}
    for i, kind in ipairs(kinds_of(row)) do
        list[i] = quote .. kind .. quote
    end
    return table.concat(list, " or ")
end

-- A table with the rows `keys`, which are described as `fields`.
function schema.table(fields, keys) return { words = "must be a table of " .. fields, table = keys } end

-- The edit distance of two words, a swap of neighbours counting as one step.
local function distance(a, b)
    local d = {}
    for i = 0, #a do
        d[i] = { [0] = i }
    end
    for j = 0, #b do
        d[0][j] = j
    end
    for i = 1, #a do
        for j = 1, #b do
            local cost = a:byte(i) == b:byte(j) and 0 or 1
            d[i][j] = math.min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
                d[i][j] = math.min(d[i][j], d[i - 2][j - 2] + 1)
            end
        end
    end
    return d[#a][#b]
end

-- The candidate nearest to a misspelt word, or nil when none is near.
function schema.nearest(word, candidates)
    local best, least = nil, math.max(2, #word // 3) + 1
    for _, candidate in ipairs(candidates) do
        -- a word can be as long as a file: the distance is at least the difference of the lengths
        local steps = math.abs(#word - #candidate)
        if steps < least then steps = distance(word:lower(), candidate:lower()) end
        if steps < least then
            best, least = candidate, steps
        end
    end
    return best
end

-- The line of `source` where the key chain such as {"projection", "block"} is written in the returned table, or else
-- the line of the longest beginning of the chain, or nil; and how much of the chain that is.
local function line_of(source, chain)
    local code = lua_text.code(source)
    local start = code:match(".*%f[%w_]()return%s*{") or 1
    local depth, matched, found = 0, 0, nil
    for at, brace, word, equals in code:gmatch("()([{}]?)([%w_.]*)%s*(=*)", start) do
        if brace == "{" then
            depth = depth + 1
        elseif brace == "}" then
            depth = depth - 1
        end
        if equals == "=" and word ~= "" then
            if matched > 0 and depth <= matched then break end -- the table of the last key has ended
            if depth == matched + 1 and word == chain[matched + 1] then
                matched, found = matched + 1, at + #brace
                if matched == #chain then break end
            end
        end
    end
    if not found then return nil end
    return lua_text.line(source, found), matched
end

-- A string of a model file as text that stays on a line and is not long.
local function quoted(text)
    if #text > 60 then text = shortened(text, 57) .. "..." end
    return (string.format("%q", text):gsub("\\\n", "\\n"))
end

local function shown(value)
    if type(value) == "string" then return quoted(value) end
    if type(value) == "table" then return "{...}" end
    if math.type(value) == "float" then return (string.format("%.14g", value)) end
    if value == json.null then return "null" end
    return tostring(value)
end

-- The line `path:line: a.b = value: rule`.
function schema.problem(context, chain, value, rule)
    local line, depth = line_of(context.source, chain)
    local where = line and context.path .. ":" .. line or context.path
    for _, file in ipairs(context.included or {}) do
        local place, deeper = line_of(file.source, chain)
        if place and deeper > (depth or 0) then
            where, depth = file.path .. ":" .. place, deeper
        end
    end
    local field = table.concat(chain, ".")
    return where .. ": " .. field .. (value ~= nil and " = " .. shown(value) or "") .. ": " .. rule
end

-- Raises that line.
function schema.refuse(...) error(schema.problem(...), 0) end

local function extended(chain, key)
    local copy = { table.unpack(chain) }
    key = tostring(key)
    copy[#copy + 1] = key:find("^[%w_.-]+$") and #key <= 60 and key or "[" .. quoted(key) .. "]"
    return copy
end

-- The valid copy of `given`, which stands at the key chain `chain` of the file of `context` { path, source }; raises
-- one line on the first error.
function schema.validate(context, keys, given, chain)
    local known, list = {}, {}
    for _, row in ipairs(keys) do
        known[row.key] = row
        list[#list + 1] = row.key
    end
    local present = {}
    for key in pairs(given) do
        present[#present + 1] = key
    end
    table.sort(present, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(present) do
        if not known[key] then
            local near = type(key) == "string" and schema.nearest(key, list)
            schema.refuse(
                context,
                extended(chain, key),
                given[key],
                near and 'unknown key; did you mean "' .. near .. '"?'
                    or "unknown key; the keys are " .. table.concat(list, ", ")
            )
        end
    end
    local valid = {}
    for _, row in ipairs(keys) do
        local here, value = extended(chain, row.key), given[row.key]
        local applies = applies_to(row, valid.kind)
        if value ~= nil and not applies then
            schema.refuse(context, here, value, "only for kind = " .. schema.only(row, '"'))
        elseif value == nil and applies then
            if row.default ~= nil then
                valid[row.key] = row.default
            elseif not row.optional then
                schema.refuse(context, here, nil, "required key is missing; it " .. row.rule.words)
            end
        elseif value ~= nil and row.rule.table then
            if type(value) ~= "table" then schema.refuse(context, here, value, row.rule.words) end
            valid[row.key] = schema.validate(context, row.rule.table, value, here)
        elseif value ~= nil then
            -- An integer written as a float (512.0) is the integer.
            if math.type(value) == "float" and math.tointeger(value) then value = math.tointeger(value) end
            if not row.rule.holds(value) then schema.refuse(context, here, given[row.key], row.rule.words) end
            valid[row.key] = value
        end
    end
    return valid
end

return schema
