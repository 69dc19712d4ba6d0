-- Draws a chart of lines, marks and intervals as SVG. 340 units wide with text of 12: a window of 360 pixels shows it
-- unscaled.
local html = require "harness.report.html"

local chart = {}

chart.width = 340
local height, left, right, top, bottom = 300, 46, 14, 22, 42
local line_height = 17

local function number(value) return string.format("%.4g", value) end

-- One row a shape of marks: the element that draws it and its attributes around x, y; `r` is about its radius.
local shapes = {
    circle = {
        element = "circle",
        at = function(x, y, r) return string.format('cx="%.1f" cy="%.1f" r="%.1f"', x, y, r) end,
    },
    square = {
        element = "rect",
        hollow = true,
        at = function(x, y, r)
            return string.format('x="%.1f" y="%.1f" width="%.1f" height="%.1f"', x - r, y - r, 2 * r, 2 * r)
        end,
    },
    triangle = {
        element = "path",
        hollow = true,
        at = function(x, y, r)
            return string.format('d="M%.1f %.1fl%.1f %.1fh%.1fz"', x, y - 1.5 * r, 1.25 * r, 2.25 * r, -2.5 * r)
        end,
    },
    diamond = {
        element = "path",
        at = function(x, y, r)
            return string.format(
                'd="M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fz"',
                x,
                y - 1.4 * r,
                x + 1.2 * r,
                y,
                x,
                y + 1.4 * r,
                x - 1.2 * r,
                y
            )
        end,
    },
}
chart.shapes = { "circle", "square", "triangle", "diamond" }

local function colour_class(colour) return colour and " c" .. colour or "" end

-- A mark { shape, colour, title, small } at x, y.
local function draw_mark(mark, x, y)
    local shape = shapes[mark.shape]
    local start = string.format(
        '<%s class="mark%s%s" %s',
        shape.element,
        colour_class(mark.colour),
        shape.hollow and " hollow" or "",
        shape.at(x, y, mark.small and 2.8 or 4)
    )
    if not mark.title then return start .. "/>" end
    return string.format("%s><title>%s</title></%s>", start, html.escape(mark.title), shape.element)
end

local function draw_line(line, path)
    return string.format(
        '<path class="line%s" stroke-dasharray="%s" d="%s"/>',
        colour_class(line.colour or 0),
        line.dash,
        path
    )
end

-- From a value to its place between `first` and `last`; axis: { from, to, log }.
local function scale(axis, first, last)
    local f = axis.log and math.log or function(value) return value end
    local from, to = f(axis.from), f(axis.to)
    return function(value) return first + (last - first) * (f(value) - from) / (to - from) end
end

