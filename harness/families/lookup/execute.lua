-- Compiles LookupFFNs and runs them on this CPU: for run, for verify and for bench.
local bench = require "harness.families.lookup.bench"
local budget = require "harness.verify.budget"
local check = require "harness.families.lookup.check"
local choices = require "harness.measure.choices"
local compile = require "harness.base.compile"
local compiled = require "compiled"
local family = require "gen.families.lookup.family"
local host = require "host"
local input = require "harness.verify.input"
local json = require "json"
local npy = require "npy"
local packed = require "harness.families.lookup.packed"
local process = require "process"
local request = require "gen.bundle.request"
local rivals = require "harness.measure.rivals"
local runnable = require "harness.base.runnable"

local execute = {}

-- A plan that can run here: { plan, threads, files, library }; its kernels are for the instruction sets `sets`. `files`
-- are packed weights of its types, if there are any yet.
local function build(path, sets, options, threads, files)
    local p = runnable.plan(path, sets, options)
    local directory = process.temporary_directory()
    files = files or packed.make(p, directory, options)
    return {
        plan = p,
        threads = threads,
        files = files,
        library = compile.library({ p }, directory, options.cc, compile.threaded(p, options.cflags, threads)),
    }
end

function execute.run(path, options)
    local sets = runnable.sets(options.isa, family.isa_types(options))
    local m = request.model(path, options)
    options.check_expected(input.check(options.input, m.d), m.d_out)
    local b = build(path, { sets[#sets] }, options, compile.threads_of(options))
    local v = compile.describe(b.plan, b.plan.variants[1], b.library, nil, b.threads)
    local x = assert(npy.read(options.input, m.d))
    local tokens = #x // (4 * m.d)
    local model = assert(compiled.open(setmetatable({ blob = b.files.output, stays = true }, { __index = v })))
    local y, scratch = compiled.memory(4 * tokens * m.d_out), compiled.memory(v.scratch_bytes)
    model:call(v.ffn, model, x, y, tokens, scratch)
    assert(npy.write(options.output, m.d_out, y:read()))
    return string.format("%d tokens, %s", tokens, sets[#sets].name)
end

function execute.verify(path, options)
    local limits = budget.of(request.model(path, options), options.budget)
    local threads = compile.threads_of(options)
    local sets, skipped = runnable.every(options.isa, family.isa_types(options))
    local b = build(path, sets, options, threads)
    local p = b.plan
    local results, ok = check.variants(p, b.library, b.files, options.seed, threads, { budget = limits }), true
    for _, result in ipairs(results) do
        ok = ok and result.ok
    end
    if options.json then
        host.print(assert(json.encode {
            model = p.model.name,
            ok = ok,
            budget = next(limits) and limits,
            seed = options.seed,
            threads = threads,
            results = json.array(results),
            skipped = json.array(skipped),
        }))
        return ok and 0 or 1
    end
    host.print(
        string.format(
            "%-8s %-6s %-8s %-10s %-6s %7s %9s %9s %7s %6s",
            p.model.name,
            "",
            "",
            "projection",
            "tables",
            "tokens",
            "rel error",
            "max error",
            "codes",
            "flips"
        )
    )
    for _, result in ipairs(results) do
        host.print(
            string.format(
                "%-8s %-6s %-8s %-10s %-6s %7d %9.1e %9.1e %7d %6d",
                result.isa,
                result.regime,
                result.ok and "ok" or "FAILED",
                result.projection,
                result.tables,
                result.tokens or 0,
                result.rel_err or 0,
                result.max_abs_err or 0,
                result.codes or 0,
                result.code_flips or 0
            )
        )
        for _, row in ipairs(result.checks) do
            if not row.ok then
                host.note(
                    string.format("lookupc verify: %s %s: %s: %s", result.isa, result.regime, row.name, row.detail)
                )
            end
        end
    end
    for _, name in ipairs(skipped) do
        host.print("skipped: " .. name .. ": this CPU or its operating system does not run it")
    end
    return ok and 0 or 1
end

-- A build, and in `checked` the results of its verification by instruction set and regime; raises one line for a wrong
-- kernel.
local function verified_build(path, options, threads, files)
    local sets = runnable.sets(options.isa, family.isa_types(options))
    if not options.isa then sets = { sets[#sets] } end
    local b = build(path, sets, options, threads, files)
    b.checked, b.tuned = {}, options.named
    for _, result in ipairs(check.variants(b.plan, b.library, b.files, options.seed, threads)) do
        for _, row in ipairs(result.checks) do
            if not row.ok then
                error(
                    string.format(
                        "%s: the %s kernels for %s tokens fail verification: %s: %s: nothing was timed",
                        path,
                        result.isa,
                        result.regime,
                        row.name,
                        row.detail
                    ),
                    0
                )
            end
        end
        b.checked[result.isa .. "_" .. result.regime] = result
    end
    return b
end

function execute.bench(path, options)
    local threads, kinds = compile.threads_of(options), rivals.select(options.rivals or "same,f32")
    local builds, files = {}, {}
    local rows = {
        { "projection", choices.types "projection", "f32" },
        { "tables", choices.types "tables", "f32" },
        choices.tuned(options),
    }
    for i, choice in ipairs(choices.combined(options, rows)) do
        local types = choice.projection .. " " .. choice.tables
        builds[i] = verified_build(path, choice, threads, files[types])
        builds[i].number, files[types] = i, builds[i].files
    end
    return bench.run(builds, kinds, options)
end

return execute
