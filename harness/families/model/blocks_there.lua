-- Blocks alone on a device: the steps that call them, and their memory, as verify_there.lua wants them.
local rows = require "rows"
local setting = require "harness.measure.setting"

local blocks_there = {}

-- The steps of `way` to call blocks of plan `p`, the library `name` of the job, for `count` tokens.
local function steps_of(p, name, way, count)
    local list, first = {}, 0
    local function add(symbol, ...)
        table.insert(list, { library = name, ["function"] = symbol, status = true, arguments = { "weights", ... } })
    end
    local function x_and_y(token)
        return { memory = "x", at = 4 * p.shape.input * token }, { memory = "y", at = 4 * p.shape.d * token }
    end
    if way.lengths then
        for sequence, length in ipairs(way.name == "single" and way.lengths or {}) do
            local x, y = x_and_y(first)
            local offsets = { memory = "offsets", at = 8 * (sequence - 1) }
            if length > 0 then add(p.names.encode_batch, "cache", x, y, offsets, 1, "scratch") end
            first = first + length
        end
        if way.name == "single" then return list end
        add(p.names.encode_batch, "cache", "x", "y", "offsets", #way.lengths, "scratch")
        return list
    elseif not p.shape.causal then
        add(p.names.encode, "cache", "x", "y", count, "scratch")
        return list
    end
    for _, most in ipairs(way.calls) do
        local here = math.min(most, count - first)
        local x, y = x_and_y(first)
        if here == 1 then
            add(p.names.decode, "cache", x, y, first, "scratch")
        elseif here > 1 then
            add(p.names.prefill, "cache", x, y, first, here, "scratch")
        end
        first = first + here
    end
    return list
end

-- Adds memory_there and row_there to a sample of blocks.
function blocks_there.add(sample)
    local count = sample.tokens
    function sample.memory_there(list)
        local p, scratch, offsets = list[1].plan, 1, { 0 }
        for _, made in ipairs(list) do
            scratch = math.max(scratch, made.plan.scratch_bytes)
        end
        for i, length in ipairs(sample.lengths or {}) do
            offsets[i + 1] = offsets[i] + length
        end
        sample.linked = sample.linked -- once for all candidates
            or { setting.linked("x", rows.singles(sample.x)), setting.linked("expected", sample.answers[1].y) }
        return {
            sample.linked[1],
            sample.linked[2],
            { name = "y", bytes = 4 * p.shape.d * count },
            { name = "cache", bytes = p.cache_bytes },
            { name = "scratch", bytes = scratch },
            { name = "offsets", bytes = 8 * #offsets, sizes = offsets },
        }
    end
    function sample.row_there(p, name, way)
        return { steps = steps_of(p, name, way, count), expected = "expected", tokens = count, width = p.shape.d }
    end
end

return blocks_there
