-- The schema of a model file: from a Lua table of data to a validated model, or one line that says what is wrong.

local names = require "gen.names"
local sandbox = require "sandbox"

local model = {}

local function integer(first, last)
    return {
        words = string.format("must be an integer from %d to %d", first, last),
        holds = function(v) return math.type(v) == "integer" and v >= first and v <= last end,
    }
end

local function number(words, holds)
    return { words = words, holds = function(v) return type(v) == "number" and holds(v) end }
end

local function choice(...)
    local list, set = { ... }, {}
    for i, word in ipairs(list) do set[word] = true list[i] = '"' .. word .. '"' end
    return { words = "must be " .. table.concat(list, " or "), holds = function(v) return set[v] == true end }
end

local function kind_of(fields, kind)
    return { words = "must be a table of " .. fields, table = kind }
end

-- One row a key: `rule` says what a value must be, `default` what an absent key means (no default: required,
-- unless `optional`), `only` restricts the key to one kind of its table. Help and README print this list.
local norm_keys = {
    { key = "kind", rule = choice("layernorm"), doc = "normalisation of the input" },
    { key = "eps", rule = number("must be a number from 1e-12 to 1", function(v) return v >= 1e-12 and v <= 1 end), default = 1e-5, doc = "added to the variance" },
}
local projection_keys = {
    { key = "kind", rule = choice("bh4", "dense"), doc = "block-Hadamard product of four, or one dense matrix" },
    { key = "block", rule = integer(2, 65536), only = "bh4", doc = "block size b, a power of two, at most d padded to one" },
    { key = "decay", rule = number("must be a number from 0 to 1", function(v) return v >= 0 and v <= 1 end), default = 0.7, only = "bh4", doc = "share of the projection; the input keeps 1 - decay" },
}
model.keys = {
    { key = "name", rule = { words = names.rule, holds = function(v) return type(v) == "string" and names.valid(v) end }, doc = "prefix of every emitted symbol" },
    { key = "d", rule = integer(1, 65536), doc = "input width" },
    { key = "d_out", rule = integer(1, 65536), default = "d", doc = "output width" },
    { key = "h", rule = integer(1, 65536), doc = "number of hash tables" },
    { key = "tau", rule = integer(1, 16), doc = "bits of a code; a table has 2^tau rows" },
    { key = "projection", rule = kind_of("kind, block, decay", projection_keys), doc = "how the hashed vector z is computed" },
    { key = "score", rule = choice("gelu", "softmax"), doc = "factor of a row: p_k times the sum of |z|, or p_k" },
    { key = "scale", rule = choice("none", "1/h"), default = "none", doc = "optional factor of every table" },
    { key = "norm", rule = kind_of("kind, eps", norm_keys), optional = true, doc = "LayerNorm before the projection" },
    { key = "neighbours", rule = integer(1, 65536), default = 1, doc = "rows taken from a table, 1 to 2^tau" },
    { key = "budget", rule = number("must be a number above 0, at most 1", function(v) return v > 0 and v <= 1 end), optional = true,
        doc = "largest relative error of y that verify and bench accept" },
}

