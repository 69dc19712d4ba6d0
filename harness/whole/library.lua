-- A whole model, emitted, compiled and bound: for the commands that run one, and for verify.
--
--   library.open(path, options) -> model, plan   of the model file `path`, with the checkpoint options.weights; raises one
--                                                line. Methods of model and state: harness/whole/lua_whole.c
-- What was compiled once is kept (harness/base/library_cache.lua).
local compile = require "harness.base.compile"
local packing = require "gen.families.packing"
local process = require "process"
local whole = require "whole"

local library = {}

-- What whole.open and whole.run want of plan `p`, compiled into `path`.
function library.job(p, path, blob)
    local scratch = p.facts and p.facts.scratch or { factor = 0, more = 0 }
    return {
        library = path,
        blob = blob,
        bind = p.names.bind,
        encode = not p.causal and p.names.encode or nil,
        encode_batch = not p.causal and p.names.encode_batch or nil,
        start = p.causal and p.names.start or nil,
        prefill = p.causal and p.names.prefill or nil,
        prefill_all = p.causal and p.names.prefill_all or nil,
        step = p.causal and p.names.step or nil,
        position = p.causal and p.names.position or nil,
        tokenize = p.facts and p.names.tokenize or nil,
        text_of = p.facts and p.names.text_of or nil,
        causal = p.causal,
        pooled = p.output.pool ~= nil,
        d_out = p.widths.out,
        vocab = p.model.vocab,
        context = p.context,
        weights_struct_bytes = p.weights_struct_bytes,
        state_bytes = p.state_bytes,
        scratch_bytes = p.scratch_bytes,
        step_scratch_bytes = p.step_scratch_bytes or 0,
        scratch_factor = scratch.factor,
        scratch_more = scratch.more,
        around = p.facts and #p.facts.first + #p.facts.last or 0,
    }
end

-- Packs and compiles plan `p` for the checkpoint in options.weights and opens it in this process.
function library.of(p, options)
    local directory = process.temporary_directory()
    local blob = directory .. "/weights.bin"
    packing.pack(p, { weights = options.weights, output = blob, prefix = "", ignore = options.ignore })
    local path = compile.library({ p }, directory, options.cc, options.cflags)
    return assert(whole.open(library.job(p, path, blob)))
end

return library
