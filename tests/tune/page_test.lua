-- The page of a tuning says every candidate once, intervals where they were measured, what was left out and why, and
-- nothing that was not found.
local check = require "tests.support.check"
local host = require "host"
local page = require "harness.tune.page"
local program = require "tests.support.program"
local race = require "harness.tune.race"
local schedule = require "gen.families.lookup.schedule"

local test = {}

local default = {}
for _, c in ipairs(schedule.choices) do
    default[c.key] = 1
end

-- The default with other choices.
local function with(changes)
    local s = {}
    for key, value in pairs(default) do
        s[key] = changes[key] or value
    end
    return s
end

local o = { threads = 1, batches_text = "1,64" }
local model = { name = "sample" }

local function session()
    return {
        isa = { name = "avx512" },
        cc = "gcc",
        schedules = schedule,
        version = "gcc <12>",
        cflags = "-O2",
        key = {
            cpu_name = "A & B",
            isa_usable = "scalar,avx512",
            virtual = true,
            l1d = 32768,
            l1i = 32768,
            l2 = 1 << 20,
            l3_share = 0,
            compiler = "gcc <12>",
            tables = "f32",
            projection = "f32",
            generator = "0.1.0",
            templates = ("0"):rep(64),
        },
    }
end

-- A race of the default and 23 others, which take gather.group / 10 of its time; the fastest is confirmed.
local function sample_race()
    local field, history = {}, {}
    local function enter(s, bytes)
        field[#field + 1] =
            { text = schedule.text(s), schedule = s, cost = 1, made = { bytes = bytes, library = "x.so" } }
    end
    enter(default, 4096)
    for group = 8, 12 do
        for unroll = 1, 4 do
            enter(with { ["gather.group"] = group, ["gather.unroll"] = unroll }, 4096 + 100 * #field)
        end
    end
    for i = 2, #field do
        local ratio = field[i].schedule["gather.group"] / 10 + 0.001 * field[i].schedule["gather.unroll"]
        history[#history + 1] = {
            phase = "halving",
            rung = 1,
            number = 1,
            candidate = field[i].text,
            time = 2 * ratio,
            ratio = ratio,
            samples = 3,
            dropped = i > 3 and "not in the faster half" or nil,
        }
    end
    for _, s in ipairs {
        with { ["gather.accumulators"] = 64 },
        with { ["gather.accumulators"] = 32 },
        with { ["gather.accumulators"] = 16 },
    } do
        enter(s, 5000) -- was compiled, but there was no time
        history[#history + 1] = {
            phase = "halving",
            rung = 1,
            number = 2,
            candidate = field[#field].text,
            dropped = "no time left to measure it",
        }
    end
    for number = 3, 4 do
        local function final(name, ratio, low, high, dropped)
            history[#history + 1] = {
                phase = "final",
                rung = 1,
                number = number,
                candidate = name,
                time = 2 * ratio,
                ratio = ratio,
                low = low,
                high = high,
                samples = 8 * number,
                dropped = dropped,
            }
        end
        final(field[1].text, 1, 1.1, 1.4)
        final(field[2].text, 0.8, 1, 1)
        if number == 3 then
            final(field[3].text, 0.96, 1.15, 1.25, "slower than the leader: 1.200x (1.150 … 1.250)")
        end
        final(race.twin, 1.003, 0.985, 1.018)
    end
    history[#history + 1] = {
        phase = "confirm",
        rung = 1,
        number = 1,
        candidate = field[2].text,
        time = 1.6,
        ratio = 0.81,
        low = 0.79,
        high = 0.83,
        samples = 32,
    }
    return {
        regime = "many",
        batches = { 64 },
        field = field,
        space = schedule,
        history = history,
        winner = field[2].text,
        schedule = field[2].schedule,
        ratio = 0.8,
        low = 0.77,
        high = 0.84,
        samples = 32,
        decided = "winner",
        reason = "faster than the other finalists",
        loss = 0,
        unmeasured = 3,
        seconds = 12.4,
        total = 5000,
        untried = 7,
        failed = { { text = schedule.text(with { ["few.tokens"] = 2 }), reason = 'verify: few <y> & "z": wrong' } },
        rejected = {
            { text = schedule.text(with { ["tile.vectors"] = 4 }), reason = "registers: needs 40 of 32" },
            { text = schedule.text(with { ["tile.vectors"] = 3 }), reason = "registers: needs 36 of 32" },
            {
                text = schedule.text(with { ["chunk.tokens"] = 16 }),
                reason = "tile: 3.0 MiB of projection buffers, L2 has 1.0 MiB",
            },
        },
    }
end

local function sample()
    local r = sample_race()
    return {
        session = session(),
        default = default,
        schedule = r.schedule,
        races = { r },
        control = { centre = 1.003, low = 0.985, high = 1.018 },
        rows = {
            {
                batch = 1,
                default_us = 5,
                tuned_us = 5,
                ratio = { centre = 1, low = 0.99, high = 1.01 },
                dense_us = 20,
                dense_library = "onednn",
            },
            {
                batch = 64,
                default_us = 2,
                tuned_us = 1.6,
                ratio = { centre = 0.8, low = 0.77, high = 0.84 },
                dense_us = 9,
                dense_library = "openblas",
            },
        },
    }
end

local whole = page.page(model, { sample() }, o)

local function count(text, fragment)
    local n, start = 0, 1
    while true do
        local _, stop = text:find(fragment, start, true)
        if not stop then return n end
        n, start = n + 1, stop + 1
    end
end

local function drawing(text, title) return text:match("<svg[^>]*>\n<title>" .. title .. ".-</svg>") end

function test.every_candidate_appears_once()
    local chart, table =
        drawing(whole, "Time against size of code"),
        whole:match("<summary>All candidates that were compiled</summary>.-</details>")
    check.equal(count(chart, "KiB</title>"), 21) -- all that have a time
    check.equal(count(table, "<tr>"), 1 + 24)
    for group = 8, 12 do
        for unroll = 2, 4 do
            local changes = string.format("gather.group %d, gather.unroll %d", group, unroll)
            check.equal(count(chart, ">" .. changes .. ":"), 1)
            check.equal(count(table, changes), 1)
        end
    end
    check.matches(table, "<td>1.102</td><td>2.204</td><td>3</td>") -- 1.102 times the default's 2 µs
    check.equal(count(table, "no time left to measure it"), 3)
    check.equal(count(table, "gather.group 8 (chosen)"), 1)
end

function test.colour_is_the_choice_that_explains_most()
    check.matches(
        whole,
        "Colour: gather.group, the choice that explains most of the differences %(%d+ %% of the variance%)"
    )
    local chart = drawing(whole, "Time against size of code")
    for _, value in ipairs { 1, 8, 9, 10, 11, 12 } do
        check.equal(count(chart, ">gather.group " .. value .. "</text>"), 1)
    end
    check.equal(count(chart, "gather.unroll 2</text>"), 0)
end

function test.lines_of_the_default_and_the_dense_ffn()
    for _, title in ipairs { "Time against size of code", "The race of the finalists" } do
        local chart = drawing(whole, title)
        check.matches(chart, ">default</text>")
        check.matches(chart, ">dense FFN 4.50 ↑</text>") -- 9 µs over 2 µs: at 64 tokens only
        check.matches(chart, "<desc>")
    end
    check.matches(whole, "The dense FFN takes 4.50 times the default&#39;s time: its line stands at the top")
end

function test.intervals_of_the_finals()
    local chart = drawing(whole, "The race of the finalists")
    -- Of the ratio to the leader, which takes 0.8 of the default's time.
    check.equal(count(chart, "<title>default: 1.000 (0.880 … 1.120)</title>"), 2)
    check.equal(count(chart, "<title>B: 0.960 (0.920 … 1.000)</title>"), 1)
    -- Of the control and the confirmation to the default.
    check.equal(count(chart, "<title>A/A control: 1.003 (0.985 … 1.018)</title>"), 2)
    check.equal(count(chart, "<title>A: 0.810 (0.790 … 0.830)</title>"), 1)
    check.equal(count(chart, ">new</text>"), 1)
    check.matches(
        whole,
        '<td class="text">A</td><td>0.800</td><td>leader</td><td>32</td>.-in a new process 0.810 %(0.790 … 0.830%)</td>'
    )
    check.matches(whole, "slower than the leader: 1.200x")
end

function test.what_was_left_out_is_counted()
    check.matches(
        whole,
        "24 candidates of 5000 schedules compiled and verified, 21 of them timed in 12 s; 3 pruned before, 1 \z
            rejected, 7 left for lack of time%."
    )
    check.matches(whole, '<td>2</td><td class="text long">registers: needs … of …</td>')
    check.matches(whole, "registers: needs 40 of 32")
    check.matches(whole, "tile.vectors 4</td>")
end

function test.text_of_others_is_escaped()
    check.matches(whole, "verify: few &lt;y&gt; &amp; &quot;z&quot;: wrong")
    check.matches(whole, "A &amp; B")
    check.equal(count(whole, "<12>"), 0)
end

function test.an_outcome_of_the_store_shows_the_chosen_only()
    local found = {
        session = session(),
        default = default,
        schedule = with { ["gather.group"] = 8 },
        said = "records used: exact",
        level = "exact",
        missing = {},
        races = {
            {
                regime = "many",
                batches = "1,64",
                winner = "x",
                ratio = 0.8,
                low = 0.77,
                high = 0.84,
                samples = 32,
                decided = "winner",
            },
        },
    }
    local text = page.page(model, { found }, o)
    check.equal(count(text, "<svg"), 0)
    check.matches(text, "Nothing was measured for this page: records used: exact%.")
    check.matches(text, "gather.group</td><td>1</td><td>8 %*</td>")
    check.matches(text, "winner: 0.800 of the default&#39;s time %(0.770 … 0.840, 32 pairs%)%.")
    found.races = {}
    check.equal(count(page.page(model, { found }, o), "<svg"), 0)
end

-- Races of which little is known: no candidate but the default, no time.
function test.races_without_a_field_to_show()
    local found = sample()
    local r = found.races[1]
    r.field, r.history, r.winner = { r.field[1] }, {}, r.field[1].text
    found.rows = nil
    local text = page.page(model, { found }, o)
    check.equal(count(text, "<svg"), 0)
    check.matches(text, "1 candidate of 5000 schedules")
end

-- A default that won, or stayed for want of time, has no ratio; the second is no choice, and the page says so.
function test.a_default_that_is_kept_has_no_ratio()
    for decided, chosen in pairs { winner = true, ["no time"] = false, ["too noisy"] = false } do
        local found = sample()
        found.schedule, found.rows, found.control = default, nil, nil
        local r = { regime = "many", batches = { 64 }, schedule = default, reason = "why", samples = 0 }
        r.ratio, r.low, r.high, r.decided = 1, 1, 1, decided
        found.races = { r }
        local text = page.page(model, { found }, o)
        check.matches(text, decided .. ": the default is kept; why%.")
        check.equal({ count(text, "1.000"), count(text, "<h3>Chosen</h3>") }, { 0, chosen and 1 or 0 })
        check.equal(count(text, "Nothing was decided (many tokens: " .. decided .. ")"), chosen and 0 or 1)
        check.equal(count(text, "<h1>sample: nothing decided on A &amp; B</h1>"), chosen and 0 or 1)
    end
end

function test.the_page_is_well_formed()
    local path = program.folder() .. "/page.html"
    assert(host.write_file(path, whole))
    check.matches(program.page(path, 2), "sample tuned for A & B")
end

return test
