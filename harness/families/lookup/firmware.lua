-- What firmware of LookupFFNs needs of the reference, and what may be tried where it does not fit;
-- harness/families/list.lua says what the fields mean.
local copied = require "gen.schema.copied"
local packed = require "harness.families.lookup.packed"
local verify = require "harness.families.lookup.verify"

local firmware = { vectors = verify.vectors, fewer = { text = "h = %d, trained anew" } }

local smaller_floats = {
    options = { { tables = "i8", projection = "f32" }, { tables = "i8", projection = "bf16" } },
    schedules = { "butterfly.radix=2", "few.accumulators=1", "butterfly.radix=2,few.accumulators=1" },
}
local smaller_integers = { options = { { tables = "i8", projection = "i8" } }, schedules = {} }

function firmware.smaller(p) return p.exact and smaller_integers or smaller_floats end

function firmware.fewer.most(m) return m.h - 1 end

function firmware.fewer.with(m, h)
    local copy = copied(m)
    copy.h = h
    return copy
end

function firmware.stand_ins(p)
    local function numbers(count)
        local list = {}
        for i = 1, count do
            list[i] = i
        end
        return list
    end
    local list = {}
    for i = 1, packed.vectors do
        list[i] = { x = numbers(p.shape.d), y = numbers(p.shape.d_out) }
    end
    return list
end

return firmware
