-- The commands that compile and run emitted C on this CPU: run, verify, bench. The model's family does the work.
local expect = require "commands.expect"
local file_rules = require "commands.file_rules"
local harness = require "harness.families.list"
local host = require "host"
local measure = require "harness.measure.measure"
local process = require "process"
local request = require "gen.bundle.request"
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
            error(string.format("--%s: %s: %s takes --%s instead", name, options[name], path, wanted), 0)
        end
    end
    if not options[wanted] then return nil, wanted end
    if options.output then
        local inputs = { path, options.weights, options.input or options.ids, options.tuned, options.expect }
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
    return options.expect and expect.compare(output, m, family.unsaid, tolerance, options) or 0
end

function commands.verify(arguments, options)
    local path = arguments[1]
    local family = family_of(path, options)
    if options.budget and not family.budget then
        local rule = "is for LookupFFNs: of whole models perplexity and similar --score take it"
        error(string.format("--budget: %s: %s", options.budget, rule), 0)
    end
    return family.verify(path, options)
end

function commands.bench(arguments, options)
    setting.check_repetitions(options.repetitions)
    local family, m = family_of(arguments[1], options)
    if options.html then file_rules.can_become("--html", options.html) end
    if options.json and options.tuned then file_rules.json_can_hold("--tuned", options.tuned) end
    if options.weights and not family.bench_weights then
        error("--weights: " .. options.weights .. ": is for whole models: others are timed with random weights", 0)
    end
    options.batches = setting.batches(options.batch or family.bench_batches(m, options))
    measure.program()
    return family.bench(arguments[1], options)
end

function commands.tokenize(arguments, options)
    local path = arguments[1]
    local family = family_of(path, options)
    if not family.tokenize then error(path .. ": tokenizer: is missing: only models that have one take text", 0) end
    return family.tokenize(path, { table.unpack(arguments, 2) }, options)
end

return commands
