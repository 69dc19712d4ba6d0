-- A tuned file: read, validated and applied to a plan; what is accepted is written and read back unchanged.
local families = require "gen.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"
local tuned_file = require "gen.request.tuned_file"

local sets = isa.select "scalar,avx2,avx512"
local models = {}
for i, name in ipairs { "small", "small_blocks" } do
    models[i] = model_file.load("tests/libfuzzer/" .. name .. ".lua")
end

-- What `lookupc emit --tuned` does with the file and model `m`. The digest is taken to be the model's.
local function apply(path, data, context, m)
    local family = families.of(m)
    local options = { tables = data.tables, projection = data.projection, type = data.type, cache = data.cache }
    if not pcall(families.check_options, family, options) then return end
    local built, p = pcall(family.build, m, sets, options)
    if not built then
        if not tostring(p):find "^%-%-%l+: " then error(p, 0) end
        return -- options that are not for this model
    end
    local asked = setmetatable({ digest = data.model }, { __index = p })
    local wanted = rules.try(path, tuned_file.choices, data, context, asked)
    if wanted then family.build(m, sets, options, wanted) end
end

return function(path)
    local data, context = rules.try(path, tuned_file.load, path)
    if not data then return end
    for _, m in ipairs(models) do
        apply(path, data, context, m)
    end
    local copy = path .. ".copy"
    assert(host.write_file(copy, tuned_file.text(data)))
    rules.same("written and read", data, (tuned_file.load(copy)))
end
