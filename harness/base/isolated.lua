-- Calls of compiled code in a process of their own, which may crash.
--
--   isolated(library, work) -> the two strings that the function `work` returns, the second may be nil | nil, message:
--   what it raised, or what ended the process.
local process = require "process"

local seconds = 600
local form = "Bs8s8" -- how many strings, not 0, and they

return function(library, work)
    local good, text, message = pcall(process.isolated, function()
        local first, second = work()
        return form:pack(second and 2 or 1, first, second or "")
    end, seconds)
    if not good then return nil, text end
    if not text then return nil, library .. ": " .. message:gsub("^crashed: ", "") end
    local count, first, second = form:unpack(text)
    return first, count == 2 and second or nil
end
