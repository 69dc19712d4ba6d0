-- Which schedule the records of one key say to take: that of a whole tuning, or the best of those of its shards.
local schedule = require "gen.schedule"

local choice = {}

local tolerance = 0.01 -- ratios this close are equal: then the smaller object code counts

-- What a race decided that says something; otherwise it has kept the default for want of knowledge.
local sound = { "winner", "tie" }

-- The fastest of several choices against their defaults, whatever their order.
local function best(list)
    local least = math.huge
    for _, r in ipairs(list) do least = math.min(least, r.ratio) end
    local found
    local function rank(r) return string.format("%020d %s %s", r.object_bytes or 0, r.candidate, r.check) end
    for _, r in ipairs(list) do
        if r.ratio <= least * (1 + tolerance) and (not found or rank(r) < rank(found)) then found = r end
    end
    return found
end

-- The shards "i/n" that `list` lacks, for the n of its records; of several n the one whose records say more.
local function missing(list)
    local sets = {}
    for _, r in ipairs(list) do
        local i, n = r.shard:match("^(%d+)/(%d+)$")
        if i then
            sets[n] = sets[n] or { n = tonumber(n), count = 0 }
            if not sets[n][i] then sets[n].count = sets[n].count + 1 end
            sets[n][i] = true
        end
    end
    local found
    for _, set in pairs(sets) do
        if not found or set.n - set.count < found.n - found.count or (set.n - set.count == found.n - found.count and set.n < found.n) then found = set end
    end
    local lacks = {}
    for i = 1, found and found.n or 0 do
        if not found[tostring(i)] then lacks[#lacks + 1] = string.format("%d/%d", i, found.n) end
    end
    return lacks
end

-- The choice of `records`, all of one key, for the batches "1,64,4096", or nil: { schedule, races = { [regime] = the record that chose it },
-- whole = the record of a whole tuning or nil, missing = { "2/4" } shards that have not reported }.
function choice.of(records, batches)
    local by_regime, whole = {}, nil
    for _, r in ipairs(records) do
        if r.status == "chosen" and r.batches == batches and (r.decided == sound[1] or r.decided == sound[2]) then
            if r.regime == "both" then
                local newer = not whole or r.time > whole.time or (r.time == whole.time and r.check > whole.check)
                whole = newer and r or whole
            else
                by_regime[r.regime] = by_regime[r.regime] or {}
                table.insert(by_regime[r.regime], r)
            end
        end
    end
    local found = { races = {}, whole = whole, missing = {} }
    for regime, list in pairs(by_regime) do
        local of_run = {}
        for _, r in ipairs(list) do
            if whole and r.run == whole.run then of_run[#of_run + 1] = r end
        end
        found.races[regime] = best(#of_run > 0 and of_run or list)
        if not whole then
            for _, shard in ipairs(missing(list)) do found.missing[#found.missing + 1] = regime .. " " .. shard end
        end
    end
    table.sort(found.missing)
    if whole then
        found.schedule = schedule.parse(whole.candidate)
    elseif next(found.races) then
        -- choices of few tokens from the race for few, all others from that for many
        local many, few = found.races.many or found.races.few, found.races.few or found.races.many
        found.schedule = schedule.parse(many.candidate)
        for name, value in pairs(schedule.parse(few.candidate)) do
            if name:find("^few%.") and name ~= "few.threshold" then found.schedule[name] = value end
        end
    else
        return nil
    end
    return found
end

-- The choice that the store has for key `wanted` and `batches`, at the nearest level, and a line that says which one it was and why nearer
-- records were refused: found, line. found is nil if there is none.
function choice.look_up(store, wanted, batches)
    local near = store:look_up(wanted, { status = "chosen", batches = batches, decided = sound })
    local found = choice.of(near.records, batches)
    if found then found.level, found.id = near.level, near.id end
    return found, store.say(near)
end

return choice
