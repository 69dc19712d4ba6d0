-- From a model file and the options of a command to the plan: --schedule or --tuned, --tables and --projection.
local host = require "host"
local model_file = require "gen.model"
local plan = require "gen.plan"
local schedule = require "gen.schedule"
local tuned = require "gen.tuned"

local request = {}

-- The plan of the model file `path` for the instruction sets `isas`. Raises one line for options that do not fit the model; says on
-- standard error what a tuned file leaves open. `here` describes this CPU (see tuned.level), for commands that run on it.
function request.plan(path, isas, options, here)
    if options.schedule and options.tuned then error("--tuned: " .. options.tuned .. ": cannot be given beside --schedule", 0) end
    local m = model_file.load(path)
    if not options.tuned then
        return plan.build(m, isas, options.schedule and schedule.for_all(isas, schedule.parse(options.schedule)), options.tables, options.projection)
    end
    local data, context = tuned.load(options.tuned)
    local wanted, notes = tuned.choices(data, context, plan.build(m, isas, nil, options.tables, options.projection))
    if here then notes[#notes + 1] = tuned.cpu_note(data, context, here) end
    for _, note in ipairs(notes) do host.note("lookupc: " .. note) end
    return plan.build(m, isas, wanted, options.tables, options.projection)
end

return request
