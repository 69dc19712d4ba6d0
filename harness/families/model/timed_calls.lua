-- What the measuring process is told to do with compiled blocks (harness/measure/prepare.lua).
local compile = require "harness.base.compile"
local host = require "host"
local process = require "process"
local setting = require "harness.measure.setting"
local timed_parts = require "harness.families.model.timed_parts"
local verify = require "harness.families.model.verify"

local timed_calls = {}

local turns = 256 -- calls take turns in inputs: rows of tables that the same ones take would stay in the caches

-- Compiles plan `p`, and those in `beside` with it, which are parts of it, and compares it with the reference; raises
-- one line that begins with `failing` if a call is wrong. Returns the library, what verify.prepare says, and what
-- verify.worst does.
function timed_calls.verified(failing, p, options, beside)
    local directory = process.temporary_directory()
    host.status("verifying " .. p.model.name)
    local prepared = verify.prepare(p, directory, options)
    local flags = compile.threaded(p, options.cflags, options.threads) .. (beside and " " .. timed_parts.cflags or "")
    local plans, folder = { p, table.unpack(beside or {}) }, directory .. "/library"
    local library = compile.library(plans, folder, options.cc, flags, options.device and options.device.link_options)
    return library, prepared, verify.worst(failing, p, library, prepared, options.threads)
end

-- The plan `p` as an entry for `timed.add`, compiled into `library`; cache: the name of the memory that is its cache,
-- nil: the one of most entries.
function timed_calls.entry(p, name, library, blob, cache)
    local of = { library = library, blob = blob, bind = p.names.bind, weights_struct_bytes = p.weights_struct_bytes }
    return { library = setting.library(name, of), plan = p, cache = cache or "cache" }
end

-- Lists for `job`, with `threads` callers at a time: memory for the entries `entries`, d wide, for calls of up to
-- `tokens` tokens, and the entries; cache_bytes: of each caller, whose cache is shared by all blocks.
function timed_calls.add(job, entries, d, tokens, cache_bytes)
    local scratch = 0
    for _, entry in ipairs(entries) do
        scratch = math.max(scratch, entry.plan.scratch_bytes)
    end
    local function own(name, bytes) return { name = name, bytes = bytes, copies = job.threads, large = true } end
    job.memory = {
        { name = "x", bytes = 4 * d * (tokens + turns), fill = "normal", large = true },
        own("y", 4 * d * tokens),
        own("cache", cache_bytes),
        own("scratch", scratch),
    }
    job.libraries, job.setup, job.calls, job.d = {}, {}, {}, d
    for i, entry in ipairs(entries) do
        job.libraries[i] = entry.library
    end
end

-- The memory of the offsets of sequences of `length` tokens that `tokens` are, the last one of fewer, and how many they
-- are.
local function offsets_of(job, tokens, length)
    local name, sizes = "offsets of " .. tokens, {}
    for at = 0, tokens - 1, length do
        sizes[#sizes + 1] = at
    end
    sizes[#sizes + 1] = tokens
    job.memory[#job.memory + 1] = { name = name, bytes = 8 * #sizes, sizes = sizes }
    return name, #sizes - 1
end

-- A row of a call of an entry: by the function for many tokens, prefill, encode, or encode_batch.
function timed_calls.call(job, entry, name, tokens, position)
    local p, x = entry.plan, { memory = "x", place = 4 * job.d }
    local arguments = { "weights", entry.cache, x, "y", tokens, "scratch" }
    if p.shape.causal then
        arguments = { "weights", entry.cache, x, "y", position, tokens, "scratch" }
    elseif p.shape.sequences then
        local offsets, count = offsets_of(job, tokens, p.model.attention.context)
        arguments = { "weights", entry.cache, x, "y", offsets, count, "scratch" }
    end
    local own = entry.library.name
    return {
        name = name,
        places = turns,
        callers = job.threads,
        tokens = tokens,
        alike = job.alike and tokens .. "/" .. position or nil,
        steps = { { library = own, ["function"] = timed_parts.call(p), status = true, arguments = arguments } },
    }
end

-- A row of reading `bytes` of the weights of an entry, or of the memory `memory`: what bounds a call.
function timed_calls.read(job, name, bytes, memory, entry)
    local step = { ["function"] = "read", arguments = { memory, bytes } }
    step.library = entry and entry.library.name
    return { name = name, callers = job.threads, steps = { step } }
end

return timed_calls
