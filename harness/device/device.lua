-- A device: another machine, or an emulator, that runs programs which are made here. `--runner CMD` says how: CMD
-- PROGRAM ARGUMENTS… runs a program there, with its output on standard output and its exit status passed on.
--
--   device.open(options) -> d, after d has said which CPU it is; options: runner, cc, cflags, threads
--   d.facts                    as those of the module `cpu`
--   d.name                     tells it from others
--   d:measure(job, options)    as measure.run (harness/measure/measure.lua), there
--   d:check(job, left)         what its checks say, a list in their order: { relative, absolute, all }: the largest
--                              error of a row, of a value, of all rows together; or { failure }. nil: there was no time
--   d:outputs(job, list)       the outputs of the checks of these numbers, in one run: strings of 4 bytes a value; nil:
--                              it ends early
--   d.kept                     the log that an error names, nil: there is none yet
-- All raise one line where the device does not do what it should.
--
-- Beside what measure.run takes, a memory may have fill = "linked" and file, and a job checks: rows like calls that
-- have y and expected, names of memories, tokens, width (of both) and period (rows of what is expected, which come
-- again and again; a row that begins with NaN says nothing). Without `expected` nothing is compared there, and y may be
-- any words of 4 bytes.
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local digest_of = require "gen.host.digest"
local host = require "host"
local json = require "json"
local misuse = require "gen.schema.misuse"
local process = require "process"
local program = require "harness.device.program"
local rounds = require "harness.measure.rounds"
local setting = require "harness.measure.setting"

local device = { link_options = program.relocatable, patience = 120 } -- of candidates; seconds of a run of checks
device.__index = device

local longest_argument, longest_line = 8000, 60000 -- bytes: other systems take no longer ones

local largest_output = 1 << 30
local most_checking = 4 -- programs of checks that are kept, as their outputs may be wanted

