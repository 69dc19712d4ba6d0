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
-- An engine makes the slices, here or elsewhere. It has
--   slices(list) -> { { cpu, wall, whole } … }, seconds of one call, and of all that a cold one took, of slices in the
--                  order of the list: { call (a row of the job), iterations, warm (one call before that is not timed),
--                  pause (before it), repetition }
--   now()          seconds of a clock
--   show(text)     shows how far it is
--   at_once        whether to give it the slices of all repetitions at once, as each list takes its time
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

-- Finds how many slices a repetition of each kind has, how many calls a slice, and how many repetitions there are:
-- fewer slices where a call takes longer, and few repetitions of very long ones. Every kind is called once, and those
-- that are short then as often as fills a part of a slice.
local function plan(job, kinds, engine)
    -- The seconds that slices of the kinds of `list` take, with so many calls each.
    local function seconds_of(list)
        local slices, seconds = {}, {}
        for i, kind in ipairs(list) do
            slices[i] = slice(job, kind[1], kind.iterations)
        end
        for i, time in ipairs(#list > 0 and engine.slices(slices) or {}) do
            seconds[i] = math.max(time.whole or time.wall * list[i].iterations, 1e-7)
        end
        return seconds
    end
    local short = {}
    for _, kind in ipairs(kinds) do
        kind.slices, kind.iterations = 1, 1
    end
    for i, alone in ipairs(seconds_of(kinds)) do
        local kind = kinds[i]
        kind.left = job.slices == 0 and alone >= long_call and long_repetitions or math.huge
        if alone < job.min_time then
            kind.iterations = rounded(job.min_time / 8 / alone)
            short[#short + 1] = kind
        end
    end
    for i, seconds in ipairs(seconds_of(short)) do
        local kind = short[i]
        local calls = job.min_time / seconds * kind.iterations
        kind.slices = math.min(rounded(calls), math.max(1, job.slices))
        kind.iterations = rounded(calls / kind.slices)
    end
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

-- Appends what the repetitions of `list` took to `samples`: { name, cpu_us, wall_us }, in the order of the job's rows.
local function add_samples(list, times, rows, samples)
    local found, repetitions = {}, {}
    for i, s in ipairs(list) do
        local of = found[s.repetition]
        if not of then
            of = {}
            found[s.repetition], repetitions[#repetitions + 1] = of, of
        end
        of[s.call] = of[s.call] or { cpu = {}, wall = {} }
        table.insert(of[s.call].cpu, times[i].cpu)
        table.insert(of[s.call].wall, times[i].wall)
    end
    for _, of in ipairs(repetitions) do
        for _, row in ipairs(rows) do
            if of[row] then
                samples[#samples + 1] = {
                    name = row.name,
                    cpu_us = 1e6 * statistics.quantile(of[row].cpu, 0.25),
                    wall_us = 1e6 * statistics.quantile(of[row].wall, 0.25),
                }
            end
        end
    end
end

-- The samples of rounds.run by name, in the order of the repetitions: { cpu = {µs of a call, all threads}, wall = {µs},
-- share = {CPU time over wall time} }.
function rounds.by_name(list)
    local samples = {}
    for _, entry in ipairs(list) do
        local sample = samples[entry.name] or { cpu = {}, wall = {}, share = {} }
        samples[entry.name] = sample
        table.insert(sample.cpu, entry.cpu_us)
        table.insert(sample.wall, entry.wall_us)
        table.insert(sample.share, entry.cpu_us / entry.wall_us)
    end
    return samples
end

-- Returns the samples of all repetitions, and the seconds that these took.
function rounds.run(job, engine)
    local kinds, random = kinds_of(job), job.order_seed and statistics.random(job.order_seed)
    engine.show "planning"
    plan(job, kinds, engine)
    local start, lists, samples = engine.now(), {}, {}
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
        local at = engine.at_once and 1 or #lists + 1
        lists[at] = table.move(list, 1, #list, #(lists[at] or {}) + 1, lists[at] or {})
    end
    for i, list in ipairs(lists) do
        engine.show(string.format("measuring %d/%d", i, #lists))
        add_samples(list, calm(list, engine), job.calls, samples)
    end
    engine.show ""
    return samples, engine.now() - start
end

return rounds
