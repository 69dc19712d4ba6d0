-- The splits of a tokenizer by patterns, one behind the other: from their patterns and behaviours to automata that
-- share classes of characters.
--
-- A text is matches and the gaps between them. What a behaviour makes of these is which of them are dropped, and what
-- is one word with what follows it; to invert a split is to exchange them.
local automaton = require "gen.tokenizer.automaton"
local expression = require "gen.tokenizer.expression"
local sets = require "gen.tokenizer.character_sets"

local splits = {}

local most_sets, most_classes = 62, 255
local most_splits = 8

-- GPT-2's pattern, and the first of it.
splits.contractions = "'s|'t|'re|'ve|'m|'ll|'d"
splits.gpt2 = splits.contractions .. "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

-- Of each behaviour: what is dropped and what is joined, not inverted and inverted.
splits.behaviors = {
    Isolated = { {}, {} },
    Removed = { { drop = "matches" }, { drop = "gaps" } },
    MergedWithPrevious = { { join = "gap to match" }, { join = "match to gap" } },
    MergedWithNext = { { join = "match to gap" }, { join = "gap to match" } },
    Contiguous = { { join = "matches" }, { join = "matches" } },
}

-- The splits of `list`, { {tree, behavior, invert, bytes, refuse} }: { {rows, drop, join, bytes} }, the number of
-- classes of characters, and these as { {first character, class} }.
function splits.build(list)
    local distinct, numbers, programs, built = {}, {}, {}, {}
    for i, split in ipairs(list) do
        if i > most_splits then split.refuse("is beyond " .. most_splits .. " splits") end
        local function number(set)
            local key = table.concat(set, " ")
            if not numbers[key] then
                if #distinct == most_sets then
                    split.refuse("takes more than " .. most_sets .. " different sets of characters")
                end
                distinct[#distinct + 1] = set
                numbers[key] = #distinct
            end
            return numbers[key]
        end
        programs[i] = automaton.program(split.tree, number, split.refuse)
    end
    local ranges, classes, members = sets.partition(distinct)
    for i, split in ipairs(list) do
        if classes > most_classes then
            split.refuse("takes more than " .. most_classes .. " classes of characters")
        end
        local does = splits.behaviors[split.behavior][split.invert and 2 or 1]
        built[i] = {
            rows = automaton.rows(programs[i], members, classes),
            drop = does.drop or "nothing",
            join = does.join or "nothing",
            bytes = split.bytes,
        }
    end
    return built, classes, ranges
end

-- What the record `r` has of splits by `patterns`, one behind the other, whose matches are words.
function splits.by_patterns(r, patterns)
    local list = {}
    for i, pattern in ipairs(patterns) do
        list[i] = { tree = expression.read(pattern, error), behavior = "Isolated", refuse = error }
    end
    r.split = "patterns"
    r.splits, r.classes, r.alphabet = splits.build(list)
end

return splits
