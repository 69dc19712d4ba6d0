-- What narrow types cost a model in its own metric, beside the same weights in float32: --budget of text commands.
local copied = require "gen.schema.copied"
local host = require "host"
local misuse = require "gen.schema.misuse"

local loss = {}

-- The number of options.budget, nil without it; raises one line for anything else.
function loss.budget(options)
    local number = tonumber(options.budget)
    if options.budget and not (number and number >= 0 and number < math.huge) then
        misuse("--budget: " .. options.budget .. ": must be a number not below 0")
    end
    return number
end

-- The options of the same command with all types in float32, and without choices of a schedule, which are for others.
function loss.in_float32(options)
    local copy = copied(options)
    for _, name in ipairs { "tables", "projection", "type", "cache", "activations", "schedule", "tuned" } do
        copy[name] = nil
    end
    return copy
end

-- Adds to the result `r`, a table for JSON, what it loses: `lost` of the metric that is `exact` in float32, and
-- `budget`. Returns what a line for people says of it.
function loss.judge(r, lost, exact, budget)
    r.ok, r.budget = lost <= budget, budget -- NaN is not
    r.loss, r.float32 = lost == lost and lost or nil, exact == exact and exact or nil
    return string.format("; %.4f in float32, loss %.4f", exact, lost)
end

-- The exit status of the command with the result `r`; says so where a budget is exceeded. `what`: the metric in words.
function loss.status(r, what)
    if r.ok ~= false then return 0 end
    local lost = r.loss and string.format("%.4g", r.loss) or "nan"
    host.note(string.format("lookupc: --budget: %s lose %s against float32, the budget is %g", what, lost, r.budget))
    return 1
end

return loss
