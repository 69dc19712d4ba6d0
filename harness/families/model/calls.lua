-- Calls of emitted blocks between forbidden pages, in a process of their own.
--
-- calls(job, x) -> y, seen | nil, message. Values of tokens are strings of doubles, [tokens][d]. job = { library, bind,
-- decode, prefill, encode, encode_batch (names of functions, nil: there is none), blob, d, input (width of x), context,
-- positions (that the cache holds for encode_batch, in tiles of 32), start (of the first token; if it is not 0, the
-- cache is cleared before), cache_bytes, scratch_bytes, weights_struct_bytes, calls = { tokens of every call },
-- lengths = { tokens of every sequence, for encode_batch }, seen = what is to be seen of lookup FFNs, nil: nothing };
-- seen: a string of what they were given and looked up (harness/verify/seen.h).
local compiled = require "compiled"
local isolated = require "harness.base.isolated"
local rows = require "rows"
local transformer = require "transformer"

local position_refused = 9 -- a code
local tile = 32 -- positions

local function sizes(list) return ("j"):rep(#list):pack(table.unpack(list)) end

-- A function of a number of tokens that returns the offsets of the next sequences that have so many together. What the
-- first of a call is called does not matter.
local function offsets_of(lengths)
    local sequence = 0
    return function(count)
        local offsets = { sequence }
        while offsets[#offsets] - offsets[1] < count or lengths[sequence + 1] == 0 do
            sequence = sequence + 1
            offsets[#offsets + 1] = offsets[#offsets] + lengths[sequence]
        end
        return offsets
    end
end

-- The calls for `count` tokens from number `first` on: functions that make one and return its code; those that must be
-- refused, and the right one.
local function calls_of(job, own, next_offsets, memory, first, count)
    local x, y, cache, scratch = memory.x, memory.y, memory.cache, memory.scratch
    if job.encode_batch then
        local ones = {}
        for i = 0, job.positions // tile + 1 do -- sequences of a token each, too many for the cache by one
            ones[i + 1] = i
        end
        local function batch(offsets)
            local list, sequences = sizes(offsets), #offsets - 1
            return function() return own:status(job.encode_batch, own, cache, x, y, list, sequences, scratch) end
        end
        return { batch { 0, 0, job.context + 1 }, batch { 2, 1 }, batch(ones) }, batch(next_offsets(count))
    elseif job.encode then
        local function encode(tokens)
            return function() return own:status(job.encode, own, cache, x, y, tokens, scratch) end
        end
        return { encode(job.context + 1) }, encode(count)
    end
    local function decode(position)
        return function() return own:status(job.decode, own, cache, x, y, position, scratch) end
    end
    local function prefill(position)
        return function() return own:status(job.prefill, own, cache, x, y, position, count, scratch) end
    end
    local position = (job.start or 0) + first
    return { decode(job.context), decode(-1), prefill(job.context - count + 1) },
        count == 1 and decode(position) or prefill(position)
end

-- Runs the calls, each with memory of exactly its size, and returns y as a string of float32.
local function run_calls(job, x)
    transformer.watch(job.seen)
    local own, message = compiled.open(job)
    if not own then error(message, 0) end
    transformer.watch_behind(own)
    local cache, scratch = compiled.memory(job.cache_bytes, "end"), compiled.memory(job.scratch_bytes, "end")
    if (job.start or 0) > 0 then cache:write(("\0"):rep(job.cache_bytes)) end
    local parts, next_offsets, first, tokens = {}, offsets_of(job.lengths or {}), 0, #x // (4 * job.input)
    for i, most in ipairs(job.calls) do
        local count = math.min(most, tokens - first)
        if count == 0 then break end
        local given = x:sub(4 * first * job.input + 1, 4 * (first + count) * job.input)
        local from <close> = compiled.memory(#given, i % 2 == 0 and "unaligned" or "end", 4)
        local to <close> = compiled.memory(4 * count * job.d, "end", 4)
        from:write(given)
        from:read_only()
        local before = to:read(4)
        local memory = { x = from, y = to, cache = cache, scratch = scratch }
        local wrong, right = calls_of(job, own, next_offsets, memory, first, count)
        for _, call in ipairs(wrong) do
            if call() ~= position_refused or not to:holds(before) then
                error(job.library .. ": a position beyond the context is not refused", 0)
            end
        end
        local status = right()
        local fault = status ~= 0 and "returned " .. status
            or not (to:intact() and cache:intact() and scratch:intact()) and "wrote beyond its memory"
        if fault then error(string.format("%s: a call at position %d %s", job.library, first, fault), 0) end
        parts[#parts + 1], first = to:read(), first + count
    end
    return table.concat(parts), transformer.seen()
end

return function(job, x)
    local y, seen = isolated(job.library, function() return run_calls(job, rows.singles(x)) end)
    return y and rows.doubles(y), seen
end
