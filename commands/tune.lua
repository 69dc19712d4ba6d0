-- The command `lookupc tune`: from a model file to the fastest schedule on this CPU, as a tuned file, a log and records
-- in the store.
local board = require "harness.device.board"
local budget = require "harness.tune.budget"
local compile = require "harness.base.compile"
local device = require "harness.device.device"
local file_rules = require "commands.file_rules"
local harness = require "harness.families.list"
local host = require "host"
local instruction_set = require "harness.tune.instruction_set"
local isa = require "gen.isa.list"
local json = require "json"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local machines = require "gen.machines.list"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local page = require "harness.tune.page"
local process = require "process"
local request = require "gen.request.request"
local results = require "harness.tune.results"
local runnable = require "harness.base.runnable"
local session = require "harness.tune.session"
local setting = require "harness.measure.setting"
local store = require "harness.tune.store"
local stored_schedule = require "harness.tune.stored_schedule"
local target = require "gen.plan.target"
local tune_machine = require "commands.tune_machine"
local tuning = require "harness.tune.tuning"

local tune = {}

-- With less time there are so few candidates that compiling kernels apart does not pay off.
local least_seconds_apart = 30

-- About: of random weights made, packed and given to the reference.
local seconds_a_packed_byte = 25e-9

-- Exit status where nothing was decided for an instruction set.
local nothing_decided = 3

local function seconds_of(text)
    local number, unit = text:match("^(%d+%.?%d*)([smh]?)$")
    if not number then misuse('--time: "' .. text .. '": must be a number of seconds, or one with s, m or h') end
    return tonumber(number) * ({ [""] = 1, s = 1, m = 60, h = 3600 })[unit]
end

local function shard_of(text)
    local i, n = (text or "1/1"):match("^(%d+)/(%d+)$")
    i, n = math.tointeger(tonumber(i)), math.tointeger(tonumber(n))
    if not i or i < 1 or i > n or n > 10000 then
        misuse('--shard: "' .. text .. '": must be I/N with I from 1 to N')
    end
    return { i = i, n = n, text = i .. "/" .. n }
end

