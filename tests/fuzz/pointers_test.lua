-- No kernel of random models forms a pointer beyond its buffer, and one that does is found.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local plans = require "tests.fuzz.plans"
local pointers = require "tests.fuzz.pointers"
local process = require "process"
local transformers = require "tests.fuzz.transformers"

local test = {}

function test.no_pointer_leaves_its_buffer()
    local directory, first = process.temporary_directory(), effort.seed
    local failures = {}
    for index = first, first + effort.bundles - 1 do
        for _, row in ipairs(plans.of(index, pointers.set)) do
            local wrong = pointers.wrong(row.plan, directory)
            if wrong then failures[#failures + 1] = string.format("%s %d: %s", row.name, index, wrong) end
        end
    end
    host.print(string.format("pointers: models %d to %d", first, first + effort.bundles - 1))
    if #failures > 0 then error(table.concat(failures, "\n"), 0) end
end

-- One element before the input of a transformer, and back: nothing reads there.
function test.a_pointer_that_leaves_is_found()
    local p = transformers.plan(1, { pointers.set })
    local function change(text) return (text:gsub("cache, x, y, ", "cache, x - 1 + 1, y, ")) end
    check.matches(pointers.wrong(p, process.temporary_directory(), change), "outside of the region")
end

return test