-- `words` in lists of at most so many bytes with commas between them.
local function parted(words, most)
    local list, bytes = { {} }, 0
    for _, word in ipairs(words) do
        if bytes + #word > most then
            list[#list + 1], bytes = {}, 0
        end
        table.insert(list[#list], word)
        bytes = bytes + #word + 1
    end
    return list
end

-- The words of a run each, of those of one measurement.
function device.runs_of(words) return parted(words, longest_line) end

-- What is run of a job: its program.
function device:make(job) return { path = self.programs:make(job) } end

function device.forget(made) host.remove(made.path) end

-- The words of the command that does `words` with what `make` made.
function device:command(made, words)
    local arguments = {}
    for i, part in ipairs(#words > 0 and parted(words, longest_argument) or {}) do
        arguments[i] = table.concat(part, ",")
    end
    return compilers.joined(self.words, { made.path }, arguments)
end

local function first_line(path)
    local text = host.read(path, largest_output) or ""
    return text:match "[^\r\n]*%f[%w]error[^\r\n]*" or text:match "[^%c]+" or nil
end

-- Does `words` on the device with what `make` made. Returns { lines by kind in their order, ended (whether all was
-- done), started, message (what the program says went wrong), status, said (the first line of errors) }; nil: it took
-- longer than `left` seconds.
function device:run(made, words, left)
    local out, errors = self.folder .. "/out", self.folder .. "/errors"
    local script = 'exec >"$1" 2>"$2"; shift 2; exec "$@"' -- what a runner says itself stands apart
    local command = compilers.joined({ "sh", "-c", script, "sh", out, errors }, self:command(made, words))
    local result = assert(process.run(command, { timeout = left }))
    if result.timed_out then return nil end
    local found = { slice = {}, clocks = {}, check = {}, cpu = {}, y = {} }
    found.status, found.said = result.status, first_line(errors)
    for line in (host.read(out, largest_output) or ""):gmatch "[^\r\n]+" do
        local kind, rest = line:match "^(%S+) ?(.*)$"
        if kind == "error" then found.message = rest end
        found.started = found.started or line == "lookupc-device 1"
        found.ended = found.ended or line == "end"
        if found.started and kind and type(found[kind]) == "table" then table.insert(found[kind], rest) end
    end
    found.ended = found.ended and result.status == 0
    return found
end

-- How a run ended, in words: what a shell makes of a signal is one.
local function status_of(found)
    local signal = found.status - 128
    return signal > 0 and signal < 65 and "signal " .. signal or "exit status " .. found.status
end

-- Raises the line about a run that did not end well.
function device:refuse(found)
    local what = found.message
        or not found.started and string.format("the program of %s does not start there: %s", self.cc, status_of(found))
        or string.format("the program ends there too early: %s", status_of(found))
    local said = not found.message and found.said and ": " .. found.said or ""
    local kept = self.kept and string.format("; what was measured is in %s: --resume goes on", self.kept) or ""
    error(string.format("--runner: %s: %s%s%s", self.runner, what, said, kept), 0)
end

-- The same as device.run, but raises one line if not all was done.
function device:must_run(...)
    local found = self:run(...)
    if found and not found.ended then self:refuse(found) end
    return found
end

local texts = { architecture = true, model = true, vendor = true } -- of the facts; the others are numbers

-- The facts that a program has printed.
local function facts_of(lines)
    local facts = {}
    for _, line in ipairs(lines) do
        local name, value = line:match "^(%S+) (.*)$"
        facts[name or ""] = value
    end
    for name, value in pairs(facts) do
        if not texts[name] then facts[name] = math.tointeger(tonumber(value)) end
    end
    facts.virtual = facts.virtual == 1
    return facts
end

-- What the device says where it has nothing to do; raises one line if it does not answer.
function device:answers()
    self.asking = self.asking or self:make { model = "none", seed = 1, repetitions = 1 }
    return self:must_run(self.asking, {})
end

function device.open(options)
    local words = compilers.words(options.runner)
    if #words == 0 then misuse('--runner: "' .. options.runner .. '": must be a command') end
    if options.threads > 1 then
        misuse(string.format("--threads: %d: must be 1 beside --runner", options.threads))
    end
    local cc = options.cc:match "[^,]+"
    local self = { runner = options.runner, words = words, cc = cc, folder = process.temporary_directory() }
    self.checking = {}
    setmetatable(self, device)
    self.programs = program.new(cc, options.cflags, program.hosted)
    self.facts = facts_of(self:answers().cpu)
    self.name = self.facts.model and digest_of { options.runner, assert(json.encode(self.facts)) }
    if not self.facts.architecture then
        error(string.format("--runner: %s: prints no facts of a CPU: its output must be the program's", self.runner), 0)
    end
    cpu.stand_for(self.facts)
    return self
end

-- What a slice's word is: CALL:N, w, p.
local function word_of(numbers, one)
    local flags = (one.warm and "w" or "") .. (one.pause and "p" or "")
    return string.format("%d:%d%s", numbers[one.call], one.iterations, flags)
end

local late = {} -- raised where the time is up

-- The times of a run, in seconds.
function device.slices_of(_, found)
    local slices = {}
    for i, line in ipairs(found.slice) do
        local cpu_time, wall, whole = line:match "^(%S+) (%S+) (%S+)$"
        slices[i] = { cpu = tonumber(cpu_time), wall = math.max(tonumber(wall), 1e-12), whole = tonumber(whole) }
    end
    return slices
end

-- What harness/measure/rounds.lua measures with, by what `make` made, until `stop` of the clock.
local function engine_of(self, job, made, stop)
    local engine, numbers, seconds = { now = process.clock, at_once = true }, {}, 0
    for i, row in ipairs(job.calls) do
        numbers[row] = i - 1
    end
    function engine.show(text) host.status(text == "" and "" or text .. " on the device") end
    function engine.slices(list)
        local words, slices = {}, {}
        for i, one in ipairs(list) do
            words[i] = word_of(numbers, one)
        end
        for _, some in ipairs(self.runs_of(words)) do
            local left = stop and stop - process.clock()
            local found = (not left or left > 0) and self:must_run(made, some, left)
            if not found then error(late, 0) end
            for _, slice in ipairs(self:slices_of(found, some)) do
                slices[#slices + 1] = slice
                seconds = seconds + slice.whole
            end
        end
        if #slices ~= #list then
            error(string.format("--runner: %s: %d of %d times came back", self.runner, #slices, #list), 0)
        end
        return slices
    end
    return engine, function() return seconds end
end

function device:measure(job, options)
    local start = process.clock()
    local made = self:make(setting.complete(job))
    local engine, seconds = engine_of(self, job, made, options.left and start + options.left)
    local good, list = pcall(rounds.run, job, engine)
    self.forget(made)
    if not good and list == late then return nil end
    if not good then error(list, 0) end
    return rounds.by_name(list), { timed_seconds = seconds(), whole_seconds = process.clock() - start }
end

function device.check_of(line)
    local relative, absolute, all = line:match "^(%S+) (%S+) (%S+)$"
    local function number(square) return (tonumber(square) or square:find "nan" and 0 / 0 or math.huge) ^ 0.5 end
    return { relative = number(relative), absolute = number(absolute), all = number(all) }
end

-- Why a run did not do a check, where the device itself still answers; else raises one line.
function device:failure_of(found)
    if not found.message then self:answers() end
    return found.message or "crashed on the device: " .. status_of(found)
end

-- Seconds that a run of checks may take: a program has to get there, too.
local function patience_of(self, job)
    local bytes = 0
    for _, row in ipairs(job.libraries) do
        bytes = math.max(bytes, #assert(host.read(row.blob, 1 << 34)))
    end
    return self.patience + (bytes >> 20)
end

-- All checks in one run; if that ends early or hangs, each in one of its own: what fails, fails alone.
function device:check(job, left)
    local made, stop, words, results = self:make(job), left and process.clock() + left, {}, {}
    local patience = patience_of(self, job)
    local hangs = { failure = string.format("took more than %.0f seconds on the device", patience) }
    -- What a run says, or `hangs`; nil: the time is up.
    local function run(some)
        local rest = stop and stop - process.clock() or math.huge
        if rest <= 0 then return nil end
        return self:run(made, some, math.min(rest, patience)) or patience < rest and hangs or nil
    end
    for i in ipairs(job.checks) do
        words[i] = "=" .. i - 1
    end
    local found = run(words)
    for i, line in ipairs(found and found.ended and found.check or {}) do
        results[i] = self.check_of(line)
    end
    for i = 1, found and not found.ended and #words or 0 do
        local one = run { words[i] }
        if not one then return nil end
        results[i] = one == hangs and hangs
            or one.ended and self.check_of(one.check[1])
            or { failure = self:failure_of(one) }
    end
    job.made = made
    table.insert(self.checking, made)
    if #self.checking > most_checking then self.forget(table.remove(self.checking, 1)) end
    return found and results
end

function device:outputs(job, list)
    local words, texts = {}, {}
    for i, number in ipairs(list) do
        words[i] = "@" .. number - 1
    end
    local found = self:run(job.made, words)
    if not found.ended then return nil, self:failure_of(found) end
    for i, line in ipairs(found.y) do
        texts[i] = line:gsub("%x%x%x%x%x%x%x%x", function(bits) return ("<I4"):pack(tonumber(bits, 16)) end)
    end
    return texts
end

return device