-- Numbers at which an axis is marked: its own, or 1, 2 and 5 times powers of ten, or the powers alone where that is
-- enough, or evenly spaced ones where these are too few.
function chart.ticks(axis)
    if axis.ticks then return axis.ticks end
    local list = {}
    if axis.log then
        local wide = axis.to / axis.from >= 100
        for power = -9, 12 do
            for _, digit in ipairs(wide and { 1 } or { 1, 2, 5 }) do
                local value = digit * 10.0 ^ power
                if value >= axis.from and value <= axis.to then list[#list + 1] = value end
            end
        end
        if #list > 2 or wide then return list end
        list = {}
    end
    local step = 10.0 ^ math.floor(math.log((axis.to - axis.from) / 5, 10))
    for _, times in ipairs { 1, 2, 5, 10 } do
        if (axis.to - axis.from) / (step * times) <= 6 then
            step = step * times
            break
        end
    end
    local first = math.ceil(axis.from / step - 1e-6)
    for i = first, first + 6 do
        if i * step <= axis.to * 1.0001 then list[#list + 1] = i * step end
    end
    return list
end

-- Marks of one shape whose labels would touch share one label, in the order of the marks.
local function labels_of(marks)
    local list = {}
    for _, mark in ipairs(marks) do
        local found
        for _, label in ipairs(list) do
            if label.shape == mark.shape and math.abs(label.y - mark.y) < 13 and math.abs(label.x - mark.x) < 24 then
                found = label
            end
        end
        if found then
            found.text = found.text .. ", " .. mark.label
        else
            list[#list + 1] = { x = mark.x, y = mark.y, shape = mark.shape, text = mark.label }
        end
    end
    return list
end

-- An entry of the legend: two columns of them, or one if a label is long.
local function draw_legend(out, legend, rows)
    for i, entry in ipairs(legend) do
        local x, y = 6 + (i - 1) // rows * 156, height + (i - 1) % rows * line_height + 10
        if entry.dash then out[#out + 1] = draw_line(entry, string.format("M%d %dH%d", x, y, x + 28)) end
        if entry.shape then out[#out + 1] = draw_mark({ shape = entry.shape, colour = entry.colour }, x + 14, y) end
        out[#out + 1] = string.format('<text x="%d" y="%d">%s</text>', x + 34, y + 4, html.escape(entry.label))
    end
end

-- The interval of a mark at x: a line with an end at low and at high, none where the axis ends before.
local function whisker(mark, x, axis, y_at)
    local low, high = math.max(mark.low, axis.from), math.min(mark.high, axis.to)
    local path = string.format("M%.1f %.1fV%.1f", x, y_at(low), y_at(high))
    for _, bound in ipairs { mark.low, mark.high } do
        if bound == low or bound == high then path = path .. string.format("M%.1f %.1fh4", x - 2, y_at(bound)) end
    end
    return draw_line({ colour = mark.colour, dash = "" }, path)
end

-- The entries of the legend: shapes, then lines that have a label; and in how many rows it has them.
local function legend_of(spec)
    local legend, longest = table.move(spec.shapes or {}, 1, #(spec.shapes or {}), 1, {}), 0
    for _, line in ipairs(spec.lines) do
        if line.label then legend[#legend + 1] = line end
    end
    for _, entry in ipairs(legend) do
        longest = math.max(longest, utf8.len(entry.label))
    end
    return legend, longest > 21 and #legend or (#legend + 1) // 2
end

local function draw_axes(add, spec, x_at, y_at)
    local last
    local name, space = spec.x.name or number, spec.x.name and 20 or 34
    for _, value in ipairs(chart.ticks(spec.x)) do
        local x = x_at(value)
        add('<path class="grid" d="M%.1f %dV%d"/>', x, top, height - bottom)
        if not last or x - last >= space then
            local text = html.escape(name(value))
            add('<text x="%.1f" y="%d" text-anchor="middle">%s</text>', x, height - bottom + 16, text)
            last = x
        end
    end
    for _, value in ipairs(chart.ticks(spec.y)) do
        add('<path class="grid" d="M%d %.1fH%d"/>', left, y_at(value), chart.width - right)
        add('<text x="%d" y="%.1f" text-anchor="end">%s</text>', left - 6, y_at(value) + 4, number(value))
    end
    add('<path class="axis" d="M%d %dV%dH%d"/>', left, top, height - bottom, chart.width - right)
    local middle = (left + chart.width - right) // 2
    add('<text x="%d" y="%d" text-anchor="middle">%s</text>', middle, height - 6, html.escape(spec.x.label))
    add('<text x="2" y="12">%s</text>', html.escape(spec.y.label))
end

-- Labels of marks: beside them, or `above`.
local function draw_labels(add, labels, above)
    for _, label in ipairs(labels) do
        local x, y, anchor = label.x + 8, label.y + 4, ""
        if above then
            x, y, anchor = label.x, label.y - 9, ' text-anchor="middle"'
        elseif x + 7 * utf8.len(label.text) >= chart.width then
            x, anchor = label.x - 8, ' text-anchor="end"'
        end
        add('<text class="value" x="%.1f" y="%.1f"%s>%s</text>', x, y, anchor, html.escape(label.text))
    end
end

-- spec: title; description, for those who do not see it; x and y, axes { label, from, to, log, ticks, name(tick) };
-- lines, a list of { label (nil: not in the legend), dash, points = { {x, y} }, colour, shape (of its marks, if any) };
-- marks, a list of { x, y, shape, label, colour, title (a word when pointed at), low and high (an interval of y), ring
-- (stands out), small };
-- shapes, a list of { shape, label, colour } for the legend; above: labels stand above their marks instead of beside
-- them, where a line would cross them. Intervals end where the axis does. Colours are those of harness/report/html.lua,
-- 0: grey, 1 to html.colours; nil: the one of all marks, or grey for lines.
function chart.draw(spec)
    local out = {}
    local function add(format, ...) out[#out + 1] = string.format(format, ...) end
    local x_at, y_at = scale(spec.x, left, chart.width - right), scale(spec.y, height - bottom, top)
    local legend, rows = legend_of(spec)
    add('<svg viewBox="0 0 %d %d" role="img">', chart.width, height + rows * line_height + 4)
    add("<title>%s</title>", html.escape(spec.title))
    if spec.description then add("<desc>%s</desc>", html.escape(spec.description)) end
    draw_axes(add, spec, x_at, y_at)
    for _, line in ipairs(spec.lines) do
        local path = {}
        for i, point in ipairs(line.points) do
            path[i] = string.format("%s%.1f %.1f", i == 1 and "M" or "L", x_at(point[1]), y_at(point[2]))
        end
        out[#out + 1] = draw_line(line, table.concat(path))
    end
    local labelled = {}
    for _, mark in ipairs(spec.marks) do
        local x, y = x_at(mark.x), y_at(mark.y)
        if mark.label then
            labelled[#labelled + 1] = { x = x, y = mark.ring and y - 4 or y, shape = mark.shape, label = mark.label }
        end
        if mark.low then out[#out + 1] = whisker(mark, x, spec.y, y_at) end
        out[#out + 1] = draw_mark(mark, x, y)
        if mark.ring then add('<circle class="ring" cx="%.1f" cy="%.1f" r="8"/>', x, y) end
    end
    draw_labels(add, labels_of(labelled), spec.above)
    draw_legend(out, legend, rows)
    add("</svg>")
    return table.concat(out, "\n")
end

return chart
