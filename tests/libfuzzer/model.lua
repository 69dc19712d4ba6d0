-- A model file: read, validated and planned; an accepted model is its own valid copy.
local families = require "gen.families.list"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"

local scalar = isa.select "scalar"

-- The plan's sections lie inside the blob, one behind the other.
local function check_sections(p)
    local stop = 0
    for _, section in ipairs(p.sections or {}) do
        if section.at < stop then error("section " .. section.name .. " begins inside the one before", 0) end
        stop = section.at + section.bytes
    end
    if stop > p.packed_bytes then error("sections end behind the blob", 0) end
end

return function(path)
    local m = rules.try(path, model_file.load, path)
    if not m then return end
    rules.same("validated again", m, model_file.validate(m, "", path))
    local family = families.of(m)
    local p
    local function make()
        p = p or family.build(m, scalar, {})
        return p
    end
    -- A model that is described alone, such as one that no checkpoint holds, has no plan.
    if rules.try(path, family.describe, m, make, { schedules = true }) and p then check_sections(p) end
end
