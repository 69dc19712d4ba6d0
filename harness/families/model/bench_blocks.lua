-- What bench.lua times of blocks alone: them against the same blocks unfused, against reading what they read, and
-- against their products, of the same type and in float32, and their attention through other libraries.
local bench_report = require "harness.report.bench_report"
local columns = require "harness.report.columns"
local cpu = require "harness.base.cpu"
local fusable = require "gen.schema.fusable"
local json = require "json"
local misuse = require "gen.schema.misuse"
local packing = require "gen.families.packing"
local plan = require "gen.families.model.plan"
local process = require "process"
local request = require "gen.request.request"
local limits = require "harness.measure.limits"
local rivals = require "harness.measure.rivals"
local rules = require "gen.families.model.model"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local timed_calls = require "harness.families.model.timed_calls"
local timed_parts = require "harness.families.model.timed_parts"
local weight_count = require "gen.families.model.weight_count"

local bench = { title = ": the time of a transformer's block" }

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

-- Of `positions` those that a token sees through `window`, if there is one, the mean of all layers.
local function seen_of(s, positions, window)
    local seen, full = math.min(positions, window or positions), 0
    for _, is_full in ipairs(s.full_layers or {}) do
        if is_full then full = full + 1 end
    end
    return full == 0 and seen or seen + (positions - seen) * full // #s.full_layers
end

-- Bytes of keys and values, or of rows of tables, that calls up to position `last` read in all layers.
local function cache_read(p, last)
    local s = p.shape
    if s.lsh then return s.cache.row.bytes * s.layers * (s.heads + s.kv_heads) * s.lsh.tables * s.cache.pitch end
    return s.cache.position_bytes * seen_of(s, last, s.window)
end

local function weights_met(p) return weight_count.met(p, 1, 1, 1) end

-- Operations of a token with the weights that it meets, all layers.
local function operations(p)
    local sum = weight_count.met(p, 2, 0, 2)
    for _, part in ipairs(p.parts) do
        sum = sum + part.count * part.plan.mflop.projection * 1e6
    end
    return sum
end

-- Operations of the attention by tables of a layer: hashes and rows of q and k, and the tokens of the window.
local function table_operations(s, tokens)
    local lsh = s.lsh
    local hash = lsh.rounds * lsh.padded * (1 + math.log(lsh.padded, 2))
    local near = s.causal and lsh.window or math.max(0, 2 * lsh.window - 1)
    return tokens * ((s.heads + s.kv_heads) * (hash + lsh.tables * s.width) + 4 * s.width * s.heads * near)
end

-- Operations of the attention of a layer: two products for every pair of a query and a position that it sees.
local function attention_operations(s, tokens, position)
    if s.lsh then return table_operations(s, tokens) end
    local pairs_seen, last = 0, position + tokens
    for i = position + 1, last do
        pairs_seen = pairs_seen + seen_of(s, i, s.window)
        if not s.causal then pairs_seen = pairs_seen + seen_of(s, last - i, s.window and s.window - 1) end
    end
    return 4 * s.width * s.heads * pairs_seen
end

local most_pairs = 500000000 -- of a query and a key of a head in a call of attention alone: 2 s

