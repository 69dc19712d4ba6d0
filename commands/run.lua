-- The commands that compile and run emitted C on this CPU: run, verify, bench, tokenize; the family does the work.
local bench_there = require "commands.bench_there"
local bench_report = require "harness.report.bench_report"
local compile = require "harness.base.compile"
local device = require "harness.device.device"
local expect = require "commands.expect"
local families = require "gen.families.list"
local file_rules = require "commands.file_rules"
local harness = require "harness.families.list"
local host = require "host"
local json = require "json"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local own_mlp = require "harness.families.own_mlp"
local process = require "process"
local raw = require "harness.measure.raw"
local request = require "gen.request.request"
local setting = require "harness.measure.setting"

local commands = {}

-- What the harness knows of the family that the options mean, and the model; raises one line for options that do not
-- fit.
local function family_of(path, options)
    local m, family = request.model(path, options)
    return harness.get(family.name), m
end

function commands.run(arguments, options)
    local path = arguments[1]
    local family, m = family_of(path, options)
    local wanted = family.run_option or "input"
    for _, name in ipairs { "input", "ids" } do
        if name ~= wanted and options[name] then
            misuse(string.format("--%s: %s: %s takes --%s instead", name, options[name], path, wanted))
        end
    end
    if not options[wanted] then return nil, wanted end
    if options.output then
        local inputs = { path, options.input or options.ids, options.tuned, options.expect }
        file_rules.not_over("--output", options.output, inputs)
        assert(host.check_output(options.output))
    end
    local tolerance = expect.tolerance(options)
    local output = options.output or process.temporary_directory() .. "/y.npy"
    -- Families call it as soon as they know the result's shape, before they pack and compile.
    local function check_expected(rows, columns) expect.check(options, rows, columns) end
    local words =
        family.run(path, setmetatable({ output = output, check_expected = check_expected }, { __index = options }))
    if options.output then host.print(string.format("wrote %s, %s", output, words)) end
    return options.expect and expect.compare(output, m, family.not_in_checkpoints, tolerance, options) or 0
end

function commands.verify(arguments, options)
    local path = arguments[1]
    options.device = options.runner and device.open(options) or nil
    return family_of(path, options).verify(path, options)
end

-- What is timed of each model file: { path, family, options }, all known before the first one is timed. All families
-- have a page. Where emitted code has no OpenMP build, so many callers as --threads says call at a time:
-- options.callers, else 1.
local function bench_requests(paths, options)
    local list, threads = {}, compile.threads_of(options)
    for i, path in ipairs(paths) do
        local own = setmetatable({ threads = 1, callers = threads, html = false }, { __index = options })
        local m, of = request.model(path, own)
        if families.takes(of, "threads", own) then
            own.threads, own.callers = threads, 1
        end
        local family = harness.get(of.name)
        own.own_mlp = own_mlp.of
        own.batches = setting.batches(options.batch or family.bench_batches(m, options))
        list[i] = { path = path, family = family, options = own }
    end
    return list
end

function commands.bench(arguments, options)
    setting.check_repetitions(options.repetitions)
    if options.weights and #arguments > 1 then
        misuse(string.format("--weights: %s: is of one model, not of %d", options.weights, #arguments))
    end
    if options.html then
        local sources = { options.tuned, table.unpack(arguments) }
        file_rules.not_over("--html", options.html, sources)
        file_rules.can_become("--html", options.html)
    end
    local requests, reports = bench_requests(arguments, options), {}
    if options.json and options.tuned then file_rules.json_can_hold("--tuned", options.tuned) end
    if options.raw then
        file_rules.not_over("--raw", options.raw, { options.tuned, table.unpack(arguments) })
        file_rules.can_become("--raw", options.raw)
        options.raw_file = raw.new(options.raw)
    end
    if options.runner then
        options.device = device.open(options)
    else
        measure.program()
    end
    for i, of in ipairs(requests) do
        reports[i] = (options.runner and bench_there or of.family.bench)(of.path, of.options)
        if not reports[i] then return 1 end
        if not options.json then host.print((i > 1 and "\n" or "") .. table.concat(reports[i].lines, "\n")) end
    end
    if options.json then host.print(assert(json.encode(bench_report.json(reports)))) end
    if options.html then assert(host.write_file(options.html, bench_report.page(reports))) end
    if options.raw then options.raw_file:write() end
    return 0
end

function commands.tokenize(arguments, options)
    local path = arguments[1]
    local family = family_of(path, options)
    if not family.tokenize then error(path .. ": tokenizer: is missing: only models that have one take text", 0) end
    return family.tokenize(path, { table.unpack(arguments, 2) }, options)
end

return commands
