-- Chosen records of shards and whole runs lead to one choice, in whatever order and how often they come.
local changed = require "tests.support.changed"
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local program = require "tests.support.program"
local record = require "harness.tune.record"
local records = require "tests.support.records"
local schedule = require "gen.families.lookup.schedule"
local store = require "harness.tune.store"
local stored_schedule = require "harness.tune.stored_schedule"
local summary = require "harness.tune.summary"

local test = {}
local folder = program.folder()
local batches = "1,64"

local function text(group, accumulators)
    return string.format("gather.group=%d,few.threshold=8,few.accumulators=%d", group, accumulators or 8)
end

-- A record that says what shard `shard` of the race for many tokens chose; its interval is 1 % wide.
local function chosen(shard, candidate, ratio, changes)
    return record.make(changed({
        key = records.key(),
        cc = "gcc",
        status = "chosen",
        regime = "many",
        candidate = candidate,
        batches = batches,
        shard = shard,
        ratio = ratio,
        low = ratio == 1 and 1 or ratio * 0.995,
        high = ratio == 1 and 1 or ratio * 1.005,
        pairs = 40,
        decided = "winner",
        object_bytes = 2000,
        run = "run " .. shard,
        host = "h1",
        time = 1700000000,
    }, changes))
end

local function entered(shard, field, changes)
    return record.make(changed({
        key = records.key(),
        cc = "gcc",
        status = "entered",
        regime = "many",
        candidate = field[1],
        field = field,
        batches = batches,
        shard = shard,
        run = "run " .. shard,
        host = "h1",
        time = 1700000000,
    }, changes))
end