-- "a,b" as a list; raises one line for an empty or repeated word.
local function words_of(option, text)
    local list, seen = {}, {}
    for word in (text .. ","):gmatch("([^,]*),") do
        if word == "" or seen[word] then
            misuse(string.format('%s: "%s": must be different names, separated by commas', option, text))
        end
        list[#list + 1], seen[word] = word, true
    end
    return list
end

-- The choices of the space `schedules` to vary by regime, nil for all.
local function choices_of(text, schedules)
    if not text then return nil end
    local by_regime = {}
    for _, name in ipairs(words_of("--choices", text)) do
        schedules.choice(name, "--choices")
        if name == "few.threshold" then
            misuse(
                "--choices: few.threshold: is chosen last, from the times of both kernels; it cannot be varied alone"
            )
        end
        local regime = name:find("^few%.") and "few" or "many"
        by_regime[regime] = by_regime[regime] or {}
        table.insert(by_regime[regime], name)
    end
    return by_regime
end

-- What candidates are compiled with: { {cc, cflags, label} }, the first of all that of the default. Of firmware both
-- optimisations that it is built with.
local function builds_of(options)
    local list = {}
    if options.firmware then
        for i, level in ipairs { "-O2", "-Os" } do
            local cc = options.firmware.compiler
            list[i] = { cc = cc, cflags = level, label = cc .. " " .. level }
        end
        return list
    end
    for i, cc in ipairs(words_of("--cc", options.cc)) do
        list[i] = { cc = cc, cflags = options.cflags, label = cc }
    end
    return list
end

-- What the options of the command say for model `m` of `family`, whose hooks are `hooks`; raises one line.
local function settings(path, m, family, hooks, options)
    local o = {
        seconds = seconds_of(options.time or "5m"),
        shard = shard_of(options.shard),
        batches = setting.batches(options.batch or options.firmware and "1" or hooks.batches(m)),
        choices = choices_of(options.choices, family.space),
        builds = builds_of(options),
        threads = compile.threads_of(options),
        json = options.json,
        html = options.html,
    }
    table.sort(o.batches)
    hooks.check_batches(m, o.batches)
    for i = 2, #o.batches do
        if o.batches[i] == o.batches[i - 1] then
            misuse(string.format("--batch: %d: is there twice", o.batches[i]))
        end
    end
    for _, name in ipairs { "again", "exhaustive", "choices" } do
        if o.seconds == 0 and options[name] then
            misuse(string.format("--%s: cannot be given beside --time 0, which measures nothing", name))
        end
    end
    local tuned = options.o or "tuned.lua"
    o.batches_text = table.concat(o.batches, ",")
    o.tuned = not options.shard and tuned or nil
    o.log = options.out or tuned:gsub("%.lua$", "") .. ".jsonl"
    o.resume = options.resume or options.shard ~= nil
    file_rules.can_become(options.out and "--out" or "-o", o.log)
    if host.kind(o.log) then assert(host.check_output(o.log)) end -- a pipe is not waited for
    if o.tuned then file_rules.can_become("-o", o.tuned) end
    if o.html then file_rules.can_become("--html", o.html) end
    if o.json then file_rules.json_can_hold(options.out and "--out" or "-o", o.log) end
    local outputs = { { options.out and "--out" or "-o", o.log } }
    if o.tuned then outputs[2] = { "-o", o.tuned } end
    if o.html then outputs[#outputs + 1] = { "--html", o.html } end
    file_rules.all_apart(outputs, { path })
    return o
end

-- Progress on a terminal, one line a stage elsewhere.
local function progress(name)
    local last
    return function(text, stop)
        local left = stop and stop - process.clock()
        local time = left and string.format(", %d:%02d left", math.max(0, left) // 60, math.max(0, left) // 1 % 60)
            or ""
        local terminal = host.status(string.format("tuning %s %s%s", name, text, time))
        local stage = text:gsub("%d+", "")
        if not terminal and stage:match("^[^,]*,?[^,]*") ~= last then
            last = stage:match("^[^,]*,?[^,]*")
            host.note(string.format("tuning %s %s%s", name, text, time))
        end
    end
end

-- Whether `records` have the end of a tuning; with `decided`: of one that has decided something.
local function finished(records, decided)
    for _, r in ipairs(records) do
        local ends = r.status == "chosen" and r.regime == "both"
        if ends and (not decided or stored_schedule.is_sound(r)) then return true end
    end
    return false
end

-- The records of the run that shall go on, none if there is none. A finished one does not go on: its records answer,
-- unless they decide nothing.
local function read_log(o, again)
    if not host.kind(o.log) then return {} end
    local records, dropped = log.read(o.log)
    local problem = log.problem(o.log, dropped)
    if problem then host.note("lookupc tune: " .. problem) end
    local anew = again or o.seconds > 0 and not finished(records, true)
    return o.resume and not (anew and finished(records)) and records or {}
end

-- Raises one line if the store cannot take records: before they are measured. One that is not there yet is made.
local function check_store()
    local opened <close>, problem = store.open(store.path())
    if problem then host.note("lookupc tune: " .. problem) end
    return opened
end

-- Merges the log's records into the store. Returns the store's path and how many were new.
local function keep(o)
    local path = store.path()
    local opened <close>, problem = store.open(path)
    if problem then host.note("lookupc tune: " .. problem) end
    local added = opened:merge((log.read(o.log)))
    return path, added
end

-- Makes room for the log of a new run: that of a finished one goes into the store. Raises one line for that of an
-- unfinished one.
local function start_log(o)
    if not host.kind(o.log) then return end
    if not finished((log.read(o.log))) then
        error(
            string.format(
                "%s: is the log of a run that was interrupted: give --resume to go on with it, or remove it",
                o.log
            ),
            0
        )
    end
    keep(o)
    assert(host.remove(o.log))
end

local not_this_log = "%s: is no log of this tuning: %s"

-- Those of `records` that were measured as session `s` would; raises one line if there are others only, or of another
-- question.
local function of_session(s, records, path)
    local known, wanted, reason = {}, key.id(s.key), nil
    for _, r in ipairs(records) do
        if r.cc == s.cc and key.id(r.key) == wanted then
            if
                (r.status == "entered" or r.status == "chosen")
                and (r.batches ~= s.batches_text or r.shard ~= s.shard.text)
            then
                error(
                    string.format(
                        "%s: is of a run with --batch %s and shard %s: go on with these, or write another log",
                        path,
                        r.batches,
                        r.shard
                    ),
                    0
                )
            end
            known[#known + 1] = r
        elseif r.key.isa == s.isa.name and r.cc == s.cc and not reason then
            local _, differing = key.compare(s.key, r.key)
            reason = differing[1] and differing[1].text or "its key differs"
        end
    end
    if #known == 0 and reason then error(string.format(not_this_log, path, reason), 0) end
    return known
end

-- Raises one line if `records`, of the log at `path`, are of none of these sessions: it says what differs least.
local function check_log(list, records, path)
    local reason, fewest = nil, math.huge
    for _, s in ipairs(list) do
        if #s.known > 0 then return end
        local seen = {}
        for _, r in ipairs(records) do
            local name = key.id(r.key) .. " " .. r.cc
            if not seen[name] then
                local level, differing = key.compare(s.key, r.key)
                local count = level and 0 or #differing
                if count < fewest then
                    fewest = count
                    reason = differing[1] and differing[1].text
                        or string.format("--cc differs (%s, not %s)", r.cc, s.cc)
                end
                seen[name] = true
            end
        end
    end
    if reason then error(string.format(not_this_log, path, reason), 0) end
end

-- The session of `run` (see answer_set) for one instruction set with one compiler: see tuning.run.
local function session_of(run, m, family, set, build)
    local o, options = run.o, run.options
    local title = string.format("%s %s%s", m.name, set.name, #o.builds > 1 and " " .. build.label or "")
    local s = session.new {
        model = m,
        family = family,
        isa = set,
        cc = build.cc,
        cflags = build.cflags,
        label = build.label,
        options = options,
        threads = o.threads,
        device = o.device,
        seed = options.seed,
        batches = o.batches,
        files = run.files,
        apart = o.seconds >= least_seconds_apart,
    }
    s.keep = function(r)
        log.append(o.log, r)
        if o.device then o.device.kept = o.log end
    end
    s.shard, s.exhaustive, s.choices = o.shard, options.exhaustive, o.choices
    s.note = function(text) host.note(string.format("tuning %s: %s", title, text)) end
    s.show = progress(title)
    session.name_run(s, of_session(s, run.records, o.log))
    return s
end

-- What the store knows of session `s`: the choice, if it is of this CPU and compiler or, with `any`, of the nearest;
-- and a line about it.
local function answer(s, any)
    local path = store.path()
    if not host.kind(path) then return nil, "there is no store yet, " .. path end
    local opened <close>, problem = store.open(path, true)
    if problem then host.note("lookupc tune: " .. problem) end
    local found, line = stored_schedule.look_up(opened, s.key, s.batches_text)
    if found and not any and (found.level ~= "exact" or #found.missing > 0) then found = nil end
    return found, line
end

-- The results of a shard that an earlier run has finished with every compiler; else nil.
local function finished_shard(sessions)
    local list = {}
    for i, s in ipairs(sessions) do
        list[i] = { session = s, tuned = tuning.finished(s) }
        if not list[i].tuned then return nil end
    end
    return list
end

-- What candidates of session `s` are verified and timed with.
local function packed_of(s, options)
    return s.tuning.prepare(tuning.plan(s, nil), process.temporary_directory(), options)
end

-- What is said if the time is up before the weights are packed: how long that takes by their bytes, or longer, and
-- which time lets candidates be tried as well.
local function too_short(s, o)
    local bytes = tuning.plan(s, nil).packed_bytes
    local seconds = math.max(2 * o.seconds, bytes * seconds_a_packed_byte)
    return string.format(
        "%slookupc: --time: %s: was up while the weights of %s were packed, which takes about %s or more: "
            .. "give --time %s\n",
        process.is_terminal(2) and "\r\27[K" or "",
        budget.text(o.seconds),
        s.model.name,
        budget.text(seconds),
        budget.text(2 * seconds + least_seconds_apart)
    )
end

-- Whether the log has the end of the tuning of every session.
local function all_finished(sessions)
    for _, s in ipairs(sessions) do
        if not finished(s.known) then return false end
    end
    return true
end

-- The result of one instruction set. `run` is what all of them share: path, o (settings), options, records (of the log
-- that goes on), files (packed weights, once there are any), and what harness/tune/instruction_set.lua wants.
local function answer_set(run, sessions)
    local o, options, said = run.o, run.options, nil
    if #run.records == 0 and not options.again and o.shard.n == 1 and not options.exhaustive and not o.choices then
        local found
        found, said = results.from_store(sessions, answer, o.seconds == 0)
        if found then return found end
    end
    if #run.records > 0 and o.shard.n == 1 and all_finished(sessions) then return results.from_log(sessions, o.log) end
    local done = finished_shard(sessions)
    if done then return results.of_shard(done) end
    if o.seconds == 0 and o.shard.n > 1 then
        error(
            string.format(
                "%s: shard %s of %s is not finished, and --time 0 measures nothing",
                o.log,
                o.shard.text,
                sessions[1].isa.name
            ),
            0
        )
    end
    if o.seconds == 0 then return results.default(sessions[1], said) end

    if not run.measured and o.shard.n == 1 then check_store() end
    if not run.measured and #run.records == 0 then start_log(o) end
    if host.kind(o.log) then log.promise(o.log) end
    function run.prepare(left)
        if run.files.output then return end
        host.status("packing the weights of " .. sessions[1].model.name)
        process.deadline(left, too_short(sessions[1], o))
        local packed = packed_of(sessions[1], options)
        process.deadline()
        for name, value in pairs(packed) do
            run.files[name] = value
        end
    end
    local list, result = instruction_set.tune(run, sessions)
    run.measured = true
    process.last_words ""
    return result or results.of_shard(list)
end

-- Says of which instruction sets nothing was decided; `some`: something was of others. Returns the exit status.
local function say_undecided(list, path, some)
    local sets = {}
    for _, found in ipairs(list) do
        local why = results.undecided(found)
        if why then sets[#sets + 1] = string.format("%s (%s)", found.session.isa.name, why) end
    end
    if #sets == 0 then return 0 end
    local file = path and string.format(some and "; %s leaves it out" or "; %s is not written", path) or ""
    host.note("lookupc tune: nothing was decided for " .. table.concat(sets, ", ") .. ": the default stays" .. file)
    return nothing_decided
end

local function print_result(run, m, list)
    local o = run.o
    host.print(table.concat(results.lines(m, list, o), "\n"))
    if run.kept then host.print(string.format("log %s; %d new records in %s", o.log, run.kept.added, run.kept.path)) end
    if o.shard.n > 1 and not run.measured then
        host.print("shard " .. o.shard.text .. " was finished before: nothing measured")
    end
    if o.shard.n > 1 and host.kind(o.log) then
        host.print(
            (run.measured and "wrote " or "log ")
                .. o.log
                .. ": take it with those of the other shards into the store by lookupc tuned merge"
        )
    end
    if o.tuned then
        local target_words = run.options.profile
                and string.format(" --profile firmware --target %s --weights FILE", run.options.target)
            or ""
        local form = "wrote %s: lookupc emit %s%s --tuned %s -o DIR"
        host.print(form:format(o.tuned, run.path, target_words, o.tuned))
    end
end

-- Adds to the options what --profile firmware and --target say; raises one line.
local function set_target(path, m, family, options)
    if not options.target then misuse "--target: is missing: --profile firmware needs it" end
    options.firmware = target.get(options.target)
    if m.layers or not family.firmware then
        misuse(string.format("--profile: firmware: tune is for LookupFFNs, not for %s", path))
    end
    if options.firmware.soft_float then
        misuse(string.format("--target: %s: integers have one schedule: there is nothing to tune", options.target))
    end
end

-- The instruction sets to be tuned.
local function sets_of(m, family, options)
    if options.firmware then return { isa.get(family.firmware.isa(options.firmware, options)) } end
    local sets = runnable.sets(options.isa, family.isa_types(options, m))
    if not options.isa then sets = { sets[#sets] } end
    return machines.sets(sets, runnable.machine(options))
end

function tune.tune(arguments, options)
    local start, path = process.clock(), arguments[1]
    if options.machine then
        if path then misuse("--machine: " .. options.machine .. ": measures models of its own, not " .. path) end
        return tune_machine(options, seconds_of(options.time or "1h"))
    elseif not path then
        misuse "MODEL.lua is missing (see lookupc help tune)"
    end
    local m, family = request.model(path, options)
    local hooks = harness.get(family.name).tuning
    if not hooks then error(path .. ": has no choices: it has one schedule", 0) end
    if options.profile then set_target(path, m, family, options) end
    local o = settings(path, m, family, hooks, options)
    if options.profile or options.runner then
        o.device = (options.profile and board or device).open(options)
        options.device = o.device
    elseif o.seconds > 0 then
        measure.program()
    end
    local _ <close> = o.seconds > 0 and log.hold(o.log) or nil
    local sets = sets_of(m, family, options)
    local run = {
        path = path,
        o = o,
        options = options,
        records = read_log(o, options.again),
        now = process.clock,
        start = start,
        seconds = o.seconds,
        added = 0,
        units = #sets * #o.builds,
        all_units = #sets * #o.builds,
        files = {},
    }
    local by_set, all, list = {}, {}, {}
    for i, set in ipairs(sets) do
        by_set[i] = {}
        for j, build in ipairs(o.builds) do
            by_set[i][j] = session_of(run, m, family, set, build)
            all[#all + 1] = by_set[i][j]
        end
    end
    check_log(all, run.records, o.log)
    for i, sessions in ipairs(by_set) do
        list[i] = answer_set(run, sessions)
        run.units = run.units - #sessions
    end
    host.status ""
    o.logged = run.measured and host.kind(o.log) ~= nil
    local decided, wanted = results.decided(list), o.tuned
    if #decided == 0 then o.tuned = nil end
    if o.tuned then assert(host.write_file(o.tuned, results.tuned_text(m, decided, o))) end
    if o.html then assert(host.write_file(o.html, page.page(m, list, o))) end
    if o.logged and o.shard.n == 1 then -- last: what was measured is not lost if the store cannot be written now
        local store_path, added = keep(o)
        run.kept = { path = store_path, added = added }
    end
    if o.json then
        host.print(assert(json.encode(results.summary(m, list, o))))
    else
        print_result(run, m, list)
    end
    return say_undecided(list, wanted, #decided > 0)
end

return tune
