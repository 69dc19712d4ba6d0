-- Runs with training code by hand (tests/train/bigram.c): what they learn, what they write, and that a resumed run is
-- the undisturbed one byte for byte.
local bigram = require "tests.train.bigram"
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local learning_rates = require "harness.train.learning_rates"
local log = require "harness.train.log"
local process = require "process"
local program = require "tests.support.program"
local rounding = require "harness.train.rounding"
local run = require "harness.train.run"
local schedule = require "harness.train.schedule"
local settings = require "harness.train.settings"
local table_usage = require "harness.train.table_usage"
local train = require "train"

local test = {}
local job, vocab = bigram.job, bigram.vocab

local function bytes(path) return assert(host.read(path)) end

local function files_in(folder)
    return {
        output = folder .. "/w.safetensors",
        checkpoint = folder .. "/w.safetensors.resume",
        log = folder .. "/w.jsonl",
        html = folder .. "/w.html",
    }
end

local own = { threads = 1, save_seconds = 1e9, rank = 0, ranks = 1 }

local function few_steps()
    return {
        steps = 40,
        evaluate = 10,
        batch = 6,
        context = 12,
        rate = 0.01,
        table_rate = 0.04,
    }
end

-- Trains in silence.
local function quietly(...)
    local printed = {}
    local print_before, note_before = host.print, host.note
    host.print = function(text) printed[#printed + 1] = text end
    host.note = host.print
    local result = table.pack(pcall(run.train, ...))
    host.print, host.note = print_before, note_before
    return printed, table.unpack(result, 1, result.n)
end

-- What is said of tables of 16 rows with so many bits at one validation after another.
local function warnings(...)
    local said = {}
    local state = setmetatable({ warned = {}, own = { rank = 0 }, position = { step = 0 } }, { __index = run })
    local before = host.note
    host.note = function(text) said[#said + 1] = text end
    for _, bits in ipairs { ... } do
        local uses = {}
        for k, value in ipairs(bits) do
            uses[k] = { math.tointeger(2 ^ math.ceil(value)), value }
        end
        state.position.step = state.position.step + 1
        state:warn(table_usage.summary({ { layer = 3, tables = 16 } }, { uses }))
    end
    host.note = before
    return said
end

local collapse = "lookupc: step %d: layer 3: %d of 4 tables collapse (%s): codes of as little as %s bits, %d of 16 "
    .. "rows used; a smaller --projection-rate helps"

-- The checkpoint of an undisturbed run after so many steps, with the text of the checkpoint at `path`.
local function undisturbed(j, s, steps, path)
    local state = assert(train.open(j))
    state:initialise()
    for step = 1, steps do
        local factor = learning_rates.at(step, s.steps)
        state:step(step, s.rate * factor, s.table_rate * factor)
        if step % s.evaluate == 0 and step < steps then state:uses() end
    end
    state:uses() -- a validation says and forgets them
    local other = program.folder() .. "/undisturbed"
    assert(state:save(other, assert(train.text(path))))
    return bytes(other)
end

-- Runs `j` until it fails: its message, and its files.
local function failed(j, s)
    local files = files_in(program.folder())
    local _, good, message = quietly(j, s, own, files, { model = "bigram", isa = "scalar" })
    check.equal(good, false)
    check.equal(host.kind(files.output), nil)
    return message, files
end

-- train.open, `open`, of runs whose methods are call(state, name of the method, ...).
local function opened_as(open, call)
    return function(j)
        local state = assert(open(j))
        local function method(_, key)
            return function(_, ...) return call(state, key, ...) end
        end
        return setmetatable({}, { __index = method })
    end
end

-- A run whose method `name` returns `results` from step 27 on ends with `words`. The checkpoint is of step 20.
local function spoilt_run_ends(name, results, words)
    local open, steps = train.open, 0
    train.open = opened_as(open, function(state, key, ...)
        if key == "step" then steps = steps + 1 end
        if key == name and steps > 26 then return table.unpack(results) end
        return state[key](state, ...)
    end)
    local message, files = failed(job(), few_steps())
    train.open = open
    check.equal(message, words .. "; the last good checkpoint is of step 20: " .. files.checkpoint)
    check.equal(bytes(files.checkpoint) == undisturbed(job(), few_steps(), 20, files.checkpoint), true)
end

function test.a_run_writes_weights_log_and_page()
    local files = files_in(program.folder())
    local printed, good, last = quietly(job(), few_steps(), own, files, { model = "bigram", isa = "scalar" })
    check.equal(good, true)
    check.equal(#printed, 4)
    check.matches(printed[4], "^step 40 of 40, 2,880 tokens: loss 1%.%d+, validation 1%.%d+, [%d,]+ tokens/s$")
    check.equal(host.kind(files.checkpoint), nil)
    check.equal(last.step, 40)
    local lines = {}
    for line in bytes(files.log):gmatch "[^\n]+" do
        lines[#lines + 1] = assert(json.decode(line))
    end
    check.equal(#lines, 41)
    check.equal(lines[1].model, "bigram")
    check.equal(lines[1].settings.steps, 40)
    local row = lines[11].tables[1]
    check.equal({ row.tables, row.rows_used }, { 2, { 8, 8 } })
    check.near((row.entropies[1] + row.entropies[2]) / 2, row.entropy, 0.01)
    local text = program.page(files.html, 7)
    check.matches(text, "Entropy, table by table")
    check.matches(text, "layer 0, table 1: %d%.%d+ of 3 bits, 8 of 8 rows used")
end

-- Every table counts: one that collapses while the others fill up, and while the mean of the layer rises.
function test.tables_that_collapse_are_named()
    check.equal(warnings({ 3.5, 1.9, 2.5, 3 }, { 3.6, 1.9, 3.5, 3.5 }, { 4, 1.9, 4, 4 }), {
        collapse:format(2, 1, "1", "1.9 of 4", 4),
    })
    check.equal(warnings({ 1, 1, 1, 1 }, { 1.5, 1.2, 1.9, 1.1 }, { 4, 4, 4, 4 }), {}) -- they are on their way
    check.equal(warnings({ 1, 2, 2, 2 }, { 1, 1.5, 2, 2 }, { 1, 1, 1.5, 2 }, { 1, 1, 1.25, 1 }), {
        collapse:format(2, 2, "0, 1", "1.0 of 4", 2),
        collapse:format(4, 2, "2, 3", "1.0 of 4", 2),
    })
    local many = { layer = 0, tables = 9, rows = 4, entropies = {}, rows_used = {} }
    local numbers = {}
    for k = 1, 9 do
        many.entropies[k], many.rows_used[k], numbers[k] = 0, 1, k - 1
    end
    local line = table_usage.warning(many, numbers)
    check.matches(line, "9 of 9 tables collapse %(0, 1, 2, 3, 4, 5, 6, 7 and 1 more%): codes")
end

-- The second table gets one id only.
function test.a_planted_collapse_is_said_once()
    local function one_row(ids)
        return (ids:gsub("....", function(id)
            return string.pack("<i4", math.min((string.unpack("<i4", id)), vocab // 2))
        end))
    end
    local files = files_in(program.folder())
    local j = job { train = one_row(bigram.ids(4000, 1)), valid = one_row(bigram.ids(400, 2)) }
    local printed = quietly(j, few_steps(), own, files, { model = "bigram", isa = "scalar" })
    local said = {}
    for _, line in ipairs(printed) do
        if line:find "collapse" then said[#said + 1] = line end
    end
    check.equal(said, {
        "lookupc: step 20: layer 0: 1 of 2 tables collapse (1): codes of as little as 0.0 of 3 bits, 1 of 8 rows "
            .. "used; a smaller --projection-rate helps",
    })
end

-- Every step of an interrupted run as the others; what the log had behind the checkpoint is said once.
function test.a_resumed_run_is_the_undisturbed_one()
    local files, again = files_in(program.folder()), files_in(program.folder())
    quietly(job(), few_steps(), own, files, { model = "bigram", isa = "scalar" })
    local stopped = job()
    local append = host.append_line
    host.append_line = function(path, line) -- the third validation cannot be noted
        if path == again.log and line:find '"step":30,' then error("no room", 0) end
        return append(path, line)
    end
    local _, good, message = quietly(stopped, few_steps(), own, again, { model = "bigram", isa = "scalar" })
    host.append_line = append
    check.equal({ good, message }, { false, "no room" })
    local position = run.position(again.checkpoint)
    check.equal(position.step, 20)
    settings.check("w", few_steps(), position.settings)
    check.fails_with("batch: is 7: must be 6", function()
        local other = few_steps()
        other.batch = 7
        settings.check("w", other, position.settings)
    end)
    check.fails_with("steps: is absent: must be 40", function()
        local other = few_steps()
        other.steps, other.time = nil, settings.of({ time = "5m", seed = 1 }, 64).time
        settings.check("w", other, position.settings)
    end)
    check.fails_with("--resume: w: attention: is exact: must be absent, as in the run", function()
        local other = few_steps()
        other.attention = "exact"
        settings.check("w", other, position.settings)
    end)
    local _, resumed = quietly(job(), few_steps(), own, again, { model = "bigram", isa = "scalar" }, position)
    check.equal(resumed, true)
    check.equal(bytes(again.output) == bytes(files.output), true)
    local function steps_of(path)
        local list = {}
        for line in bytes(path):gmatch "[^\n]+" do
            local record = json.decode(line)
            list[#list + 1] = string.format("%s %s %s", record.step, record.loss, record.validation)
        end
        return table.concat(list, "\n")
    end
    check.equal(steps_of(again.log), steps_of(files.log))
end

-- A clock for a run of 100 seconds whose steps take half a second, then a 50th, then one; the state of job j calls it.
local function on_a_clock(j, work)
    local clock, open, now, rates = process.clock, train.open, 0.0, {}
    process.clock = function() return now end
    train.open = opened_as(open, function(state, key, ...)
        if key == "step" then
            now = now + (now < 30 and 0.5 or now < 60 and 0.02 or 1)
            rates[#rates + 1] = select(2, ...)
        end
        return state[key](state, ...)
    end)
    local result = table.pack(pcall(work, j, rates, function(seconds) now = now + seconds end))
    process.clock, train.open = clock, open
    return check.equal(result[1] or result[2], true)
end

-- The schedule follows the time that is left, whatever steps take: the run ends in time, with the lowest rate.
function test.a_run_of_a_time_ends_in_time()
    on_a_clock(job(), function(j, rates)
        local s, files = few_steps(), files_in(program.folder())
        s.steps, s.evaluate, s.time = nil, nil, 100
        local printed, good, last = quietly(j, s, own, files, { model = "bigram", isa = "scalar" })
        check.equal(good, true)
        check.equal({ #printed, last.share, last.step }, { 20, 1.0, #rates })
        check.near(last.seconds, 95, 0.51)
        check.matches(printed[10], "^step 935 of about 1,870, ")
        check.matches(printed[20], "^step 1,595 of 1,595, ")
        check.near(rates[#rates] / s.rate, learning_rates.last, 0.01)
        for i = 2, #rates do
            check.equal(rates[i] > rates[i - 1] and "rises" or "falls", i < 11 and "rises" or "falls")
        end
        check.matches(program.page(files.html, 7), "step 1,595 of 1,595")
    end)
end

-- A run of a time goes on where it was, and without the time between.
function test.a_run_of_a_time_is_resumed()
    on_a_clock(job(), function(j, rates, wait)
        local s, files = few_steps(), files_in(program.folder())
        s.steps, s.evaluate, s.time = nil, nil, 100
        local append, lines = host.append_line, 0
        host.append_line = function(...)
            lines = lines + 1
            return lines < 200 and append(...) or error("no room", 0)
        end
        local _, good, message = quietly(j, s, own, files, { model = "bigram", isa = "scalar" })
        host.append_line = append
        check.equal({ good, message }, { false, "no room" })
        local position, done = run.position(files.checkpoint), #rates
        local at, of = schedule.at(s, 0, position.share)
        settings.check("w", s, position.settings)
        wait(1000)
        local _, resumed, last = quietly(j, s, own, files, { model = "bigram", isa = "scalar" }, position)
        check.equal({ resumed, last.share }, { true, 1.0 })
        check.near(last.seconds, 95, 1.01)
        check.near(rates[done + 1] / s.rate, learning_rates.at(at, of), 1e-9)
    end)
end

-- Lines of a log that are no records are dropped with a word, and what is no log of a training is not overwritten.
function test.lines_that_are_no_records_are_counted()
    local path = program.folder() .. "/w.jsonl"
    local first = { model = "m", settings = { steps = 40 } }
    local noted = {}
    local function opened(lines, done)
        assert(host.write_file(path, table.concat(lines, "\n") .. "\n"))
        local before = host.note
        host.note, noted = function(text) noted[#noted + 1] = text end, {}
        local good, result = pcall(log.open, path, first, done)
        host.note = before
        if not good then error(result, 0) end
        return result
    end
    local lines = { '{"model":"m","settings":{"steps":40}}' }
    for step = 1, 6 do
        lines[step + 1] = string.format('{"step":%d,"tokens":%d,"loss":1.5,"tables":[]}', step, 72 * step)
    end
    check.equal(#opened(lines, 4).records, 4)
    check.equal(noted, {})
    lines[3], lines[5] = lines[3]:sub(1, -4), lines[5]:gsub("1.5", '"1.5"')
    local of_tables = '"tables":[{"layer":0,"tables":2,"rows":8,"used":3,"least":2,'
        .. '"entropy":1,"lowest":1,"collapsed":0,'
    local function with_entropies(line, list)
        return (line:gsub('"tables":%[', of_tables .. '"rows_used":[4,2],"entropies":' .. list .. "}"))
    end
    lines[4], lines[7] = with_entropies(lines[4], "[1.5,1]"), with_entropies(lines[7], "[1.5]")
    check.equal(#opened(lines, 6).records, 3)
    check.equal(noted, {
        "lookupc train: "
            .. path
            .. ": dropped 3 lines: line 3 is cut off or no JSON; line 5 is no record; line 7 is no record",
    })
    for _, text in ipairs { "", lines[1], lines[2] .. "\n", "spoilt\n" .. lines[2] } do
        assert(host.write_file(path, text))
        log.check(path)
    end
    for _, text in ipairs { "a letter", "\n", '{"step":1}\n', "[1]" } do
        assert(host.write_file(path, text))
        check.fails_with(path .. ": exists and is no log of a training: choose another --log", log.check, path)
    end
    assert(host.remove(path))
    log.check(path)
end

-- What cannot be of a run is refused: it would divide by zero, or train backwards.
function test.a_position_outside_its_range_is_refused()
    local path = program.folder() .. "/w.resume"
    local good = {
        settings = { steps = 40, evaluate = 10 },
        step = 20,
        share = 0.5,
        validated = 20,
        parts = 1,
        isa = '"scalar"',
        counted = 0,
        seconds = 0.5,
        nats = 0.0,
    }
    local state = assert(train.open(job()))
    state:initialise()
    local function read(changes, changes_of_settings)
        local position = setmetatable(changes, { __index = good })
        local text = {}
        for _, name in ipairs { "step", "share", "validated", "parts", "isa", "counted", "seconds", "nats" } do
            text[#text + 1] = string.format('"%s":%s', name, position[name])
        end
        local own = setmetatable(changes_of_settings or {}, { __index = good.settings })
        local length = own.time and '"time":' .. own.time or '"steps":' .. own.steps
        text[#text + 1] = string.format('"settings":{%s,"evaluate":%s}', length, own.evaluate)
        assert(state:save(path, "{" .. table.concat(text, ",") .. "}"))
        return run.position(path)
    end
    local found = read {}
    check.equal({ found.step, found.isa, found.settings.steps }, { 20, "scalar", 40 })
    check.equal(read({ step = 41 }, { time = 180 }).step, 41)
    for _, changes in ipairs {
        { { step = 41 } },
        { { step = -1 } },
        { { share = 1.5 } },
        { { validated = 21 } },
        { {}, { time = 0 } },
        { {}, { time = '"3m"' } },
        { { step = "20.0" } },
        { { parts = 0 } },
        { { isa = 7 } },
        { { isa = '"a b"' } },
        { { counted = -1 } },
        { { seconds = -0.5 } },
        { { nats = "1e301" } },
        { {}, { steps = 0 } },
        { {}, { steps = (1 << 31) + 1 } },
        { {}, { evaluate = 0 } },
    } do
        check.fails_with(path .. ": run: is not what lookupc train writes", read, changes[1], changes[2])
    end
    local header = '{"run":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    assert(host.write_file(path, string.pack("<s8f", header, 65.5)))
    check.fails_with(path .. ": run: must be numbers of bytes", run.position, path)
end

function test.no_number_ends_a_run_with_its_last_good_checkpoint()
    spoilt_run_ends("step", { 0 / 0, 1.0 }, "step 27: the loss is no number")
    spoilt_run_ends("step", { 1.0, math.huge }, "step 27: the gradient is no number")
    spoilt_run_ends("validate", { 0 / 0, 396 }, "step 30: the loss of the validation is no number")
    spoilt_run_ends("not_finite", { "tables" }, "step 30: tables has a value that is no number")
end

function test.a_run_that_diverges_ends_with_its_last_good_checkpoint()
    local form = "step %d: the run diverges: the loss%s, 8.32, is above 3 times ln(vocab) = 2.77; \z
        a smaller --rate helps"
    spoilt_run_ends("step", { 8.32, 1.0 }, form:format(27, ""))
    spoilt_run_ends("validate", { 8.32, 396 }, form:format(30, " of the validation"))
end

-- Gradients that are 0 for 20 steps in turn, here 4 to 23, never come back.
function test.a_run_without_gradients_ends()
    local open, steps = train.open, 0
    train.open = opened_as(open, function(state, key, ...)
        if key ~= "step" then return state[key](state, ...) end
        steps = steps + 1
        local nats, norm = state:step(...)
        return nats, (steps > 3 or steps == 2) and 0.0 or norm
    end)
    local message, files = failed(job(), few_steps())
    train.open = open
    local wanted = "step 23: the gradients of the last 20 steps are 0; the last good checkpoint is of step 20: "
    check.equal(message, wanted .. files.checkpoint)
end

-- So does a rate at which the weights overflow: at the first step after which they do, whatever the loss was before.
function test.weights_that_overflow_end_a_run()
    local wild, ignorant = few_steps(), run.ignorant
    run.ignorant = function() return math.huge end
    wild.rate, wild.evaluate = 1000.0, 1
    local state, first = assert(train.open(job())), 0
    local function is_number(value) return value - value == 0 end
    state:initialise()
    repeat
        first = first + 1
        local factor = learning_rates.at(first, wild.steps)
        local loss, norm = state:step(first, wild.rate * factor, wild.table_rate * factor)
    until not (is_number(loss) and is_number(norm) and is_number(state:validate(16)) and first < wild.steps)
    local message, files = failed(job(), wild)
    run.ignorant = ignorant
    check.equal(message:match "^step %d+", "step " .. first)
    check.matches(message, "no number; the last good checkpoint is of step " .. first - 1 .. ": ")
    check.equal(bytes(files.checkpoint) == undisturbed(job(), wild, first - 1, files.checkpoint), true)
end

-- Attention by tables: expected weights for half of the steps, signs of each step, and the model's for the last tenth.
function test.signs_follow_their_schedule()
    for _, samples in ipairs { true, false } do
        local open, j, told = train.open, job(), {}
        j.samples = samples
        train.open = opened_as(open, function(state, key, ...)
            local given = { ... }
            if key == "step" or key == "validate" then told[#told + 1] = given[key == "step" and 4 or 2] end
            return state[key](state, ...)
        end)
        quietly(j, few_steps(), own, files_in(program.folder()), { model = "bigram", isa = "scalar" })
        train.open = open
        local first, fresh = ("0"):rep(22), ("1"):rep(10) .. "2" .. ("1"):rep(6)
        check.equal(table.concat(told), samples and first .. fresh .. "22222" or ("0"):rep(44))
    end
end

function test.settings_are_checked()
    local function of(options)
        return function()
            options.seed = 1
            return settings.of(options, 64)
        end
    end
    check.fails_with("--steps is missing", of {})
    check.fails_with("--context: 65: must be an integer from 2 to 64", of { steps = 3, context = 65 })
    check.fails_with("--rate: fast: must be a number", of { steps = 3, rate = "fast" })
    check.fails_with("--time: 5x: must be a time", of { time = "5x" })
    check.fails_with("--dropout: 1: must be", of { steps = 3, dropout = "1" })
    check.fails_with("--batch: 0: must be", of { steps = 3, batch = 0 })
    local s, others = settings.of({ tokens = "2e4", batch = 5, seed = 9, time = nil }, 64)
    check.equal(s.steps, 63)
    check.equal({ s.table_optimiser, s.table_rate, s.tables_type }, { "adagrad", 0.04 })
    local function with(options)
        options.steps, options.seed = 1, 1
        return (settings.of(options, 64))
    end
    local lazy = with { rate = "1e-3", ["table-optimiser"] = "adam", quantise = "i8,i16" }
    check.near(lazy.table_rate, 3e-3, 1e-12)
    check.equal({ lazy.tables_type, lazy.projection_type }, { "i8", "i16" })
    check.equal(with({ quantise = "i8" }).projection_type, "i8")
    local packed = with { quantise = "i4" }
    check.equal({ packed.tables_type, packed.projection_type }, { "i4", "f32" })
    check.fails_with("f16: projections must be one of f32, bf16, i16, i8", of { steps = 3, quantise = "f16" })
    check.fails_with("--quantise: i9,i8: tables must be one of f32", of { steps = 3, quantise = "i9,i8" })
    check.equal(others.save_seconds, 60)
end

-- Rows of a type with scales are packed before their factor 1 / h, which is the scales'.
function test.rounds_tables_where_pack_does()
    local tables = { kind = "tables", folded = { row = 8, steps = { { step = "scale" } } } }
    local function steps(type) return #rounding.of(tables, { tables = type }).steps end
    check.equal({ steps "i8", steps "bf16" }, { 0, 1 })
end

return test
