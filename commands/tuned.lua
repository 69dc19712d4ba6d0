-- The commands `lookupc tuned …`: what the local store of measurements holds.
local emit = require "gen.emit.emit"
local figures = require "gen.plan.figures"
local file_rules = require "commands.file_rules"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local misuse = require "gen.schema.misuse"
local process = require "process"
local record = require "harness.tune.record"
local store = require "harness.tune.store"
local stored_schedule = require "harness.tune.stored_schedule"
local summary = require "harness.tune.summary"

local commands = {}

-- The store; nil if there is none yet. Says what it recovered. to: "read", "write" or "make" it.
local function open_store(path, to)
    if to ~= "make" and not host.kind(path) then return nil end
    local opened, problem = store.open(path, to == "read")
    if problem then host.note("lookupc tuned: " .. problem) end
    return opened
end

-- Seconds since 1970 as a date, UTC.
local function date(seconds)
    -- days of eras of 400 years from 1 March 0000, as in Hinnant's "chrono-compatible low-level date algorithms"
    local days = seconds // 86400 + 719468
    local era = days // 146097
    local day_of_era = days - era * 146097
    local year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    local day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    local m = (5 * day_of_year + 2) // 153
    local month = m < 10 and m + 3 or m - 9
    return string.format(
        "%04d-%02d-%02d",
        year_of_era + era * 400 + (month <= 2 and 1 or 0),
        month,
        day_of_year - (153 * m + 2) // 5 + 1
    )
end

local function case_text(case)
    return string.format("%s, batch %d, %s codes, %s tables", case.regime, case.batch, case.codes, case.tables)
end

local function different(cases, rejected)
    local seen, count = {}, 0
    local function add(regime, candidate)
        local name = regime .. " " .. candidate
        if not seen[name] then count = count + 1 end
        seen[name] = true
    end
    for _, case in ipairs(cases) do
        for _, c in ipairs(case.candidates) do
            add(case.regime, c.candidate)
        end
    end
    for _, c in ipairs(rejected) do
        add(c.regime, c.candidate)
    end
    return count
end

-- One entry a key, as printed for machines.
local function overview(opened)
    local list = {}
    for i, row in ipairs(opened and opened:keys() or {}) do
        local records = opened:records(row.id)
        local cases, rejected = summary.cases(records), summary.rejected(records)
        local best = {}
        for j, case in ipairs(cases) do
            best[j] = {
                regime = case.regime,
                batch = case.batch,
                codes = case.codes,
                tables = case.tables,
                candidates = #case.candidates,
                candidate = case.candidates[1].candidate,
                us = case.candidates[1].us,
            }
        end
        list[i] = {
            id = row.id,
            key = row.key,
            model = summary.model(records),
            records = row.count,
            candidates = different(cases, rejected),
            rejected = #rejected,
            first = row.first,
            last = row.last,
            best = json.array(best),
        }
    end
    return list
end

