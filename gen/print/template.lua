-- Renders a template: C text with `//$ lua` lines and `$(expression)` substitutions.
--
-- A line of text may end with a condition or a loop, or several of them, the outer one first; it is printed only if the
-- condition holds, or once a turn. Such a line has no `then`, `do` and `end`:
--   float *score; //$ if score.scored
--   sum$(n) += part[$(n)]; //$ for n = 0, 3
--   row$(r)[$(n)] = 0; //$ for r = 0, rows - 1 if used[r] for n = 0, 3
-- Where a line of C stands is left to gen/print/indent.lua: a template may indent it as it reads best.
--
-- Every template line becomes exactly one line of a Lua chunk whose name is the template's path, so Lua's own
-- messages carry file and line. A substitution takes a string or an integer, nothing else, and the environment
-- has no pairs, os, io or math.random: what a template prints depends on its arguments only.
--
-- The first lines of a template declare what it takes beside what every template may use (template.common):
--   //$ takes tile, vectors,
--   //$ takes prologue
-- It then sees these names only; one that the caller does not give, or that the template never mentions, is an error.
-- `//$ takes` alone: nothing.
--
-- In the C text $name is the helper <model>_name and $NAME the macro <MODEL>_NAME; those that are used are printed into
-- <model>_runtime.h (gen/isa/helpers.lua), as $hidden(1.0f): a number that compilers do not know.

local printers = require "gen.print.printers"

local template = {}

-- The address of a table or a function differs from run to run.
local function text_of(value)
    if type(value) == "table" or type(value) == "function" then
        error("tostring takes a string, a number or a boolean, got a " .. type(value), 2)
    end
    return tostring(value)
end

-- What every template may use: the model's own names and numbers, and helpers that make text. Nobody declares them.
template.common = {
    model = true, -- the prefix of all names
    names = true, -- of types, constants, macros and functions (gen/schema/names.lua)
    api = true, -- what the public header says of functions
    shape = true, -- the plan's sizes
    sum = true, -- sum(a, b …): a + b, without zeros
    times = true, -- times(a, b): a * b, without ones
    advance = true, -- advance(variable, step): ++variable or variable += step
    plural = true, -- plural(2, "row"): "2 rows"
    include = true, -- include(path, { name = value }): the text of another template
    lines = true, -- lines(list): prints each
    -- gen/print/printers.lua:
    loop = true, -- loop(variable, from, to, step, body): a for loop, or its only turn
    once = true, -- once(path, given): a file's own function, printed where it is first used; its prefix
    first_lane = true,
    block = true, -- block(body): in braces if there are several statements
    over_row = true, -- over_row(count, body): over a row by vectors, the last one part of one
    across = true, -- across "add": a function from a vector to the sum of its lanes
    listed = true, -- listed(a, b …): as arguments, without those that are false
}

local safe = { ipairs = ipairs, error = error, assert = assert, tostring = text_of, type = type }

local function quoted(text) return (string.format("%q", text):gsub("\\\n", "\\n")) end