-- The blocks of the plan `p` of model `m` and their attention alone, in as many layers as timing needs, and no more
-- than `longest` tokens a call leave time for; `whole`: the plan of all layers.
local function with_attention(p, m, whole, caches, longest)
    local bytes = whole.cache_bytes // whole.model.layers
    local most = math.max(1, most_pairs // (p.shape.heads * longest * longest))
    local layers = math.max(m.layers, timed_parts.layers_of(bytes, caches, math.min(64, most)))
    local attention, filling = timed_parts.attention(p, m, layers)
    return { plan = p, attention = attention, filling = filling }
end

-- Verifies the blocks `of` (plan; optional attention, filling, products; cache: the name of its memory) and adds them
-- to `entries` as `name`, their parts behind `prefix`. Raises one line that begins with `failing` if a call is wrong.
-- Returns `of` with its rel_err.
local function add_entries(entries, name, prefix, of, failing, options)
    local parts = of.attention and { of.attention, of.filling, of.products }
    local library, prepared, rel_err = timed_calls.verified(failing, of.plan, options, parts)
    local function add(own, p, blob) entries[own] = timed_calls.entry(p, own, library, blob, of.cache) end
    add(name, of.plan, prepared.blob)
    if of.products then add(prefix .. "products", of.products, prepared.blob) end
    if of.attention then
        local angles = process.temporary_directory() .. "/angles.bin"
        packing.pack(of.attention, { weights = prepared.packed_from, output = angles, prefix = "", ignore = "*" })
        add(prefix .. "attention", of.attention, angles)
        add(prefix .. "filling", of.filling, angles)
    end
    of.rel_err = rel_err
    return of
end

-- The model's blocks with weights of one type on one instruction set, { plan, attention, filling, products, rel_err,
-- entries }, and what they are timed beside, `unfused` and `exact`, likewise.
function bench.made(run, isa, options)
    local m = run.model
    local types = rules.with_types(options, {})
    local chosen = setmetatable({ schedule = options.schedule, tuned = options.tuned }, { __index = types })
    local wanted = request.plan(run.path, { isa }, chosen).options.schedule
    local function build(model)
        return plan.build(model, { isa }, setmetatable({ schedule = wanted }, { __index = types }))
    end
    local failing = string.format("%s: the %s blocks fail verification", run.path, isa.name)
    local whole, entries = build(m), {}
    local one = options.weights and m or timed_parts.sample(m, whole, run.caches) -- a checkpoint is of the whole model
    local longest = math.max(table.unpack(options.batches))
    local made = with_attention(build(one), one, whole, run.caches, longest)
    made.products = timed_parts.products(made.plan)
    add_entries(entries, "fused", "", made, failing, setmetatable({ large = true }, { __index = options }))
    made.entries = entries
    local drawn = { seed = options.seed, large = true, cc = options.cc, cflags = options.cflags, threads = 1 }
    if fusable.is_fused(m) then
        local unfused = { eliminate = "none", cache = false }
        local of = { plan = build(timed_parts.changed(one, { name = m.name .. "_unfused" }, unfused)) }
        made.unfused = add_entries(entries, "unfused", "unfused_", of, failing, drawn)
    end
    local exact = timed_parts.exact(one)
    if exact then
        local of = with_attention(build(exact), exact, build(timed_parts.exact(m)), run.caches, longest)
        of.cache = "exact cache" -- what tables keep is not to be read as keys
        made.exact = add_entries(entries, "exact", "exact_", of, failing, drawn)
    end
    return made
end

