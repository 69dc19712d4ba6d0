-- Calls models on a device (harness/device/device.lua), and says how far their outputs are from the reference's
-- answers, as the device's program computes it. Outputs are fetched where ties may explain an error that is too large.
--
--   there.call(sample, list, left) -> whether there was time: calls the models of the list { {plan, library} } in all
--   ways, in one program
--   there.ways(sample, p, library, ways) -> `ways` of verify_blocks.lua or verify_whole.lua to call plan `p`, called
--   there
-- A sample says how: memory_there(list) -> rows of a job; row_there(p, name, way) -> a check of the library `name`:
-- { steps, expected, tokens, width }, of which all outputs are in the memory "y"; a way has fetched(y), these as its
-- compare takes them.
local setting = require "harness.measure.setting"

local there = {}

function there.call(sample, list, left)
    local job = setting.complete { model = list[1].plan.model.name, seed = 1, repetitions = 1, checks = {} }
    job.memory = sample.memory_there(list)
    for i, made in ipairs(list) do
        local p, name = made.plan, "r" .. i
        local of = { library = made.library, blob = sample.blob, bind = p.names.bind }
        of.weights_struct_bytes = p.weights_struct_bytes
        job.libraries[i] = setting.library(name, of)
        for _, way in ipairs(sample.plain_ways(p)) do
            local row = sample.row_there(p, name, way)
            row.name, row.of, row.way = string.format("%s of %s", way.name, name), made.library, way.name
            row.y, row.period = "y", row.tokens
            table.insert(job.checks, row)
        end
    end
    local found = sample.device:check(job, left)
    sample.there = sample.there or {}
    for i, check in ipairs(found and job.checks or {}) do
        local own = sample.there[check.of] or {}
        sample.there[check.of] = own
        own[check.way] = { found = found[i], job = job, number = i, bytes = 8 * check.tokens * check.width }
    end
    return found ~= nil
end

function there.ways(sample, p, library, ways)
    if not (sample.there and sample.there[library]) then
        there.call(sample, { { plan = p, library = library } })
    end
    for _, way in ipairs(ways) do
        local own, compare = sample.there[library][way.name], way.compare
        function way.run()
            if own.found.failure then return nil, own.found.failure end
            return own, nil, 0
        end
        function way.compare(_, answers, most)
            local ties, bytes = 0, 0
            for _, answer in ipairs(answers) do
                ties, bytes = ties + #answer.ties, bytes + #answer.y
            end
            local far = not (own.found.relative <= most)
            local fetched = far and ties > 0 and sample.device:outputs(own.job, { own.number })
            if fetched then return compare(way.fetched(fetched[1]), answers, most) end
            local all = own.bytes == bytes and own.found.all or nil -- else it is of some rows
            return own.found.relative, own.found.absolute, 0, all
        end
        function way.unfused() end
    end
    return ways
end

return there
