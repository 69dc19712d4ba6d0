-- Breaks the lines of emitted C that are too long behind a comma or an operator. gen/print/comments.lua has filled the
-- comments before.
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

-- Where a line of code is best broken: behind the last comma, semicolon or operator of the least depth that leaves no
-- more than `width` columns, or else behind a parenthesis; nil: nowhere.
local function break_of(line, depth_of, width)
    local best, least
    for _, mark in ipairs { "[,;] ", " [?:] ", " [%+%-=|] ", " && ", ' "' } do
        local from = #line:match "^%s*" + 1
        while true do
            local at, last = line:find(mark, from)
            if not at or last - 1 > width then break end
            local place = (mark == "[,;] ") and at or at - 1 -- an operator begins the next line
            local depth = depth_of(at)
            if depth and (not least or depth < least or depth == least and place > best) then
                best, least = place, depth
            end
            from = at + 1
        end
        if best and least <= 1 then break end
    end
    if best then return best end
    -- Calls in calls, of one argument each: behind the parenthesis of the outermost one.
    for at in line:gmatch "[%w_]()%(" do
        if at > width then break end
        local depth = depth_of(at)
        if depth and (not least or depth < least) then
            best, least = at, depth
        end
    end
    -- Two long names: between them.
    local at = not best and line:sub(1, width + 1):match "%S.*() "
    return best or at and depth_of(at) and at or nil
end

-- Adds `line` in several ones.
local function break_line(line, add)
    local rest, mark = line:match "^%s*" .. "    ", line:find "^#" and " \\" or ""
    while true do
        local width = long_lines.width + #line - (utf8.len(line) or #line) -- in bytes
        local at = #line > width and break_of(line, depths_of(line, width - #mark), width - #mark)
        if not at then break end
        add(line:sub(1, at):gsub("%s+$", "") .. mark)
        line = rest .. line:sub(at + 1):gsub("^%s+", "")
    end
    add(line)
end

-- The text of a C file with lines of at most `long_lines.width` columns, where they can be broken. Continued lines are
-- indented by four columns more; of the preprocessor only conditions are broken.
function long_lines.broken(text)
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
