-- A record says everything or is refused, and a log gives back what is whole whatever happened to the rest.
local check = require "tests.support.check"
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local process = require "process"
local program = require "tests.support.program"
local record = require "harness.tune.record"
local records = require "tests.support.records"

local test = {}
local folder = program.folder()
local files = 0

local function file(text)
    files = files + 1
    local path = folder .. "/" .. files .. ".jsonl"
    if text then assert(host.write_file(path, text)) end
    return path
end

function test.a_record_is_read_back()
    for _, r in ipairs {
        records.make(),
        records.rejected "verify: code 3 differs",
        records.make { round = "halving 2.1", place = 3, samples_us = { 1 / 3 } },
    } do
        local line = record.line(r)
        check.equal(line:find("\n"), nil)
        check.equal(record.parse(line), r)
        check.equal(record.line(record.parse(line)), line)
    end
end

-- The check is what the design says it is, whatever text shortcut reads it.
function test.the_check_is_the_digest_of_the_line_without_it()
    local r = records.make { candidate = 'odd "check":"0123456789abcdef", text' }
    local copy = json.decode(record.line(r))
    copy.check = nil
    check.equal(r.check, host.sha256(json.encode(copy, "compact")):sub(1, 16))
    check.equal(record.parse(record.line(r)), r)
end

function test.same_content_has_the_same_check_and_other_content_another()
    local seen, changes =
        {}, {
            {},
            { time = 1 },
            { host = "x" },
            { samples_us = { 5.5, 5.25 } },
            { samples_us = { 5.25, 5.5, 6 } },
            { key = records.key { l2 = 1 } },
            { place = 1 },
        }
    for _, change in ipairs(changes) do
        local r = records.make(change)
        check.equal(r.check, records.make(change).check)
        check.equal(seen[r.check], nil)
        seen[r.check] = true
    end
end

function test.what_breaks_a_rule_is_refused()
    for _, row in ipairs {
        { 'field "batch": 0: must be an integer from 1', { batch = 0 } },
        { 'field "batch": 4096.0: must be an integer from 1', { batch = 4096.0 } },
        { 'field "regime": some: must be one of many, few', { regime = "some" } },
        { 'field "status": fine: must be one of ok, rejected', { status = "fine" } },
        { 'field "samples_us": {…}: must be a list of positive numbers', { samples_us = {} } },
        { 'field "samples_us": {…}: must be a list of positive numbers', { samples_us = { 1, 0 } } },
        { 'field "samples_us": {…}: must be a list of positive numbers', { samples_us = { 0 / 0 } } },
        { 'field "samples_us": {…}: must be a list of positive numbers', { samples_us = { 1 / 0 } } },
        { 'field "samples_us": 5: must be a list of positive numbers', { samples_us = 5 } },
        { 'field "codes": hot: must be one of uniform, skewed', { codes = "hot" } },
        { 'field "tables": f32: must be one of warm, cold', { tables = "f32" } },
        { 'field "candidate": a?b: must be a text without control characters', { candidate = "a\nb" } },
        { 'field "host": : must be a text', { host = "" } },
        { 'field "time": -1: must be an integer from 0', { time = -1 } },
        { 'field "reason": only a record with status rejected has it', { reason = "x" } },
        { 'field "reason": is missing', { status = "rejected" } },
        { 'field "samples_us": only a record with status ok has it', { status = "rejected", reason = "x" } },
        { 'field "speed": is unknown', { speed = 1 } },
        { 'field "key": must be an object', { key = "k" } },
        { 'field "key.templates": abc: must be 64 hexadecimal digits', { key = records.key { templates = "abc" } } },
        { 'field "key.virtual": yes: must be true or false', { key = records.key { virtual = "yes" } } },
        { 'field "key.threads": 0: must be an integer from 1', { key = records.key { threads = 0 } } },
        { 'field "key.user": is unknown', { key = records.key { user = "me" } } },
    } do
        check.fails_with(row[1], records.make, row[2])
    end
    for _, name in ipairs {
        "candidate",
        "regime",
        "cc",
        "status",
        "batch",
        "samples_us",
        "codes",
        "tables",
        "object_bytes",
        "run",
        "host",
        "time",
    } do
        local fields = records.fields()
        fields[name] = nil
        check.fails_with('field "' .. name .. '": is missing', record.make, fields)
    end
    for _, field in ipairs(key.fields) do
        local fields = records.fields { key = records.key() }
        fields.key[field.name] = nil
        check.fails_with('field "key.' .. field.name .. '": is missing', record.make, fields)
    end
