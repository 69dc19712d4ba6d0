-- Factors of 1 and terms of 0 in emitted C: a template multiplies and divides by a pitch, and adds one less, without
-- asking whether it is 1; emission drops that.
local c = require "gen.print.code"

local factors = {}

-- What stands in brackets between these marks, without them unless it is a choice or several expressions.
local function plain(before, bracket, after)
    if bracket:find "[,?:&|<>=]" then return nil end
    return before .. bracket:sub(2, -2) .. after
end

-- C without comments, once more simple.
local function simpler(code)
    return (
        code:gsub("%f[%w_.]0 [*/%%] [%w_]+%f[^%w_.%[(]", "0")
            :gsub("%f[%w_.]0 [*/%%] %b()", "0")
            :gsub("%(([%w_]+) [+-] 0%) %* ", "%1 * ")
            :gsub("([%w_%])]) [+-] 0([%]),;])", "%1%2")
            :gsub("([%w_%])]) [+-] 0( [+<?:-] )", "%1%2")
            :gsub("([%[(,=?:<>]%s*)0 %+ %f[%w_(]", "%1")
            :gsub("([%[,(=] ?)(%b()) [*/] 1([%],);])", plain)
            :gsub("([%w_%])]) [*/] 1%f[^%w_.]", "%1")
            :gsub("([%[(,=?:<>+]%s*)1 %* %f[%w_(]", "%1")
    )
end

-- C without comments, as simple as it gets.
local function without(code)
    local before
    repeat
        before, code = code, simpler(code)
    until code == before
    return code
end

-- The C `text` without its factors and divisors of 1, multiples of 0 and zeros that are added; comments stay.
function factors.dropped(text)
    local found = text:find " [*/] 1%f[^%w_.]" or text:find "%f[%w_.]1 %* " or text:find " [+-] 0[%]),; ]"
    found = found or text:find "%f[%w_.]0 [*/%%+] "
    return found and c.changed(text, without) or text
end

return factors
