-- What `train --resume` goes on from: where a run was, as a checkpoint or as the text in one; what is accepted can be
-- continued by options with its own settings, and by no others.
local host = require "host"
local learning_rates = require "harness.train.learning_rates"
local rules = require "tests.libfuzzer.rules"
local run = require "harness.train.run"
local schedule = require "harness.train.schedule"
local settings = require "harness.train.settings"

local function use(path, position)
    if not position then return end
    rules.try("--resume", settings.check, path, position.settings, position.settings)
    if pcall(settings.check, path, { batch = {} }, position.settings) then
        error("other settings are taken for those of the run", 0)
    end
    local factor = learning_rates.at(schedule.at(position.settings, position.step + 1, position.share))
    if not (factor >= 0 and factor <= 1) then error("the next step has no rate", 0) end
end

return function(path)
    use(path, (rules.try(path, run.position, path)))
    use(path, (rules.try(path, run.position_in, assert(host.read(path)), path)))
end
