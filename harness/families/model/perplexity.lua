-- The command perplexity: how well a model predicts a text, in windows that slide over it.
local clamped = require "harness.calls.clamped"
local figures = require "gen.plan.figures"
local host = require "host"
local ids_file = require "harness.families.model.ids"
local json = require "json"
local loss = require "harness.families.model.loss"
local misuse = require "gen.schema.misuse"
local process = require "process"
local rows = require "rows"
local text_file = require "harness.base.text_file"
local text_model = require "harness.families.model.text_model"

local perplexity = {}

local most_text_bytes = 1 << 28
local most_logits = 1 << 23 -- of a call

-- The text of the options, nil for ids.
local function text_in(options)
    if options.ids then return nil end
    return text_file.read("--text", options.text == "-" and "/dev/stdin" or options.text, most_text_bytes)
end

-- The ids to be predicted, how many of them stand before the text, and the text's bytes, nil for ids.
local function input(model, p, options, text)
    if not text then return ids_file.read(options.ids, p.model.vocab), 0 end
    local ids, first = text_model.ids(model, p, text, options.text, true), #p.facts.first
    for i, id in ipairs(p.facts.first) do
        if ids[i] ~= id then first = 0 end
    end
    return ids, first, #text
end

-- What is known of predicted tokens by how many tokens of the window stand before them: from 1, 2 to 3, 4 to 7 and so
-- on.
local function ranges_of(context)
    local list, from = {}, 1
    while from < context do
        list[#list + 1] = { from = from, to = math.min(2 * from, context) - 1, scored = 0, nats = 0.0, hits = 0 }
        from = 2 * from
    end
    return list
end

-- Gives the result `r` what the tokens of `ranges` are, each range and all together; r.bytes: of the text, nil: it is
-- not known yet, or ids; pieces: tokens that it is.
local function rate(r, ranges, pieces)
    local nats, hits = 0.0, 0
    r.scored, r.positions = 0, {}
    for _, range in ipairs(ranges) do
        nats, hits, r.scored = nats + range.nats, hits + range.hits, r.scored + range.scored
        if range.scored > 0 then
            table.insert(r.positions, {
                from = range.from,
                to = range.to,
                scored = range.scored,
                nats_per_token = range.nats / range.scored,
                accuracy = range.hits / range.scored,
            })
        end
    end
    r.nats_per_token, r.accuracy = nats / r.scored, hits / r.scored
    r.perplexity = math.exp(r.nats_per_token)
    -- A stride may leave tokens out: those that count stand for all.
    r.bits_per_byte = r.bytes and r.nats_per_token / math.log(2) * pieces / r.bytes or nil
end

local function text_of(r)
    local line = string.format(
        "%s tokens, %.4f nats a token, perplexity %.4f",
        figures.grouped(r.scored),
        r.nats_per_token,
        r.perplexity
    )
    return r.bits_per_byte and string.format("%s, %.4f bits per byte", line, r.bits_per_byte) or line
end

-- The lines of --positions.
local function table_of(r)
    local lines = { string.format("%14s %12s %12s %9s", "tokens before", "tokens", "nats a token", "accuracy") }
    for _, range in ipairs(r.positions) do
        lines[#lines + 1] = string.format(
            "%14s %12s %12.4f %7.2f %%",
            range.from == range.to and range.from or range.from .. " to " .. range.to,
            figures.grouped(range.scored),
            range.nats_per_token,
            100 * range.accuracy
        )
    end
    return table.concat(lines, "\n")
end

-- Checks --context and --stride and fills in what they leave open.
local function check_window(p, options)
    options.context = options.context or p.context
    if options.context < 2 or options.context > p.context then
        misuse(
            string.format(
                "--context: %d: must be an integer from 2 to attention.context = %d",
                options.context,
                p.context
            )
        )
    end
    options.stride = options.stride or options.context // 2
    if options.stride < 1 or options.stride > options.context then
        misuse(string.format("--stride: %d: must be from 1 to --context = %d", options.stride, options.context))
    end
end

-- Adds ids number from + 1 to `last` to `ranges`, each predicted from those before it in the window, which starts with
-- id number `first`. Logits of a piece of the window at a time are in memory. Returns how many cached numbers half
-- precision does not hold.
local function predict(ranges, model, p, ids, first, from, last)
    local columns, state = p.widths.out, model:state()
    local piece, row_bytes = math.max(most_logits // columns, 16), 4 * columns
    if from > first then assert(state:prefill(table.move(ids, first, from - 1, 1, {}))) end
    for start = from, last - 1, piece do
        local stop = math.min(start + piece, last) -- the last one is predicted only
        local logits = assert(state:prefill_all(table.move(ids, start, stop - 1, 1, {})))
        for _, range in ipairs(ranges) do
            local low, high = math.max(start + 1, first + range.from), math.min(stop, first + range.to)
            if low <= high then
                local own = logits:sub((low - start - 1) * row_bytes + 1, (high - start) * row_bytes)
                local nats, hits = rows.surprisal(own, columns, table.move(ids, low, high, 1, {}))
                range.nats, range.hits = range.nats + nats, range.hits + hits
                range.scored = range.scored + high - low + 1
            end
        end
    end
    return state:clamped()
end

-- What the model of the options makes of `text`, nil for ids.
local function measure(path, options, text)
    local model, p = text_model.open(path, options, "next_token", options.ids and "ids" or "text")
    check_window(p, options)
    text = text or text_in(options)
    local ids, first, bytes = input(model, p, options, text)
    local named = options.text or options.ids
    if #ids < 2 or #ids <= first then error(named .. ": has no token with another one before it", 0) end
    local r = {
        tokens = #ids,
        windows = 0,
        context = options.context,
        stride = options.stride,
        type = p.options.type,
        tables = p.options.tables,
        projection = p.options.projection,
    }
    local beyond = 0
    local ranges, done = ranges_of(r.context), math.max(first, 1) -- ids up to `done` are predicted, or never are
    local start, at = process.clock(), 0
    while done < #ids do
        local last = math.min(at + r.context, #ids)
        local from = math.max(done, at + 1)
        beyond = beyond + predict(ranges, model, p, ids, at + 1, from, last)
        rate(r, ranges)
        if r.nats_per_token ~= r.nats_per_token then
            error(string.format("%s: the logits of tokens %d to %d are no numbers", path, at + 1, last), 0)
        end
        r.windows, done, at = r.windows + 1, last, at + r.stride
        local so_far = text_of(r)
        local seconds = process.clock() - start
        host.status(string.format("%3.0f %%  %s, %.0f tokens/s", 100 * done / #ids, so_far, done / seconds))
        process.last_words("lookupc: interrupted, so far: " .. so_far .. "\n")
    end
    process.last_words ""
    host.status ""
    clamped.warn(beyond)
    r.bytes = bytes
    rate(r, ranges, #ids - first)
    return r, text
end

function perplexity.run(path, options)
    if not options.text and not options.ids then misuse("--text is missing, or --ids") end
    local budget = loss.budget(options)
    local r, text = measure(path, options)
    local line = text_of(r)
    if budget then
        local exact = measure(path, loss.in_float32(options), text).nats_per_token
        line = line .. loss.judge(r, r.nats_per_token - exact, exact, budget)
    end
    if options.positions then line = line .. "\n" .. table_of(r) end
    host.print(options.json and assert(json.encode(r, "compact")) or line)
    return loss.status(r, "nats a token: these types")
end

return perplexity
