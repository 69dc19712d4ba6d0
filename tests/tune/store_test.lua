-- The local store keeps every record once, whatever the order, survives damage and crowds, and finds the nearest
-- records with reasons.
local check = require "tests.support.check"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local process = require "process"
local program = require "tests.support.program"
local record = require "harness.tune.record"
local records = require "tests.support.records"
local sqlite = require "store"
local store = require "harness.tune.store"
local summary = require "harness.tune.summary"

local test = {}
local folder = program.folder()
local paths = 0

local function new_path()
    paths = paths + 1
    return folder .. "/" .. paths .. ".sqlite"
end

-- Opens the store at `path`, gives it to `work`, closes it. Returns what `work` returns, then the line about damage.
local function with_store(path, work)
    local opened, problem = store.open(path)
    local result = table.pack(pcall(work or function() end, opened))
    opened:close()
    if not result[1] then error(result[2], 0) end
    return result[2], problem
end

local function all(opened)
    local list = {}
    for _, row in ipairs(opened:keys()) do
        table.move(opened:records(row.id), 1, row.count, #list + 1, list)
    end
    return list
end

local function filled(list)
    local path = new_path()
    with_store(path, function(opened) opened:merge(list) end)
    return path
end

local function shell(script, ...)
    local words = { "bash", "-c", script, "bash", ... }
    return assert(process.run(words, { timeout = 100 }))
end

local function log_file(list)
    paths = paths + 1
    local path = folder .. "/" .. paths .. ".jsonl"
    assert(host.write_file(path, records.text(list)))
    return path
end

-- Runs lookupc with a store.
local function tuned(path, ...) return program.works({ "tuned", ... }, { env = { LOOKUPC_STORE = path } }) end
local function run(path, ...) return program.run({ "tuned", ... }, { env = { LOOKUPC_STORE = path } }) end
local function refuses(path, status, fragment, ...)
    program.refuses(status, fragment, { "tuned", ... }, { env = { LOOKUPC_STORE = path } })
end

-- Calls `work` with every order of `list`.
local function permutations(list, work, n)
    n = n or #list
    if n <= 1 then return work(list) end
    for i = 1, n do
        list[i], list[n] = list[n], list[i]
        permutations(list, work, n - 1)
        list[i], list[n] = list[n], list[i]
    end
end

function test.what_is_merged_is_there_once()
    local list = records.many(30)
    list[31] = records.rejected "compile: exit status 1"
    local path = new_path()
    check.equal(with_store(path, function(opened) return (opened:merge(list)) end), 31)
    check.equal(with_store(path, function(opened) return (opened:merge(list)) end), 0)
    local read = with_store(path, all)
    check.equal(#read, 31)
    local by_check = {}
    for _, r in ipairs(list) do
        by_check[r.check] = r
    end
    for _, r in ipairs(read) do
        check.equal(r, by_check[r.check])
    end
    local row = with_store(path, function(opened) return opened:keys() end)[1]
    check.equal(
        { row.id, row.count, row.first, row.last, row.key },
        { key.id(records.key()), 31, 1700000000, 1700000030, records.key() }
    )
end

-- Five logs that overlap, in any order: one export, one list.
function test.the_order_of_merging_does_not_matter()
    local list, logs = records.many(12), {}
    for i, r in ipairs(records.many(6, { host = "host2", run = "run2" })) do
        list[12 + i] = r
    end
    for i = 1, 5 do
        logs[i] = table.move(list, 3 * i - 2, math.min(18, 3 * i + 3), 1, {})
    end
    local expected
    local number = 0
    permutations({ 1, 2, 3, 4, 5 }, function(order)
        number = number + 1
        if number % 5 ~= 0 and not effort.full "orders" then return end
        local path = new_path()
        local text = with_store(path, function(opened)
            for _, i in ipairs(order) do
                opened:merge(logs[i])
            end
            return records.text(all(opened)) .. json.encode(summary.cases(all(opened)))
        end)
        expected = expected or text
        check.equal(text, expected)
        for _, suffix in ipairs { "", ".lock" } do
            host.remove(path .. suffix)
        end
    end)
    local files = {}
    for i, log in ipairs(logs) do
        files[i] = log_file(log)
    end
    local a, b, id = new_path(), new_path(), key.id(records.key())
    check.equal(run(a, "merge", files[1], files[2], files[3], files[4], files[5]).status, 0)
    for i = 5, 1, -1 do
        check.equal(run(b, "merge", files[i]).status, 0)
    end
    check.equal((tuned(a, "list"):gsub(a:gsub("%p", "%%%0"), "")), (tuned(b, "list"):gsub(b:gsub("%p", "%%%0"), "")))
    check.equal(tuned(a, "show", id:sub(1, 8)), tuned(b, "show", id:sub(1, 8)))
    tuned(a, "export", id:sub(1, 8), "-o", folder .. "/a.jsonl")
    tuned(b, "export", id, "-o", folder .. "/b.jsonl")
    check.equal(host.read(folder .. "/a.jsonl"), host.read(folder .. "/b.jsonl"))
    -- and an export is a log
    local c = new_path()
    check.matches(run(c, "merge", folder .. "/a.jsonl").output, "^merged 18 records of 1 log: 18 new; 18 records in ")
    check.matches(
        run(c, "merge", folder .. "/a.jsonl", folder .. "/b.jsonl").output,
        "^merged 36 records of 2 logs: 0 new; 18 records in "
    )
end

function test.where_the_store_is()
    local own, data, home = folder .. "/own.sqlite", folder .. "/data", folder .. "/home"
    local function says(env, path)
        check.equal(json.decode(program.works({ "tuned", "list", "--json" }, { env = env })).store, path)
    end
    says({ LOOKUPC_STORE = own, XDG_DATA_HOME = data, HOME = home }, own)
    says({ LOOKUPC_STORE = "", XDG_DATA_HOME = data, HOME = home }, data .. "/lookupc/tuned.sqlite")
    says({ LOOKUPC_STORE = "", XDG_DATA_HOME = "relative", HOME = home }, home .. "/.local/share/lookupc/tuned.sqlite")
    says({ LOOKUPC_STORE = "", XDG_DATA_HOME = "", HOME = home }, home .. "/.local/share/lookupc/tuned.sqlite")
    program.refuses(
        1,
        "there is no place for the store",
        { "tuned", "list" },
        { env = { LOOKUPC_STORE = "", XDG_DATA_HOME = "", HOME = "" } }
    )
    check.equal(host.kind(data), nil) -- reading makes nothing
    program.works(
        { "tuned", "merge", log_file(records.many(2)) },
        { env = { LOOKUPC_STORE = "", XDG_DATA_HOME = data } }
    )
    check.equal(host.list(data .. "/lookupc"), { "tuned.sqlite", "tuned.sqlite.lock" })
end

function test.what_is_no_store_is_refused_and_left_alone()
    local text, foreign, newer = folder .. "/letter.txt", new_path(), new_path()
    assert(host.write_file(text, "Dear reader\n"))
    shell(
        'python3 -c "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(\'CREATE TABLE letters \z
            (text)\'); db.commit()" "$1"',
        foreign
    )
    with_store(newer)
    do
        local db <close> = assert(sqlite.open(newer))
        for _, sql in ipairs { "PRAGMA application_id = " .. 0x6c6b7000 + 7, "PRAGMA user_version = 7" } do
            assert(db:query(sql))
        end
    end
    for path, fragment in pairs {
        [text] = text .. ": is no store of lookupc",
        [foreign] = foreign .. ": is no store of lookupc",
        [newer] = newer .. ": is a store of version 7: this lookupc reads version 1",
        [folder] = folder .. ": is a directory",
    } do
        local before = host.read(path)
        refuses(path, 1, fragment, "list")
        refuses(path, 1, fragment, "merge", log_file(records.many(1)))
        check.equal(host.read(path), before)
        check.equal(host.kind(path .. ".damaged-1"), nil)
    end
    check.fails_with("/dev/null/x: Not a directory", store.open, "/dev/null/x/tuned.sqlite")
end

-- Every damage leaves the store usable, with all records but those that were hit, and says so in one line.
local function recovers(path, damaged, list, least)
    for _, suffix in ipairs { "", "-wal", "-shm" } do
        host.remove(path .. suffix)
    end
    assert(host.write_file(path, damaged))
    local read, problem = with_store(path, all)
    local by_check = {}
    for _, r in ipairs(list) do
        by_check[r.check] = r
    end
    for _, r in ipairs(read) do
        check.equal(r, by_check[r.check])
    end
    if problem then
        check.matches(
            problem,
            "^"
                .. path:gsub("%p", "%%%0")
                .. ": is damaged %(.*%): moved to [^\n]*%.damaged%-1, "
                .. #read
                .. " records? recovered$"
        )
        check.equal(host.read(path .. ".damaged-1"), damaged)
        host.remove(path .. ".damaged-1")
    end
    if #read < least then error(#read .. " of " .. #list .. " records left; " .. tostring(problem), 2) end
    -- what was lost comes back with the logs
    check.equal(
        with_store(path, function(opened)
            opened:merge(list)
            return #all(opened)
        end),
        #list
    )
    local _, again = with_store(path)
    check.equal(again, nil)
    return problem, #read
end

function test.a_bit_flipped_store_is_rebuilt_from_whole_records()
    local list = records.many(60)
    local bytes = assert(host.read(filled(list)))
    local path, said, lost, state = new_path(), 0, 0, 7
    local step = effort.full "damage" and 1 or 7
    local function flip(index, bit)
        local problem, read = recovers(path, records.flipped(bytes, index, bit), list, #list - 1)
        if problem then said = said + 1 end
        if read < #list then
            lost = lost + 1
            check.equal(problem ~= nil, true)
        end
    end
    for index = 1, 130, step do
        flip(index, index % 8)
    end -- header and the first page's cells
    local places = {}
    for at in bytes:gmatch('(){"batch"') do
        places[#places + 1] = at
    end
    for i = 1, 20 do
        flip(places[3 * i] + 31 * i, i % 8)
    end
    for _ = 1, 60 // step do
        state = (state * 6364136223846793005 + 1442695040888963407)
        flip(1 + (state >> 33) % #bytes, (state >> 20) % 8)
    end
    check.equal({ lost >= 20, said > lost }, { true, true })
end

function test.a_truncated_store_is_rebuilt_from_whole_records()
    local list = records.many(60)
    local bytes = assert(host.read(filled(list)))
    local path = new_path()
    local places = {}
    for at in bytes:gmatch('(){"batch"') do
        places[#places + 1] = at
    end
    for _, length in ipairs { 0, 50, 1000, 65536, places[20], places[40] + 100, #bytes - 65536, #bytes - 1 } do
        local whole = record.find(bytes:sub(1, length))
        local problem, read = recovers(path, bytes:sub(1, length), list, #whole)
        check.equal(read, #whole)
        check.equal(problem ~= nil, length > 0)
    end
    local blank = bytes:sub(1, 65536):gsub("[^\0]", "\0") -- the first page zeroed
    recovers(path, blank .. bytes:sub(65537), list, 60)
end

function test.damage_is_told_by_the_command_that_meets_it()
    local list = records.many(10)
    local path = filled(list)
    local bytes = host.read(path)
    assert(host.write_file(path, records.flipped(bytes, bytes:find('"batch":4096', 1, true) + 9, 0)))
    local result = run(path, "list")
    check.equal(result.status, 0)
    check.matches(
        result.errors,
        "^lookupc tuned: [^\n]*: is damaged %(a record does not match its check%): moved to [^\n]*%.damaged%-1, 9 \z
            records recovered\n$"
    )
    check.matches(result.output, "\n9 records of 1 key in ")
    check.equal(run(path, "list").errors, "")
end

-- Many merge at once into a store that is not there yet.
function test.writers_at_once()
    local path, words = new_path(), {}
    for i = 1, 8 do
        local list = records.many(40, { run = "run" .. i // 2 }) -- two of each run bring the same records
        words[i] = log_file(list)
    end
    local expected = 5 * 40
    local result = shell(
        [[store=$1 program=$2; shift 2; for log; do LOOKUPC_STORE=$store "$program" tuned merge "$log" & done; wait]],
        path,
        check.lookupc,
        table.unpack(words)
    )
    local _, count = result.output:gsub("merged 40 records of 1 log: %d+ new; [^\n]*\n", "")
    check.equal({ count, (result.output:gsub("merged 40 records of 1 log: %d+ new; [^\n]*\n", "")) }, { 8, "" })
    check.equal(with_store(path, function(opened) return #all(opened) end), expected)
end

-- Many find the same damage at once: it is repaired once.
function test.repair_at_once()
    local list = records.many(20)
    local path = filled(list)
    local bytes = host.read(path)
    assert(host.write_file(path, records.flipped(bytes, bytes:find('"batch":4096', 1, true) + 9, 0)))
    local result =
        shell([[for i in 1 2 3 4 5 6; do LOOKUPC_STORE=$1 "$2" tuned list & done; wait]], path, check.lookupc)
    local _, repairs = result.output:gsub("is damaged", "")
    local _, lists = result.output:gsub("19 records of 1 key in", "")
    check.equal({ repairs, lists, host.kind(path .. ".damaged-2") }, { 1, 6, nil })
end

-- kill -9 during merges: the store stays whole, and each merge is there or not at all.
function test.a_killed_merge_leaves_the_store_whole()
    local path, logs = new_path(), {}
    for i = 1, 10 do
        logs[i] = log_file(records.many(100, { run = "run" .. i }))
    end
    local killed = 0
    for i, log in ipairs(logs) do
        local result = process.run(
            { check.lookupc, "tuned", "merge", log },
            { env = { LOOKUPC_STORE = path }, timeout = 0.006 * i }
        )
        if result.signal == 9 then killed = killed + 1 end
        local count, problem = with_store(path, function(opened) return #all(opened) end)
        check.equal({ count % 100, problem }, { 0, nil })
    end
    if killed == 0 then error("no merge was killed") end
    tuned(path, "merge", table.unpack(logs))
    check.equal(with_store(path, function(opened) return #all(opened) end), 1000)
end

function test.a_store_in_use_is_waited_for_and_shared()
    local path = filled(records.many(3))
    local a <close> = store.open(path)
    check.equal(#a:keys(), 1)
    check.matches(tuned(path, "merge", log_file(records.many(5))), "2 new; 5 records in ")
    check.equal(a:keys()[1].count, 5)
end

function test.damaged_logs_are_merged_as_far_as_they_are_whole()
    local list = records.many(6)
    local text = records.text(list)
    local path, bad = new_path(), folder .. "/bad.jsonl"
    assert(host.write_file(bad, text:sub(1, #text - 40)))
    local result = run(path, "merge", bad, log_file { records.rejected "verify: y differs" })
    check.equal(
        { result.status, result.errors },
        { 0, "lookupc tuned: " .. bad .. ": dropped 1 line: line 6 is cut off or no record\n" }
    )
    check.matches(result.output, "^merged 6 records of 2 logs: 6 new; 6 records in ")
    -- one file that cannot be read: nothing is merged
    refuses(
        path,
        1,
        "/none.jsonl: No such file or directory",
        "merge",
        log_file(records.many(9)),
        folder .. "/none.jsonl"
    )
    refuses(path, 1, "tiny.lua: is no log of lookupc tune", "merge", "gen/models/tiny.lua")
    check.equal(
        json.decode(run(path, "merge", bad, "--json").output),
        { store = path, read = 5, added = 0, dropped = 1, records = 6, undecided = {}, disagreements = {} }
    )
end

function test.look_up_goes_from_near_to_far()
    local wanted = records.key()
    local other_compiler = records.key { compiler = "gcc (Debian 13.1.0-1) 13.1.0", l2 = 2097152 }
    local other_step = records.key { cpu_stepping = 2 }
    local other_cpu = records.key { cpu_vendor = "GenuineIntel", cpu_family = 6, cpu_model = 143, cpu_name = "Xeon" }
    local other_templates = records.key { templates = ("d"):rep(64) }
    local other_flags = records.key { flags = "-O3" }
    local path = new_path()
    local opened <close> = store.open(path)
    local function add(k, changes) opened:merge(records.many(3, { key = k, regime = changes and changes.regime })) end
    local function look(where)
        local found = opened:look_up(wanted, where)
        for _, r in ipairs(found.records) do
            check.equal(key.id(r.key), found.id)
        end
        return { found.level, found.id, found.differs }, found
    end

    check.equal(look(), { "default", nil, "" })
    check.equal(store.say(opened:look_up(wanted)), "records used: default")

    -- of no use: other templates, other flags, another isa or model
    add(other_templates)
    add(other_flags)
    add(records.key { isa_usable = "scalar,avx2" })
    add(records.key { compiler = "clang Debian clang version 14.0.6" })
    add(records.key { isa = "avx2" })
    add(records.key { model = ("e"):rep(64) })
    local got, found = look()
    check.equal({ got, #found.records }, { { "default", nil, "" }, 0 })
    local reasons = {}
    for i, entry in ipairs(found.refused) do
        reasons[i] = entry.reason
    end
    table.sort(reasons)
    check.equal(reasons, {
        "compiler differs (clang Debian clang version 14.0.6, not gcc (Debian 12.2.0-14) 12.2.0)",
        "flags differs (-O3, not -O2)",
        "isa_usable differs (scalar,avx2, not scalar,avx2,avx512)",
        "templates differs (dddddddddddd, not aaaaaaaaaaaa)",
    })
    check.matches(store.say(found), "^records used: default; refused: key %x+, [^;\n]*; refused: key [^\n]*$")

    add(other_cpu)
    got, found = look()
    check.equal(got, {
        "isa",
        key.id(other_cpu),
        "cpu_vendor differs (GenuineIntel, not AuthenticAMD), cpu_family differs (6, not 25), cpu_model differs (143, \z
            not 17), cpu_name differs (Xeon, not AMD EPYC)",
    })
    check.equal({ #found.refused, #found.records }, { 4, 3 })

    add(other_compiler)
    check.equal(look(), {
        "microarchitecture",
        key.id(other_compiler),
        "compiler differs (gcc (Debian 13.1.0-1) 13.1.0, not gcc (Debian 12.2.0-14) 12.2.0), l2 differs (2097152, not \z
            1048576)",
    })
    add(other_step)
    check.equal(look(), { "microarchitecture", key.id(other_step), "cpu_stepping differs (2, not 1)" })

    -- the exact key, but only for the other regime, then for this one
    add(wanted, { regime = "few" })
    check.equal(look(), { "exact", key.id(wanted), "" })
    got, found = look { regime = "many" }
    check.equal(got[1], "microarchitecture")
    check.equal(found.refused[#found.refused], { id = key.id(wanted), reason = "has no measurement of this case" })
    add(wanted)
    check.equal(look { regime = "many", batch = 4096 }, { "exact", key.id(wanted), "" })
    check.matches(
        store.say(select(2, look())),
        "^records used: exact, key " .. key.id(wanted):sub(1, 12) .. "; refused: "
    )
end

function test.hosts_that_disagree_are_told()
    local function measured(host_name, candidate, us)
        return records.make { host = host_name, candidate = candidate, samples_us = { us, us * 1.01, us * 0.99 } }
    end
    -- h2 prefers another, but h1 loses no more than 1.4 % by it and h2 no more than 1 % by that of h1
    local agree =
        { measured("h1", "a=1", 5), measured("h1", "a=2", 5.07), measured("h2", "a=1", 7.07), measured("h2", "a=2", 7) }
    local path = new_path()
    check.matches(tuned(path, "merge", log_file(agree)), "^merged 4 ")
    check.equal(summary.disagreements(summary.cases(agree)), {})
    -- h4 measured nothing that others did
    local more = { measured("h3", "a=1", 9), measured("h3", "a=2", 8), measured("h4", "a=3", 1) }
    local result = run(path, "merge", log_file(more))
    check.equal(result.status, 0)
    local id = key.id(records.key()):sub(1, 12)
    local line = "lookupc tuned: key "
        .. id
        .. ": hosts disagree: many, batch 4096, uniform codes, warm tables: the best of host h1 is 12.5 %% slower on \z
            host h3 than its own: a=1, not a=2\n"
    check.equal(result.errors, line:format())
    check.equal(#json.decode(tuned(path, "merge", log_file(more), "--json")).disagreements, 1)
    check.equal(#json.decode(tuned(path, "show", id, "--json")).disagreements, 1)
end

function test.list_and_show_are_for_people_and_machines()
    local path, id = new_path(), key.id(records.key())
    check.equal(tuned(path, "list"), "0 records of 0 keys in " .. path .. "\n")
    check.equal(json.decode(tuned(path, "list", "--json")), { store = path, keys = {} })
    tuned(
        path,
        "merge",
        log_file {
            records.make(),
            records.make { candidate = "tile.vectors=2,gather.group=4", samples_us = { 7, 8 }, time = 1709251199 },
            records.make { samples_us = { 5.75 }, time = 1709164800 },
            records.make { regime = "few", batch = 1, samples_us = { 11 } },
            records.rejected "verify: y differs",
        }
    )
    check.equal(
        tuned(path, "list"),
        table.concat({
            "key          model        isa     tables proj.   records candidates rejected first      last       \z
                machine",
            id:sub(1, 12)
                .. " bbbbbbbbbbbb avx512  f32    f32           5          4        1 2023-11-14 2024-02-29 AMD EPYC, \z
                    gcc (Debian 12.2.0-14) 12.2.0, 1 thread",
            "  best of   1    11.000 us/token  few, batch 1, uniform codes, warm tables",
            "  best of   2     5.625 us/token  many, batch 4096, uniform codes, warm tables",
            "5 records of 1 key in " .. path,
            "",
        }, "\n")
    )
    local text = tuned(path, "show", id:sub(1, 6))
    check.matches(text, "^key " .. id .. "\n  templates     a+\n")
    check.matches(
        text,
        "\nmany, batch 4096, uniform codes, warm tables; all with tile%.vectors=2\n   us/token samples   bytes  \z
            choices\n      5%.625       4   12345  gather%.group=8\n      7%.500       2   12345  gather%.group=4\n"
    )
    check.matches(text, "\nrejected\n  many tile%.vectors=1,gather%.group=4: verify: y differs\n$")
    local machine = json.decode(tuned(path, "show", id, "--json"))
    check.equal({
        machine.id,
        machine.key,
        machine.records,
        #machine.cases,
        machine.cases[2].candidates[1].us,
        machine.rejected[1].reason,
    }, { id, records.key(), 5, 2, 5.625, "verify: y differs" })
    check.equal(json.decode(tuned(path, "list", "--json")).keys[1].best[2].us, 5.625)
end

-- The names are long and short; a key whose records tell none has the model's digest.
function test.list_and_show_name_models()
    local path = new_path()
    local function chosen(model, digest)
        local fields =
            records.fields { key = records.key { model = digest:rep(64) }, model = model, status = "entered" }
        fields.samples_us, fields.codes, fields.tables = nil, nil, nil
        fields.field, fields.batches, fields.shard = { "tile.vectors=2" }, "1", "1/1"
        return record.make(fields)
    end
    local list = { chosen("tiny", "c"), chosen("a_model_of_a_long_name", "d"), chosen(nil, "e"), records.make() }
    tuned(path, "merge", log_file(list))
    local text = tuned(path, "list")
    for _, name in ipairs { "tiny                  ", "a_model_of_a_long_name", "eeeeeeeeeeee          " } do
        check.matches(text, "\n%x+ " .. name .. " avx512 ")
    end
    local machine = json.decode(tuned(path, "list", "--json"))
    for _, entry in ipairs(machine.keys) do
        local name = ({ c = "tiny", d = "a_model_of_a_long_name" })[entry.key.model:sub(1, 1)]
        check.equal(entry.model, name)
        check.equal(json.decode(tuned(path, "show", entry.id, "--json")).model, name)
        if name then check.matches(tuned(path, "show", entry.id), "^key %x+\n  name          " .. name .. "\n") end
    end
end

function test.keys_are_named_by_their_first_digits()
    local path, digits = new_path(), {}
    local list = {}
    for i = 1, 17 do
        list[i] = records.make { key = records.key { l2 = i } }
    end -- 17 keys: two begin with the same digit
    tuned(path, "merge", log_file(list))
    for _, r in ipairs(list) do
        local digit = key.id(r.key):sub(1, 1)
        digits[digit] = (digits[digit] or 0) + 1
    end
    for digit, count in pairs(digits) do
        if count > 1 then
            refuses(
                path,
                1,
                string.format('"%s": %d keys of %s begin so: give more digits', digit, count, path),
                "show",
                digit
            )
        end
    end
    refuses(path, 1, '"0000000000": no key of ' .. path .. " begins so", "show", "0000000000")
    for _, bad in ipairs { "xyz", "AB", "a b", "%" } do
        refuses(path, 1, '"' .. bad .. '": must be the first hexadecimal digits of a key', "show", bad)
    end
    refuses(new_path(), 1, "there is no store yet", "show", "a")
    local out = folder .. "/never.jsonl"
    refuses(path, 1, "begins so", "export", "0000000000", "-o", out)
    check.equal(host.kind(out), nil)
    refuses(path, 1, "-o: " .. path .. ": is the input " .. path, "export", key.id(list[1].key), "-o", path)
    refuses(path, 1, "/none/x.jsonl: No such file or directory", "export", key.id(list[1].key), "-o", "/none/x.jsonl")
end

function test.prune_removes_what_it_is_told_to()
    local now = process.time()
    local path, here = new_path(), records.key { templates = emit.digest() }
    tuned(
        path,
        "merge",
        log_file {
            records.make { time = now - 100 * 86400 },
            records.make { time = now - 11 * 86400 },
            records.make { key = here, time = now - 9 * 86400 },
            records.make { time = now },
        }
    )
    for _, row in ipairs {
        { 2, "--older or --templates is missing" },
        { 2, "give one of them", "--older", "1", "--templates", "other" },
        { 2, '--templates: "all": must be one of other', "--templates", "all" },
        { 2, "--older: -1: must be an integer", "--older", "-1" },
        { 2, "takes no argument, got x", "x" },
    } do
        refuses(path, row[1], row[2], "prune", table.unpack(row, 3))
    end
    check.equal(tuned(path, "prune", "--older", "365"), "removed 0 records of " .. path .. "; 4 left\n")
    check.equal(tuned(path, "prune", "--older", "10"), "removed 2 records of " .. path .. "; 2 left\n")
    check.equal(
        json.decode(tuned(path, "prune", "--templates", "other", "--json")),
        { store = path, removed = 1, records = 1 }
    )
    check.equal(with_store(path, function(opened) return opened:keys()[1].key.templates end), emit.digest())
    -- what is pruned leaves no traces that a later repair would bring back
    check.equal(#record.find(host.read(path)), 1)
    check.equal(
        tuned(new_path(), "prune", "--older", "0"),
        "removed 0 records of " .. folder .. "/" .. paths .. ".sqlite; 0 left\n"
    )
end

function test.usage_of_the_commands()
    local path = new_path()
    refuses(path, 2, "lookupc: tuned takes one of list, show, merge, export, prune (see lookupc help)")
    refuses(path, 2, 'lookupc: unknown command "tuned lst"; tuned takes one of list, show, merge, export, prune', "lst")
    refuses(path, 2, "lookupc tuned list: takes no argument, got x (see lookupc help tuned list)", "list", "x")
    refuses(path, 2, "lookupc tuned list: unknown option --older", "list", "--older", "3")
    refuses(path, 2, "KEYPREFIX is missing", "show")
    refuses(path, 2, "LOG.jsonl is missing", "merge")
    refuses(path, 2, "-o is missing", "export", "ab")
    for _, name in ipairs { "list", "show", "merge", "export", "prune" } do
        check.matches(program.works { "help", "tuned", name }, "^usage: lookupc tuned " .. name)
        check.equal(program.works { "tuned", name, "--help" }, program.works { "help", "tuned", name })
        check.matches(program.works { "help", "tuned" }, "usage: lookupc tuned " .. name)
    end
    check.equal(host.kind(path), nil)
end

return test