function commands.list(_, options)
    local path = store.path()
    local opened <close> = open_store(path, "read")
    local list = overview(opened)
    if options.json then
        host.print(assert(json.encode { store = path, keys = json.array(list) }))
        return 0
    end
    local lines, records, width = {}, 0, 12
    local function model_of(entry) return entry.model or entry.key.model:sub(1, 12) end
    for _, entry in ipairs(list) do
        width = math.max(width, #model_of(entry))
    end
    local columns = "%-12s %-" .. width .. "s"
    if #list > 0 then
        lines[1] = string.format(
            columns .. " %-7s %-6s %-6s %8s %10s %8s %-10s %-10s %s",
            "key",
            "model",
            "isa",
            "tables",
            "proj.",
            "records",
            "candidates",
            "rejected",
            "first",
            "last",
            "machine"
        )
    end
    for _, entry in ipairs(list) do
        local k = entry.key
        records = records + entry.records
        lines[#lines + 1] = string.format(
            columns .. " %-7s %-6s %-6s %8d %10d %8d %-10s %-10s %s, %s, %s",
            entry.id:sub(1, 12),
            model_of(entry),
            k.isa,
            k.tables,
            k.projection,
            entry.records,
            entry.candidates,
            entry.rejected,
            date(entry.first),
            date(entry.last),
            k.cpu_name,
            k.compiler,
            figures.plural(k.threads, "thread")
        )
        for _, best in ipairs(entry.best) do
            lines[#lines + 1] =
                string.format("  best of %3d %9.3f us/token  %s", best.candidates, best.us, case_text(best))
        end
    end
    lines[#lines + 1] =
        string.format("%s of %s in %s", figures.plural(records, "record"), figures.plural(#list, "key"), path)
    host.print(table.concat(lines, "\n"))
    return 0
end

-- Splits the candidates of `list` into the choices that all share, as one text, and a text of its own for each.
local function shared_choices(list)
    local values, order = {}, {}
    for i, c in ipairs(list) do
        for name, value in c.candidate:gmatch("([^,=]+)=([^,=]+)") do
            if not values[name] then
                values[name] = {}
                order[#order + 1] = name
            end
            values[name][i] = value
        end
    end
    local shared, own = {}, {}
    for i in ipairs(list) do
        own[i] = {}
    end
    for _, name in ipairs(order) do
        local same = #list > 1
        for i in ipairs(list) do
            same = same and values[name][i] == values[name][1]
        end
        if same then shared[#shared + 1] = name .. "=" .. values[name][1] end
        for i in ipairs(list) do
            if not same and values[name][i] then table.insert(own[i], name .. "=" .. values[name][i]) end
        end
    end
    for i, c in ipairs(list) do
        own[i] = #own[i] > 0 and table.concat(own[i], ",") or #order == 0 and c.candidate or ""
    end
    return table.concat(shared, ","), own
end

local function disagreement_text(id, d)
    if d.batches then
        return string.format(
            "key %s: hosts disagree: %s, batches %s, shard %s: host %s chose %s at %.3f of the default's time, host \z
                %s %s at %.3f",
            id:sub(1, 12),
            d.regime,
            d.batches,
            d.shard,
            d.host,
            d.best,
            d.ratio,
            d.other,
            d.other_best,
            d.other_ratio
        )
    end
    return string.format(
        "key %s: hosts disagree: %s: the best of host %s is %.1f %% slower on host %s than its own: %s, not %s",
        id:sub(1, 12),
        case_text(d),
        d.host,
        100 * d.loss,
        d.other,
        d.best,
        d.other_best
    )
end

local function open_key(prefix)
    if prefix:find("[^0-9a-f]") or prefix == "" then
        error('"' .. prefix .. '": must be the first hexadecimal digits of a key (see lookupc tuned list)', 0)
    end
    local path = store.path()
    local opened = open_store(path, "read")
    if not opened then error(path .. ": there is no store yet", 0) end
    return opened, opened:key_of(prefix)
end

function commands.show(arguments, options)
    local opened, row = open_key(arguments[1])
    local records = opened:records(row.id)
    opened:close()
    local cases, rejected = summary.cases(records), summary.rejected(records)
    local disagreements = summary.all_disagreements(records)
    if options.json then
        for _, case in ipairs(cases) do
            json.array(case.candidates)
        end
        host.print(assert(json.encode {
            id = row.id,
            key = row.key,
            model = summary.model(records),
            records = row.count,
            cases = json.array(cases),
            rejected = json.array(rejected),
            disagreements = json.array(disagreements),
        }))
        return 0
    end
    local lines, name = { "key " .. row.id }, summary.model(records)
    if name then lines[2] = string.format("  %-13s %s", "name", name) end
    for _, field in ipairs(key.fields) do
        lines[#lines + 1] = string.format("  %-13s %s", field.name, row.key[field.name])
    end
    for _, case in ipairs(cases) do
        local shared, own = shared_choices(case.candidates)
        lines[#lines + 1] = ""
        lines[#lines + 1] = case_text(case) .. (shared ~= "" and "; all with " .. shared or "")
        lines[#lines + 1] = string.format("  %9s %7s %7s  %s", "us/token", "samples", "bytes", "choices")
        for i, c in ipairs(case.candidates) do
            lines[#lines + 1] = string.format("  %9.3f %7d %7d  %s", c.us, c.samples, c.object_bytes, own[i])
        end
    end
    if #rejected > 0 then
        lines[#lines + 1] = ""
        lines[#lines + 1] = "rejected"
        for _, c in ipairs(rejected) do
            lines[#lines + 1] = string.format("  %-4s %s: %s", c.regime, c.candidate, c.reason)
        end
    end
    for _, d in ipairs(disagreements) do
        lines[#lines + 1] = disagreement_text(row.id, d)
    end
    host.print(table.concat(lines, "\n"))
    return 0
end

-- The races of `records`, of one log, that have decided nothing: { isa, regime, shard, decided, measured (whether any
-- candidate was) }.
local function undecided_of(records)
    local list, timed = {}, {}
    local function race_of(r) return table.concat({ key.id(r.key), r.run, r.regime }, " ") end
    for _, r in ipairs(records) do
        if r.status == "ok" then timed[race_of(r)] = true end
    end
    for _, r in ipairs(records) do
        if r.status == "chosen" and r.regime ~= "both" and not stored_schedule.is_sound(r) then
            list[#list + 1] = {
                isa = r.key.isa,
                regime = r.regime,
                shard = r.shard,
                decided = r.decided,
                measured = timed[race_of(r)] or false,
            }
        end
    end
    return list
end

function commands.merge(arguments, options)
    local all, undecided, dropped_lines = {}, {}, 0
    for _, path in ipairs(arguments) do
        local records, dropped = log.read(path)
        local problem = log.problem(path, dropped)
        if problem then host.note("lookupc tuned: " .. problem) end
        dropped_lines = dropped_lines + #dropped
        for _, u in ipairs(undecided_of(records)) do
            u.log = path
            undecided[#undecided + 1] = u
        end
        table.move(records, 1, #records, #all + 1, all)
    end
    local path = store.path()
    local opened <close> = open_store(path, "make")
    local added, touched = opened:merge(all)
    local disagreements, total = {}, 0
    for _, row in ipairs(opened:keys()) do
        total = total + row.count
        for _, d in ipairs(touched[row.id] and summary.all_disagreements(opened:records(row.id)) or {}) do
            d.id = row.id
            disagreements[#disagreements + 1] = d
        end
    end
    for _, u in ipairs(options.json and {} or undecided) do
        local what = u.measured and "decided" or "measured"
        local form = "lookupc tuned: %s: shard %s of %s %s nothing for %s tokens: %s"
        host.note(form:format(u.log, u.shard, u.isa, what, u.regime, u.decided))
    end
    for _, d in ipairs(options.json and {} or disagreements) do
        host.note("lookupc tuned: " .. disagreement_text(d.id, d))
    end
    if options.json then
        host.print(assert(json.encode {
            store = path,
            read = #all,
            added = added,
            dropped = dropped_lines,
            records = total,
            undecided = json.array(undecided),
            disagreements = json.array(disagreements),
        }))
    else
        host.print(
            string.format(
                "merged %s of %s: %d new; %s in %s",
                figures.plural(#all, "record"),
                figures.plural(#arguments, "log"),
                added,
                figures.plural(total, "record"),
                path
            )
        )
    end
    return 0
end

function commands.export(arguments, options)
    file_rules.not_over("-o", options.o, { store.path() })
    local opened, row = open_key(arguments[1])
    local lines = opened:records(row.id)
    opened:close()
    for i, r in ipairs(lines) do
        lines[i] = record.line(r) .. "\n"
    end
    if options.o == "-" then
        host.print(table.concat(lines))
        return 0
    end
    assert(host.write_file(options.o, table.concat(lines)))
    host.print(string.format("wrote %s, %s of key %s", options.o, figures.plural(#lines, "record"), row.id:sub(1, 12)))
    return 0
end

function commands.prune(_, options)
    if not options.older and not options.templates then
        misuse("--older or --templates is missing: nothing says what to remove")
    end
    if options.older and options.templates then misuse("--older and --templates: give one of them") end
    local path = store.path()
    local opened <close> = open_store(path, "write")
    local removed, left = 0, 0
    if opened then
        removed = options.older and opened:prune_older(process.time() - options.older * 86400)
            or opened:prune_templates(emit.digest())
        for _, row in ipairs(opened:keys()) do
            left = left + row.count
        end
    end
    if options.json then
        host.print(assert(json.encode { store = path, removed = removed, records = left }))
    else
        host.print(string.format("removed %s of %s; %d left", figures.plural(removed, "record"), path, left))
    end
    return 0
end

return commands
