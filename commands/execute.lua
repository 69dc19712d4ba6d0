-- The commands that compile and run emitted C on this CPU: run, verify, bench.
local bench = require "harness.families.lookup.bench"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local file_rules = require "commands.file_rules"
local dtype = require "gen.plan.dtype"
local host = require "host"
local integer = require "harness.families.integer.execute"
local isa = require "gen.isa.list"
local json = require "json"
local key = require "harness.tune.key"
local lookup = require "harness.families.lookup.packed"
local model_file = require "gen.model.file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local request = require "gen.bundle.request"
local transformer = require "harness.families.transformer.execute"

local commands = {}

-- The instruction sets of `text` (those of every bundle, if absent) that this CPU can run with weights of the types of
-- gen/plan/dtype.lua in the list, and the names of those it cannot.
function commands.runnable(text, types)
    local list, skipped, facts = {}, {}, cpu.describe()
    for _, set in ipairs(isa.select(text)) do
        if isa.runs(isa.with_types(set, types), facts) then
            list[#list + 1] = set
        else
            skipped[#skipped + 1] = set.name
        end
    end
    if #list == 0 then error("--isa: this CPU runs none of " .. table.concat(skipped, ","), 0) end
    return list, skipped
end

-- The types that the options of a LookupFFN ask for.
local function types_of(options) return { dtype.get(options.tables), dtype.get(options.projection, "projection") } end
commands.types_of = types_of

-- The option --threads; raises one line.
function commands.threads_of(options)
    if options.threads < 1 or options.threads > plan.max_threads then
        error(string.format("--threads: %d: must be an integer from 1 to %d", options.threads, plan.max_threads), 0)
    end
    return options.threads
end

local function load_plan(path, sets, options) return request.plan(path, sets, options, key.cpu()) end

-- A plan that can run here: { plan, threads, files, library }; its kernels are for the instruction sets `sets`. `files`
-- are packed weights of its types, if there are any yet.
local function build(path, sets, options, threads, files)
    local p = load_plan(path, sets, options)
    local directory = process.temporary_directory()
    files = files or lookup.packed(p, directory, options)
    return {
        plan = p,
        threads = threads,
        files = files,
        library = compile.library({ p }, directory, options.cc, compile.threaded(p, options.cflags, threads)),
    }
end

-- The types of a transformer's weights and cache that an instruction set may need more for; integers are summed as
-- floats.
function commands.transformer_types(options)
    local types = {}
    for _, row in ipairs { dtype.get(options.type, "type"), dtype.get(options.cache, "cache") } do
        if not row.integer_gather then types[#types + 1] = row end
    end
    return types
end

-- One plan of a transformer for every instruction set that this CPU can run, and the names of those it cannot.
local function transformer_plans(path, options)
    local sets, skipped = commands.runnable(options.isa, commands.transformer_types(options))
    local plans = {}
    for i, set in ipairs(sets) do
        plans[i] = request.plan(path, { set }, options)
    end
    return plans, skipped
end

function commands.run(arguments, options)
    file_rules.not_over("--output", options.output, { arguments[1], options.weights, options.input, options.tuned })
    if model_file.load(arguments[1]).attention then
        local plans = transformer_plans(arguments[1], options)
        transformer.run(plans[#plans], options)
        return 0
    end
    if request.is_integer(options) then
        integer.run(arguments[1], options)
        return 0
    end
    local sets = commands.runnable(options.isa, types_of(options))
    local b = build(arguments[1], { sets[#sets] }, options, 1)
    local kernel = require "kernel"
    local result = assert(
        kernel.run(
            compile.describe(b.plan, b.plan.variants[1], b.library),
            b.files.output,
            options.input,
            options.output
        )
    )
    host.print(string.format("wrote %s, %d tokens, %s", options.output, result.tokens, sets[#sets].name))
    return 0
end

-- Numbers of tokens around which calls change: where a regime begins and ends, and where one more thread gets a range.
local function turning_points(v, regime, threads)
    local few = regime == "few"
    local kernels = few and v.few or v
    local first, last = few and 1 or (v.few and v.few.threshold or 0) + 1, few and v.few.threshold or math.maxinteger
    local wanted = { first, first + kernels.tile, few and last or first }
    for _, ranges in ipairs(threads > 1 and kernels.split and { 2, threads } or {}) do
        local at = math.max(first + 1, ranges * kernels.split.min)
        table.move({ at - 1, at, at + 1, at + kernels.split.tile }, 1, 4, #wanted + 1, wanted)
    end
    local list, seen = {}, {}
    for _, count in ipairs(wanted) do
        if count <= last and not seen[count] then list[#list + 1] = count end
        seen[count] = true
    end
    return list
end

-- What kernels of plan `p` with the weights `files` are compared with: made once, kept in `files` and shared by all
-- schedules of the model.
function commands.reference_of(p, files, seed)
    local known = files.reference
    if not known or known.seed ~= seed then
        known = {
            seed = seed,
            answers = assert(require "verify".reference {
                model = lookup.reference_model(p),
                weights = files.weights,
                prefix = files.prefix,
                blocks_in_out = files.blocks_in_out or false,
                blob = files.output,
                tables = p.tables.name,
                projection = p.projection.name,
                seed = seed,
            }),
        }
        files.reference = known
    end
    return known.answers
end

-- Checks every kernel of plan `p`, compiled for up to `threads` threads (one, if absent), against the reference, and
-- its error against the model's budget. Other schedules of the same model may follow with the same `files`. Of
-- `options`, if any: `only`, the one regime to check; `work`, the multiplications that one call is worth; `bind_known`,
-- when a bind that differs in its name only was checked before. Returns a list of results, each with `isa` and
-- `regime`; the first has the check of bind.
function commands.check_variants(p, library, files, seed, threads, options)
    threads, options = threads or 1, options or {}
    local verify, results, reference = require "verify", {}, commands.reference_of(p, files, seed)
    for _, v in ipairs(p.variants) do
        for _, regime in ipairs(options.only and { options.only } or v.few and { "many", "few" } or { "many" }) do
            local variant = compile.describe(p, v, library, regime, threads)
            variant.ffn = regime == "few" and v.few.names.ffn or v.names.many
            local result = assert(verify.check {
                variant = variant,
                reference = reference,
                counts = turning_points(v, regime, threads),
                work = options.work,
                bind_known = options.bind_known or #results > 0,
                timeout = 60 + p.shape.slots // 256 + (p.packed_bytes >> 22),
            })
            result.isa, result.regime, result.tables, result.projection =
                v.isa.name, regime, p.tables.name, p.projection.name
            local budget = p.model.budget
            if budget and result.rel_err then
                local within = result.rel_err <= budget -- NaN is not
                result.ok = result.ok and within
                result.checks[#result.checks + 1] = {
                    name = "budget",
                    ok = within,
                    detail = string.format(
                        "relative error %.2g of y with projection in %s and tables in %s, the budget is %g",
                        result.rel_err,
                        p.projection.name,
                        p.tables.name,
                        budget
                    ),
                }
            end
            results[#results + 1] = result
        end
    end
    return results
end

function commands.verify(arguments, options)
    local threads = commands.threads_of(options)
    if model_file.load(arguments[1]).attention then
        if threads > 1 then
            error(string.format("--threads: %d: is for a LookupFFN, not for a transformer", threads), 0)
        end
        local plans, none = transformer_plans(arguments[1], options)
        return transformer.verify(plans, options, none)
    end
    if request.is_integer(options) then
        if threads > 1 then error(string.format("--threads: %d: is for float arithmetic", threads), 0) end
        return integer.verify(arguments[1], options)
    end
    local sets, skipped = commands.runnable(options.isa, types_of(options))
    local b = build(arguments[1], sets, options, threads)
    local p = b.plan
    local results, ok = commands.check_variants(p, b.library, b.files, options.seed, threads), true
    for _, result in ipairs(results) do
        ok = ok and result.ok
    end
    if options.json then
        host.print(assert(json.encode {
            model = p.model.name,
            ok = ok,
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
        for _, check in ipairs(result.checks) do
            if not check.ok then
                host.note(
                    string.format("lookupc verify: %s %s: %s: %s", result.isa, result.regime, check.name, check.detail)
                )
            end
        end
    end
    for _, name in ipairs(skipped) do
        host.print("skipped: " .. name .. ": this CPU or its operating system does not run it")
    end
    return ok and 0 or 1
end

-- The options of each build that bench measures: all combinations of those that are lists.
local function combinations(options)
    local list = {}
    local projections, tables = dtype.select(options.projection, "projection"), dtype.select(options.tables, "tables")
    for _, projection in ipairs(projections) do
        for _, name in ipairs(tables) do
            for tuned in ((options.tuned or "default") .. ","):gmatch("([^,]*),") do
                list[#list + 1] = {
                    projection = projection,
                    tables = name,
                    named = options.tuned and tuned or nil,
                    tuned = tuned ~= "default" and tuned or nil,
                }
                for key, value in pairs(options) do
                    if key ~= "tuned" and list[#list][key] == nil then list[#list][key] = value end
                end
            end
        end
    end
    return list
end

-- A build, and in `checked` the results of its verification by instruction set and regime; raises one line for a wrong
-- kernel.
local function verified_build(path, options, threads, files)
    local sets = commands.runnable(options.isa, types_of(options))
    if not options.isa then sets = { sets[#sets] } end
    local b = build(path, sets, options, threads, files)
    b.checked, b.tuned = {}, options.named
    for _, result in ipairs(commands.check_variants(b.plan, b.library, b.files, options.seed, threads)) do
        for _, check in ipairs(result.checks) do
            if not check.ok then
                error(
                    string.format(
                        "%s: the %s kernels for %s tokens fail verification: %s: %s: nothing was timed",
                        path,
                        result.isa,
                        result.regime,
                        check.name,
                        check.detail
                    ),
                    0
                )
            end
        end
        b.checked[result.isa .. "_" .. result.regime] = result
    end
    return b
end

-- The blocks of a transformer with weights of each type that is asked for, on the best instruction set or on those that
-- are asked for.
local function bench_transformer(m, path, options)
    local types = dtype.select(options.type or "f32", "type")
    options.position = options.position or 0
    options.batches = bench.batches(
        options.batch
            or "1"
                .. (
                    m.attention.context > options.position + 1
                        and "," .. math.min(512, m.attention.context - options.position)
                    or ""
                )
    )
    return require("harness.families.transformer.bench").run(path, types, function(type)
        local sets = commands.runnable(options.isa, commands.transformer_types { type = type, cache = options.cache })
        return options.isa and sets or { sets[#sets] }
    end, options)
end

function commands.bench(arguments, options)
    bench.check_repetitions(options.repetitions)
    local m = model_file.load(arguments[1])
    request.check_options(m, options)
    if m.attention then
        if options.html or options.threads > 1 then
            error((options.html and "--html" or "--threads") .. ": is for a LookupFFN, not for a transformer", 0)
        end
        return bench_transformer(m, arguments[1], options)
    end
    options.batches = bench.batches(options.batch or "1,8,64,512,4096")
    if request.is_integer(options) then
        if options.html or options.threads > 1 then
            error((options.html and "--html" or "--threads") .. ": is for float arithmetic", 0)
        end
        return integer.bench(arguments[1], options)
    end
    options.tables, options.projection = options.tables or "f32", options.projection or "f32"
    if options.html then file_rules.can_become("--html", options.html) end
    local threads = commands.threads_of(options)
    local builds, packed = {}, {}
    for i, choice in ipairs(combinations(options)) do
        local types = choice.projection .. " " .. choice.tables
        builds[i] = verified_build(arguments[1], choice, threads, packed[types])
        builds[i].number, packed[types] = i, builds[i].files
    end
    return bench.run(builds, options)
end

return commands
