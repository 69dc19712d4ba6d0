-- A tuning proves candidates before it times them, survives being killed, does not choose wrongly on a busy machine,
-- and remembers.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local process = require "process"
local program = require "tests.support.program"
local record = require "harness.tune.record"
local records = require "tests.support.records"
local schedule = require "gen.families.lookup.schedule"
local store = require "harness.tune.store"

local test = {}
local tiny = "gen/models/tiny.lua"

-- Words of a tuning in a folder of its own with a store and a cache of its own, and what else a test wants.
local function new_place()
    local folder = program.folder()
    return {
        folder = folder,
        log = folder .. "/tuned.jsonl",
        tuned = folder .. "/tuned.lua",
        store = folder .. "/store.sqlite",
        env = { LOOKUPC_STORE = folder .. "/store.sqlite", XDG_CACHE_HOME = program.cache(folder) },
    }
end

local function tune(place, model, ...)
    return program.run({ "tune", model, "-o", place.tuned, ... }, { env = place.env })
end

local function works(place, ...)
    local result = tune(place, ...)
    if result.status ~= 0 then error("lookupc tune: " .. result.errors, 2) end
    return result.output
end

local function statuses(records)
    local counts = {}
    for _, r in ipairs(records) do
        counts[r.status] = (counts[r.status] or 0) + 1
    end
    return counts
end

-- Tunes until there was time to measure and to confirm: others may measure on this machine. Returns what the last run
-- prints; the store has its records alone.
local function until_measured(place, run)
    for _, time in ipairs { "8s", "30s", "90s" } do
        host.remove(place.store)
        host.remove(place.log) -- whose records would go into the store
        local output = run("--again", "--exhaustive", "--time", time)
        local measured = host.kind(place.log) and statuses((log.read(place.log))).ok
        if measured and not output:find("no time was left to confirm", 1, true) then return output end
    end
    error("nothing was measured", 3)
