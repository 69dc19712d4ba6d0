-- Breaks the lines of emitted C that are too long behind a comma or an operator, wherever a template breaks arguments.
-- gen/print/comments.lua has filled the comments before.
local comments = require "gen.print.comments"

local long_lines = { width = comments.width } -- columns

-- How deep in brackets the first `most` characters of a line are: a function of the character, which returns false
-- inside a string.
local function depths_of(line, most)
    local starts, depths, depth, quote = { 1 }, { 0 }, 0, nil -- from each start on the depth is another one
    local function from(start, value)
        starts[#starts + 1], depths[#depths + 1] = start, value
    end
    local at = 0
    while true do
        at = line:find("[%(%[{%)%]}\"'\\]", at + 1)
        if not at or at > most then break end
        local char = line:sub(at, at)
        if char == "\\" then
            from(at, false)
            from(at + 2, not quote and depth)
            at = at + 1
        elseif quote then
            if char == quote then
                quote = nil
                from(at + 1, depth)
            end
        elseif char == '"' or char == "'" then
            quote = char
            from(at, false)
        elseif char:find "[%(%[{]" then
            depth = depth + 1
            from(at + 1, depth)
        else
            depth = depth - 1
            from(at, depth)
        end
    end
    return function(place)
        local i = #starts
        while starts[i] > place do
            i = i - 1
        end
        return depths[i]
    end
end

-- Marks to break behind, if they are punctuation, or before: operators that bind less come first.
local marks = { "[,;] ", " [?:] ", " || ", " && ", " [!=]= ", " [%+%-|] ", " [%*/%%] ", ' "' }

-- Where a line of code whose first character is in `open` brackets is best broken: at the last mark of the least depth
-- that leaves no more than `width` columns. Before one that is further inside than a call's arguments, and before an
-- operator, an assignment is, whose right side fits; and before the former the bracket of a call or list. nil: nowhere.
local function break_of(line, depth_of, width, open)
    local best, least
    local start = #line:match "^%s*" + 1
    for number, mark in ipairs(marks) do
        local from, least_before = start, least
        while true do
            local at, last = line:find(mark, from)
            if not at or last - 1 > width then break end
            local depth = depth_of(at)
            if depth and (not least or depth < least or depth == least and least ~= least_before) then
                best, least = number == 1 and at or at - 1, depth
            end
            from = at + 1
        end
        if best and number == 2 and open + least <= 1 then return best end
    end
    local assignment = line:find(" = ", start, true)
    if assignment and depth_of(assignment) == 0 and #line - assignment + start + 3 <= width then
        return assignment - 1
    end
    for _, opening in ipairs { "[%w_]()%(", "= (){" } do
        for at in line:gmatch(opening) do
            if at > width then break end
            local depth = depth_of(at)
            if depth and (not least or depth + 1 < least) then
                best, least = at, depth + 1
            end
        end
    end
    -- Two long names: between them.
    local at = not best and line:sub(1, width + 1):match "%S.*() "
    return best or at and depth_of(at) and at or nil
end

-- Where a line that begins within a call ends with its part of an expression that contains the call, and a next
-- argument or the other side of a choice follows; nil: nowhere.
local function end_of_call(line, depth_of, open)
    for at, mark in line:gmatch "()([,:]) " do
        local depth = depth_of(at)
        if depth and depth < 0 and open + depth > 0 then return mark == "," and at or at - 2 end
    end
end

-- Adds `line` in several ones. Each is indented by four columns for every bracket that is open before it, and for a
-- break outside of brackets.
local function break_line(line, add)
    local indent, mark = line:match "^%s*", line:find "^#" and " \\" or ""
    local open, outside = 0, 0 -- brackets; breaks outside of them, 1 at most
    while true do
        local width = long_lines.width + #line - (utf8.len(line) or #line) -- in bytes
        local depth_of = depths_of(line, math.max(#line, width) - #mark)
        local at = end_of_call(line, depth_of, open)
        if not at or at > width then
            at = #line > width and break_of(line, depth_of, width - #mark, open)
        end
        if not at then break end
        add(line:sub(1, at):gsub("%s+$", "") .. mark)
        open = open + depth_of(at + 1)
        outside = open == 0 and 1 or outside
        line = indent .. ("    "):rep(open + outside) .. line:sub(at + 1):gsub("^%s+", "")
    end
    add(line)
end

-- Whether a line ends behind an argument that is not the last one.
local function goes_on(line)
    if line:sub(-1) ~= "," then return false end
    local _, opened = line:gsub("%(", "")
    local _, closed = line:gsub("%)", "")
    return opened > closed
end

-- `text` with all arguments of a call, or parameters of a function, in a line.
local function joined(text)
    local out, kept, line, comment = {}, 1, nil, false -- `text` is in `out` up to `kept`
    for first, piece, behind in text:gmatch "()([^\n]*)()\n" do
        if line then
            line = line .. " " .. piece:match "^%s*(.*)$"
            if not goes_on(line) then
                out[#out + 1], line, kept = line, nil, behind
            end
        elseif comment then
            comment = not piece:find("*/", 1, true)
        else
            comment = piece:find("/*", 1, true) and not piece:find("*/", 1, true)
            if not comment and goes_on(piece) then
                out[#out + 1] = text:sub(kept, first - 1)
                line = piece
            end
        end
    end
    out[#out + 1] = text:sub(kept)
    return table.concat(out)
end

-- The text of a C file with lines of at most `long_lines.width` columns, where they can be broken; of the preprocessor
-- only conditions are.
function long_lines.broken(text)
    text = joined(text)
    local out, kept = {}, 1 -- `text` is in `out` up to `kept`
    local function add(line) out[#out + 1] = line .. "\n" end
    for first, behind in text:gmatch "()[^\n]*()\n" do
        if behind - first > long_lines.width then
            local line = text:sub(first, behind - 1)
            if not line:find "^#" or line:find "^#if" then
                out[#out + 1] = text:sub(kept, first - 1)
                kept = behind + 1
                break_line(line, add)
            end
        end
    end
    out[#out + 1] = text:sub(kept)
    return table.concat(out)
end

return long_lines
