-- A checkpoint as `lookupc pack` takes it: packed whole, or refused with nothing written.
local families = require "gen.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local packing = require "gen.families.packing"
local rules = require "tests.libfuzzer.rules"

local plans = {}
for i, name in ipairs { "small", "small_blocks" } do
    local m = model_file.load("tests/libfuzzer/" .. name .. ".lua")
    plans[i] = families.of(m).build(m, isa.select "scalar", {})
end

return function(path)
    for _, p in ipairs(plans) do
        local output = path .. ".blob"
        host.remove(output)
        local errors = rules.try(path, packing.pack, p, { weights = path, output = output, prefix = "" })
        local written = host.read(output)
        if errors and (not written or #written ~= p.packed_bytes) or not errors and written then
            error(p.model.name .. ": half done", 0)
        end
    end
end
