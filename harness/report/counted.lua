-- What tables say of results that do not count, because other work shared the core while they were measured.
local statistics = require "harness.base.statistics"

local counted = {}

-- The end of the line of result `r` (`counts`: whether it does).
function counted.mark(r) return r.counts and "" or "  does not count: core shared" end

-- The line below the table of `results`, nil if all of them count.
function counted.note(results)
    local shared = 0
    for _, r in ipairs(results) do
        if not r.counts then shared = shared + 1 end
    end
    if shared == 0 then return nil end
    return string.format(
        "%d of %d lines do not count: CPU time below %.0f %% of wall time, other work shared the core. Measure again \z
            when nothing else runs.",
        shared,
        #results,
        100 * statistics.own_share
    )
end

return counted