-- What was chosen for many tokens and what is missing, the same in 50 orders of the records and with all of them twice.
local function chooses(list, wanted)
    local function found(of)
        local got = stored_schedule.of(of, wanted or batches)
        return got
            and {
                candidate = got.races.many and got.races.many.candidate,
                schedule = got.schedule,
                missing = got.missing,
                whole = got.whole,
            }
    end
    local expected, state = found(list), 3
    for _ = 1, 50 do
        local order = table.move(list, 1, #list, #list + 1, table.move(list, 1, #list, 1, {}))
        for i = #order, 2, -1 do
            state = state * 6364136223846793005 + 1442695040888963407
            local j = 1 + (state >> 33) % i
            order[i], order[j] = order[j], order[i]
        end
        check.equal(found(order), expected)
    end
    return expected
end

function test.the_best_shard_is_taken()
    local got = chooses { chosen("1/3", text(8), 1), chosen("2/3", text(4), 0.9), chosen("3/3", text(2), 0.95) }
    check.equal(got, { candidate = text(4), schedule = schedule.parse(text(4)), missing = {} })
end

function test.equal_ones_are_told_apart_by_object_code_then_the_default()
    check.equal(
        chooses({ chosen("1/2", text(4), 0.9), chosen("2/2", text(2), 0.907, { object_bytes = 1900 }) }).candidate,
        text(2)
    )
    check.equal(
        chooses({ chosen("1/2", text(4), 0.9), chosen("2/2", text(2), 0.911, { object_bytes = 1900 }) }).candidate,
        text(4)
    )
    check.equal(chooses({ chosen("1/2", text(8), 1), chosen("2/2", text(2), 0.995) }).candidate, text(8))
    check.equal(chooses({ chosen("1/2", text(8), 1), chosen("2/2", text(2), 0.98) }).candidate, text(2))
    check.equal(chooses({ chosen("1/2", text(4), 0.9), chosen("2/2", text(2), 0.9) }).candidate, text(2))
end

function test.two_hosts_that_raced_one_shard_count_as_it_once()
    local got = chooses {
        chosen("1/2", text(4), 0.9),
        chosen("1/2", text(4), 0.89, { host = "h2" }),
        chosen("2/2", text(2), 0.95),
    }
    check.equal({ got.candidate, got.missing }, { text(4), {} })
end

function test.shards_that_are_missing_are_named()
    local got = chooses { chosen("1/4", text(4), 0.9), chosen("3/4", text(2), 0.95) }
    check.equal({ got.candidate, got.missing }, { text(4), { "many 2/4", "many 4/4" } })
    -- one that was entered and not finished is missing, also if it is the only one of its regime
    got = chooses {
        chosen("1/2", text(4), 0.9),
        chosen("2/2", text(2), 0.95),
        entered("1/2", { text(4) }, { regime = "few" }),
    }
    check.equal(got.missing, { "few 1/2", "few 2/2" })
    -- of several numbers of shards that one of which more is there
    local list = {
        chosen("1/2", text(4), 0.9),
        chosen("1/4", text(2), 0.95),
        chosen("2/4", text(2), 0.95),
        chosen("3/4", text(2), 0.95),
    }
    check.equal(chooses(list).missing, { "many 4/4" })
    list[5] = chosen("2/2", text(8), 1)
    check.equal(chooses(list).missing, {})
end

function test.what_was_too_noisy_says_nothing()
    local noisy =
        { chosen("2/2", text(8), 0.5, { decided = "too noisy" }), chosen("1/2", text(8), 0.5, { decided = "no time" }) }
    check.equal(chooses(noisy), nil)
    local got = chooses { noisy[1], noisy[2], chosen("1/2", text(4), 0.9) }
    check.equal({ got.candidate, got.missing }, { text(4), { "many 2/2, too noisy" } })
end

function test.only_records_for_the_same_batches_count()
    check.equal(chooses({ chosen("1/1", text(4), 0.9) }, "1,64,4096"), nil)
    check.equal(
        chooses({ chosen("1/2", text(4), 0.9), chosen("2/2", text(2), 0.5, { batches = "64" }) }).missing,
        { "many 2/2" }
    )
end

function test.few_and_many_come_from_their_own_races()
    local got = chooses { chosen("1/1", text(4, 1), 0.9), chosen("1/1", text(2, 4), 0.8, { regime = "few" }) }
    check.equal(got.schedule, schedule.parse(text(4, 4)))
end

function test.a_whole_run_beats_shards()
    local whole = chosen("1/1", text(1), 0.97, { regime = "both" })
    local own = chosen("1/1", text(1), 0.98)
    local shards = { chosen("1/4", text(4), 0.5), chosen("2/4", text(2), 0.6) }
    local got = chooses { shards[1], whole, own, shards[2] }
    check.equal(got, { candidate = text(1), schedule = schedule.parse(text(1)), missing = {}, whole = whole })
    check.equal(chooses({ whole, shards[1] }).candidate, nil) -- and is not explained by what others raced
    local newer = chosen("1/1", text(8), 1, { regime = "both", time = 1700000001, run = "again" })
    check.equal(chooses({ newer, whole, own }).whole, newer)
    check.equal(
        chooses({ chosen("1/1", text(1), 0.9, { regime = "both", decided = "too noisy" }), shards[1] }).candidate,
        text(4)
    )
end

-- Through stores, log by log in both orders and as one: the same answer, and in the same words.
function test.logs_of_shards_merge_into_one_answer()
    local logs = {
        { chosen("1/2", text(4), 0.9), entered("1/2", { text(8), text(4) }) },
        { chosen("2/2", text(2), 0.95), entered("2/2", { text(8), text(2) }) },
    }
    local function answer(name, order)
        local opened <close> = store.open(folder .. "/" .. name)
        for _, list in ipairs(order) do
            opened:merge(list)
        end
        local found, line = stored_schedule.look_up(opened, records.key(), batches)
        return { found.schedule, found.level, found.missing, line }
    end
    local all = { logs[1][2], logs[2][1], logs[1][1], logs[2][2], logs[1][2] }
    local expected = answer("a", { logs[1], logs[2] })
    check.equal(
        expected,
        { schedule.parse(text(4)), "exact", {}, "records used: exact, key " .. key.id(records.key()):sub(1, 12) }
    )
    check.equal(answer("b", { logs[2], { logs[1][1] }, logs[1] }), expected)
    check.equal(answer("c", { all }), expected)
end

function test.shards_that_measured_or_decided_nothing_are_named()
    local place = { env = { LOOKUPC_STORE = folder .. "/idle.sqlite" } }
    local words = { "tuned", "merge" }
    local none = { pairs = 0, decided = "no time" }
    for i, list in ipairs {
        { entered("1/3", { text(8), text(4) }), chosen("1/3", text(8), 1, none) },
        {
            records.make { run = "run 2/3" },
            chosen("2/3", text(8), 1, { decided = "too noisy" }),
            chosen("2/3", text(8), 1, changed({ regime = "few" }, none)),
        },
        { records.make { run = "run 3/3" }, chosen("3/3", text(2), 0.9) },
    } do
        words[i + 2] = string.format("%s/shard-%d.jsonl", folder, i)
        assert(host.write_file(words[i + 2], records.text(list)))
    end
    local form = "lookupc tuned: %s: shard %s of avx512 %s nothing for %s tokens: %s\n"
    check.equal(
        program.run(words, place).errors,
        form:format(words[3], "1/3", "measured", "many", "no time")
            .. form:format(words[4], "2/3", "decided", "many", "too noisy")
            .. form:format(words[4], "2/3", "measured", "few", "no time")
    )
    words[#words + 1] = "--json"
    local told = json.decode(program.works(words, place)).undecided
    check.equal({ #told, told[1].log, told[1].shard, told[1].measured, told[2].measured }, {
        3,
        words[3],
        "1/3",
        false,
        true,
    })
end

function test.hosts_that_choose_apart_are_told()
    local function apart(list) return summary.choices_apart(list) end
    local field = { text(8), text(4), text(2) }
    local function race(host_name, candidate, ratio, changes)
        local both = changed({ host = host_name, run = host_name }, changes)
        return chosen("1/2", candidate, ratio, both), entered("1/2", field, { host = host_name, run = host_name })
    end
    local a, a_field = race("h1", text(4), 0.8)
    local b, b_field = race("h2", text(2), 0.9)
    local list = { a, a_field, b, b_field }
    check.equal(apart(list), {
        {
            regime = "many",
            batches = batches,
            shard = "1/2",
            host = "h1",
            best = text(4),
            ratio = 0.8,
            other = "h2",
            other_best = text(2),
            other_ratio = 0.9,
        },
    })
    check.equal(apart { b_field, b, a, a_field, a, b }, apart(list))
    check.equal(apart { a, a_field, b }, {}) -- nobody knows whether h2 has raced what h1 chose
    local tie = race("h2", text(2), 0.9, { decided = "tie" })
    check.equal(apart { a, a_field, tie, b_field }, {})
    -- one choice, but not worth the same
    check.equal(apart { a, (race("h2", text(4), 0.81)) }, {})
    check.equal(#apart { a, (race("h2", text(4), 0.9)) }, 1)
    check.equal(apart { a, (race("h1", text(4), 0.9, { run = "again" })) }, {}) -- one host is no two

    local path = folder .. "/apart.jsonl"
    assert(host.write_file(path, records.text(list)))
    local result = program.run({ "tuned", "merge", path }, { env = { LOOKUPC_STORE = folder .. "/apart.sqlite" } })
    check.equal({ result.status, result.errors }, {
        0,
        string.format(
            "lookupc tuned: key %s: hosts disagree: many, batches 1,64, shard 1/2: host h1 chose %s at 0.800 of the \z
                default's time, host h2 %s at 0.900\n",
            key.id(records.key()):sub(1, 12),
            text(4),
            text(2)
        ),
    })
    local told = json.decode(
        program.works({ "tuned", "merge", path, "--json" }, { env = { LOOKUPC_STORE = folder .. "/apart.sqlite" } })
    ).disagreements
    check.equal({ #told, told[1].shard, told[1].other_best }, { 1, "1/2", text(2) })
    check.matches(
        program.works(
            { "tuned", "show", key.id(records.key()) },
            { env = { LOOKUPC_STORE = folder .. "/apart.sqlite" } }
        ),
        "\nkey %x+: hosts disagree: many, batches 1,64, shard 1/2: "
    )
end

return test
