-- What bench says of a model, as lines, JSON and the parts of a page, and of several models in the order given: a
-- report is { title, lines, json, parts }, the last a function.
local columns = require "harness.report.columns"
local counted = require "harness.report.counted"
local html = require "harness.report.html"
local json = require "json"

local bench_report = {}

-- "gcc 12.2 -O2" and the like of what was timed on up to `threads` threads.
function bench_report.setting(host_facts, cflags, threads)
    local text = threads == 1 and "one thread" or "up to " .. threads .. " threads"
    return string.format("%s, %s %s, %s", host_facts.cpu, host_facts.compiler, cflags, text)
end

-- The largest difference of results that were measured twice (`again_ratio`), in percent.
function bench_report.control(results)
    local worst = 0.0
    for _, r in ipairs(results) do
        worst = math.max(worst, r.again_ratio and math.abs(r.again_ratio - 1) or 0)
    end
    return 100 * worst
end

-- The result `r` of plan `p` with what says of which model, types and schedule it is.
function bench_report.typed(p, options, r)
    r.model, r.isa, r.type, r.tuned = p.model.name, p.variants[1].isa.name, options.type, options.named
    r.activations, r.tables, r.projection = p.options.activations, p.options.tables, p.options.projection
    return r
end

-- The rows of columns `list` (harness/report/columns.lua) behind those that say so.
function bench_report.behind_types(list)
    local all = {
        { "isa", -7, "isa" },
        { "weights", -7, "type" },
        { "inputs", -7, "activations" },
        { "tables", -6, "tables" },
        { "proj.", -5, "projection" },
        { "schedule", -8, "tuned" },
    }
    return table.move(list, 1, #list, #all + 1, all)
end

-- A table of `results` with the columns of `list` that say something.
function bench_report.html_table(name, list, results)
    local shown = {}
    for i, column in ipairs(columns.said(list, results)) do
        local function value(r) return tostring(column[3](r) or "-") end
        shown[i] = { column[1], value, text = column[2] < 0, first = i == 1 }
    end
    return html.table(name or "Results", shown, results, function(r) return not r.counts end)
end

-- A report of tables with notes below.
--   title, head   of the page; the first line
--   tables        a list of { columns, results, name }: columns as harness/report/columns.lua has them, results with
--                 `counts`, and a line above the table, nil: none
--   notes         lines; those of results that do not count are added
--   host, threads what was measured on (harness/measure/setting.lua)
--   json          what --json prints
function bench_report.of_tables(of)
    local lines, all, notes = { of.head }, {}, table.move(of.notes, 1, #of.notes, 1, {})
    for _, part in ipairs(of.tables) do
        lines[#lines + 1] = part.name
        columns.add(lines, part.columns, part.results)
        for _, r in ipairs(part.results) do
            all[r] = all[r] or #all + 1
            all[all[r]] = r
        end
    end
    notes[#notes + 1] = counted.note(all)
    local function parts()
        local list = {}
        for _, part in ipairs(of.tables) do
            if part.name then list[#list + 1] = html.paragraph(part.name .. ":") end
            list[#list + 1] = bench_report.html_table(part.name, part.columns, part.results)
        end
        for _, note in ipairs(notes) do
            list[#list + 1] = html.paragraph(note)
        end
        list[#list + 1] = html.facts {
            { "CPU", of.host.cpu .. ": " .. table.concat(of.host.isa, ", ") },
            { "compiler", of.host.compiler .. " " .. of.host.flags },
            { "threads", of.threads == 1 and "one" or "up to " .. of.threads },
        }
        return list
    end
    return {
        title = of.title,
        lines = table.move(notes, 1, #notes, #lines + 1, lines),
        json = of.json,
        parts = parts,
    }
end

-- The JSON of a report as it is, of several as a list of `models`.
function bench_report.json(reports)
    if #reports == 1 then return reports[1].json end
    local list = json.array {}
    for i, report in ipairs(reports) do
        list[i] = report.json
    end
    return { models = list }
end

-- One page of all reports.
function bench_report.page(reports)
    if #reports == 1 then return html.page(reports[1].title, reports[1].parts()) end
    local list = {}
    for _, report in ipairs(reports) do
        list[#list + 1] = html.heading(report.title)
        for _, part in ipairs(report.parts()) do
            list[#list + 1] = part
        end
    end
    return html.page(#reports .. " models, timed", list)
end

return bench_report
