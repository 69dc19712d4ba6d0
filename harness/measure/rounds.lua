-- Times calls in slices that take turns, so that whatever else goes on meets all of them alike.
--
-- Calls of the same kind (row.alike) are timed in the same number of slices of the same number of calls. A repetition
-- of a call is one slice or several; then its time is their lower quartile: other work only ever makes a time longer.
-- Slices of a kind rotate: forward, backward, forward … One of several in which the core was taken by other work, so
-- that its CPU time is short of the wall time, is timed again, once.
--
-- A job says min_time, the seconds of one repetition; slices of a repetition, at most (0: one, without repeating);
-- repetitions; order_seed, from which the order is drawn anew in every repetition, false: it is that of the rows;
-- calls, rows { name, threads, callers, cold, tokens; turn, turns: it is timed in repetitions turn, turn + turns, … }.
--
-- An engine has
--   slices(list) -> { { cpu, wall } … }, seconds of one call, of slices in the order of the list: { call (a row of the
--                  job), iterations, warm (one call before that is not timed), pause (before it), repetition }
--   now()          seconds of a clock
--   show(text)     shows how far it is
local statistics = require "harness.base.statistics"

local rounds = {}

local own_share = 0.97 -- of wall time: less, and other work had the core
local long_call = 0.5 -- seconds: such a call meets all that others do by itself
local long_repetitions = 3
local many_calls = 16 -- in a slice of so many, of several, an untimed call before them costs little

local function slice(job, row, iterations)
    local least = job.slices > 0 and many_calls or 2
    return { call = row, iterations = iterations, warm = not row.cold and iterations >= least }
end

-- An integer of at least 1 near a number that is not negative.
local function rounded(number) return math.max(1, math.floor(number + 0.5)) end

-- The kinds of the rows of a job, in the order of their first ones: { row … }.
local function kinds_of(job)
    local kinds, known = {}, {}
    for _, row in ipairs(job.calls) do
        local name = row.alike or row.name
        if not known[name] then
            known[name] = {}
            kinds[#kinds + 1] = known[name]
        end
        table.insert(known[name], row)
    end
    return kinds
end

-- Finds how many slices a repetition of a kind has, how many calls a slice, and how many repetitions there are: fewer
-- slices where a call takes longer, and few repetitions of very long ones.
local function plan(job, kind, engine)
    local least, first = job.min_time, kind[1]
    -- Seconds of a slice, with what nobody times.
    local function timed(iterations)
        local start, s = engine.now(), slice(job, first, iterations)
        local wall = engine.slices({ s })[1].wall
        return first.cold and engine.now() - start or wall * (iterations + (s.warm and 1 or 0))
    end
    kind.slices, kind.iterations, kind.left = 1, 1, math.huge
    local alone = timed(1)
    if job.slices == 0 and alone >= long_call then kind.left = long_repetitions end
    if alone >= least then return end
    local seconds, made, more = 0, 0, 1
    while seconds < least / 8 do
        seconds, made, more = seconds + timed(more), made + more, 2 * more
    end
    local calls = least / seconds * made
    kind.slices = math.min(rounded(calls), math.max(1, job.slices))
    kind.iterations = rounded(calls / kind.slices)
end

local function shuffle(list, random)
    for left = #list, 2, -1 do
        local other = random(left)
        list[left], list[other] = list[other], list[left]
    end
end

-- The slices of one repetition of a kind, in order.
local function slices_of(job, kind, repetition, random)
    local rows, list = table.move(kind, 1, #kind, 1, {}), {}
    if random then shuffle(rows, random) end
    for number = 1, kind.slices do
        for place = 1, #rows do
            local row = rows[number % 2 == 1 and place or #rows + 1 - place]
            local s = slice(job, row, kind.iterations)
            s.repetition, s.several = repetition, kind.slices > 1
            list[#list + 1] = s
        end
    end
    return list
end

-- Whether other work had the core during a slice of several.
local function disturbed(s, time)
    local alone = (s.call.threads or 1) == 1 and (s.call.callers or 1) == 1
    return s.several and alone and time.cpu < own_share * time.wall
end

-- The times of the slices `list`; of a disturbed one and its repetition those of the calmer.
local function calm(list, engine)
    local times, again, places = engine.slices(list), {}, {}
    for i, s in ipairs(list) do
        if disturbed(s, times[i]) then
            again[#again + 1], places[#places + 1] = setmetatable({ pause = true }, { __index = s }), i
        end
    end
    for i, second in ipairs(#again > 0 and engine.slices(again) or {}) do
        local first = times[places[i]]
        if second.cpu * first.wall >= first.cpu * second.wall then times[places[i]] = second end
    end
    return times
end

-- Appends what a repetition took to `samples`: { name, cpu_us, wall_us }, in the order of the job's rows.
local function add_samples(list, times, rows, samples)
    local found = {}
    for i, s in ipairs(list) do
        found[s.call] = found[s.call] or { cpu = {}, wall = {} }
        table.insert(found[s.call].cpu, times[i].cpu)
        table.insert(found[s.call].wall, times[i].wall)
    end
    for _, row in ipairs(rows) do
        local of = found[row]
        if of then
            samples[#samples + 1] = {
                name = row.name,
                cpu_us = 1e6 * statistics.quantile(of.cpu, 0.25),
                wall_us = 1e6 * statistics.quantile(of.wall, 0.25),
            }
        end
    end
end

-- Returns the samples of all repetitions, and the seconds that these took.
function rounds.run(job, engine)
    local kinds, random, samples = kinds_of(job), job.order_seed and statistics.random(job.order_seed), {}
    engine.show "planning"
    for _, kind in ipairs(kinds) do
        plan(job, kind, engine)
    end
    local start = engine.now()
    for repetition = 0, job.repetitions - 1 do
        local now, list = {}, {}
        for _, kind in ipairs(kinds) do
            local first = kind[1]
            if repetition % (first.turns or 1) == (first.turn or 0) and kind.left > 0 then
                kind.left = kind.left - 1
                now[#now + 1] = kind
            end
        end
        if random then shuffle(now, random) end
        for _, kind in ipairs(now) do
            for _, s in ipairs(slices_of(job, kind, repetition, random)) do
                list[#list + 1] = s
            end
        end
        engine.show(string.format("measuring %d/%d", repetition + 1, job.repetitions))
        add_samples(list, calm(list, engine), job.calls, samples)
    end
    engine.show ""
    return samples, engine.now() - start
end

return rounds
