-- What bench says of figures that were taken while other work shared the core: they do not count.
local check = require "tests.support.check"
local counted = require "harness.report.counted"
local html = require "harness.report.html"
local page = require "harness.report.bench_page"
local statistics = require "harness.base.statistics"

local test = {}

local facts = {
    cpu = "a CPU",
    isa = { "avx2" },
    l1d = 32768,
    l2 = 1 << 20,
    l3 = 1 << 24,
    compiler = "gcc",
    flags = "-O2",
    openblas = "Haswell",
    onednn = "2.6",
}
local limits = { fma_gflops = 100, l1_gbytes = 200, l2_gbytes = 100, l3_gbytes = 20, memory_gbytes = 10 }

local function result(batch, share)
    return {
        model = "tiny",
        batch = batch,
        threads = 1,
        isa = "avx2",
        schedule = "gather.group=8",
        projection_dtype = "f32",
        table_dtype = "f32",
        us_per_token = 1.25,
        stages = { project = 0.5, gather = 0.5 },
        dense_us_per_token = 5,
        dense_library = "onednn",
        dense_rel_err = 2e-7,
        speedup = 4,
        same_type = "i8",
        same_type_speedup = 2,
        same_type_rival = { library = "onednn", type = "bf16", us_per_token = 2.5, speedup = 2, rel_err = 3e-3 },
        project_gflops = 30,
        limit_us = 0.25,
        limit_share = 0.2,
        random_rows_gbytes = 10,
        flop_per_byte = { project = 2, gather = 0.5 },
        gather_gbytes = 20,
        cpu_over_wall = share,
        counts = statistics.counts(share),
        rel_err = 1e-7,
    }
end

local function page_of(results) return html.page("tiny", page.parts(facts, limits, results)) end

function test.what_shares_the_core_does_not_count()
    check.equal({ statistics.counts(0.97), statistics.counts(1, nil, 0.99), statistics.counts() }, { true, true, true })
    check.equal({ statistics.counts(0.969), statistics.counts(nil, 0.5), statistics.counts(1, 0.9) }, {
        false,
        false,
        false,
    })
    local good, bad = result(1, 1), result(64, 0.6)
    check.equal({ counted.mark(good), counted.note { good, good } }, { "" })
    check.equal(counted.mark(bad), "  does not count: core shared")
    check.matches(counted.note { good, bad, bad }, "^2 of 3 lines do not count: CPU time below 97 %% of wall time")
end

-- Struck and grey; the first column says so, which stays in sight.
function test.the_page_strikes_what_does_not_count()
    local text = page_of { result(1, 1), result(64, 0.6) }
    check.matches(text, '<tr><td class="text first">yes</td>')
    check.matches(text, '<tr class="off"><td class="text first">no</td>')
    check.matches(text, "tr%.off td {[^}]*line%-through")
    check.matches(text, "td%.first {[^}]*position: sticky; left: 0")
    check.matches(text, "1 of 2 lines do not count")
    check.matches(text, "Grey marks do not count")
    check.matches(text, '<circle class="mark c0"')
    text = page_of { result(1, 1), result(64, 1) }
    check.matches(text, "All lines count")
    for _, words in ipairs { 'class="off"', "mark c0", "Grey marks" } do
        check.equal(text:find(words, 1, true), nil)
    end
end

-- The same type first; a comparison that was not measured is not there.
function test.the_page_has_a_chart_for_each_comparison()
    local text = page_of { result(1, 1), result(64, 1) }
    check.matches(text, "Speed%-up over the dense FFN of the same type.*Speed%-up over the dense FFN in float32")
    check.matches(text, "<th[^>]*>× same type</th><th[^>]*>× f32</th>")
    check.matches(text, ">2.00</td><td[^>]*>4.00</td><td[^>]*>2.50</td><td[^>]*>onednn bf16</td>")
    check.matches(text, ">1.0e%-07</td><td[^>]*>3.0e%-03</td><td[^>]*>2.0e%-07</td>")
    for key, words in pairs { same_type_speedup = "of the same type against", speedup = "in float32 against" } do
        local left_out = { result(1, 1), result(64, 1) }
        for _, r in ipairs(left_out) do
            r[key] = nil
            if key == "same_type_speedup" then
                r.same_type, r.same_type_rival = nil, nil
            end
        end
        text = page_of(left_out)
        check.equal({ text:find(words, 1, true) }, {})
    end
end

-- All columns fit into 1280 pixels; where there are fewer, the keyboard scrolls the table, which has a name.
function test.the_table_is_narrow_and_scrolls_by_keyboard()
    local text = page_of { result(1, 1), result(64, 1) }
    check.matches(text, '<div class="wide" role="region" tabindex="0" aria%-label="Results">\n<table>')
    check.matches(text, "body {[^}]*max%-width: 77rem")
    check.matches(text, "td%.text {[^}]*white%-space: normal")
    check.matches(text, "table {[^}]*font%-size: 0.85rem")
end

return test
