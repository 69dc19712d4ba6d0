-- The page of `tune --html`: all candidates of each race, its finals, what was left out and why, and what was chosen.
local chart = require "harness.report.chart"
local figures = require "gen.plan.figures"
local html = require "harness.report.html"
local race = require "harness.tune.race"
local results = require "harness.tune.results"
local statistics = require "harness.base.statistics"

local page = {}

local shown_examples = 5 -- of what was left out for one reason
local dashes = { default = "", dense = "7 3" }

-- "gather.group 16, few.tokens 2": the choices of schedule `s`, of `space`, that are not those of `default`.
local function differences(space, default, s)
    local list = {}
    for _, c in ipairs(space.choices) do
        if s[c.key] ~= default[c.key] then list[#list + 1] = string.format("%s %d", c.key, s[c.key]) end
    end
    return #list > 0 and table.concat(list, ", ") or "the default"
end

local function regime_name(r) return r.regime == "few" and "few tokens" or "many tokens" end

-- "1, 64 tokens" of a list or of "1,64".
local function calls_text(batches)
    local text = type(batches) == "table" and table.concat(batches, ", ") or batches:gsub(",", ", ")
    return text .. (text == "1" and " token" or " tokens")
end

local function kib(bytes) return string.format("%.1f", bytes / 1024) end

local function ratio_text(ratio) return ratio and string.format("%.3f", ratio) or "–" end

local function interval_text(low, high) return low and string.format("%.3f … %.3f", low, high) or "–" end

-- The candidates of race `r` in the order of their field, the default first: { name, schedule, bytes, changes, ratio,
-- us, samples, left }: time over the default's by the round that knows most samples of it, nil if there is none; that
-- of the default's µs a token, for times of few samples compare only with others of their round; and why it left the
-- race.
local function candidates_of(r)
    local list, by_name, times = {}, {}, {}
    local default = r.field[1]
    for i, c in ipairs(r.field) do
        list[i] = {
            name = c.text,
            schedule = c.schedule,
            bytes = c.made.bytes,
            changes = differences(r.space, default.schedule, c.schedule),
            samples = 0,
        }
        by_name[c.text] = list[i]
    end
    for _, event in ipairs(r.history) do
        local c = by_name[event.candidate]
        if c and event.phase ~= "confirm" and event.ratio and event.samples >= c.samples then
            c.ratio, c.time, c.samples = event.ratio, event.time, event.samples
        end
        if c and event.dropped then
            c.left = string.format(
                "%s %d: %s",
                event.phase == "final" and "finals" or event.phase == "confirm" and "confirmation" or "halving",
                event.rung,
                event.dropped
            )
        end
        if event.phase == "halving" and event.ratio then times[#times + 1] = event.time / event.ratio end
    end
    list[1].ratio = 1
    local default_us = list[1].time or statistics.median(times)
    for _, c in ipairs(list) do
        c.us = c.ratio and default_us and c.ratio * default_us
    end
    if by_name[r.winner] then by_name[r.winner].chosen = true end
    return list
end

local function with_ratio(candidates)
    local list = {}
    for _, c in ipairs(candidates) do
        if c.ratio then list[#list + 1] = c end
    end
    return list
end

-- The dense FFN's time over the default's: geometric mean over the batches of race `r`, nil if it was not measured.
local function dense_ratio(rows, r)
    local sum, count = 0, 0
    for _, row in ipairs(rows or {}) do
        for _, batch in ipairs(r.batches) do
            if row.batch == batch and row.dense_us then
                sum, count = sum + math.log(row.dense_us / row.default_us), count + 1
            end
        end
    end
    return count > 0 and math.exp(sum / count) or nil
end

-- The values of choice `key` in `candidates`, ascending: { value, times = their ratios }.
local function groups_of(candidates, key)
    local list, by_value = {}, {}
    for _, c in ipairs(candidates) do
        local value = c.schedule[key]
        if not by_value[value] then
            by_value[value] = { value = value, times = {} }
            list[#list + 1] = by_value[value]
        end
        table.insert(by_value[value].times, c.ratio)
    end
    table.sort(list, function(a, b) return a.value < b.value end)
    return list
end

-- The sum of the squared differences of log time from their mean, and how many there are.
local function scatter_of(lists)
    local sum, count, squares = 0, 0, 0
    for _, list in ipairs(lists) do
        for _, time in ipairs(list) do
            sum, count = sum + math.log(time), count + 1
        end
    end
    for _, list in ipairs(lists) do
        for _, time in ipairs(list) do
            squares = squares + (math.log(time) - sum / count) ^ 2
        end
    end
    return squares, count
end

-- Which share of the variance of log time these groups explain, less what as many groups drawn by chance would.
-- Source: epsilon squared of Kelley, "An unbiased correlation ratio measure" (1935).
local function explained(groups)
    local all, within = {}, 0
    for i, group in ipairs(groups) do
        all[i] = group.times
        within = within + scatter_of { group.times }
    end
    local total, count = scatter_of(all)
    if total == 0 or count <= #groups then return 0 end
    return math.max(0, 1 - within / (count - #groups) / (total / (count - 1)))
end

-- The choices that differ among `candidates`, the one that explains most of their times first: { key, doc, groups,
-- share }.
local function choices_of(space, candidates)
    local list = {}
    for i, c in ipairs(space.choices) do
        local groups = groups_of(candidates, c.key)
        if #groups > 1 then
            list[#list + 1] = { key = c.key, doc = c.doc, groups = groups, share = explained(groups), place = i }
        end
    end
    table.sort(list, function(a, b)
        if a.share ~= b.share then return a.share > b.share end
        return a.place < b.place
    end)
    return list
end

-- Colour, shape and name of every value of a choice; neighbouring values share one where there are more values than
-- colours.
local function legend_of(choice)
    local look, legend, values = {}, {}, choice and choice.groups or {}
    local together = math.max(1, (#values + html.colours - 1) // html.colours)
    local count = (#values + together - 1) // together
    for i = 1, count do
        local first, last = values[(i - 1) * together + 1], values[math.min(i * together, #values)]
        local entry = {
            colour = count == 1 and 1 or 1 + (i - 1) * (html.colours - 1) // (count - 1),
            shape = chart.shapes[(i - 1) % #chart.shapes + 1],
            label = choice.key .. " " .. (first == last and first.value or first.value .. " … " .. last.value),
        }
        legend[i] = entry
        for v = (i - 1) * together + 1, math.min(i * together, #values) do
            look[values[v].value] = entry
        end
    end
    return look, legend
end

-- An axis of times over the default's that holds `values`, 1 and the dense FFN's, if that is near: beyond the axis it
-- is drawn at its end.
local function time_axis(values, dense)
    local from, to = 0.97, 1.03
    for _, value in ipairs(values) do
        from, to = math.min(from, value / 1.02), math.max(to, value * 1.02)
    end
    if dense and dense <= 1.5 * to and dense >= from / 1.5 then
        from, to = math.min(from, dense / 1.02), math.max(to, dense * 1.02)
    end
    return { label = "time over the default's", from = from, to = to, log = true }
end

local function horizontal(axes, y) return { { axes.x.from, y }, { axes.x.to, y } } end

-- The lines of the default and of the dense FFN.
local function reference_lines(axes, dense)
    local lines = { { label = "default", dash = dashes.default, points = horizontal(axes, 1) } }
    if dense then
        local beyond = dense > axes.y.to and " ↑" or dense < axes.y.from and " ↓" or ""
        lines[2] = {
            label = string.format("dense FFN %.2f%s", dense, beyond),
            dash = dashes.dense,
            points = horizontal(axes, math.max(axes.y.from, math.min(axes.y.to, dense))),
        }
    end
    return lines
end

local function dense_caption(axes, dense)
    if not dense or (dense <= axes.y.to and dense >= axes.y.from) then return "" end
    return string.format(
        " The dense FFN takes %.2f times the default's time: its line stands at the %s of the chart, which does not \z
            reach so far.",
        dense,
        dense > 1 and "top" or "bottom"
    )
end

local function candidates_chart(r, candidates, choice, dense)
    local measured, ratios, marks, ringed = with_ratio(candidates), {}, {}, {}
    local look, legend = legend_of(choice)
    local least, most = math.huge, 0
    for i, c in ipairs(measured) do
        local entry = choice and look[c.schedule[choice.key]] or { shape = "circle" }
        ratios[i], least, most = c.ratio, math.min(least, c.bytes), math.max(most, c.bytes)
        local list = (c.chosen or i == 1) and ringed or marks
        list[#list + 1] = {
            x = c.bytes / 1024,
            y = c.ratio,
            shape = entry.shape,
            colour = entry.colour,
            small = true,
            label = i == 1 and (c.chosen and "default, chosen" or "default") or c.chosen and "chosen" or nil,
            ring = list == ringed,
            title = string.format(
                "%s: %.3f of the default's time%s, %s KiB",
                c.changes,
                c.ratio,
                c.us and string.format(", %.3f µs a token", c.us) or "",
                kib(c.bytes)
            ),
        }
    end
    table.move(ringed, 1, #ringed, #marks + 1, marks) -- on top of the others
    local axes = {
        x = { label = "machine code, KiB", from = least / 1024 / 1.1, to = most / 1024 * 1.2, log = true },
        y = time_axis(ratios, dense),
    }
    local drawing = chart.draw {
        title = "Time against size of code, " .. regime_name(r),
        x = axes.x,
        y = axes.y,
        lines = reference_lines(axes, dense),
        marks = marks,
        shapes = legend,
        above = true,
        description = string.format(
            "%s from %s to %s KiB of machine code, in %.3f to %.3f of the default's time. A table below lists them.",
            figures.plural(#measured, "candidate"),
            kib(least),
            kib(most),
            math.min(table.unpack(ratios)),
            math.max(table.unpack(ratios))
        ),
    }
    local caption =
        "Each mark is a candidate, the lower the faster; time: median of its samples, of all batches the geometric \z
            mean."
    if choice then
        caption = caption
            .. string.format(
                " Colour: %s, the choice that explains most of the differences (%.0f %% of the variance).",
                choice.key,
                100 * choice.share
            )
    end
    return html.figure(4, "All candidates", drawing, caption .. dense_caption(axes, dense))
end

-- What the finals of race `r` know after each of their rounds, and what a new process found: positions { phase, round }
-- from left to right, and series { name, label, points = { {at, ratio, low, high, samples} }, last (of the finals),
-- confirmed, dropped }, finalists first, the fastest of them first. All over the default's time: the intervals of
-- finalists, which are of the ratio to the leader, times the leader's ratio.
local function finals_of(r)
    local positions, series, by_name, leader, last = {}, {}, {}, {}, nil
    for _, event in ipairs(r.history) do
        local s = by_name[event.candidate]
        if event.phase ~= "halving" and event.ratio then
            local id = string.format("%s %d.%d", event.phase, event.rung, event.number)
            if id ~= last then
                positions[#positions + 1], last = { phase = event.phase, round = event.number }, id
            end
            if not s then
                s = { name = event.candidate, points = {} }
                by_name[event.candidate], series[#series + 1] = s, s
            end
            local at = #positions
            local point = { at = at, ratio = event.ratio, low = event.low, high = event.high, samples = event.samples }
            s.points[#s.points + 1] = point
            s[event.phase == "confirm" and "confirmed" or "last"] = point
            if event.phase == "final" and event.candidate ~= race.twin then
                leader[at], point.of_leader = math.min(leader[at] or event.ratio, event.ratio), true
                s.ratio = event.ratio
            end
        end
        if s and event.phase ~= "halving" then s.dropped = event.dropped end
    end
    local order = {}
    for i, s in ipairs(series) do
        order[s] = (s.name == race.twin and 2 or s.name == r.field[1].text and 1 or 0) * 1000
            + (s.ratio or 1) * 100
            + i / 1000
        for _, point in ipairs(s.points) do
            if point.of_leader then
                point.low, point.high = point.low * leader[point.at], point.high * leader[point.at]
            end
        end
    end
    table.sort(series, function(a, b) return order[a] < order[b] end)
    for i, s in ipairs(series) do
        s.label = s.name == race.twin and race.twin or s.name == r.field[1].text and "default" or string.char(64 + i)
    end
    return positions, series
end

-- The positions that are drawn: the first and the last of each finals, every fourth between them, the confirmations,
-- and where one is dropped.
local function drawn_positions(positions, series)
    local drawn, dropped, count = {}, {}, 0
    for _, s in ipairs(series) do
        if s.dropped then dropped[s.points[#s.points].at] = true end
    end
    for i, p in ipairs(positions) do
        local before, after = positions[i - 1], positions[i + 1]
        local turn = not before
            or not after
            or before.phase ~= p.phase
            or after.phase ~= p.phase
            or before.round >= p.round
            or after.round <= p.round
        if turn or dropped[i] or p.round % 4 == 0 then
            count = count + 1
            drawn[i], drawn.count = count, count
        end
    end
    return drawn
end

local function finals_chart(r, positions, series, dense)
    local drawn, ticks, names = drawn_positions(positions, series), {}, {}
    for i, p in ipairs(positions) do
        if drawn[i] then
            ticks[#ticks + 1] = drawn[i]
            names[drawn[i]] = p.phase == "confirm" and "new" or tostring(p.round)
        end
    end
    local ratios, marks, shapes = {}, {}, {}
    for i, s in ipairs(series) do
        local finalist = #s.label == 1
        local look = {
            shape = chart.shapes[(i - 1) % #chart.shapes + 1],
            colour = finalist and 1 + (i - 1) * 3 % html.colours or 0,
        }
        shapes[i] = {
            shape = look.shape,
            colour = look.colour,
            label = s.label .. (s.name == r.winner and finalist and ", chosen" or ""),
        }
        for _, point in ipairs(s.points) do
            if drawn[point.at] then
                ratios[#ratios + 1] = point.ratio
                marks[#marks + 1] = {
                    x = drawn[point.at] + (i - (#series + 1) / 2) * 0.8 / #series,
                    y = point.ratio,
                    low = point.low,
                    high = point.high,
                    small = true,
                    shape = look.shape,
                    colour = look.colour,
                    title = string.format("%s: %.3f (%s)", s.label, point.ratio, interval_text(point.low, point.high)),
                }
            end
        end
    end
    local least, most, shown = 0.8 * math.min(table.unpack(ratios)), 1.25 * math.max(table.unpack(ratios)), {}
    for i, mark in ipairs(marks) do -- of intervals that are far wider than the medians are apart a part is shown
        shown[2 * i - 1], shown[2 * i] =
            math.max(mark.low, math.min(least, mark.y)), math.min(mark.high, math.max(most, mark.y))
    end
    local axes = {
        x = {
            label = "rounds of the finals",
            from = 0.5,
            to = drawn.count + 0.5,
            ticks = ticks,
            name = function(at) return names[at] end,
        },
        y = time_axis(shown, dense),
    }
    local drawing = chart.draw {
        title = "The race of the finalists, " .. regime_name(r),
        x = axes.x,
        y = axes.y,
        lines = reference_lines(axes, dense),
        marks = marks,
        shapes = shapes,
        description = string.format(
            "Medians and 95 %% intervals of %s after each of %s. A table below lists the last ones.",
            figures.plural(#series, "series", "series"),
            figures.plural(#positions, "round")
        ),
    }
    return html.figure(
        4,
        "The race of the finalists",
        drawing,
        "Medians after so many rounds, with 95 % intervals of the ratio to the leader; of the control, of that to the \z
            default. "
            .. "new: the winner in a new process, after which the finals may begin again. The A/A control is the \z
                default measured a second time."
    )
end

-- What the finals knew last of each, and what a new process found.
local function finalists_table(by_name, series)
    return html.table("Finalists", {
        { "finalist", function(s) return s.label end, text = true },
        { "time over the default's", function(s) return ratio_text(s.last.ratio) end },
        {
            "95 % interval",
            function(s) return s.last.low < s.last.high and interval_text(s.last.low, s.last.high) or "leader" end,
        },
        { "pairs", function(s) return s.last.samples end },
        { "code, KiB", function(s) return by_name[s.name] and kib(by_name[s.name].bytes) or "–" end },
        {
            "differs from the default in",
            function(s) return by_name[s.name] and by_name[s.name].changes or "nothing" end,
            long = true,
        },
        {
            "what became of it",
            function(s)
                if s.dropped then return s.dropped end
                return s.confirmed
                        and string.format(
                            "in a new process %.3f (%s)",
                            s.confirmed.ratio,
                            interval_text(s.confirmed.low, s.confirmed.high)
                        )
                    or "–"
            end,
            long = true,
        },
    }, series)
end

local function candidates_table(candidates)
    local list = table.move(candidates, 1, #candidates, 1, {})
    local place = {}
    for i, c in ipairs(list) do
        place[c] = i
    end
    table.sort(list, function(a, b)
        if a.ratio ~= b.ratio then return (a.ratio or math.huge) < (b.ratio or math.huge) end
        return place[a] < place[b]
    end)
    return html.table("Candidates", {
        { "time over the default's", function(c) return ratio_text(c.ratio) end },
        { "µs a token", function(c) return c.us and string.format("%.3f", c.us) or "–" end },
        { "samples", function(c) return c.samples > 0 and c.samples or "–" end },
        { "code, KiB", function(c) return kib(c.bytes) end },
        {
            "differs from the default in",
            function(c) return c.changes .. (c.chosen and " (chosen)" or "") end,
            long = true,
        },
        { "out in", function(c) return c.left or "–" end, long = true },
    }, list)
end

local function explained_table(choices)
    return html.table("What each choice explains", {
        { "choice", function(c) return c.key end, text = true },
        { "explains", function(c) return string.format("%.0f %%", 100 * c.share) end },
        {
            "value: median time over the default's (candidates)",
            function(c)
                local words = {}
                for i, group in ipairs(c.groups) do
                    words[i] = string.format("%d: %.3f (%d)", group.value, statistics.median(group.times), #group.times)
                end
                return table.concat(words, "; ")
            end,
            long = true,
        },
        { "what it is", function(c) return c.doc end, long = true },
    }, choices)
end

-- What was left out, by reason; reasons that differ in numbers only are one: { reason, count, examples = { {text,
-- reason} } }, most first.
local function reasons_of(list)
    local found, by_reason = {}, {}
    for _, row in ipairs(list) do
        local reason = row.reason:gsub("%d[%d.]*", "…")
        if not by_reason[reason] then
            by_reason[reason] = { reason = reason, count = 0, examples = {}, place = #found }
            found[#found + 1] = by_reason[reason]
        end
        local f = by_reason[reason]
        f.count = f.count + 1
        if f.count <= shown_examples then f.examples[f.count] = row end
    end
    table.sort(found, function(a, b)
        if a.count ~= b.count then return a.count > b.count end
        return a.place < b.place
    end)
    return found
end

-- What was left out of race `r` for reasons of one kind.
local function left_out(r, head, list)
    if #list == 0 then return nil end
    local groups, examples = reasons_of(list), {}
    for _, group in ipairs(groups) do
        for _, row in ipairs(group.examples) do
            examples[#examples + 1] = row
        end
    end
    return html.details(
        string.format("%d %s", #list, head),
        html.table("Reasons", {
            { "candidates", function(g) return g.count end },
            { "reason", function(g) return g.reason end, long = true },
        }, groups),
        html.paragraph("The first of each reason:"),
        html.table("Examples", {
            {
                "differs from the default in",
                function(row) return differences(r.space, r.field[1].schedule, r.space.parse(row.text)) end,
                long = true,
            },
            { "reason", function(row) return row.reason end, long = true },
        }, examples)
    )
end

local function verdict(r)
    return results.verdict(r) .. (r.contended and ". Other work shared the core for a part of it." or ".")
end

local function race_parts(found, r)
    local parts = {
        string.format(
            "<h3>%s (%s a call)</h3>",
            r.regime == "few" and "Few tokens" or "Many tokens",
            html.escape(calls_text(r.batches))
        ),
        html.paragraph(verdict(r)),
    }
    if not r.field then return parts end
    local candidates, by_name = candidates_of(r), {}
    for _, c in ipairs(candidates) do
        by_name[c.name] = c
    end
    local measured, dense = with_ratio(candidates), dense_ratio(found.rows, r)
    local choices = choices_of(r.space, measured)
    local positions, series = finals_of(r)
    parts[#parts + 1] = html.paragraph(
        string.format(
            "%s of %s compiled and verified, %d of them timed in %.0f s; %d pruned before, %d rejected, %d left for \z
                lack of time.",
            figures.plural(#candidates, "candidate"),
            figures.plural(r.total, "schedule"),
            #measured,
            r.seconds,
            #r.rejected,
            #r.failed,
            r.untried
        )
    )
    local figures = {}
    if #measured > 1 then figures[1] = candidates_chart(r, candidates, choices[1], dense) end
    if #series > 0 then figures[#figures + 1] = finals_chart(r, positions, series, dense) end
    if #figures > 0 then parts[#parts + 1] = html.figures(figures) end
    if #series > 0 then parts[#parts + 1] = finalists_table(by_name, series) end
    if #choices > 0 then
        parts[#parts + 1] = html.details("What each choice explains of the times", explained_table(choices))
    end
    parts[#parts + 1] = html.details("All candidates that were compiled", candidates_table(candidates))
    parts[#parts + 1] = left_out(r, "rejected: wrong or not to be compiled", r.failed)
    parts[#parts + 1] = left_out(r, "pruned: not worth measuring", r.rejected)
    return parts
end

local function rows_table(rows)
    return html.table("Confirmation", {
        { "tokens a call", function(row) return row.batch end },
        { "default, µs a token", function(row) return string.format("%.2f", row.default_us) end },
        { "chosen, µs a token", function(row) return string.format("%.2f", row.tuned_us) end },
        { "times as fast", function(row) return string.format("%.3f", 1 / row.ratio.centre) end },
        { "95 % interval", function(row) return interval_text(1 / row.ratio.high, 1 / row.ratio.low) end },
        {
            "dense FFN, µs a token",
            function(row) return row.dense_us and string.format("%.2f", row.dense_us) or "–" end,
        },
        { "through", function(row) return row.dense_library or "–" end, text = true },
        {
            "times as fast as the dense FFN",
            function(row) return row.dense_us and string.format("%.2f", row.dense_us / row.tuned_us) or "–" end,
        },
    }, rows)
end

local function chosen_table(found)
    return html.table("Chosen", {
        { "choice", function(c) return c.key end, text = true },
        { "default", function(c) return found.default[c.key] end },
        {
            "chosen",
            function(c)
                local value = found.schedule[c.key]
                return value .. (value ~= found.default[c.key] and " *" or "")
            end,
        },
        { "what it is", function(c) return c.doc end, long = true },
    }, found.session.schedules.choices)
end

-- What is to be said of a result beside its tables.
local function remarks(found)
    local list = {}
    local function add(text) list[#list + 1] = html.paragraph(text) end
    if found.said then add("Nothing was measured for this page: " .. found.said .. ".") end
    for _, lacking in ipairs(found.missing or {}) do
        add("Missing: shard " .. lacking .. ".")
    end
    local t = found.threshold
    if t then
        add(
            string.format(
                "few.threshold: %s, from calls of %d … %d tokens measured with both kernels.",
                t.from == t.to and t.to .. ", the default" or t.from .. " became " .. t.to,
                t.probes[1],
                t.probes[#t.probes]
            )
        )
    end
    for _, regime in ipairs { "many", "few" } do
        if found.reverted and found.reverted[regime] then
            add(
                "The choices for "
                    .. regime
                    .. " tokens were taken back: slower than the default in the confirmation run above."
            )
        end
    end
    if found.control then
        add(
            string.format(
                "A/A control: the default measured twice differs by %.1f %% (%s).",
                100 * math.abs(found.control.centre - 1),
                interval_text(found.control.low, found.control.high)
            )
        )
    end
    if #(found.compilers or {}) > 1 then
        local words = {}
        for i, c in ipairs(found.compilers) do
            words[i] = string.format("%s %s of the default's time", c.cc, ratio_text(c.ratio))
        end
        add("Compilers: " .. table.concat(words, ", ") .. ".")
    end
    return list
end

local function append(list, more) return table.move(more, 1, #more, #list + 1, list) end

local function result_parts(found)
    local s = found.session
    local parts = { string.format("<h2>%s, %s</h2>", html.escape(s.isa.name), html.escape(s.version)) }
    if found.rows then parts[#parts + 1] = rows_table(found.rows) end
    append(parts, remarks(found))
    local why = results.undecided(found)
    if why then
        parts[#parts + 1] = html.paragraph("Nothing was decided (" .. why .. "): the default is kept.")
    else
        append(parts, { "<h3>Chosen</h3>", chosen_table(found), html.paragraph("* differs from the default.") })
    end
    for _, r in ipairs(found.races) do
        append(parts, race_parts(found, r))
    end
    return parts
end

-- One instruction set's session says of the machine what all of them do.
local function facts(m, session, o)
    local k = session.key
    return html.facts {
        { "model", m.name },
        { "CPU", k.cpu_name .. ": " .. k.isa_usable:gsub(",", ", ") .. (k.virtual and "; a virtual machine" or "") },
        {
            "caches",
            string.format(
                "L1 %s, instructions %s, L2 %s, share of L3 %s",
                html.bytes(k.l1d),
                html.bytes(k.l1i),
                html.bytes(k.l2),
                html.bytes(k.l3_share)
            ),
        },
        { "compiler", k.compiler .. " " .. session.cflags },
        {
            "numbers",
            string.format(
                "tables %s, projection %s, %s",
                k.tables,
                k.projection,
                results.threads_text(o)
            ),
        },
        { "tokens a call", (o.batches_text:gsub(",", ", ")) },
        { "tuned by", string.format("lookupc %s, templates %s", k.generator, k.templates:sub(1, 16)) },
        {
            "time",
            (o.threads == 1 and "CPU time; of tables that are cold, wall time" or "wall time")
                .. ", in µs a token; ratios below 1 are faster",
        },
    }
end

-- The page of model `m` and a list of results (harness/tune/results.lua); o: threads, batches_text.
function page.page(m, list, o)
    local last = list[#list].session
    local parts = {}
    for _, found in ipairs(list) do
        append(parts, result_parts(found))
    end
    append(parts, { "<h2>Measured on</h2>", facts(m, last, o) })
    local title = #results.decided(list) > 0 and "%s tuned for %s" or "%s: nothing decided on %s"
    return html.page(title:format(m.name, last.key.cpu_name), parts)
end

return page
