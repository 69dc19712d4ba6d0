-- Draws heatmaps of one row as SVG: each cell stands for a value, darker for more, and red where something is wrong.
local chart = require "harness.report.chart"
local html = require "harness.report.html"

local heatmap = {}

local size, gap, most = 9, 1.5, 32 -- a cell, between two, cells of a line
local left, line_of_text = 2, 18

-- title; list: { label, cells = { { share (0 to 1), wrong, title (a word when pointed at) } } }, one below the other.
function heatmap.draw(title, list)
    local out, y = {}, 0
    local function add(format, ...) out[#out + 1] = string.format(format, ...) end
    for _, strip in ipairs(list) do
        add('<text x="%d" y="%g">%s</text>', left, y + 13, html.escape(strip.label))
        y = y + line_of_text
        for i, cell in ipairs(strip.cells) do
            add(
                '<rect class="cell%s" x="%g" y="%g" width="%d" height="%d" fill-opacity="%.2f">'
                    .. "<title>%s</title></rect>",
                cell.wrong and " wrong" or "",
                left + (i - 1) % most * (size + gap),
                y + (i - 1) // most * (size + gap),
                size,
                size,
                cell.wrong and 1 or 0.08 + 0.92 * cell.share,
                html.escape(cell.title)
            )
        end
        y = y + ((#strip.cells - 1) // most + 1) * (size + gap) + 4
    end
    return string.format(
        '<svg viewBox="0 0 %d %g" role="img">\n<title>%s</title>\n%s\n</svg>',
        chart.width,
        y,
        html.escape(title),
        table.concat(out, "\n")
    )
end

return heatmap
