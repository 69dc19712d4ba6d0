-- The constants of arithmetic without floating point: score and LayerNorm.
local constants = {}

local function log2_ceiling(n)
    local bits = 0
    while 1 << bits < n do
        bits = bits + 1
    end
    return bits
end

-- The function `of` at 0, step, … for `count` steps as integers.
local function tabulated(count, of)
    local list = {}
    for i = 0, count do
        list[i + 1] = math.floor(of(i) + 0.5)
    end
    return list
end

-- The constants of the score. Magnitudes have 12 binary places. An entry of `log2` is 2^15 log2(1 + exp(-2 |z|)) every
-- 2^-5 up to 8, where it is 0 in 15 binary places; one of `power` is 2^15 2^-f every 2^-5. sum_shift makes a sum of tau
-- magnitudes one of 16 bits. For a second row |z| times loss / 2^loss_shift is 2^15 log2(exp(2 |z|)); the product has
-- 32 bits.
function constants.score(m)
    local two = m.neighbours > 1
    return {
        fraction = 12,
        log2_step = 7,
        log2_limit = 8 << 12,
        log2 = tabulated(256, function(i) return 32768 * math.log(1 + math.exp(-i / 16), 2) end),
        power_step = 10,
        power = tabulated(32, function(i) return 32768 * 2 ^ (-i / 32) end),
        sum_shift = log2_ceiling(m.tau),
        kind = m.score,
        loss = two and math.floor(32768 / math.log(2) + 0.5) or nil,
        loss_shift = two and 11 or nil,
    }
end

-- LayerNorm: from x to round(2^fraction (x - mean) / sqrt(variance + eps)). `gain` is 2^15 sqrt(d) / 2^log2_root. eps
-- in units of the sum of squares of d x - sum of x, shifted right by at least `least_shift`.
function constants.normalise(m, unit)
    if not m.norm then return nil end
    local root = m.d ^ 0.5
    local log2_root = 0
    while 2 ^ log2_root < root do
        log2_root = log2_root + 1
    end
    local n =
        { log2_root = log2_root, gain = math.floor(32768 * root / 2 ^ log2_root + 0.5), fraction = 15 - log2_root }
    -- The largest |normalised| is sqrt(d - 1), computed with a relative error below 2^-10.
    if (m.d - 1) ^ 0.5 * 2 ^ n.fraction * (1 + 2 ^ -10) > 32766 then n.fraction = n.fraction - 1 end
    n.shift = 7 + 15 - log2_root - n.fraction
    local eps = m.d ^ 3 * m.norm.eps / (unit * unit)
    n.least_shift = 0
    while eps * 2.0 ^ (-2 * n.least_shift) >= 2 ^ 31 do
        n.least_shift = n.least_shift + 1
    end
    n.eps = math.floor(eps * 2.0 ^ (-2 * n.least_shift) + 0.5)
    return n
end

return constants
