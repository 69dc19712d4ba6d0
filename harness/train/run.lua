-- A training run: steps, validations, checkpoints and the log, until it is done, interrupted or no longer makes sense.
local figures = require "gen.plan.figures"
local host = require "host"
local json = require "json"
local learning_rates = require "harness.train.learning_rates"
local log = require "harness.train.log"
local page = require "harness.train.page"
local process = require "process"
local schedule = require "harness.train.schedule"
local table_usage = require "harness.train.table_usage"
local train = require "train"

local run = {}
run.__index = run

local least_windows, most_windows = 16, 4096 -- of a validation
local share_of_validation = 0.15 -- windows of a validation, of those trained on since the last one; at the end, of all
local more_than_ranks = 1 << 20
local most_still = 20 -- steps in turn without a gradient
local most_above = 0.5 -- nats of a loss above that of equal logits
local most_times = 3 -- that loss: more ends the run

local function grouped(value) return figures.grouped(math.tointeger(math.floor(value + 0.5))) end

local function finite(value) return value == value and math.abs(value) < math.huge end

local function duration(seconds)
    if seconds < 90 then return string.format("%.0f s", seconds) end
    if seconds < 5400 then return string.format("%.0f min", seconds / 60) end
    return string.format("%.1f h", seconds / 3600)
end

local function plain(value) return string.format("%d", value) end

-- What a position holds, and of its settings those that say how far it is: name, type, least, most.
local most_steps = 1 << 31
local fields = {
    { "step", "integer", 0, most_steps },
    { "share", "float", 0, 1 },
    { "validated", "integer", 0, most_steps },
    { "parts", "integer", 1, 1 << 31 },
    { "counted", "integer", 0, most_steps },
    { "seconds", "float", 0, 1e300 },
    { "nats", "float", 0, 1e300 },
}
local isa_name = "^[%l%d_]+$" -- of the instruction set, likewise
local of_steps, of_time = { { "steps", "integer", 1, most_steps } }, { { "time", "number", 1e-9, 1e300 } }
local of_evaluate = { { "evaluate", "integer", 1, most_steps } }

local function fits(object, rows)
    if type(object) ~= "table" then return false end
    for _, row in ipairs(rows) do
        local name, kind, least, most = table.unpack(row)
        local value = object[name]
        if math.type(value) ~= kind and type(value) ~= kind then return false end
        if not (value >= least and value <= most) then return false end
    end
    return true
end

-- Whether `position` is of a run with its settings, and within it.
local function is_whole(position)
    local s = type(position) == "table" and position.settings
    if not fits(position, fields) or not fits(s, s and s.time and of_time or of_steps) then return false end
    if s.evaluate ~= nil and not fits(s, of_evaluate) then return false end
    if type(position.isa) ~= "string" or not position.isa:find(isa_name) then return false end
    return position.validated <= position.step and (s.time or position.step <= s.steps)
end

-- What the checkpoint `path` says of its run: { settings, parts, isa, step, share, validated, seconds, nats, counted };
-- parts: threads of all ranks; isa: the instruction set's name; share: of the run, that is over; validated: the step of
-- the last validation; nats, counted: sum and number of the losses since the last line of the log. Raises one line.
function run.position(path) return run.position_in(assert(train.text(path)), path) end

-- The same from the text in the checkpoint `path`.
function run.position_in(text, path)
    local position = json.decode(text)
    return is_whole(position) and position or error(path .. ": run: is not what lookupc train writes", 0)
end

-- What attention by tables reads in step `step` of `steps`, as train_signs of harness/train/abi.h: the weights that
-- tables have on average, which are quick to learn by, then tables with signs of each step, so that no draw of them is
-- learned; at last tables with the model's signs, those of inference.
local expected, fresh, own_signs = 0, 1, 2
function run.signs(step, steps)
    if step <= steps // 2 then return expected end
    return step <= steps - steps // 10 and fresh or own_signs
end

-- Where to go on from.
function run:last_good()
    if not self.saved_step then return "there is no checkpoint yet" end
    return string.format("the last good checkpoint is of step %d: %s", self.saved_step, self.files.checkpoint)
end

-- The line of an error that ends the run.
function run:give_up(step, words) error(string.format("step %d: %s; %s", step, words, self:last_good()), 0) end

-- There is a good checkpoint of this step.
function run:has_saved(step)
    self.saved, self.saved_step = process.clock(), step
    train.words(self:last_good() .. "; --resume goes on")
end

-- The loss of equal logits, of a model which knows nothing.
function run:ignorant() return math.log(self.vocab) end

