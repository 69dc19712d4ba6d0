-- The text that a conversion learns from, as batches of sequences of ids.
local ids_file = require "harness.families.model.ids"
local text_file = require "harness.base.text_file"
local text_model = require "harness.families.model.text_model"

local batches = {}

local most_text = 1 << 30
local longest = 512 -- tokens of a decoder's window
local held_out, most_held = 0.05, 20000 -- share of the text that figures are of, and most tokens
local fewest = 20 -- sequences, and batches that all tokens must fill
local pool = 16 -- batches whose sequences are sorted by length together

-- A function that shuffles a list in place, in an order that follows from the seed and from what it shuffled before.
local function shuffler(seed)
    local state = (seed * 2654435761 + 1) & 0xffffffff
    return function(list)
        for i = #list, 2, -1 do
            state = (state * 1103515245 + 12345) & 0x7fffffff
            local j = (state >> 8) % i + 1
            list[i], list[j] = list[j], list[i]
        end
        return list
    end
end

-- Batches of at least `tokens` tokens of sequences first … last: { { ids = { ids, … }, tokens } }.
local function batches_of(list, first, last, tokens)
    local batches, batch, count = {}, {}, 0
    for i = first, last do
        batch[#batch + 1], count = list[i], count + #list[i]
        if count >= tokens or i == last then
            batches[#batches + 1] = { ids = batch, tokens = count }
            batch, count = {}, 0
        end
    end
    return batches
end

-- The same sequences in batches of about equal lengths, in a random order.
local function sorted(list, tokens, shuffle)
    local batches = {}
    for _, large in ipairs(batches_of(list, 1, #list, pool * tokens)) do
        table.sort(large.ids, function(a, b) return #a < #b end)
        local own = batches_of(large.ids, 1, #large.ids, tokens)
        table.move(own, 1, #own, #batches + 1, batches)
    end
    return shuffle(batches)
end

-- The lines of an encoder's text in random order, as ids, until there are `most` tokens.
local function of_lines(model, p, text, options, shuffle, most)
    local lines, list, total = {}, {}, 0
    for line in text:gmatch "[^\n]+" do
        lines[#lines + 1] = { text = line, number = #lines + 1 }
    end
    for _, line in ipairs(shuffle(lines)) do
        if total >= most then break end
        local ids = text_model.truncated(p, text_model.ids(model, p, line.text, options.text .. ":" .. line.number))
        if #ids > 0 then
            list[#list + 1], total = ids, total + #ids
        end
    end
    return list, total
end

-- Windows of a decoder's ids in random order.
local function of_windows(p, ids, shuffle)
    local list = {}
    local step = math.min(p.context, longest)
    for first = 1, #ids, step do
        list[#list + 1] = table.move(ids, first, math.min(first + step - 1, #ids), 1, {})
    end
    return shuffle(list), #ids
end

-- The text, or the ids, of the options for model `model` of plan `p`: { total, sequences, held: how many are held out,
-- test, train: batches of at least `batch_tokens` tokens; even: those of `train` again, of sequences of about equal
-- lengths }. Raises one line for too short a text.
function batches.read(model, p, options, batch_tokens)
    local shuffle, named = shuffler(options.seed), options.text or options.ids
    local list, total, most
    local text = options.text and text_file.read("--text", options.text, most_text)
    if p.causal then
        local ids = text and text_model.ids(model, p, text, options.text, true)
        list, total = of_windows(p, ids or ids_file.read(options.ids, p.model.vocab), shuffle)
    else
        most = math.max(options.tokens, options["end-to-end"]) / (1 - held_out)
        list, total = of_lines(model, p, text, options, shuffle, most)
    end
    local first = math.max(1, math.floor(math.min(held_out, most_held / total) * #list))
    local needed = string.format(": at least %d in %d are needed", fewest * batch_tokens, fewest)
    local found = string.format("%d tokens in %d sequences", total, #list)
    if #list < fewest or total < fewest * batch_tokens then
        if most and total >= most then error("--tokens: " .. options.tokens .. ": takes " .. found .. needed, 0) end
        error(named .. ": has " .. found .. needed, 0)
    end
    return {
        total = total,
        sequences = #list,
        held = first,
        test = batches_of(list, 1, first, batch_tokens),
        train = batches_of(list, first + 1, #list, batch_tokens),
        even = sorted(table.move(list, first + 1, #list, 1, {}), batch_tokens, shuffle),
    }
end

return batches