-- The edit distance of two words, a swap of neighbours counting as one step.
local function distance(a, b)
    local d = {}
    for i = 0, #a do d[i] = { [0] = i } end
    for j = 0, #b do d[0][j] = j end
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
function model.nearest(word, candidates)
    local best, least = nil, math.max(2, #word // 3) + 1
    for _, candidate in ipairs(candidates) do
        local steps = distance(word:lower(), candidate:lower())
        if steps < least then best, least = candidate, steps end
    end
    return best
end

-- `source` with comments and strings blanked; newlines and places stay.
local function code_of(source)
    local list, at = {}, 1
    while at <= #source do
        local comment = source:match("^%-%-()", at)
        local level, quote = source:match("^%[(=*)%[", comment or at), source:match("^[\"']", at)
        local last
        if level then
            last = select(2, source:find("]" .. level .. "]", at, true))
        elseif comment then
            last = source:find("\n", at, true)
        elseif quote then
            last = at + 1
            while source:sub(last, last) ~= quote do last = last + (source:sub(last, last) == "\\" and 2 or 1) end
        end
        if last or comment then
            last = last or #source
            list[#list + 1] = source:sub(at, last):gsub("[^\n]", " ")
        else
            last = (source:find("[-%[\"']", at + 1) or #source + 1) - 1
            list[#list + 1] = source:sub(at, last)
        end
        at = last + 1
    end
    return table.concat(list)
end

-- The line of `source` where the key chain such as {"projection", "block"} is written in the returned table, or else
-- the line of the longest beginning of the chain, or nil.
local function line_of(source, chain)
    local code = code_of(source)
    local start = code:match(".*%f[%w_]()return%s*{") or 1
    local depth, matched, found = 0, 0, nil
    for at, brace, word, equals in code:gmatch("()([{}]?)([%w_]*)%s*(=*)", start) do
        if brace == "{" then depth = depth + 1 elseif brace == "}" then depth = depth - 1 end
        if equals == "=" and word ~= "" then
            if matched > 0 and depth <= matched then break end -- the table of the last key has ended
            if depth == matched + 1 and word == chain[matched + 1] then
                matched, found = matched + 1, at + #brace
                if matched == #chain then break end
            end
        end
    end
    if not found then return nil end
    local _, newlines = source:sub(1, found - 1):gsub("\n", "")
    return newlines + 1
end

-- A string of a model file as text that stays on a line and is not long.
local function quoted(text)
    if #text > 60 then text = text:sub(1, 57) .. "..." end
    return (string.format("%q", text):gsub("\\\n", "\\n"))
end

local function shown(value)
    if type(value) == "string" then return quoted(value) end
    if type(value) == "table" then return "{...}" end
    if math.type(value) == "float" then return (string.format("%.14g", value)) end
    return tostring(value)
end

-- Raises one line `path:line: a.b = value: rule`.
local function refuse(context, chain, value, rule)
    local line = line_of(context.source, chain)
    local where = line and context.path .. ":" .. line or context.path
    local field = table.concat(chain, ".")
    error(where .. ": " .. field .. (value ~= nil and " = " .. shown(value) or "") .. ": " .. rule, 0)
end

local function extended(chain, key)
    local copy = { table.unpack(chain) }
    key = tostring(key)
    copy[#copy + 1] = key:find("^[%w_.-]+$") and #key <= 60 and key or "[" .. quoted(key) .. "]"
    return copy
end

local function validate(context, keys, given, chain)
    local known, list = {}, {}
    for _, row in ipairs(keys) do known[row.key] = row list[#list + 1] = row.key end
    local present = {}
    for key in pairs(given) do present[#present + 1] = key end
    table.sort(present, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(present) do
        if not known[key] then
            local near = type(key) == "string" and model.nearest(key, list)
            refuse(context, extended(chain, key), given[key],
                near and 'unknown key; did you mean "' .. near .. '"?' or "unknown key; the keys are " .. table.concat(list, ", "))
        end
    end
    local valid = {}
    for _, row in ipairs(keys) do
        local here, value = extended(chain, row.key), given[row.key]
        local applies = not row.only or row.only == valid.kind
        if value ~= nil and not applies then
            refuse(context, here, value, 'only for kind = "' .. row.only .. '"')
        elseif value == nil and applies then
            if row.default ~= nil then valid[row.key] = row.default
            elseif not row.optional then refuse(context, here, nil, "required key is missing; it " .. row.rule.words) end
        elseif value ~= nil and row.rule.table then
            if type(value) ~= "table" then refuse(context, here, value, row.rule.words) end
            valid[row.key] = validate(context, row.rule.table, value, here)
        elseif value ~= nil then
            -- An integer written as a float (512.0) is the integer.
            if math.type(value) == "float" and math.tointeger(value) then value = math.tointeger(value) end
            if not row.rule.holds(value) then refuse(context, here, given[row.key], row.rule.words) end
            valid[row.key] = value
        end
    end
    return valid
end

-- The smallest power of two that is at least n.
function model.power_of_two_at_least(n)
    local power = 1
    while power < n do power = power * 2 end
    return power
end

local function check_together(context, m)
    if m.d_out == "d" then m.d_out = m.d end
    if m.projection.kind == "bh4" then
        local block, padded = m.projection.block, model.power_of_two_at_least(m.d)
        if m.d == 1 then refuse(context, { "projection", "kind" }, "bh4", 'needs d of at least 2; use "dense"') end
        if block & (block - 1) ~= 0 or block > padded then
            refuse(context, { "projection", "block" }, block, string.format("must be a power of two from 2 to %d (d padded to a power of two)", padded))
        end
    end
    if m.neighbours > 1 << m.tau then
        refuse(context, { "neighbours" }, m.neighbours, string.format("must be at most 2^tau = %d", 1 << m.tau))
    end
    if m.h * m.neighbours > 1 << 20 then
        refuse(context, { "neighbours" }, m.neighbours, string.format("h * neighbours = %d rows a token, at most %d are allowed", m.h * m.neighbours, 1 << 20))
    end
    local bytes = m.h * (1 << m.tau) * m.d_out * 4
    if bytes > 1 << 40 then
        refuse(context, { "h" }, m.h, string.format("tables of h * 2^tau * d_out float32 take %.1f TiB, at most 1 TiB is allowed", bytes / 2 ^ 40))
    end
end

-- Where the keys of a validated model stand, for errors that only show later.
local contexts = setmetatable({}, { __mode = "k" })

-- Raises one line for the key chain of the validated model `m`.
function model.refuse(m, chain, value, rule) refuse(contexts[m], chain, value, rule) end

-- Validates the plain table `given` read from `path` with text `source`; raises one line on the first error.
function model.validate(given, source, path)
    local context = { source = source, path = path }
    local m = validate(context, model.keys, given, {})
    check_together(context, m)
    contexts[m] = context
    return m
end

-- Reads and validates a model file; raises one line "path:line: field = value: rule".
function model.load(path)
    local given, source = sandbox.load(path)
    if not given then error(source, 0) end
    return model.validate(given, source, path)
end

-- The list of keys as aligned lines: help and README show it.
function model.describe()
    local lines = {}
    local function add(keys, prefix)
        for _, row in ipairs(keys) do
            local default = row.default ~= nil and "default " .. tostring(row.default) or row.optional and "optional" or "required"
            local only = row.only and ", " .. row.only .. " only" or ""
            lines[#lines + 1] = string.format("  %-18s %-22s %s", prefix .. row.key, default .. only, row.doc)
            if row.rule.table then
                add(row.rule.table, prefix .. row.key .. ".")
            else
                lines[#lines + 1] = string.format("  %-18s %-22s   %s", "", "", row.rule.words)
            end
        end
    end
    add(model.keys, "")
    return lines
end

return model
