-- Times the blocks of a transformer, verified, in the measuring process: against the same blocks unfused, against
-- reading what they read, and against their products and their attention through other libraries.
local columns = require "harness.report.columns"
local compile = require "harness.base.compile"
local counted = require "harness.report.counted"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local family = require "gen.families.transformer.family"
local host = require "host"
local json = require "json"
local machines = require "gen.plan.machine"
local measure = require "harness.measure.measure"
local model_file = require "gen.families.model_file"
local packing = require "gen.families.packing"
local parts = require "harness.families.transformer.parts"
local process = require "process"
local request = require "gen.bundle.request"
local runnable = require "harness.base.runnable"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local transformer = require "harness.families.transformer.execute"
local transformer_plan = require "gen.families.transformer.plan"

local transformer_bench = {}

local libraries = { "openblas", "onednn" }

-- The types of weights that a baseline's products are timed with beside those of the type `type`: float32, and the same
-- where a library has it.
local function baseline_kinds(type)
    local kinds = { { library = "openblas", type = "f32" }, { library = "onednn", type = "f32" } }
    if type == "bf16" or type == "i8" then kinds[3] = { library = "onednn", type = type } end
    return kinds
end

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

-- Blocks as the job names them.
local function described(p, name, library, blob_path)
    return {
        name = name,
        library = library,
        bind = p.names.bind,
        call = parts.call(p),
        blob = blob_path,
        scratch_bytes = p.scratch_bytes,
        weights_struct_bytes = p.weights_struct_bytes,
    }
end

-- Verifies plan `p` in `library` with its packed weights; raises one line if a call is wrong. Returns the largest
-- relative error.
local function verified(path, p, library, prepared)
    local worst = 0.0
    for _, result in ipairs(transformer.check_library(p, library, prepared)) do
        if not result.ok then
            error(
                string.format(
                    "%s: the %s blocks fail verification: %s: %s: nothing was timed",
                    path,
                    result.isa,
                    result.call,
                    result.message
                ),
                0
            )
        end
        worst = math.max(worst, result.kernel_rel_err)
    end
    return worst
end

