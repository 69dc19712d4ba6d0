-- What the commands for text are made of: text that appears whole, CSV, correlations, and choices among logits.
local check = require "tests.support.check"
local correlation = require "harness.families.model.correlation"
local csv = require "harness.families.model.csv"
local rows = require "rows"
local text_stream = require "harness.families.model.text_stream"

local test = {}

-- What a stream gives out for each of `pieces`, the rest behind it, and after which piece the stop came.
local function streamed(stop, pieces)
    local s, list, stopped = text_stream.new(stop), {}, nil
    for i, piece in ipairs(pieces) do
        local text, now = s.add(piece)
        list[i] = text
        if now then
            stopped = i
            break
        end
    end
    list[#list + 1] = s.rest()
    return list, stopped
end

function test.characters_appear_whole()
    check.equal(streamed(nil, { "a\xc3", "\xa9b", "\xf0", "\x9f\x98", "\x80" }), { "a", "éb", "", "", "😀", "" })
    -- What can become no character is not held back; what is cut off at the end appears as it is.
    check.equal(streamed(nil, { "\xa9", "\xff", "\xc3x", "\xe2\x82" }), { "\xa9", "\xff", "\xc3x", "", "\xe2\x82" })
end

function test.a_stop_is_not_printed()
    local list, stopped = streamed("\n\n", { "a\n", "b", "\n", "\nc" })
    check.equal(list, { "a", "\nb", "", "", "" })
    check.equal(stopped, 4)
    check.equal({ streamed("END", { "xEN", "Ey", "E" }) }, { { "x", "ENEy", "", "E" } })
    check.equal({ streamed("é", { "\xc3", "\xa9" }) }, { { "", "", "" }, 2 })
end

function test.csv_has_quotes_and_line_numbers()
    local text = '\xef\xbb\xbfa,"b, ""c""",1\r\n\r\n"two\nlines",,"2"\nlast,,'
    check.equal(csv.rows("p", text), {
        { fields = { "a", 'b, "c"', "1" }, line = 1 },
        { fields = { "two\nlines", "", "2" }, line = 3 },
        { fields = { "last", "", "" }, line = 5 },
    })
    check.equal(csv.rows("p", ""), {})
    check.fails_with("p:2: a quoted field has no end", csv.rows, "p", 'a\n"b\n')
    check.fails_with("p:1: text stands behind a quoted field", csv.rows, "p", '"a" ,b')
end

function test.correlations_are_their_definitions()
    check.near(correlation.pearson({ 1, 2, 3 }, { 2, 4, 6 }), 1, 1e-15)
    check.near(correlation.pearson({ 1, 2, 3, 4 }, { 1, -1, -1, 1 }), 0, 1e-15)
    check.equal(correlation.ranks { 5, 1, 5, 0 }, { 3.5, 2.0, 3.5, 1.0 })
    check.near(correlation.spearman({ 1, 10, 100 }, { -3, -2, 7 }), 1, 1e-15)
end

local function floats(list) return string.pack(("<f"):rep(#list), table.unpack(list)) end

function test.choices_follow_the_logits()
    local logits = floats { math.log(0.2), math.log(0.5), math.log(0.3), -math.huge }
    local function draw(temperature, top_k, top_p, u) return rows.draw(logits, temperature, top_k, top_p, u) end
    check.equal(draw(0, 0, 1, 0.99), 1)
    -- All in the order of their ids; those that top_k or top_p leaves with the likeliest first.
    check.equal({ draw(1, 0, 1, 0), draw(1, 0, 1, 0.19), draw(1, 0, 1, 0.21), draw(1, 0, 1, 0.9999) }, { 0, 0, 1, 2 })
    check.equal({ draw(1, 2, 1, 0.62), draw(1, 2, 1, 0.63), draw(1, 1, 1, 0.99) }, { 1, 2, 1 })
    check.equal({ draw(1, 0, 0.5, 0.99), draw(1, 0, 0.51, 0.99), draw(1, 0, 0.81, 0.99) }, { 1, 2, 0 })
    check.equal(rows.draw(floats { 1, 2, 2 }, 0, 0, 1, 0), 1)
    check.equal(rows.draw(floats { 1, 0 / 0, 2 }, 0, 0, 1, 0), nil)
    check.equal(rows.draw(floats { 1e30, -1e30 }, 1e-3, 0, 1, 0.99), 0)
end

function test.surprisal_is_that_of_the_softmax()
    check.near(rows.surprisal(floats { 0, math.log(3) }, 2, { 0 }), math.log(4), 1e-7)
    check.near(rows.surprisal(floats { 1000, 1000 }, 2, { 1 }), math.log(2), 1e-12)
    local both = floats { 0, math.log(3), 1000, 1000 }
    check.near(rows.surprisal(both, 2, { 0, 1 }), math.log(4) + math.log(2), 1e-7)
end

function test.surprisal_counts_the_rows_whose_largest_value_is_the_ids()
    local function hits(...) return select(2, rows.surprisal(...)) end
    local both = floats { 0, 1, 2, 2, 0, 2 }
    check.equal(hits(both, 3, { 2, 0 }), 2)
    check.equal(hits(both, 3, { 1, 2 }), 0) -- of equal ones the first
end

return test
