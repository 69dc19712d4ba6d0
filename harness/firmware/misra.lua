-- What cppcheck's addon for MISRA C:2012 reports about a bundle, and why each kind of report stands.
local process = require "process"
local compilers = require "harness.base.compilers"

local misra = {}

local unexplained = "not examined"
local reasons = {
    ["2.2"] = "constants that compilers must not see through, so that no loop becomes a call of memcpy",
    ["2.5"] = "the header names sizes that only some callers need",
    ["8.7"] = "the function is declared in the header that all kernels share",
    ["8.14"] = "restrict lets the compiler keep sums in registers; every use says what may not overlap",
    ["8.9"] = "a constant table stands before the function that reads it",
    ["10.1"] = "shifts of signed integers to the right, which every compiler that is tested carries the sign through",
    ["10.3"] = "counters of size_t begin with a plain 0",
    ["10.4"] = "indices are size_t, constants plain integers that are not negative",
    ["10.6"] = "bounds of bytes, which fit into an int, are kept in 32 bits",
    ["10.8"] = "a product of small integers widened on purpose",
    ["11.4"] = "the alignment of memory that a caller gives is checked as an integer",
    ["11.5"] = "parts of the weights and of scratch have their types by offset; alignment is checked, or required of \z
        the caller",
    ["11.8"] = "no qualifier is lost: the addon takes the element for the pointer",
    ["11.9"] = "pointers that are not needed are set to a plain 0",
    ["12.1"] = "products before sums, as in arithmetic",
    ["12.3"] = "declarations of several variables, not the operator",
    ["14.2"] = "a loop's condition looks at what its body changes",
    ["14.4"] = "conditions are integers or pointers that are not null",
    ["15.5"] = "checks return at once",
    ["15.6"] = "loops and branches of one statement have no braces",
    ["15.7"] = "where neither branch is taken nothing is to be done",
    ["17.8"] = "pointers that are parameters step through their arrays",
    ["18.4"] = "places in buffers are pointers plus offsets",
    ["19.2"] = "a union gives the bits of a float, which C99 defines",
    ["20.10"] = "names of the test's macros",
    ["21.1"] = "macros begin with the model's name",
}

-- { version, rules = { {rule, count, first, reason} } }, by number of reports; nil where cppcheck is missing. `folder`
-- holds the bundle, `sources` are paths in it.
function misra.report(folder, sources)
    if not process.run({ "sh", "-c", "command -v cppcheck" }, {}).output:find("%S") then return nil end
    local arguments = {
        "cppcheck",
        "--addon=misra",
        "--std=c99",
        "--quiet",
        "-DINT_MAX=2147483647", -- of <limits.h>, which it does not read
        "--max-configs=12", -- as without -D
        "--template={file}:{line}: {id}",
        "-I" .. folder .. "/inc",
    }
    for _, source in ipairs(sources) do
        if source:find("%.c$") and not source:find("_weights%.c$") then
            arguments[#arguments + 1] = folder .. "/" .. source
        end
    end
    local result = assert(process.run(arguments, { timeout = compilers.timeout, env = compilers.environment() }))
    local failure = compilers.failure(arguments, result)
    if failure then error(failure, 0) end
    local by_rule, rules, seen = {}, {}, {}
    for line in result.output:gmatch("[^\n]+") do
        local path, number, rule = line:match("([%w_./-]+):(%d+): misra%-c2012%-([%d.]+)")
        if rule and not seen[line] then
            seen[line] = true
            if not by_rule[rule] then
                by_rule[rule] = {
                    rule = rule,
                    count = 0,
                    first = path:sub(#folder + 2) .. ":" .. number,
                    reason = reasons[rule] or unexplained,
                }
                rules[#rules + 1] = by_rule[rule]
            end
            by_rule[rule].count = by_rule[rule].count + 1
        end
    end
    table.sort(rules, function(a, b) return a.count > b.count or a.count == b.count and a.rule < b.rule end)
    return { version = compilers.version "cppcheck", rules = rules }
end

return misra