-- Everything of model `m` with weights of one type on one instruction set, compiled and verified: { plan, unfused,
-- attention, filling, entries, rel_err }.
local function made(path, m, isa, type, caches, options)
    local types = {
        type = type,
        cache = options.cache,
        activations = options.activations,
        tables = options.tables,
        projection = options.projection,
    }
    local given = setmetatable({ schedule = options.schedule, tuned = options.tuned }, { __index = types })
    local wanted = request.plan(path, { isa }, given).options.schedule
    local function build(model)
        return transformer_plan.build(model, { isa }, setmetatable({ schedule = wanted }, { __index = types }))
    end
    local whole = build(m)
    local one = parts.sample(m, whole, caches)
    local p = build(one)
    local products = parts.products(p)
    local attention, filling = parts.attention(
        p,
        one,
        math.max(one.layers, parts.layers_of(whole.cache_bytes // m.layers, caches, 64))
    )
    local directory = process.temporary_directory()
    local prepared = transformer.prepare(p, directory, { seed = options.seed, large = true, cc = options.cc })
    local library = compile.library(
        { p, products, attention, filling },
        directory .. "/fused",
        options.cc,
        options.cflags .. " " .. parts.cflags
    )
    local b = { plan = p, attention = attention, filling = filling, rel_err = verified(path, p, library, prepared) }
    local angles = directory .. "/angles.bin"
    packing.pack(attention, { weights = prepared.packed_from, output = angles, prefix = "", ignore = "*" })
    b.entries = {
        described(p, "fused", library, prepared.blob),
        described(products, "products", library, prepared.blob),
        described(attention, "attention", library, angles),
        described(filling, "filling", library, angles),
    }
    if m.attention.eliminate ~= "none" then
        b.unfused = build(parts.changed(one, { name = m.name .. "_unfused" }, { eliminate = "none" }))
        local unfused_directory = process.temporary_directory()
        local drawn = { seed = options.seed, large = true, cc = options.cc }
        local unfused_weights = transformer.prepare(b.unfused, unfused_directory, drawn)
        local unfused_library =
            compile.library({ b.unfused }, unfused_directory .. "/unfused", options.cc, options.cflags)
        b.unfused_rel_err = verified(path, b.unfused, unfused_library, unfused_weights)
        b.entries[#b.entries + 1] = described(b.unfused, "unfused", unfused_library, unfused_weights.blob)
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
local function job_of(b, type, caches, with_attention, options)
    local p, s, list = b.plan, b.plan.shape, json.array
    local job = {
        model = p.model.name,
        seed = options.seed,
        threads = 1,
        repetitions = options.repetitions,
        min_time = 0.05,
        slices = 0,
        draw_order = true,
        order_seed = options.seed,
        alike = false,
        sweep_bytes = 0,
        limits = with_attention,
        sizes = with_attention and caches or nil,
        d = math.max(s.input, s.d, s.q),
        cache_bytes = b.filling.cache_bytes,
        fill = "filling",
        filled = s.ring and s.cache.positions or s.context,
        heads = s.heads,
        kv_heads = s.kv_heads,
        width = s.width,
        layers = b.attention.shape.layers,
        causal = s.causal,
        transformers = list(b.entries),
        calls = list {},
        reads = list {},
        products = list {},
        product_calls = list {},
        attention_calls = list {},
    }
    local function call(name, transformer, tokens, position)
        table.insert(job.calls, { name = name, transformer = transformer, tokens = tokens, position = position })
    end
    table.insert(
        job.reads,
        { name = "read/weights", cache = false, transformer = "fused", bytes = parts.weight_bytes(p) }
    )
    for _ = 1, s.layers do
        for _, map in ipairs(p.maps) do
            table.insert(job.products, { inputs = map.inputs, outputs = map.outputs })
        end
    end
    for i, tokens in ipairs(options.batches) do
        call("fused/" .. tokens, "fused", tokens, options.position)
        -- A/A control: how far apart two figures for the same code are
        if i == 1 then call("fused_again/" .. tokens, "fused", tokens, options.position) end
        if b.unfused then call("unfused/" .. tokens, "unfused", tokens, options.position) end
        if #p.maps > 0 then
            call("products/" .. tokens, "products", tokens, options.position)
            for _, kind in ipairs(baseline_kinds(type)) do
                table.insert(job.product_calls, {
                    name = "products/" .. kind.library .. "/" .. kind.type .. "/" .. tokens,
                    library = kind.library,
                    type = kind.type,
                    tokens = tokens,
                })
            end
        end
    end
    if with_attention then
        table.insert(job.reads, {
            name = "read/cache",
            cache = true,
            transformer = "attention",
            bytes = cache_read(b.attention, p.model.attention.context),
        })
        for _, of in ipairs(attention_calls(p.model, options)) do
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
    end
    return job
end

local function time(samples, name, kind) return samples[name] and statistics.median(samples[name][kind or "cpu"]) end

-- One result for every number of tokens; times are of one block.
local function results_of(b, type, samples, options)
    local list, p, s = {}, b.plan, b.plan.shape
    for i, tokens in ipairs(options.batches) do
        local function each(name, kind)
            local us = time(samples, name .. "/" .. tokens, kind)
            return us and us / s.layers / tokens
        end
        local us = each "fused"
        local r = {
            model = p.model.name,
            isa = p.variants[1].isa.name,
            type = type,
            activations = p.options.activations,
            tables = p.options.tables,
            projection = p.options.projection,
            tokens = tokens,
            position = options.position,
            layers = s.layers,
            us_per_token = us,
            gbytes = (parts.bytes_met(p) + cache_read(p, options.position + tokens)) * 1e-3 / (us * tokens * s.layers),
            read_gbytes = parts.weight_bytes(p) * 1e-3 / time(samples, "read/weights"),
            gflops = (operations(p) / s.layers + attention_operations(s, tokens, options.position) / tokens)
                * 1e-3
                / us,
            cpu_over_wall = time(samples, "fused/" .. tokens, "share"),
            counts = statistics.counts(
                time(samples, "fused/" .. tokens, "share"),
                time(samples, "unfused/" .. tokens, "share"),
                time(samples, "products/" .. tokens, "share")
            ),
            again_ratio = i == 1 and each "fused_again" / us or nil,
            rel_err = b.rel_err,
        }
        r.read_share = r.gbytes / r.read_gbytes
        if b.unfused then
            r.unfused_us_per_token, r.predicted_speedup, r.unfused_rel_err =
                each "unfused", weights_met(b.unfused) / weights_met(p), b.unfused_rel_err
            r.speedup = r.unfused_us_per_token / us
            r.speedup_share = r.speedup / r.predicted_speedup
        end
        r.products_us_per_token = each "products"
        if r.products_us_per_token then
            r.products_gflops, r.baselines = met(p, 2, 0, 0) / s.layers * 1e-3 / r.products_us_per_token, json.array {}
            for _, kind in ipairs(baseline_kinds(type)) do
                local baseline = {
                    library = kind.library,
                    type = kind.type,
                    us_per_token = each("products/" .. kind.library .. "/" .. kind.type),
                }
                -- some have no such product for this CPU
                if baseline.us_per_token then table.insert(r.baselines, baseline) end
                -- One that rounds the inputs to 8 bits, too, computes something else.
                if kind.type == "i8" then
                    r.baseline_in_i8_us_per_token = baseline.us_per_token
                elseif
                    baseline.us_per_token
                    and (not r.baseline_us_per_token or baseline.us_per_token < r.baseline_us_per_token)
                then
                    r.baseline_us_per_token, r.baseline_library, r.baseline_type =
                        baseline.us_per_token, baseline.library, baseline.type
                end
            end
            r.baseline_share = r.baseline_us_per_token / r.products_us_per_token
        end
        list[i] = r
    end
    return list
end

-- The same for attention alone.
local function attention_results(b, samples, options)
    local list, p = {}, b.attention
    local s = p.shape
    for i, of in ipairs(attention_calls(p.model, options)) do
        local function each(name) return time(samples, name .. "/" .. of.tokens) / s.layers / of.tokens end
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
            read_gbytes = cache_read(p, b.plan.model.attention.context) * 1e-3 / time(samples, "read/cache"),
            gflops = attention_operations(s, of.tokens, of.position) / of.tokens * 1e-3 / us,
            cpu_over_wall = time(samples, "attention/" .. of.tokens, "share"),
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

-- The columns of the tables for people: { head, width (negative: to the left), text(r), nil for nothing to say }. One
-- that says nothing at all is left out.
local block_columns = {
    { "isa", -7, function(r) return r.isa end },
    { "weights", -7, function(r) return r.type end },
    { "inputs", -7, function(r) return r.activations end },
    { "tables", -6, function(r) return r.tables end },
    { "proj.", -5, function(r) return r.projection end },
    { "tokens", 6, function(r) return r.tokens end },
    { "us/token", 9, function(r) return number("%.1f", r.us_per_token) end },
    { "unfused", 9, function(r) return number("%.1f", r.unfused_us_per_token) end },
    { "x faster", 8, function(r) return number("%.3f", r.speedup) end },
    { "predicted", 9, function(r) return number("%.3f", r.predicted_speedup) end },
    { "GB/s", 6, function(r) return alone(r) and number("%.1f", r.gbytes) end },
    { "of read", 7, function(r) return alone(r) and percent(r.read_share) end },
    { "GFLOP/s", 7, function(r) return number("%.1f", r.gflops) end },
    { "products", 9, function(r) return number("%.1f", r.products_us_per_token) end },
    { "baseline's", 10, function(r) return number("%.1f", r.baseline_us_per_token) end },
    { "through", -13, function(r) return r.baseline_library and r.baseline_library .. " " .. r.baseline_type end },
    { "of baseline", 11, function(r) return percent(r.baseline_share) end },
    { "all in i8", 9, function(r) return number("%.1f", r.baseline_in_i8_us_per_token) end },
}

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

local function print_tables(m, host_facts, cflags, limits, results, attention)
    local lines = {
        string.format(
            "%s on %s, %s %s, one thread: one of %d blocks",
            m.name,
            host_facts.cpu,
            host_facts.compiler,
            cflags,
            m.layers
        ),
    }
    columns.add(lines, block_columns, results)
    if #attention > 0 then
        lines[#lines + 1] = "attention alone"
        columns.add(lines, attention_columns, attention)
    end
    lines[#lines + 1] =
        "us/token: medians of interleaved CPU times. predicted: by the weights left out. of read: of the speed of \z
            reading the same memory in the same run."
    lines[#lines + 1] =
        "baseline's: the same products through OpenBLAS and oneDNN, the fastest; attention: the score matrix stored, \z
            a mask for what is not seen."
    local in_i8 = false
    for _, r in ipairs(results) do
        in_i8 = in_i8 or r.baseline_in_i8_us_per_token
    end
    if in_i8 then lines[#lines + 1] = "all in i8: through oneDNN, inputs rounded to 8 bits, too." end
    lines[#lines + 1] = string.format(
        "limits of this core: FMA %.0f GFLOP/s; reading L1 %.0f, L2 %.0f, L3 %.0f, memory %.0f GB/s.",
        limits.fma_gflops,
        limits.l1_gbytes,
        limits.l2_gbytes,
        limits.l3_gbytes,
        limits.memory_gbytes
    )
    local worst, all = 0.0, table.move(attention, 1, #attention, #results + 1, { table.unpack(results) })
    for _, r in ipairs(results) do
        worst = math.max(worst, r.again_ratio and math.abs(r.again_ratio - 1) or 0)
    end
    lines[#lines + 1] = string.format(
        "A/A control: the same blocks at %d tokens measured twice differ by %s%.1f %%.",
        results[1].tokens,
        #results > 1 and "at most " or "",
        100 * worst
    )
    lines[#lines + 1] = counted.note(all)
    host.print(table.concat(lines, "\n"))
end

-- Tokens a call that are timed unless others are asked for.
function transformer_bench.batches(m, options)
    local left = m.attention.context - (options.position or 0)
    return left > 1 and "1," .. math.min(512, left) or "1"
end

-- The instruction sets on which `m` is to be timed with weights of `type`: the best one, or those that are asked for,
-- with the defaults of this CPU.
local function sets_of(m, type, options)
    local own = { type = type, tables = options.tables, projection = options.projection }
    own.cache, own.activations = options.cache, options.activations
    local sets = runnable.sets(options.isa, family.isa_types(own, m))
    return machines.sets(options.isa and sets or { sets[#sets] }, runnable.machine(options))
end

-- Times the model of the file `path` with weights of each of the types that are asked for, and reports.
function transformer_bench.run(path, options)
    local m, facts = model_file.load(path), cpu.describe()
    local types = dtype.select(options.type or "f32", "type")
    options.position = options.position or 0
    if not m.attention.causal and options.position > 0 then
        error(string.format("--position: %d: must be 0 where %s has causal = false", options.position, m.name), 0)
    end
    for _, tokens in ipairs(options.batches) do
        if options.position + tokens > m.attention.context then
            error(
                string.format(
                    "--batch: %d: from position %d on must be at most attention.context = %d",
                    tokens,
                    options.position,
                    m.attention.context
                ),
                0
            )
        end
    end
    local results, attention, limits, host_facts, caches =
        json.array {}, json.array {}, nil, nil, setting.caches_of(facts)
    caches.rows = json.array {}
    local known = {}
    for _, type in ipairs(types) do
        for _, isa in ipairs(sets_of(m, type, options)) do
            local b = made(path, m, isa, type, caches, options)
            local first = not known[isa.name] -- attention does not depend on the type of weights
            known[isa.name] = true
            local samples, context = measure.run(job_of(b, type, caches, first, options), { show_stderr = true })
            if not samples then return 1 end
            if not limits then
                limits, host_facts =
                    setting.core_limits(context), setting.host_facts(facts, isa, options.cc, options.cflags, context)
            end
            table.move(results_of(b, type, samples, options), 1, #options.batches, #results + 1, results)
            if first then
                for _, r in ipairs(attention_results(b, samples, options)) do
                    table.insert(attention, r)
                end
            end
        end
    end
    if options.json then
        host.print(assert(json.encode { host = host_facts, limits = limits, results = results, attention = attention }))
    else
        print_tables(m, host_facts, options.cflags, limits, results, attention)
    end
    return 0
end

return transformer_bench
