-- Indents the lines of C by their structure, so that templates and what prints for them say nothing about it.
--
-- A statement stands four columns inside what it is in: a brace, a list, or the condition of an `if`, `else`, `for` or
-- `while` without braces. Labels of a switch stand where it does. The further lines of a statement or a comment move
-- with the first one. Lines of the preprocessor stay where they are, and every branch of it begins with what was open
-- before the first one.
local indent = { columns = 4 }

local byte, find, gmatch, sub = string.byte, string.find, string.gmatch, string.sub

local OPENING, CLOSING, COMMA, COLON = byte "{", byte "}", byte ",", byte ":"
local SEMICOLON, BRACKET, HASH, BACKSLASH = byte ";", byte ")", byte "#", byte "\\"
local QUOTE, APOSTROPHE, BLANK, NEWLINE = byte '"', byte "'", byte " ", byte "\n"
local opening = { [byte "("] = true, [byte "["] = true, [OPENING] = true }

local never = math.maxinteger

-- Statements that begin with these words are taken apart; the rest ends with a semicolon.
local words = {
    [byte "c"] = "^case%f[^%w_]",
    [byte "d"] = "^default:",
    [byte "e"] = "^else%f[^%w_]",
    [byte "f"] = "^for %(",
    [byte "i"] = "^if %(",
    [byte "s"] = "^switch %(",
    [byte "w"] = "^while %(",
}

local IF, ELSE, SWITCH, CASE, DEFAULT = byte("iescd", 1, 5) -- what a word is called

-- How many more brackets of `set`, which has quotes, too, are opened than closed in a line, those in strings left out.
local function opened(line, set)
    local count, at = 0, 0
    while true do
        at = find(line, set, at + 1)
        if not at then return count end
        local char = byte(line, at)
        if char == QUOTE or char == APOSTROPHE then -- a string or character up to its quote
            local quote = char == QUOTE and '[\\"]' or "[\\']"
            at = find(line, quote, at + 1)
            while at and byte(line, at) == BACKSLASH do
                at = find(line, quote, at + 2)
            end
            if not at then return count end
        else
            count = count + (opening[char] and 1 or -1)
        end
    end
end

-- The place of the next comment from `from` on that is not in a string.
local function comment_from(text, from)
    local at = find(text, "/*", from, true)
    while at do
        local start, quoted = at, false
        while start > from and byte(text, start - 1) ~= NEWLINE do
            start = start - 1
            quoted = quoted or byte(text, start) == QUOTE
        end
        if not quoted then return at end
        local before = sub(text, start, at - 1):gsub("\\.", ""):gsub("'\"'", "")
        if select(2, before:gsub('"', "")) % 2 == 0 then return at end
        at = find(text, "/*", at + 2, true)
    end
    return never
end

local blanks = setmetatable({}, {
    __index = function(self, columns)
        self[columns] = (" "):rep(columns)
        return self[columns]
    end,
})

-- What is known in front of a line:
--   base, list, switch  of the brace at hand: where its statements stand, whether it is a list or a switch's
--   own                 where the first line of that brace's statement stands
--   outer               the same of the brace around it
--   places, ifs         from bottom + 1 up to top, of conditions without braces in front of the next statement: where
--                       they stand, and whether they are of an `if`; up to closed: likewise of the statement before it
--   open                whether a statement goes on; at: where its first line stands; word: what it begins with;
--                       brackets: how many are open
--   moved               columns by which the further lines of a statement or comment move
--   macro               whether a line of the preprocessor goes on
--   branches            what was known in front of the preprocessor's conditions that are open
--   text, out, kept     the text, pieces of the result, and up to where the text is in them
--   stood               where the text of the line last moved begins
local reader = {}
reader.__index = reader

local function new_reader(text)
    local self = { text = text, out = {}, kept = 1, stood = 0, moved = 0, macro = false, branches = {} }
    self.base, self.list, self.switch, self.own, self.outer = 0, false, false, 0, nil
    self.places, self.ifs, self.bottom, self.top, self.closed = {}, {}, 0, 0, 0
    self.open, self.at, self.word, self.brackets = false, 0, nil, 0
    return setmetatable(self, reader)
end

-- What a branch of the preprocessor changes.
local branched = "base list switch own outer bottom top closed open at word brackets"

local function copied(from, to)
    for name in branched:gmatch "%a+" do
        to[name] = from[name]
    end
    to.places, to.ifs = { table.unpack(from.places) }, { table.unpack(from.ifs) }
    return to
end

