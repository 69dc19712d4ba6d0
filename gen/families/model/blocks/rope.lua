-- The frequencies of rotary positions: those of theta, or scaled for contexts longer than that of training.
local rope = {}

local function clamped(x) return math.max(0, math.min(1, x)) end

-- By kind: from the scaling `s` to the function from frequency `f`, in radians a position, of pair `i` to the scaled
-- one.
local scaled = {}

function scaled.linear(s)
    return function(f) return f / s.factor end
end

-- Pairs that turn at least s.fast times within the original context stay, those that turn at most s.slow times are
-- slowed down by the factor.
function scaled.llama3(s)
    return function(f)
        local kept = clamped((s.original * f / (2 * math.pi) - s.slow) / (s.fast - s.slow))
        return kept * f + (1 - kept) * f / s.factor
    end
end

-- Likewise, by the number of the pair between the numbers of pairs that turn so often.
function scaled.yarn(s, theta, half)
    local function pair_that_turns(times)
        return half * math.log(s.original / (times * 2 * math.pi)) / math.log(theta)
    end
    local first, last = pair_that_turns(s.fast), pair_that_turns(s.slow)
    if s.truncate then
        first, last = math.floor(first), math.ceil(last)
    end
    first, last = math.max(first, 0), math.min(last, 2 * half - 1)
    if first == last then last = last + 0.001 end
    return function(f, i)
        local slowed = clamped((i - first) / (last - first))
        return (1 - slowed) * f + slowed * f / s.factor
    end
end

-- The frequencies of `half` pairs for the key `given` of a model, and the factor of cosines and sines.
function rope.frequencies(given, half)
    local list, s = {}, given.scaling
    local scale = s and scaled[s.kind](s, given.theta, half)
    for i = 0, half - 1 do
        local f = given.theta ^ (-i / half)
        list[i + 1] = scale and scale(f, i) or f
    end
    local factor = s and s.kind == "yarn" and (s.attention_factor or 0.1 * math.log(s.factor) + 1)
    return list, factor or 1
end

return rope
