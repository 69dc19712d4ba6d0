-- What the state of a decoder cannot hold: in half precision, keys, values and sums of tables beyond 65504 become that.
local host = require "host"

local clamped = {}

-- Where the cache `cache` of a plan's shape, which begins at byte `at` of a state, has numbers of half precision: a
-- list of { at, bytes }, empty for other types.
function clamped.spans(cache, at)
    if cache.type.name ~= "f16" then return {} end
    if not cache.row then return { { at = at, bytes = cache.bytes_of_all } } end
    local list, last = {}, cache.layer_bytes
    for i = #cache.parts, 1, -1 do
        local part = cache.parts[i]
        for _, layer in ipairs(part.name == "tables" and cache.layers or {}) do
            list[#list + 1] = { at = at + layer.at + part.at, bytes = last - part.at }
        end
        last = part.at
    end
    return list
end

-- The spans of a state of the whole model `p`.
function clamped.spans_of_state(p)
    local list = {}
    for _, segment in ipairs(p.causal and p.segments or {}) do
        local own = clamped.spans(segment.plan.shape.cache, segment.cache_at)
        table.move(own, 1, #own, #list + 1, list)
    end
    return list
end

-- How many numbers of these spans of a memory are ±65504.
function clamped.count(spans, memory)
    local count = 0
    for _, span in ipairs(spans) do
        count = count + memory:largest_halves(span.bytes, span.at)
    end
    return count
end

-- What people are told of so many.
function clamped.text(count)
    local form = "%d cached numbers are beyond half precision and became 65504 or -65504: take --cache f32, "
        .. "or bf16 with --type bf16 --activations bf16"
    return form:format(count)
end

-- Says so on standard error, once a command; nothing of none.
function clamped.warn(count)
    if count > 0 then host.note("lookupc: warning: " .. clamped.text(count)) end
end

return clamped
