-- `lookupc tune --machine` writes the file of a CPU: what it holds, what is kept of a race, and that it goes on.
local check = require "tests.support.check"
local cpu = require "harness.base.cpu"
local host = require "host"
local json = require "json"
local machine_file = require "harness.tune.machine_file"
local machine_race = require "harness.tune.machine_race"
local machines = require "gen.machines.list"
local program = require "tests.support.program"
local store = require "harness.tune.store"

local test = {}

-- The same numbers are the same bytes: every file as it is, read and written.
function test.files_are_written_as_they_stand()
    for _, name in ipairs(machines.names) do
        local path = "gen/machines/" .. name .. ".lua"
        check.equal(machine_file.text(machine_file.load(path)), host.read(path))
        check.equal(machine_file.load(path), machines.get(name))
    end
end

function test.what_is_no_file_of_a_cpu_is_refused()
    local path = program.folder() .. "/cpu.lua"
    local text = assert(host.read "gen/machines/zen3.lua")
    local ranges = "must be a list of { vendor, family, first model, last model }"
    local size = "must be an integer from 0, or math.huge"
    for _, row in ipairs {
        { "return 1", ": must return one table, returned number" },
        { "return {", ":1: unexpected symbol near <eof>" },
        { "while true do end", ":1: took more than 10000000 instructions" },
        { "return {}", ": cpus: required key is missing; it " .. ranges },
        { text:gsub("far_rows = 16", 'far_rows = "16"'), ':26: far_rows = "16": ' .. size },
        { text:gsub("25, 0, 15", "25, 0"), ":3: cpus = {...}: " .. ranges },
        { text:gsub("avx2", "avx9"), ":5: isa = {...}: must be a list of instruction sets" },
        { text:gsub("copies", "copiess"), ':10: copiess = 1: unknown key; did you mean "copies"?' },
    } do
        assert(host.write_file(path, row[1]))
        check.fails_with(path .. row[#row], machine_file.load, path)
    end
end

function test.the_nearest_cpu_of_the_vendor_is_the_start()
    for _, row in ipairs {
        { "AuthenticAMD", 25, 1, "zen3", 0 },
        { "AuthenticAMD", 25, 150, "zen4", 10 },
        { "AuthenticAMD", 23, 49, "zen3", 131072 },
        { "GenuineIntel", 6, 173, "granite-rapids", 0 },
        { "HygonGenuine", 24, 0, "generic", math.huge },
    } do
        local name, apart = machines.nearest(row[1], row[2], row[3])
        check.equal({ name, apart }, { row[4], row[5] })
        check.equal(machines.of_cpu(row[1], row[2], row[3]), row[5] == 0 and row[4] or machines.nominal)
    end
end

-- What is decided of one row, from the number 4 of `wide` or the size 8 of `far` on, where the schedules of a CPU take
-- times(shape, tokens, cpu): the numbers, and a word for each set of changes.
local function decided(row, times)
    local words = {}
    local found, open = machine_race.run {
        rows = { row },
        shapes = { small = { bytes = 4 }, middle = { bytes = 8 }, large = { bytes = 16 } },
        cpu = { wide = 4, far = 8 },
        schedule_of = function(shape, of)
            local bytes = ({ small = 4, middle = 8, large = 16 })[shape]
            return row.values and "wide " .. math.min(of.wide, 8) or bytes > of.far and "beyond" or "below"
        end,
        measure = function(_, call)
            local ratios, base = {}, times(call.shape, call.tokens, call.base)
            for _, text in ipairs(call.texts) do
                local time = times(call.shape, call.tokens, text)
                if not time then return time == nil and { why = "is too noisy" } or nil end
                ratios[text] = time / base
            end
            return ratios
        end,
        note = function(_, one, kept)
            local value = one.changes[row.name]
            words[#words + 1] = string.format("%s: %s", value, kept and "kept" or one.why or "another")
        end,
    }
    return found[row.name], words, open
end

-- 8 and 16 make the same schedule, 4 that which is there.
function test.a_number_is_kept_if_it_saves_three_percent_and_costs_them_nowhere()
    local row = { name = "wide", values = { 2, 4, 8, 16 }, shapes = { "small", "large" }, tokens = { 1, 64 } }
    local function with(two, eight, eight_of_large)
        return decided(row, function(shape, tokens, text)
            if text == "wide 2" then return two end
            if text == "wide 8" then return shape == "large" and tokens == 64 and eight_of_large or eight end
            return 100
        end)
    end
    local slower_there, noisy = "is slower at 64 tokens of large", "is too noisy at 1 token of small"
    for _, case in ipairs {
        { { 120, 90, 90 }, 8, { "2: is slower at 1 token of small", "8: kept", "16: another" } },
        { { 80, 90, 90 }, 2, { "2: kept", "8: another", "16: another" } },
        { { 102, 98, 98 }, 4, { "2: saves too little", "8: saves too little", "16: saves too little" } },
        { { 80, 70, 104 }, 2, { "2: kept", "8: " .. slower_there, "16: " .. slower_there } },
        { { 100, 80, 102 }, 8, { "2: saves too little", "8: kept", "16: another" } },
        { { nil, 80, 80 }, 4, { "2: " .. noisy, "8: " .. noisy, "16: " .. noisy } },
    } do
        local value, words = with(table.unpack(case[1], 1, 3))
        check.equal({ value, words }, { case[2], case[3] })
    end
    local value, words, open = with(false, 80, 80)
    check.equal({ value, words, open.name }, { 4, {}, "wide" })
end

-- A size is that of the largest shape at which what is below it wins, 0, if none is, and has no end, if all are.
function test.a_size_is_that_of_the_largest_shape_below()
    local row = { name = "far", shapes = { "large", "small", "middle", "small" }, tokens = { 1 } }
    local function with(beyond)
        return (decided(row, function(shape, _, text) return text == "below" and 100 or beyond[shape] end))
    end
    check.equal(with { small = 120, middle = 120, large = 80 }, 8)
    local _, words = decided(row, function(_, _, text) return text == "below" and 100 or 120 end)
    local slower = "is slower at 1 token of "
    check.equal(words, { "0: " .. slower .. "small", "4: " .. slower .. "middle", "inf: kept" })
    check.equal(with { small = 120, middle = 80, large = 80 }, 4)
    check.equal(with { small = 90, middle = 80, large = 80 }, 0)
    check.equal(with { small = 120, middle = 120, large = 120 }, math.huge)
    check.equal(with { small = 120, middle = 99, large = 80 }, 8)
end

function test.bad_names_and_options_are_one_line()
    local folder = program.folder()
    local name = '": must be a name in small letters, digits and -, not list or generic'
    for _, wrong in ipairs { "Zen", "zen/4", "4", "list", "generic" } do
        program.refuses(2, '--machine: "' .. wrong .. name, { "tune", "--machine", wrong })
    end
    for fragment, words in pairs {
        ["MODEL.lua is missing"] = {},
        ["--machine: a: measures models of its own, not m.lua"] = { "m.lua", "--machine", "a" },
        ["--machine: a: cannot be given beside --isa"] = { "--machine", "a", "--isa", "avx2" },
        ["--cc: gcc,clang: must be one compiler beside --machine"] = { "--machine", "a", "--cc", "gcc,clang" },
        ['--time: "soon": must be a number of seconds'] = { "--machine", "a", "--time", "soon" },
    } do
        program.refuses(2, fragment, { "tune", table.unpack(words) })
    end
    program.refuses(1, '-o: "/none/a": there is no folder /none/', { "tune", "--machine", "a", "-o", "/none/a" })
    program.refuses(1, "there is no folder gen/machines/", { "tune", "--machine", "a" }, { directory = folder })
    local facts, other = cpu.real(), "zen5"
    if machines.of_cpu(facts.vendor, facts.family, facts.number) == other then other = "neoverse-v1" end
    local of_another = string.format("--machine: %s: gen/machines/%s.lua is of another CPU", other, other)
    program.refuses(1, of_another, { "tune", "--machine", other })
    assert(host.write_file(folder .. "/text.lua", "return {}"))
    program.refuses(1, ": cpus: required key is missing", { "tune", "--machine", "a", "-o", folder .. "/text.lua" })
    check.equal(host.read(folder .. "/text.lua"), "return {}")
end

-- `env`: more of the environment, see tests/support/measured.lua.
local function tune(tree, folder, words, env)
    local all = { "--tree", tree, "tune", "--machine", "here", "--cflags", "-O0", table.unpack(words) }
    env = env or {}
    env.LOOKUPC_STORE, env.XDG_CACHE_HOME = folder .. "/store.sqlite", folder
    env.LOOKUPC_CPU = "" -- a CPU is measured as it is
    return program.run(all, { env = env })
end

-- How many records the store has.
local function kept_in(folder)
    local opened <close> = store.open(folder .. "/store.sqlite")
    local count = 0
    for _, entry in ipairs(opened:keys()) do
        count = count + entry.count
    end
    return count
end

-- With one number at one small shape, where another schedule than that at hand takes 9/10 of its time. Two rounds are
-- measured, of three times in three conditions each.
function test.a_cpu_is_measured_goes_on_and_is_written()
    local folder, tree, facts = program.folder(), program.quiet_tree(), cpu.real()
    local before = machines.get((machines.nearest(facts.vendor, facts.family, facts.number)))
    local path, value = tree .. "/harness/tune/machine_numbers.lua", before.tile_vectors == 1 and 2 or 1
    local row = '{ name = "tile_vectors", values = { %d }, shapes = { "floats_l2" }, tokens = { 64 } }'
    local rows = "machine_numbers.rows = { " .. row:format(value) .. " }\nreturn machine_numbers\n"
    assert(host.write_file(path, (assert(host.read(path)):gsub("machine_numbers%.rows = .*", rows))))
    local out = folder .. "/cpu.lua"
    program.cache(folder)
    local killed = tune(tree, folder, { "-o", out }, { LOOKUPC_TEST_RECORDS = "12" })
    check.equal({ killed.status, host.kind(out), kept_in(folder) }, { 137, nil, 12 })

    -- On a machine half as fast, so that no new record is one that is there.
    local result = tune(tree, folder, { "-o", out }, { LOOKUPC_TEST_LOAD = "2" })
    local line = "tile_vectors = %d: floats_l2: 0.900 of the time (at most 0.900), kept\n"
    check.matches(result.output, "^" .. line:format(value):gsub("%p", "%%%0"))
    check.matches(result.output, "wrote [^\n]*: tile_vectors %d %-> %d\n$")
    check.equal({ result.status, kept_in(folder) }, { 0, 12 + 9 }) -- a round and a part of one, then the other round
    local found, comment = machine_file.load(out)
    check.equal({ found.tile_vectors, found.far, comment }, { value, before.far, facts.model .. ", measured." })
    check.equal(found.cpus, { { facts.vendor, facts.family, facts.number, facts.number } })
    check.equal(found.isa, facts.isa)

    -- What is in the store is not measured again, and comes out the same.
    local again = tune(tree, folder, { "-o", folder .. "/again.lua", "--time", "0", "--json" })
    local data = json.decode(again.output)
    check.equal({ again.status, kept_in(folder), host.read(folder .. "/again.lua") }, { 0, 12 + 9, host.read(out) })
    local one = data.races[1]
    check.equal({ data.numbers.tile_vectors, one.kept, one.changes.tile_vectors }, { value, true, value })

    -- Where the schedule at hand differs from itself, or another is not faster, the number stays.
    local same = machine_file.text(setmetatable({ tile_vectors = before.tile_vectors }, { __index = found }), comment)
    for verdict, env in pairs {
        ["is too noisy at 64 tokens of floats_l2"] = { LOOKUPC_TEST_LOAD = "1 2 4 8 16" },
        ["saves too little"] = { LOOKUPC_TEST_DEFAULT_US = "9.2" },
    } do
        assert(host.remove(out))
        check.matches(tune(tree, folder, { "-o", out, "--again" }, env).output, "not kept: " .. verdict .. "\n")
        check.equal(host.read(out), same)
    end

    -- In the tree it is a CPU like all others; that of another CPU is left alone.
    local moved = host.read(folder .. "/again.lua"):gsub("{ { .- } }", '{ { "other", 1, 2, 3 } }')
    assert(host.write_file(tree .. "/gen/machines/here.lua", moved))
    local refused = tune(tree, folder, { "-o", folder .. "/other.lua" })
    check.equal({ refused.status, host.kind(folder .. "/other.lua") }, { 1, nil })
    check.matches(refused.errors, "^lookupc: %-%-machine: here: gen/machines/here.lua is of another CPU than this ")
    local planned = program.works { "--tree", tree, "plan", "gen/models/tiny.lua", "--for", "here", "--isa", "scalar" }
    check.matches(planned, "tiny")
end

return test
