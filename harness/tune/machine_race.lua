-- Decides the numbers of a CPU one after the other, by the times of the schedules that they make; measures nothing
-- itself.
local figures = require "gen.plan.figures"

local machine_race = {}

-- A value is kept if it saves this much of the time, in the geometric mean of the calls that it changes, and none of
-- them takes this much longer.
local tolerance = 0.03

-- `cpu` with these numbers.
local function changed(cpu, changes)
    local copy = {}
    for _, map in ipairs { cpu, changes } do
        for field, value in pairs(map) do
            copy[field] = value
        end
    end
    return copy
end

-- The sizes that the row may become: each of the shapes may be the largest that is below it, or none.
local function sizes_of(row, shapes)
    local sizes, values = {}, { 0 }
    for i, name in ipairs(row.shapes) do
        sizes[i] = shapes[name].bytes
    end
    table.sort(sizes)
    for i = 2, #sizes do
        if sizes[i] > sizes[i - 1] then values[#values + 1] = sizes[i - 1] end
    end
    values[#values + 1] = math.huge
    return values
end

-- What of a CPU's numbers the row may change: a list of changes.
local function changes_of(row, shapes)
    local values, list = row.values or sizes_of(row, shapes), {}
    for _, beside in ipairs(row.beside or { {} }) do
        for _, value in ipairs(values) do
            list[#list + 1] = changed(beside, { [row.name] = value })
        end
    end
    return list
end

-- The calls at which candidates { changes, cpu } differ from `cpu`: { shape, tokens, base (its schedule), of: the
-- schedule of each candidate that differs }, schedules as texts.
local function calls_of(row, cpu, candidates, schedule_of)
    local list = {}
    for _, shape in ipairs(row.shapes) do
        local base, of = schedule_of(shape, cpu), {}
        for _, one in ipairs(candidates) do
            local text = schedule_of(shape, one.cpu)
            if text ~= base then of[one] = text end
        end
        for _, tokens in ipairs(next(of) and row.tokens or {}) do
            list[#list + 1] = { shape = shape, tokens = tokens, base = base, of = of }
        end
    end
    return list
end

-- The schedules of a call that are still to be timed: those of candidates that nothing speaks against.
local function texts_of(call, candidates)
    local list, seen = {}, {}
    for _, one in ipairs(candidates) do
        local text = not one.why and call.of[one]
        if text and not seen[text] then list[#list + 1] = text end
        seen[text or ""] = true
    end
    return list
end

-- Adds what the `ratios` of a call say to the candidates that were timed: calls, how many they are, total, the sum of
-- the logarithms of their ratios, worst, the largest of these, and why the candidate cannot be kept, nil: it can.
local function judge(call, candidates, ratios)
    for _, one in ipairs(candidates) do
        local text = not one.why and call.of[one]
        local ratio = text and ratios[text]
        if ratio then
            one.calls, one.total = one.calls + 1, one.total + math.log(ratio)
            one.worst = math.max(one.worst, ratio)
        end
        local why = text and (not ratio and (ratios.why or "is wrong") or ratio > 1 + tolerance and "is slower")
        local tokens = figures.plural(call.tokens, "token")
        one.why = why and string.format("%s at %s of %s", why, tokens, call.shape) or one.why
    end
end

-- The best of the candidates that save enough.
local function best_of(candidates)
    local best
    for _, one in ipairs(candidates) do
        one.ratio = one.calls > 0 and math.exp(one.total / one.calls) or nil
        if one.ratio and not one.why and one.ratio > 1 - tolerance then one.why = "saves too little" end
        if one.ratio and not one.why and (not best or one.total < best.total) then best = one end
    end
    return best
end

-- Decides the `rows` of harness/tune/machine_numbers.lua, with its `shapes`, from the numbers of `cpu` on:
--   schedule_of(shape, cpu)   the text of its schedule
--   measure(row, call)        the times of the schedules call.texts over that of call.base, by text, at call.tokens
--                             tokens of call.shape; { why }: they say nothing; nil: the time is up
--   note(row, one, kept)      is told of each set of changes that makes other schedules: { changes, calls, ratio (in
--                             the mean), worst, why }
-- Returns the numbers, and the row before which the time was up, nil: all are decided.
function machine_race.run(race)
    local cpu = race.cpu
    for _, row in ipairs(race.rows) do
        local candidates = {}
        for i, changes in ipairs(changes_of(row, race.shapes)) do
            candidates[i] = { changes = changes, cpu = changed(cpu, changes), calls = 0, total = 0, worst = 0 }
        end
        for _, call in ipairs(calls_of(row, cpu, candidates, race.schedule_of)) do
            call.texts = texts_of(call, candidates)
            local ratios = #call.texts == 0 and {} or race.measure(row, call)
            if not ratios then return cpu, row end
            judge(call, candidates, ratios)
        end
        local best = best_of(candidates)
        for _, one in ipairs(candidates) do
            if one.ratio or one.why then race.note(row, one, one == best) end
        end
        cpu = best and best.cpu or cpu
    end
    return cpu
end

return machine_race
