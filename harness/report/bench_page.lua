-- The page of `bench --html` of a LookupFFN: facts, speed-up against batch size, roofline and table.
local chart = require "harness.report.chart"
local counted = require "harness.report.counted"
local html = require "harness.report.html"
local rivals = require "harness.measure.rivals"

local report = {}

local dashes = { "", "7 3", "2 3", "7 3 2 3", "12 3", "1 5" }

local function largest(list, value)
    local most
    for _, item in ipairs(list) do
        most = math.max(most or value(item), value(item))
    end
    return most
end

local function smallest(list, value)
    return -largest(list, function(item) return -value(item) end)
end

-- The first result of every value of `key`, in the order in which they came.
local function distinct(results, key)
    local list, known = {}, {}
    for _, r in ipairs(results) do
        if not known[r[key]] then list[#list + 1] = r end
        known[r[key]] = true
    end
    return list
end

-- The results of each instruction set and types of projection and tables, in the order in which they came; their name
-- is what differs.
local function by_kernels(results)
    local sets, known, differing = {}, {}, {}
    for _, key in ipairs { "isa", "projection_dtype", "table_dtype" } do
        if #distinct(results, key) > 1 then differing[#differing + 1] = key end
    end
    if #differing == 0 then differing[1] = "isa" end
    for _, r in ipairs(results) do
        local words = {}
        for i, key in ipairs(differing) do
            words[i] = r[key]
        end
        local name = table.concat(words, " ")
        if not known[name] then
            known[name] = { name = name }
            sets[#sets + 1] = known[name]
        end
        table.insert(known[name], r)
    end
    for _, set in ipairs(sets) do
        table.sort(set, function(a, b) return a.batch < b.batch end)
    end
    return sets
end

-- What results are compared with: the key of their ratio, what it is called, and the head of the figure.
local comparisons = {
    { key = "same_type_speedup", name = "dense FFN of the same type", head = "Speed-up, same type" },
    { key = "speedup", name = "dense FFN in float32", head = "Speed-up, float32" },
}

-- Of one of `comparisons`.
local function speedup_chart(of, sets, results)
    local best = sets[#sets]
    local function speedup(r) return r[of.key] end
    local function of_limit(r) return speedup(r) / r.limit_share end
    local batches = {}
    for i, r in ipairs(best) do
        batches[i] = r.batch
    end
    local first, last = batches[1], batches[#batches]
    local lines, marks, limit, dense = {}, {}, {}, { { first / 1.5, 1 }, { last * 1.5, 1 } }
    for i, set in ipairs(sets) do
        local points, shape = {}, chart.shapes[(i - 1) % #chart.shapes + 1]
        for k, r in ipairs(set) do
            points[k] = { r.batch, speedup(r) }
            marks[#marks + 1] = {
                x = r.batch,
                y = speedup(r),
                shape = shape,
                colour = not r.counts and 0 or nil,
                label = set == best and string.format("%.1f", speedup(r)) or "",
            }
        end
        lines[i] = { label = set.name, dash = "", points = points, shape = shape }
    end
    for i, r in ipairs(best) do
        limit[i] = { r.batch, of_limit(r) }
    end
    lines[#lines + 1] = {
        label = best[1].threads == 1 and "limit of this core" or "limit of the cores",
        dash = dashes[2],
        points = limit,
    }
    lines[#lines + 1] = { label = "dense FFN", dash = dashes[3], points = dense }
    return chart.draw {
        title = "Speed-up over the " .. of.name .. " against tokens a call",
        lines = lines,
        marks = marks,
        above = true,
        x = { label = "tokens a call", from = first / 1.5, to = last * 1.5, log = true, ticks = batches },
        y = {
            label = "times as fast as the " .. of.name,
            from = 0,
            to = 1.08 * math.max(1, largest(best, of_limit), largest(results, speedup)),
        },
    }
end

local roofs = {
    { key = "l1_gbytes", name = "L1" },
    { key = "l2_gbytes", name = "L2" },
    { key = "l3_gbytes", name = "L3" },
    { key = "memory_gbytes", name = "memory" },
    { name = "random rows" }, -- of the tables
}

local function roofline(set, limits)
    local marks = {}
    for _, r in ipairs(set) do
        local label, colour = tostring(r.batch), not r.counts and 0 or nil
        marks[#marks + 1] = {
            x = r.flop_per_byte.project,
            y = r.project_gflops,
            shape = "circle",
            colour = colour,
            label = label,
        }
        marks[#marks + 1] = {
            x = r.flop_per_byte.gather,
            y = r.gather_gbytes * r.flop_per_byte.gather,
            shape = "square",
            colour = colour,
            label = label,
        }
    end
    local peak, random_rows = limits.fma_gflops, set[1].random_rows_gbytes
    local from = smallest(marks, function(mark) return mark.x end) / 3
    local to = math.max(largest(marks, function(mark) return mark.x end) * 3, 4 * peak / random_rows)
    local low = smallest(marks, function(mark) return mark.y end) / 3
    local lines =
        { { label = string.format("FMA %.0f GFLOP/s", peak), dash = "", points = { { from, peak }, { to, peak } } } }
    for i, roof in ipairs(roofs) do
        local rate = limits[roof.key] or random_rows
        local start = math.max(from, low / rate)
        lines[#lines + 1] = {
            label = string.format("%s %.0f GB/s", roof.name, rate),
            dash = dashes[i + 1],
            points = { { start, start * rate }, { math.max(start, peak / rate), peak } },
        }
    end
    return chart.draw {
        title = "Roofline of projection and gather",
        lines = lines,
        marks = marks,
        shapes = { { shape = "circle", label = "projection" }, { shape = "square", label = "gather" } },
        x = { label = "FLOP a byte of weights or rows", from = from, to = to, log = true },
        y = {
            label = "GFLOP/s",
            from = low,
            to = math.max(peak, largest(marks, function(mark) return mark.y end)) * 1.6,
            log = true,
        },
    }
end

-- Of the table; one with `several` is there when the results have several values of that key, one with `of` when they
-- have that key.
local columns = {
    { "counts", function(r) return r.counts and "yes" or "no" end, text = true, first = true },
    { "instruction set", function(r) return r.isa end, text = true },
    { "projection", function(r) return r.projection_dtype end, text = true, several = "projection_dtype" },
    { "tables", function(r) return r.table_dtype end, text = true, several = "table_dtype" },
    { "tokens", function(r) return r.batch end },
    { "µs a token", function(r) return string.format("%.2f", r.us_per_token) end },
    { "project", function(r) return string.format("%.2f", r.stages.project) end },
    { "gather", function(r) return string.format("%.2f", r.stages.gather) end },
    { "limit", function(r) return string.format("%.2f", r.limit_us) end },
    { "share of limit", function(r) return string.format("%.0f %%", 100 * r.limit_share) end },
    { "× same type", function(r) return string.format("%.2f", r.same_type_speedup) end, of = "same_type" },
    { "× f32", function(r) return string.format("%.2f", r.speedup) end, of = "speedup" },
    {
        "dense FFN of the same type",
        function(r) return string.format("%.2f", r.same_type_rival.us_per_token) end,
        of = "same_type",
    },
    {
        "through",
        function(r) return rivals.words(r.same_type_rival) end,
        text = true,
        of = "same_type",
    },
    {
        "dense FFN in f32",
        function(r) return string.format("%.2f", r.dense_us_per_token) end,
        of = "speedup",
    },
    {
        "through",
        function(r) return rivals.through(r.dense_library, r.dense_implementation) end,
        text = true,
        of = "speedup",
    },
    { "relative error", function(r) return string.format("%.1e", r.rel_err) end },
    {
        "that of the same type",
        function(r) return string.format("%.1e", r.same_type_rival.rel_err) end,
        of = "same_type",
    },
    { "that in f32", function(r) return string.format("%.1e", r.dense_rel_err) end, of = "speedup" },
    { "CPU / wall", function(r) return string.format("%.2f", r.cpu_over_wall) end },
}

local function columns_of(results)
    local list = {}
    for _, column in ipairs(columns) do
        if
            (not column.several or #distinct(results, column.several) > 1) and (not column.of or results[1][column.of])
        then
            list[#list + 1] = column
        end
    end
    return list
end

local function facts_table(facts, limits, results)
    local rows = {}
    local function add(name, text) rows[#rows + 1] = { name, text } end
    add("CPU", facts.cpu .. ": " .. table.concat(facts.isa, ", "))
    add(
        "caches",
        string.format("L1 %s, L2 %s, L3 %s", html.bytes(facts.l1d), html.bytes(facts.l2), html.bytes(facts.l3))
    )
    local reads, types = {}, distinct(results, "table_dtype")
    for _, roof in ipairs(roofs) do
        if roof.key then reads[#reads + 1] = string.format("%s %.0f", roof.name, limits[roof.key]) end
    end
    for _, r in ipairs(types) do
        reads[#reads + 1] = string.format("random rows of %s %.0f", r.table_dtype, r.random_rows_gbytes)
    end
    add(
        "limits of one core",
        string.format("FMA %.0f GFLOP/s; reading, GB/s: %s", limits.fma_gflops, table.concat(reads, ", "))
    )
    add("compiler", facts.compiler .. " " .. facts.flags)
    add(
        "dense FFN",
        string.format("oneDNN %s and OpenBLAS for %s, the faster one", facts.onednn or "?", facts.openblas or "?")
    )
    local note = rivals.note(facts, results)
    if note then add("dense FFN of the same type", note) end
    local function names_of(key)
        local names = {}
        for i, r in ipairs(distinct(results, key)) do
            names[i] = r[key]
        end
        return table.concat(names, ", ")
    end
    add(
        "numbers",
        string.format(
            "tables %s, projection %s, %s",
            names_of "table_dtype",
            names_of "projection_dtype",
            results[1].threads == 1 and "one thread" or results[1].threads .. " threads"
        )
    )
    for _, set in ipairs(by_kernels(results)) do
        add("schedule " .. set.name, (set[1].schedule:gsub(",", ", ")))
    end
    return html.facts(rows)
end

-- Whether all tables of `list` have these keys, with numbers that a logarithm takes.
local function all_have(list, ...)
    for _, of in ipairs(list) do
        for _, key in ipairs { ... } do
            local value = of[key]
            if not value or type(value) == "number" and value <= 0 then return false end
        end
    end
    return true
end

-- Charts of the results of a model, those that they and `limits` of the core have numbers for.
function report.figures(limits, results)
    local sets = by_kernels(results)
    local best = sets[#sets]
    local grey = counted.note(results) and " Grey marks do not count." or ""
    local figures = {}
    for _, of in ipairs(comparisons) do
        if all_have(results, of.key, "limit_share") then
            figures[#figures + 1] = html.figure(
                2,
                of.head,
                speedup_chart(of, sets, results),
                "Numbers: times as fast as the " .. of.name .. (#sets > 1 and ", " .. best.name or "") .. "." .. grey
            )
        end
    end
    if
        all_have({ limits }, "fma_gflops", "l1_gbytes", "l2_gbytes", "l3_gbytes", "memory_gbytes")
        and all_have(best, "flop_per_byte", "project_gflops", "gather_gbytes", "random_rows_gbytes")
    then
        figures[#figures + 1] = html.figure(
            2,
            "Roofline",
            roofline(best, limits),
            "Numbers: tokens a call, "
                .. best.name
                .. ". A mark on a line runs as fast as that level of memory delivers."
                .. grey
        )
    end
    return html.figures(figures)
end

-- Its parts, from what `bench --json` prints.
function report.parts(facts, limits, results)
    local times = results[1].threads == 1 and "CPU times."
        or "wall times; of projection and gather CPU times of one thread."
    return {
        report.figures(limits, results),
        "<h2>Results</h2>",
        html.table("Results", columns_of(results), results, function(r) return not r.counts end),
        html.paragraph(
            "Times in µs a token: medians of interleaved "
                .. times
                .. " Limit: the least time of a token by what each core at work was measured to do, below."
                .. " Errors of y: relative to float64, the largest of a token."
        ),
        html.paragraph(
            "Same type: the fastest dense FFN whose numbers are as wide as the narrower of projection and tables, or "
                .. "wider: float32 beside 32 bits, bf16 beside 16, integers of 8 bits beside 8."
        ),
        html.paragraph(
            counted.note(results) or "All lines count: no other work shared the core while they were measured."
        ),
        "<h2>Measured on</h2>",
        facts_table(facts, limits, results),
    }
end

return report
