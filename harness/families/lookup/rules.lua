-- Why a schedule of a LookupFFN is not worth measuring: each rule compares what it needs with what there is. A rule is
-- given a space (harness/tune/candidates.lua) and a schedule, and returns the reason or nil.
local estimate = require "harness.families.lookup.estimate"

local function kib(bytes) return string.format("%.1f KiB", bytes / 1024) end

return {
    function(space, s)
        local text = estimate.text_bytes(space.shape, space.isa, s, space.regime)
        if text > space.caches.l1i then
            return string.format(
                "code: loops of about %s, the instruction cache has %s",
                kib(text),
                kib(space.caches.l1i)
            )
        end
    end,
    function(space, s)
        local stack = estimate.stack_bytes(space.shape, space.isa, s, space.regime, space.integer_sums)
        if stack > space.stack then
            return string.format("stack: %s of local arrays, at most %s", kib(stack), kib(space.stack))
        end
    end,
    function(space, s)
        local registers = estimate.registers(space.isa, s, space.regime)
        if registers > space.isa.registers then
            return string.format("registers: needs %d of %d", registers, space.isa.registers)
        end
    end,
    function(space, s)
        local bytes, l2 = estimate.tile_bytes(space.shape, space.isa, s), space.caches.l2
        if space.regime == "many" and bytes > l2 then
            return string.format("tile: %s of projection buffers, L2 has %s", kib(bytes), kib(l2))
        end
    end,
    function(space, s)
        local bytes, l2 = estimate.slice_bytes(space.shape, s), space.caches.l2
        local pieces = s["gather.columns"] < space.shape.d_out -- whole rows are read in one go, wherever they lie
        if space.regime == "many" and pieces and bytes > l2 then
            return string.format("tile: a slice of tables of %s, L2 has %s", kib(bytes), kib(l2))
        end
    end,
}
