-- Times verified variants in the measuring process and reports them beside the best dense FFNs of the same run.
local bench_page = require "harness.report.bench_page"
local bench_report = require "harness.report.bench_report"
local columns = require "harness.report.columns"
local compile = require "harness.base.compile"
local cost = require "gen.plan.cost"
local cpu = require "harness.base.cpu"
local integer = require "harness.families.lookup.integer"
local json = require "json"
local limits = require "harness.measure.limits"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local plan = require "gen.families.lookup.plan"
local rivals = require "harness.measure.rivals"
local runnable = require "harness.base.runnable"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local timed_calls = require "harness.families.lookup.timed_calls"

local bench = {}

-- The measuring process' name for the rate of reading rows of plan `p`'s tables.
local function rows_limit(p) return "random_rows_" .. p.tables.name .. "_gbytes" end

-- The limits `measured` with random rows of plan `p`'s tables.
local function limits_of(measured, p)
    local own = { random_rows_gbytes = measured[rows_limit(p)] }
    for name, rate in pairs(measured) do
        if not name:find "^random_rows" then own[name] = rate end
    end
    return own
end

-- What a variant's kernels are called in the measuring process.
local function variant_name(b, v, regime)
    return table.concat({ v.isa.name, b.plan.projection.name, b.plan.tables.name, "of", b.number, regime }, "_")
end

-- What is timed beside `builds` for the words `kinds` of --rivals: "same" means those of their types and wider ones.
local function rivals_of(builds, kinds)
    local rows = rivals.as_wide_as "f32"
    for _, b in ipairs(kinds.same and builds or {}) do
        local more = rivals.as_wide_as(rivals.same_type(b.plan.projection, b.plan.tables))
        if #more > #rows then rows = more end
    end
    return rows
end

