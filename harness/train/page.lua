-- The page of a training run: losses, rate, speed and tables over its tokens, from the records of its log.
local chart = require "harness.report.chart"
local figures = require "gen.plan.figures"
local heatmap = require "harness.report.heatmap"
local html = require "harness.report.html"
local schedule = require "harness.train.schedule"
local table_usage = require "harness.train.table_usage"

local page = {}

-- The points { tokens, value times `scale`, or 1 } of the records that have `key`.
local function points(records, key, scale)
    local list = {}
    for _, record in ipairs(records) do
        if record[key] then list[#list + 1] = { record.tokens, record[key] * (scale or 1) } end
    end
    return list
end

local function short(tokens)
    if tokens >= 1e6 then return string.format("%gM", tokens / 1e6) end
    if tokens >= 1e3 then return string.format("%gk", tokens / 1e3) end
    return string.format("%g", tokens)
end

-- A chart of lines { label, points, dash, colour } over tokens; from, to: of y, nil: what the points need.
local function drawn(title, label, lines, from, to)
    local last, low, high = 1, from or math.huge, to or -math.huge
    for _, line in ipairs(lines) do
        for _, point in ipairs(line.points) do
            last = math.max(last, point[1])
            low, high = from or math.min(low, point[2]), to or math.max(high, point[2])
        end
    end
    if low == math.huge then return nil end
    if high <= low then
        low, high = low - 0.5, high + 0.5
    end
    for _, line in ipairs(lines) do
        line.dash = line.dash or ""
    end
    return chart.draw {
        title = title,
        lines = lines,
        marks = {},
        x = { label = "tokens", from = 0, to = last, name = short },
        y = { label = label, from = low, to = high },
    }
end

-- The records that tell of tables, and how many layers have some.
local function of_tables(records)
    local list, layers = {}, 0
    for _, record in ipairs(records) do
        if record.tables and #record.tables > 0 then
            list[#list + 1] = record
            layers = #record.tables
        end
    end
    return list, layers
end

local function median(list)
    local sorted = table.move(list, 1, #list, 1, {})
    table.sort(sorted)
    return (sorted[(#sorted + 1) // 2] + sorted[#sorted // 2 + 1]) / 2
end

-- Two lines a layer over tokens, of the list row[key], divided by unit(row): the median table, and dashed the lowest.
local function by_layer(records, layers, key, unit)
    local lines = {}
    for layer = 1, layers do
        local middle, lowest = {}, {}
        for i, record in ipairs(records) do
            local row = record.tables[layer]
            middle[i] = { record.tokens, median(row[key]) / unit(row) }
            lowest[i] = { record.tokens, math.min(table.unpack(row[key])) / unit(row) }
        end
        local colour = (layer - 1) % html.colours + 1
        local label = "layer " .. records[1].tables[layer].layer
        lines[#lines + 1] = { label = label, points = middle, colour = colour }
        lines[#lines + 1] = { points = lowest, colour = colour, dash = "3 3" }
    end
    return lines
end

-- What a reader may want to know of the table number `k` from 1 of a layer.
local function words_of(row, k)
    return string.format(
        "layer %d, table %d: %.2f of %.0f bits, %d of %d rows used",
        row.layer,
        k - 1,
        row.entropies[k],
        math.log(row.rows, 2),
        row.rows_used[k],
        row.rows
    )
end

-- A cell for every table of the layers `rows`: its share of what it can have, as far as row[key] says.
local function every_table(title, rows, key, unit)
    local list = {}
    for i, row in ipairs(rows) do
        local cells = {}
        for k, value in ipairs(row[key]) do
            local wrong = table_usage.has_collapsed(row.entropies[k], row.rows)
            cells[k] = { share = value / unit(row), wrong = wrong, title = words_of(row, k) }
        end
        list[i] = { label = string.format("layer %d", row.layer), cells = cells }
    end
    return heatmap.draw(title, list)
end

local function bits_of(row) return math.log(row.rows, 2) end
local function rows_of(row) return row.rows end
local function one() return 1 end

-- The values of every table of a layer.
local function values_of(row)
    local numbers = {}
    for k = 1, row.tables do
        numbers[k] = k
    end
    return html.details(
        string.format("layer %d: every table", row.layer),
        html.table(string.format("Tables of layer %d", row.layer), {
            { "table", function(k) return tostring(k - 1) end, first = true },
            { "entropy, bits", function(k) return string.format("%.2f", row.entropies[k]) end },
            { "rows used", function(k) return string.format("%d", row.rows_used[k]) end },
        }, numbers)
    )
end

local table_columns = {
    { "layer", function(row) return tostring(row.layer) end, first = true },
    { "tables", function(row) return tostring(row.tables) end },
    { "rows", function(row) return tostring(row.rows) end },
    { "used, mean", function(row) return string.format("%.1f", row.used) end },
    { "least used", function(row) return string.format("%.0f", row.least) end },
    { "entropy, bits", function(row) return string.format("%.2f", row.entropy) end },
    { "lowest", function(row) return string.format("%.2f", row.lowest) end },
    { "collapsed", function(row) return tostring(row.collapsed) end },
}

-- The settings of a run in the order of their names.
local function settings_of(facts)
    local rows = {}
    for name, value in pairs(facts.settings) do
        rows[#rows + 1] = { name:gsub("_", " "), tostring(value) }
    end
    table.sort(rows, function(a, b) return a[1] < b[1] end)
    return rows
end

-- The first lines of the page of a run.
local function summary(facts, last)
    return string.format(
        "%s: step %s of %s, %s tokens, loss %s nats a token%s.",
        facts.model,
        figures.grouped(last.step),
        schedule.total(facts.settings, last.step, last.share or 0, figures.grouped),
        figures.grouped(last.tokens),
        last.loss and string.format("%.4f", last.loss) or "unknown",
        last.validation and string.format(", validation %.4f", last.validation) or ""
    )
end

-- The charts of the tables of `layers` layers, of the records `told`: add(head, drawing, caption).
local function add_charts_of_tables(add, told, layers)
    local rows = told[#told].tables
    local entropies, used = by_layer(told, layers, "entropies", one), by_layer(told, layers, "rows_used", rows_of)
    add(
        "Entropy of codes",
        drawn("Entropy of the codes against tokens", "bits", entropies, 0, bits_of(rows[1])),
        "Of the rows used between two validations, at most the bits of a code: the median table of a layer, and "
            .. "dashed the lowest."
    )
    add(
        "Rows used",
        drawn("Rows used against tokens", "share", used, 0, 1),
        "Share of the rows of a table used between two validations: the median table of a layer, and dashed the lowest."
    )
    local words = "At the last validation: the darker, the more; red: collapsed. Point at a table for its values."
    add("Entropy, table by table", every_table("Entropy", rows, "entropies", bits_of), words)
    add("Rows used, table by table", every_table("Rows used", rows, "rows_used", rows_of), words)
end

-- The charts of a run.
local function charts_of(records, told, layers)
    local charts = {}
    local function add(head, drawing, caption)
        if drawing then charts[#charts + 1] = html.figure(2, head, drawing, caption) end
    end
    local function line(label, key, factor)
        return { { label = label, points = points(records, key, factor), colour = 1 } }
    end
    add(
        "Loss",
        drawn("Loss against tokens", "nats a token", {
            { label = "training", points = points(records, "loss"), colour = 0 },
            { label = "validation", points = points(records, "validation"), colour = 1 },
        }),
        "Mean cross-entropy since the last line of the log, and of the text that is not trained on."
    )
    add(
        "Learning rate",
        drawn("Rate against tokens", "of matrices, in thousandths", line("rate", "rate", 1000), 0),
        "Of matrices; tables and projections have theirs in proportion."
    )
    if layers > 0 then add_charts_of_tables(add, told, layers) end
    add(
        "Speed",
        drawn("Tokens a second against tokens", "tokens/s", line("tokens/s", "tokens_per_second"), 0),
        "Without validations and checkpoints."
    )
    return charts
end

-- The page of a run with the first line `facts` of its log and its records.
function page.of(facts, records)
    local told, layers = of_tables(records)
    local parts = {
        html.paragraph(summary(facts, records[#records] or { step = 0, tokens = 0 })),
        html.figures(charts_of(records, told, layers)),
    }
    local function add(text) parts[#parts + 1] = text end
    if layers > 0 then
        local last = told[#told].tables
        add "<h2>Tables at the last validation</h2>"
        add(html.table("Tables", table_columns, last))
        for _, row in ipairs(last) do
            add(values_of(row))
        end
    end
    add "<h2>Settings</h2>"
    add(html.facts(settings_of(facts)))
    return html.page("Training of " .. facts.model, parts)
end

return page
