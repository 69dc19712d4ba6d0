-- Axes are marked at few round numbers, and a chart says every label once.
local chart = require "harness.chart"
local check = require "tests.check"
local html = require "harness.html"

local test = {}

function test.ticks_are_few_and_round()
    check.equal(chart.ticks { from = 0, to = 5.9 }, { 0.0, 1.0, 2.0, 3.0, 4.0, 5.0 })
    check.equal(chart.ticks { from = 0, to = 70 }, { 0.0, 20.0, 40.0, 60.0 })
    check.equal(chart.ticks { from = 3, to = 60, log = true }, { 5.0, 10.0, 20.0, 50.0 })
    check.equal(chart.ticks { from = 0.2, to = 300, log = true }, { 1.0, 10.0, 100.0 })
    check.equal(chart.ticks { from = 1, to = 9, ticks = { 1, 8 } }, { 1, 8 })
    for _, to in ipairs { 1, 1.3, 2.9, 9.99, 10, 123, 5000 } do
        local count = #chart.ticks { from = 0, to = to }
        check.equal(count >= 3 and count <= 7, true)
    end
end

local axes = { x = { label = "x in <m>", from = 1, to = 100, log = true }, y = { label = "y & z", from = 0, to = 10 } }

local function draw(marks) return chart.draw { title = "t", x = axes.x, y = axes.y, lines = {}, marks = marks } end

function test.marks_that_touch_share_a_label()
    local drawing = draw { { x = 10, y = 5, shape = "circle", label = "8" }, { x = 10, y = 5.1, shape = "circle", label = "64" }, { x = 10, y = 9, shape = "circle", label = "512" } }
    check.matches(drawing, ">8, 64</text>")
    check.matches(drawing, ">512</text>")
    -- Of different shapes they do not: one label would not tell which is which.
    check.matches(draw { { x = 10, y = 5, shape = "circle", label = "8" }, { x = 10, y = 5, shape = "square", label = "64" } }, ">64</text>")
end

function test.text_is_escaped()
    check.equal(html.escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;")
    check.matches(draw {}, "x in &lt;m&gt;</text>")
    check.matches(draw {}, "y &amp; z</text>")
end

return test
