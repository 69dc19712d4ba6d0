-- Times schedules at the shapes of harness/tune/machine_numbers.lua, and keeps what it has measured.
local families = require "gen.families.list"
local host = require "host"
local key = require "harness.tune.key"
local machines = require "gen.machines.list"
local model_file = require "gen.families.model_file"
local process = require "process"
local race = require "harness.tune.race"
local round = require "harness.tune.round"
local runnable = require "harness.base.runnable"
local session = require "harness.tune.session"
local statistics = require "harness.base.statistics"
local tuning = require "harness.tune.tuning"

local machine_times = {}
machine_times.__index = machine_times

-- Repetitions of a round, whole turns of the conditions; rounds at least, and at most, where the default differs from
-- itself.
local repetitions, least, most = 6, 2, 8
local resamples = 500

-- options: shapes, cpu (the numbers of this CPU that a race begins with), cc, cflags, seed, left(), keep(record),
-- records(id): those that are known of a key.
function machine_times.new(options) return setmetatable({ options = options, sessions = {} }, machine_times) end

-- The session of the shape of that name, with the best instruction set of this CPU.
function machine_times:session(name)
    local s, o = self.sessions[name], self.options
    if s then return s end
    local shape = o.shapes[name]
    local m = model_file.validate(shape.model, "", name)
    local family = families.of(m)
    local sets = runnable.sets(nil, family.isa_types(shape.options, m))
    s = session.new {
        model = m,
        family = family,
        isa = machines.with({ sets[#sets] }, o.cpu)[1],
        cc = o.cc,
        cflags = o.cflags,
        options = setmetatable({ seed = o.seed, cc = o.cc }, { __index = shape.options }),
        threads = 1,
        seed = o.seed,
        batches = { 1 },
        files = {},
        apart = true,
    }
    s.position, s.left, s.keep, s.by_text = shape.position, o.left, o.keep, {}
    local known = {}
    for _, r in ipairs(o.records(key.id(s.key))) do
        if r.cc == s.cc then known[#known + 1] = r end
    end
    session.name_run(s, known)
    self.sessions[name] = s
    return s
end

-- The schedule of the shape of that name with the numbers of `cpu`, as a text that leaves out what makes nothing.
function machine_times:schedule_of(name, cpu)
    local s = self:session(name)
    local isa = machines.with({ s.isa }, cpu)[1]
    local schedule = s.family.build(s.model, { isa }, s.options, {}).variants[1].schedule
    local text = s.schedules.used_text(schedule)
    s.by_text[text] = s.by_text[text] or schedule
    return text
end

-- Compiles and verifies the candidates of a field, the default `base` first among `names`. Returns the names of those
-- that are right; nil: the time is up.
local function built(s, field, names, base)
    if s.left() <= 0 then return nil end
    if not s.files.output then
        local packed = s.tuning.prepare(tuning.plan(s, nil), process.temporary_directory(), s.options)
        for file, path in pairs(packed) do
            s.files[file] = path
        end
    end
    local plans, right = {}, {}
    for i, name in ipairs(names) do
        plans[i] = tuning.plan(s, field[name].schedule)
    end
    for i, made in ipairs(s.shop:make(plans, nil, s.left(), true)) do
        if made.late then return nil end
        if made.failure and names[i] == base then error(s.name .. ": the schedule at hand: " .. made.failure, 0) end
        if made.failure then host.note(string.format("tuning %s: %s: %s", s.name, names[i], made.failure)) end
        if not made.failure then
            field[names[i]].made, right[#right + 1] = made, names[i]
        end
    end
    return right
end

-- What rounds { samples by name } say: the ratios by name; the default differs from itself: nil.
local function ratios_of(rounds, names, base, seed)
    local control, groups = {}, {}
    for i, samples in ipairs(rounds) do
        control[i] = statistics.paired(samples[race.twin], samples[base])
        for _, name in ipairs(names) do
            local ratios = statistics.paired(samples[name], race.reference(samples, base))
            groups[name] = table.move(ratios, 1, #ratios, #(groups[name] or {}) + 1, groups[name] or {})
        end
    end
    if not race.is_quiet(statistics.interval(control, seed, resamples), race.rules) then return nil end
    for name, ratios in pairs(groups) do
        groups[name] = statistics.centre(ratios)
    end
    return groups
end

-- See harness/tune/machine_race.lua.
function machine_times:measure(row, call)
    local s, seed = self:session(call.shape), self.options.seed
    local t = setmetatable({ regime = "both", batches = { call.tokens } }, { __index = s })
    local field, names, of = {}, {}, {}
    for i, text in ipairs { call.base, table.unpack(call.texts) } do
        local schedule = s.by_text[text]
        names[i] = s.schedules.text(schedule)
        of[text], field[names[i]] = names[i], { text = names[i], schedule = schedule }
    end
    local base, rounds, ratios, ready = names[1], {}, nil, false
    local measurer = round.measurer(t, field, base)
    local function known(h)
        h.names = { base, race.twin, table.unpack(names, 2) }
        return measurer.known(h)
    end
    -- The times of one round; nil: the time is up.
    local function times_of(number)
        local id = string.format("%s at %d, %d", row.name, s.position or 0, number)
        local h = { id = id, repetitions = repetitions }
        local samples = known(h)
        if not samples and not ready then
            names, ready = built(s, field, names, base), true
            samples = names and known(h) -- those that are wrong are not among them
        end
        if samples or not names or s.left() <= 0 then return samples end
        return measurer.measure(h.names, repetitions, seed + number, h)
    end
    while #rounds < most and not ratios do
        local number = #rounds + 1
        host.status(string.format("tuning %s at %s, %d tokens: round %d", row.name, call.shape, call.tokens, number))
        rounds[number] = times_of(number)
        if not rounds[number] then return nil end
        if number >= least then ratios = ratios_of(rounds, names, base, seed) end
    end
    if not ratios then return { why = "is too noisy" } end
    local result = {}
    for text, name in pairs(of) do
        result[text] = ratios[name]
    end
    return result
end

return machine_times
