-- What bench times apart, the products of blocks and their attention, is emitted for blocks of all kinds.
local check = require "tests.support.check"
local covering = require "tests.fuzz.covering"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local isa = require "gen.isa.list"
local plans = require "tests.fuzz.plans"
local timed_parts = require "harness.families.model.timed_parts"

local test = {}

-- The plan of transformer number `index`; nil: its calls are for several sequences, which bench of blocks has none of.
local function drawn(index, set)
    for _, family in ipairs(plans.families) do
        if family.name == "transformer" then
            local p = family.draw(index, set, "timed_" .. index)
            return not p.shape.sequences and p or nil
        end
    end
end

function test.blocks_of_the_covering_list()
    local parts = 0
    for _, name in ipairs(effort.some("instruction_sets", { "avx2", "scalar", "avx512" }, 1)) do
        for _, index in ipairs(covering.transformer.quick[name]) do
            local p = drawn(index, isa.get(name))
            for _, part in ipairs(p and { timed_parts.products(p), timed_parts.attention(p, p.model, 2) } or {}) do
                check.equal(#emit.sources(part) > 3, true)
                parts = parts + 1
            end
        end
    end
    check.equal(parts > 30, true)
end

return test
