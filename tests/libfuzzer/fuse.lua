-- A checkpoint as `lookupc fuse` takes it: what is written is a checkpoint that can be packed, or nothing is written.
local families = require "gen.families.list"
local fuse_weights = require "gen.families.model.blocks.fuse_weights"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local packing = require "gen.families.packing"
local rules = require "tests.libfuzzer.rules"

local m = model_file.load "tests/libfuzzer/small_fused.lua"
local plan = families.of(m).build(m, isa.select "scalar", {})

return function(path)
    local output = path .. ".fused"
    host.remove(output)
    local found = rules.try(path, fuse_weights.fuse, m, {
        eliminate = m.attention.eliminate,
        weights = path,
        o = output,
        ["max-condition"] = "1e10",
        ["max-error"] = "0.1",
    })
    if not found and host.kind(output) then error("refused, but something is written", 0) end
    if found then packing.pack(plan, { weights = output, output = path .. ".blob", prefix = "" }) end
end
