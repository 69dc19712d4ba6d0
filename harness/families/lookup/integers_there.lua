-- Calls integer kernels on a device (harness/device/device.lua), all in one program. Outputs are fetched: they are the
-- reference's, to the bit, or wrong.
--
--   integers_there.called(job, x, device) -> as called(job, x) of harness/verify/integer.lua
local integer = require "harness.verify.integer"
local integer_reference = require "integer_reference"
local setting = require "harness.measure.setting"

local integers_there = {}

function integers_there.called(job, x, device)
    local own = setting.complete { model = job.library, seed = 1, repetitions = 1, checks = {} }
    local tokens = #x // (2 * job.d)
    local words = tokens * job.slots
    own.libraries[1] = setting.library("kernels", job)
    own.memory = {
        setting.linked("x", x),
        { name = "codes", bytes = 8 * words },
        { name = "y", bytes = 4 * tokens * job.d_out },
        { name = "scratch", bytes = job.scratch_bytes },
    }
    local function check(y, rows, width)
        own.checks[#own.checks + 1] = { name = y, y = y, tokens = rows, width = width, steps = {} }
        return function(symbol, ...)
            local step = { library = "kernels", ["function"] = symbol, arguments = { "weights", ... } }
            table.insert(own.checks[#own.checks].steps, step)
        end
    end
    local function at(memory, bytes) return { memory = memory, at = bytes } end
    local call = check("codes", 2 * tokens, job.slots)
    for token = 0, tokens - 1 do
        local row = 4 * job.slots * token
        call(job.project, at("x", 2 * job.d * token), at("codes", row), at("codes", 4 * words + row), "scratch")
    end
    call = check("y", tokens, job.d_out)
    call(job.ffn, "x", "y", tokens, "scratch")
    call = check("y", integer_reference.special, job.d_out)
    for token = 0, integer_reference.special - 1 do
        call(job.ffn, at("x", 2 * job.d * token), at("y", 4 * job.d_out * token), 1, "scratch")
    end
    for _, found in ipairs(device:check(own)) do
        if found.failure then return nil, found.failure end
    end
    local outputs, why = device:outputs(own, { 1, 2, 3 })
    if not outputs then return nil, why end
    local codes, y, alone = table.unpack(outputs)
    for token = 0, integer_reference.special - 1 do
        local first, last = 4 * job.d_out * token + 1, 4 * job.d_out * (token + 1)
        if y:sub(first, last) ~= alone:sub(first, last) then return nil, integer.differs:format(job.ffn, token) end
    end
    return codes .. y
end

return integers_there