end

-- A line with the right check may still be no record: another program made it.
function test.a_right_check_is_not_enough()
    for _, row in ipairs {
        { { time = 1, status = "ok" }, 'field "key": must be an object' },
        { records.fields { zeal = 1 }, 'field "zeal": is unknown' },
    } do
        local body = json.encode(row[1], "compact")
        row[1].check = host.sha256(body):sub(1, 16)
        check.fails_with(row[2], record.parse, json.encode(row[1], "compact"))
    end
end

function test.every_flipped_bit_is_found()
    local line = record.line(records.make())
    for at = 0, 8 * #line - 1, effort.full "damage" and 1 or 7 do
        local index, bit = at // 8 + 1, at % 8
        if record.parse(records.flipped(line, index, bit)) then
            error("bit " .. bit .. " of byte " .. index .. " is not missed")
        end
    end
end

function test.every_cut_is_found()
    local line = record.line(records.make())
    for length = 0, #line - 1 do
        if record.parse(line:sub(1, length)) then error("the record of the first " .. length .. " bytes is taken") end
    end
end

function test.appended_records_are_read_in_order()
    local path, list = file(), records.many(20)
    for _, r in ipairs(list) do
        log.append(path, r)
    end
    check.equal({ log.read(path) }, { list, {} })
    check.equal(assert(host.read(path)), records.text(list))
    log.append(path, list[3])
    check.equal(#log.read(path), 20)
    check.equal(log.problem(path, {}), nil)
end

function test.a_log_that_cannot_be_written_or_read()
    check.fails_with("/none/a: No such file or directory", log.append, "/none/a", records.make())
    check.fails_with(folder .. ": Is a directory", log.append, folder, records.make())
    check.fails_with("/dev/null: is not a regular file", log.append, "/dev/null", records.make())
    check.fails_with("/none/a: No such file or directory", log.read, "/none/a")
    check.fails_with("gen/models/tiny.lua: is no log of lookupc tune", log.read, "gen/models/tiny.lua")
    check.fails_with("is no log of lookupc tune", log.read, file(("\0\255\n"):rep(1000)))
    check.equal({ log.read(file "") }, { {}, {} })
end

function test.a_full_disk_leaves_the_log_as_it_was()
    local path = file()
    log.append(path, records.make())
    local before = host.read(path)
    local size = #before
    local script = string.format('ulimit -f %d; exec "$@"', (size + 1023) // 1024 + 8)
    local result = process.run(
        { "bash", "-c", script, "bash", process.executable(), ".", check.lookupc, "tests/support/log_writer.lua" },
        { env = { LOG = path }, timeout = 60 }
    )
    check.matches(
        result.output,
        "FAILED tests/support/log_writer.lua: appends until it is killed\n +" .. path:gsub("%p", "%%%0") .. ": "
    )
    local list, dropped = log.read(path)
    check.equal(dropped, {})
    check.equal(list[1], record.parse(before:sub(1, -2)))
end

function test.a_truncated_log_keeps_its_whole_lines()
    local list = records.many(5)
    local text, first = records.text(list), records.text({ list[1], list[2], list[3] })
    for _, cut in ipairs { 1, 2, 30, #record.line(list[4]) - 1 } do
        local path = file(text:sub(1, #first + cut))
        local read, dropped = log.read(path)
        check.equal(read, { list[1], list[2], list[3] })
        check.equal(log.problem(path, dropped), path .. ": dropped 1 line: line 4 is cut off or no record")
        -- what is appended after the crash is not glued to the cut line
        log.append(path, list[5])
        check.equal(log.read(path), { list[1], list[2], list[3], list[5] })
    end
    -- only the newline is missing: the record is whole
    check.equal(log.read(file(text:sub(1, -2))), list)
end

function test.a_bit_flipped_log_keeps_the_others()
    local list = records.many(8)
    local text = records.text(list)
    local state = 42
    for _ = 1, 300 do
        state = (state * 6364136223846793005 + 1442695040888963407)
        local index = 1 + (state >> 33) % #text
        local path = folder .. "/flipped.jsonl"
        assert(host.write_file(path, records.flipped(text, index, (state >> 20) % 8)))
        local read, dropped = log.read(path)
        local by_check, newline = {}, text:byte(index) == 10
        for _, r in ipairs(list) do
            by_check[r.check] = r
        end
        for _, r in ipairs(read) do
            check.equal(r, by_check[r.check])
        end
        if #read < (newline and 6 or 7) or #dropped == 0 and not (newline and index == #text) then
            error("byte " .. index .. ": " .. #read .. " records, " .. #dropped .. " dropped")
        end
    end
end

function test.many_dropped_lines_are_one_line()
    local list = records.many(10)
    local path = file(records.text(list):gsub('"host1"', '"host2"') .. records.text { records.make() })
    local read, dropped = log.read(path)
    check.equal({ #read, #dropped }, { 1, 10 })
    check.equal(
        log.problem(path, dropped),
        path
            .. ": dropped 10 lines: line 1 does not match its check; line 2 does not match its check; line 3 does not \z
                match its check and 7 more"
    )
end

-- kill -9 while a child appends lines of several KB: at most the last line is lost, and the log goes on.
function test.killing_the_writer_loses_at_most_one_line()
    local path = file()
    local total, start = 0, 0.2
    for round = 1, 6 do
        local result = process.run(
            { process.executable(), ".", check.lookupc, "tests/support/log_writer.lua" },
            { env = { LOG = path }, timeout = start + 0.037 * round }
        )
        check.equal(result.signal, 9)
        if host.read(path) then
            local read, dropped = log.read(path)
            if #dropped > round then error(log.problem(path, dropped)) end
            total = math.max(total, #read)
        else -- a busy machine had not started it yet
            start = 2 * start
        end
    end
    if total == 0 then error("nothing was written before the writer was killed") end
end

function test.writers_take_turns()
    local path = file()
    local script = [[for i in 1 2 3 4; do "$@" & done; wait]]
    process.run(
        { "bash", "-c", script, "bash", process.executable(), ".", check.lookupc, "tests/support/log_writer.lua" },
        { env = { LOG = path }, timeout = 1.5 }
    )
    local read, dropped = log.read(path)
    if #read == 0 or #dropped > 1 then error(#read .. " records, " .. tostring(log.problem(path, dropped))) end
end

function test.records_are_found_in_any_bytes()
    local list = records.many(4)
    list[5] = records.rejected "verify: y differs"
    local lines = {}
    for i, r in ipairs(list) do
        lines[i] = record.line(r)
    end
    local junk = ('\0{"batch":{"candidate"'):rep(100)
    local bytes = junk
        .. lines[1]
        .. lines[2]:sub(1, 200)
        .. lines[3]
        .. junk
        .. lines[4]
        .. lines[4]
        .. lines[5]
        .. lines[2]:sub(1, -2)
    check.equal(record.find(bytes), { lines[1], lines[3], lines[4], lines[5] })
    check.equal(record.find(""), {})
end

local what = {
    compiler = "gcc-12 (Debian 12.2.0-14) 12.2.0",
    flags = "-O2",
    model = ("c"):rep(64),
    tables = "f32",
    projection = "f32",
    isa = "avx2",
    threads = 1,
}

function test.the_key_of_this_machine_is_a_key()
    local here = key.here(what)
    check.equal(records.make({ key = here }).key, here)
    check.equal(key.id(here), key.id(key.here(what)))
    check.equal(here.compiler, "gcc (Debian 12.2.0-14) 12.2.0")
    check.equal(here.templates, emit.digest())
    check.matches(here.isa_usable, "^scalar")
    check.matches(key.host_id(), "^%x+$")
    if here.arch == "x86_64" then
        check.equal(here.cpu_family > 0, true)
        local text = host.read("/proc/cpuinfo") or ""
        for name, field in pairs {
            ["vendor_id"] = "cpu_vendor",
            ["cpu family"] = "cpu_family",
            ["model"] = "cpu_model",
            ["stepping"] = "cpu_stepping",
        } do
            local said = text:match("\n" .. name .. "%s*: ([^\n]*)")
            if said then check.equal(tostring(here[field]), said) end
        end
        check.equal(here.virtual, text:find("\nflags[^\n]* hypervisor") ~= nil)
    end
end

-- Each mask makes another CPU of it, even one that takes nothing away.
function test.the_key_behind_a_mask_is_of_another_cpu()
    local variable, keys, ids = process.variable, {}, {}
    local masks = { "", table.unpack(cpu.real().isa) }
    for i, mask in ipairs(masks) do
        function process.variable(name) return name == "LOOKUPC_CPU" and mask or variable(name) end
        keys[i] = key.here(what)
    end
    process.variable = variable
    for i, mask in ipairs(masks) do
        local id = key.id(keys[i])
        check.equal({ mask, ids[id] }, { mask })
        ids[id] = mask
        if i > 1 then check.matches(keys[i].cpu_name, " %(LOOKUPC_CPU=" .. mask .. "%)$") end
    end
    if masks[3] then check.equal((key.compare(keys[1], keys[2])), nil) end -- scalar: not even of use
end

function test.compilers_are_known_by_their_version()
    for version, name in pairs {
        ["gcc (Debian 12.2.0-14) 12.2.0"] = "gcc (Debian 12.2.0-14) 12.2.0",
        ["x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0"] = "gcc (Debian 12.2.0-14) 12.2.0",
        ["cc (GCC) 13.1"] = "gcc (GCC) 13.1",
        ["Debian clang version 14.0.6"] = "clang Debian clang version 14.0.6",
        ["tcc version 0.9"] = "tcc version 0.9",
    } do
        check.equal(key.compiler(version), name)
    end
end

function test.the_digest_of_templates_depends_on_what_is_emitted_only()
    local copy = program.folder()
    process.run { "cp", "-r", "commands", "gen", "templates", "harness", "LICENSE", copy }
    local function digest(path, text)
        if path then assert(host.write_file(copy .. "/" .. path, assert(host.read(copy .. "/" .. path)) .. text)) end
        assert(
            host.write_file(
                copy .. "/commands/cli.lua",
                'return function() require("host").print(require("gen.emit.emit").digest()) return 0 end'
            )
        )
        return program.works { "--tree", copy }
    end
    local before = digest()
    check.equal(before, emit.digest() .. "\n")
    for _, path in ipairs {
        "commands/emit.lua",
        "gen/models/tiny.lua",
        "gen/request/bundle.lua",
        "harness/families/lookup/bench.lua",
    } do
        check.equal(digest(path, "\n-- changed\n"), before)
    end
    for _, path in ipairs {
        "templates/lookup/shared/gather.c",
        "gen/families/lookup/print.lua",
        "gen/isa/avx2.lua",
        "gen/families/lookup/schedule.lua",
    } do
        local after = digest(path, path:find("^gen") and "\n-- changed\n" or "\n/* changed */\n")
        check.equal(after ~= before, true)
        before = after
    end
end

return test
