-- Runs with training code by hand (tests/train/bigram.c): what they learn, what they write, and that a resumed run is
-- the undisturbed one byte for byte.
local bigram = require "tests.train.bigram"
local check = require "tests.support.check"
local corpus = require "harness.train.corpus"
local host = require "host"
local json = require "json"
local learning_rates = require "harness.train.learning_rates"
local log = require "harness.train.log"
local program = require "tests.support.program"
local run = require "harness.train.run"
local settings = require "harness.train.settings"
local table_usage = require "harness.train.table_usage"
local train = require "train"

local test = {}

local job, vocab = bigram.job, bigram.vocab

local function bytes(path) return assert(host.read(path)) end

-- The loss after `steps` steps, the bytes of the weights, and the run.
local function trained(j, steps)
    local state, loss = assert(train.open(j)), nil
    state:initialise()
    for step = 1, steps do
        loss = state:step(step, 0.01, 0.04)
    end
    local path = program.folder() .. "/w.safetensors"
    assert(state:export(path))
    return loss, bytes(path), state
end

function test.a_run_learns()
    local first = trained(job(), 1)
    local last, _, state = trained(job(), 150)
    local validation, tokens = state:validate(1000)
    check.near(first, math.log(vocab), 0.1)
    check.equal(last < 1.6 and validation < 1.6, true)
    check.equal(tokens, (400 - 1) // 12 * 12)
    local uses = state:uses()
    check.equal(#uses[2], 2)
    check.equal(uses[2][1][1], 8)
    check.equal(uses[2][1][2] > 2.5 and uses[2][1][2] <= 3, true)
    check.equal(state:uses()[2][1][1], 0)
end

function test.every_thread_takes_denormal_numbers_for_zeros_in_a_step_and_no_longer()
    local flushing = { step = "bigram_step_of_zeros", flush_denormals = "bigram_flush_denormals", threads = 3 }
    local loss, weights = trained(job(flushing), 3)
    local same_loss, as_ever = trained(job(), 3)
    check.equal(loss, same_loss)
    check.equal(weights == as_ever, true)
end

-- With an epsilon that is large beside gradients, and without averages, a step is in proportion to the gradient.
function test.long_gradients_are_clipped()
    local function moved(clip)
        local j = job { clip = clip, beta1 = 0.0, beta2 = 0.0, epsilon = 100.0, decay = 0.0 }
        local state, folder = assert(train.open(j)), program.folder()
        state:initialise()
        assert(state:export(folder .. "/before.safetensors"))
        local _, norm = state:step(1, 100.0, 0.04)
        assert(state:export(folder .. "/after.safetensors"))
        local length = program.python(
            [=[
def dense(name):
    return load(sys.argv[1] + name + ".safetensors")["dense"][1].astype(float)

print(np.linalg.norm(dense("/after") - dense("/before")))]=],
            folder
        )
        return tonumber(length), norm
    end
    local whole, norm = moved(0.0) -- 0: as long as they are
    check.near(whole / norm, 1.0, 0.01)
    for _, share in ipairs { 0.1, 0.9, 1.1 } do
        local clipped, same = moved(share * norm)
        check.near(clipped / norm, math.min(share, 1.0), 0.01)
        check.equal(same, norm) -- the log has the length before
    end
end

-- A job whose tables, and with `all` also its matrix, are rounded to `type` for passes forward.
local function rounded_job(type, changes, all)
    local j = job(changes)
    for i = all and 1 or 2, 2 do
        j.tensors[i].rounding = { type = type, row = vocab, steps = {} }
    end
    return j
end

-- The jobs of runs that take other ways.
local jobs = {
    plain = job,
    adam = function(changes)
        local j = job(changes)
        j.adam = true
        return j
    end,
    rounded = function(changes) return rounded_job("i8", changes, true) end,
    both = function(changes)
        local j = rounded_job("i8", changes)
        j.adam = true
        return j
    end,
}

function test.threads_change_no_byte()
    local seen = {}
    for name, make in pairs(jobs) do
        local _, one = trained(make(), 20)
        for _, threads in ipairs { 2, 3, 5 } do
            local _, many = trained(make { threads = threads }, 20)
            check.equal(many == one, true)
        end
        check.equal(seen[one], nil)
        seen[one] = name
    end
    local _, one = trained(job(), 20)
    local _, other = trained(job { seed = 2 }, 20)
    check.equal(other == one, false)
end

function test.a_loaded_state_goes_on_as_if_nothing_had_happened()
    for _, make in pairs(jobs) do
        local _, whole = trained(make(), 20)
        local _, _, half = trained(make(), 9)
        local path = program.folder() .. "/state"
        assert(half:save(path, "a text \xff"))
        check.equal(train.text(path), "a text \xff")
        local state = assert(train.open(make { threads = 2 }))
        assert(state:load(path))
        for step = 10, 20 do
            state:step(step, 0.01, 0.04)
        end
        assert(state:export(path .. ".w"))
        check.equal(bytes(path .. ".w") == whole, true)
    end
end

-- Lazy Adam beside its definition, on the gradient of the first step: each number of a row that is met moves by its
-- rate, others stay.
function test.adam_of_tables_moves_by_the_rate_at_first()
    local j = jobs.adam()
    j.tensors[2].deviation = 0.0
    local _, weights, state = trained(j, 1)
    local met, moved = 0, 0
    for _, one in ipairs(state:uses()[2]) do
        met = met + one[1]
    end
    for at = #weights - 4 * 256 + 1, #weights, 4 do
        local value = string.unpack("<f", weights, at)
        if value ~= 0 then
            moved = moved + 1
            check.near(math.abs(value), 0.04, 1e-4)
        end
    end
    check.equal(moved, met * vocab)
end

-- The nearest multiples of a row's largest magnitude / 127, a float32.
local function rounded_row(row)
    local largest = 0
    for _, value in ipairs(row) do
        largest = math.max(largest, math.abs(value))
    end
    local scale = string.unpack("<f", string.pack("<f", largest / 127))
    local list = {}
    for k, value in ipairs(row) do
        list[k] = scale * math.floor(value / scale + 0.5)
    end
    return list
end

-- The validation of a run with rounded tensors is that of its weights when they are rounded, and they are not.
function test.passes_forward_read_rounded_weights()
    local _, weights, state = trained(rounded_job("i8", {}, true), 60)
    local list, moved = {}, 0
    for first = #weights - 8 * 256 + 1, #weights, 4 * vocab do
        local row = { string.unpack("<" .. ("f"):rep(vocab), weights, first) }
        row[vocab + 1] = nil
        list[#list + 1] = rounded_row(row)
        for k, value in ipairs(row) do
            moved = math.max(moved, math.abs(value - list[#list][k]))
        end
    end
    check.equal(moved > 1e-4, true)
    local ids = bigram.ids(400, 2)
    local function id(at) return (string.unpack("<i4", ids, 4 * at + 1)) end
    local function loss(rows)
        local nats = 0
        for at = 0, 395 do
            local a, b, sum = rows[id(at) + 1], rows[vocab + id(at) + 1], 0
            for k = 1, vocab do
                sum = sum + math.exp(a[k] + b[k])
            end
            nats = nats + math.log(sum) - a[id(at + 1) + 1] - b[id(at + 1) + 1]
        end
        return nats / 396
    end
    local validation, tokens = state:validate(1000)
    check.equal(tokens, 396)
    check.near(validation, loss(list), 1e-6)
end

function test.damaged_checkpoints_are_one_line()
    local _, _, state = trained(job(), 2)
    local path = program.folder() .. "/state"
    assert(state:save(path, "text"))
    local good = bytes(path)
    for _, length in ipairs { 0, 7, 100, #good // 2, #good - 1 } do
        assert(host.write_file(path, good:sub(1, length)))
        check.fails_with(path, state.load, state, path)
        check.fails_with(path, train.text, path)
    end
    for at = 1, #good, 7 do -- one bit of every seventh byte
        local byte = string.char(good:byte(at) ~ 1 << at % 8)
        assert(host.write_file(path, good:sub(1, at - 1) .. byte .. good:sub(at + 1)))
        check.fails_with(path, train.text, path)
    end
    assert(state:export(path)) -- the weights are no checkpoint
    check.fails_with(path, state.load, state, path)
    check.fails_with(path, train.text, path)
end

function test.a_checkpoint_of_something_else_is_one_line()
    local _, _, state = trained(job(), 1)
    local path = program.folder() .. "/state"
    for _, text in ipairs {
        "",
        "7",
        "{}",
        '{"settings":{},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0,"isa":"scalar"}',
        '{"settings":{"steps":3,"evaluate":1},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0}',
        '{"settings":{"steps":3,"evaluate":"x"},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0}',
    } do
        assert(state:save(path, text))
        check.fails_with(path .. ": run: is not what lookupc train writes", run.position, path)
    end
end

function test.a_value_that_is_no_number_is_found()
    local j = job()
    j.tensors[2].means = { 0 / 0 }
    local state = assert(train.open(j))
    state:initialise()
    check.equal(state:not_finite(), "tables")
    local loss = state:step(1, 0.01, 0.04)
    check.equal(loss ~= loss, true)
end

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
    check.fails_with("batch: is 7 here, but 6", function()
        local other = few_steps()
        other.batch = 7
        settings.check("w", other, position.settings)
    end)
    check.fails_with("time: is 300 here, but nil", function()
        local other = few_steps()
        other.steps, other.time = nil, settings.of({ time = "5m", seed = 1 }, 64).time
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
        for _, name in ipairs { "step", "parts", "isa", "counted", "seconds", "nats" } do
            text[#text + 1] = string.format('"%s":%s', name, position[name])
        end
        local own = setmetatable(changes_of_settings or {}, { __index = good.settings })
        text[#text + 1] = string.format('"settings":{"steps":%s,"evaluate":%s}', own.steps, own.evaluate)
        assert(state:save(path, "{" .. table.concat(text, ",") .. "}"))
        return run.position(path)
    end
    local found = read {}
    check.equal({ found.step, found.isa, found.settings.steps }, { 20, "scalar", 40 })
    for _, changes in ipairs {
        { { step = 41 } },
        { { step = -1 } },
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
    check.fails_with("f16: projections must be one of f32, bf16, i16, i8", of { steps = 3, quantise = "f16" })
    check.fails_with("--quantise: i9,i8: tables must be one of f32", of { steps = 3, quantise = "i9,i8" })
    check.equal(others.save_seconds, 60)
end

-- A tokenizer whose ids are bytes, and which gets whole characters only.
local function byte_tokenizer(pieces)
    return {
        packed = function(_, piece)
            if not utf8.len(piece) then error("cut inside a character: " .. #piece, 0) end
            pieces[#pieces + 1] = piece
            return (piece:gsub(".", function(byte) return string.pack("<i4", byte:byte()) end))
        end,
    }
end

local function text_of(ids)
    return (
        ids:gsub("....", function(id)
            local value = string.unpack("<i4", id)
            return value < 256 and string.char(value) or "<" .. value .. ">"
        end)
    )
end

function test.text_is_cut_at_lines_and_characters()
    local folder, facts = program.folder(), { first = {}, last = {} }
    local texts = {
        lines = ("a line of text, é\n"):rep(15000),
        characters = ("é€x"):rep(45000), -- without a line feed
    }
    for name, text in pairs(texts) do
        local path, pieces = folder .. "/" .. name, {}
        assert(host.write_file(path, text))
        local read = corpus.read(byte_tokenizer(pieces), facts, nil, { text = { path } })
        check.equal(text_of(read.train .. read.valid) == text, true)
        check.equal(#pieces > 4, true)
        check.near(#read.valid / #text / 4, 0.1, 0.02)
        check.equal(read.bytes, #read.valid // 4)
    end
    local one = folder .. "/one"
    assert(host.write_file(one, "one\ntwo\n"))
    local apart = corpus.read(byte_tokenizer {}, facts, 300, { text = { one, one }, valid = { one } })
    check.equal(text_of(apart.train), ("one\ntwo\n<300>"):rep(2))
    check.equal(text_of(apart.valid), "one\ntwo\n<300>")
end

function test.of_many_files_whole_ones_are_for_validation()
    local folder, paths = program.folder(), {}
    for i = 1, 45 do
        paths[i] = folder .. "/" .. i
        assert(host.write_file(paths[i], i .. "\n"))
    end
    local read = corpus.read(byte_tokenizer {}, { first = {}, last = {} }, nil, { text = paths })
    check.equal(text_of(read.valid), "20\n40\n")
    check.equal(#read.train // 4, 9 * 2 + 36 * 3 - 6)
end

-- What a tokenizer puts around every text stands in no text to train on.
function test.ids_around_a_text_are_left_off()
    local path = program.folder() .. "/text"
    assert(host.write_file(path, ("line\n"):rep(30)))
    local around = {
        packed = function(_, piece) return string.pack("<i4i4i4", 1, #piece, 2) end,
    }
    local read = corpus.read(around, { first = { 1 }, last = { 2 } }, nil, { text = { path }, valid = { path } })
    check.equal({ string.unpack("<i4", read.valid) }, { 150, 5 })
    check.equal(#read.valid, 4)
end

return test