-- Moves the line from `first` on, whose text begins at `start`, like the one before it.
function reader:follow(first, start)
    if self.moved == 0 or start == self.stood then return end
    self.stood = start
    self.out[#self.out + 1] = sub(self.text, self.kept, first - 1)
    self.out[#self.out + 1] = blanks[start - first + self.moved]
    self.kept = start
end

-- Places this line, and what follows it.
function reader:place(first, start, columns)
    if start == self.stood then return end -- it began within a comment
    self.moved = columns - (start - first)
    self:follow(first, start)
end

-- Where the next statement stands.
function reader:next_place()
    return self.top > self.bottom and self.places[self.top] + indent.columns or self.base
end

-- A statement ends, and with it all conditions in front of it; an `else` may follow.
function reader:ends()
    self.open, self.closed, self.top = false, self.top, self.bottom
end

function reader:push(from, last)
    local text = self.text
    local list = self.list or find(sub(text, from, last), "[=,(] ?{$") or find(text, "^[%w_ ]*enum[%w_ ]*{", from)
    local outer = { base = self.base, list = self.list, switch = self.switch, own = self.own, outer = self.outer }
    outer.bottom = self.bottom
    self.outer, self.own, self.bottom, self.open = outer, self.at, self.top, false
    self.base = self.at + (find(text, '^extern "C" {', from) and 0 or indent.columns)
    self.list, self.switch = list and true or false, self.word == SWITCH
end

function reader:pop()
    local outer = self.outer
    self.at, self.open, self.word, self.brackets = self.own, false, nil, 0
    if not outer then return end
    self.top, self.bottom = self.bottom, outer.bottom
    self.base, self.list, self.switch = outer.base, outer.list, outer.switch
    self.own, self.outer = outer.own, outer.outer
end

function reader:count_brackets(from, last)
    if self.list then return opened(sub(self.text, from, last), "[%(%)%[%]{}\"']") end
    if self.word then return opened(sub(self.text, from, last), "[()\"']") end
    return 0
end

-- What the last character of a line of the statement at hand, at `last`, means.
function reader:close(from, last)
    local text, word, tail = self.text, self.word, byte(self.text, last)
    if tail == OPENING then
        self:push(from, last)
    elseif self.brackets > 0 then
        self.open = true
    elseif tail == SEMICOLON then
        self:ends()
    elseif word and (tail == BRACKET and word ~= CASE or word == ELSE and find(text, "^else", last - 3)) then
        self.top, self.open = self.top + 1, false
        self.places[self.top] = self.at
        self.ifs[self.top] = word == IF or word == ELSE and tail == BRACKET
    elseif self.list and tail == COMMA or tail == COLON and (word or find(text, "^[%w_]+:\n", from)) then
        self.open = false
    elseif tail == CLOSING and not self.list then
        self:ends()
    else
        self.open = true
    end
end

-- A line of the preprocessor.
function reader:directive(from, last)
    self.macro = byte(self.text, last) == BACKSLASH
    local kind, branches = self.text:match("^#%s*(%a+)", from), self.branches
    if kind == "if" or kind == "ifdef" or kind == "ifndef" then
        branches[#branches + 1] = copied(self, {})
    elseif (kind == "else" or kind == "elif") and branches[1] then
        copied(branches[#branches], self)
    elseif kind == "endif" then
        branches[#branches] = nil
    end
end

-- A line that begins with a closing brace.
function reader:close_brace(first, start, from, last)
    self:pop()
    self:place(first, start, self.at)
    if from == last then
        if not self.list then self:ends() end
        return
    end
    if find(self.text, "^} else%f[^%w_]", from) then
        self.word = ELSE
        self.brackets = self:count_brackets(from, last)
    end
    self:close(from, last)
end

-- A line that begins a statement, whose code is from `from` to `last`.
function reader:begin(first, start, from, last)
    local head = byte(self.text, from)
    self.word = words[head] and find(self.text, words[head], from) and head
    self.brackets = self:count_brackets(from, last)
    self.at = self:next_place()
    if self.word == ELSE then
        local n = self.closed
        while n > self.bottom and not self.ifs[n] do
            n = n - 1
        end
        if n > self.bottom then
            self.at, self.top = self.places[n], n - 1
        end
    elseif self.switch and (self.word == CASE or self.word == DEFAULT) then
        self.at = self.own
    end
    self:place(first, start, self.at)
    self:close(from, last)
end

-- A line with nothing but comments, the last of which ends in front of `behind`; or a blank one.
function reader:comment(first, start, stop, behind)
    if start == stop then
        self:place(first, start, 0)
    elseif self.open then
        self:follow(first, start)
    else
        local label = self.switch and (find(self.text, "^%s*case ", behind) or find(self.text, "^%s*default:", behind))
        self:place(first, start, label and self.own or self:next_place())
    end
end

-- A line of code, from `from` to `last`.
function reader:code(first, start, from, last)
    local head = byte(self.text, from)
    if head == HASH then
        self:directive(from, last)
    elseif self.open and not (head == OPENING and from == last or head == CLOSING and self.list) then
        self:follow(first, start)
        self.brackets = self.brackets + self:count_brackets(from, last)
        self:close(from, last)
    elseif head == CLOSING then
        self:close_brace(first, start, from, last)
    elseif byte(self.text, last) == SEMICOLON and not words[head] and not self.list then -- most lines: a statement
        self:place(first, start, self:next_place())
        self.closed, self.top = self.top, self.bottom
    else
        self:begin(first, start, from, last)
    end
end

-- The text of a C file, indented.
function indent.by_structure(text)
    local read = new_reader(text)
    local next_comment, comment_end = comment_from(text, 1), 0
    for first, start, stop in gmatch(text, "() *()[^\n]*()\n") do
        local from, last = start, stop - 1 -- of code
        if start < comment_end then
            if start < stop then read:follow(first, start) end
            read.stood = start
            from = comment_end < stop and find(text, "[^ ]", comment_end) or stop
        end
        while next_comment < stop do
            local _, behind = find(text, "*/", next_comment + 2, true)
            behind = (behind or #text) + 1
            if next_comment == from then
                from = behind < stop and find(text, "[^ ]", behind) or stop
            elseif behind >= stop then
                last = next_comment - 1
                while byte(text, last) == BLANK do
                    last = last - 1
                end
            end
            comment_end, next_comment = behind, comment_from(text, behind)
        end
        if read.macro then
            read.macro, read.moved = byte(text, last) == BACKSLASH, 0
        elseif from > last then
            read:comment(first, start, stop, comment_end)
        else
            read:code(first, start, from, last)
        end
    end
    read.out[#read.out + 1] = sub(text, read.kept)
    return table.concat(read.out)
end

return indent
