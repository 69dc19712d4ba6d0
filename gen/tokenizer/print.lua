-- What the templates of tokenizers print: the facts of a plan, and which parts of the C they need.
local tokenizer_print = {}

-- The bytes of a text as C initialisers.
local function bytes_of(text)
    local list = {}
    for i = 1, #text do
        list[i] = string.format("0x%02xu", text:byte(i))
    end
    return table.concat(list, ", ")
end

local patterns = { gpt2 = true, llama3 = true, qwen2 = true }
local shared = { map = true, charsmap = true, decompose = true, order = true, compose = true } -- kinds of passes
local skips = { bert = true, whitespace = true }

-- What of templates/tokenizer/ the C of `facts` consists of, in its order: { {file, values} }. `contents` of tables is
-- not needed: `slots` are counts of sections.
local function parts_of(facts, splits)
    local list, uses, slots = {}, {}, {}
    local function add(file, values) list[#list + 1] = { file = file, values = values } end
    for _, section in ipairs(facts.sections) do
        uses[section.name], slots[section.name] = true, section.count // 4
    end
    local maps, darts, begins, copies = false, false, facts.split == "meta", false
    for _, pass in ipairs(facts.passes) do
        copies = true
        maps = maps or pass.kind == "map" or pass.kind == "decompose"
        darts = darts or pass.kind == "charsmap"
        begins = begins or pass.kind == "spaces" and (pass.once or pass.collapse) or pass.unless
    end
    local characters = copies or uses.classes or uses.pieces or uses.alphabet or facts.added_words or false
    local longest = maps
        or uses.added
        or facts.whole_words
        or facts.kind == "wordpiece"
        or facts.kind == "bpe" and uses.pieces
    local none = longest or darts or uses.compositions or facts.kind == "unigram" or facts.kind == "bpe"
    if none or characters then add("constants.c", { none = none, characters = characters, copies = copies }) end
    if characters then add "character.c" end
    if copies then add "copy.c" end
    if uses.orders then add "put.c" end
    if uses.classes or uses.orders or uses.alphabet or facts.added_words then add "property.c" end
    if longest or facts.kind == "unigram" then add "child.c" end
    if longest then add "trie.c" end
    if uses.compositions or facts.kind == "bpe" then add "pairs.c" end
    if begins then add "begins.c" end
    if maps then add("map.c", { broken = facts.broken, hangul = splits.hangul, darts = false }) end
    if darts then
        add "darts.c"
        add("map.c", { broken = facts.broken, hangul = false, darts = true })
    end
    if uses.orders then add "order.c" end
    if uses.compositions then add("compose.c", { slots = slots.compositions }) end
    for i, pass in ipairs(facts.passes) do
        if not shared[pass.kind] then add("pass.c", { pass = pass, i = i, bytes_of = bytes_of }) end
    end
    if splits.classes or facts.split == "meta" then add "words.c" end
    if facts.added_spaces then add "before_spaces.c" end
    if facts.added_words then add "beside_word.c" end
    add "ids.c"
    local values = {
        bpe = { slots = slots.merges },
        wordpiece = { bytes_of = bytes_of },
    }
    add(facts.kind .. ".c", values[facts.kind])
    if uses.alphabet then add("match.c", { name = "match", bytes = false }) end
    if uses.byte_classes then add("match.c", { name = "match_bytes", bytes = true }) end
    for number = #(facts.splits or {}), 1, -1 do
        local inner = number < #facts.splits and "split" .. number + 1 or "pieces"
        add("split.c", { number = number, inner = inner, does = facts.splits[number] })
    end
    return list
end

-- The values that the templates take; float_sums: scores that are floats are compared without doubles.
function tokenizer_print.values(facts, float_sums)
    local splits = {
        added = {}, -- functions that find added pieces, the inner one first: { name, inner, trie }
        whole = "stretch", -- the function that takes a whole text
        classes = patterns[facts.split] or skips[facts.split] or facts.added_spaces,
        pattern = patterns[facts.split] or false,
        skips = skips[facts.split] or false,
        at_start = false,
        counts = {},
        hangul = false,
    }
    for _, section in ipairs(facts.sections) do
        splits.counts[section.name] = section.count
    end
    for i, trie in ipairs { "added_later", "added" } do
        if splits.counts[trie] then
            local name = i == 1 and "later_pieces" or "added_pieces"
            local level = { name = name, inner = splits.whole, trie = trie, facts = facts, splits = splits }
            splits.added[#splits.added + 1] = level
            splits.whole = name
        end
    end
    for _, pass in ipairs(facts.passes) do
        splits.at_start = splits.at_start or pass.prefix == "first"
        splits.hangul = splits.hangul or pass.kind == "decompose"
    end
    return { facts = facts, splits = splits, parts = parts_of(facts, splits), float_sums = float_sums or false }
end

-- What <model>_tokenize returns beside the codes of <model>_bind.
tokenizer_print.statuses = {
    { name = "ERROR_ROOM", code = 9, doc = "there are more ids than room for them" },
    { name = "ERROR_SCRATCH", code = 10, doc = "the text needs more scratch, or is longer than 2 GiB" },
}

return tokenizer_print
