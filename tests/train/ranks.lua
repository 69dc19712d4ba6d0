-- What each process of tests/train/ranks_test.sh does: 50 steps with its share of 12 sequences, and 50 with rounded
-- tables and lazy Adam. BIGRAM names the file of the losses and of the uses of rows, which rank 0 writes, and of the
-- weights.
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
            if step == 50 then state:uses() end
            losses[#losses + 1] = string.format("%.9g %.9g", state:step(step, 0.01, 0.04))
        end
        losses[#losses + 1] = string.format("%.9g %d", state:validate(1000))
        -- The uses of rows are of the tokens of all ranks, also where a run is resumed.
        state:gather_uses()
        local saved = path .. ".saved"
        if number == 0 then assert(state:save(saved, "")) end
        train.together(0)
        assert(state:load(saved))
        state:step(51, 0.01, 0.04)
        local uses = state:uses()[2]
        losses[#losses + 1] = string.format("%d %.9g", uses[1][1], uses[1][2])
        -- all ranks have the same weights
        assert(state:export(path .. "." .. number .. (adam and ".adam" or "")))
    end
    if number == 0 then assert(host.write_file(path, table.concat(losses, "\n") .. "\n")) end
    train.leave()
end

return test
