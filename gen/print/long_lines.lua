-- Breaks the lines of emitted C that are too long: code behind a comma, comments between words.
local long_lines = {}

long_lines.width = 140 -- columns

-- How deep in brackets the first `most` characters of a line of code are, up to a comment behind it: a function of the
-- character, which returns false inside a string; and where that comment begins.
local function depths_of(line, most)
    local starts, depths, depth, quote = { 1 }, { 0 }, 0, nil -- from each start on the depth is another one
    local function from(start, value)
        starts[#starts + 1], depths[#depths + 1] = start, value
    end
    local at, comment = 0, nil
    while true do
        at = line:find("[%(%[{%)%]}\"'\\/]", at + 1)
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
        elseif char == "/" then
            comment = line:sub(at + 1, at + 1) == "*" and at or nil
            if comment then break end
        elseif char:find "[%(%[{]" then
            depth = depth + 1
            from(at + 1, depth)
        else
            depth = depth - 1
            from(at, depth)
        end
    end
    return function(place)
        if comment and place >= comment then return nil end
        local i = #starts
        while starts[i] > place do
            i = i - 1
        end
        return depths[i]
    end, comment
end

-- Where a line of code is best broken: behind the last comma, semicolon or operator of the least depth that leaves no
-- more than `width` columns, or else behind a parenthesis; nil: nowhere.
local function break_of(line, depth_of, width)
    local best, least
    for _, mark in ipairs { "[,;] ", " [?:] ", " [%+%-=|] ", " && " } do
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
    return best
end

local space = (" "):byte()

local function words_of(line, indent, rest_indent, width, add)
    while #line > width do
        local at
        for place = width, #indent + 1, -1 do
            if line:byte(place) == space then
                at = place
                break
            end
        end
        if not at or at <= #rest_indent then break end
        add((line:sub(1, at - 1):gsub("%s+$", "")))
        line = rest_indent .. line:sub(at + 1)
    end
    add(line)
end

local function break_code(line, width, add)
    local indent = line:match "^%s*"
    local rest = indent .. "    "
    while #line > width do
        local depth_of, comment = depths_of(line, width)
        local at = break_of(line, depth_of, width)
        if not at and not comment then
            comment = select(2, depths_of(line, #line))
        end
        if comment and (not at or comment > #indent + 1 and comment <= width) then
            words_of(line, indent, (" "):rep(comment + 2), width, add)
            return
        end
        if not at then break end
        add((line:sub(1, at):gsub("%s+$", "")))
        line = rest .. line:sub(at + 1):gsub("^%s+", "")
    end
    add(line)
end

-- Adds `line`, which has too many columns, in several ones: `in_comment`, or what it begins with.
local function break_line(line, columns, in_comment, add)
    local max = long_lines.width + #line - columns -- bytes for those columns
    local indent = line:match "^%s*"
    if line:sub(#indent + 1, #indent + 2) == "/*" then
        words_of(line, indent, indent .. "   ", max, add)
    elseif in_comment then
        -- a row "name   text" goes on below its text
        local _, column = line:find "^%s*[%w_]+[,;:]?%s%s+"
        words_of(line, indent, (" "):rep(column or #indent), max, add)
    else
        break_code(line, max, add)
    end
end

-- The text of a C file with lines of at most `long_lines.width` columns, where they can be broken. Continued code is
-- indented by four columns more, a continued comment stands below its text; preprocessor lines stay as they are.
function long_lines.broken(text)
    local out, kept, scanned, in_comment = {}, 1, 1, false -- `text` is in `out` up to `kept`
    -- Whether a comment goes on at `place`, which is never before that of the last call.
    local function goes_on(place)
        while true do
            local at, last = text:find(in_comment and "*/" or "/*", scanned, true)
            if not at or at >= place then return in_comment end
            in_comment, scanned = not in_comment, last + 1
        end
    end
    local function add(line) out[#out + 1] = line .. "\n" end
    for first, behind in text:gmatch "()[^\n]*()\n" do
        if behind - first > long_lines.width then
            local line = text:sub(first, behind - 1)
            local columns = utf8.len(line) or #line
            if columns > long_lines.width and not line:find "^#" then
                out[#out + 1] = text:sub(kept, first - 1)
                kept = behind + 1
                break_line(line, columns, goes_on(first), add)
            end
        end
    end
    out[#out + 1] = text:sub(kept)
    return table.concat(out)
end

return long_lines
