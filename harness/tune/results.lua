-- What a tuning found, however it was found, and how it is written: as a tuned file, as JSON and as lines for people.
local figures = require "gen.plan.figures"
local json = require "json"
local machine = require "harness.base.machine"
local record = require "harness.tune.record"
local stored_schedule = require "harness.tune.stored_schedule"
local tuned_file = require "gen.request.tuned_file"
local tuning = require "harness.tune.tuning"

local results = {}

-- A result: { session, default and schedule (choices by key), races = { {regime, batches, winner, ratio, low, high,
-- samples, decided, reason, ...} }, said = where it comes from, if not measured now, late = whether the choice was left
-- because no time was left to confirm it } and, if it was measured, what harness/tune/confirm.lua adds.

-- The result that the store knows for one instruction set: that of the first compiler, or of another one that is
-- proven faster. ask(session, any) is an answer of harness/tune/stored_schedule.lua or nil, and a line; nil and the
-- line if the store does not know all of it.
function results.from_store(sessions, ask, any)
    local best
    for _, s in ipairs(sessions) do
        local found, line = ask(s, any)
        if not found then return nil, line end
        local whole = found.whole
        if not best or whole and best.whole and whole.high < best.whole.low then
            local default = tuning.plan(s, nil)
            local v = default.variants[1]
            local legal, name, value, rule = s.schedules.try(default.shape, v.isa, found.schedule)
            if not legal then
                return nil, string.format("%s; its choice %s = %s: %s", line, name, tostring(value), rule)
            end
            best = {
                whole = whole,
                session = s,
                default = v.schedule,
                schedule = legal,
                races = {},
                said = line,
                level = found.level,
                missing = found.missing,
            }
            for _, regime in ipairs { "many", "few" } do
                if found.races[regime] then
                    best.races[#best.races + 1] = record.race(found.races[regime], s.batches_text)
                end
            end
        end
    end
    return best
end

-- The result that the log `path` of a finished run tells of: its choice, or the default if it has none.
function results.from_log(sessions, path)
    local found = results.from_store(sessions, function(s)
        local choice = stored_schedule.of(s.known, s.batches_text)
        if choice and not choice.whole then choice = nil end
        return choice, path
    end)
    found = found or results.default(sessions[1], path .. ", which has chosen nothing: no time, or too noisy")
    found.level, found.from = found.level == "default" and "default" or nil, "the log of a finished run"
    return found
end

-- The default, because nothing else is known.
function results.default(session, said)
    local default = tuning.plan(session, nil).variants[1].schedule
    return { session = session, default = default, schedule = default, races = {}, level = "default", said = said }
end

-- The races of one shard.
function results.of_shard(tuned)
    local best = tuned[1].tuned
    return { session = tuned[1].session, default = best.default, schedule = best.schedule, races = best.races }
end

-- Why a result has decided nothing, in a few words: then its schedule is the default for want of knowledge. nil: it has
-- decided something.
function results.undecided(found)
    if found.level == "default" then return "no measurement decides it" end
    if found.late then return "no time was left to confirm the choice" end
    local words = {}
    for i, r in ipairs(found.races) do
        if stored_schedule.is_sound(r) then return nil end
        words[i] = string.format("%s tokens: %s", r.regime, r.decided)
    end
    if #words > 0 then return table.concat(words, ", ") end
    return not found.said and "no choice concerns calls of so many tokens" or nil
end

-- Those of `list` that have decided something.
function results.decided(list)
    local some = {}
    for _, found in ipairs(list) do
        if not results.undecided(found) then some[#some + 1] = found end
    end
    return some
end

-- What a board counts instead of time, in words; nil: it was time.
local function unit_of(found)
    local device = found.session.device
    local unit = device and device.unit
    return unit == "instructions" and "instructions a token in QEMU, which are no time" or unit and unit .. " a token"
end

-- What race `r` says, in one line; `what` was compared: "time", if absent.
function results.verdict(r, what)
    local text = r.decided .. ": the default is kept"
    if stored_schedule.is_sound(r) and not (r.low == 1 and r.high == 1) then
        local form = "%s: %.3f of the default's %s (%.3f … %.3f, %s)"
        text = form:format(r.decided, r.ratio, what or "time", r.low, r.high, figures.plural(r.samples, "pair"))
    end
    local reason = r.reason and "; " .. r.reason or ""
    local second = r.decided ~= "too noisy" and r.second
    if second then
        local form = "%s; the fastest other one %.3f (%.3f … %.3f)"
        reason = form:format(reason, second.centre, second.low, second.high)
    end
    return text .. (what and reason:gsub("faster", "less"):gsub("fastest", "least") or reason)
end

function results.threads_text(o) return o.threads == 1 and "one thread" or o.threads .. " threads" end

local function batches_of(r) return type(r.batches) == "table" and table.concat(r.batches, ", ") or r.batches end

local function concerns(r, name) return (name:find("^few%.") ~= nil) == (r.regime == "few") end

-- What is known of every choice of a result, for the comments of the tuned file.
local function notes_of(found)
    local notes = {}
    for name, value in pairs(found.schedule) do
        if value == found.default[name] then
            notes[name] = "default"
        elseif name == "few.threshold" then
            notes[name] = found.threshold
                    and string.format(
                        "calls of %s … %s tokens measured with both kernels",
                        found.threshold.probes[1],
                        found.threshold.probes[#found.threshold.probes]
                    )
                or nil
        else
            for _, r in ipairs(found.races) do
                if concerns(r, name) then
                    notes[name] = {
                        ratio = 1 / r.ratio,
                        low = 1 / r.high,
                        high = 1 / r.low,
                        samples = r.samples,
                        batch = batches_of(r),
                        counted = found.session.device and found.session.device.unit,
                    }
                end
            end
        end
    end
    return notes
end

-- The text of the tuned file. The CPU and compiler are those of the last instruction set, the best one.
function results.tuned_text(m, list, o)
    local last = list[#list].session
    local title, schedules, notes = {}, {}, {}
    local k = last.key
    title[1] = string.format(
        "%s on %s, %s, %s: tuned by lookupc for calls of %s tokens",
        m.name,
        k.cpu_name,
        k.compiler,
        results.threads_text(o),
        o.batches_text:gsub(",", ", ")
    )
    for _, found in ipairs(list) do
        schedules[found.session.isa.name], notes[found.session.isa.name] = found.schedule, notes_of(found)
        for _, r in ipairs(found.races) do
            title[#title + 1] =
                string.format("%s, %s tokens (%s): %s", found.session.isa.name, r.regime, batches_of(r), r.decided)
        end
        if found.said then title[#title + 1] = found.session.isa.name .. ": " .. found.said end
    end
    local facts = machine.cpu()
    for _, name in ipairs { "l1d", "l1i", "l2", "l3_share" } do
        if facts[name] == 0 then facts[name] = nil end -- not known
    end
    facts.threads = o.threads
    local data = {
        lookupc = tuned_file.generator(),
        model = last.digest,
        cpu = facts,
        compiler = k.compiler .. " " .. last.cflags,
        schedules = schedules,
    }
    for i, name in ipairs(last.family.types) do
        data[name] = last.types[i]
    end
    return tuned_file.text(data, title, notes)
end

-- The result as the stable JSON object of `tune --json`.
function results.summary(m, list, o)
    local sets = {}
    for i, found in ipairs(list) do
        local races, rows = {}, {}
        for j, r in ipairs(found.races) do
            local sure = stored_schedule.is_sound(r) and r or {}
            races[j] = {
                regime = r.regime,
                batches = batches_of(r),
                winner = sure.winner,
                ratio = sure.ratio,
                low = sure.low,
                high = sure.high,
                samples = r.samples,
                decided = r.decided,
                reason = r.reason,
                loss = sure.loss,
                candidates = r.field and #r.field,
                rejected = r.failed and #r.failed,
                pruned = r.rejected and #r.rejected,
                space = r.total,
                seconds = r.seconds,
            }
        end
        for j, row in ipairs(found.rows or {}) do
            local unit = unit_of(found)
            rows[j] = {
                batch = row.batch,
                default_us = not unit and row.default_us or nil,
                tuned_us = not unit and row.tuned_us or nil,
                default_count = unit and 1000 * row.default_us,
                tuned_count = unit and 1000 * row.tuned_us,
                ratio = row.ratio.centre,
                low = row.ratio.low,
                high = row.ratio.high,
                dense_us = row.dense_us,
                dense_library = row.dense_library,
            }
        end
        sets[i] = {
            isa = found.session.isa.name,
            counted = unit_of(found) and found.session.device.unit,
            compiler = found.session.version,
            cc = found.session.cc,
            schedule = found.session.schedules.text(found.schedule),
            default = found.session.schedules.text(found.default),
            undecided = results.undecided(found),
            races = json.array(races),
            results = json.array(rows),
            said = found.said,
            level = found.level,
            control = found.control and { low = found.control.low, high = found.control.high },
            late = found.late,
            missing = found.missing and json.array(found.missing) or nil,
        }
    end
    return {
        model = m.name,
        batches = json.array(o.batches),
        threads = o.threads,
        tuned = o.tuned,
        log = o.logged and o.log or nil,
        sets = json.array(sets),
    }
end

-- "gather.group 8 -> 16, few.tokens 4 -> 2"
local function changes(found, concerned)
    local list = {}
    for _, c in ipairs(found.session.schedules.choices) do
        local from, to = found.default[c.key], found.schedule[c.key]
        if from ~= to and concerned(c.key) then list[#list + 1] = string.format("%s %d -> %d", c.key, from, to) end
    end
    return #list > 0 and table.concat(list, ", ") or "the default"
end

local function race_lines(found, r, add)
    local counted = ""
    if r.field then
        counted = string.format(
            "%d candidates of %d schedules, %d wrong, %d pruned, %d without time, %.0f s",
            #r.field,
            r.total,
            #r.failed,
            #r.rejected,
            r.untried + r.unmeasured,
            r.seconds
        )
    end
    add(string.format("  %-5s %s", r.regime, counted ~= "" and counted or "batch " .. batches_of(r)))
    add("        " .. results.verdict(r, found.session.device and found.session.device.unit))
    if r.contended then add("        other work shared the core for a part of it") end
    add("        " .. changes(found, function(name) return name ~= "few.threshold" and concerns(r, name) end))
end

-- The confirmation: times of the default, of the choice and of the dense FFN.
local function confirmation_lines(found, add)
    local rivals = found.session.tuning.rivals
    local baseline = rivals and string.format(" %9s %-9s %8s", "dense FFN", "library", "x faster") or ""
    -- a board counts instructions or clocks: each stands for a nanosecond
    local unit, scale = unit_of(found), unit_of(found) and 1000 or 1
    local heads = unit and { "default", "tuned", "x fewer" } or { "default us", "tuned us", "x faster" }
    add(string.format("  %6s %11s %9s %9s %17s%s", "tokens", heads[1], heads[2], heads[3], "", baseline))
    for _, row in ipairs(found.rows) do
        local faster = row.dense_us and row.dense_us / row.tuned_us
        local dense = faster and string.format(" %9.2f %-9s %8.2f", row.dense_us, row.dense_library, faster) or ""
        local ratio, form = row.ratio, "  %6d %11.2f %9.2f %9.3f (%6.3f … %6.3f)"
        add(
            form:format(
                row.batch,
                scale * row.default_us,
                scale * row.tuned_us,
                1 / ratio.centre,
                1 / ratio.high,
                1 / ratio.low
            ) .. dense
        )
    end
    if unit then add("  counted: " .. unit) end
    local control = found.control
    local form = "  A/A control: the default measured twice differs by %.1f %% (%.3f … %.3f)."
    add(form:format(100 * math.abs(control.centre - 1), control.low, control.high))
end

-- What was timed, and where the result comes from.
local function origin_lines(m, found, o, add)
    local s = found.session
    local types = string.format(s.tuning.types_text, s.key.tables, s.key.projection)
    local form = "%s on %s, %s %s, %s, %s: %s"
    add(form:format(m.name, s.key.cpu_name, s.version, s.cflags, results.threads_text(o), types, s.isa.name))
    local blocks = s.tuning.count and s.tuning.count(m) or m.layers
    if s.model.layers ~= blocks then add(string.format("  timed: %d of its %d blocks", s.model.layers, blocks)) end
    if found.said then
        local from = found.from or "the store"
        add(string.format("  from %s, nothing measured (--again measures): %s", from, found.said))
    end
    for _, lacking in ipairs(found.missing or {}) do
        add("  missing: shard " .. lacking)
    end
end

-- The result for people.
function results.lines(m, list, o)
    local lines = {}
    local function add(text) lines[#lines + 1] = text end
    for _, found in ipairs(list) do
        origin_lines(m, found, o, add)
        for _, r in ipairs(found.races) do
            race_lines(found, r, add)
        end
        local t = found.threshold
        local kept = t and t.from == t.to
        if t then add("  few.threshold " .. (kept and t.to .. ", the default" or t.from .. " -> " .. t.to)) end
        if found.late then add "  no time was left to confirm the choice: the default is kept" end
        for regime in pairs(found.reverted or {}) do
            add(string.format("  %s: taken back: slower than the default in the run below that confirms it", regime))
        end
        if found.rows then confirmation_lines(found, add) end
        for _, c in ipairs(#(found.compilers or {}) > 1 and found.compilers or {}) do
            local what = found.session.device and found.session.device.unit or "time"
            add(string.format("  %-8s %.3f of the default's %s, %s", c.cc, c.ratio, what, c.version))
        end
    end
    return lines
end

return results
