-- Runs test files: each returns a table of functions by name, and a test fails by raising an error.
-- Arguments: the program lookupc, --update to write golden files anew, test files. The environment's LOOKUPC_TEST names
-- one function that runs alone.

local host = require "host"
local check = require "tests.support.check"
local process = require "process"
require "tests.support.frozen_plans"

local only = process.variable "LOOKUPC_TEST"

local function sorted_names(tests)
    local names = {}
    for name in pairs(tests) do
        if not only or name == only then names[#names + 1] = name end
    end
    table.sort(names)
    return names
end

local function run_file(path)
    local tests = require(path:gsub("%.lua$", ""):gsub("/", "."))
    local names = sorted_names(tests)
    local failed = #names == 0
    if failed then host.print("FAILED " .. path .. ": has no tests" .. (only and " of the name " .. only or "")) end
    for _, name in ipairs(names) do
        local start = process.clock()
        local good, message = pcall(tests[name])
        local seconds = process.clock() - start
        local title = path .. ": " .. name:gsub("_", " ")
        if seconds >= 1 then title = string.format("%s (%.1f s)", title, seconds) end
        if good then
            host.print("ok     " .. title)
        else
            failed = true
            host.print("FAILED " .. title .. "\n       " .. tostring(message):gsub("\n", "\n       "))
        end
    end
    return failed
end

return function(arguments)
    check.lookupc = arguments[1]
    collectgarbage("incremental", 400) -- plans and texts do not live long, and memory is there
    local status = 0
    for i = 2, #arguments do
        if arguments[i] == "--update" then
            check.update = true
        elseif run_file(arguments[i]) then
            status = 1
        end
    end
    return status
end
