-- What all pages share: escaping, style, figures, tables and the frame, so that each is one file that needs no other.
local html = {}

function html.escape(text)
    return (
        tostring(text):gsub(
            "[&<>\"']",
            { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }
        )
    )
end

-- Colours c1, c2, … in the order of a rainbow, for values that have an order; those of the second list are for dark
-- screens. c0 is grey.
html.colours = 8
local colours = {
    { "#1f5fbf", "#0b8296", "#1c8a4a", "#7d7d00", "#b86a00", "#c8372d", "#b0309a", "#6a4fc0" },
    { "#6aa5ff", "#3cc8dc", "#4fcf85", "#c9c73a", "#f0a63c", "#ff7f73", "#ec7ddb", "#b09bff" },
}

local function colour_names(list)
    local names = {}
    for i, colour in ipairs(list) do
        names[i] = string.format("--c%d: %s;", i, colour)
    end
    return table.concat(names, " ")
end

local function colour_classes()
    local classes = { "svg .c0 { fill: var(--soft); stroke: var(--soft); }\n" }
    for i = 1, html.colours do
        classes[i + 1] = string.format("svg .c%d { fill: var(--c%d); stroke: var(--c%d); }\n", i, i, i)
    end
    return table.concat(classes)
end

local style = [[
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #444; --axis: #555; --rule: #ddd;
    --grid: #e2e2e2; --mark: #0b5cad; LIGHT }
@media (prefers-color-scheme: dark) {
:root { --ink: #e4e4e4; --paper: #16181b; --soft: #b4b4b4; --axis: #999; --rule: #3a3d42;
    --grid: #2c2f34; --mark: #6aa5ff; DARK }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
    max-width: 77rem; margin: 0 auto; padding: 0.6rem; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 1.6rem 0 0.3rem; }
h3 { font-size: 1.1rem; margin: 1.2rem 0 0.3rem; }
p { margin: 0.4rem 0; max-width: 62rem; overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 0 2rem; }
figure { margin: 0; flex: 1 1 340px; min-width: 0; max-width: 460px; }
figcaption { font-size: 0.9rem; color: var(--soft); }
.wide { overflow-x: auto; }
svg { width: 100%; min-width: 340px; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .value { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .grid { stroke: var(--grid); fill: none; }
svg .axis { stroke: var(--axis); fill: none; }
svg .mark { fill: var(--mark); stroke: var(--mark); stroke-width: 1.5; }
CLASSES
svg .cell { fill: var(--mark); stroke: var(--grid); stroke-width: 0.5; }
svg .wrong { fill: var(--c6); }
svg .hollow { fill: var(--paper); }
svg .ring { fill: none; stroke: var(--ink); stroke-width: 1.5; }
svg .line { fill: none; stroke-width: 1.5; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.3rem; text-align: right; border-bottom: 1px solid var(--rule); }
th { vertical-align: bottom; font-weight: 600; }
td { white-space: nowrap; vertical-align: top; }
th.text, td.text { text-align: left; white-space: normal; }
td.long { white-space: normal; min-width: 9rem; overflow-wrap: anywhere; }
tr.off td { color: var(--soft); text-decoration: line-through; }
tr.off td.first { text-decoration: none; }
th.first, td.first { position: sticky; left: 0; background: var(--paper); }
.facts th { text-align: left; vertical-align: top; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
details { margin: 0.4rem 0; }
summary { cursor: pointer; }
]]
style = style
    :gsub("LIGHT", colour_names(colours[1]))
    :gsub("DARK", colour_names(colours[2]))
    :gsub("CLASSES\n", colour_classes())

-- A drawing of harness/report/chart.lua under its head; the caption is plain text.
function html.figure(level, head, drawing, caption)
    return string.format(
        '<figure>\n<h%d>%s</h%d>\n<div class="wide">\n%s\n</div>\n<figcaption>%s</figcaption>\n</figure>',
        level,
        html.escape(head),
        level,
        drawing,
        html.escape(caption)
    )
end

function html.figures(list) return '<div class="charts">\n' .. table.concat(list, "\n") .. "\n</div>" end

-- Of one of several things that a page is about.
function html.heading(text) return "<h1>" .. html.escape(text) .. "</h1>" end

function html.paragraph(text) return "<p>" .. html.escape(text) .. "</p>" end

-- A table called `label`, one row an item of `list`. columns: { head, value(item), text, long, first }: text is aligned
-- to the left, long text has room before it breaks into lines, and the first column stays in sight where a table is
-- wider than the page: then arrow keys scroll it once it has the focus. off(item), optional: whether its row is struck.
function html.table(label, columns, list, off)
    local rows = {}
    local function add(tag, scope, cell, struck)
        local cells = {}
        for i, column in ipairs(columns) do
            local names = {}
            for _, name in ipairs { "text", "long", "first" } do
                if column[name] or name == "text" and column.long then names[#names + 1] = name end
            end
            local class = #names > 0 and string.format(' class="%s"', table.concat(names, " ")) or ""
            cells[i] = string.format("<%s%s%s>%s</%s>", tag, scope, class, html.escape(cell(column)), tag)
        end
        rows[#rows + 1] = (struck and '<tr class="off">' or "<tr>") .. table.concat(cells) .. "</tr>"
    end
    add("th", ' scope="col"', function(column) return column[1] end)
    for _, item in ipairs(list) do
        add("td", "", function(column) return column[2](item) end, off and off(item))
    end
    local form = '<div class="wide" role="region" tabindex="0" aria-label="%s">\n<table>\n%s\n</table>\n</div>'
    return form:format(html.escape(label), table.concat(rows, "\n"))
end

-- A table of { name, text }, whose lines break.
function html.facts(list)
    local rows = {}
    for i, fact in ipairs(list) do
        rows[i] =
            string.format('<tr><th scope="row">%s</th><td>%s</td></tr>', html.escape(fact[1]), html.escape(fact[2]))
    end
    return '<table class="facts">\n' .. table.concat(rows, "\n") .. "\n</table>"
end

-- What is shown when its summary is chosen.
function html.details(summary, ...)
    return string.format(
        "<details>\n<summary>%s</summary>\n%s\n</details>",
        html.escape(summary),
        table.concat({ ... }, "\n")
    )
end

-- The whole page: `parts` are its elements.
function html.page(title, parts)
    local head = html.escape(title)
    return table.concat({
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>" .. head .. "</title>",
        "<style>\n" .. style .. "</style>",
        "</head>",
        "<body>",
        "<h1>" .. head .. "</h1>",
        table.concat(parts, "\n"),
        "</body>",
        "</html>",
        "",
    }, "\n")
end

-- A number of bytes, nil or 0 if it is not known.
function html.bytes(n)
    if not n or n == 0 then return "unknown" end
    if n >= 1 << 20 then return string.format("%.4g MiB", n / (1 << 20)) end
    return string.format("%.4g KiB", n / (1 << 10))
end

return html
