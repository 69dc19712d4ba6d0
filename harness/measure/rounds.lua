-- The rounds of a measurement: calls of the same kind in slices of a few milliseconds that take turns, so that whatever
-- else goes on meets all of them alike.
--
-- A repetition of a call is one slice or several; then its time is their lower quartile. Slices of all calls of a kind
-- rotate: forward, backward, forward … One of several in which the core was taken by other work, so that its CPU time
-- is short of the wall time, is timed again, once. An engine makes the slices, here or elsewhere; what needs no
-- decision between is handed to it at once.
--
--   rounds.run(job, engine) -> samples { {name, cpu_us, wall_us} } in the order of the repetitions, timed seconds
--
-- job: of measure.run. engine = { slices(list) -> { {cpu, wall, whole} }, of one call in seconds, and of all that the
-- slice took, nil: the wall time of its calls; now(); show(text) }; an element of the list is { call (a row of
-- job.calls), iterations, warm (one untimed call before), pause (a short sleep before) }.
local statistics = require "harness.base.statistics"

local rounds = {}

local own_share = 0.97 -- of wall time: less, and other work had the core
local long_call = 0.5 -- seconds: such a call meets all that others do by itself
local long_repetitions = 3
local many_calls = 16 -- in a slice of so many, of several, an untimed call before them costs little

-- The value that a quarter of the others are below, between two of them where none is.
local function lower_quartile(list)
    local sorted = table.move(list, 1, #list, 1, {})
    table.sort(sorted)
    local at = (#sorted - 1) / 4
    local low = math.floor(at)
    local high = math.min(low + 1, #sorted - 1)
    return sorted[low + 1] + (at - low) * (sorted[high + 1] - sorted[low + 1])
end

-- The kinds of the calls, in the order of their first ones: { {members = rows} }.
local function kinds_of(calls)
    local list, by_name = {}, {}
    for _, row in ipairs(calls) do
        local name = row.alike and "alike " .. row.alike or "alone " .. row.name
        if not by_name[name] then
            by_name[name] = { members = {} }
            list[#list + 1] = by_name[name]
        end
        table.insert(by_name[name].members, row)
    end
    return list
end

local function threads_of(row) return math.max(row.threads or 1, row.callers or 1) end

local function element(job, row, iterations, pause)
    local warm = not row.cold and iterations >= (job.slices > 0 and many_calls or 2)
    return { call = row, iterations = iterations, warm = warm, pause = pause }
end

local function whole_of(slice, iterations) return slice.whole or slice.wall * iterations end

local function rounded(number, least, most) return math.min(math.max(math.floor(number + 0.5), least), most) end

-- Slices of about the seconds that the job says: fewer where a call takes longer, and few repetitions of very long
-- ones. Every kind is called once, and those that are short then as often as fills a part of a slice.
local function plan(job, kinds, engine)
    local first, again, short = {}, {}, {}
    for i, kind in ipairs(kinds) do
        first[i] = element(job, kind.members[1], 1)
    end
    for i, slice in ipairs(engine.slices(first)) do
        local kind, alone = kinds[i], whole_of(slice, 1)
        kind.slices, kind.iterations = 1, 1
        kind.repetitions = job.slices == 0 and alone >= long_call and long_repetitions or job.repetitions
        if alone < job.min_time then
            local iterations = rounded(job.min_time / 8 / math.max(alone, 1e-7), 1, 1 << 20)
            short[#short + 1] = kind
            again[#again + 1] = element(job, kind.members[1], iterations)
        end
    end
    for i, slice in ipairs(#again > 0 and engine.slices(again) or {}) do
        local calls = job.min_time * again[i].iterations / math.max(whole_of(slice, again[i].iterations), 1e-7)
        local kind = short[i]
        kind.slices = rounded(calls, 1, math.max(job.slices, 1))
        kind.iterations = rounded(calls / kind.slices, 1, 1 << 30)
    end
end

-- Times the elements of `list`, each with `of` = { row, kind }; what was disturbed a second time. Sets each one's
-- `slice`, and returns the seconds that all of it took.
local function time(list, engine)
    local disturbed, seconds = {}, 0
    for i, slice in ipairs(engine.slices(list)) do
        local one = list[i]
        one.slice, seconds = slice, seconds + whole_of(slice, one.iterations)
        local taken = slice.cpu < own_share * slice.wall
        if one.kind.slices > 1 and threads_of(one.call) == 1 and taken then
            local again = setmetatable({ pause = true, first = one }, { __index = one })
            disturbed[#disturbed + 1] = again
        end
    end
    for i, slice in ipairs(#disturbed > 0 and engine.slices(disturbed) or {}) do
        local first = disturbed[i].first
        seconds = seconds + whole_of(slice, first.iterations)
        if slice.cpu * first.slice.wall >= first.slice.cpu * slice.wall then first.slice = slice end
    end
    return seconds
end

-- The elements of one repetition of `kind`, drawn by `shuffled`, at the end of `list`.
local function add_repetition(job, kind, list, shuffled)
    local order = shuffled(kind.members)
    for slice = 1, kind.slices do
        for place = 1, #order do
            local row = order[slice % 2 == 1 and place or #order + 1 - place]
            local one = element(job, row, kind.iterations)
            one.kind = kind
            list[#list + 1] = one
        end
    end
end

-- The samples of one repetition, whose elements are list[first..last], at the end of `samples`.
local function add_samples(list, first, last, samples)
    local times = {}
    for i = first, last do
        local one = list[i]
        local own = times[one.call] or { cpu = {}, wall = {} }
        times[one.call] = own
        table.insert(own.cpu, one.slice.cpu)
        table.insert(own.wall, one.slice.wall)
    end
    for _, row in ipairs(first <= last and list[first].kind.members or {}) do
        samples[#samples + 1] = {
            name = row.name,
            cpu_us = 1e6 * lower_quartile(times[row].cpu),
            wall_us = 1e6 * lower_quartile(times[row].wall),
        }
    end
end

function rounds.run(job, engine)
    local random = statistics.random(job.order_seed)
    local function shuffled(list)
        local drawn = table.move(list, 1, #list, 1, {})
        for left = job.draw_order and #drawn or 0, 2, -1 do
            local other = random(left)
            drawn[left], drawn[other] = drawn[other], drawn[left]
        end
        return drawn
    end
    local kinds, list, parts = kinds_of(job.calls), {}, {}
    engine.show(string.format("planning %d kinds of calls", #kinds))
    plan(job, kinds, engine)
    for repetition = 0, job.repetitions - 1 do
        local now = {}
        for _, kind in ipairs(kinds) do
            local row = kind.members[1]
            if repetition % (row.turns or 1) == (row.turn or 0) and kind.repetitions > 0 then
                kind.repetitions = kind.repetitions - 1
                now[#now + 1] = kind
            end
        end
        for _, kind in ipairs(shuffled(now)) do
            local first = #list + 1
            add_repetition(job, kind, list, shuffled)
            parts[#parts + 1] = { first, #list }
        end
    end
    engine.show(string.format("measuring %d slices", #list))
    local seconds, samples = time(list, engine), {}
    for _, part in ipairs(parts) do
        add_samples(list, part[1], part[2], samples)
    end
    engine.show ""
    return samples, seconds
end

return rounds
