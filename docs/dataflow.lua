-- Draws docs/dataflow.svg, the picture in README.md: lua5.4 docs/dataflow.lua >docs/dataflow.svg
--
-- The figures are those of `lookupc plan gen/models/roberta_small.lua`.
local ink, quiet, accent, fill, paper = "#1f2933", "#52606d", "#0b6e99", "#e6f2f7", "#ffffff"
local width, height = 860, 480
local lines = {}

local function add(text, ...) lines[#lines + 1] = string.format(text, ...) end

local function escape(text) return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" })) end

local function text(x, y, words, options)
    options = options or {}
    add(
        '<text x="%d" y="%d" text-anchor="%s" font-size="%d" font-weight="%s" fill="%s">%s</text>',
        x,
        y,
        options.anchor or "middle",
        options.size or 14,
        options.weight or "normal",
        options.colour or ink,
        escape(words)
    )
end

-- A box whose first line is its name; the others say more.
local function box(x, y, w, h, words, plain)
    add(
        '<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>',
        x,
        y,
        w,
        h,
        plain and paper or fill,
        plain and quiet or accent
    )
    local first = y + h // 2 + 5 - (#words - 1) * 9
    for i, line in ipairs(words) do
        text(x + w // 2, first + (i - 1) * 18, line, {
            weight = i == 1 and "bold" or "normal",
            size = i == 1 and 14 or 13,
            colour = i == 1 and ink or quiet,
        })
    end
end

-- A line through the points x, y, x, y ..., with a tip at its end.
local function arrow(...)
    local points = { ... }
    local list = {}
    for i = 1, #points, 2 do
        list[#list + 1] = points[i] .. "," .. points[i + 1]
    end
    add(
        '<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#tip)"/>',
        table.concat(list, " "),
        quiet
    )
end

local function heading(y, title)
    local style = { anchor = "start", size = 15, weight = "bold", colour = accent }
    text(20, y, title, style)
end

-- `count` tables as stacks of rows from x on, one row of each marked.
local function tables(x, y, marked)
    for k, row in ipairs(marked) do
        for r = 0, 7 do
            add(
                '<rect x="%d" y="%d" width="40" height="8" fill="%s" stroke="%s"/>',
                x + (k - 1) * 50,
                y + r * 9,
                r == row and accent or paper,
                quiet
            )
        end
    end
end

add(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" '
        .. 'role="img" aria-labelledby="title">',
    width,
    height
)
add '<title id="title">lookupc turns a model file and weights into C and a blob; the layer looks up rows</title>'
add(
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        .. '<path d="M0,0 L8,4 L0,8 z" fill="%s"/></marker></defs>',
    quiet
)
add('<rect width="%d" height="%d" fill="%s"/>', width, height, paper)

heading(28, "Once, when you build")
box(20, 44, 130, 44, { "model file" }, true)
box(190, 44, 170, 44, { "lookupc emit" })
box(400, 44, 170, 44, { "C sources" }, true)
box(20, 104, 130, 44, { "weights" }, true)
box(190, 104, 170, 44, { "lookupc pack" })
box(400, 104, 170, 44, { "blob" }, true)
box(670, 44, 170, 104, { "your program", "compiles the C,", "maps the blob" }, true)
arrow(150, 66, 189, 66)
arrow(360, 66, 399, 66)
arrow(570, 66, 669, 66)
arrow(150, 134, 189, 134)
arrow(360, 126, 399, 126)
arrow(570, 126, 669, 126)
arrow(170, 66, 170, 118, 189, 118)

heading(196, "For every token, 0.67 MFLOP: y = bias + the sum of s[k] times row c[k] of table k")
box(20, 236, 70, 60, { "x", "512" }, true)
box(130, 221, 150, 90, { "projection", "LayerNorm, BH4", "1 MiB of weights" })
box(320, 221, 130, 90, { "sign hash", "128 codes c[k]", "128 scores s[k]" })
box(490, 212, 240, 108, {}, true)
tables(503, 234, { 2, 5, 0, 6 })
text(717, 274, "…", { colour = quiet })
box(770, 236, 70, 60, { "y", "512" }, true)
text(610, 338, "gather: one row of each of 128 tables,", { colour = quiet, size = 13 })
text(610, 355, "256 rows in a table", { colour = quiet, size = 13 })
arrow(90, 266, 129, 266)
arrow(280, 266, 319, 266)
text(300, 256, "z", { colour = quiet, size = 13 })
arrow(450, 266, 489, 266)
arrow(730, 266, 769, 266)

heading(398, "The dense FFN that it replaces, 4.19 MFLOP a token")
box(20, 412, 70, 48, { "x", "512" }, true)
box(130, 412, 150, 48, { "product", "512 x 2048" }, true)
box(320, 412, 130, 48, { "GELU" }, true)
box(490, 412, 150, 48, { "product", "2048 x 512" }, true)
box(770, 412, 70, 48, { "y", "512" }, true)
arrow(90, 436, 129, 436)
arrow(280, 436, 319, 436)
arrow(450, 436, 489, 436)
arrow(640, 436, 769, 436)
add "</svg>"

io.write(table.concat(lines, "\n"), "\n")
