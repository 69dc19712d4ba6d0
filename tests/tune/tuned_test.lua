-- A tuned file gives the choices it holds and nothing else, and says in one line why it does not fit.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local machine = require "harness.base.machine"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local program = require "tests.support.program"
local schedule = require "gen.families.lookup.schedule"
local tuned_file = require "gen.request.tuned_file"

local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local path = folder .. "/tuned.lua"

local facts = machine.cpu()
for _, name in ipairs { "l1d", "l1i", "l2", "l3_share" } do -- guests may hide the caches of their CPU
    facts[name] = facts[name] > 0 and facts[name] or nil
end
local here =
    { cpu_name = facts.cpu_name, isa_usable = facts.isa_usable, l1d = facts.l1d, l1i = facts.l1i, l2 = facts.l2 }

-- What `lookupc tune` would write for tiny: other choices than the default for two instruction sets.
local function data_of(changes)
    local p = plan.build(model.load(tiny), isa.select("scalar,avx2"))
    local data = {
        lookupc = tuned_file.generator(),
        model = p.digest,
        tables = "f32",
        projection = "f32",
        cpu = here,
        compiler = "gcc 12.2.0 -O2",
        schedules = {
            scalar = schedule.make(p.shape, p.variants[1].isa, { ["gather.accumulators"] = 8, ["chunk.tokens"] = 256 }),
            avx2 = schedule.make(p.shape, p.variants[2].isa, { ["gather.group"] = 4, ["few.tokens"] = 1 }),
        },
    }
    for key, value in pairs(changes or {}) do
        data[key] = value
    end
    return data
end

local function write(text) assert(host.write_file(path, text)) end

-- The text of the good file with one pattern replaced.
local function changed(from, to)
    local text, count = tuned_file.text(data_of()):gsub(from, to, 1)
    if count ~= 1 then error("nothing matches " .. from, 2) end
    return text
end

local good = tuned_file.text(data_of())

function test.what_is_written_is_read_back()
    write(good)
    check.equal((tuned_file.load(path)), data_of())
    local other = data_of {
        lookupc = { version = 'a "b" \\ c', templates = ("0a"):rep(32) },
        tables = "i8",
        compiler = "clang é\t",
        cpu = {
            arch = "x86_64",
            cpu_vendor = "AuthenticAMD",
            cpu_family = 25,
            cpu_model = 97,
            cpu_stepping = 2,
            cpu_name = "AMD EPYC 9654",
            isa_usable = "scalar,avx2,avx512",
            l1d = 32768,
            l1i = 32768,
            l2 = 1048576,
            l3_share = 4194304,
            virtual = true,
            threads = 1,
        },
    }
    other.compiler = "clang é"
    local without_types = data_of()
    without_types.tables, without_types.projection = nil, nil
    for _, data in ipairs { other, without_types } do
        write(tuned_file.text(data, { "title\nof two lines" }))
        check.equal((tuned_file.load(path)), data)
    end
end

