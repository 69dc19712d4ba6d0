-- Times the blocks of a transformer, verified, in the measuring process: against the same blocks unfused, against
-- reading what they read, and against their products, of the same type and in float32, and their attention through
-- other libraries.
local bench_report = require "harness.report.bench_report"
local choices = require "harness.measure.choices"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local execute = require "harness.families.model.execute"
local json = require "json"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local packing = require "gen.families.packing"
local parts = require "harness.families.model.parts"
local plan = require "gen.families.model.plan"
local process = require "process"
local request = require "gen.request.request"
local rivals = require "harness.measure.rivals"
local rules = require "gen.families.model.model"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local timed = require "harness.families.model.timed"
local verify = require "harness.families.model.verify"

local bench = {}

local libraries = { "openblas", "onednn" }

-- The type of both factors that another library's products must have at least to take the place of those of plan `p`:
-- that of the weights where inputs are rounded, too; where only weights are, bf16 beside bf16, else float32.
local function same_type(p)
    local products = p.activations.products
    if p.options.activations and products then return products.weights end
    return p.shape.type.name == "bf16" and "bf16" or "f32"
end

-- The products that are timed beside those of plan `p` (harness/measure/rivals.lua). Weights of 8 bits stand beside
-- integers, too, though inputs that are rounded as well are another computation.
local function rivals_of(p, kinds)
    if not kinds.same then return rivals.as_wide_as "f32" end
    return rivals.as_wide_as(p.shape.type.name == "i8" and "i8" or same_type(p))
end

-- What the measuring process calls the products of a row of those at so many tokens.
local function product_name(row, tokens) return "products/" .. rivals.name(row) .. "/" .. tokens end

-- Bytes of keys and values that calls up to position `last` read in all layers.
local function cache_read(p, last) return p.shape.cache.position_bytes * math.min(last, p.shape.window or last) end

