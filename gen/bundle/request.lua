-- From a model file and the options of a command to the plan: --schedule or --tuned, --tables and --projection of a
-- LookupFFN, --type and --cache of a transformer.
local dense_ffn_plan = require "gen.families.baseline.plan"
local host = require "host"
local integer_plan = require "gen.families.integer.plan"
local model_file = require "gen.model.file"
local plan = require "gen.families.lookup.plan"
local schedule = require "gen.families.lookup.schedule"
local transformer_plan = require "gen.families.transformer.plan"
local transformer_schedule = require "gen.families.transformer.schedule"
local tuned = require "gen.bundle.tuned_file"

local request = {}

-- Raises one line for an option that is for the other kind of model.
function request.check_options(m, options)
    for _, name in
        ipairs(
            m.attention and { "arithmetic", "baseline", "tables", "projection", "prefix", "blocks-in-out" }
                or { "type", "cache", "decode", "position" }
        )
    do
        if options[name] and options[name] ~= "" then
            error(
                string.format(
                    "--%s: %s: is for a %s",
                    name,
                    tostring(options[name]),
                    m.attention and "LookupFFN, not for a transformer" or "transformer, not for a LookupFFN"
                ),
                0
            )
        end
    end
end

-- Whether the options ask for integer arithmetic; raises one line for an unknown word.
function request.is_integer(options)
    local word = options.arithmetic or "float"
    if word ~= "float" and word ~= "integer" then
        error('--arithmetic: "' .. word .. '": must be float or integer', 0)
    end
    return word == "integer"
end

-- The plan of the model file `path` for the instruction sets `isas`. Raises one line for options that do not fit the
-- model; says on standard error what a tuned file leaves open. `options.firmware`: a row of gen/plan/target.lua. `here`
-- describes this CPU (see tuned.level), for commands that run on it.
function request.plan(path, isas, options, here)
    local m = model_file.load(path)
    request.check_options(m, options)
    if not m.attention and options.baseline then
        for _, name in ipairs { "schedule", "tuned", "tables" } do
            if options[name] then error(string.format("--%s: %s: the dense FFN has none", name, options[name]), 0) end
        end
        return dense_ffn_plan.build(m, isas, request.is_integer(options), options.projection)
    end
    if request.is_integer(options) then
        for _, name in ipairs { "schedule", "tuned" } do
            if options[name] then
                error(string.format("--%s: %s: integer arithmetic has one schedule", name, options[name]), 0)
            end
        end
        return integer_plan.build(m, isas, options.tables, options.projection, options.firmware)
    end
    local function build(wanted)
        if m.attention then
            return transformer_plan.build(m, isas, { type = options.type, cache = options.cache, schedule = wanted })
        end
        return plan.build(
            m,
            isas,
            wanted,
            options.tables,
            options.projection,
            options.firmware and { target = options.firmware } or nil
        )
    end
    if options.schedule and options.tuned then
        error("--tuned: " .. options.tuned .. ": cannot be given beside --schedule", 0)
    end
    if not options.tuned then
        local schedules = m.attention and transformer_schedule or schedule
        return build(options.schedule and schedules.for_all(isas, schedules.parse(options.schedule)))
    end
    local data, context = tuned.load(options.tuned)
    local wanted, notes = tuned.choices(data, context, build(nil))
    if here then notes[#notes + 1] = tuned.cpu_note(data, context, here) end
    for _, note in ipairs(notes) do
        host.note("lookupc: " .. note)
    end
    return build(wanted)
end

return request