end
local function measures(place, ...)
    local words = { ... }
    local function run(...)
        return works(
            place,
            tiny,
            table.unpack(table.move({ ... }, 1, select("#", ...), #words + 1, { table.unpack(words) }))
        )
    end
    return until_measured(place, run)
end

local function shell(script, ...)
    local result = assert(process.run { "bash", "-c", script, "bash", ... })
    if result.status ~= 0 then error(result.output, 2) end
end

-- A copy of what the program is made of, with a line in front of the one that reads a score and `sign` in front of the
-- score.
local function planted(line, sign)
    local tree, place = program.folder(), "$(i)const $(isa.vector) s$(number) = "
    shell('cp -r commands gen harness templates LICENSE "$1"', tree)
    local path = tree .. "/templates/lookup/shared/gather_strip.c"
    local text = assert(host.read(path))
    local first, last = text:find(place, 1, true)
    if not first or text:find(place, last, true) then error("the line to change is not there once: " .. place) end
    assert(host.write_file(path, text:sub(1, first - 1) .. line .. place .. sign .. text:sub(last + 1)))
    return tree
end
-- What such a line says of the candidates with gather.unroll=2, or =1, which is the default of portable C.
local two, one = "count == 2", "count == 1"

local function in_tree(place, tree, ...)
    local result = program.run({ "--tree", tree, "tune", tiny, "-o", place.tuned, ... }, { env = place.env })
    if result.status ~= 0 then error("lookupc tune: " .. result.errors, 2) end
    return result.output
end

local function choice_of(text, name) return schedule.parse(text)[name] end

function test.a_run_leaves_a_tuned_file_a_log_and_records()
    local place = new_place()
    local output = measures(place, "--batch", "64", "--choices", "gather.vectors")
    check.matches(output, "\n  tokens  default us  tuned us")
    check.matches(output, "\n +64 +%d+%.%d%d ")
    check.matches(output, "wrote " .. place.tuned:gsub("%p", "%%%0"))
    local records, dropped = log.read(place.log)
    for _, name in ipairs { "a", "b" } do
        program.works {
            "emit",
            tiny,
            "--isa",
            records[1].key.isa,
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

-- What has begun ends in time, too: a compiler that hangs is not waited for. Without a measurement there is no log, and
-- nothing says that there is one.
function test.a_run_without_time_ends_and_promises_no_log()
    local place = new_place()
    local cc = place.folder .. "/cc"
    local script = '#!/bin/bash\n[[ $1 != --version ]] && exec sleep 1000\nexec gcc "$@"\n'
    assert(host.write_file(cc, script))
    shell('chmod +x "$1"', cc)
    for _, words in ipairs { { "--time", "1s" }, { "--time", "3s", "--cc", cc } } do
        local result = tune(place, tiny, "--batch", "64", "--choices", "gather.vectors", table.unpack(words))
        check.equal(result.status, 0)
        check.matches(result.errors, ": no time for any candidate; %-%-time %d+[smh] is recommended, for all of them\n")
        check.matches(result.output, "no time: the default is kept; there was no time to try one candidate")
        check.matches(result.output, "wrote " .. place.tuned:gsub("%p", "%%%0"))
        if (result.output .. result.errors):find "jsonl" then error(result.output .. result.errors) end
        check.equal(host.kind(place.log), nil)
    end
    local words = { check.lookupc, "tune", tiny, "-o", place.tuned, "--cc", cc }
    local interrupted = process.run({ "timeout", "-s", "INT", "1", table.unpack(words) }, { env = place.env })
    check.equal(interrupted.output:find("what was measured", 1, true), nil)
    local summary = tune(place, tiny, "--batch", "64", "--time", "1s", "--json")
    check.equal(json.decode(summary.output).log, nil)
end

-- Weights that take longer to pack than the run may take end it in time, with what would be enough.
function test.a_run_ends_while_it_packs()
    local place = new_place()
    local start = process.clock()
    program.refuses(
        1,
        "lookupc: --time: 2s: was up while the weights of mistral_7b_skipless were packed, which takes about ",
        { "tune", "gen/models/mistral_7b_skipless.lua", "-o", place.tuned, "--time", "2s" },
        { env = place.env }
    )
    local seconds = process.clock() - start
    if seconds > 5 then error(string.format("took %.1f seconds", seconds)) end
    check.equal({ host.kind(place.tuned), host.kind(place.log) }, {})
end

function test.a_finished_run_is_measured_again_only_with_again()
    local place = new_place()
    local words = { "--batch", "1", "--choices", "few.tokens" }
    measures(place, table.unpack(words))
    local before = assert(host.read(place.log))
    local output = works(place, tiny, "--resume", table.unpack(words))
    check.matches(output, "from the log of a finished run, nothing measured %(%-%-again measures%): ")
    check.equal(host.read(place.log), before)
    program.refuses(
        1,
        "is of a run with --batch 1 and shard 1/1",
        { "tune", tiny, "-o", place.tuned, "--batch", "2", "--resume" },
        { env = place.env }
    )
    check.equal(host.read(place.log), before)
    -- measured again: the old log goes into the store
    works(place, tiny, "--resume", "--again", "--time", "1s", table.unpack(words))
    check.equal(host.kind(place.log), nil)
end

function test.a_second_run_answers_from_the_store()
    local place = new_place()
    measures(place, "--batch", "1", "--choices", "few.tokens")
    -- what the first run has decided depends on the machine: give it a decision
    local known = log.read(place.log)
    local decided, changed
    for _, r in ipairs(known) do
        if r.status == "chosen" and r.regime == "both" then decided = r end
    end
    decided.decided, decided.check, decided.time = "winner", nil, decided.time + 10
    changed = choice_of(decided.candidate, "few.tokens") == 1 and 2 or 1
    decided.candidate = decided.candidate:gsub("few.tokens=%d+", "few.tokens=" .. changed)
    do
        local opened <close> = store.open(place.store)
        check.equal((opened:merge { record.make(decided) }), 1)
    end
    assert(host.remove(place.log))
    local start = process.clock()
    local output = works(place, tiny, "--batch", "1")
    check.matches(output, "from the store, nothing measured %(%-%-again measures%): records used: exact, key %x+")
    check.equal(host.kind(place.log), nil)
    check.matches(assert(host.read(place.tuned)), '%["few.tokens"%] = ' .. changed .. ",")
    if process.clock() - start > 60 then error("took as long as measuring") end
    -- other batches are another question; without time the default is the answer
    check.matches(
        works(place, tiny, "--batch", "2", "--time", "0"),
        "records used: default; refused: key %x+, has no measurement of this case"
    )
end

function test.a_wrong_candidate_is_rejected_and_never_timed()
    local place = new_place()
    local tree = planted("", "$(" .. two .. ' and "-" or "")')
    until_measured(
        place,
        function(...)
            local words = { "--batch", "4096", "--choices", "gather.unroll", "--isa", "scalar", "--for", "generic" }
            for _, word in ipairs { ... } do
                words[#words + 1] = word
            end
            return in_tree(place, tree, table.unpack(words))
        end
    )
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
        1,
        "schedules, at most 20000: name fewer choices",
        { "tune", tiny, "-o", place.folder .. "/x.lua", "--exhaustive", "--time", "5s" },
        { env = place.env }
    )
end

function test.what_crashes_is_rejected()
    local place = new_place()
    local tree = planted("//$ if " .. two .. " then\n$(i)__builtin_trap();\n//$ end\n", "")
    local words = { "--batch", "4096", "--choices", "gather.unroll", "--isa", "scalar" }
    in_tree(place, tree, "--exhaustive", "--time", "8s", table.unpack(words))
    local found
    for _, r in ipairs((log.read(place.log))) do
        if r.status == "rejected" then found = r.reason end
    end
    check.matches(found, "^verify: many crashed: signal 4")
end

function test.a_default_that_is_wrong_ends_the_tuning()
    local place = new_place()
    local tree = planted("", "-")
    local result = program.run(
        { "--tree", tree, "tune", tiny, "-o", place.tuned, "--time", "5s", "--isa", "scalar", "--batch", "4096" },
        { env = place.env }
    )
    check.equal(result.status, 1)
    check.matches(result.errors, "lookupc: scalar: the default schedule: verify: [^\n]*\n$")
    check.equal(host.kind(place.tuned), nil)
end

function test.a_busy_machine_does_not_lead_to_a_wrong_choice()
    -- the default is several times slower than the others, both cores are busy: the result is another one, or none
    local place = new_place()
    local tree =
        planted("//$ if " .. one .. " then\n$(i)for (volatile int spin = 0; spin < 50; ++spin) {\n$(i)}\n//$ end\n", "")
    local load = assert(process.run {
        "bash",
        "-c",
        [[for i in 1 2; do (exec timeout 100 bash -c 'while :; do :; done') >/dev/null 2>&1 & echo $!; done]],
    })
    local output = in_tree(
        place,
        tree,
        "--time",
        effort.tune_time,
        "--batch",
        "4096",
        "--choices",
        "gather.unroll",
        "--isa",
        "scalar",
        "--json"
    )
    for pid in load.output:gmatch("%d+") do
        process.run { "kill", pid }
    end
    local race = assert(json.decode(output)).sets[1].races[1]
    local decided = race.decided == "winner" or race.decided == "tie"
    if decided then check.equal(choice_of(race.winner, "gather.unroll") ~= 1, true) end
end

function test.a_killed_run_goes_on_from_its_log()
    local place = new_place()
    local words = {
        "tune",
        tiny,
        "-o",
        place.tuned,
        "--time",
        effort.tune_time,
        "--exhaustive",
        "--batch",
        "1,4096",
        "--choices",
        "gather.vectors,few.tokens",
        "--resume",
    }
    local kills = effort.tune_kills
    for i = 1, kills do
        local result = assert(
            process.run(
                { "timeout", "-s", "KILL", tostring(1.5 * i), check.lookupc, table.unpack(words) },
                { env = place.env }
            )
        )
        -- on a fast machine it may be done before the last kills
        check.equal(result.status == 137 or i > 1 and result.status == 0, true)
        if host.kind(place.log) then
            local records, dropped = log.read(place.log)
            if #dropped > 1 then error(log.problem(place.log, dropped)) end
            check.equal(records[1] == nil or records[1].run ~= nil, true)
        end
    end
    local result = program.run(words, { env = place.env })
    check.equal(result.status, 0)
    local records, runs, times = log.read(place.log), {}, {}
    for _, r in ipairs(records) do
        runs[r.run] = true
        if r.status == "ok" then
            local name = table.concat({ r.round, r.place, r.batch, r.codes, r.tables, #r.samples_us }, " ")
            times[name] = (times[name] or 0) + 1
        end
    end
    local rounds = {}
    for name, count in pairs(times) do
        -- Finals count as one: the time that a kill leaves may be for fewer finalists, whose rounds are others.
        if count > 1 then rounds[name:match "^%S+ final %d+" or name:match "^%S+ %S+ %S+"] = true end
    end
    local again = {}
    for name in pairs(rounds) do
        again[#again + 1] = name
    end
    table.sort(again)
    if #again > kills then
        error(table.concat(again, ", ") .. ": were measured again after " .. kills .. " kills")
    end
    local count = 0
    for _ in pairs(runs) do
        count = count + 1
    end
    check.equal(count, 1)
    check.equal(statuses(records).entered, 2)
end

function test.a_log_of_an_unfinished_run_is_not_overwritten()
    local place = new_place()
    local words = { "tune", tiny, "-o", place.tuned, "--batch", "1", "--choices", "few.tokens" }
    process.run({
        "bash",
        "-c",
        '"${@:2}" & until [ -s "$1" ]; do sleep 0.1; done; kill -KILL $!',
        "bash",
        place.log,
        check.lookupc,
        table.unpack(words),
    }, { env = place.env, timeout = 60 })
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
        { "tune", tiny, "-o", place.tuned, "--batch", "2", "--resume" },
        { env = place.env }
    )
    check.equal(host.read(place.log), before)
end

-- A log whose records are of another model, instruction set or compiler is not that of this run, and stays as it is.
function test.a_log_of_another_run_is_refused()
    local place = new_place()
    works(place, tiny, "--isa", "scalar", "--batch", "1", "--time", "0")
    local model = assert(host.read(place.tuned)):match 'model = "(%x+)"'
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
    local place = new_place()
    local function refused(fragment, ...)
        program.refuses(1, fragment, { "tune", tiny, "-o", place.tuned, ... }, { env = place.env })
    end
    refused('--time: "5x": must be a number of seconds, or one with s, m or h', "--time", "5x")
    refused('--batch: "0": must be integers from 1 to 65536', "--batch", "0")
    refused("--batch: 64: is there twice", "--batch", "64,64")
    refused("--choices: gather.grup: unknown choice", "--choices", "gather.grup")
    refused("--choices: few.threshold: is chosen last", "--choices", "few.threshold")
    program.refuses(
        1,
        '--shard: "3/2": must be I/N',
        { "tune", tiny, "--shard", "3/2", "--out", place.folder .. "/x.jsonl" },
        { env = place.env }
    )
    refused('--cc: "gcc,gcc": must be different names', "--cc", "gcc,gcc")
    refused("no-such-compiler: No such file or directory", "--cc", "no-such-compiler")
    refused("--threads: 0: must be an integer from 1", "--threads", "0")
    refused(
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
