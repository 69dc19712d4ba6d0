-- What bench times of one model: all combinations of the lists that its options are.
local dtype = require "gen.plan.dtype"
local misuse = require "gen.schema.misuse"

local combinations = {}

-- The words of the list `text` of the option --`name`, as `checked(word)` says them; raises one line for one that comes
-- twice.
local function words_of(name, text, checked)
    local list, seen = {}, {}
    -- PART=TYPE belongs to the word before.
    for word in (text:gsub(",(%a+=)", "\0%1") .. ","):gmatch("([^,]*),") do
        word = checked((word:gsub("\0", ",")))
        if seen[word] then misuse(string.format('--%s: "%s": given twice', name, word)) end
        seen[word] = true
        list[#list + 1] = word
    end
    return list
end

-- A function for `words_of`: names of types that the option --`name` has, and `more`, a word of its own, if any. Of
-- --type they may have types of parts.
function combinations.types(name, more)
    return function(word)
        if word == more then return word end
        return name == "type" and dtype.of_parts(word) and word or dtype.get(word, name).name
    end
end

-- Raises one line for a list of --type that bench does not take.
function combinations.check_types(text) words_of("type", text, combinations.types "type") end

-- The row of --tuned for `combined`.
function combinations.tuned(options)
    local function checked(word)
        if word ~= "" then return word end
        misuse(string.format('--tuned: "%s": must be files, separated by commas', options.tuned))
    end
    return { "tuned", checked }
end

-- Copies of `options` with one word each of the lists that they have for `rows`, in all combinations, the first row
-- slowest. rows: { name, checked, default }, of an option, its words and the list that stands for an absent one (nil:
-- it stays absent). Of tuned files `named` says the word; "default" stands for none.
function combinations.combined(options, rows)
    local list = { {} }
    for _, row in ipairs(rows) do
        local name, text, longer = row[1], options[row[1]] or row[3], {}
        for _, known in ipairs(list) do
            for _, word in ipairs(text and words_of(name, text, row[2]) or { false }) do
                local copy = { [name] = word or nil }
                for key, value in pairs(known) do
                    copy[key] = value
                end
                longer[#longer + 1] = copy
            end
        end
        list = longer
    end
    for _, one in ipairs(list) do
        one.named, one.tuned = one.tuned, one.tuned ~= "default" and one.tuned
        setmetatable(one, { __index = options })
    end
    return list
end

local block_rows = { "type", "activations", "cache", "tables", "projection" }
local same = "same" -- as the weights

-- Those of a transformer's blocks. The word "same" of --activations, --projection and --tables stands for the type of
-- the weights. Inputs rounded to a type that needs other weights are left out; raises one line for a word of
-- --activations of which nothing is left.
function combinations.of_blocks(options)
    local rows = {}
    for i, name in ipairs(block_rows) do
        local more = name ~= "type" and name ~= "cache" and same or nil
        rows[i] = { name, combinations.types(name, more), name == "type" and "f32" or nil }
    end
    rows[#rows + 1] = combinations.tuned(options)
    local list, known, left_out, taken = {}, {}, {}, {}
    for _, one in ipairs(combinations.combined(options, rows)) do
        local word, text = one.activations, {}
        for i, name in ipairs(block_rows) do
            if one[name] == same then
                one[name] = dtype.get(dtype.of_rows(dtype.of_parts(one.type).blocks).name, name).name
            end
            text[i] = one[name] or "-"
        end
        text = table.concat(text, " ") .. " " .. (one.named or "")
        local types = dtype.of_parts(one.type)
        local row = dtype.get(one.activations, "activations")
        if word and not (dtype.go_together(row, types.blocks) and dtype.go_together(row, types.head)) then
            left_out[#left_out + 1] = one
        elseif not known[text] then
            known[text], list[#list + 1], one.words = true, one, text:match "^(.-)[ -]*$"
        end
        taken[word or ""] = taken[word or ""] or known[text]
    end
    for _, one in ipairs(left_out) do
        local types = not taken[one.activations] and dtype.of_parts(one.type)
        for _, part in ipairs(types and { "blocks", "head" } or {}) do
            dtype.activations(one.activations, types[part])
        end
    end
    return list
end

return combinations
