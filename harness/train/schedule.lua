-- How far a run is: by its steps or, where it was given a time, by that, whatever its steps take. Rates, signs,
-- validations and lines of the log follow from it.
local schedule = {}

local share_of_time = 0.95 -- of the time that was given: the rest is for the last validation and the weights
local parts = 1000 -- of a time, in place of steps
local validations = 20 -- of a run
local lines = 500 -- of the log, about

-- The share of the run of `settings` that is over behind step `step`, which took `took` of its `seconds`. Half a step
-- is added: a run ends at the step that is nearest to the end of its time.
function schedule.reached(settings, step, seconds, took)
    if settings.steps then return step / settings.steps end
    return math.min(1.0, (seconds + took / 2) / (share_of_time * settings.time))
end

-- Where step `step` is, and of how many: steps, or parts of a time of which the share `reached` is over.
function schedule.at(settings, step, reached)
    if settings.steps then return step, settings.steps end
    return math.max(1, parts * reached), parts
end

-- Whether one of `count` equal parts of a run ends between two shares of it.
local function ends(count, before, now) return count * now // 1 > count * before // 1 end

-- Whether step `step`, from the share `before` to `now` of the run, ends with a validation, and with a line of the log.
function schedule.due(settings, step, before, now)
    local s = settings
    local evaluate = s.evaluate or s.steps and math.max(1, math.ceil(s.steps / validations))
    local validates = now >= 1
    if evaluate then
        validates = validates or step % evaluate == 0
    else
        validates = validates or ends(validations, before, now)
    end
    if s.steps then return validates, validates or step % math.max(1, s.steps // lines) == 0 end
    return validates, validates or ends(lines, before, now)
end

-- How many steps the run of `settings` has, in words: as far as can be said behind step `step`, at the share `reached`.
function schedule.total(settings, step, reached, form)
    if settings.steps or reached >= 1 then return form(settings.steps or step) end
    return "about " .. form(math.ceil(step / math.max(reached, 1e-6)))
end

return schedule
