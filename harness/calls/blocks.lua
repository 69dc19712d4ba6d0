-- Calls of emitted blocks between guard pages, in a process of their own.
--
-- calls(job, x) -> y, seen, clamped (harness/calls/clamped.lua) | nil, message. Values of tokens are strings of
-- doubles, [tokens][d]. job = { library, bind, decode, prefill, encode, encode_batch (names of functions, nil: there
-- is none), blob, d, input (width of x), context, positions (that the cache holds for encode_batch, in tiles of 32),
-- start (of the first token; if it is not 0, the cache is cleared before), cache_bytes, halves (spans of clamped.lua),
-- scratch_bytes, weights_struct_bytes, calls = { tokens of every call }, lengths = { tokens of every sequence, for
-- encode_batch }, seen = what is to be seen of lookup FFNs, nil: nothing }; seen: a string of what they were given and
-- looked up (harness/verify/interposed.h).
local clamped = require "harness.calls.clamped"
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local interposed = require "interposed"
local isolated = require "harness.base.isolated"
local rows = require "rows"

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

-- The calls for `count` tokens from number `first` on, { function, words between y and scratch }: those that must be
-- refused, and the right one.
local function calls_of(job, next_offsets, first, count)
    if job.encode_batch then
        local ones = {}
        for i = 0, job.positions // tile + 1 do -- sequences of a token each, too many for the cache by one
            ones[i + 1] = i
        end
        local function batch(offsets) return { job.encode_batch, sizes(offsets), #offsets - 1 } end
        return { batch { 0, 0, job.context + 1 }, batch { 2, 1 }, batch(ones) }, batch(next_offsets(count))
    elseif job.encode then
        return { { job.encode, job.context + 1 } }, { job.encode, count }
    end
    local position, most = (job.start or 0) + first, job.context
    return { { job.decode, most }, { job.decode, -1 }, { job.prefill, most - count + 1, count } },
        count == 1 and { job.decode, position } or { job.prefill, position, count }
end

-- Runs the calls, each with memory of exactly its size, and returns y as a string of float32.
local function run_calls(job, x)
    interposed.watch(job.seen)
    local own = assert(compiled.open(job))
    interposed.watch_behind(own)
    local cache = { name = "cache", memory = compiled.memory(job.cache_bytes, "end") }
    local scratch = { name = "scratch", memory = compiled.memory(job.scratch_bytes, "end") }
    if (job.start or 0) > 0 then cache.memory:write(("\0"):rep(job.cache_bytes)) end
    local parts, next_offsets, first, tokens = {}, offsets_of(job.lengths or {}), 0, #x // (4 * job.input)
    for i, most in ipairs(job.calls) do
        local count = math.min(most, tokens - first)
        if count == 0 then break end
        local from = { name = "x", text = x:sub(4 * first * job.input + 1, 4 * (first + count) * job.input) }
        from.place, from.alignment = i % 2 == 0 and "unaligned" or "end", 4
        local to = { name = "y", bytes = 4 * count * job.d, alignment = 4, result = true }
        local function status_of(call)
            local words = { cache, from, to, table.unpack(call, 2) }
            words[#words + 1] = scratch
            return guarded(own, call[1], own, table.unpack(words))
        end
        local wrong, right = calls_of(job, next_offsets, first, count)
        for _, call in ipairs(wrong) do
            local status, around, y = status_of(call)
            if status ~= position_refused or around or y ~= ("\xff"):rep(#y) then
                error(job.library .. ": a position beyond the context is not refused", 0)
            end
        end
        local status, around, y = status_of(right)
        local fault = status ~= 0 and "returned " .. status or around and "wrote beyond its memory"
        if fault then error(string.format("%s: a call at position %d %s", job.library, first, fault), 0) end
        parts[#parts + 1], first = y, first + count
    end
    return table.concat(parts), interposed.notes(), clamped.count(job.halves, cache.memory)
end

return function(job, x)
    local y, seen, beyond = isolated(job.library, function() return run_calls(job, rows.singles(x)) end)
    return y and rows.doubles(y), seen, beyond
end
