-- `lookupc tune --machine NAME`: measures this CPU and writes its file for gen/machines/.
local cpu = require "harness.base.cpu"
local file_rules = require "commands.file_rules"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local lua_text = require "gen.schema.lua_text"
local machine_file = require "harness.tune.machine_file"
local machine_numbers = require "harness.tune.machine_numbers"
local machine_race = require "harness.tune.machine_race"
local machine_times = require "harness.tune.machine_times"
local machines = require "gen.machines.list"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local one_of = require "gen.schema.one_of"
local process = require "process"
local store = require "harness.tune.store"

local nothing_decided = 3 -- exit status

-- The file of this CPU, of which cpu.describe() said `facts`, as it would be without a measurement: what is in `path`,
-- or in the file of that name, or else the numbers of the nearest CPU. Returns it and its comment; raises one line if
-- the file is of another CPU.
local function start_of(name, path, facts, asked)
    local here = string.format("%s family %d model %d", facts.vendor, facts.family, facts.number)
    local listed = one_of.contains(machines.names, name) and "gen/machines/" .. name .. ".lua"
    local from = host.kind(path) and path or listed
    local near, apart = machines.nearest(facts.vendor, facts.family, facts.number)
    if from then
        local known, comment
        if from == path then
            known, comment = machine_file.load(path)
        else
            known, comment = machines.get(name), host.resource(listed):match "^%-%- ([^\n]*)"
        end
        if machines.distance(known, facts.vendor, facts.family, facts.number) ~= 0 then
            error(string.format("--machine: %s: %s is of another CPU than this one, %s", name, from, here), 0)
        end
        return known, comment:gsub("from data sheets", "measured")
    end
    if apart == 0 and not asked then
        misuse(string.format("--machine: %s: this CPU, %s, is that of %s: give that name, or -o", name, here, near))
    end
    local own, best = {}, isa.get(facts.isa[#facts.isa])
    for field, value in pairs(machines.get(near)) do
        own[field] = value
    end
    own.cpus = { { facts.vendor, facts.family, facts.number, facts.number } }
    own.architecture, own.isa, own.l2_bytes = best.architecture, facts.isa, facts.l2 or 0
    return own, facts.model .. ", measured."
end

-- "far = 128 << 20, far_lines = 1"
local function shown(changes)
    local list = {}
    for i, field in ipairs(lua_text.keys(changes)) do
        list[i] = field .. " = " .. machine_file.value(changes[field])
    end
    return table.concat(list, ", ")
end

-- What was found of one set of changes, in one line.
local function line_of(row, one, kept)
    local ratio = one.ratio and string.format("%.3f of the time (at most %.3f), ", one.ratio, one.worst) or ""
    local verdict = kept and "kept" or "not kept: " .. (one.why or "another value saves more")
    local shapes_text = table.concat(row.shapes, ", "):gsub(", .* ", " … ")
    return string.format("%s: %s: %s%s", shown(one.changes), shapes_text, ratio, verdict)
end

-- The numbers of `cpu` by name, as JSON has them: none that is infinite.
local function finite(cpu_numbers)
    local list = {}
    for field, value in pairs(cpu_numbers) do
        if math.type(value) == "integer" then list[field] = value end
    end
    return list
end

-- The numbers in which `after` differs from `before`, as text.
local function differences(before, after)
    local list = {}
    for _, group in ipairs(machines.fields) do
        for _, field in ipairs(group) do
            local a, b = before[field], after[field]
            local form = a ~= b and "%s %s -> %s"
            if form then list[#list + 1] = form:format(field, machine_file.value(a), machine_file.value(b)) end
        end
    end
    return #list > 0 and table.concat(list, ", ") or "no number has changed"
end

-- Returns the exit status; `seconds`: what the whole run may take.
return function(options, seconds)
    local start, name, facts = process.clock(), options.machine, cpu.describe()
    if not name:find "^%l[%l%d-]*$" or #name > 40 or name == "list" or name == machines.nominal then
        misuse('--machine: "' .. name .. '": must be a name in small letters, digits and -, not list or generic')
    end
    if options.cc:find "," then misuse("--cc: " .. options.cc .. ": must be one compiler beside --machine") end
    local path = options.o or "gen/machines/" .. name .. ".lua"
    file_rules.can_become("-o", path)
    if options.json then file_rules.json_can_hold("-o", path) end
    local own, comment = start_of(name, path, facts, options.o)
    if facts.mask then misuse "LOOKUPC_CPU: --machine: a CPU is measured with all that it has: unset the variable" end
    if seconds > 0 then measure.program() end
    local opened <close>, problem = store.open(store.path(), seconds == 0)
    if problem then host.note("lookupc tune: " .. problem) end
    process.last_words("\nlookupc tune: interrupted: the same command goes on, with what is in " .. opened.path .. "\n")
    local races, timed = {}, machine_times.new {
        shapes = machine_numbers.shapes,
        cpu = own,
        cc = options.cc,
        cflags = options.cflags,
        seed = options.seed,
        left = function() return start + seconds - process.clock() end,
        keep = function(r) opened:merge { r } end,
        records = function(id) return options.again and {} or opened:records(id) end,
    }
    local found, open = machine_race.run {
        rows = machine_numbers.rows,
        shapes = machine_numbers.shapes,
        cpu = own,
        schedule_of = function(...) return timed:schedule_of(...) end,
        measure = function(...) return timed:measure(...) end,
        note = function(row, one, kept)
            host.status ""
            if not options.json then host.print(line_of(row, one, kept)) end
            races[#races + 1] = {
                changes = finite(one.changes),
                calls = one.calls,
                ratio = one.ratio,
                worst = one.ratio and one.worst,
                kept = kept,
                why = not kept and (one.why or "another value saves more") or nil,
            }
        end,
    }
    host.status ""
    process.last_words ""
    if open then
        local form = "lookupc tune: --time: was up at %s: nothing is written; the same command goes on"
        host.note(form:format(open.name))
        return nothing_decided
    end
    assert(host.write_file(path, machine_file.text(found, comment)))
    if options.json then
        host.print(assert(json.encode { file = path, numbers = finite(found), races = json.array(races) }))
    else
        host.print(string.format("wrote %s: %s", path, differences(own, found)))
    end
    return 0
end
