-- A checkpoint as `lookupc fuse` takes it: what is written is a checkpoint that can be packed, or nothing is written.
local blob = require "gen.plan.blob"
local families = require "gen.families.list"
local fuse_weights = require "gen.families.transformer.fuse_weights"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"
local weights = require "weights"

local m = model_file.load "tests/libfuzzer/small_fused.lua"
local plan = families.of(m, {}).build(m, isa.select "scalar", {})

return function(path)
    local output = path .. ".fused"
    host.remove(output)
    local found = rules.try(path, fuse_weights, m, {
        eliminate = m.attention.eliminate,
        weights = path,
        o = output,
        ["max-condition"] = "1e10",
        ["max-error"] = "0.1",
    })
    if not found and host.kind(output) then error("refused, but something is written", 0) end
    if found then
        assert(weights.pack(blob.packing(plan, { weights = output, output = path .. ".blob", prefix = "" })))
    end
end
