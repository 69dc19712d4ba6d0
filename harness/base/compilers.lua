-- Runs compilers, and other tools of the system that make or look at their files.
local cpus = require "harness.base.cpus"
local process = require "process"

local compilers = {}

-- The words of flags given as one text.
function compilers.words(text)
    local list = {}
    for word in text:gmatch("%S+") do
        list[#list + 1] = word
    end
    return list
end

compilers.timeout = 300 -- seconds

local temporary -- of compilers

-- What compilers are started with: not what is preloaded into this program, and with a folder for their own temporary
-- files that goes when this program's does: a compiler that is killed removes none.
function compilers.environment()
    temporary = temporary or process.temporary_directory()
    return { LD_PRELOAD = "", TMPDIR = temporary }
end

-- What went wrong with a program that ended with `result`, in one line; nil: nothing.
function compilers.failure(arguments, result, timeout)
    if result.timed_out then
        return string.format("%s: took more than %.0f seconds", arguments[1], timeout or compilers.timeout)
    end
    if result.status == 0 then return nil end
    local first = result.output:match("[^\n]*error[^\n]*") or result.output:match("[^\n]+") or ""
    return string.format("%s: exit status %d: %s", arguments[1], result.status, first)
end

-- What a command prints; raises one line if it fails.
function compilers.call(arguments)
    local result = assert(process.run(arguments, { timeout = compilers.timeout, env = compilers.environment() }))
    local failure = compilers.failure(arguments, result)
    if failure then error(failure, 0) end
    return result.output
end

-- Runs `commands` beside each other. Returns what went wrong with each, in one line, or false.
function compilers.failures(commands, timeout)
    local options = { at_once = math.min(cpus.count(), 64), timeout = timeout, env = compilers.environment() }
    local list = {}
    for i, result in ipairs(assert(process.run_all(commands, options))) do
        list[i] = compilers.failure(commands[i], result, timeout) or false
    end
    return list
end

-- The words of several lists in one, for a command.
function compilers.joined(...)
    local list = {}
    for _, part in ipairs { ... } do
        table.move(part, 1, #part, #list + 1, list)
    end
    return list
end

-- The compiler's own first line of --version.
function compilers.version(cc) return compilers.call { cc, "--version" }:match("[^\n]+") end

return compilers
