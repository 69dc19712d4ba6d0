-- The command embed: vectors of texts, into a .npy file or as numbers.
local figures = require "gen.plan.figures"
local floats = require "rows"
local host = require "host"
local json = require "json"
local npy = require "npy"
local text_model = require "harness.families.model.text_model"
local text_vectors = require "harness.families.model.text_vectors"

local embed = {}

-- The numbers of row `i`.
local function numbers(rows, i, columns)
    local bytes = 4 * columns
    return floats.floats(rows:sub((i - 1) * bytes + 1, i * bytes))
end

local function print_numbers(list)
    local words = {}
    for i, value in ipairs(list) do
        words[i] = string.format("%9.5f", value)
    end
    return host.print(table.concat(words, " "))
end

local function print_json(item, list, ids)
    return host.print(
        assert(
            json.encode(
                { text = utf8.len(item.text) and item.text or json.null, tokens = #ids, vector = json.array(list) },
                "compact"
            )
        )
    )
end

-- Embeds `texts`, or, where there are none, the lines of standard input.
function embed.run(path, texts, options)
    local model, p = text_model.open(path, options, "vectors", "text")
    local next_item = #texts > 0 and text_vectors.of_list(texts) or text_vectors.of_lines()
    local columns = p.widths.out
    if not options.o then
        text_vectors.each(model, p, next_item, options, function(item, rows, i, ids)
            local list = numbers(rows, i, columns)
            if options.json then return print_json(item, list, ids) end
            return print_numbers(list)
        end)
        return 0
    end
    local writer = assert(npy.create(options.o, columns))
    local count = 0
    local good, message = pcall(text_vectors.each, model, p, next_item, options, function(_, rows, i)
        if i == 1 then assert(writer:append(rows)) end -- all of a batch
        count = count + 1
    end)
    if not good then
        writer:discard()
        error(message, 0)
    end
    assert(writer:finish())
    host.print(string.format("wrote %s, %s rows of %d", options.o, figures.grouped(count), columns))
    return 0
end

return embed
