-- Loops of one turn in emitted C: templates print loops over tables, heads and vectors without asking whether there is
-- only one of them; emission prints the turn instead.
local c = require "gen.print.code"

local turns = {}

-- The place behind the statement that begins at `at` of `code`; nil: it is not of a kind that is known.
local function behind_statement(code, at)
    at = code:match("^%s*()", at)
    if code:find("^{", at) then return code:match("^%b{}()", at) end
    local word, body = code:match("^(%l+) %b()()", at)
    if word == "for" then return behind_statement(code, body) end
    if word == "if" then
        local past = behind_statement(code, body)
        local other = past and code:match("^%s*else%f[^%w_]()", past)
        return other and behind_statement(code, other) or past
    end
    if word ~= "while" and word ~= "switch" and not code:find("^do%f[^%w_]", at) then
        return code:match("^[^;{}#]*;()", at)
    end
end

-- The only turn of the loop that `text` has from `first` on: { variable, value, also: what follows it, body, past:
-- places behind its head and its body }; nil: it has several, or unknown ones, or one that it may leave.
local function turn_of(text, first)
    local pattern = "^for %([%w_]+ ([%a_][%w_]*) = (%d+); ([%a_][%w_]*) < (%d+); ([^()]-)%)()"
    local variable, from, other, to, step, body = text:match(pattern, first)
    if not variable or variable ~= other then return nil end
    local own, also = step:match "^([^,]*),?%s*(.*)$"
    local width = own == "++" .. variable and 1 or tonumber((own:match("^" .. variable .. " %+= (%d+)$")))
    from, to = math.tointeger(from), math.tointeger(to)
    if not width or from >= to or from + width < to then return nil end
    local code = c.blanked(text:sub(body))
    local past = behind_statement(code, 1)
    local inside = past and code:sub(1, past)
    if not past or inside:find "%f[%w_]continue;" or inside:find "%f[%w_]break;" then return nil end
    return { variable = variable, value = tostring(from), also = also, body = body, past = body + past - 1 }
end

-- `text` of C where `variable`, outside of comments, is `value`.
local function with_value(text, variable, value)
    return c.changed(text, function(part)
        return (part:gsub("([.>]?)%f[%w_]" .. variable .. "%f[^%w_]", function(before)
            return before == "" and value or nil
        end))
    end)
end

-- Whether statements in `code` declare something.
local function declares(code)
    for type in code:gmatch "[;{}]%s*([%a_][%w_]*) [%w_* ]*[%w_*][ =%[;]" do
        if type ~= "return" then return true end
    end
    return code:find "[;{}]%s*const " ~= nil
end

-- What stands for a loop in `text`, whose turn is `turn`; alone: it is the body of a loop or condition without braces.
local function printed(text, turn, alone)
    local body = with_value(text:sub(turn.body, turn.past - 1), turn.variable, turn.value)
    local also = turn.also ~= "" and "\n" .. turn.also:gsub(", ", ";\n") .. ";" or ""
    local inside = body:match "^%s*{[ ]*\n?(.-)%s*}$"
    local many = inside ~= nil or also ~= ""
    inside = (inside or body:gsub("^%s+", "")) .. also
    if many and (alone or declares("{" .. c.blanked(inside))) then return "{\n" .. inside .. "\n}" end
    return inside
end

-- The C `text` where loops of one turn are their turn. OpenMP's loops stay.
function turns.unrolled(text)
    local heads = {}
    for first in text:gmatch "()for %([%w_]+ [%w_]+ = %d+; [%w_]+ < %d+; " do
        heads[#heads + 1] = first
    end
    for i = #heads, 1, -1 do -- inner ones first
        local first = heads[i]
        local turn = turn_of(text, first)
        local before = turn and c.blanked(text:sub(1, first - 1))
        local line = turn and before:match "([^\n]*)\n%s*$" or ""
        if turn and not line:find "^%s*#pragma" then
            local alone = not line:find "^%s*#" and before:find "[^;{}%s]%s*$" ~= nil
            local head, body = text:sub(1, first - 1), printed(text, turn, alone)
            if alone and body:find "^{" then head = head:gsub("%)%s*$", ") ") end
            text = head .. body .. text:sub(turn.past)
        end
    end
    return text
end

return turns
