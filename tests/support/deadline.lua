-- Not a test: what process.deadline ends (tests/unit/process_test.lua).
local process = require "process"

local function is_ended()
    process.temporary_directory()
    process.deadline(0.2, "too late\n")
    while true do
    end
end

local function is_called_off()
    process.deadline(0.1, "too late\n")
    process.deadline()
    process.run { "sleep", "0.3" }
end

return { is_ended = is_ended, is_called_off = is_called_off }
