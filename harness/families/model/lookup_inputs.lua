-- What the lookup FFNs of a whole model read in float32, of text or ids: what pack --calibrate calibrates for.
local blocks = require "harness.families.model.blocks.lookup_inputs"
local compile = require "harness.base.compile"
local execute = require "harness.families.model.execute"
local host = require "host"
local ids_file = require "harness.families.model.ids"
local library = require "harness.whole.library"
local opened = require "harness.families.model.opened"
local packing = require "gen.families.packing"
local process = require "process"
local seen = require "harness.families.model.blocks.seen"
local text_file = require "harness.whole.text"
local whole = require "whole"

local most_tokens = 8192 -- spread over the text
local longest = 512 -- tokens of a decoder's window
local most_text_bytes = 1 << 28

-- Windows of `ids`, one behind the other.
local function windows_of(ids, length)
    local list = {}
    for first = 1, #ids, length do
        list[#list + 1] = table.move(ids, first, math.min(first + length - 1, #ids), 1, {})
    end
    return list
end

-- The lines of an encoder's text as ids.
local function lines_of(model, p, text, path)
    local list, number = {}, 0
    for line in text:gmatch "[^\n]*" do
        number = number + 1
        if line:find "%S" then
            list[#list + 1] = opened.truncated(p, opened.ids(model, p, line, path .. ":" .. number))
        end
    end
    return list
end

-- Those of `list` that are in equal distances, with at most `most_tokens` ids or a sequence.
local function spread(list)
    local total, taken, share = 0, {}, 0.0
    for _, ids in ipairs(list) do
        total = total + #ids
    end
    for _, ids in ipairs(list) do
        share = share + math.min(1, most_tokens / math.max(total, 1))
        if share >= 1 - 1e-9 then
            taken[#taken + 1], share = ids, share - 1
        end
    end
    return #taken > 0 and taken or list
end

-- The sequences of ids that the options name.
local function sequences_of(path, p, model, options)
    local file = options.calibrate or options["calibrate-ids"]
    local length = math.min(p.context, longest)
    local list
    if options["calibrate-ids"] then
        list = windows_of(ids_file.read(file, p.model.vocab), length)
    else
        if not p.facts then
            error(path .. ": tokenizer: is missing: --calibrate takes text; --calibrate-ids takes ids", 0)
        end
        local text = text_file.read("--calibrate", file, most_text_bytes)
        list = p.causal and windows_of(opened.ids(model, p, text, file, true), length)
            or lines_of(model, p, text, file)
    end
    if #list == 0 then error(file .. ": has no tokens", 0) end
    return spread(list)
end

-- The .npy files of what the lookup FFNs of the model of the file `path` read, in the order of their layers.
return function(path, options)
    local own = blocks.options(options)
    own.threads = 1
    local p, directory, plans = execute.plan(path, own), process.temporary_directory(), {}
    for i, segment in ipairs(p.segments) do
        plans[i] = segment.plan
    end
    local sequences = sequences_of(path, p, options.calibrate and p.facts and library.of(p, own), options)
    local compiled, blob = compile.library({ p }, directory, own.cc, own.cflags), directory .. "/weights.bin"
    packing.pack(p, packing.files(own, blob))
    local job, inputs = library.job(p, compiled, blob, 1), blocks.new(plans)
    job.seen = seen.of(plans, compiled, own.cc, p.context)
    for i, ids in ipairs(sequences) do
        host.status(string.format("calibrating: %d of %d sequences", i, #sequences))
        local call = { what = p.causal and "prefill" or "encode", sequences = { ids } }
        local rows, notes = whole.run(job, p.causal and { { what = "start" }, call } or { call })
        if not rows then error(notes, 0) end
        inputs:add(job.seen, notes)
    end
    host.status ""
    return inputs:save(directory, options.calibrate or options["calibrate-ids"])
end
