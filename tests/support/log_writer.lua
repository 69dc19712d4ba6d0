-- Not a test: appends records to the log in LOG until it is killed (tests/tune/record_test.lua).
local log = require "harness.tune.log"
local process = require "process"
local records = require "tests.support.records"

local function forever()
    for i = 1, math.maxinteger do
        local samples = {}
        for j = 1, 500 do
            samples[j] = i + j / 1000
        end
        log.append(process.variable "LOG", records.make { samples_us = samples, time = i })
    end
end

return { appends_until_it_is_killed = forever }
