-- What repeated timings say: medians, paired ratios and how far chance may have moved them.
local statistics = {}

-- Numbers that depend on the seed only: each call of the result draws an integer from 1 to n, at most 2^31.
-- Source: splitmix64 of Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
function statistics.random(seed)
    local state = seed
    return function(n)
        state = state + 0x9e3779b97f4a7c15
        local z = state
        z = (z ~ z >> 30) * 0xbf58476d1ce4e5b9
        z = (z ~ z >> 27) * 0x94d049bb133111eb
        return ((z ~ z >> 31) >> 33) * n // 0x80000000 + 1
    end
end

-- The middle of a list, or the mean of the two in the middle; nil for an empty one. Leaves the list as it is.
function statistics.median(list)
    local sorted = table.move(list, 1, #list, 1, {})
    table.sort(sorted)
    return #sorted > 0 and (sorted[(#sorted + 1) // 2] + sorted[#sorted // 2 + 1]) / 2 or nil
end

-- The value below which the share `part` of a list lies, between two of them where none is there. Leaves the list as it
-- is.
function statistics.quantile(list, part)
    local sorted = table.move(list, 1, #list, 1, {})
    table.sort(sorted)
    local place = 1 + (#sorted - 1) * part
    local below = math.floor(place)
    local above = sorted[below + 1] or sorted[below]
    return sorted[below] + (place - below) * (above - sorted[below])
end

-- The median of what was measured of the call `name`: µs by the clock "cpu" or "wall", or "share" of the CPU; nil: it
-- was not timed.
function statistics.of(samples, name, kind) return samples[name] and statistics.median(samples[name][kind]) end

-- Ratios of samples that were taken in the same round. Drift that is slow against a round cancels.
-- Source: Kalibera, Jones, "Rigorous benchmarking in reasonable time" (2013), who compare by ratios.
function statistics.paired(samples, reference)
    local ratios = {}
    for i = 1, math.min(#samples, #reference) do ratios[i] = samples[i] / reference[i] end
    return ratios
end

-- The mean of the middle half of `drawn` values: sorted[i] count[i] times.
local function middle_half(sorted, count, drawn)
    local cut, i, seen, sum = drawn / 4, 0, 0, 0
    while seen < drawn - cut do
        i = i + 1
        local from, to = math.max(seen, cut), math.min(seen + count[i], drawn - cut)
        if to > from then sum = sum + (to - from) * sorted[i] end
        seen = seen + count[i]
    end
    return sum / (drawn - 2 * cut)
end

-- The mean of the middle half of a list. It varies less than its median, and outliers do not move it either.
function statistics.centre(list)
    local sorted, count = table.move(list, 1, #list, 1, {}), {}
    table.sort(sorted)
    for i = 1, #list do count[i] = 1 end
    return middle_half(sorted, count, #list)
end

local many_groups = 8

-- The centre of all values, and the interval that holds 95 % of those of resampled values. `groups` are lists of values
-- from one process each: a process moves all of its values together (pages, alignment), so processes are drawn, with
-- replacement; as long as they are few, values within them, too, which is too wide rather than too narrow. Source:
-- percentile interval of Efron, Tibshirani, "An introduction to the bootstrap" (1993), chapter 13; of groups: Davison,
-- Hinkley, "Bootstrap methods and their application" (1997), section 3.8.
function statistics.interval(groups, seed, resamples)
    local values, rank = {}, {}
    for g, group in ipairs(groups) do
        rank[g] = {}
        for i, value in ipairs(group) do values[#values + 1] = { value = value, group = g, index = i } end
    end
    table.sort(values, function(a, b)
        if a.value ~= b.value then return a.value < b.value end
        if a.group ~= b.group then return a.group < b.group end
        return a.index < b.index
    end)
    local sorted, count = {}, {}
    for i, value in ipairs(values) do
        sorted[i], count[i] = value.value, 0
        rank[value.group][value.index] = i
    end
    local whole = #groups >= many_groups -- are drawn as they are
    local random, centres = statistics.random(seed), {}
    for r = 1, resamples do
        for i = 1, #count do count[i] = 0 end
        local drawn = 0
        for _ = 1, #rank do
            local group = rank[random(#rank)]
            for g = 1, #group do
                local i = group[whole and g or random(#group)]
                count[i] = count[i] + 1
            end
            drawn = drawn + #group
        end
        centres[r] = middle_half(sorted, count, drawn)
    end
    table.sort(centres)
    local tail = math.max(1, resamples // 40)
    local low, high = centres[tail], centres[resamples + 1 - tail]
    return { centre = statistics.centre(sorted), low = low, high = high, samples = #sorted }
end

-- The largest effect that nothing has had: the width of an A/A control's interval, reaching to the 1 that it should be.
function statistics.spread(control) return math.max(control.high, 1) - math.min(control.low, 1) end

-- A process that has a core for itself uses it for at least this share of the time; else other work shared the core.
statistics.own_share = 0.97

-- Whether other work shared the core.
function statistics.contended(cpu_times, wall_times)
    local shares = statistics.paired(cpu_times, wall_times)
    return statistics.median(shares) < statistics.own_share
end

-- Whether figures of measurements with these shares of CPU time in wall time count; those that are nil say nothing.
function statistics.counts(...)
    for i = 1, select("#", ...) do
        local share = select(i, ...)
        if share and share < statistics.own_share then return false end
    end
    return true
end

return statistics
