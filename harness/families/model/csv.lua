-- Rows of comma-separated values, with quotes as RFC 4180 has them.
local csv = {}

-- The fields of the row of `text` that starts at byte `at`: a list, where the next row starts, and how many lines this
-- one took; nil and a rule for what is no row.
local function row_at(text, at)
    local fields, lines = {}, 1
    while true do
        if text:sub(at, at) == '"' then
            local parts = {}
            at = at + 1
            repeat
                local close = text:find('"', at, true)
                if not close then return nil, "a quoted field has no end" end
                parts[#parts + 1] = text:sub(at, close - 1)
                at = close + 1
                local doubled = text:sub(at, at) == '"'
                if doubled then
                    parts[#parts + 1] = '"'
                    at = at + 1
                end
            until not doubled
            local field = table.concat(parts)
            lines = lines + select(2, field:gsub("\n", ""))
            fields[#fields + 1] = field
            if not text:find("^,", at) and not text:find("^\r?\n", at) and at <= #text then
                return nil, "text stands behind a quoted field"
            end
        else
            local stop = text:find("[,\n]", at) or #text + 1
            local field = text:sub(at, stop - 1)
            fields[#fields + 1] = text:sub(stop, stop) == "," and field or (field:gsub("\r$", ""))
            at = stop
        end
        if text:sub(at, at) ~= "," then break end
        at = at + 1
    end
    return fields, (text:find("\n", at, true) or #text) + 1, lines
end

-- The rows of `text`, the content of the file `path`: { fields, line }. Empty lines are none. Raises one line.
function csv.rows(path, text)
    local rows, at, line = {}, text:find "^\xef\xbb\xbf" and 4 or 1, 1
    while at <= #text do
        local fields, next_at, lines = row_at(text, at)
        if not fields then error(string.format("%s:%d: %s", path, line, next_at), 0) end
        if #fields > 1 or fields[1] ~= "" then rows[#rows + 1] = { fields = fields, line = line } end
        at, line = next_at, line + lines
    end
    return rows
end

return csv
