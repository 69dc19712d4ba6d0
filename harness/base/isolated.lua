-- Calls of compiled code in a process of their own, which may crash.
--
--   isolated(library, work) -> what the function `work` returns: a string, another one or nil, and an integer, 0 where
--   it returns none | nil, message: what it raised, or what ended the process.
local process = require "process"

local seconds = 600
local form = "Bs8s8j" -- whether there is a second string, both, and the integer

return function(library, work)
    local good, text, message = pcall(process.isolated, function()
        local first, second, number = work()
        return form:pack(second and 1 or 0, first, second or "", number or 0)
    end, seconds)
    if not good then return nil, text end
    if not text then return nil, library .. ": " .. message:gsub("^crashed: ", "") end
    local has_second, first, second, number = form:unpack(text)
    return first, has_second == 1 and second or nil, number
end
