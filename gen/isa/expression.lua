-- Puts C expressions together and simplifies them: parentheses where the operator outside binds tighter than one
-- inside, and nowhere else; numbers are added up and multiplied, and + 0 and * 1 are left out.
local expression = {}

-- How tightly the operators of C bind; a higher number is tighter. What stands alone (a name, a number, a call) is
-- `primary`.
local level = {
    comma = 1,
    assignment = 2,
    conditional = 3,
    either = 4,
    both = 5,
    bit_or = 6,
    bit_xor = 7,
    bit_and = 8,
    equality = 9,
    comparison = 10,
    shift = 11,
    sum = 12,
    product = 13,
    unary = 14,
    primary = 15,
}
expression.level = level

local binary = {
    [","] = level.comma,
    ["="] = level.assignment,
    ["?"] = level.conditional,
    [":"] = level.conditional,
    ["||"] = level.either,
    ["&&"] = level.both,
    ["|"] = level.bit_or,
    ["^"] = level.bit_xor,
    ["&"] = level.bit_and,
    ["=="] = level.equality,
    ["!="] = level.equality,
    ["<="] = level.comparison,
    [">="] = level.comparison,
    ["<"] = level.comparison,
    [">"] = level.comparison,
    ["<<"] = level.shift,
    [">>"] = level.shift,
    ["+"] = level.sum,
    ["-"] = level.sum,
    ["*"] = level.product,
    ["/"] = level.product,
    ["%"] = level.product,
}

local types = { char = true, short = true, int = true, unsigned = true, float = true, double = true }

-- Whether "(…)" is a cast: what it holds is the name of a type.
local function is_type(inside)
    return inside:find("%*$") ~= nil or inside:find("_t$") ~= nil or types[inside:match("%l+$")] ~= nil
end

-- How tightly the loosest operator of `text` binds that stands in no parentheses.
local function tightness(text)
    local loosest, at, after_operand = level.primary, 1, false
    while at <= #text do
        local group = text:match("^%b()", at) or text:match("^%b[]", at)
        local name = text:match("^%.?[%w_$][%w_.$]*", at)
        if text:find("^%s", at) then
            at = at + 1
        elseif group then
            if not after_operand and is_type(group:sub(2, -2)) then
                loosest = math.min(loosest, level.unary)
            else
                after_operand = true
            end
            at = at + #group
        elseif name then
            -- A number's exponent has a sign.
            if name:find("^%.?%d[%d.]*[eE]$") or name:find("^0x[%x.]*p$") then
                name = name .. (text:match("^[+-]%d+f?", at + #name) or "")
            end
            after_operand, at = name ~= "sizeof", at + #name
        else
            local operator = text:sub(at, at + 1)
            if operator == "->" then
                at = at + 2
            else
                if not binary[operator] then operator = text:sub(at, at) end
                loosest = math.min(loosest, after_operand and binary[operator] or level.unary)
                after_operand, at = false, at + #operator
            end
        end
    end
    return loosest
end

local known = {} -- by text: templates say the same over and over

local function level_of(text)
    local found = known[text]
    if not found then
        found = tightness(text)
        known[text] = found
    end
    return found
end

-- `text` as an operand of an operator that needs `wanted`, in parentheses if it binds more loosely.
function expression.operand(text, wanted)
    text = tostring(text)
    return level_of(text) >= wanted and text or "(" .. text .. ")"
end

local operand = expression.operand

-- `left operator right`, for an operator that takes operands of the same kind on its left.
function expression.binary(left, operator, right)
    local own = binary[operator]
    return operand(left, own) .. " " .. operator .. " " .. operand(right, own + 1)
end

-- The same where every operand that is an expression itself gets parentheses: compilers warn of others.
function expression.bitwise(left, operator, right)
    return operand(left, level.unary) .. " " .. operator .. " " .. operand(right, level.unary)
end

function expression.call(name, ...) return name .. "(" .. table.concat({ ... }, ", ") .. ")" end

function expression.cast(type, text)
    local cast = "(" .. type .. ") "
    if text:sub(1, #cast) == cast and tightness(text) == level.unary then return text end
    return cast .. operand(text, level.unary)
end

function expression.index(base, offset)
    local name, place = tostring(base):match "^([%w_]+) %+ (.+)$"
    if name and offset == 0 and level_of(base) == level.sum then return name .. "[" .. place .. "]" end
    return operand(base, level.primary) .. "[" .. offset .. "]"
end

-- Joins the parts of a sum or product: those which are numbers, or end with one, become one number at the place of the
-- first of them, which is left out if it is `neutral`. An integer, if all are.
local function joined(operator, neutral, together, parts)
    local own, list, number, place = binary[operator], {}, neutral, nil
    local pattern = "^(.+) %" .. operator .. " (%d+)$"
    for _, part in ipairs(parts) do
        local value = math.tointeger(tonumber(part))
        if not value then
            local rest, last = part:match(pattern)
            if rest and level_of(part) == own then
                part, value = rest, math.tointeger(tonumber(last))
            end
            list[#list + 1] = operand(part, (#list == 0 or operator == "+") and own or own + 1)
        end
        if value then
            number, place = together(number, value), place or value ~= neutral and #list + 1
        end
    end
    if #list == 0 or number == 0 and neutral == 1 then return number end
    if number ~= neutral then table.insert(list, place, tostring(number)) end
    return table.concat(list, " " .. operator .. " ")
end

-- The sum of integers and C expressions; of an address, too.
function expression.sum(...)
    return joined("+", 0, function(a, b) return a + b end, { ... })
end

-- The product of integers and C expressions.
function expression.times(...)
    return joined("*", 1, function(a, b) return a * b end, { ... })
end

-- Half of an even number or C expression.
function expression.half(value)
    return math.type(value) == "integer" and value // 2 or operand(value, level.product) .. " / 2"
end

-- The step of a loop: `variable` grows by `by`.
function expression.advance(variable, by)
    return tostring(by) == "1" and "++" .. variable or variable .. " += " .. by
end

function expression.conditional(condition, yes, no)
    return operand(condition, level.either) .. " ? " .. operand(yes, level.either) .. " : " .. operand(no, level.either)
end

-- The words unpack_i4 and unpack_i8, which list the numbers of 4 or 8 bits of a word, the lowest one first: `float` of
-- words and the mask of a number makes floats of it, of the last one it has how far to shift, too.
function expression.unpacked(float)
    local function numbers(bits)
        return function(words)
            local list = {}
            for at = 0, 31, bits do
                local right = at + bits == 32 and at or nil
                list[#list + 1] = float(words, ((1 << bits) - 1) << at, right)
            end
            return list
        end
    end
    return numbers(4), numbers(8)
end

-- The word dot_bf16 of instruction sets without an instruction for it, by the words unpack_bf16 and fma of `set`.
function expression.dot_bf16(set)
    return function(sum, a, b)
        local first, second = set.unpack_bf16(a), set.unpack_bf16(b)
        return set.fma(first[2], second[2], set.fma(first[1], second[1], sum))
    end
end

return expression