-- Weights that a token meets in all layers: of linear maps and projections, and of the rows that it takes of tables.
local function met(p, map_cost, projection_cost, row_cost)
    local sum = 0
    for _, map in ipairs(p.maps) do
        sum = sum + p.shape.layers * map.inputs * map.outputs * map_cost
    end
    for _, part in ipairs(p.parts) do
        local own = part.plan
        sum = sum
            + part.count
                * (own.projection_bytes // 4 * projection_cost + own.shape.slots * own.shape.d_out * row_cost)
    end
    return sum
end

local function weights_met(p) return met(p, 1, 1, 1) end

-- Operations of a token with them, all layers.
local function operations(p)
    local sum = met(p, 2, 0, 2)
    for _, part in ipairs(p.parts) do
        sum = sum + part.count * part.plan.mflop.projection * 1e6
    end
    return sum
end

-- Operations of the attention of a layer: two products for every pair of a query and a position that it sees.
local function attention_operations(s, tokens, position)
    local pairs_seen, last = 0, position + tokens
    for i = position + 1, last do
        pairs_seen = pairs_seen + math.min(i, s.window or i)
        if not s.causal then pairs_seen = pairs_seen + math.min(last - i, s.window and s.window - 1 or last) end
    end
    return 4 * s.width * s.heads * pairs_seen
end

local function failing(path, p)
    return string.format("%s: the %s blocks fail verification", path, p.variants[1].isa.name)
end

-- Everything of model `m` with weights of one type on one instruction set, compiled and verified: { plan, unfused,
-- attention, filling, entries, rel_err }.
local function made(path, m, isa, caches, options)
    local types = rules.with_types(options, {})
    local chosen = setmetatable({ schedule = options.schedule, tuned = options.tuned }, { __index = types })
    local wanted = request.plan(path, { isa }, chosen).options.schedule
    local function build(model)
        return plan.build(model, { isa }, setmetatable({ schedule = wanted }, { __index = types }))
    end
    local whole = build(m)
    local one = options.weights and m or parts.sample(m, whole, caches) -- a checkpoint is of the whole model
    local p = build(one)
    local products = parts.products(p)
    local attention, filling = parts.attention(
        p,
        one,
        math.max(one.layers, parts.layers_of(whole.cache_bytes // m.layers, caches, 64))
    )
    local directory = process.temporary_directory()
    local drawn = { seed = options.seed, large = true, cc = options.cc }
    local prepared = verify.prepare(p, directory, setmetatable({ large = true }, { __index = options }))
    local library = compile.library(
        { p, products, attention, filling },
        directory .. "/fused",
        options.cc,
        options.cflags .. " " .. parts.cflags
    )
    local b = { plan = p, attention = attention, filling = filling }
    b.rel_err = verify.worst(failing(path, p), p, library, prepared)
    local angles = directory .. "/angles.bin"
    packing.pack(attention, { weights = prepared.packed_from, output = angles, prefix = "", ignore = "*" })
    b.entries = {
        fused = timed.entry(p, "fused", library, prepared.blob),
        products = timed.entry(products, "products", library, prepared.blob),
        attention = timed.entry(attention, "attention", library, angles),
        filling = timed.entry(filling, "filling", library, angles),
    }
    if m.attention.eliminate ~= "none" then
        b.unfused = build(parts.changed(one, { name = m.name .. "_unfused" }, { eliminate = "none" }))
        local unfused_directory = process.temporary_directory()
        local unfused_weights = verify.prepare(b.unfused, unfused_directory, drawn)
        local unfused_library =
            compile.library({ b.unfused }, unfused_directory .. "/unfused", options.cc, options.cflags)
        local failing_unfused = failing(path, b.unfused)
        b.unfused_rel_err = verify.worst(failing_unfused, b.unfused, unfused_library, unfused_weights)
        b.entries.unfused = timed.entry(b.unfused, "unfused", unfused_library, unfused_weights.blob)
    end
    return b
end

-- The attention that is timed: one token with all of its context, if it is causal, and the calls of many tokens from
-- the first position on.
local function attention_calls(m, options)
    local list = { m.attention.causal and { tokens = 1, position = m.attention.context - 1 } or nil }
    for _, tokens in ipairs(options.batches) do
        if tokens > 1 then list[#list + 1] = { tokens = tokens, position = 0 } end
    end
    return list
end

-- What the measuring process is told to do; the attention only if `with_attention`.
local function job_of(b, rows, caches, with_attention, options)
    local p, s, list = b.plan, b.plan.shape, json.array
    local attention = with_attention and attention_calls(p.model, options) or {}
    local filled = s.ring and s.cache.positions or s.context
    local job = {
        model = p.model.name,
        seed = options.seed,
        threads = options.callers,
        library_threads = 1, -- of each caller
        repetitions = options.repetitions,
        min_time = setting.min_time(options.repetitions),
        slices = 0,
        draw_order = true,
        order_seed = options.seed,
        alike = false,
        sweep_bytes = 0,
        limits = with_attention,
        sizes = with_attention and caches or nil,
        heads = s.heads,
        kv_heads = s.kv_heads,
        width = s.width,
        layers = b.attention.shape.layers,
        causal = s.causal,
        products = list {},
        product_calls = list {},
        attention_calls = list {},
    }
    local tokens, entries = filled, {}
    for _, of in ipairs(attention) do
        tokens = math.max(tokens, of.tokens)
    end
    for _, name in ipairs { "fused", "products", "attention", "filling", "unfused" } do
        entries[#entries + 1] = b.entries[name]
    end
    tokens = math.max(tokens, table.unpack(options.batches))
    timed.add(job, entries, math.max(s.input, s.d, s.q), tokens, b.filling.cache_bytes)
    job.setup[1] = timed.call(job, b.entries.filling, "filling", filled, 0)
    local function call(name, entry, count, position)
        table.insert(job.calls, timed.call(job, b.entries[entry], name, count, position))
    end
    for _ = 1, s.layers do
        for _, map in ipairs(p.maps) do
            table.insert(job.products, { inputs = map.inputs, outputs = map.outputs })
        end
    end
    for i, count in ipairs(options.batches) do
        call("fused/" .. count, "fused", count, options.position)
        -- A/A control: how far apart two figures for the same code are
        if i == 1 then call("fused_again/" .. count, "fused", count, options.position) end
        if b.unfused then call("unfused/" .. count, "unfused", count, options.position) end
        if #p.maps > 0 then
            call("products/" .. count, "products", count, options.position)
            for _, row in ipairs(rows) do
                table.insert(job.product_calls, {
                    name = product_name(row, count),
                    library = row.library,
                    type = row.type,
                    tokens = count,
                })
            end
        end
    end
    for _, of in ipairs(attention) do
        call("attention/" .. of.tokens, "attention", of.tokens, of.position)
        for _, library in ipairs(libraries) do
            table.insert(job.attention_calls, {
                name = "attention/" .. library .. "/" .. of.tokens,
                library = library,
                tokens = of.tokens,
                position = of.position,
            })
        end
    end
    local bytes = math.min(parts.weight_bytes(p), p.packed_bytes)
    table.insert(job.calls, timed.read(job, "read/weights", bytes, "blob", b.entries.fused))
    if with_attention then
        local read = cache_read(b.attention, p.model.attention.context)
        table.insert(job.calls, timed.read(job, "read/cache", read, "cache"))
    end
    return job
end

-- The median µs of a call, over the callers; of several wall time counts. nil: it was not timed.
local function time(samples, name, callers)
    local sample = samples[name]
    return sample and statistics.median(sample[callers > 1 and "wall" or "cpu"]) / callers
end

-- The share of the CPUs that the calls with these names had.
local function shares(samples, callers, names)
    local list = {}
    for i, name in ipairs(names) do
        list[i] = samples[name] and statistics.median(samples[name].share) / callers or 1
    end
    return list
end

-- The products of `rows` for so many tokens, of one block.
local function products_beside(rows, samples, context, tokens, layers, callers)
    local list = json.array {}
    for _, row in ipairs(rows) do
        local name = product_name(row, tokens)
        local of_call = time(samples, name, callers)
        if of_call then -- some have no such product for this CPU
            list[#list + 1] = {
                library = row.library,
                type = row.type,
                us_per_token = of_call / layers / tokens,
                rel_err = assert(tonumber(context[name])),
            }
        end
    end
    return list
end

-- The fastest of `list` whose type is in the set `types`, nil: none.
local function fastest_in(list, types)
    local best
    for _, rival in ipairs(list) do
        if types[rival.type] and (not best or rival.us_per_token < best.us_per_token) then best = rival end
    end
    return best
end

-- The fastest that is as wide as `type` or wider.
local function fastest(list, type)
    local types = {}
    for _, row in ipairs(rivals.as_wide_as(type)) do
        types[row.type] = true
    end
    return fastest_in(list, types)
end

-- One result for every number of tokens; times are of one block.
local function results_of(b, rows, kinds, samples, context, options)
    local list, p, s = {}, b.plan, b.plan.shape
    for i, tokens in ipairs(options.batches) do
        local function each(name)
            local us = time(samples, name .. "/" .. tokens, options.callers)
            return us and us / s.layers / tokens
        end
        local us = each "fused"
        local r = bench_report.typed(p, options, {
            tokens = tokens,
            position = options.position,
            layers = s.layers,
            us_per_token = us,
            gbytes = (parts.bytes_met(p) + cache_read(p, options.position + tokens)) * 1e-3 / (us * tokens * s.layers),
            read_gbytes = parts.weight_bytes(p) * 1e-3 / time(samples, "read/weights", options.callers),
            gflops = (operations(p) / s.layers + attention_operations(s, tokens, options.position) / tokens)
                * 1e-3
                / us,
            threads = options.callers,
            again_ratio = i == 1 and each "fused_again" / us or nil,
            rel_err = b.rel_err,
        })
        r.read_share = r.gbytes / r.read_gbytes
        if b.unfused then
            r.unfused_us_per_token, r.predicted_speedup, r.unfused_rel_err =
                each "unfused", weights_met(b.unfused) / weights_met(p), b.unfused_rel_err
            r.speedup = r.unfused_us_per_token / us
            r.speedup_share = r.speedup / r.predicted_speedup
        end
        local names = { "fused/" .. tokens, "unfused/" .. tokens, "products/" .. tokens }
        r.products_us_per_token = each "products"
        if r.products_us_per_token then
            r.products_gflops = met(p, 2, 0, 0) / s.layers * 1e-3 / r.products_us_per_token
            r.rivals = products_beside(rows, samples, context, tokens, s.layers, options.callers)
            for _, rival in ipairs(r.rivals) do
                rival.speedup = rival.us_per_token / r.products_us_per_token
            end
            r.same_type = kinds.same and same_type(p) or nil
            r.same_type_rival = r.same_type and fastest(r.rivals, r.same_type)
            r.f32_rival = kinds.f32 and fastest(r.rivals, "f32") or nil
            for _, rival in pairs { r.same_type_rival, r.f32_rival } do
                names[#names + 1] = product_name(rival, tokens)
            end
        end
        local share = shares(samples, options.callers, names)
        r.cpu_over_wall, r.counts = share[1], statistics.counts(table.unpack(share))
        list[i] = r
    end
    return list
end

-- The same for attention alone.
local function attention_results(b, samples, options)
    local list, p = {}, b.attention
    local s = p.shape
    for i, of in ipairs(attention_calls(p.model, options)) do
        local function each(name)
            return time(samples, name .. "/" .. of.tokens, options.callers) / s.layers / of.tokens
        end
        local us = each "attention"
        local r = {
            model = b.plan.model.name,
            isa = p.variants[1].isa.name,
            type = s.cache.type.name,
            tokens = of.tokens,
            position = of.position,
            layers = s.layers,
            us_per_token = us,
            gbytes = cache_read(p, of.position + of.tokens) * 1e-3 / (us * of.tokens * s.layers),
            read_gbytes = cache_read(p, b.plan.model.attention.context)
                * 1e-3
                / time(samples, "read/cache", options.callers),
            gflops = attention_operations(s, of.tokens, of.position) / of.tokens * 1e-3 / us,
            threads = options.callers,
            cpu_over_wall = shares(samples, options.callers, { "attention/" .. of.tokens })[1],
        }
        r.counts = statistics.counts(r.cpu_over_wall)
        r.read_share = r.gbytes / r.read_gbytes
        for _, library in ipairs(libraries) do
            local baseline = each("attention/" .. library)
            if not r.baseline_us_per_token or baseline < r.baseline_us_per_token then
                r.baseline_us_per_token, r.baseline_library = baseline, library
            end
        end
        r.speedup = r.baseline_us_per_token / us
        list[i] = r
    end
    return list
end

local function percent(value) return value and string.format("%.0f %%", 100 * value) end
local function number(format, value) return value and string.format(format, value) end
local function alone(r) return r.tokens == 1 end

-- The columns of rival(r) with such a name, nil for none: its time, what it is, and how many times as fast lookupc is.
local function rival_columns(name, rival)
    local function of(format, key)
        return function(r)
            local one = rival(r)
            return one and number(format, one[key])
        end
    end
    return { name, 9, of("%.1f", "us_per_token") },
        { "through", -13, function(r) return rivals.words(rival(r)) end },
        { "x " .. name, 2 + math.max(4, #name), of("%.2f", "speedup") },
        { name .. "'s error", #name + 8, of("%.1e", "rel_err") }
end

-- Of products that are narrower than the same type.
local function in_i8(r)
    return r.same_type and r.same_type ~= "i8" and r.rivals and fastest_in(r.rivals, { i8 = true }) or nil
end

-- The columns of the tables for people: { head, width (negative: to the left), text(r), nil for nothing to say }. One
-- that says nothing at all is left out.
local block_columns = bench_report.behind_types {
    { "tokens", 6, function(r) return r.tokens end },
    { "us/token", 9, function(r) return number("%.1f", r.us_per_token) end },
    { "unfused", 9, function(r) return number("%.1f", r.unfused_us_per_token) end },
    { "x faster", 8, function(r) return number("%.3f", r.speedup) end },
    { "predicted", 9, function(r) return number("%.3f", r.predicted_speedup) end },
    { "GB/s", 6, function(r) return alone(r) and number("%.1f", r.gbytes) end },
    { "of read", 7, function(r) return alone(r) and percent(r.read_share) end },
    { "GFLOP/s", 7, function(r) return number("%.1f", r.gflops) end },
    { "error", 7, function(r) return number("%.1e", r.rel_err) end },
}

-- Of the second table: the products alone.
local product_columns = {
    { "isa", -7, function(r) return r.isa end },
    { "weights", -7, function(r) return r.type end },
    { "inputs", -7, function(r) return r.activations end },
    { "schedule", -8, function(r) return r.tuned end },
    { "tokens", 6, function(r) return r.tokens end },
    { "us/token", 9, function(r) return number("%.1f", r.products_us_per_token) end },
    { "GFLOP/s", 7, function(r) return number("%.1f", r.products_gflops) end },
}
local function add_columns(...) table.move({ ... }, 1, select("#", ...), #product_columns + 1, product_columns) end
add_columns(rival_columns("same type", function(r) return r.same_type_rival end))
add_columns(rival_columns("f32", function(r) return r.f32_rival end))
add_columns { "all in i8", 9, function(r) return in_i8(r) and number("%.1f", in_i8(r).us_per_token) end }

local attention_columns = {
    { "isa", -7, function(r) return r.isa end },
    { "cache", -7, function(r) return r.type end },
    { "tokens", 6, function(r) return r.tokens end },
    { "position", 8, function(r) return r.position end },
    { "us/token", 9, function(r) return number("%.2f", r.us_per_token) end },
    { "GB/s", 6, function(r) return alone(r) and number("%.1f", r.gbytes) end },
    { "of read", 7, function(r) return alone(r) and percent(r.read_share) end },
    { "GFLOP/s", 7, function(r) return number("%.1f", r.gflops) end },
    { "baseline's", 10, function(r) return number("%.2f", r.baseline_us_per_token) end },
    { "through", -8, function(r) return r.baseline_library end },
    { "x faster", 8, function(r) return number("%.2f", r.speedup) end },
}

-- The tables of what --json prints, as bench_report.of_tables has them.
function bench.tables(given)
    local tables, timed = { { columns = block_columns, results = given.results } }, {}
    for _, r in ipairs(given.results) do
        if r.rivals then timed[#timed + 1] = r end
    end
    if #timed > 0 then
        tables[2] = { name = "its products alone", columns = product_columns, results = timed }
    end
    if #given.attention > 0 then
        tables[#tables + 1] = { name = "attention alone", columns = attention_columns, results = given.attention }
    end
    return tables
end

-- What stands below the tables.
local function notes_of(limits, host_facts, results)
    local notes = {
        (results[1].threads == 1 and "us/token: medians of interleaved CPU times." or string.format(
            "us/token: medians of interleaved wall times over the tokens of %d callers at a time, each with a cache \z
                and scratch of its own.",
            results[1].threads
        )) .. " predicted: by the weights left out. of read: of the speed of \z
            reading the same memory in the same run. error: of y, relative to float64.",
    }
    local timed, narrower = {}, false
    for _, r in ipairs(results) do
        if r.rivals then timed[#timed + 1] = r end
        narrower = narrower or in_i8(r)
    end
    if timed[1] and timed[1].same_type then
        notes[#notes + 1] = "same type: the fastest products through OpenBLAS and oneDNN whose factors are as wide as \z
            ours or wider: beside inputs in i8 of 8 bits, beside weights in bf16 bf16, else f32. Errors: of a product."
    elseif timed[1] then
        notes[#notes + 1] = "f32: the fastest products through OpenBLAS and oneDNN in float32."
    end
    if narrower then notes[#notes + 1] = "all in i8: through oneDNN, inputs rounded to 8 bits, too." end
    notes[#notes + 1] = rivals.note(host_facts, timed)
    notes[#notes + 1] = "baseline's: attention through the faster library, the score matrix stored, a mask for what \z
        is not seen."
    notes[#notes + 1] = string.format(
        "limits of this core: FMA %.0f GFLOP/s; reading L1 %.0f, L2 %.0f, L3 %.0f, memory %.0f GB/s.",
        limits.fma_gflops,
        limits.l1_gbytes,
        limits.l2_gbytes,
        limits.l3_gbytes,
        limits.memory_gbytes
    )
    notes[#notes + 1] = string.format(
        "A/A control: the same blocks at %d tokens measured twice differ by %s%.1f %%.",
        results[1].tokens,
        #results > 1 and "at most " or "",
        bench_report.control(results)
    )
    return notes
end

-- Tokens a call that are timed unless others are asked for.
function bench.batches(m, options)
    local left = m.attention.context - (options.position or 0)
    return left > 1 and "1," .. math.min(512, left) or "1"
end

-- Times the model of the file `path` with weights of each of the types that are asked for; the family's `bench`.
function bench.run(path, options)
    local m, facts = model_file.load(path), cpu.describe()
    local kinds = rivals.select(options.rivals or "same,f32")
    options.position = options.position or 0
    if not m.attention.causal and options.position > 0 then
        misuse(string.format("--position: %d: must be 0 where %s has causal = false", options.position, m.name))
    end
    for _, tokens in ipairs(options.batches) do
        if options.position + tokens > m.attention.context then
            misuse(
                string.format(
                    "--batch: %d: from position %d on must be at most attention.context = %d",
                    tokens,
                    options.position,
                    m.attention.context
                )
            )
        end
    end
    local results, attention, limits, host_facts, caches =
        json.array {}, json.array {}, nil, nil, setting.caches_of(facts)
    caches.rows = json.array {}
    local known = {}
    for _, own in ipairs(choices.of_blocks(options)) do
        for _, isa in ipairs(execute.timed_sets(m, own)) do
            local b = made(path, m, isa, caches, own)
            local rows = rivals_of(b.plan, kinds)
            -- attention does not depend on the type of weights
            local key = table.concat({ isa.name, b.attention.shape.cache.type.name, own.activations or "f32" }, " ")
            local first = not known[key]
            known[key] = true
            local samples, context = measure.run(job_of(b, rows, caches, first, own), { show_stderr = true })
            if not samples then return nil end
            if not limits then
                limits, host_facts =
                    setting.core_limits(context), setting.host_facts(facts, isa, options.cc, options.cflags, context)
            end
            for _, r in ipairs(results_of(b, rows, kinds, samples, context, own)) do
                table.insert(results, r)
            end
            for _, r in ipairs(first and attention_results(b, samples, own) or {}) do
                table.insert(attention, r)
            end
        end
    end
    local printed = { host = host_facts, limits = limits, results = results, attention = attention }
    return bench_report.of_tables {
        title = m.name .. ": the time of a transformer's block",
        head = string.format(
            "%s on %s: one of %d blocks",
            m.name,
            bench_report.setting(host_facts, options.cflags, options.callers),
            m.layers
        ),
        tables = bench.tables(printed),
        notes = notes_of(limits, host_facts, results),
        host = host_facts,
        threads = options.callers,
        json = printed,
    }
end

return bench