-- The attention that is timed: one token with all of its context, if it is causal, beside exact attention also behind
-- fewer tokens; and the calls of many tokens from the first position on.
local function attention_calls(m, options)
    local list, last = {}, m.attention.context - 1
    for _, tokens in ipairs(m.attention.causal and m.attention.kind == "lsh" and options.batches or {}) do
        if tokens > 1 and tokens <= last then list[#list + 1] = { tokens = 1, position = tokens - 1 } end
    end
    if m.attention.causal then list[#list + 1] = { tokens = 1, position = last } end
    for _, tokens in ipairs(options.batches) do
        if tokens > 1 then list[#list + 1] = { tokens = tokens, position = 0 } end
    end
    return list
end

-- What the measuring process calls such a call of `name`.
local function attention_name(name, of) return string.format("%s/%d/%d", name, of.tokens, of.position) end

-- Adds the calls `calls` of attention alone to `job`, by lookupc and through other libraries.
local function add_attention_calls(job, b, calls)
    local s, layers, last, tokens = b.plan.shape, b.attention.shape.layers, 1, 1
    for _, of in ipairs(calls) do
        for _, name in ipairs { "attention", b.exact and "exact_attention" } do
            local row = timed_calls.call(job, b.entries[name], attention_name(name, of), of.tokens, of.position)
            table.insert(job.calls, row)
        end
        for _, library in ipairs(libraries) do
            table.insert(job.calls, {
                name = attention_name("attention/" .. library, of),
                callers = job.threads,
                tokens = of.tokens,
                steps = {
                    {
                        baseline = "attention",
                        library = library,
                        type = "f32",
                        heads = s.heads,
                        kv_heads = s.kv_heads,
                        width = s.width,
                        layers = layers,
                        causal = s.causal,
                        tokens = of.tokens,
                        position = of.position,
                        q = "q",
                        keys = "keys",
                        y = "y",
                    },
                },
            })
        end
        last, tokens = math.max(last, of.position + of.tokens), math.max(tokens, of.tokens)
    end
    local function memory(name, count)
        table.insert(job.memory, { name = name, bytes = 4 * count, fill = "normal", large = true })
    end
    memory("keys", 2 * layers * last * s.kv_heads * s.width)
    memory("q", tokens * s.heads * s.width)
end

-- Adds to `job` the products of the blocks of plan `p` of so many tokens through other libraries: those of `rows`.
local function add_products(job, p, rows, batches)
    local inputs, outputs, most = 1, 1, math.max(table.unpack(batches))
    for i, map in ipairs(p.maps) do
        inputs, outputs = math.max(inputs, map.inputs), math.max(outputs, map.outputs)
        for layer = 1, p.shape.layers do
            table.insert(job.memory, {
                name = string.format("matrix %d of %d", i, layer),
                bytes = 4 * map.inputs * map.outputs,
                fill = "normal",
                number = 1.0 / map.inputs,
                large = true,
            })
        end
    end
    table.insert(job.memory, { name = "products x", bytes = 4 * most * inputs, fill = "uniform", large = true })
    table.insert(
        job.memory,
        { name = "products y", bytes = 4 * most * outputs, copies = job.threads, large = true }
    )
    for _, tokens in ipairs(batches) do
        for _, row in ipairs(rows) do
            local steps = {}
            for layer = 1, p.shape.layers do
                for i, map in ipairs(p.maps) do
                    steps[#steps + 1] = {
                        baseline = "product",
                        optional = row.type ~= "f32",
                        library = row.library,
                        type = row.type,
                        inputs = map.inputs,
                        outputs = map.outputs,
                        tokens = tokens,
                        weights = string.format("matrix %d of %d", i, layer),
                        x = "products x",
                        y = "products y",
                    }
                end
            end
            local name = product_name(row, tokens)
            table.insert(job.calls, { name = name, callers = job.threads, tokens = tokens, steps = steps })
        end
    end
end

local entry_names =
    { "fused", "products", "attention", "filling", "unfused", "exact", "exact_attention", "exact_filling" }

-- The attention of `made` is timed once for each type that it depends on.
function bench.job(run, b, options)
    local p, s = b.plan, b.plan.shape
    local key = table.concat({ p.variants[1].isa.name, b.attention.shape.cache.type.name, p.activations.name }, " ")
    b.with_attention, run.known[key] = not run.known[key], true
    b.rows = rivals_of(p, run.kinds)
    local attention = b.with_attention and attention_calls(p.model, options) or {}
    local filled = s.endless and s.cache.positions or s.context
    local job = {
        threads = options.callers,
        library_threads = 1, -- of each caller
    }
    local tokens, entries = filled, {}
    for _, of in ipairs(attention) do
        tokens = math.max(tokens, of.tokens)
    end
    for _, name in ipairs(entry_names) do
        entries[#entries + 1] = b.entries[name]
    end
    tokens = math.max(tokens, table.unpack(options.batches))
    timed_calls.add(job, entries, math.max(s.input, s.d, s.q), tokens, b.filling.cache_bytes)
    job.setup[1] = timed_calls.call(job, b.entries.filling, "filling", filled, 0)
    if b.exact then
        local bytes = b.exact.filling.cache_bytes
        table.insert(job.memory, { name = b.exact.cache, bytes = bytes, copies = job.threads, large = true })
        job.setup[2] = timed_calls.call(job, b.entries.exact_filling, "exact_filling", filled, 0)
    end
    local function call(name, entry, count, position)
        table.insert(job.calls, timed_calls.call(job, b.entries[entry], name, count, position))
    end
    for i, count in ipairs(options.batches) do
        call("fused/" .. count, "fused", count, options.position)
        -- A/A control: how far apart two figures for the same code are
        if i == 1 then call("fused_again/" .. count, "fused", count, options.position) end
        if b.unfused then call("unfused/" .. count, "unfused", count, options.position) end
        if b.exact then call("exact/" .. count, "exact", count, options.position) end
        if #p.maps > 0 then
            call("products/" .. count, "products", count, options.position)
        end
    end
    if #p.maps > 0 then add_products(job, p, b.rows, options.batches) end
    local bytes = math.min(timed_parts.weight_bytes(p), p.packed_bytes)
    table.insert(job.calls, timed_calls.read(job, "read/weights", bytes, "blob", b.entries.fused))
    if b.with_attention then
        local read = cache_read(b.attention, p.model.attention.context)
        table.insert(job.calls, timed_calls.read(job, "read/cache", read, "cache"))
        add_attention_calls(job, b, attention)
        limits.add(job, run.caches, {})
        run.limited = run.limited or job
    end
    return job
end

-- The median µs of a call, over the callers; of several wall time counts. nil: it was not timed.
local function time(samples, name, callers)
    local us = statistics.of(samples, name, callers > 1 and "wall" or "cpu")
    return us and us / callers
end

-- The shares of the CPUs that the calls with these names had.
local function shares(samples, callers, names)
    local list = {}
    for i, name in ipairs(names) do
        list[i] = (statistics.of(samples, name, "share") or callers) / callers
    end
    return list
end

-- One result for every number of tokens; times are of one block.
local function add_results(run, b, samples, context, options)
    local p, s, kinds = b.plan, b.plan.shape, run.kinds
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
            gbytes = (timed_parts.bytes_met(p) + cache_read(p, options.position + tokens))
                * 1e-3
                / (us * tokens * s.layers),
            read_gbytes = timed_parts.weight_bytes(p) * 1e-3 / time(samples, "read/weights", options.callers),
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
                each "unfused", weights_met(b.unfused.plan) / weights_met(p), b.unfused.rel_err
            r.speedup = r.unfused_us_per_token / us
            r.speedup_share = r.speedup / r.predicted_speedup
        end
        if b.exact then
            r.exact_us_per_token, r.exact_rel_err = each "exact", b.exact.rel_err
            r.exact_speedup = r.exact_us_per_token / us
        end
        local names = { "fused/" .. tokens, "unfused/" .. tokens, "exact/" .. tokens, "products/" .. tokens }
        r.products_us_per_token = each "products"
        if r.products_us_per_token then
            r.products_gflops = weight_count.met(p, 2, 0, 0) / s.layers * 1e-3 / r.products_us_per_token
            r.rivals = rivals.beside(b.rows, r.products_us_per_token, context, function(row)
                local name = product_name(row, tokens)
                local of_call = time(samples, name, options.callers)
                return of_call and of_call / s.layers / tokens, name
            end)
            r.same_type = kinds.same and same_type(p) or nil
            r.same_type_rival = r.same_type and rivals.fastest_of(r.rivals, r.same_type)
            r.f32_rival = kinds.f32 and rivals.fastest_of(r.rivals, "f32") or nil
            for _, rival in pairs { r.same_type_rival, r.f32_rival } do
                names[#names + 1] = product_name(rival, tokens)
            end
        end
        local share = shares(samples, options.callers, names)
        r.cpu_over_wall, r.counts = share[1], statistics.counts(table.unpack(share))
        table.insert(run.results, r)
    end
end

-- The same for attention alone.
local function add_attention(run, b, samples, context, options)
    local p, s = b.attention, b.attention.shape
    for _, of in ipairs(attention_calls(p.model, options)) do
        local function each(name, layers)
            return time(samples, attention_name(name, of), options.callers) / (layers or s.layers) / of.tokens
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
            cpu_over_wall = shares(samples, options.callers, { attention_name("attention", of) })[1],
        }
        r.counts = statistics.counts(r.cpu_over_wall)
        r.read_share = r.gbytes / r.read_gbytes
        for _, library in ipairs(libraries) do
            local call = "attention/" .. library
            local baseline = each(call)
            if not r.baseline_us_per_token or baseline < r.baseline_us_per_token then
                r.baseline_us_per_token, r.baseline_library = baseline, library
                r.baseline_implementation = rivals.implementation(context, attention_name(call, of))
            end
        end
        r.speedup = r.baseline_us_per_token / us
        if b.exact then
            r.exact_us_per_token = each("exact_attention", b.exact.attention.shape.layers)
            r.exact_speedup = r.exact_us_per_token / us
        end
        table.insert(run.attention, r)
    end
end

function bench.add(run, b, samples, context, options)
    run.printed.limits = run.printed.limits or limits.of(run.limited, samples)
    add_results(run, b, samples, context, options)
    if b.with_attention then add_attention(run, b, samples, context, options) end
end

local function alone(r) return r.tokens == 1 end

-- The product through another library that is narrower than the same type; nil: there is none.
local function in_i8(r)
    for _, rival in ipairs(r.same_type and r.same_type ~= "i8" and r.rivals or {}) do
        if rival.type == "i8" then return rival end
    end
end

-- The columns of the tables for people (harness/report/columns.lua).
local block_columns = columns.of(bench_report.behind_types {
    { "tokens", 6, "tokens" },
    { "us/token", 9, "us_per_token", "%.1f" },
    { "unfused", 9, "unfused_us_per_token", "%.1f" },
    { "x faster", 8, "speedup", "%.3f" },
    { "predicted", 9, "predicted_speedup", "%.3f" },
    { "exact", 9, "exact_us_per_token", "%.1f" },
    { "x faster", 8, "exact_speedup", "%.2f" },
    { "GB/s", 6, "gbytes", "%.1f", only = alone },
    { "of read", 7, "read_share", "%", only = alone },
    { "GFLOP/s", 7, "gflops", "%.1f" },
    { "error", 7, "rel_err", "%.1e" },
})

-- Of the second table: the products alone, through the rivals under these names how fast, and how many times as fast
-- lookupc is.
local product_columns = columns.of {
    { "isa", -7, "isa" },
    { "weights", -7, "type" },
    { "inputs", -7, "activations" },
    { "schedule", -8, "tuned" },
    { "tokens", 6, "tokens" },
    { "us/token", 9, "products_us_per_token", "%.1f" },
    { "GFLOP/s", 7, "products_gflops", "%.1f" },
    { "same type", 9, "same_type_rival.us_per_token", "%.1f" },
    { "through", -13, function(r) return rivals.words(r.same_type_rival) end },
    { "x same type", 11, "same_type_rival.speedup", "%.2f" },
    { "same type's error", 17, "same_type_rival.rel_err", "%.1e" },
    { "f32", 9, "f32_rival.us_per_token", "%.1f" },
    { "through", -13, function(r) return rivals.words(r.f32_rival) end },
    { "x f32", 6, "f32_rival.speedup", "%.2f" },
    { "f32's error", 11, "f32_rival.rel_err", "%.1e" },
    { "all in i8", 9, function(r) return in_i8(r) and string.format("%.1f", in_i8(r).us_per_token) end },
}

local attention_columns = columns.of {
    { "isa", -7, "isa" },
    { "cache", -7, "type" },
    { "tokens", 6, "tokens" },
    { "position", 8, "position" },
    { "us/token", 9, "us_per_token", "%.2f" },
    { "GB/s", 6, "gbytes", "%.1f", only = alone },
    { "of read", 7, "read_share", "%", only = alone },
    { "GFLOP/s", 7, "gflops", "%.1f" },
    { "exact", 9, "exact_us_per_token", "%.2f" },
    { "x faster", 8, "exact_speedup", "%.2f" },
    { "baseline's", 10, "baseline_us_per_token", "%.2f" },
    { "through", -8, function(r) return rivals.through(r.baseline_library, r.baseline_implementation) end },
    { "x faster", 8, "speedup", "%.2f" },
}

-- Those of the results that have products alone.
local function with_products(results)
    local list = {}
    for _, r in ipairs(results) do
        if r.rivals then list[#list + 1] = r end
    end
    return list
end

-- The tables of what --json prints, as bench_report.of_tables has them.
function bench.tables(given)
    local tables, products = { { columns = block_columns, results = given.results } }, with_products(given.results)
    if #products > 0 then
        tables[2] = { name = "its products alone", columns = product_columns, results = products }
    end
    if #given.attention > 0 then
        tables[#tables + 1] = { name = "attention alone", columns = attention_columns, results = given.attention }
    end
    return tables
end

function bench.head(run, setting_text)
    return string.format("%s on %s: one of %d blocks", run.model.name, setting_text, run.model.layers)
end

function bench.notes(run)
    local measured, results = run.printed.limits, run.results
    local products, narrower = with_products(results), false
    local notes = {
        (results[1].threads == 1 and "us/token: medians of interleaved CPU times." or string.format(
            "us/token: medians of interleaved wall times over the tokens of %d callers at a time, each with a cache \z
                and scratch of its own.",
            results[1].threads
        )) .. " predicted: by the weights left out. of read: of the speed of \z
            reading the same memory in the same run. error: of y, relative to float64.",
    }
    if results[1].exact_us_per_token then
        notes[#notes + 1] = "exact: the same blocks, emitted with the same types, whose attention is exact."
    end
    for _, r in ipairs(products) do
        narrower = narrower or in_i8(r)
    end
    if products[1] and products[1].same_type then
        notes[#notes + 1] = "same type: the fastest products through OpenBLAS and oneDNN whose factors are as wide as \z
            ours or wider: beside inputs in i8 of 8 bits, beside weights in bf16 bf16, else f32. Errors: of a product."
    elseif products[1] then
        notes[#notes + 1] = "f32: the fastest products through OpenBLAS and oneDNN in float32."
    end
    if narrower then notes[#notes + 1] = "all in i8: through oneDNN, inputs rounded to 8 bits, too." end
    notes[#notes + 1] = rivals.note(run.printed.host, products)
    notes[#notes + 1] = "baseline's: attention through the faster library, the score matrix stored, a mask for what \z
        is not seen."
    notes[#notes + 1] = string.format(
        "limits of this core: FMA %.0f GFLOP/s; reading L1 %.0f, L2 %.0f, L3 %.0f, memory %.0f GB/s.",
        measured.fma_gflops,
        measured.l1_gbytes,
        measured.l2_gbytes,
        measured.l3_gbytes,
        measured.memory_gbytes
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
function bench.batches(m, options) return setting.one_and_many(m.attention.context - (options.position or 0)) end

function bench.start(path, m, options)
    options.position = options.position or 0
    if not m.attention.causal and options.position > 0 then
        misuse(string.format("--position: %d: must be 0 where %s has causal = false", options.position, m.name))
    end
    for _, tokens in ipairs(options.batches) do
        if options.position + tokens > m.attention.context then
            local form = "--batch: %d: from position %d on must be at most attention.context = %d"
            misuse(form:format(tokens, options.position, m.attention.context))
        end
    end
    local caches, results, attention = setting.caches_of(cpu.describe()), json.array {}, json.array {}
    return {
        path = path,
        model = m,
        threads = options.callers,
        kinds = rivals.select(options.rivals or "same,f32"),
        caches = caches,
        known = {}, -- of what attention has been timed
        results = results,
        attention = attention,
        printed = { results = results, attention = attention },
    }
end

return bench
