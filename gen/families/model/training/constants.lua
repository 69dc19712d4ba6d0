-- The rotary angles and the sines of positions that the training of a whole model reads, as bytes: what
-- gen/weights/sections.c puts into a blob.
local constants = {}

-- Element k of section `s`: see fill_angles and fill_sinusoids there.
local function value_of(s, k)
    if s.angles then
        local half = #s.frequencies
        local angle = k // half * s.step * s.frequencies[k % half + 1]
        return s.factor * (s.angles == "cosines" and math.cos(angle) or math.sin(angle))
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
