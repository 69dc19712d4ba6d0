-- What each process of tests/train/ranks_test.sh does: 50 steps with its share of 12 sequences, and 50 with rounded
-- tables and lazy Adam. BIGRAM names the file of the losses, which rank 0 writes, and of the weights.
local bigram = require "tests.train.bigram"
local host = require "host"
local process = require "process"
local train = require "train"

local test = {}

function test.trains()
    local number, count = 0, 1
    if process.variable "LOOKUPC_MPI" then
        number, count = assert(train.join(process.variable "LOOKUPC_MPI"))
    end
    local losses, path = {}, process.variable "BIGRAM"
    for _, adam in ipairs { false, true } do
        local job = bigram.job { batch = 12 // count, threads = 2, adam = adam }
        job.tensors[2].rounding = adam and { type = "i8", row = bigram.vocab, steps = {} } or nil
        local state = assert(train.open(job))
        state:initialise()
        for step = 1, 50 do
            losses[#losses + 1] = string.format("%.9g %.9g", state:step(step, 0.01, 0.04))
        end
        losses[#losses + 1] = string.format("%.9g %d", state:validate(1000))
        -- all ranks have the same weights
        assert(state:export(path .. "." .. number .. (adam and ".adam" or "")))
    end
    if number == 0 then assert(host.write_file(path, table.concat(losses, "\n") .. "\n")) end
    train.leave()
end

return test
