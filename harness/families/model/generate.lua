-- The command generate: continues a text, or ids, one token at a time.
local clamped = require "harness.calls.clamped"
local figures = require "gen.plan.figures"
local host = require "host"
local ids_file = require "harness.families.model.ids"
local json = require "json"
local misuse = require "gen.schema.misuse"
local process = require "process"
local rows = require "rows"
local statistics = require "harness.base.statistics"
local text_model = require "harness.families.model.text_model"
local text_stream = require "harness.families.model.text_stream"

local generate = {}

-- The number that --`name` says; raises one line if it does not hold.
local function number_of(options, name, words, holds)
    local value = tonumber(options[name])
    if not value or not holds(value) then
        misuse(string.format("--%s: %s: must be a number %s", name, options[name], words))
    end
    return value + 0.0
end

-- The ids of `text`, which the option --`name` gives: integers, or a file of them.
local function ids_of(name, text, vocab)
    if not text:find "^[%d%s,]+$" then return ids_file.read(text, vocab) end
    local list = {}
    for word in text:gmatch "%d+" do
        local id = math.tointeger(tonumber(word))
        if not id or id >= vocab then
            misuse(string.format("--%s: %s: must be below vocab = %d", name, word, vocab))
        end
        list[#list + 1] = id
    end
    return list
end

-- Numbers from 0 up to 1 that depend on the seed only.
local function uniform(seed)
    local random = statistics.random(seed)
    return function() return ((random(1 << 31) - 1) * (1 << 22) + random(1 << 22) - 1) / (1 << 53) end
end

-- How to choose among logits; raises one line for options that are out of range.
local function sampler(options)
    local temperature = number_of(options, "temperature", "from 0 to 100", function(v) return v >= 0 and v <= 100 end)
    local top_p = number_of(options, "top-p", "above 0, at most 1", function(v) return v > 0 and v <= 1 end)
    local top_k, draw = options["top-k"], uniform(options.seed)
    return function(logits) return rows.draw(logits, temperature, top_k, top_p, draw()) end
end

-- The ids that end a text: those of --stop-ids, else those of the tokenizer.
local function ends_of(p, options)
    local ends, given = {}, options["stop-ids"]
    local list = given and given ~= "none" and ids_of("stop-ids", given, p.model.vocab)
    for _, id in ipairs(list or not given and p.ends or {}) do
        ends[id] = true
    end
    return ends
end

-- What a terminal shows of `text`: it obeys no control characters that a model makes.
local function shown(text, is_terminal)
    if not is_terminal then return text end
    return (text:gsub("[\1-\8\11-\31\127]", "?"))
end

-- Prints ids or pieces of text as they come. `add(id)` returns whether somebody reads and whether the text has ended;
-- `finish()` prints what is left.
local function printer(model, options, as_ids)
    local out, is_terminal, made = text_stream.new(options.stop), process.is_terminal(1), {}
    local reads = true
    local function print(text)
        made[#made + 1] = text
        if text ~= "" and not options.json then reads = reads and host.write(shown(text, is_terminal)) end
    end
    local function piece(id) return as_ids and (#made > 0 and " " or "") .. id or model:text_of(id) or "" end
    return {
        add = function(id)
            local text, stopped = out.add(piece(id))
            print(text)
            return reads, stopped
        end,
        finish = function()
            print(out.rest())
            if not options.json then host.write "\n" end
            return table.concat(made)
        end,
    }
end

local function summary(made, rate, prompt, prompt_seconds)
    return string.format(
        "%s tokens of prompt in %.0f ms; %s tokens, %.1f tokens/s",
        figures.grouped(prompt),
        1000 * prompt_seconds,
        figures.grouped(made),
        rate
    )
end

-- Prints a continuation of the prompt, texts[1], or of the ids that options.ids gives.
function generate.run(path, texts, options)
    local choose = sampler(options)
    if options.ids and texts[1] then misuse("--ids: " .. options.ids .. ": stands for the prompt: leave it out") end
    if not options.ids and not texts[1] then error("the prompt is missing: a text, or --ids", 0) end
    if options.stop == "" then misuse("--stop: is empty") end
    local model, p = text_model.open(path, options, "next_token", options.ids and "ids" or "text")
    local as_ids = not p.facts
    if as_ids and options.stop then
        misuse("--stop: " .. options.stop .. ": needs a tokenizer; --stop-ids takes ids")
    end
    local prompt = options.ids and ids_of("ids", options.ids, p.model.vocab)
        or text_model.ids(model, p, texts[1], "the prompt", true)
    if #prompt == 0 then error("the prompt has no tokens", 0) end
    if #prompt > p.context then
        error(string.format("the prompt has %d tokens: must be at most attention.context = %d", #prompt, p.context), 0)
    end
    local ends, out, state, made, steps = ends_of(p, options), printer(model, options, as_ids), model:state(), {}, 0
    local start = process.clock()
    local logits = assert(state:prefill(prompt))
    local prefilled, ended, beyond = process.clock(), "tokens", state:clamped()
    while #made < options.tokens do
        local id = choose(logits)
        if not id then error(path .. ": the logits of token " .. #prompt + #made .. " are no numbers", 0) end
        if ends[id] then
            ended = "id " .. id
            break
        end
        made[#made + 1] = id
        local reads, stopped = out.add(id)
        if stopped then ended = "stop" end
        if not reads then ended = "no reader" end
        if not reads or stopped or #made == options.tokens then break end
        if state:position() >= p.context then
            ended = "context"
            break
        end
        logits = assert(state:step(id))
        steps = steps + 1
    end
    local seconds, text = process.clock() - prefilled, out.finish()
    clamped.warn(math.max(beyond, state:clamped())) -- where a window is cached, those of the prompt may be gone
    if options.json then
        host.print(assert(json.encode({
            prompt = json.array(prompt),
            ids = json.array(made),
            text = not as_ids and utf8.len(text) and text or nil,
            ended = ended,
            prompt_seconds = prefilled - start,
            seconds = seconds,
        }, "compact")))
    elseif ended ~= "no reader" then
        if ended == "context" then host.note(string.format("lookupc: the context of %d tokens is full", p.context)) end
        host.note(summary(#made, steps / math.max(seconds, 1e-9), #prompt, prefilled - start))
    end
    return 0
end

return generate
