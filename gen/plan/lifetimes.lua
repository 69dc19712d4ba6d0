-- Places buffers in one piece of memory: those that are in use at the same time lie beside each other, others share.
local blob = require "gen.plan.blob"

local lifetimes = {}

-- Gives every one of `buffers` { bytes, first, last: the stages that use it } its place `at`, in steps of blob.align.
-- Returns the bytes of all, and of each stage 1 … `stages` how many are in use then.
function lifetimes.place(buffers, stages)
    local order = table.move(buffers, 1, #buffers, 1, {})
    local number = {}
    for i, buffer in ipairs(buffers) do
        number[buffer] = i
    end
    table.sort(order, function(a, b)
        if a.bytes ~= b.bytes then return a.bytes > b.bytes end
        return number[a] < number[b]
    end)
    local placed, total = {}, 0
    for _, buffer in ipairs(order) do
        local bytes, at = blob.round_up(buffer.bytes, blob.align), 0
        -- Placed buffers lie in order of their places: the first gap that is wide enough is taken.
        for _, other in ipairs(placed) do
            local together = other.first <= buffer.last and buffer.first <= other.last
            if together and other.at < at + bytes then
                at = math.max(at, other.at + blob.round_up(other.bytes, blob.align))
            end
        end
        buffer.at, total = at, math.max(total, at + bytes)
        placed[#placed + 1] = buffer
        table.sort(placed, function(a, b)
            if a.at ~= b.at then return a.at < b.at end
            return number[a] < number[b]
        end)
    end
    local used = {}
    for stage = 1, stages do
        used[stage] = 0
        for _, buffer in ipairs(buffers) do
            if buffer.first <= stage and stage <= buffer.last then used[stage] = used[stage] + buffer.bytes end
        end
    end
    return total, used
end

return lifetimes
