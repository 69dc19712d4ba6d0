-- Which schedule the records of one key say to take: that of a whole tuning, or the best of those of its shards.
local one_of = require "gen.schema.one_of"
local space = require "gen.plan.space"

local stored_schedule = {}

local tolerance = 0.01 -- ratios this close are equal: then the smaller object code counts, then the default

-- What a race decided that says something; otherwise it has kept the default for want of knowledge.
stored_schedule.sound = { "winner", "tie" }

function stored_schedule.is_sound(r) return one_of.contains(stored_schedule.sound, r.decided) end

-- The fastest of several choices against their defaults, whatever their order.
local function best(list)
    local least = math.huge
    for _, r in ipairs(list) do
        least = math.min(least, r.ratio)
    end
    local found
    local function rank(r)
        local is_default = r.low == 1 and r.high == 1 -- nothing else is that sure
        return string.format(
            "%020d %s %s %s",
            r.object_bytes or math.maxinteger,
            is_default and "default" or "other",
            r.candidate,
            r.check
        )
    end
    for _, r in ipairs(list) do
        if r.ratio <= least * (1 + tolerance) and (not found or rank(r) < rank(found)) then found = r end
    end
    return found
end

-- The shards of one regime's races that have decided nothing, by their records with status "entered" or "chosen": {
-- "2/4", "3/4, too noisy" }. Of several numbers of shards that counts of which the larger part has decided, then the
-- smaller one.
local function missing(list)
    local sets = {}
    for _, r in ipairs(list) do
        local i, n = r.shard:match("^(%d+)/(%d+)$")
        i, n = math.tointeger(tonumber(i)), math.tointeger(tonumber(n))
        if n then
            local set = sets[n] or { n = n, count = 0, decided = {}, why = {} }
            sets[n] = set
            if r.status == "chosen" and stored_schedule.is_sound(r) then
                set.count = set.count + (set.decided[i] and 0 or 1)
                set.decided[i] = true
            elseif r.status == "chosen" then
                if not set.why[i] or r.decided > set.why[i] then set.why[i] = r.decided end
            end
        end
    end
    local found
    for _, set in pairs(sets) do
        local more = found and set.count * found.n - found.count * set.n
        if not found or more > 0 or more == 0 and set.n < found.n then found = set end
    end
    local lacks = {}
    for i = 1, found and found.n or 0 do
        if not found.decided[i] then
            lacks[#lacks + 1] = string.format("%d/%d%s", i, found.n, found.why[i] and ", " .. found.why[i] or "")
        end
    end
    return lacks
end

-- Those of `list` with the run `run`.
local function of_run(list, run)
    local own = {}
    for _, r in ipairs(list) do
        if r.run == run then own[#own + 1] = r end
    end
    return own
end

-- The answer of `records`, all of one key, for the `batches` such as "1,64", or nil: { schedule, races = { [regime] =
-- the record that chose it }, whole = the record of a whole tuning or nil, missing = { "many 2/4", "many 3/4, too
-- noisy" } shards that have decided nothing }. Neither the order of the records nor their repetition matters.
function stored_schedule.of(records, batches)
    local raced, sound, whole = { many = {}, few = {} }, { many = {}, few = {} }, nil
    for _, r in ipairs(records) do
        if (r.status == "chosen" or r.status == "entered") and r.batches == batches then
            if raced[r.regime] then
                table.insert(raced[r.regime], r)
                if r.status == "chosen" and stored_schedule.is_sound(r) then table.insert(sound[r.regime], r) end
            elseif r.status == "chosen" and stored_schedule.is_sound(r) then
                local newer = not whole or r.time > whole.time or (r.time == whole.time and r.check > whole.check)
                whole = newer and r or whole
            end
        end
    end
    local found = { races = {}, whole = whole, missing = {} }
    for _, regime in ipairs { "few", "many" } do
        found.races[regime] = best(whole and of_run(sound[regime], whole.run) or sound[regime])
        for _, shard in ipairs(whole and {} or missing(raced[regime])) do
            found.missing[#found.missing + 1] = regime .. " " .. shard
        end
    end
    if whole then
        found.schedule = space.read(whole.candidate)
    elseif next(found.races) then
        -- choices of few tokens from the race for few, all others from that for many
        local many, few = found.races.many or found.races.few, found.races.few or found.races.many
        found.schedule = space.read(many.candidate)
        for name, value in pairs(space.read(few.candidate)) do
            if name:find("^few%.") and name ~= "few.threshold" then found.schedule[name] = value end
        end
    else
        return nil
    end
    return found
end

-- The answer that the store has for key `wanted` and `batches`, at the nearest level, and a line that says which one it
-- was and why nearer records were refused: found, line. found is nil if there is none.
function stored_schedule.look_up(store, wanted, batches)
    local near = store:look_up(wanted, { status = "chosen", batches = batches, decided = stored_schedule.sound })
    local found = stored_schedule.of(near.records, batches)
    if found then
        found.level, found.id = near.level, near.id
    end
    return found, store.say(near)
end

return stored_schedule
