-- The page of a training run: losses, rate, speed and tables over its tokens, from the records of its log.
local chart = require "harness.report.chart"
local figures = require "gen.plan.figures"
local html = require "harness.report.html"

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

-- A line a layer: value(row) of the tables over tokens.
local function by_layer(records, layers, value)
    local lines = {}
    for layer = 1, layers do
        local list = {}
        for i, record in ipairs(records) do
            list[i] = { record.tokens, value(record.tables[layer]) }
        end
        lines[layer] = {
            label = "layer " .. records[1].tables[layer].layer,
            points = list,
            colour = (layer - 1) % html.colours + 1,
        }
    end
    return lines
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

-- The page of a run with the first line `facts` of its log and its records.
function page.of(facts, records)
    local last = records[#records] or { step = 0, tokens = 0 }
    local parts, charts = {}, {}
    local function add(text) parts[#parts + 1] = text end
    local function add_chart(head, drawing, caption)
        if drawing then charts[#charts + 1] = html.figure(2, head, drawing, caption) end
    end
    add(
        html.paragraph(
            string.format(
                "%s: step %s of %s, %s tokens, loss %s nats a token%s.",
                facts.model,
                figures.grouped(last.step),
                figures.grouped(facts.settings.steps),
                figures.grouped(last.tokens),
                last.loss and string.format("%.4f", last.loss) or "unknown",
                last.validation and string.format(", validation %.4f", last.validation) or ""
            )
        )
    )
    local validation = points(records, "validation")
    add_chart(
        "Loss",
        drawn("Loss against tokens", "nats a token", {
            { label = "training", points = points(records, "loss"), colour = 0 },
            { label = "validation", points = validation, colour = 1 },
        }),
        "Mean cross-entropy since the last line of the log, and of the text that is not trained on."
    )
    add_chart(
        "Learning rate",
        drawn(
            "Rate against tokens",
            "of matrices, in thousandths",
            { { label = "rate", points = points(records, "rate", 1000), colour = 1 } },
            0
        ),
        "Of matrices; tables and projections have theirs in proportion."
    )
    add_chart(
        "Speed",
        drawn(
            "Tokens a second against tokens",
            "tokens/s",
            { { label = "tokens/s", points = points(records, "tokens_per_second"), colour = 1 } },
            0
        ),
        "Without validations and checkpoints."
    )
    local told, layers = of_tables(records)
    if layers > 0 then
        add_chart(
            "Entropy of codes",
            drawn(
                "Entropy of the codes against tokens",
                "bits, mean of the tables",
                by_layer(told, layers, function(row) return row.entropy end),
                0,
                math.log(told[1].tables[1].rows, 2)
            ),
            "Of the rows that were used between two validations; at most the bits of a code."
        )
        add_chart(
            "Rows used",
            drawn(
                "Rows used against tokens",
                "share, mean of the tables",
                by_layer(told, layers, function(row) return row.used / row.rows end),
                0,
                1
            ),
            "Share of the rows of a table that were used between two validations."
        )
    end
    add(html.figures(charts))
    if layers > 0 then
        add "<h2>Tables at the last validation</h2>"
        add(html.table(table_columns, told[#told].tables))
    end
    add "<h2>Settings</h2>"
    add(html.facts(settings_of(facts)))
    return html.page("Training of " .. facts.model, parts)
end

return page
