-- Vectors of a stream of texts: read on, tokenized and encoded a batch at a time, in their order.
local figures = require "gen.plan.figures"
local host = require "host"
local process = require "process"
local text_model = require "harness.families.model.text_model"

local text_vectors = {}

local most_ids, most_texts = 4096, 1024 -- of a batch; more takes memory and no less time

-- Shows how many texts are done.
local function progress()
    local start, shown = process.clock(), process.clock()
    return function(count)
        local now = process.clock()
        if now - shown < 0.2 then return end
        shown = now
        host.status(string.format("%s texts, %.0f a second", figures.grouped(count), count / (now - start)))
    end
end

-- The ids of text `item`, or nil for one that has none and may be left out.
local function ids_of(model, p, item, options)
    local ids = text_model.ids(model, p, item.text, item.where)
    if #ids > p.context then
        if not options.truncate then
            error(
                string.format(
                    "%s: has %d tokens: must be at most attention.context = %d; --truncate takes the first ones",
                    item.where,
                    #ids,
                    p.context
                ),
                0
            )
        end
        ids = text_model.truncated(p, ids)
    end
    if #ids > 0 then return ids end
    if not options.leave_out then error(item.where .. ": has no tokens, so it has no vector", 0) end
end

-- Reads { text, where, … } from `next_item`() up to nil and calls take(item, rows, i, ids) for each in turn: its vector
-- is row i of the string `rows`. take returns false to stop, as when nobody reads what it prints. `where` names the
-- text in messages. options: truncate, cut what is longer than the context; leave_out, pass over texts without ids.
-- Returns how many texts there were.
function text_vectors.each(model, p, next_item, options, take)
    local show, count, going = progress(), 0, true
    local items, lists, total = {}, {}, 0
    local function flush()
        if #items == 0 then return end
        local rows, message = model:encode_batch(lists)
        if not rows then error(items[1].where .. ": " .. message, 0) end
        for i, item in ipairs(items) do
            going = going and take(item, rows, i, lists[i]) ~= false
        end
        count = count + #items
        show(count)
        items, lists, total = {}, {}, 0
    end
    local item = next_item()
    while item and going do
        local ids = ids_of(model, p, item, options)
        if ids then
            if total + #ids > most_ids or #items == most_texts then flush() end
            items[#items + 1], lists[#lists + 1], total = item, ids, total + #ids
        end
        item = going and next_item()
    end
    if going then flush() end
    host.status ""
    return count
end

-- Items of a list of texts.
function text_vectors.of_list(texts)
    local i = 0
    return function()
        i = i + 1
        return texts[i] and { text = texts[i], where = "text " .. i, number = i }
    end
end

-- Items of the lines of the file `path`, nil: of standard input.
function text_vectors.of_lines(path)
    local reader, number = assert(require("lines").open(path)), 0
    return function()
        local line, message = reader:next()
        if not line then
            if message then error(message, 0) end
            return nil
        end
        number = number + 1
        return { text = line, where = (path or "standard input") .. ":" .. number, number = number }
    end
end

return text_vectors
