-- What records say: candidates by their medians in every case that was measured, the rejected ones, and where hosts
-- disagree.
local statistics = require "harness.base.statistics"

local summary = {}

-- A comparison for table.sort by the fields `names`, missing ones first.
function summary.by(names)
    return function(a, b)
        for _, name in ipairs(names) do
            local x, y = a[name], b[name]
            if x ~= y then
                if x == nil or y == nil then return x == nil end
                return x < y
            end
        end
        return false
    end
end

-- The values of a map in the order of `names`.
local function values(map, names)
    local list = {}
    for _, value in pairs(map) do
        list[#list + 1] = value
    end
    table.sort(list, summary.by(names))
    return list
end

local case_fields = { "regime", "batch", "codes", "tables" }

-- The cases of some records, all of one key: { regime, batch, codes, tables, candidates = { {candidate, us, samples,
-- object_bytes, hosts = { [host] = us }} } }, the fastest candidate first; us: median of the samples.
function summary.cases(records)
    local cases = {}
    for _, r in ipairs(records) do
        if r.status == "ok" then
            local name = table.concat({ r.regime, r.batch, r.codes, r.tables }, " ")
            local case = cases[name]
                or { regime = r.regime, batch = r.batch, codes = r.codes, tables = r.tables, by_candidate = {} }
            cases[name] = case
            local c = case.by_candidate[r.candidate]
                or { candidate = r.candidate, object_bytes = r.object_bytes, all = {}, by_host = {} }
            case.by_candidate[r.candidate] = c
            c.object_bytes = math.max(c.object_bytes, r.object_bytes)
            c.by_host[r.host] = c.by_host[r.host] or {}
            for _, list in ipairs { c.all, c.by_host[r.host] } do
                table.move(r.samples_us, 1, #r.samples_us, #list + 1, list)
            end
        end
    end
    local list = values(cases, case_fields)
    for _, case in ipairs(list) do
        for _, c in pairs(case.by_candidate) do
            c.us, c.samples, c.hosts = statistics.median(c.all), #c.all, {}
            for host, samples in pairs(c.by_host) do
                c.hosts[host] = statistics.median(samples)
            end
            c.all, c.by_host = nil, nil
        end
        case.candidates, case.by_candidate = values(case.by_candidate, { "us", "object_bytes", "candidate" }), nil
    end
    return list
end

-- The name of the model that records of one key are about; nil: none of them says it.
function summary.model(records)
    for _, r in ipairs(records) do
        if r.model then return r.model end
    end
end

-- The rejected candidates, each reason once: { {regime, candidate, reason} }.
function summary.rejected(records)
    local found = {}
    for _, r in ipairs(records) do
        if r.status == "rejected" then
            found[r.regime .. " " .. r.candidate .. " " .. r.reason] =
                { regime = r.regime, candidate = r.candidate, reason = r.reason }
        end
    end
    return values(found, { "regime", "candidate", "reason" })
end

-- The hosts of a case and the candidate that is the fastest on each.
local function bests(case)
    local best = {}
    for _, c in ipairs(case.candidates) do
        for host, us in pairs(c.hosts) do
            local b = best[host]
            if not b or us < b.us or us == b.us and c.candidate < b.chosen.candidate then
                best[host] = { host = host, us = us, chosen = c }
            end
        end
    end
    return values(best, { "host" })
end

summary.tolerance = 0.02

-- Where the best candidate of one host is slower on another than that one's own best by more than the tolerance:
-- { {regime, batch, codes, tables, host, best, other, other_best, loss} }; host's best loses `loss` on other.
function summary.disagreements(cases)
    local list = {}
    for _, case in ipairs(cases) do
        local hosts = bests(case)
        for _, a in ipairs(hosts) do
            for _, b in ipairs(hosts) do
                local there = a.chosen.hosts[b.host]
                local loss = there and there / b.us - 1 or 0
                if loss > summary.tolerance then
                    list[#list + 1] = {
                        regime = case.regime,
                        batch = case.batch,
                        codes = case.codes,
                        tables = case.tables,
                        host = a.host,
                        best = a.chosen.candidate,
                        other = b.host,
                        other_best = b.chosen.candidate,
                        loss = loss,
                    }
                end
            end
        end
    end
    return list
end

-- Whether two hosts that raced one field are apart in what they chose: each is sure of another winner though it raced
-- the other's, too, or both chose one, but its gain on the one host is beyond the interval of the other's.
local function apart(a, b, fields)
    if a.candidate == b.candidate then
        return a.low > b.high * (1 + summary.tolerance) or b.low > a.high * (1 + summary.tolerance)
    end
    local a_field, b_field = fields[a.run], fields[b.run]
    return a.decided == "winner"
        and b.decided == "winner"
        and a_field
        and b_field
        and a_field[b.candidate]
        and b_field[a.candidate]
end

-- Where hosts disagree in the choices of a race, by their records with status "chosen" and "entered", all of one key:
-- { {regime, batches, shard, host, best, ratio, other, other_best, other_ratio} }.
function summary.choices_apart(records)
    local races, fields, seen, list = {}, {}, {}, {}
    for _, r in ipairs(records) do
        if not seen[r.check] and r.regime ~= "both" and (r.status == "chosen" or r.status == "entered") then
            local name = table.concat({ r.regime, r.batches, r.shard }, " ")
            races[name], fields[name] = races[name] or {}, fields[name] or {}
            if r.status == "chosen" and (r.decided == "winner" or r.decided == "tie") then
                table.insert(races[name], r)
            end
            local field = fields[name][r.run] or {}
            fields[name][r.run] = field
            for _, candidate in ipairs(r.field or {}) do
                field[candidate] = true
            end
        end
        seen[r.check] = true
    end
    for name, race in pairs(races) do
        for _, a in ipairs(race) do
            for _, b in ipairs(race) do
                if a.host < b.host and apart(a, b, fields[name]) then
                    list[#list + 1] = {
                        regime = a.regime,
                        batches = a.batches,
                        shard = a.shard,
                        host = a.host,
                        best = a.candidate,
                        ratio = a.ratio,
                        other = b.host,
                        other_best = b.candidate,
                        other_ratio = b.ratio,
                    }
                end
            end
        end
    end
    table.sort(
        list,
        summary.by { "regime", "batches", "shard", "host", "other", "best", "other_best", "ratio", "other_ratio" }
    )
    return list
end

-- All disagreements between hosts in the records of one key: those of `disagreements`, then those of `choices_apart`.
function summary.all_disagreements(records)
    local list, choices = summary.disagreements(summary.cases(records)), summary.choices_apart(records)
    return table.move(choices, 1, #choices, #list + 1, list)
end

return summary
