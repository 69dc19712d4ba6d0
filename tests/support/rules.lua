-- Rules of emitted C that a reader holds C written by hand to: few parameters, no function twice, comments that name
-- the parameters that there are, offsets with names, and no loops or arithmetic that do nothing.
local rules = { most_parameters = 8, digits = 5 }

rules.say = {
    comment = "a comment with rows for parameters names these and no others",
    idle = "no loop has one turn, nothing is multiplied or divided by 1, and 0 is added to nothing",
    offset = "a place or pitch of " .. rules.digits .. " digits or more has a name",
    parameters = "a function has at most " .. rules.most_parameters .. " parameters",
    twice = "a file has each function once, whatever its name",
}

-- ## Reading C

local function blank(part) return (part:gsub("[^\n]", " ")) end

-- `text` of C with blanks for comments and for what stands in quotes: places stay.
local function code_of(text) return (text:gsub("/%*.-%*/", blank):gsub('"[^"\n]*"', blank)) end

-- The comments of `text`: by the place behind each its start.
local function comments_of(text)
    local starts = {}
    for start, past in text:gmatch "()/%*.-%*/()" do
        starts[past] = start
    end
    return starts
end

-- The names in the list of parameters `list`, "" for those without one.
local function parameters_of(list)
    local names = {}
    local plain = list:sub(2, -2):gsub("%(%*([%w_]+)%)%s*%b()", " %1"):gsub("%b()", ""):gsub("%b[]", "")
    for one in (plain .. ","):gmatch "([^,]*)," do
        local name = one:match "([%a_][%w_]*)%s*$"
        if name ~= "void" then names[#names + 1] = name or "" end
    end
    return names
end

-- The functions of a C file, { name, place, parameters, comment: what stands right before it or nil, body: nil of a
-- prototype }.
local function functions_of(text, code)
    local list, starts, done = {}, comments_of(text), 0
    for start in ("\n" .. code):gmatch "()\n[%a_]" do
        local at = start > done and start
        while at do -- attributes stand before names
            local name, parameters, past = code:match("^[%a_][%w_ *\n]-([%a_][%w_]*)(%b())%s*()", at)
            local mark = past and code:sub(past, past)
            if mark == "{" or mark == ";" then
                list[#list + 1] = {
                    name = name,
                    place = start,
                    parameters = parameters_of(parameters),
                    list = parameters,
                    comment = starts[start - 1] and text:sub(starts[start - 1], start - 2),
                    body = mark == "{" and code:match("^{.-\n}", past) or nil,
                }
            end
            done = past or done
            at = mark and mark:find "[%a_]" and past
        end
    end
    return list
end

-- A function from places in `text` to the template that the text there is from.
local function origins_of(text)
    local places, names = {}, {}
    for place, name in text:gmatch "()rom (templates/[%w_/.]-%.%w+)%f[^%w_]" do
        places[#places + 1], names[#names + 1] = place, name
    end
    return function(place)
        local low, high = 0, #places
        while low < high do
            local middle = (low + high + 1) // 2
            if places[middle] <= place then
                low = middle
            else
                high = middle - 1
            end
        end
        return names[low] or "no template"
    end
end

-- ## The rules

-- Each is a function of a file, { code, functions, numbers: those that have names in the bundle }, and of report(place,
-- what, the function's name or nil).
rules.list = {}

function rules.list.parameters(file, report)
    for _, one in ipairs(file.functions) do
        local count = #one.parameters
        if count > rules.most_parameters then report(one.place, count .. " parameters", one.name) end
    end
end

-- Functions of two files may be alike: they are static in both.
function rules.list.twice(file, report)
    local bodies = {}
    for _, one in ipairs(file.functions) do
        if one.body then
            local body = (one.list .. one.body):gsub("%s+", " "):gsub("[%u_][%u%d_]*_BLOCKS_%d+_[%u%d_]+", file.numbers)
            local first = bodies[body]
            if first then report(one.place, "is " .. first, one.name) end
            bodies[body] = first or one.name
        end
    end
end

-- The heads of the rows of a comment, as of "x, y  what they are".
local function heads_of(comment)
    local heads = {}
    for line in (comment:gsub("^/%*", "  "):gsub("%*/$", "") .. "\n"):gmatch "   (%S[^\n]-)\n" do
        heads[#heads + 1] = line:match "^(.-)  +%S"
    end
    return heads
end

-- Whether the sentences and rows of a comment, in small letters, say what parameter `name` is: by its name, or of steps
-- all at once.
local function says(comment, name)
    local named = comment:find("%f[%w_]" .. name:lower() .. "%f[^%w_]")
    return named or name:find "_step$" and comment:find "%f[%w]steps are "
end

-- Where rows describe parameters, they describe no others, and each parameter stands in some row or sentence, or in the
-- comment before if this one begins with "The same".
function rules.list.comment(file, report)
    for _, one in ipairs(file.functions) do
        local heads, known = one.comment and heads_of(one.comment) or {}, {}
        local all = #heads > 0 and not one.comment:find "^/%* The same[^%l]"
        for _, name in ipairs(one.parameters) do
            known[name] = true
            if all and not says(one.comment:lower(), name) then
                report(one.place, "its comment has no " .. name, one.name)
            end
        end
        for _, head in ipairs(heads) do
            for name in head:gsub("%b[]", ""):gmatch "[%a_][%w_]*" do
                if not known[name] and name ~= "and" then
                    report(one.place, "its comment describes " .. name, one.name)
                end
            end
        end
    end
end

-- `code` with blanks for what names numbers, or lists them: the preprocessor's lines, enumerations and tables.
local function unnamed(code)
    local lines, continued = {}, false
    for line in code:gmatch "[^\n]*\n?" do
        local names = continued or line:find "^%s*#"
        continued = names and line:find "\\%s*$"
        lines[#lines + 1] = names and blank(line) or line
    end
    return (table.concat(lines):gsub("%f[%w_]enum[%s%w_]*%b{}", blank):gsub("=%s*%b{}", blank))
end

-- Terms and factors of that many digits; a factor of 2^16 moves bits, and does not say a place.
function rules.list.offset(file, report)
    local code = unnamed(file.code)
    local digits = ("%d"):rep(rules.digits) .. "%d*"
    local function look(pattern)
        for place, number in code:gmatch(pattern) do
            if number ~= "65536" then report(place, number) end
        end
    end
    look("()[+*] (" .. digits .. ")%f[^%w_.]")
    look("()%f[%w_.](" .. digits .. ") %*")
end

-- Whether `line` begins a loop between numbers, or names of them, that has one turn at most.
function rules.one_turn(line, numbers)
    local variable, from, to, step = line:match "for %([%w_]+ ([%w_]+) = ([%w_]+); [%w_]+ < ([%w_]+); ([^,;)]+)"
    if not variable then return false end
    local function number(text) return math.tointeger(tonumber(numbers[text] or text)) end
    from, to = number(from), number(to)
    step = step == "++" .. variable and 1 or number(step:match "^[%w_]+ %+= ([%w_]+)$" or "")
    return from and to and step and from + step >= to
end

local idle = {
    "()[%w_%])] ([*/] 1)[uUlL]*%f[^%w_.]",
    "()%f[%w_.](1 %*) [%w_(]",
    "()[%w_%])] (%+ 0)[uUlL]*%f[^%w_.]",
    "()%f[%w_.](0 %+) [%w_(]",
}

function rules.list.idle(file, report)
    for place, line in file.code:gmatch "()(for %b())" do
        if rules.one_turn(line, file.numbers) then report(place, "a loop of one turn") end
    end
    for _, pattern in ipairs(idle) do
        for place, text in file.code:gmatch(pattern) do
            report(place, text)
        end
    end
end

-- ## Bundles

-- Numbers that `text` gives a name, added to `numbers`.
local function read_names(text, numbers)
    for name, value in text:gmatch "#define ([%u%d_]+) (%d+)%f[%s]" do
        numbers[name] = value
    end
end

local names = {}
for name in pairs(rules.list) do
    names[#names + 1] = name
end
table.sort(names)

-- The line of `text` that `place` is in.
local function line_of(text, place)
    local _, breaks = text:sub(1, place):gsub("\n", "")
    return breaks + 1
end

-- What breaks the rules in a bundle of `files`, { { name, text } }: a list of { rule, template, line: a function that
-- says it in one line }.
function rules.broken(files)
    local list, numbers = {}, {}
    for _, file in ipairs(files) do
        read_names(file.text, numbers)
    end
    for _, file in ipairs(files) do
        local code, origin = code_of(file.text), origins_of(file.text)
        local given = { code = code, functions = functions_of(file.text, code), numbers = numbers }
        for _, rule in ipairs(names) do
            rules.list[rule](given, function(place, what, name)
                for _, one in ipairs(name and {} or given.functions) do
                    if one.place > place then break end
                    name = one.name
                end
                local function line()
                    local where = file.name .. ":" .. line_of(file.text, place)
                    return string.format("%s: %s: %s: %s", where, name or "no function", what, rules.say[rule])
                end
                list[#list + 1] = { rule = rule, template = origin(place), line = line }
            end)
        end
    end
    return list
end

return rules
