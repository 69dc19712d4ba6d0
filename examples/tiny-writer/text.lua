-- Makes two plain texts out of dictionaries of dictd, one for training and one for validation.
--
--   lua5.4 text.lua train.txt valid.txt jargon.dict devil.dict
--
-- An entry is "word: definition", a line for each paragraph, and an empty line. Every 20th entry is for validation.
-- Verse, pronunciations, marks of cross-references and characters beyond ASCII are left out.
local every = 20
local shortest = 60 -- bytes of a definition that is more than a reference to another one

local ascii = {
    ["“"] = '"',
    ["”"] = '"',
    ["‘"] = "'",
    ["’"] = "'",
    ["–"] = "-",
    ["—"] = " -- ",
    ["…"] = "...",
    ["\u{a0}"] = " ",
}

local function cleaned(text)
    text = text:gsub("“%s+", "“"):gsub("‘%s+", "‘"):gsub("%s+”", "”")
    text = text:gsub(utf8.charpattern, ascii):gsub("[\x80-\xff]", "")
    return (text:gsub("[{}]", ""):gsub("%s+", " "):gsub(" ([.,;:])", "%1"):gsub("^ ", ""):gsub(" $", ""))
end

-- The paragraphs of lines first … #lines: those whose lines all begin with `indent`.
local function paragraphs_of(lines, first, indent)
    local list, words = {}, {}
    for i = first, #lines + 1 do
        local line = lines[i] or ""
        if line:find "%S" then
            words[#words + 1] = line
        elseif #words > 0 then
            local inside = true
            for _, own in ipairs(words) do
                inside = inside and own:find("^" .. indent .. "%S") ~= nil
            end
            if inside then list[#list + 1] = cleaned(table.concat(words, " ")) end
            words = {}
        end
    end
    return list
end

-- The Jargon File: a word at the margin, its pronunciation behind one space, paragraphs behind four.
local function jargon(lines)
    return lines[1], paragraphs_of(lines, 2, "    ")
end

-- The Devil's Dictionary: "WORD, n.  Definition", paragraphs at the margin, verse behind spaces.
local function devil(lines)
    local word, rest = lines[1]:match "^(%u[%u' -]*), %l[%l.]*%s+(.*)$"
    if not word then return end
    lines[1] = rest
    return word:lower(), paragraphs_of(lines, 1, "")
end

-- The entries of a dictionary; is_word(line, before): whether an entry begins there.
local function entries_of(path, is_word)
    local entries, lines, before = {}, nil, ""
    for line in io.lines(path) do
        if before == "" and is_word(line) then
            lines = {}
            entries[#entries + 1] = lines
        end
        if lines then lines[#lines + 1] = line end
        before = line
    end
    return entries
end

local kinds = {
    jargon = { entry = jargon, is_word = function(line) return line:find "^%S" and not line:find "^00%-database" end },
    devil = { entry = devil, is_word = function(line) return line:find "^%u%u[%u' -]*, %l" end },
}

local files = { assert(io.open(arg[1], "wb")), assert(io.open(arg[2], "wb")) }
local number = 0
for i = 3, #arg do
    local kind = kinds[arg[i]:match "([^/]*)%.dict$"]
    for _, lines in ipairs(entries_of(arg[i], kind.is_word)) do
        local word, paragraphs = kind.entry(lines)
        local text = table.concat(paragraphs or {}, "\n")
        if word and #text >= shortest then
            number = number + 1
            local file = files[number % every == 0 and 2 or 1]
            assert(file:write(cleaned(word), ": ", text, "\n\n"))
        end
    end
end
for _, file in ipairs(files) do
    assert(file:close())
end