function test.the_text_is_sorted_and_says_what_was_measured()
    local data = data_of()
    data.schedules.scalar = nil
    local text = tuned_file.text(data, { "lookupc tune: tiny on a CPU" }, {
        avx2 = {
            ["chunk.tokens"] = "default",
            ["gather.group"] = { ratio = 1.0712, low = 1.049, high = 1.094, samples = 40, batch = 4096 },
        },
    })
    check.matches(text, '^%-%- lookupc tune: tiny on a CPU\nreturn {\n    lookupc = { templates = "%x+", version = "')
    check.matches(text, '\n            %["chunk.tokens"%] = 128, %-%- default\n')
    check.matches(
        text,
        '\n            %["gather.group"%] = 4, %-%- 1.07x the speed of the default %(1.05 … 1.09, 40 samples, batch \z
            4096%)\n'
    )
    check.matches(text, '\n            %["few.tokens"%] = 1,\n')
    local keys = {}
    for key in text:gmatch('%["([%w._]+)"%]') do
        keys[#keys + 1] = key
    end
    check.equal(#keys, #schedule.choices)
    local sorted = table.move(keys, 1, #keys, 1, {})
    table.sort(sorted)
    check.equal(keys, sorted)
    check.equal(tuned_file.text(data_of()), good)
end

function test.what_no_file_may_hold_is_not_written()
    check.fails_with('tuned file: tables = "f64": must be "f32" or "bf16"', tuned_file.text, data_of { tables = "f64" })
    check.fails_with("tuned file: schedules: has no schedule", tuned_file.text, data_of { schedules = {} })
    check.fails_with(
        'tuned file: compiler = "a\\nb": must be a line of text',
        tuned_file.text,
        data_of { compiler = "a\nb" }
    )
end

-- Damaged files: what replaces what, and the line that says so after the path.
local damages = {
    { "return {", "return {{", " near <eof>" },
    { "}%s*$", "", " near <eof>" },
    { "return", "goto", ":1: " },
    { "return {.*", "", ": must return one table, returned nothing" },
    { "return {.*", "return 5", ": must return one table, returned number" },
    { "return {.*", "return {}", ": lookupc: required key is missing; it must be a table of version, templates" },
    { "return {.*", "while true do end", ": took more than " },
    { "return {.*", 'return os.getenv "HOME"', "unknown name 'os'" },
    { "lookupc = {", "lookupc = {}, lookupc = {", ":2: lookupc: is given twice, first in line 2" },
    { "lookupc = {", "lookup = {", ':2: lookup = {...}: unknown key; did you mean "lookupc"?' },
    { "lookupc = %b{}", "lookupc = 5", ":2: lookupc = 5: must be a table of version, templates" },
    { 'templates = "%x+"', 'templates = "12"', ':2: lookupc.templates = "12": must be 64 hexadecimal digits' },
    { 'templates = "%x+", ', "", ":2: lookupc.templates: required key is missing; it must be 64 hexadecimal digits" },
    { 'version = "[^"]+"', "version = 1", ":2: lookupc.version = 1: must be a line of text" },
    { 'model = "%x+"', 'model = "tiny"', ':3: model = "tiny": must be 64 hexadecimal digits' },
    {
        'model = "%x+"',
        'model = "' .. ("0"):rep(64) .. '"',
        ':3: model = "0000000000000000": is the digest of another model than tiny, ',
    },
    {
        'tables = "f32"',
        'tables = "f33"',
        ':4: tables = "f33": must be "' .. table.concat(dtype.names, '" or "') .. '"',
    },
    {
        'tables = "f32"',
        'tables = "i8"',
        ':4: tables = "i8": the command asks for f32: give --tables i8, or tune again',
    },
    { 'projection = "f32"', 'projection = "e4m3"', ':4: projection = "e4m3": must be "f32"' },
    { "cpu_name = [^\n]*\n", "", ":5: cpu.cpu_name: required key is missing; it must be a line of text" },
    { "cpu = {", "cpu = { cpu_family = -1,", ":5: cpu.cpu_family = -1: must be an integer from 0 to 65535" },
    { "cpu = {", "cpu = { virtual = 1,", ":5: cpu.virtual = 1: must be true or false" },
    { "cpu = {", "cpu = { cpu_venddor = 1,", ':5: cpu.cpu_venddor = 1: unknown key; did you mean "cpu_vendor"?' },
    {
        'isa_usable = "[^"]*"',
        'isa_usable = ""',
        ': cpu.isa_usable = "": must be names of instruction sets with commas between them',
    },
    { 'compiler = "[^"]*"', "compiler = {}", ": compiler = {...}: must be a line of text" },
    { "schedules = {.*", "schedules = {} }", ": schedules: has no schedule" },
    {
        "schedules = {.*",
        "schedules = { neural = {} } }",
        ": schedules.neural = {...}: unknown key; the keys are " .. table.concat(isa.all, ", "),
    },
    {
        "schedules = {.*",
        "schedules = { avx512 = {} } }",
        ": schedules: none is for scalar, avx2: they are for avx512",
    },
    { "avx2 = {", "avx2 = { 5,", ": schedules.avx2.1 = 5: unknown key; the keys are butterfly.radix, " },
    {
        '"gather.group"',
        '"gather.gruop"',
        ': schedules.avx2.gather.gruop = 4: unknown key; did you mean "gather.group"?',
    },
    {
        '%["gather.group"%] = 4',
        '["gather.group"] = 4.5',
        ": schedules.avx2.gather.group = 4.5: must be an integer from 0 to 2147483648",
    },
    { '%["gather.group"%] = 4', '["gather.group"] = "4"', ': schedules.avx2.gather.group = "4": must be an integer' },
    {
        '%["gather.group"%] = 4',
        '["gather.group"] = 3',
        ": schedules.avx2.gather.group = 3: must be one of 1, 2, 4, 8",
    },
    { '%["gather.group"%] = 4,', "", ": schedules.avx2.gather.group: is missing: a schedule lists every choice" },
    { '%["few.tokens"%] = 1,', '["few.tokens"] = 8,', ": schedules.avx2.few.tokens = 8: must be one of 1, 2" },
    { '%["chunk.tokens"%] = 256', '["chunk.tokens"] = 100', ": schedules.scalar.chunk.tokens = 100: must be one of " },
}

function test.damaged_files_are_refused_in_one_line()
    local o = folder .. "/never"
    for _, damage in ipairs(damages) do
        write(changed(damage[1], damage[2]))
        program.refuses(1, damage[3], { "emit", tiny, "-o", o, "--isa", "scalar,avx2", "--tuned", path })
        program.refuses(1, "lookupc: " .. path .. ":", { "plan", tiny, "--isa", "scalar,avx2", "--tuned", path })
    end
    program.refuses(
        1,
        "none.lua: No such file or directory",
        { "emit", tiny, "-o", o, "--tuned", folder .. "/none.lua" }
    )
    program.refuses(1, ": Is a directory", { "emit", tiny, "-o", o, "--tuned", folder })
    write(good)
    program.refuses(
        2,
        "--tuned: " .. path .. ": cannot be given beside --schedule",
        { "emit", tiny, "-o", o, "--tuned", path, "--schedule", "gather.group=4" }
    )
    program.refuses(
        1,
        ': tables = "f32": the command asks for i8: give --tables f32, or tune again',
        { "emit", tiny, "-o", o, "--tuned", path, "--tables", "i8" }
    )
    program.refuses(
        1,
        ": is the digest of another model than roberta_small",
        { "emit", "gen/models/roberta_small.lua", "-o", o, "--tuned", path }
    )
    check.equal(host.kind(o), nil)
end

-- The line that an error points at is the choice's own.
function test.errors_have_the_line_of_the_choice()
    write(changed('%["gather.group"%] = 4', '["gather.group"] = 3'))
    local line = 1
    for text in good:gmatch("([^\n]*)\n") do
        if text:find('["gather.group"] = 4', 1, true) then break end
        line = line + 1
    end
    program.refuses(
        1,
        path .. ":" .. line .. ": schedules.avx2.gather.group = 3",
        { "plan", tiny, "--isa", "avx2", "--tuned", path }
    )
end

local function bytes_of(directory)
    local all = {}
    for _, name in ipairs(assert(host.list(directory))) do
        all[name] = assert(host.read(directory .. "/" .. name))
    end
    return all
end

function test.emission_takes_the_choices_and_is_reproducible()
    write(good)
    local first, again, given = folder .. "/first", folder .. "/again", folder .. "/given"
    program.works { "emit", tiny, "-o", first, "--isa", "avx2", "--tuned", path }
    -- Other comments, another place, another CPU: the same bytes.
    local elsewhere = folder .. "/elsewhere.lua"
    assert(
        host.write_file(
            elsewhere,
            tuned_file.text(
                data_of { compiler = "clang", cpu = { cpu_name = "another CPU", isa_usable = "scalar" } },
                { "other words" }
            )
        )
    )
    program.works { "emit", tiny, "-o", again, "--isa", "avx2", "--tuned", elsewhere }
    check.equal(bytes_of(again), bytes_of(first))
    -- And those of the same choices by hand.
    program.works { "emit", tiny, "-o", given, "--isa", "avx2", "--schedule", schedule.text(data_of().schedules.avx2) }
    check.equal(bytes_of(given), bytes_of(first))
    check.equal(json.decode(bytes_of(first)["MANIFEST.json"]).options.schedule, { avx2 = data_of().schedules.avx2 })
end

function test.every_instruction_set_has_its_own_choices()
    write(good)
    local bundle = folder .. "/both"
    program.works { "emit", tiny, "-o", bundle, "--isa", "scalar,avx2", "--tuned", path }
    check.equal(json.decode(bytes_of(bundle)["MANIFEST.json"]).options.schedule, data_of().schedules)
    local summary = json.decode(program.works { "plan", tiny, "--isa", "scalar,avx2", "--tuned", path, "--json" })
    check.equal(
        { summary.variants[1].schedule, summary.variants[2].schedule },
        { schedule.text(data_of().schedules.scalar), schedule.text(data_of().schedules.avx2) }
    )
    check.matches(program.works { "schedules", tiny, "--isa", "avx2", "--tuned", path }, "gather.group +4 ")
end

function test.check_needs_no_tuned_file()
    write(good)
    local bundle = folder .. "/checked"
    program.works { "emit", tiny, "-o", bundle, "--isa", "scalar,avx2", "--tuned", path }
    assert(host.remove(path))
    check.matches(program.works { "check", bundle }, ": fresh\n$")
    -- Other choices in the manifest: what is there is no longer what they give.
    local manifest = bytes_of(bundle)["MANIFEST.json"]
    assert(host.write_file(bundle .. "/MANIFEST.json", (manifest:gsub('"gather.group": 4', '"gather.group": 2'))))
    check.equal(program.run({ "check", bundle }).status, 1)
end

-- Standard error of a command that succeeds.
local function notes(words)
    local result = program.run(words)
    if result.status ~= 0 then error(result.errors, 2) end
    return result.errors
end

function test.other_templates_are_said_and_used()
    local data = data_of { lookupc = { version = "0.0.9", templates = ("0"):rep(64) } }
    data.schedules.avx2["gather.prefetch_next"], data.schedules.avx2["few.prefetch"] = nil, nil
    write(tuned_file.text(data))
    check.equal(
        notes { "plan", tiny, "--isa", "avx2", "--tuned", path },
        "lookupc: "
            .. path
            .. ": tuned with other templates (lookupc 0.0.9): "
            .. "its choices are legal, but may no longer be the fastest: tune again; it does not have \z
                gather.prefetch_next, few.prefetch, which keep their default\n"
    )
    local bundle = folder .. "/other"
    notes { "emit", tiny, "-o", bundle, "--isa", "avx2", "--tuned", path }
    check.matches(program.works { "check", bundle }, ": fresh\n$")
end

function test.an_instruction_set_without_a_schedule_is_said()
    write(good)
    check.equal(
        notes { "plan", tiny, "--tuned", path },
        "lookupc: " .. path .. ": no schedule for avx512: the default is taken\n"
    )
    check.equal(notes { "plan", tiny, "--isa", "scalar", "--tuned", path }, "")
end

function test.another_cpu_is_said_by_commands_that_run()
    write(tuned_file.text(data_of { cpu = facts }))
    check.equal(notes { "verify", tiny, "--isa", "scalar", "--tuned", path }, "")
    write(tuned_file.text(data_of { cpu = { cpu_name = "Some CPU 9000", isa_usable = "mmx" } }))
    check.equal(
        notes { "verify", tiny, "--isa", "scalar", "--tuned", path },
        "lookupc: "
            .. path
            .. ": tuned on Some CPU 9000, with other instruction sets than this CPU: another schedule may be faster \z
                here\n"
    )
    check.equal(notes { "plan", tiny, "--isa", "scalar", "--tuned", path }, "")
end

function test.levels()
    local zen = {
        arch = "x86_64",
        cpu_vendor = "AuthenticAMD",
        cpu_family = 25,
        cpu_model = 97,
        cpu_stepping = 2,
        cpu_name = "AMD",
        isa_usable = "scalar,avx2",
        l2 = 1048576,
    }
    local function level(changes)
        local other = setmetatable(changes, { __index = zen })
        return { machine.level(zen, other) }
    end
    check.equal(level {}, { "exact" })
    check.equal(level { threads = 2 }, { "exact" })
    check.equal(level { l1d = 0 }, { "exact" }) -- not known, as where a tuned file has none
    check.equal(level { cpu_stepping = 3 }, { "microarchitecture", "cpu_stepping" })
    check.equal(level { l2 = 524288 }, { "microarchitecture", "l2" })
    check.equal(level { cpu_model = 98 }, { "isa", "cpu_model" })
    check.equal(level { cpu_vendor = "GenuineIntel" }, { "isa", "cpu_vendor" })
    check.equal(level { isa_usable = "scalar,avx2,avx512" }, { "other", "isa_usable" })
    check.equal(level { arch = "aarch64" }, { "other", "arch" })
    -- Two CPUs of which little is known are not of one microarchitecture for that.
    check.equal(
        { machine.level({ cpu_name = "a", isa_usable = "scalar" }, { cpu_name = "b", isa_usable = "scalar" }) },
        { "isa", "cpu_name" }
    )
    check.matches(
        machine.tuned_note({ cpu = zen }, { path = "t.lua" }, setmetatable({ l2 = 524288 }, { __index = zen })),
        "^t.lua: tuned on another AMD %(l2 1048576, here 524288%), of this CPU's microarchitecture: another schedule \z
            may be faster here$"
    )
end

function test.the_digest_of_templates_is_that_of_what_decides_the_bytes()
    check.matches(emit.digest(), "^" .. ("%x"):rep(64) .. "$")
    check.equal(emit.digest(), emit.digest())
end

return test
