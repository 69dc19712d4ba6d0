-- What `lookupc import` reads of a GGUF file: a model file that it makes is accepted, a tokenizer can be planned.
local host = require "host"
local import = require "gen.import.import"
local model_file = require "gen.families.model_file"
local read = require "gen.tokenizer.read"
local rules = require "tests.libfuzzer.rules"
local tokenizer_plan = require "gen.tokenizer.plan"

return function(path)
    local named, imported = path .. ".gguf", path .. ".lua"
    assert(host.write_file(named, assert(host.read(path, 1 << 28))))
    for _, skipless in ipairs { false, true } do
        local options = { eliminate = "none", skipless = skipless, output = imported }
        local found = rules.try(path, import.read, named, options)
        if found then
            assert(host.write_file(imported, found.text))
            model_file.load(imported)
        end
    end
    local record = rules.try(path, read.record, named, {})
    local facts = record and rules.try(path, tokenizer_plan.build, record)
    if facts then tokenizer_plan.check(facts) end
end
