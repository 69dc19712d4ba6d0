-- The command report: a page of results that were kept of bench, a section for each file.
local bench_page = require "harness.report.bench_page"
local bench_report = require "harness.report.bench_report"
local columns = require "harness.report.columns"
local file_rules = require "commands.file_rules"
local files_read = require "gen.host.files_read"
local host = require "host"
local html = require "harness.report.html"
local lookup = require "harness.families.lookup.bench"
local results = require "harness.report.results"
local transformer = require "harness.families.model.bench_blocks"
local whole = require "harness.families.model.bench_whole"

local commands = {}

local largest = 1 << 20 -- bytes of the text before the sections

-- The tables of each kind of results, and charts of one model's.
local kinds = {
    { name = "lookup", title = "LookupFFNs", tables = lookup.tables, figures = bench_page.figures },
    { name = "transformer", title = "Blocks of transformers", tables = transformer.tables },
    { name = "whole", title = "Whole models", tables = whole.tables },
}

-- "FMA 90 to 95 GFLOP/s": a limit as the tables of `list` have it, nil if none does.
local function range(list, limit)
    local least, most
    for _, of in ipairs(list) do
        local value = of[limit.key]
        least = value and math.min(least or value, value) or least
        most = value and math.max(most or value, value) or most
    end
    if not least then return nil end
    local low, high = string.format("%.0f", least), string.format("%.0f", most)
    return string.format("%s %s%s %s", limit.name, low, low ~= high and " to " .. high or "", limit.unit)
end

-- What a run was measured on.
local function setting(run)
    local h, threads = run.host, run.results[1].threads or 1
    local words = { h.date, h.cpu, h.compiler .. " " .. h.flags }
    words[4] = threads == 1 and "one thread" or threads .. " threads"
    if h.machine then words[5] = "defaults for " .. h.machine end
    return table.concat(words, ", ") .. "." .. (run.converted and " Converted " .. run.converted .. "." or "")
end

-- The limits of the core in `runs`, and how far apart results are that were measured twice.
local function limits_and_control(runs, all)
    local measured, limits, sentences, again = {}, {}, {}, false
    for i, run in ipairs(runs) do
        measured[i] = run.limits or {}
    end
    for _, limit in ipairs(results.limits) do
        limits[#limits + 1] = range(limit.of_tables and all or measured, limit)
    end
    for _, r in ipairs(all) do
        again = again or r.again_ratio ~= nil
    end
    if limits[1] then sentences[1] = " Limits of the core: " .. table.concat(limits, ", ") .. "." end
    if again then
        sentences[#sentences + 1] = string.format(" Measured twice: at most %.1f %% apart.", bench_report.control(all))
    end
    return table.concat(sentences)
end

-- All items of the lists `run[key]` of `runs`.
local function joined(runs, key)
    local all = {}
    for _, run in ipairs(runs) do
        table.move(run[key] or {}, 1, #(run[key] or {}), #all + 1, all)
    end
    return all
end

-- The runs of a kind that were measured on the same, as they stand in one table: { runs, kind, text, tables }.
local function groups_of(runs, kind)
    local groups, known = {}, {}
    for _, run in ipairs(runs) do
        local words = run.kind == kind.name and setting(run)
        if words and not known[words] then
            known[words] = { runs = {}, kind = kind, text = words }
            groups[#groups + 1] = known[words]
        end
        if words then table.insert(known[words].runs, run) end
    end
    for _, group in ipairs(groups) do
        local all = joined(group.runs, "results")
        group.text = group.text .. limits_and_control(group.runs, all)
        group.tables = kind.tables { results = all, attention = joined(group.runs, "attention") }
        for _, part in ipairs(group.tables) do
            local function model(r) return r.model .. (r.counts and "" or " *") end
            part.columns = { { "model", -1, model }, table.unpack(part.columns) }
        end
    end
    return groups
end

-- What the file `path` says: its name and groups.
local function section_of(path)
    local runs, groups = results.read(path), {}
    for _, kind in ipairs(kinds) do
        local own = groups_of(runs, kind)
        table.move(own, 1, #own, #groups + 1, groups)
    end
    local name = path:match("([^/]*)$"):gsub("%.json$", ""):gsub("-", " "):gsub("%f[%w]%l", string.upper)
    return { name = name, groups = groups }
end

local function row_of(cells) return "| " .. table.concat(cells, " | ") .. " |" end

local function add_table(lines, part)
    local shown, heads, rules = columns.said(part.columns, part.results), {}, {}
    for i, column in ipairs(shown) do
        heads[i], rules[i] = column[1], column[2] < 0 and "---" or "--:"
    end
    table.move({ row_of(heads), row_of(rules) }, 1, 2, #lines + 1, lines)
    for _, r in ipairs(part.results) do
        local cells = {}
        for i, column in ipairs(shown) do
            cells[i] = tostring(column[3](r) or ""):gsub("|", "\\|")
        end
        lines[#lines + 1] = row_of(cells)
    end
end

local function add_section(lines, section)
    table.move({ "", "## " .. section.name }, 1, 2, #lines + 1, lines)
    for _, group in ipairs(section.groups) do
        table.move({ "", "**" .. group.kind.title .. ".** " .. group.text }, 1, 2, #lines + 1, lines)
        for _, part in ipairs(group.tables) do
            lines[#lines + 1] = ""
            if part.name then table.move({ part.name .. ":", "" }, 1, 2, #lines + 1, lines) end
            add_table(lines, part)
        end
    end
end

-- The results of each model of `runs`, and the limits of its first run.
local function by_model(runs)
    local list, known = {}, {}
    for _, run in ipairs(runs) do
        for _, r in ipairs(run.results) do
            if not known[r.model] then
                known[r.model] = { name = r.model, limits = run.limits or {}, results = {} }
                list[#list + 1] = known[r.model]
            end
            table.insert(known[r.model].results, r)
        end
    end
    return list
end

local function page_of(sections)
    local parts = {}
    local function add(part) parts[#parts + 1] = part end
    for _, section in ipairs(sections) do
        add(html.heading(section.name))
        for _, group in ipairs(section.groups) do
            add(html.paragraph(group.kind.title .. ". " .. group.text))
            for _, model in ipairs(group.kind.figures and by_model(group.runs) or {}) do
                add(html.paragraph(model.name .. ":"))
                add(group.kind.figures(model.limits, model.results))
            end
            for _, part in ipairs(group.tables) do
                if part.name then add(html.paragraph(part.name .. ":")) end
                add(bench_report.html_table(part.name, part.columns, part.results))
            end
        end
    end
    return html.page("Results of bench", parts)
end

-- The text before the sections: that of method.md beside the first file, if there is one.
local function method(path)
    local beside = path:gsub("[^/]*$", "") .. "method.md"
    if host.kind(beside) ~= "file" then return "# Results" end
    return (assert(host.read(files_read.note(beside), largest)):gsub("\n+$", ""))
end

function commands.report(arguments, options)
    if options.html then
        file_rules.not_over("--html", options.html, arguments)
        file_rules.can_become("--html", options.html)
    end
    local lines, sections = { method(arguments[1]) }, {}
    for i, path in ipairs(arguments) do
        sections[i] = section_of(path)
        add_section(lines, sections[i])
    end
    host.print(table.concat(lines, "\n"))
    if options.html then assert(host.write_file(options.html, page_of(sections))) end
    return 0
end

return commands
