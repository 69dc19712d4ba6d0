-- Assertions for tests written in Lua; an error points at the test's own line.

local host = require "host"

local check = {
    lookupc = nil, -- path of the program, set by tests/support/runner.lua
    update = false, -- write golden files anew, set by tests/support/runner.lua
}

local function show(value)
    if type(value) == "string" then return string.format("%q", value) end
    return tostring(value)
end

-- The first difference between two values as text, or nil.
local function difference(actual, expected, where)
    if type(actual) ~= "table" or type(expected) ~= "table" then
        if actual == expected and math.type(actual) == math.type(expected) then return nil end
        return where .. ": got " .. show(actual) .. ", expected " .. show(expected)
    end
    for key, value in pairs(expected) do
        local found = difference(actual[key], value, where .. "." .. tostring(key))
        if found then return found end
    end
    for key, value in pairs(actual) do
        if expected[key] == nil then
            return where .. "." .. tostring(key) .. ": got " .. show(value) .. ", expected nothing"
        end
    end
    return nil
end

-- Same value; tables by content.
function check.equal(actual, expected)
    local found = difference(actual, expected, "value")
    if found then error(found, 2) end
end

-- Numbers at most tolerance apart.
function check.near(actual, expected, tolerance)
    if not (math.abs(actual - expected) <= tolerance) then
        error(string.format("got %.17g, expected %.17g within %g", actual, expected, tolerance), 2)
    end
end

-- A number that a declared bound covers, and that bound by at most `share`, or less than `grain`, too large.
function check.at_most(actual, bound, share, grain)
    if actual > bound or bound > actual * (1 + share) and bound - actual >= grain then
        error(
            string.format("got %d, expected at most %d and no less than %.0f %% below", actual, bound, 100 * share),
            2
        )
    end
end

-- Text in which a Lua pattern is found.
function check.matches(text, pattern)
    if type(text) ~= "string" or not text:find(pattern) then
        error("got " .. show(text) .. ", expected a match of " .. show(pattern), 2)
    end
end

-- A call that raises an error or returns nil and a message; the message is one line and holds the fragment.
function check.fails_with(fragment, called, ...)
    local good, result, message = pcall(called, ...)
    if not good then message = tostring(result) end
    if good and result ~= nil then
        error("got " .. show(result) .. ", expected a failure with " .. show(fragment), 2)
    end
    if type(message) ~= "string" or message:find("\n") or not message:find(fragment, 1, true) then
        error("got the message " .. show(message) .. ", expected one line with " .. show(fragment), 2)
    end
end

-- The first line in which two texts differ.
local function differing_line(actual, expected)
    local line, next_expected = 0, (expected .. "\n"):gmatch("(.-)\n")
    for text in (actual .. "\n"):gmatch("(.-)\n") do
        line = line + 1
        local wanted = next_expected()
        if text ~= wanted then return line, text, wanted end
    end
    return line + 1, nil, next_expected()
end

-- A text that was once checked by eye and kept in the file tests/golden/<name>; `./build.sh emitted` writes it anew.
function check.golden(name, actual)
    local path = "tests/golden/" .. name
    if check.update then
        assert(host.write_file(path, actual))
        return
    end
    local expected, message = host.read(path)
    if not expected then error(message .. ": ./build.sh emitted writes it", 2) end
    if actual ~= expected then
        local line, got, wanted = differing_line(actual, expected)
        error(string.format("%s:%d: got %s, expected %s", path, line, show(got), show(wanted)), 2)
    end
end

return check
