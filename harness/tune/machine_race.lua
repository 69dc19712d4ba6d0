-- Decides the numbers of a CPU one after the other, by the times of the schedules that they make; measures nothing
-- itself.
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

-- What of `cpu` the row may become: a list of changes of its numbers.
local function changes_of(row, shapes)
    local values, list = row.values, {}
    if not values then
        values = { 0 }
        for _, name in ipairs(row.shapes) do
            values[#values + 1] = shapes[name].bytes
        end
        table.sort(values)
        values[#values] = math.huge -- beyond the largest
    end
    for _, beside in ipairs(row.beside or { {} }) do
        for _, value in ipairs(values) do
            list[#list + 1] = changed(beside, { [row.name] = value })
        end
    end
    return list
end

-- The calls at which candidates { changes, cpu } differ from `cpu`: { shape, tokens, base (schedule), texts: different
-- ones, of: the text of each candidate, nil: as the base }.
local function calls_of(row, cpu, candidates, schedule_of)
    local list = {}
    for _, shape in ipairs(row.shapes) do
        local base, texts, of = schedule_of(shape, cpu), {}, {}
        for _, one in ipairs(candidates) do
            local text = schedule_of(shape, one.cpu)
            if text ~= base then
                if not texts[text] then texts[#texts + 1], texts[text] = text, true end
                of[one] = text
            end
        end
        for _, tokens in ipairs(#texts > 0 and row.tokens or {}) do
            list[#list + 1] = { shape = shape, tokens = tokens, base = base, texts = texts, of = of }
        end
    end
    return list
end

-- What the calls, whose `ratios` are known, say of a candidate: { changes, calls (how many it changes), ratio (their
-- mean), worst (the largest), total (the sum of the logarithms), why (it cannot be kept, nil: it can) }.
local function verdict_of(one, calls)
    local v = { changes = one.changes, calls = 0, total = 0, worst = 0 }
    for _, call in ipairs(calls) do
        local ratio = call.ratios[call.of[one]]
        if call.of[one] and not ratio then return changed(v, { why = call.ratios.why or "is wrong", calls = 1 }) end
        if ratio then
            v.calls, v.total, v.worst = v.calls + 1, v.total + math.log(ratio), math.max(v.worst, ratio)
        end
    end
    v.ratio = v.calls > 0 and math.exp(v.total / v.calls) or nil
    v.why = v.calls == 0 and "changes nothing"
        or v.ratio > 1 - tolerance and "saves too little"
        or v.worst > 1 + tolerance and "is slower somewhere"
        or nil
    return v
end

-- Decides the `rows` of harness/tune/numbers.lua, with its `shapes`, from the numbers of `cpu` on:
--   schedule_of(shape, cpu)   the text of its schedule
--   measure(row, call)        the times of the schedules call.texts over that of call.base, by text, at call.tokens
--                             tokens of call.shape; { why }: they say nothing; nil: the time is up
--   note(row, verdict, kept)  is told what was found of each set of changes, see verdict_of
-- Returns the numbers, and the row before which the time was up, nil: all are decided.
function machine_race.run(race)
    local cpu = race.cpu
    for _, row in ipairs(race.rows) do
        local candidates, best, verdicts = {}, nil, {}
        for i, changes in ipairs(changes_of(row, race.shapes)) do
            candidates[i] = { changes = changes, cpu = changed(cpu, changes) }
        end
        local calls = calls_of(row, cpu, candidates, race.schedule_of)
        for _, call in ipairs(calls) do
            call.ratios = race.measure(row, call)
            if not call.ratios then return cpu, row end
        end
        for i, one in ipairs(candidates) do
            local v = verdict_of(one, calls)
            verdicts[i] = v
            if not v.why and (not best or v.total < verdicts[best].total) then best = i end
        end
        for i, v in ipairs(verdicts) do
            if v.calls > 0 then race.note(row, v, i == best) end
        end
        cpu = best and candidates[best].cpu or cpu
    end
    return cpu
end

return machine_race