-- The part after "$" is a balanced "(...)".
local function substitutions(line, path, number)
    local pieces, from = {}, 1
    while true do
        local at = line:find("$(", from, true)
        if not at then break end
        local expression = line:match("^%b()", at + 1)
        if not expression then error(string.format("%s:%d: $( is not closed on this line", path, number), 0) end
        if at > from then pieces[#pieces + 1] = quoted(line:sub(from, at - 1)) end
        pieces[#pieces + 1] = "_value" .. expression
        from = at + 1 + #expression
    end
    pieces[#pieces + 1] = quoted(line:sub(from) .. "\n")
    return "_put(" .. table.concat(pieces, " .. ") .. ")"
end

-- What opens and closes each clause of a line's suffix, such as `if a for n = 1, 3`: two pieces of Lua.
local function clauses(suffix, path, number)
    local function wrong(text) error(string.format("%s:%d: //$ behind a line: %s", path, number, text), 0) end
    local starts, at = {}, 1
    while at <= #suffix do -- words, strings and marks, one after the other
        local word, quote = suffix:match("^[%w_]+", at), suffix:match("^[\"']", at)
        local last = at
        if word then
            last = at + #word - 1
            if word == "if" or word == "for" then
                starts[#starts + 1] = { at = at, loop = word == "for" }
            elseif word == "then" or word == "do" or word == "end" or word == "function" then
                wrong("no " .. word .. " stands there")
            end
        elseif quote then
            repeat
                last = suffix:find("[\\" .. quote .. "]", last + 1) or wrong "a string is not closed"
                local escapes = suffix:sub(last, last) == "\\"
                last = escapes and last + 1 or last
            until not escapes
        elseif suffix:find("^%-%-", at) then
            wrong "no comment stands there"
        end
        at = last + 1
    end
    if not starts[1] or starts[1].at > 1 then wrong "what stands there begins with if or for" end
    local open = {}
    for i, clause in ipairs(starts) do
        local last = starts[i + 1] and starts[i + 1].at - 1 or #suffix
        open[i] = suffix:sub(clause.at, last):gsub("%s+$", "") .. (clause.loop and " do " or " then ")
    end
    return table.concat(open), (" end"):rep(#open)
end

-- A line of text and the suffix behind it, nil: it has none.
local function apart(line)
    local at = line:find("//$", 1, true)
    if not at then return line end
    return line:sub(1, at - 1):gsub("[ \t]+$", ""), line:sub(at + 3):match "^%s*(.-)%s*$"
end

-- The names that the first lines of a template declare: { {name, line} }, a set of them, and how many lines those are.
local function declared(text)
    local list, set, count = {}, {}, 0
    for line in text:gmatch "[^\n]*" do
        local names = line:match("^%s*//%$ takes%f[%s\0](.*)$")
        if not names then break end
        count = count + 1
        for name in names:gmatch("[^%s,]+") do
            list[#list + 1], set[name] = { name = name, line = count }, true
        end
    end
    return list, set, count
end

local function lines_of(text)
    local list = {}
    for line in (text:gsub("\n$", "") .. "\n"):gmatch("([^\n]*)\n") do
        list[#list + 1] = line
    end
    return list
end

-- Whether the word `name` is in the text `lua`.
local function mentions(lua, name)
    local from = 1
    while true do
        local at, last = lua:find(name, from, true)
        if not at then return false end
        if not lua:find("^[%w_]", last + 1) and not lua:sub(at - 1, at - 1):find "[%w_]" then return true end
        from = last + 1
    end
end

-- Raises an error for a declaration that says nothing: of a name that is not one, is given twice, is there anyway, or
-- is not mentioned in the Lua of the lines after number `last`.
local function check_declared(list, lines, last, path)
    local pieces, seen = {}, {}
    for number = last + 1, #lines do
        pieces[#pieces + 1] = lines[number]:match("//%$(.*)$")
        for expression in lines[number]:gmatch("%$(%b())") do
            pieces[#pieces + 1] = expression
        end
    end
    local lua = " " .. table.concat(pieces, "\n")
    for _, item in ipairs(list) do
        local name = item.name
        local wrong = not name:find("^[%a_][%w_]*$") and "is not a name"
            or template.common[name] and "is there for every template"
            or seen[name] and "is declared twice"
            or not mentions(lua, name) and "is declared, but not used"
        if wrong then error(string.format("%s:%d: takes %s: %s", path, item.line, name, wrong), 0) end
        seen[name] = true
    end
end

-- The Lua of a line of text.
local function printed(line, path, number)
    local text, suffix = apart(line)
    if not suffix then return substitutions(line, path, number) end
    local before, behind = clauses(suffix, path, number)
    return before .. substitutions(text, path, number) .. behind
end

-- The Lua source of the template `text`, the contents of the file `path`; raises an error for a wrong declaration.
function template.source(text, path)
    local chunk, lines = {}, lines_of(text)
    local list, _, last = declared(text)
    for number, line in ipairs(lines) do
        local statement = line:match("^%s*//%$(.*)$")
        chunk[number] = number <= last and "" or statement or printed(line, path, number)
    end
    check_declared(list, lines, last, path)
    return "local _ENV = ...; " .. table.concat(chunk, "\n")
end

-- What template.render takes: { path, run, takes }, of the template `text`, the contents of the file `path`: the Lua
-- chunk, a function of its environment, and the set of names that it declares, if it does. bytecode: that of its
-- source, or nil.
function template.compile(text, path, bytecode)
    local run, message = load(bytecode or template.source(text, path), "@" .. path, bytecode and "b" or "t")
    if not run then error(message, 0) end
    local _, takes, count = declared(text)
    return { path = path, run = run, takes = count > 0 and takes or nil }
end

-- Raises an error unless `values` has all that the template takes and, of the names in `more` (optional), which are for
-- it alone, nothing else.
local function check_given(takes, path, values, more)
    local names = {}
    for name in pairs(takes) do
        if values[name] == nil then names[#names + 1] = name end
    end
    table.sort(names)
    if names[1] then error(string.format("%s: takes %s, which it is not given", path, names[1]), 0) end
    for name in pairs(more or {}) do
        if not takes[name] and not template.common[name] then names[#names + 1] = name end
    end
    table.sort(names)
    if names[1] then error(string.format("%s: is given %s, which it does not take", path, names[1]), 0) end
end

-- Renders a template, which template.compile made, with the names in `values`, of which `more` (optional) are for this
-- template alone. Returns the output; raises "path:line: message" when the template is wrong.
function template.render(compiled, values, more)
    local out, takes = {}, compiled.takes
    if takes then check_given(takes, compiled.path, values, more) end
    local environment = setmetatable({}, {
        __index = function(self, name)
            local value = safe[name]
            if not takes or takes[name] or template.common[name] then
                local given = values[name]
                if given ~= nil then value = given end
            end
            if value == nil then error("unknown name '" .. tostring(name) .. "'", 2) end
            rawset(self, name, value) -- asked for once
            return value
        end,
    })
    environment._put = function(piece) out[#out + 1] = piece end
    environment._value = function(value)
        if type(value) ~= "string" and math.type(value) ~= "integer" then
            error("$(…) takes a string or an integer, got a " .. (math.type(value) or type(value)), 2)
        end
        return value
    end
    local text = { out = out, values = values }
    for name, print in pairs(printers) do
        environment[name] = function(...) return print(text, ...) end
    end
    compiled.run(environment)
    return table.concat(out)
end

return template
