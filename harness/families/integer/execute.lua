-- Compiles integer kernels and runs them on this CPU: for run, for bench, and for verify against their reference.
local bench_report = require "harness.report.bench_report"
local budget = require "harness.verify.budget"
local choices = require "harness.measure.choices"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local host = require "host"
local input = require "harness.verify.input"
local integer = require "harness.verify.integer"
local isa = require "gen.isa.list"
local json = require "json"
local packed = require "harness.families.lookup.packed"
local process = require "process"
local request = require "gen.bundle.request"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local timed = require "harness.families.lookup.timed_integers"
local types = require "gen.families.integer.types"

local execute = {}

-- The plan of the options, its packed weights and its library.
local function build(path, options)
    local p = request.plan(path, isa.select(options.isa or "scalar"), options)
    local directory = process.temporary_directory()
    return {
        plan = p,
        files = packed.make(p, directory, options),
        library = compile.library({ p }, directory, options.cc, options.cflags),
    }
end

-- What the module `integer` needs to know to run plan `p` with the packed weights `blob`.
local function job_of(p, library, blob)
    return {
        library = library,
        bind = p.names.bind,
        ffn = p.names.ffn,
        project = p.variants[1].names.project,
        blob = blob,
        d = p.shape.d,
        d_out = p.shape.d_out,
        slots = p.shape.slots,
        scratch_bytes = p.scratch_bytes,
        weights_struct_bytes = p.weights_struct_bytes,
        x_unit = p.unit,
        y_unit = 2.0 ^ -p.fraction,
    }
end

function execute.run(path, options)
    local m = request.model(path, options)
    options.check_expected(input.check(options.input, m.d), m.d_out)
    local b = build(path, options)
    local tokens = assert(integer.run(job_of(b.plan, b.library, b.files.output), options.input, options.output))
    return string.format("%d tokens, integers", tokens)
end

-- The same with what the reference needs to know of the blob.
local function reference_job_of(p, library, files, seed)
    local job = job_of(p, library, files.output)
    job.model, job.weights, job.prefix, job.blocks_in_out =
        packed.reference_model(p.model, p.model.d, p.model.d_out),
        files.weights,
        files.prefix,
        files.blocks_in_out or false
    job.at, job.element, job.pitch, job.seed = p.integer_packing[1].at, p.shape.projection.bytes, p.pitch, seed
    return job
end

-- Tokens of a self-test and what the reference makes of them: { {x, y} }. Needs no library.
function execute.vectors(p, files, seed)
    return assert(integer.vectors(reference_job_of(p, "", files, seed), packed.vectors))
end

-- Compares the kernels of plan `p`, packed in `files`, with the reference, and what they cost with the budget `limits`
-- (harness/verify/budget.lua), that of the model if absent.
function execute.check(p, library, files, seed, limits)
    local job = reference_job_of(p, library, files, seed)
    job.tokens = math.max(16, math.min(512, 200000000 // math.floor(1e6 * p.mflop.projection + 1)))
    local result = assert(integer.check(job))
    result.isa, result.projection, result.tables = p.variants[1].isa.name, p.projection.name, p.tables.name
    budget.check(result, limits or budget.of(p.model), "the codes of integer arithmetic")
    return result
end

function execute.verify(path, options)
    local limits = budget.of(request.model(path, options), options.budget)
    local b = build(path, options)
    local p = b.plan
    local r = execute.check(p, b.library, b.files, options.seed, limits)
    if options.json then
        host.print(assert(json.encode {
            model = p.model.name,
            arithmetic = "integer",
            ok = r.ok,
            budget = next(limits) and limits,
            seed = options.seed,
            results = json.array { r },
        }))
        return r.ok and 0 or 1
    end
    host.print(
        string.format(
            "%-8s %-8s %-10s %-6s %7s %9s %9s %7s %6s %10s",
            p.model.name,
            "",
            "projection",
            "tables",
            "tokens",
            "rel error",
            "max error",
            "codes",
            "flips",
            "with flips"
        )
    )
    host.print(
        string.format(
            "%-8s %-8s %-10s %-6s %7d %9.1e %9.1e %7d %6d %10.1e",
            r.isa,
            r.ok and "ok" or "FAILED",
            r.projection,
            r.tables,
            r.tokens,
            r.rel_err,
            r.max_abs_err,
            r.codes,
            r.code_flips,
            r.rel_err_flips
        )
    )
    for _, check in ipairs(r.checks) do
        if not check.ok then host.note(string.format("lookupc verify: %s: %s: %s", r.isa, check.name, check.detail)) end
    end
    return r.ok and 0 or 1
end

-- The build of the options, verified: raises one line for a wrong kernel.
local function verified_build(path, options)
    local b = build(path, options)
    b.checked = execute.check(b.plan, b.library, b.files, options.seed)
    for _, check in ipairs(b.checked.checks) do
        if not check.ok then
            error(
                string.format(
                    "%s: the integer kernels fail verification: %s: %s: nothing was timed",
                    path,
                    check.name,
                    check.detail
                ),
                0
            )
        end
    end
    return b
end

-- One result for every number of tokens.
local function add_results(results, b, options)
    local p, checked = b.plan, b.checked
    local job = job_of(p, b.library, b.files.output)
    for _, batch in ipairs(options.batches) do
        local samples, shares = timed(job, batch, options.repetitions, options.callers)
        local share = statistics.median(shares)
        results[#results + 1] = {
            model = p.model.name,
            isa = checked.isa,
            arithmetic = "integer",
            projection_dtype = p.projection.name,
            table_dtype = p.tables.name,
            batch = batch,
            threads = options.callers,
            us_per_token = statistics.median(samples),
            cpu_over_wall = share,
            counts = statistics.counts(share),
            rel_err = checked.rel_err,
            code_flips = checked.code_flips,
        }
    end
end

local bench_columns = {
    { "isa", -7, function(r) return r.isa end },
    { "projection", -10, function(r) return r.projection_dtype end },
    { "tables", -6, function(r) return r.table_dtype end },
    { "tokens", 7, function(r) return r.batch end },
    { "us/token", 9, function(r) return string.format("%.2f", r.us_per_token) end },
    { "error", 7, function(r) return string.format("%.1e", r.rel_err) end },
    { "flips", 6, function(r) return r.code_flips end },
}

function execute.bench(path, options)
    local threads, results, plan = options.callers, json.array {}, nil
    local rows = { { "projection", function(name) return types.projection(name).name end, "i16" } }
    for _, choice in ipairs(choices.combined(options, rows)) do
        local b = verified_build(path, choice)
        plan = b.plan
        add_results(results, b, choice)
    end
    local host_facts = setting.host_facts(cpu.describe(), plan.variants[1].isa, options.cc, options.cflags, {})
    return bench_report.of_tables {
        title = plan.model.name .. ": LookupFFN in integers",
        head = string.format(
            "%s on %s, integers",
            plan.model.name,
            bench_report.setting(host_facts, options.cflags, threads)
        ),
        tables = { { columns = bench_columns, results = results } },
        notes = {
            (threads == 1 and "us/token: medians of CPU times." or string.format(
                "us/token: medians of wall times over the tokens of %d callers at a time, each with its own scratch.",
                threads
            )) .. " error: of y, relative to float64, with the codes of integer arithmetic; flips: of codes.",
        },
        host = host_facts,
        threads = threads,
        json = { host = host_facts, results = results },
    }
end

return execute
