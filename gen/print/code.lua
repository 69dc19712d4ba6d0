-- C as text in which comments stand.
local code = {}

local function blank(part) return (part:gsub("[^\n]", " ")) end

-- `text` with blanks for comments: places stay.
function code.blanked(text) return (text:gsub("/%*.-%*/", blank)) end

-- `text` with change(part) for each part outside of comments.
function code.changed(text, change)
    local parts, at = {}, 1
    for first, past in text:gmatch "()/%*.-%*/()" do
        parts[#parts + 1] = change(text:sub(at, first - 1))
        parts[#parts + 1] = text:sub(first, past - 1)
        at = past
    end
    parts[#parts + 1] = change(text:sub(at))
    return table.concat(parts)
end

return code
