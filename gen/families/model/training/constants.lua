-- The rotary angles, the sines of positions and the signs of attention by tables that the training of a whole model
-- reads, as bytes: what gen/weights/sections.c puts into a blob.
local constants = {}

-- The sign that output number `n` of splitmix64 (gen/weights/random.c) has, whose state starts at `state`.
local function sign_of(state, n)
    local z = state + n * 0x9e3779b97f4a7c15
    z = (z ~ z >> 30) * 0xbf58476d1ce4e5b9
    z = (z ~ z >> 27) * 0x94d049bb133111eb
    return z ~ z >> 31 < 0 and -1 or 1
end

-- Element k of section `s`: see fill_angles and fill_sinusoids there.
local function value_of(s, k)
    if s.signs then return sign_of(s.seed << 32 | s.first_layer + k // s.signs, k % s.signs + 1) end
    if s.angles then
        local pair = k % s.half
        local frequency = s.frequencies and s.frequencies[pair + 1] or s.theta ^ (-pair / s.half)
        local angle = k // s.half * s.step * frequency
        return (s.factor or 1) * (s.angles == "cosines" and math.cos(angle) or math.sin(angle))
    end
    local column, half = k % s.columns, s.columns // 2
    local halves = s.sinusoids == "halves"
    local i = halves and column % half or column // 2
    local angle = k // s.columns * s.max ^ (-i / s.steps_of)
    local sine = column % 2 == 0
    if halves then sine = column < half end
    return sine and math.sin(angle) or math.cos(angle)
end

-- The floats of the array `constants` of plan `p`, which has p.training.
function constants.bytes(p)
    local list, at = {}, 0
    for _, section in ipairs(p.training.sections_of_constants) do
        for _ = at, section.at - 1 do
            list[#list + 1] = string.pack("<f", 0)
        end
        for k = 0, section.elements - 1 do
            list[#list + 1] = string.pack("<f", value_of(section, k))
        end
        at = section.at + section.elements
    end
    for _ = at, p.training.constants - 1 do
        list[#list + 1] = string.pack("<f", 0)
    end
    return table.concat(list)
end

return constants