-- The MLPs of lookupc's own that are timed beside `builds`, one for each of their types (options.own_mlp, of
-- harness/families/own_mlp.lua); none, unless --rivals names them.
local function own_mlps_of(builds, kinds, options)
    local list, known, p = {}, {}, builds[1].plan
    if not kinds.mlp then return list end
    if p.shape.d_out ~= p.shape.d then misuse "--rivals: mlp: must have as many outputs as inputs" end
    if options.threads > 1 then misuse "--rivals: mlp: runs on one thread: without --threads" end
    local tokens = math.max(table.unpack(options.batches))
    for _, b in ipairs(builds) do
        local type = rivals.same_type(b.plan.projection, b.plan.tables)
        local v = b.plan.variants[#b.plan.variants]
        if not known[type] then
            list[#list + 1] = options.own_mlp(p.shape.d, p.dense_hidden, type, v.isa, tokens, options)
        end
        known[type] = true
    end
    return list
end

-- The call of a rival at so many tokens, for the measuring process.
local function rival_call(row, batch) return "dense/" .. rivals.name(row) .. "/" .. batch end

-- One result for every build, variant and batch, from the medians of the samples. Of what runs on several threads wall
-- time counts.
local function results_of(builds, job, rows, kinds, samples, context)
    local results, caches, measured = {}, setting.caches_of(cpu.describe()), limits.of(job, samples)
    local clock = job.threads > 1 and "wall" or "cpu"
    local function time(name, kind) return statistics.of(samples, name, kind) end
    local function add(b, v, batch, own_limits)
        local p = b.plan
        local stage, taken = plan.taken(v, batch)
        local regime = taken.name
        local checked = b.checked[v.isa.name .. "_" .. stage.name]
        local name = variant_name(b, v, regime) .. "/" .. batch
        local ffn, project, gather =
            time("ffn/" .. name .. "/uniform_warm", clock),
            time("project/" .. name, "cpu"),
            time("gather/" .. name, "cpu")
        local again = time("ffn_again/" .. name, clock)
        local work, sharing = plan.work(p, v, batch), plan.threads(stage, batch, job.threads)
        local limit_us = cost.limit(work, own_limits, caches) / sharing
        local share = time("ffn/" .. name .. "/uniform_warm", "share") / sharing
        local beside = rivals.beside(rows, ffn / batch, context, function(row)
            local call = rival_call(row, batch)
            local dense_us = time(call, clock)
            return dense_us and dense_us / batch, call
        end)
        local same_type = kinds.same and rivals.same_type(p.projection, p.tables)
        local same = same_type and rivals.fastest_of(beside, same_type)
        local dense = kinds.f32 and rivals.fastest_of(beside, "f32")
        -- several threads of a library are never busy all of the time
        local function share_of(rival)
            return rival and job.threads == 1 and time(rival_call(rival, batch), "share") or nil
        end
        results[#results + 1] = {
            model = p.model.name,
            batch = batch,
            threads = job.threads,
            isa = v.isa.name,
            regime = regime,
            schedule = v.schedule_text,
            table_dtype = p.tables.name,
            projection_dtype = p.projection.name,
            tuned = b.tuned,
            us_per_token = ffn / batch,
            stages = { project = project / batch, gather = gather / batch },
            same_type = same_type or nil,
            same_type_rival = same or nil,
            same_type_speedup = same and same.speedup or nil,
            dense_us_per_token = dense and dense.us_per_token or nil,
            dense_library = dense and dense.library or nil,
            dense_implementation = dense and dense.implementation or nil,
            dense_rel_err = dense and dense.rel_err or nil,
            speedup = dense and dense.speedup or nil,
            rivals = beside,
            gflops = p.mflop.folded * 1e3 * batch / ffn,
            project_gflops = work.projection_flops * 1e-3 * batch / project,
            limit_us = limit_us,
            limit_share = limit_us * batch / ffn,
            random_rows_gbytes = own_limits.random_rows_gbytes,
            flop_per_byte = {
                project = work.projection_flops * math.min(work.pass, batch) / work.projection_bytes,
                gather = 2 * p.shape.slots * p.shape.d_out / work.row_bytes,
            },
            gather_gbytes = p.shape.slots * p.shape.d_out * p.tables.bytes * 1e-3 * batch / gather,
            again_ratio = again and again / ffn,
            cpu_over_wall = share,
            counts = statistics.counts(share, share_of(same), share_of(dense)),
            rel_err = checked.rel_err,
            max_abs_err = checked.max_abs_err,
            code_flips = checked.code_flips,
        }
    end
    for _, b in ipairs(builds) do
        local own_limits = limits_of(measured, b.plan)
        for _, v in ipairs(b.plan.variants) do
            for _, batch in ipairs(job.batches) do
                add(b, v, batch, own_limits)
            end
        end
    end
    return results
end

local function different_tables(a, b) return a.table_dtype ~= b.table_dtype end
local function differently_tuned(a, b) return a.tuned ~= b.tuned end
local function different_projections(a, b) return a.projection_dtype ~= b.projection_dtype end

-- The columns of the table for people. One with `several` is there where that says of two results that they differ; of
-- integers it is always there.
local table_columns = columns.of {
    { "isa", -7, "isa" },
    { "projection", -10, "projection_dtype", several = different_projections },
    { "tables", -6, "table_dtype", several = different_tables },
    { "schedule", -16, "tuned", several = differently_tuned },
    { "tokens", 6, "batch" },
    { "us/token", 9, "us_per_token", "%.2f" },
    { "project", 8, "stages.project", "%.2f" },
    { "gather", 8, "stages.gather", "%.2f" },
    { "limit", 6, "limit_us", "%.2f" },
    { "of limit", 8, "limit_share", "%" },
    { "same type", 9, "same_type_rival.us_per_token", "%.2f" },
    { "through", -12, function(r) return rivals.words(r.same_type_rival) end },
    { "x same type", 11, "same_type_speedup", "%.2f" },
    { "f32", 7, "dense_us_per_token", "%.2f" },
    { "through", -8, function(r) return rivals.through(r.dense_library, r.dense_implementation) end },
    { "x f32", 6, "speedup", "%.2f" },
    { "error", 7, "rel_err", "%.1e" },
    { "same type's", 11, "same_type_rival.rel_err", "%.1e" },
    { "f32's", 7, "dense_rel_err", "%.1e" },
    { "flips", 6, "code_flips", "%d", only = function(r) return r.arithmetic end },
    { "GFLOP/s", 8, "project_gflops", "%.1f" },
    { "GB/s", 7, "gather_gbytes", "%.1f" },
}

-- The tables of what --json prints, as bench_report.of_tables has them, with every column.
function bench.tables(given) return { { columns = table_columns, results = given.results } } end

-- One result of each kind: any two of them differ.
local function kinds_of(results, differ)
    local list = {}
    for _, r in ipairs(results) do
        local new = true
        for _, known in ipairs(list) do
            new = new and differ(r, known)
        end
        if new then list[#list + 1] = r end
    end
    return list
end

-- The report of `results`; `of` has more of its fields (harness/report/bench_report.lua).
local function report(results, of)
    local shown = {}
    for _, column in ipairs(table_columns) do
        if not column.several or results[1].arithmetic or #kinds_of(results, column.several) > 1 then
            shown[#shown + 1] = column
        end
    end
    of.tables = { { columns = shown, results = results } }
    of.threads = results[1].threads
    return bench_report.of_tables(of)
end

local function report_of_integers(results, facts, options)
    local name, threads = results[1].model, results[1].threads
    return report(results, {
        title = name .. ": LookupFFN in integers",
        head = string.format("%s on %s, integers", name, bench_report.setting(facts, options.cflags, threads)),
        notes = {
            (threads == 1 and "us/token: medians of CPU times." or string.format(
                "us/token: medians of wall times over the tokens of %d callers at a time, each with its own scratch.",
                threads
            )) .. " error: of y, relative to float64, with the codes of integer arithmetic; flips: of codes.",
        },
        host = facts,
        json = { host = facts, results = json.array(results) },
    })
end

local function head_of(host_facts, cflags, results)
    local threads, types = results[1].threads, kinds_of(results, different_tables)
    local one_projection = #kinds_of(results, different_projections) == 1
    return string.format(
        "%s on %s, %s %s, %s, float32%s%s%s",
        results[1].model,
        host_facts.cpu,
        host_facts.compiler,
        cflags,
        threads == 1 and "one thread" or threads .. " threads",
        one_projection and ", projection in " .. results[1].projection_dtype or "",
        #types == 1 and ", tables in " .. results[1].table_dtype or "",
        host_facts.machine and ", defaults for " .. host_facts.machine or ""
    )
end

local function notes_of(host_facts, measured, results)
    local notes, threads, types = {}, results[1].threads, kinds_of(results, different_tables)
    notes[#notes + 1] = threads == 1
            and "us/token: medians of interleaved CPU times. GFLOP/s: projection and hash. GB/s: table rows read by \z
                the gather."
        or string.format(
            "us/token: medians of interleaved wall times, FFN and dense FFN on up to %d threads; project, gather, \z
                GFLOP/s and GB/s: of one thread, CPU time.",
            threads
        )
    if results[1].same_type_rival then
        notes[#notes + 1] =
            "same type: the fastest dense FFN with numbers as wide as the narrower of projection and tables or wider. \z
                error, same type's, f32's: of y, relative to float64, the largest of a token."
    else
        notes[#notes + 1] = "error, f32's: of y, relative to float64, the largest of a token."
    end
    notes[#notes + 1] = rivals.note(host_facts, results)
    local rows = {}
    for i, r in ipairs(types) do
        rows[i] = (#types > 1 and "of " .. r.table_dtype .. " " or "") .. string.format("%.0f", r.random_rows_gbytes)
    end
    notes[#notes + 1] = string.format(
        "limit: the least us/token by what %s; of limit: limit over us/token. FMA %.0f GFLOP/s; reading L1 %.0f, \z
            L2 %.0f, L3 %.0f, memory %.0f, random rows %s GB/s.",
        threads == 1 and "this core was measured to do" or "the cores at work do, each as this one was measured to",
        measured.fma_gflops,
        measured.l1_gbytes,
        measured.l2_gbytes,
        measured.l3_gbytes,
        measured.memory_gbytes,
        table.concat(rows, ", ")
    )
    local worst, controls
    for _, r in ipairs(results) do
        local difference = r.again_ratio and math.abs(r.again_ratio - 1) * 100
        controls = (controls or 0) + (difference and 1 or 0)
        if difference and difference >= (worst and worst.difference or 0) then
            worst = { isa = r.isa, batch = r.batch, difference = difference }
        end
    end
    notes[#notes + 1] = string.format(
        "A/A control: the same %s at %d tokens measured twice %s by %.1f %%.",
        controls == 1 and worst.isa .. " kernel" or "kernels",
        worst.batch,
        controls == 1 and "differs" or "differ at most",
        worst.difference
    )
    return notes
end

-- What the measuring process is told to do.
local function job_of(builds, rows, options)
    local p = builds[1].plan
    local job = {
        model = p.model.name,
        seed = options.seed,
        d = p.shape.d,
        d_out = p.shape.d_out,
        baseline_hidden = p.dense_hidden,
        batches = options.batches,
        threads = options.threads,
        repetitions = options.repetitions,
        stages = true,
        conditions = { { codes = "uniform", tables = "warm" } },
    }
    local known, variants, tables = {}, {}, {}
    for _, b in ipairs(builds) do
        if not known[b.plan.tables] then
            table.insert(tables, {
                name = rows_limit(b.plan),
                row = b.plan.table_bytes // (b.plan.shape.h * b.plan.shape.rows),
                table = b.plan.table_bytes,
            })
        end
        known[b.plan.tables] = true
        for _, v in ipairs(b.plan.variants) do
            local least = 1
            local function add(regime, most)
                if most < least then return end
                local variant = compile.describe(b.plan, v, b.library, regime, b.threads)
                variant.name, variant.blob = variant_name(b, v, regime), b.files.output
                variant.least_batch, variant.most_batch = least, most
                variants[#variants + 1], least = variant, most + 1
            end
            for i = #v.stages, 1, -1 do
                for n = #v.stages[i].gathers, 1, -1 do
                    local gather = v.stages[i].gathers[n]
                    add(gather.name, math.min(v.stages[i].up_to, gather.up_to, 1 << 20))
                end
            end
        end
    end
    timed_calls.add(job, variants)
    rivals.add_dense(job, rows)
    limits.add(job, setting.caches_of(cpu.describe()), tables)
    return job
end

-- Times the builds, one or more of one model, each verified, in one run. Returns the report, beside rivals of these
-- `kinds`; nil: the measuring process has said why not.
function bench.run(builds, kinds, options)
    local facts, p = cpu.describe(), builds[1].plan
    local function host_facts(context)
        local cflags = compile.threaded(p, options.cflags, options.threads)
        return setting.host_facts(facts, p.variants[#p.variants].isa, options.cc, cflags, context)
    end
    if p.exact then return report_of_integers(integer.results(builds, options), host_facts {}, options) end
    local rows, mlps = rivals_of(builds, kinds), own_mlps_of(builds, kinds, options)
    local job = job_of(builds, rows, options)
    local own_rows = timed_calls.add_mlps(job, mlps, rival_call)
    job.host = options.raw_file and host_facts {} or nil
    for _, b in ipairs(job.host and builds or {}) do
        for _, v in ipairs(b.plan.variants) do
            job.host["schedule of " .. b.number .. " " .. v.isa.name] = v.schedule_text
        end
    end
    local samples, context = measure.run(job, { show_stderr = true, raw = options.raw_file })
    if not samples then return nil end
    for _, own in ipairs(own_rows) do
        rows[#rows + 1] = own.row
        for _, batch in ipairs(options.batches) do
            local call = rival_call(own.row, batch)
            context[call], context["implementation/" .. call] = tostring(own.mlp.rel_err), own.mlp.isa
        end
    end
    local measured = limits_of(limits.of(job, samples), p)
    local results, own = results_of(builds, job, rows, kinds, samples, context), host_facts(context)
    own.machine = runnable.machine(options)
    local made = report(results, {
        title = p.model.name .. ": LookupFFN against a dense FFN",
        head = head_of(own, options.cflags, results),
        notes = notes_of(own, measured, results),
        host = own,
        json = { host = own, limits = measured, results = json.array(results) },
    })
    made.parts = function() return bench_page.parts(own, measured, results) end
    return made
end

return bench
