-- Compiles LookupFFNs for this CPU and runs them: for the commands run, verify and bench.
local bench = require "harness.families.lookup.bench"
local budget = require "harness.verify.budget"
local columns = require "harness.report.columns"
local combinations = require "harness.measure.combinations"
local compile = require "harness.base.compile"
local compiled = require "compiled"
local family = require "gen.families.lookup.family"
local host = require "host"
local input = require "harness.verify.input"
local integer = require "harness.families.lookup.integer"
local integer_types = require "gen.families.lookup.integer.types"
local isa = require "gen.isa.list"
local json = require "json"
local npy = require "npy"
local packed = require "harness.families.lookup.packed"
local process = require "process"
local request = require "gen.request.request"
local rivals = require "harness.measure.rivals"
local runnable = require "harness.base.runnable"
local verify = require "harness.families.lookup.verify"

local execute = {}

-- By arithmetic: the instruction sets it is for, nil: all that there are; what bench says of the option --projection
-- (harness/measure/combinations.lua); and the default types of projection and tables.
local arithmetics = {
    float = { projection_type = combinations.types "projection", projection = "f32", tables = "f32" },
    integer = {
        isas = { "scalar" },
        projection_type = function(word) return integer_types.projection(word).name end,
        projection = "i16",
        tables = "i8",
    },
}
local function arithmetic_of(options) return arithmetics[options.arithmetic or "float"] end

-- The best of the instruction sets that this CPU can run, or all that --isa names, as a list.
local function sets_of(options)
    local sets = runnable.sets(options.isa, family.isa_types(options), arithmetic_of(options).isas)
    return options.isa and sets or { sets[#sets] }
end

-- A plan that can run here: { plan, threads, files, library }; its kernels are for the instruction sets `sets`. `files`
-- are packed weights of its types, if there are any yet.
local function build(path, sets, options, threads, files)
    local p = runnable.plan(path, sets, options)
    local directory = process.temporary_directory()
    files = files or packed.make(p, directory, options)
    local flags, kind = compile.threaded(p, options.cflags, threads), options.device and options.device.link_options
    return {
        plan = p,
        threads = threads,
        files = files,
        library = compile.library({ p }, directory, options.cc, flags, kind),
    }
end

-- Applies the build `b` to the file `x`. Returns the number of tokens.
local function run_floats(b, x, y)
    local v = compile.describe(b.plan, b.plan.variants[1], b.library, nil, b.threads)
    local model = assert(compiled.open(setmetatable({ blob = b.files.output, stays = true }, { __index = v })))
    local given = assert(npy.read(x, v.d))
    local tokens = #given // (4 * v.d)
    local made, scratch = compiled.memory(4 * tokens * v.d_out), compiled.memory(v.scratch_bytes)
    model:call(v.ffn, model, given, made, tokens, scratch)
    assert(npy.write(y, v.d_out, made:read()))
    return tokens
end

function execute.run(path, options)
    local sets = sets_of(options)
    local m = request.model(path, options)
    options.check_expected(input.check(options.input, m.d), m.d_out)
    local b = build(path, { sets[#sets] }, options, compile.threads_of(options))
    local run = b.plan.exact and integer.run or run_floats
    return string.format("%d tokens, %s", run(b, options.input, options.output), sets[#sets].name)
end

local function number(form, value) return value and form:format(value) end

-- The columns of what verify prints; the first has the model's name for a head.
local verified = {
    { "", -6, function(r) return r.regime end },
    { "", -8, function(r) return r.ok and "ok" or "FAILED" end },
    { "projection", -10, function(r) return r.projection end },
    { "tables", -6, function(r) return r.tables end },
    { "tokens", 7, function(r) return number("%d", r.tokens or 0) end },
    { "rel error", 9, function(r) return number("%.1e", r.rel_err or r.device and r.kernel_rel_err or 0) end },
    { "max error", 9, function(r) return number("%.1e", r.max_abs_err or 0) end },
    { "codes", 7, function(r) return not r.device and number("%d", r.codes or 0) end },
    { "flips", 6, function(r) return not r.device and number("%d", r.code_flips or 0) end },
    { "with flips", 10, function(r) return number("%.1e", r.rel_err_flips) end }, -- of integers
}

-- Prints the results of a model's verification, and on standard error what is wrong.
local function print_results(name, results, skipped)
    local shown = { { name, -8, function(r) return r.isa end } }
    table.move(columns.said(verified, results), 1, #verified, 2, shown)
    local function line_of(cell)
        local cells = {}
        for i, column in ipairs(shown) do
            cells[i] = string.format("%" .. column[2] .. "s", cell(column))
        end
        return table.concat(cells, " ")
    end
    host.print(line_of(function(column) return column[1] end))
    for _, r in ipairs(results) do
        host.print(line_of(function(column) return column[3](r) end))
        for _, row in ipairs(r.checks) do
            local which = r.isa .. (r.regime and " " .. r.regime or "")
            if not row.ok then host.note(string.format("lookupc verify: %s: %s: %s", which, row.name, row.detail)) end
        end
    end
    for _, set in ipairs(skipped) do
        host.print("skipped: " .. set .. ": this CPU or its operating system does not run it")
    end
end

function execute.verify(path, options)
    local limits = budget.of(request.model(path, options), options.budget)
    local threads, names = compile.threads_of(options), arithmetic_of(options).isas or isa.names
    local sets, skipped = runnable.sets(options.isa, family.isa_types(options), names)
    local b = build(path, sets, options, threads)
    local p = b.plan
    local how = { budget = limits, device = options.device }
    local results, ok = verify.variants(p, b.library, b.files, options.seed, threads, how), true
    for _, result in ipairs(results) do
        ok = ok and result.ok
    end
    if not options.json then
        print_results(p.model.name, results, skipped)
        return ok and 0 or 1
    end
    host.print(assert(json.encode {
        model = p.model.name,
        arithmetic = p.options.arithmetic,
        ok = ok,
        budget = next(limits) and limits,
        seed = options.seed,
        threads = threads,
        results = json.array(results),
        skipped = json.array(skipped),
    }))
    return ok and 0 or 1
end

-- A build, and in `checked` the results of its verification by instruction set and regime; raises one line for a wrong
-- kernel.
local function verified_build(path, options, threads, files)
    local b = build(path, sets_of(options), options, threads, files)
    b.checked, b.tuned = {}, options.named
    local how = { device = options.device }
    for _, result in ipairs(verify.variants(b.plan, b.library, b.files, options.seed, threads, how)) do
        b.checked[result.isa .. "_" .. (result.regime or "all")] = result
        for _, row in ipairs(result.checks) do
            if not row.ok then
                local regime = result.regime and " for " .. result.regime .. " tokens" or ""
                local form = "%s: the %s kernels%s fail verification: %s: %s: nothing was timed"
                error(form:format(path, result.isa, regime, row.name, row.detail), 0)
            end
        end
    end
    return b
end

function execute.bench(path, options)
    local threads, own = compile.threads_of(options), arithmetic_of(options)
    local kinds, builds, files = rivals.select(options.rivals or "same,f32"), {}, {}
    local rows = {
        { "projection", own.projection_type, own.projection },
        { "tables", combinations.types "tables", own.tables },
        combinations.tuned(options),
    }
    for i, choice in ipairs(combinations.combined(options, rows)) do
        local types = choice.projection .. " " .. choice.tables
        builds[i] = verified_build(path, choice, threads, files[types])
        builds[i].number, files[types] = i, builds[i].files
    end
    return bench.run(builds, kinds, options)
end

return execute
