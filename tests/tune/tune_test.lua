-- A tuning proves candidates before it times them, survives being killed, does not choose wrongly on a busy machine,
-- and remembers.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local host = require "host"
local json = require "json"
local isa = require "gen.isa.list"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local process = require "process"
local program = require "tests.support.program"
local record = require "harness.tune.record"
local request = require "gen.request.request"
local records = require "tests.support.records"
local schedule = require "gen.families.lookup.schedule"
local session = require "harness.tune.session"
local store = require "harness.tune.store"

local test = {}
local tiny = "gen/models/tiny.lua"

-- Where a tuning has the times that tests/support/measured.lua makes up.
local quiet = program.quiet_tree()

-- The words of such a tuning, of portable C that compiles quickly.
local function words_in(tree, place, words)
    local list = { "--tree", tree, "tune", tiny, "-o", place.tuned, "--isa", "scalar", "--cflags", "-O0" }
    return table.move(words, 1, #words, #list + 1, list)
end

-- `env`, optional: more of the environment.
local function tune_in(tree, place, words, env)
    local all = {}
    for _, list in ipairs { place.env, env or {} } do
        for name, value in pairs(list) do
            all[name] = value
        end
    end
    return program.run(words_in(tree, place, words), { env = all })
end

local function works_in(tree, place, ...)
    local result = tune_in(tree, place, { ... })
    if result.status ~= 0 then error("lookupc tune: " .. result.errors, 2) end
    return result.output
end

local function tune(place, ...)
    return program.run({ "tune", tiny, "-o", place.tuned, ... }, { env = place.env })
end

-- All candidates of some choices, however long they take to compile.
local function measures(place, ...) return works_in(quiet, place, "--exhaustive", "--time", "100s", ...) end

local function statuses(records)
    local counts = {}
    for _, r in ipairs(records) do
        counts[r.status] = (counts[r.status] or 0) + 1
    end
    return counts
end

local function shell(script, ...)
    local result = assert(process.run { "bash", "-c", script, "bash", ... })
    if result.status ~= 0 then error(result.output, 2) end
    return result.output
end

-- A copy of what the program is made of, with a line in front of the one that reads a score and `sign` in front of the
-- score.
local function planted(line, sign)
    local tree, place = program.quiet_tree(), "const $(isa.vector) s$(number) = "
    local path = tree .. "/templates/lookup/shared/gather_strip.c"
    local text = assert(host.read(path))
    local first, last = text:find(place, 1, true)
    if not first or text:find(place, last, true) then error("the line to change is not there once: " .. place) end
    assert(host.write_file(path, text:sub(1, first - 1) .. line .. place .. sign .. text:sub(last + 1)))
    return tree
end
-- What such a line says of the candidates with gather.unroll=2.
local two = "count == 2"

local function choice_of(text, name) return schedule.parse(text)[name] end

function test.a_run_leaves_a_tuned_file_a_log_and_records()
    local place = program.tuning_place()
    local output = measures(place, "--batch", "64", "--choices", "gather.accumulators")
    check.matches(output, "\n  tokens  default us  tuned us")
    check.matches(output, "\n +64 +%d+%.%d%d ")
    check.matches(output, "wrote " .. place.tuned:gsub("%p", "%%%0"))
    local records, dropped = log.read(place.log)
    for _, name in ipairs { "a", "b" } do
        program.works {
            "emit",
            tiny,
            "--isa",
            "scalar",
            "--tuned",
            place.tuned,
            "-o",
            place.folder .. "/" .. name,
        }
    end
    shell('diff -r "$1/a" "$1/b"', place.folder)
    program.works { "check", place.folder .. "/a" }
    check.equal(dropped, {})
    local counts = statuses(records)
    check.equal({ counts.entered, counts.chosen, counts.ok > 0 }, { 1, 2, true })
    local opened <close> = store.open(place.store)
    check.equal(opened:keys()[1].count, #records)
end

-- The same with times that are measured, which may decide nothing on a busy machine: then no tuned file is written.
function test.a_measured_run_ends_with_a_tuned_file_or_with_its_own_status()
    local place = program.tuning_place()
    local result = tune(place, "--time", "4s", "--batch", "64", "--choices", "gather.unroll", "--isa", "scalar")
    check.equal(result.status == 0 or result.status == 3, true)
    check.equal(host.kind(place.tuned) ~= nil, result.status == 0)
    check.equal(result.errors:find("nothing was decided", 1, true) ~= nil, result.status == 3)
    for _, r in ipairs(host.kind(place.log) and log.read(place.log) or {}) do
        for _, us in ipairs(r.samples_us or {}) do
            check.equal(us > 0, true)
        end
    end
end

-- What has begun ends in time, too: a compiler that hangs is not waited for. Without a measurement there is no log, and
-- nothing says that there is one, or looks tuned.
function test.a_run_without_time_ends_with_its_own_status_and_writes_nothing()
    local place = program.tuning_place()
    local cc = place.folder .. "/cc"
    local script = '#!/bin/bash\n[[ $1 != --version ]] && exec sleep 1000\nexec gcc "$@"\n'
    assert(host.write_file(cc, script))
    shell('chmod +x "$1"', cc)
    assert(host.write_file(place.tuned, "before"))
    for _, words in ipairs { { "--time", "1s" }, { "--time", "2s", "--cc", cc } } do
        local result = tune(place, "--batch", "64", "--choices", "gather.accumulators", table.unpack(words))
        check.equal(result.status, 3)
        check.matches(result.errors, ": no time for any candidate; %-%-time %d+[smh] is recommended, for all of them\n")
        check.matches(
            result.errors,
            "\nlookupc tune: nothing was decided for %w+ %(many tokens: no time%): the default stays; [^\n]* is not \z
                written\n$"
        )
        check.matches(result.output, "no time: the default is kept; there was no time to try one candidate")
        for _, words_of_tuned in ipairs { "jsonl", "wrote", "1.000", "winner" } do
            if (result.output .. result.errors):find(words_of_tuned, 1, true) then
                error(result.output .. result.errors)
            end
        end
        check.equal({ host.kind(place.log), host.read(place.tuned) }, { nil, "before" })
    end
    local words = { check.lookupc, "tune", tiny, "-o", place.tuned, "--cc", cc }
    local interrupted = process.run({ "timeout", "-s", "INT", "1", table.unpack(words) }, { env = place.env })
    check.equal(interrupted.output:find("what was measured", 1, true), nil)
    local page = place.folder .. "/page.html"
    local summary = tune(place, "--batch", "64", "--time", "1s", "--html", page, "--json")
    local data = json.decode(summary.output)
    local race = data.sets[1].races[1]
    check.equal({ summary.status, data.log, data.tuned }, { 3 })
    check.equal(data.sets[1].undecided, "many tokens: no time")
    check.equal({ race.decided, race.winner, race.ratio, race.low, race.high }, { "no time" })
    local text = assert(host.read(page))
    check.matches(text, "<h1>tiny: nothing decided on .*<p>Nothing was decided %(many tokens: no time%)")
    -- where the store knows nothing
    local asked = tune(place, "--batch", "64", "--time", "0")
    check.equal({ asked.status, host.read(place.tuned) }, { 3, "before" })
    check.matches(asked.errors, "^lookupc tune: nothing was decided for %w+ %(no measurement decides it%)")
end

-- Weights that take longer to pack than the run may take end it in time, with what would be enough. On a busy machine
-- too little may be left to begin.
function test.a_run_ends_while_it_packs()
    local place, seconds = program.tuning_place(), 1
    local result
    repeat
        seconds = 2 * seconds
        local words = { "tune", "gen/models/mistral_7b_skipless.lua", "-o", place.tuned, "--time", seconds .. "s" }
        result = program.run(words, { env = place.env })
    until result.status ~= 3 or seconds >= 16
    check.equal({ result.status, result.output }, { 1, "" })
    local line = "^lookupc: %-%-time: " .. seconds .. "s: was up while the weights of mistral_7b_skipless were packed, "
    check.matches(result.errors, line .. "which takes about [^\n]*: give %-%-time %d+[smh]\n$")
    check.equal({ host.kind(place.tuned), host.kind(place.log) }, {})
end

function test.a_finished_run_is_measured_again_only_with_again()
    local place = program.tuning_place()
    local words = { "--batch", "1", "--choices", "few.group" }
    measures(place, table.unpack(words))
    local before = assert(host.read(place.log))
    local output = works_in(quiet, place, "--resume", table.unpack(words))
    check.matches(output, "from the log of a finished run, nothing measured %(%-%-again measures%): ")
    check.equal(host.read(place.log), before)
    program.refuses(
        1,
        "is of a run with --batch 1 and shard 1/1",
        words_in(quiet, place, { "--batch", "2", "--resume" }),
        { env = place.env }
    )
    check.equal(host.read(place.log), before)
    -- measured again: the old log goes into the store
    tune_in(quiet, place, { "--resume", "--again", "--time", "1s", table.unpack(words) })
    check.equal(host.kind(place.log), nil)
end

function test.a_finished_run_that_decided_nothing_is_measured_again()
    local place = program.tuning_place()
    local words = { "--exhaustive", "--time", "100s", "--batch", "1", "--choices", "few.group", "--resume" }
    works_in(quiet, place, table.unpack(words))
    local known = log.read(place.log)
    for i, r in ipairs(known) do
        if r.status == "chosen" then
            r.decided = "too noisy"
            known[i] = record.make(r)
        end
    end
    assert(host.write_file(place.log, records.text(known)))
    check.matches(works_in(quiet, place, table.unpack(words)), "few.group %d %-> %d.*wrote ")
    check.matches(works_in(quiet, place, table.unpack(words)), "from the log of a finished run, nothing measured")
end

function test.a_second_run_answers_from_the_store()
    local place = program.tuning_place()
    measures(place, "--batch", "1", "--choices", "few.group")
    -- another decision than that of the first run
    local known = log.read(place.log)
    local decided, changed
    for _, r in ipairs(known) do
        if r.status == "chosen" and r.regime == "both" then decided = r end
    end
    decided.decided, decided.check, decided.time = "winner", nil, decided.time + 10
    changed = choice_of(decided.candidate, "few.group") == 1 and 2 or 1
    decided.candidate = decided.candidate:gsub("few.group=%d+", "few.group=" .. changed)
    do
        local opened <close> = store.open(place.store)
        check.equal((opened:merge { record.make(decided) }), 1)
    end
    assert(host.remove(place.log))
    local output = works_in(quiet, place, "--batch", "1")
    check.matches(output, "from the store, nothing measured %(%-%-again measures%): records used: exact, key %x+")
    check.equal(host.kind(place.log), nil)
    check.matches(assert(host.read(place.tuned)), '%["few.group"%] = ' .. changed .. ",")
    -- so does a store that can only be read, also while there is no file of its lock
    local lock = place.store .. ".lock"
    for _, removed in ipairs { "", lock } do
        local said = shell(
            [[
            unshare -m true 2> /dev/null || { echo "skipped: no file system can be mounted here"; exit; }
            unshare -m bash -ec '
                test -z "$0" || rm "$0"
                mount --bind "$1" "$1"; mount -o remount,ro,bind "$1" "$1"
                export LOOKUPC_STORE=$2; "$3" tuned list; "$3" tuned prune --older 0 || true
                shift 3; "$@"' "$@" 2>&1]],
            removed,
            place.store:match "^(.*)/",
            place.store,
            check.lookupc,
            check.lookupc,
            table.unpack(words_in(quiet, { tuned = program.folder() .. "/t.lua" }, { "--batch", "1", "--time", "0" }))
        )
        if said:find "^skipped" then
            host.note(said)
        else
            check.matches(said, "^.*tiny.*\nlookupc: [^\n]*: Read%-only file system\n.*records used: exact, key %x+.*$")
        end
    end
    -- other batches are another question; without time the default is the answer
    check.matches(
        tune_in(quiet, place, { "--batch", "2", "--time", "0" }).output,
        "records used: default; refused: key %x+, has no measurement of this case"
    )
end

function test.a_wrong_candidate_is_rejected_and_never_timed()
    local place = program.tuning_place()
    local tree = planted("", "$(" .. two .. ' and "-" or "")')
    local words = { "--batch", "4096", "--choices", "gather.unroll", "--for", "generic" }
    works_in(tree, place, "--exhaustive", "--time", "100s", table.unpack(words))
    local records, wrong, timed = log.read(place.log), 0, 0
    for _, r in ipairs(records) do
        local planted_error = choice_of(r.candidate, "gather.unroll") == 2
        if r.status == "rejected" then
            check.equal(planted_error, true)
            check.matches(r.reason, "^verify: many [%w_ ]+: ")
            wrong = wrong + 1
        elseif r.status == "ok" then
            check.equal(planted_error, false)
            timed = timed + 1
        elseif r.status == "chosen" then
            check.equal(planted_error, false)
        end
    end
    check.equal(wrong, 1)
    if timed == 0 then error("no other candidate was timed") end
    -- --exhaustive races every schedule of the space that is right
    local field
    for _, r in ipairs(records) do
        if r.status == "entered" then field = r.field end
    end
    check.equal(#field + wrong, 3)
    program.refuses(
        2,
        "schedules, at most 20000: name fewer choices",
        { "tune", tiny, "-o", place.folder .. "/x.lua", "--exhaustive", "--time", "5s" },
        { env = place.env }
    )
end

function test.what_crashes_is_rejected()
    local place = program.tuning_place()
    local tree = planted("__builtin_trap(); //$ if " .. two .. "\n", "")
    local words = { "--batch", "4096", "--choices", "gather.unroll" }
    works_in(tree, place, "--exhaustive", "--time", "100s", table.unpack(words))
    local found
    for _, r in ipairs((log.read(place.log))) do
        if r.status == "rejected" then found = r.reason end
    end
    check.matches(found, "^verify: many crashed: signal 4")
end

function test.a_default_that_is_wrong_ends_the_tuning()
    local place = program.tuning_place()
    local tree = planted("", "-")
    local result = tune_in(tree, place, { "--time", "100s", "--batch", "4096" })
    check.equal(result.status, 1)
    check.matches(result.errors, "lookupc: scalar: the default schedule: verify: [^\n]*\n$")
    check.equal(host.kind(place.tuned), nil)
end

-- By how much other work slowed samples of one candidate, in the order in which they were taken (Zen 3, two cores, a
-- load of six).
local load = "1.18 1.15 1.63 1.35 1.49 1.15 1.28 1.02 1.07 1.12 1.06 1.18 1.00 1.04 1.14 1.01 1.04 1.18 1.20 1.18 \z
    1.24 1.17 1.02 1.12 1.08 1.06 1.03 1.14 1.18 1.10 1.15 1.11 1.28 1.60 1.13 1.13 1.17 1.19 1.11 1.19 \z
    1.21 1.22 1.30 1.20 1.10 1.40 1.38 1.71 1.58 1.47 1.37 1.26 1.02 1.12 1.18 1.04 1.03 1.01 1.02 1.04 \z
    1.00"

-- The default takes three times as long as the others.
function test.a_busy_machine_does_not_lead_to_a_wrong_choice()
    local place = program.tuning_place()
    local words = { "--exhaustive", "--time", "100s", "--batch", "4096", "--choices", "gather.unroll", "--json" }
    local result = tune_in(quiet, place, words, { LOOKUPC_TEST_LOAD = load, LOOKUPC_TEST_DEFAULT_US = "27" })
    local race = assert(json.decode(result.output)).sets[1].races[1]
    check.equal(result.status, 0)
    check.equal(choice_of(race.winner, "gather.unroll") ~= 1 and race.high < 0.5, true)
end

-- Killed after so many records, also between those of one round.
function test.a_killed_run_goes_on_from_its_log()
    local place = program.tuning_place()
    local words = { "--time", "100s", "--exhaustive", "--batch", "1,4096" }
    for _, word in ipairs { "--choices", "gather.accumulators,few.group", "--resume" } do
        words[#words + 1] = word
    end
    local kills, before = { 1, 20, 33 }, ""
    for _, count in ipairs(kills) do
        check.equal(tune_in(quiet, place, words, { LOOKUPC_TEST_RECORDS = tostring(count) }).status, 137)
        local now = assert(host.read(place.log))
        check.equal({ now:sub(1, #before) == before, #now > #before }, { true, true })
        before = now
    end
    local result = tune_in(quiet, place, words)
    check.equal({ result.status, result.errors:find("dropped", 1, true) }, { 0, nil })
    local records, runs, times = log.read(place.log), {}, {}
    for _, r in ipairs(records) do
        runs[#runs + 1] = r.run ~= records[1].run and r.run or nil
        if r.status == "ok" then
            local name = r.regime .. " " .. r.round
            times[name] = times[name] or {}
            times[name][#times[name] + 1] = table.concat({ r.place, r.batch, r.codes, r.tables }, " ")
        end
    end
    -- a round that a kill has halved is measured again, no other
    local again = 0
    for name, list in pairs(times) do
        local seen, twice = {}, false
        for _, place_of in ipairs(list) do
            twice, seen[place_of] = twice or seen[place_of], true
        end
        again = again + (twice and 1 or 0)
        if again > #kills then error(name .. ": was measured again") end
    end
    check.equal({ runs, statuses(records).entered }, { {}, 2 })
end

function test.a_log_of_an_unfinished_run_is_not_overwritten()
    local place = program.tuning_place()
    local words = { "--batch", "1", "--choices", "few.group" }
    check.equal(tune_in(quiet, place, words, { LOOKUPC_TEST_RECORDS = "1" }).status, 137)
    words = words_in(quiet, place, words)
    local before = assert(host.read(place.log))
    program.refuses(
        1,
        "is the log of a run that was interrupted: give --resume to go on with it, or remove it",
        words,
        { env = place.env }
    )
    program.refuses(
        1,
        "is of a run with --batch 1 and shard 1/1: go on with these, or write another log",
        words_in(quiet, place, { "--batch", "2", "--resume" }),
        { env = place.env }
    )
    check.equal(host.read(place.log), before)
end

-- Of two runs with one log the second one is refused, whatever it would do with it; and no two runs have one name.
function test.a_log_in_use_is_refused()
    local place = program.tuning_place()
    do
        local _ <close> = log.hold(place.log)
        for _, more in ipairs { "--again", "--resume" } do
            local words = words_in(quiet, place, { "--batch", "1", "--time", "9s", more })
            program.refuses(1, place.log .. ": is in use by another process", words, { env = place.env })
        end
    end
    check.equal({ host.kind(place.log), host.kind(place.log .. ".lock") }, {})
    local s = { host = "h" }
    session.name_run(s, {})
    check.matches(s.run, "^h%-%d+%-" .. process.id() .. "$")
end

-- A log whose records are of another model, instruction set or compiler is not that of this run, and stays as it is.
function test.a_log_of_another_run_is_refused()
    local place = program.tuning_place()
    local model = request.plan(tiny, isa.select "scalar", {}).digest
    local function key_with(changes)
        local what = { model = model, tables = "f32", projection = "f32", isa = "scalar", threads = 1, flags = "-O2" }
        what.compiler = compilers.version "gcc"
        for name, value in pairs(changes) do
            what[name] = value
        end
        return key.here(what)
    end
    local function refused(fragment, changes, ...)
        local made = records.make { key = key_with(changes), cc = "gcc" }
        assert(host.write_file(place.log, record.line(made) .. "\n"))
        assert(host.write_file(place.tuned, "before"))
        program.refuses(
            1,
            place.log .. ": is no log of this tuning: " .. fragment,
            { "tune", tiny, "-o", place.tuned, "--batch", "1", "--time", "1s", "--resume", ... },
            { env = place.env }
        )
        check.equal(host.read(place.log), record.line(made) .. "\n")
        check.equal(host.read(place.tuned), "before")
    end
    local other = ("0"):rep(64)
    refused("model differs (", { model = other }, "--isa", "scalar")
    refused("model differs (", { model = other, isa = "sse4" }, "--isa", "scalar")
    refused("model differs (", { model = other, isa = "sve" })
    refused("isa differs (sse4, not scalar)", { isa = "sse4" }, "--isa", "scalar")
    refused("flags differs (-O2, not -", { compiler = "clang other 1" }, "--isa", "scalar")
end

function test.bad_options_are_one_line()
    local place = program.tuning_place()
    local function fails(status, fragment, ...)
        program.refuses(status, fragment, { "tune", tiny, "-o", place.tuned, ... }, { env = place.env })
    end
    local function refused(...) fails(2, ...) end
    refused('--time: "5x": must be a number of seconds, or one with s, m or h', "--time", "5x")
    refused('--batch: "0": must be integers from 1 to 65536', "--batch", "0")
    refused("--batch: 64: is there twice", "--batch", "64,64")
    refused("--choices: gather.grup: unknown choice", "--choices", "gather.grup")
    refused("--choices: few.threshold: is chosen last", "--choices", "few.threshold")
    program.refuses(
        2,
        '--shard: "3/2": must be I/N',
        { "tune", tiny, "--shard", "3/2", "--out", place.folder .. "/x.jsonl" },
        { env = place.env }
    )
    refused('--cc: "gcc,gcc": must be different names', "--cc", "gcc,gcc")
    fails(1, "no-such-compiler: No such file or directory", "--cc", "no-such-compiler")
    refused("--threads: 0: must be an integer from 1", "--threads", "0")
    fails(
        1,
        '--html: "' .. place.folder .. '/none/x.html": there is no folder',
        "--html",
        place.folder .. "/none/x.html"
    )
    program.refuses(
        1,
        "there is no folder",
        { "tune", tiny, "-o", place.folder .. "/none/tuned.lua" },
        { env = place.env }
    )
    program.refuses(1, "is the input", { "tune", tiny, "-o", tiny }, { env = place.env })
    check.equal(host.kind(place.log), nil)
end

return test
