-- A whole model, emitted, compiled and bound: for the commands that run one, and for verify.
--
--   compiled_model.of(p, options) -> model   of plan `p`, with the checkpoint options.weights; raises one line.
-- Methods of model and state: harness/calls/whole_model.lua.
-- What was compiled and packed once is kept (harness/base/library_cache.lua, blob_cache.lua).
local blob_cache = require "harness.base.blob_cache"
local clamped = require "harness.calls.clamped"
local compile = require "harness.base.compile"
local host = require "host"
local packing = require "gen.families.packing"
local process = require "process"
local whole_model = require "harness.calls.whole_model"

local compiled_model = {}

-- What harness/calls/whole_model.lua wants of plan `p`, compiled into `path` for up to `threads` threads.
function compiled_model.job(p, path, blob, threads)
    local function shared(name) return threads > 1 and p.names.openmp(name) or name end
    local scratch = p.facts and p.facts.scratch or { factor = 0, more = 0 }
    return {
        library = path,
        blob = blob,
        bind = p.names.bind,
        encode = not p.causal and shared(p.names.encode) or nil,
        encode_batch = not p.causal and shared(p.names.encode_batch) or nil,
        start = p.causal and p.names.start or nil,
        prefill = p.causal and shared(p.names.prefill) or nil,
        prefill_all = p.causal and shared(p.names.prefill_all) or nil,
        step = p.causal and p.names.step or nil,
        position = p.causal and p.names.position or nil,
        tokenize = p.names.tokenize,
        text_of = p.names.text_of,
        causal = p.causal,
        pooled = p.output.pool ~= nil,
        d_out = p.widths.out,
        vocab = p.model.vocab,
        context = p.context,
        weights_struct_bytes = p.weights_struct_bytes,
        state_bytes = p.state_bytes,
        halves = clamped.spans_of_state(p),
        scratch_bytes = p.scratch_bytes * threads,
        step_scratch_bytes = p.step_scratch_bytes or 0,
        scratch_factor = scratch.factor,
        scratch_more = scratch.more,
        around = p.facts and #p.facts.first + #p.facts.last or 0,
        room_refused = 11,
        scratch_refused = 12,
        stays = true, -- of an OpenMP build, threads wait in the code of libgomp
    }
end

-- Packs and compiles plan `p` for the checkpoint in options.weights and opens it in this process. Unless it
-- `keeps_denormals`, its calls take denormal numbers for zeros: no text needs them, and on some CPUs they take long.
function compiled_model.of(p, options, keeps_denormals)
    local directory = process.temporary_directory()
    local threads = compile.threads_of(options)
    local path = compile.library({ p }, directory, options.cc, compile.threaded(p, options.cflags, threads))
    local function open()
        local blob, kept = blob_cache.packed(p, directory, packing.files(options))
        local job = compiled_model.job(p, path, blob, threads)
        job.flush_denormals = not keeps_denormals and p.names.flush_denormals or nil
        local model, message = whole_model.open(job)
        return model, message, kept and blob
    end
    local model, message, kept = open()
    if not model and kept then -- damaged, or removed meanwhile
        host.remove(kept)
        model, message = open()
    end
    return assert(model, message)
end

return compiled_model
