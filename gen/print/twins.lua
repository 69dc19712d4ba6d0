-- What stands twice in the C of a bundle under two names becomes one: functions, structs and constants of two runs of
-- blocks, and functions of kernels for few tokens and for many. It is named after what the names have in common.
local twins = {}

-- ## Reading emitted C

local function without_comments(text) return (text:gsub("/%*.-%*/", "")) end

-- `name` without the number of a run of blocks.
local function without_run(name)
    return (name:gsub("_blocks_%d+%f[_\0]", "_blocks"):gsub("_BLOCKS_%d+%f[_\0]", "_BLOCKS"))
end

-- Adds to `items` what `pattern` finds in `text`: one { name, code: without comments, first, past: its place, with the
-- comment and the blank line before it, kind, is_local: only its file knows it }. read(code): name, and whether it is
-- local; nil: it is none.
local function add(items, text, pattern, kind, read)
    local from = 1
    for at, past in text:gmatch(pattern) do
        local first = from + #(text:sub(from, at):match ".*\n\n" or "")
        local code = without_comments(text:sub(first, past - 1)):gsub("^%s+", "")
        local name, is_local = read(code)
        if name then
            code = code:gsub("%s+", " ") -- lines are broken where names end
            items[#items + 1] =
                { name = name, code = code, first = first - 1, past = past, kind = kind, is_local = is_local }
        end
        from = past - 1
    end
end

-- The constants and structs of runs of blocks, and the functions, that `text` defines. header: others include it; open:
-- only static functions count.
local function items_of(text, header, open)
    local items = {}
    for first, name, value, past in text:gmatch "()#define ([%u%d_]+) (%d+)%f[^%w_.][^\n]*\n()" do
        if without_run(name) ~= name then
            local kind, is_local = "constant", not header
            items[#items + 1] =
                { name = name, code = value, first = first, past = past, kind = kind, is_local = is_local }
        end
    end
    add(items, text, "()typedef struct[%w_ ]* {\n.-\n} [%w_]+;\n()", "struct", function(code)
        local name = code:match "} ([%w_]+);\n$"
        if without_run(name) ~= name then return name, not header end
    end)
    add(items, text, "()\n{\n.-\n}\n()", "function", function(code)
        local head = code:match "^.-\n{\n":gsub("__attribute__%s*%b()", "")
        local is_static = head:find "%f[%w_]static%f[^%w_]" ~= nil
        if head:find "^#" or head:find "\n#" or open and not is_static then return nil end
        return head:match "([%a_][%w_]*)%s*%(", is_static
    end)
    return items
end

-- ## What is the same

-- The words that the names `a` and `b` have in common, in their order, as many as there are.
local function common(a, b)
    local function words_of(name)
        local words = {}
        for word in (name .. "_"):gmatch "(.-)_" do
            words[#words + 1] = word
        end
        return words
    end
    local left, right, most = words_of(a), words_of(b), {}
    for i = #left + 1, 1, -1 do
        most[i] = {}
        for j = #right + 1, 1, -1 do
            local inside = i <= #left and j <= #right
            most[i][j] = not inside and 0
                or left[i] == right[j] and most[i + 1][j + 1] + 1
                or math.max(most[i + 1][j], most[i][j + 1])
        end
    end
    local words, i, j = {}, 1, 1
    while i <= #left and j <= #right do
        if left[i] == right[j] then
            words[#words + 1], i, j = left[i], i + 1, j + 1
        elseif most[i + 1][j] >= most[i][j + 1] then
            i = i + 1
        else
            j = j + 1
        end
    end
    return table.concat(words, "_")
end

-- Those of `items` whose code is that of others but for names; `public` ones stay.
local function alike(items, public)
    local list, shapes, counts = {}, {}, {}
    for i, item in ipairs(items) do
        local shape = item.kind .. item.code:gsub("[%a_][%w_]*", "")
        shapes[i], counts[shape] = shape, (counts[shape] or 0) + 1
    end
    for i, item in ipairs(items) do
        if counts[shapes[i]] > 1 and not public[item.name] then list[#list + 1] = item end
    end
    return list
end

-- What tells `item` from others: its code, with the names of what it uses taken for those of the first ones of the
-- same, and its name in all runs of blocks; but functions may have any names.
local function key_of(item, first_of)
    local code = item.code:gsub("[%a_][%w_]*", function(word) return word == item.name and "(" or first_of[word] end)
    return item.kind == "function" and code or item.kind .. " " .. without_run(item.name) .. code
end

-- Finds which of `items` of a file are the same as an earlier one: these are `gone`, the first one has all `names`.
-- own, known: the name of the first one by the names of the others, of what the file has for itself and of what several
-- files know; this adds to them. Returns whether there are any.
local function find(items, own, known)
    local any = false
    repeat
        local seen, found = {}, false
        for _, item in ipairs(items) do
            local key = not item.gone and key_of(item, own)
            local first = seen[key]
            if first then
                item.gone, found, any = true, true, true;
                (item.is_local and own or known)[item.name] = first.name
                first.names = first.names or { first.name }
                table.insert(first.names, item.name)
            elseif key then
                seen[key] = item
            end
        end
    until not found
    return any
end

-- Gives what is the same among `items` a name: adds new names by the old ones to `own` and `known`. taken(name):
-- something else is called so.
local function name_all(items, own, known, taken)
    for _, item in ipairs(items) do
        local members, name, shortest = {}, item.name, item.name
        for _, other in ipairs(item.names or {}) do
            members[other], name = true, common(name, other)
            shortest = #other < #shortest and other or shortest
        end
        if not members[name] and taken(name) then name = shortest end -- lines are broken already
        for other in pairs(members) do
            (item.is_local and own or known)[other] = name
        end
    end
end

-- ## Writing

local mark = "\1\n" -- where a line of a list was

-- `text` without marks, and without the comments of lists of which nothing is left.
local function without_marks(text)
    local first = text:find(mark, 1, true)
    while first do
        local past = first
        while text:sub(past, past + 1) == mark do
            past = past + 2
        end
        local before, behind = text:sub(1, first - 1), text:sub(past)
        local comment = behind:find "^\n" and before:find "%*/\n$" and before:match ".*()/%*"
        if comment and before:sub(comment - 2, comment - 1) == "\n\n" then before = before:sub(1, comment - 2) end
        text = before .. behind
        first = text:find(mark, 1, true)
    end
    return text
end

-- `text` with new names and without what is gone: its own `items`, and prototypes of what `dropped` has by name.
local function rewritten(text, items, renamed, dropped)
    local parts, at = {}, 1
    table.sort(items, function(a, b) return a.first < b.first end)
    for _, item in ipairs(items) do
        if item.gone then
            parts[#parts + 1] = text:sub(at, item.first - 1)
            if item.kind == "constant" then parts[#parts + 1] = mark end
            at = item.past
        end
    end
    text = table.concat(parts) .. text:sub(at)
    if next(dropped) then
        text = text:gsub("\n([%a_][^\n(]*)%b();%f[\n]", function(head)
            return dropped[head:match "([%w_]+)$"] and "\n" .. mark:sub(1, 1) or nil
        end)
    end
    text = without_marks(text):gsub("[%a_][%w_]*", renamed)
    return (text:gsub("/%* From templates/[^\n]*%*/\n\n(/%* From )", "%1"))
end

-- A set of the words in `files`, in all or in public ones.
local function words_of(files, public)
    local words = {}
    for _, file in ipairs(files) do
        if file.public or not public then
            for word in file.text:gmatch "[%a_][%w_]*" do
                words[word] = true
            end
        end
    end
    return words
end

-- Makes one of what stands twice in `files` of a bundle, { name, text, public } each, those first that others include;
-- public ones stay as they are. open: so do functions that are not static.
function twins.joined(files, open)
    local known, names, dropped, lists, found = {}, {}, {}, {}, false
    local public = words_of(files, true)
    for i, file in ipairs(files) do
        local is_c = not file.public and file.name:find "%.[ch]$"
        lists[i] = is_c and alike(items_of(file.text, file.name:find "%.h$" ~= nil, open), public) or {}
        found = find(lists[i], setmetatable({}, { __index = known }), known) or found
    end
    if not found then return end
    local used = words_of(files, false)
    local function taken(name)
        local is_used = used[name]
        used[name] = true
        return is_used
    end
    for _, items in ipairs(lists) do
        local own, any = setmetatable({}, { __index = names }), false
        name_all(items, own, names, taken)
        for _, item in ipairs(items) do
            any = any or item.gone
            if item.gone and not item.is_local then dropped[item.name] = true end
        end
        items.names, items.any = own, any
    end
    for i, file in ipairs(files) do
        if lists[i].any or next(names) then file.text = rewritten(file.text, lists[i], lists[i].names, dropped) end
    end
end

return twins
