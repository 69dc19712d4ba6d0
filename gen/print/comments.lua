-- Fills the comments of emitted C: words go to lines of at most `width` columns, paragraph by paragraph.
--
-- What a line of a comment is follows from its place beside the comment's first word:
--   row        two spaces or more inside, as in "tokens  how many": it goes on below its text, which begins where that
--              of the rows beside it does
--   prose      begins where the first word does; the lines that follow belong to it, up to one that ends a sentence and
--              does not leave a short line
--   the rest   further to the right, such as code, or empty: stays a line of its own
-- A comment behind code that does not fit goes above its line.
local comments = { width = 120 } -- columns

local function columns_of(text) return utf8.len(text) or #text end

-- Whether the last one of several lines with these words, behind `base` columns, is short.
local function leaves_short_line(words, base)
    local room, columns = comments.width - base, columns_of(table.concat(words, " "))
    return columns > room and columns % room < room // 2
end

-- The paragraphs of the lines of a comment whose first word stands behind `base` columns: { indent, hang: of the lines
-- after the first, head: text that stays as it is, words }, in columns beside that word.
local function paragraphs_of(lines, base)
    local list, current = {}, nil
    for i, line in ipairs(lines) do
        local spaces, text = line:match "^( *)(.-)%s*$"
        local indent = i == 1 and 0 or math.max(0, #spaces - base)
        local head = text:match "^(%S.-  +)%S"
        if text == "" then
            indent, current = 0, nil
        end
        if head or not current or current.ends or indent ~= current.hang then
            current = { indent = indent, hang = indent, head = head or "", words = {} }
            list[#list + 1] = current
            if head then
                current.hang = indent + columns_of(head)
            elseif indent > 0 then
                current.hang, current.ends = indent + 4, true
            end
            text = text:sub(#current.head + 1)
        end
        for gap, word in text:gmatch "(%s*)(%S+)" do
            current.words[#current.words + 1] = gap:sub(2) .. word
        end
        if text == "" or current.hang == 0 and text:find "[.:]$" and not leaves_short_line(current.words, base) then
            current.ends = true
        end
    end
    return list
end

-- Gives rows that follow each other heads of the same width.
local function align_rows(list)
    local first = 1
    while list[first] do
        local last, width = first, 0
        while list[last] and list[last].head ~= "" and list[last].indent == list[first].indent do
            width = math.max(width, columns_of(list[last].head))
            last = last + 1
        end
        for i = first, last - 1 do
            local row = list[i]
            row.head = row.head .. (" "):rep(width - columns_of(row.head))
            row.hang = row.indent + width
        end
        first = math.max(last, first + 1)
    end
end

-- The lines of a comment of `body` whose "/*" stands behind `indent` spaces, and stood behind `columns` columns.
local function lines_of(body, indent, columns)
    local lines, out = {}, {}
    for line in (body:gsub("^%s+", ""):gsub("%s+$", "") .. "\n"):gmatch "([^\n]*)\n" do
        lines[#lines + 1] = line
    end
    local base = indent + 3
    local list = paragraphs_of(lines, columns + 3)
    align_rows(list)
    list[#list].last = true
    for n, paragraph in ipairs(list) do
        local words, before = paragraph.words, (" "):rep(base + paragraph.indent)
        local line = (n == 1 and (" "):rep(indent) .. "/* " or before) .. paragraph.head
        local filled, empty = columns_of(line), true
        for i, word in ipairs(words) do
            local more = columns_of(word) + (empty and 0 or 1)
            local room = i == #words and paragraph.last and 3 or 0
            if not empty and filled + more + room > comments.width then
                out[#out + 1] = line
                line, word = (" "):rep(base + paragraph.hang), word:gsub("^ +", "")
                filled, more, empty = #line, columns_of(word), true
            end
            line, filled, empty = line .. (empty and "" or " ") .. word, filled + more, false
        end
        out[#out + 1] = line:gsub("%s+$", "")
    end
    out[#out] = out[#out] .. " */"
    return table.concat(out, "\n")
end

-- The text of a C file with its comments filled.
function comments.filled(text)
    local out, kept, at = {}, 1, 1 -- `text` is in `out` up to `kept`
    while true do
        at = text:find("[\"'/]", at)
        if not at then break end
        local first = text:sub(at, at)
        if first ~= "/" then -- a string or a character
            local last = at
            repeat
                last = text:find("[\\\n" .. first .. "]", last + 1) or #text
                local escaped = text:sub(last, last) == "\\"
                if escaped then last = last + 1 end
            until not escaped
            at = last + 1
        elseif text:sub(at + 1, at + 1) ~= "*" then
            at = at + 1
        else
            local _, last = text:find("*/", at + 2, true)
            local start = at
            while start > 1 and text:sub(start - 1, start - 1) ~= "\n" do
                start = start - 1
            end
            local stop = text:find("\n", last, true) or #text + 1
            local before, body = text:sub(start, at - 1), text:sub(at + 2, last - 2)
            local behind = text:sub(last + 1, stop - 1)
            local one_line = not body:find("\n", 1, true)
            local fits = one_line and columns_of(text:sub(start, stop - 1)) <= comments.width
            if not fits and behind == "" then
                local indent = #before:match "^ *"
                out[#out + 1] = text:sub(kept, start - 1)
                out[#out + 1] = lines_of(body, indent, columns_of(before)) .. "\n"
                if #before > indent then
                    out[#out + 1] = before:gsub("%s+$", "") .. "\n"
                end
                kept = stop + 1
            end
            at = last + 1
        end
    end
    out[#out + 1] = text:sub(kept)
    return table.concat(out)
end

return comments
