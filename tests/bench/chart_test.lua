-- Axes are marked at few round numbers, and a chart says every label once.
local chart = require "harness.report.chart"
local check = require "tests.support.check"
local html = require "harness.report.html"

local test = {}

function test.ticks_are_few_and_round()
    check.equal(chart.ticks { from = 0, to = 5.9 }, { 0.0, 1.0, 2.0, 3.0, 4.0, 5.0 })
    check.equal(chart.ticks { from = 0, to = 70 }, { 0.0, 20.0, 40.0, 60.0 })
    check.equal(chart.ticks { from = 3, to = 60, log = true }, { 5.0, 10.0, 20.0, 50.0 })
    check.equal(chart.ticks { from = 0.2, to = 300, log = true }, { 1.0, 10.0, 100.0 })
    local narrow = chart.ticks { from = 0.87, to = 1.35, log = true }
    check.equal(#narrow, 5)
    for i, expected in ipairs { 0.9, 1, 1.1, 1.2, 1.3 } do
        check.near(narrow[i], expected, 1e-12)
    end
    check.equal(chart.ticks { from = 1, to = 9, ticks = { 1, 8 } }, { 1, 8 })
    for _, to in ipairs { 1, 1.3, 2.9, 9.99, 10, 123, 5000 } do
        local count = #chart.ticks { from = 0, to = to }
        check.equal(count >= 3 and count <= 7, true)
    end
end

local axes = { x = { label = "x in <m>", from = 1, to = 100, log = true }, y = { label = "y & z", from = 0, to = 10 } }

local function draw(marks) return chart.draw { title = "t", x = axes.x, y = axes.y, lines = {}, marks = marks } end

function test.marks_that_touch_share_a_label()
    local drawing = draw {
        { x = 10, y = 5, shape = "circle", label = "8" },
        { x = 10, y = 5.1, shape = "circle", label = "64" },
        { x = 10, y = 9, shape = "circle", label = "512" },
    }
    check.matches(drawing, ">8, 64</text>")
    check.matches(drawing, ">512</text>")
    -- Of different shapes they do not: one label would not tell which is which.
    check.matches(
        draw { { x = 10, y = 5, shape = "circle", label = "8" }, { x = 10, y = 5, shape = "square", label = "64" } },
        ">64</text>"
    )
end

function test.colours_intervals_and_titles()
    local drawing =
        draw { { x = 10, y = 5, low = 4, high = 20, shape = "circle", colour = 3, title = "a < b", ring = true } }
    check.matches(drawing, 'class="mark c3"[^>]*><title>a &lt; b</title></circle>')
    check.matches(drawing, 'class="ring"')
    -- The axis ends at 10: the interval does, too, and has no end there.
    local _, y, top = drawing:match('class="line c3"[^>]* d="M([%d.]+) ([%d.]+)V([%d.]+)M[%d. ]+h4"')
    check.equal(tonumber(y) > tonumber(top), true)
    check.equal(top, "22.0")
end

function test.axes_may_name_their_ticks()
    local drawing = chart.draw {
        title = "t & u",
        description = "what <it> shows",
        x = {
            label = "x",
            from = 0,
            to = 3,
            ticks = { 1, 2 },
            name = function(tick) return tick == 2 and "<new>" or "one" end,
        },
        y = axes.y,
        lines = {},
        marks = {},
        shapes = { { shape = "diamond", colour = 0, label = ("long "):rep(6) }, { shape = "circle", label = "short" } },
    }
    check.matches(drawing, ">one</text>")
    check.matches(drawing, ">&lt;new&gt;</text>")
    check.matches(drawing, "<title>t &amp; u</title>\n<desc>what &lt;it&gt; shows</desc>")
    local x = drawing:match('<text x="(%d+)" y="%d+">short')
    check.matches(drawing, '<text x="' .. x .. '" y="%d+">long') -- a long label takes a line of its own
end

function test.text_is_escaped()
    check.equal(html.escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;")
    check.matches(draw {}, "x in &lt;m&gt;</text>")
    check.matches(draw {}, "y &amp; z</text>")
end

return test
