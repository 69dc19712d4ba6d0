-- Draws a chart of lines and marks as SVG. 340 units wide with text of 12: a window of 360 pixels shows it unscaled.
local chart = {}

chart.width = 340
local height, left, right, top, bottom = 300, 46, 14, 22, 42
local line_height = 17

function chart.escape(text)
    return (tostring(text):gsub("[&<>\"']", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }))
end

local function number(value) return string.format("%.4g", value) end

-- One row a shape of marks: what is drawn around x, y.
local shapes = {
    circle = function(x, y) return string.format('<circle class="mark" cx="%.1f" cy="%.1f" r="4"/>', x, y) end,
    square = function(x, y) return string.format('<rect class="mark hollow" x="%.1f" y="%.1f" width="8" height="8"/>', x - 4, y - 4) end,
    triangle = function(x, y) return string.format('<path class="mark hollow" d="M%.1f %.1fl5 9h-10z"/>', x, y - 6) end,
}
chart.shapes = { "circle", "square", "triangle" }

-- From a value to its place between `first` and `last`; axis: { from, to, log }.
local function scale(axis, first, last)
    local f = axis.log and math.log or function(value) return value end
    local from, to = f(axis.from), f(axis.to)
    return function(value) return first + (last - first) * (f(value) - from) / (to - from) end
end

-- Numbers at which an axis is marked: its own, or 1, 2 and 5 times powers of ten, or the powers alone where that is enough.
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
        return list
    end
    local step = 10.0 ^ math.floor(math.log((axis.to - axis.from) / 5, 10))
    for _, times in ipairs { 1, 2, 5, 10 } do
        if (axis.to - axis.from) / (step * times) <= 6 then step = step * times break end
    end
    for i = 0, 6 do
        if axis.from + i * step <= axis.to * 1.0001 then list[#list + 1] = axis.from + i * step end
    end
    return list
end

-- Marks of one shape whose labels would touch share one label, in the order of the marks.
local function labels_of(marks)
    local list = {}
    for _, mark in ipairs(marks) do
        local found
        for _, label in ipairs(list) do
            if label.shape == mark.shape and math.abs(label.y - mark.y) < 13 and math.abs(label.x - mark.x) < 24 then found = label end
        end
        if found then
            found.text = found.text .. ", " .. mark.label
        else
            list[#list + 1] = { x = mark.x, y = mark.y, shape = mark.shape, text = mark.label }
        end
    end
    return list
end

-- spec: title; x and y, axes { label, from, to, log, ticks }; lines, a list of { label, dash, points = { {x, y} }, shape (of its
-- marks, if any) }; marks, a list of { x, y, shape, label }; shapes, a list of { shape, label } for the legend; above: labels stand above
-- their marks instead of beside them, where a line would cross them.
function chart.draw(spec)
    local out = {}
    local function add(format, ...) out[#out + 1] = string.format(format, ...) end
    local x_at, y_at = scale(spec.x, left, chart.width - right), scale(spec.y, height - bottom, top)
    local legend = {}
    for _, entry in ipairs(spec.shapes or {}) do legend[#legend + 1] = entry end
    for _, line in ipairs(spec.lines) do legend[#legend + 1] = line end
    local rows = (#legend + 1) // 2
    add('<svg viewBox="0 0 %d %d" role="img" aria-label="%s">', chart.width, height + rows * line_height + 4, chart.escape(spec.title))

    local last
    for _, value in ipairs(chart.ticks(spec.x)) do
        local x = x_at(value)
        add('<path class="grid" d="M%.1f %dV%d"/>', x, top, height - bottom)
        if not last or x - last >= 34 then
            add('<text x="%.1f" y="%d" text-anchor="middle">%s</text>', x, height - bottom + 16, number(value))
            last = x
        end
    end
    for _, value in ipairs(chart.ticks(spec.y)) do
        add('<path class="grid" d="M%d %.1fH%d"/>', left, y_at(value), chart.width - right)
        add('<text x="%d" y="%.1f" text-anchor="end">%s</text>', left - 6, y_at(value) + 4, number(value))
    end
    add('<path class="axis" d="M%d %dV%dH%d"/>', left, top, height - bottom, chart.width - right)
    add('<text x="%d" y="%d" text-anchor="middle">%s</text>', (left + chart.width - right) // 2, height - 6, chart.escape(spec.x.label))
    add('<text x="2" y="12">%s</text>', chart.escape(spec.y.label))

    for _, line in ipairs(spec.lines) do
        local path = {}
        for i, point in ipairs(line.points) do path[i] = string.format("%s%.1f %.1f", i == 1 and "M" or "L", x_at(point[1]), y_at(point[2])) end
        add('<path class="line" stroke-dasharray="%s" d="%s"/>', line.dash, table.concat(path))
    end
    local marks = {}
    for i, mark in ipairs(spec.marks) do
        marks[i] = { x = x_at(mark.x), y = y_at(mark.y), shape = mark.shape, label = mark.label }
        out[#out + 1] = shapes[mark.shape](marks[i].x, marks[i].y)
    end
    for _, label in ipairs(labels_of(marks)) do
        local width = 7 * utf8.len(label.text)
        if spec.above then
            add('<text class="value" x="%.1f" y="%.1f" text-anchor="middle">%s</text>', label.x, label.y - 9, chart.escape(label.text))
        elseif label.x + 8 + width < chart.width then
            add('<text class="value" x="%.1f" y="%.1f">%s</text>', label.x + 8, label.y + 4, chart.escape(label.text))
        else
            add('<text class="value" x="%.1f" y="%.1f" text-anchor="end">%s</text>', label.x - 8, label.y + 4, chart.escape(label.text))
        end
    end

    for i, entry in ipairs(legend) do
        local x, y = 6 + (i - 1) // rows * 156, height + (i - 1) % rows * line_height + 10
        if entry.dash then add('<path class="line" stroke-dasharray="%s" d="M%d %dH%d"/>', entry.dash, x, y, x + 28) end
        if entry.shape then out[#out + 1] = shapes[entry.shape](x + 14, y) end
        add('<text x="%d" y="%d">%s</text>', x + 34, y + 4, chart.escape(entry.label))
    end
    add("</svg>")
    return table.concat(out, "\n")
end

return chart