-- Ends the run if `nats`, the loss called `what`, is no number, or that of a model which has diverged.
function run:judge(nats, what)
    local step, ignorant = self.position.step, self:ignorant()
    if not finite(nats) then self:give_up(step, what .. " is no number") end
    if nats <= most_times * ignorant then return end
    local form = "the run diverges: %s, %.4g, is above %d times ln(vocab) = %.2f; a smaller --rate helps"
    self:give_up(step, form:format(what, nats, most_times, ignorant))
end

-- The mean loss since the last line of the log. Ends the run if it has diverged.
function run:loss()
    local position = self.position
    local nats = position.nats / position.counted
    self:judge(nats, "the loss")
    return nats
end

-- Writes the checkpoint.
function run:save()
    local position = self.position
    if position.counted > 0 then self:loss() end
    position.seconds = process.clock() - self.base
    local bad = self.state:not_finite()
    if bad then self:give_up(position.step, bad .. " has a value that is no number") end
    self.state:gather_uses()
    if self.own.rank == 0 then
        assert(self.state:save(self.files.checkpoint, assert(json.encode(position, "compact"))))
    end
    train.together(0) -- no rank goes on, or says that it is there, before it is
    self:has_saved(position.step)
end

-- Warns of tables that collapse: of each once, and of a layer again when they are twice as many. list: of a summary.
function run:warn(list)
    for i, row in ipairs(list) do
        local told = self.warned[i] or { count = 0 }
        local new = {}
        for _, number in ipairs(table_usage.collapsing(row, self.before and self.before[i])) do
            if not told[number] then new[#new + 1] = number end
        end
        if #new > 0 and #new >= told.count then
            told.count = told.count + #new
            for _, number in ipairs(new) do
                told[number] = true
            end
            if self.own.rank == 0 then
                host.note("lookupc: step " .. self.position.step .. ": " .. table_usage.warning(row, new))
            end
        end
        self.warned[i] = told
    end
    self.before = list
end

-- Warns, once, of a loss that is far above that of a model which knows nothing.
function run:warn_of_loss(nats)
    local ignorant = self:ignorant()
    if nats < ignorant + most_above or self.has_told_of_loss then return end
    self.has_told_of_loss = true
    if self.own.rank ~= 0 then return end
    host.note(
        string.format(
            "lookupc: step %d: the loss, %.4g, is above ln(vocab) = %.2f, which equal logits have; \z
                a smaller --rate helps",
            self.position.step,
            nats,
            ignorant
        )
    )
end

-- What a validation says, of at most so many windows, as a part of a line of the log. signs: of the last step.
function run:validate(most, signs)
    local entry = { tables = json.array(table_usage.summary(self.tensors, self.state:uses())) }
    if self.windows > 0 then
        entry.validation = self.state:validate(most, signs == expected and expected or own_signs)
        self:judge(entry.validation, "the loss of the validation")
    end
    self:warn(entry.tables)
    return entry
end

-- Adds what the last steps were like to the log.
function run:note(entry, validated)
    local position, s = self.position, self.settings
    local now = process.clock()
    entry.step, entry.tokens = position.step, position.step * s.batch * s.context
    entry.share = position.share
    entry.loss = self:loss()
    if validated then self:warn_of_loss(entry.loss) end
    entry.seconds = now - self.base
    entry.tokens_per_second = position.counted * s.batch * s.context / math.max(self.busy, 1e-9)
    position.nats, position.counted, self.busy = 0.0, 0, 0.0
    self.last = entry
    if self.own.rank == 0 then self.log.add(entry) end
end

-- Says on the page and on standard output what a validation found: once it is saved, as both may fail.
function run:tell(entry)
    if self.own.rank ~= 0 then return end
    if self.files.html then assert(host.write_file(self.files.html, page.of(self.log.first, self.log.records))) end
    host.print(
        string.format(
            "step %s of %s, %s tokens: loss %.4f%s, %s tokens/s",
            grouped(entry.step),
            schedule.total(self.settings, entry.step, entry.share, grouped),
            grouped(entry.tokens),
            entry.loss,
            entry.validation and string.format(", validation %.4f", entry.validation) or "",
            grouped(entry.tokens_per_second)
        )
    )
end

function run:show(nats)
    local s, step, share = self.settings, self.position.step, self.position.share
    local seconds = process.clock() - self.base
    host.status(
        string.format(
            "step %d of %s  loss %.4f  %s tokens/s  %s left",
            step,
            schedule.total(s, step, share, plain),
            nats,
            grouped(s.batch * s.context * step / math.max(seconds, 1e-9)),
            duration(seconds * (1 - share) / math.max(share, 1e-9))
        )
    )
end

-- A number to as many digits as JSON keeps, so that a checkpoint loses nothing.
local function kept(value) return tonumber(string.format("%.15g", value)) + 0.0 end

-- The share of the run that is over behind a step that took so many seconds: the first rank's clock says it to all.
function run:reached(step, took)
    local share = schedule.reached(self.settings, step, process.clock() - self.base, took)
    if not self.settings.steps then share = train.together(self.own.rank == 0 and share or 0) end
    return math.max(kept(share), self.position.share) -- half a step may be less than that of the last one
end

-- How many windows are validated behind so many steps.
function run:share_of_windows(steps)
    local windows = math.floor(share_of_validation * steps * self.settings.batch)
    return math.min(math.max(windows, least_windows), most_windows)
end

-- One step, and what is due after it.
function run:go_on()
    local s, position = self.settings, self.position
    local step = position.step + 1
    local at, of = schedule.at(s, step, position.share)
    local factor, begun = learning_rates.at(at, of), process.clock()
    local signs = self.samples and run.signs(at, of) or expected
    local nats, norm = self.state:step(step, s.rate * factor, s.table_rate * factor, signs)
    local took, before = process.clock() - begun, position.share
    self.busy = self.busy + took
    if not finite(nats) then self:give_up(step, "the loss is no number") end
    if not finite(norm) then self:give_up(step, "the gradient is no number") end
    self.still = norm == 0 and self.still + 1 or 0
    if self.still == most_still then
        self:give_up(step, "the gradients of the last " .. most_still .. " steps are 0")
    end
    position.step, position.nats, position.counted = step, kept(position.nats + nats), position.counted + 1
    position.share = self:reached(step, took)
    local validates, notes = schedule.due(s, step, before, position.share)
    local entry = {}
    if notes then
        if validates then
            local since = position.share < 1 and position.validated or 0
            entry, position.validated = self:validate(self:share_of_windows(step - since), signs), step
        end
        entry.rate, entry.norm = s.rate * factor, norm
        self:note(entry, validates)
    end
    self:show(nats)
    -- All ranks save at the same step: the first one's clock says when.
    local due = self.own.rank == 0 and process.clock() - self.saved > self.own.save_seconds
    local flags = train.together((train.interrupted() and 1 or 0) + (due and more_than_ranks or 0))
    local interrupted = flags % more_than_ranks > 0
    if validates or flags > 0 then self:save() end
    if validates then self:tell(entry) end
    if interrupted then
        host.status ""
        if self.own.rank == 0 then
            local total = schedule.total(s, step, position.share, plain)
            host.note(string.format("lookupc: interrupted at step %d of %s; --resume goes on", step, total))
        end
        train.end_interrupted()
    end
end

-- Trains. job: of train.open (harness/train/lua_train.c); settings, own: of harness/train/settings.lua; files: {
-- output, checkpoint, log, html }; facts: for the first line of the log; position: of a run to be resumed, or nil.
-- Returns the last line of the log. Raises one line when it cannot go on; then the last checkpoint stays.
function run.train(job, settings, own, files, facts, position)
    local self =
        setmetatable({
        own = own,
        files = files,
        tensors = job.tensors,
        first_weights = job.first_weights,
        vocab = job.vocab,
        samples = job.samples,
        warned = {},
        busy = 0.0,
        still = 0,
    }, run)
    train.hold()
    self.state = assert(train.open(job))
    if position then
        assert(self.state:load(files.checkpoint))
        settings = position.settings
        self:has_saved(position.step)
    else
        self.state:initialise(self.first_weights)
    end
    self.settings, facts.settings = settings, settings
    self.position = position
        or { settings = settings, step = 0, share = 0.0, validated = 0, seconds = 0.0, nats = 0.0, counted = 0 }
    self.position.parts, self.position.isa = own.threads * own.ranks, facts.isa
    self.base = process.clock() - self.position.seconds
    self.saved = self.saved or process.clock()
    if own.rank == 0 then self.log = log.open(files.log, facts, position and position.step) end
    for _, record in ipairs(self.log and self.log.records or {}) do
        self.before = record.tables or self.before
    end
    self.windows = select(2, self.state:windows())
    while self.position.share < 1 do
        self:go_on()
    end
    host.status ""
    if own.rank == 0 then
        assert(self.state:export(files.output))
        host.remove(files.checkpoint)
    end
    train.leave()
    train.release()
    return self.last or self.log and self.log.records[#self.log.records] or {} -- resumed at its end
end

return run
