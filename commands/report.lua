-- The command report: a page in Markdown of results that were kept of bench, a section for each file.
local bench_report = require "harness.report.bench_report"
local columns = require "harness.report.columns"
local host = require "host"
local inputs = require "gen.model.inputs"
local lookup = require "harness.families.lookup.bench"
local results = require "harness.report.results"
local transformer = require "harness.families.transformer.bench"
local whole = require "harness.families.whole.bench"

local commands = {}

local largest = 1 << 20 -- bytes of the text before the sections

-- The tables of each kind of results.
local kinds = {
    { name = "lookup", title = "LookupFFNs", tables = lookup.tables },
    { name = "transformer", title = "Blocks of transformers", tables = transformer.tables },
    { name = "whole", title = "Whole models", tables = whole.tables },
}

local function row_of(cells) return "| " .. table.concat(cells, " | ") .. " |" end

-- Adds a table with the columns of bench's own and the model. A star stands for a result that does not count.
local function add_table(lines, part)
    local function model(r) return r.model .. (r.counts and "" or " *") end
    local shown = columns.said({ { "model", -1, model }, table.unpack(part.columns) }, part.results)
    local heads, rules = {}, {}
    for i, column in ipairs(shown) do
        heads[i], rules[i] = column[1], column[2] < 0 and "---" or "--:"
    end
    lines[#lines + 1] = row_of(heads)
    lines[#lines + 1] = row_of(rules)
    for _, r in ipairs(part.results) do
        local cells = {}
        for i, column in ipairs(shown) do
            cells[i] = tostring(column[3](r) or ""):gsub("|", "\\|")
        end
        lines[#lines + 1] = row_of(cells)
    end
end

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

-- What runs were measured on, all that they share: with the same words they are in one table.
local function setting(run)
    local h, threads = run.host, run.results[1].threads or 1
    local words = { h.date, h.cpu, h.compiler .. " " .. h.flags }
    words[4] = threads == 1 and "one thread" or threads .. " threads"
    if h.machine then words[5] = "defaults for " .. h.machine end
    return table.concat(words, ", ") .. "." .. (run.converted and " Converted " .. run.converted .. "." or "")
end

-- The limits of the core in `runs`, and how far results differ that were measured twice.
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

-- The runs of a kind, in groups of one setting.
local function groups_of(runs, kind)
    local groups, known = {}, {}
    for _, run in ipairs(runs) do
        local words = run.kind == kind.name and setting(run)
        if words and not known[words] then
            known[words] = { setting = words }
            groups[#groups + 1] = known[words]
        end
        if words then table.insert(known[words], run) end
    end
    return groups
end

-- All items of the lists `list[key]` of `runs`.
local function joined(runs, key)
    local all = {}
    for _, run in ipairs(runs) do
        table.move(run[key] or {}, 1, #(run[key] or {}), #all + 1, all)
    end
    return all
end

local function add_section(lines, path)
    local runs = results.read(path)
    local name = path:match("([^/]*)$"):gsub("%.json$", ""):gsub("-", " "):gsub("%f[%w]%l", string.upper)
    table.move({ "", "## " .. name }, 1, 2, #lines + 1, lines)
    for _, kind in ipairs(kinds) do
        for _, group in ipairs(groups_of(runs, kind)) do
            local all = joined(group, "results")
            local head = string.format("**%s.** %s%s", kind.title, group.setting, limits_and_control(group, all))
            table.move({ "", head }, 1, 2, #lines + 1, lines)
            for _, part in ipairs(kind.tables { results = all, attention = joined(group, "attention") }) do
                lines[#lines + 1] = ""
                if part.name then table.move({ part.name .. ":", "" }, 1, 2, #lines + 1, lines) end
                add_table(lines, part)
            end
        end
    end
end

-- The text before the sections: that of method.md beside the first file, if there is one.
local function method(path)
    local beside = path:gsub("[^/]*$", "") .. "method.md"
    if host.kind(beside) ~= "file" then return "# Results" end
    return (assert(host.read(inputs.note(beside), largest)):gsub("\n+$", ""))
end

function commands.report(arguments)
    local lines = { method(arguments[1]) }
    for _, path in ipairs(arguments) do
        add_section(lines, path)
    end
    host.print(table.concat(lines, "\n"))
    return 0
end

return commands
