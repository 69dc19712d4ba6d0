-- The config.json of a checkpoint: what `lookupc import` makes of it is a model file that is accepted.
local host = require "host"
local import = require "gen.import.config_json"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"

return function(path)
    for _, options in ipairs { { eliminate = "none", skipless = true }, { eliminate = "none", name = "named" } } do
        local text = rules.try(path, import.model, path, options)
        if text then
            local imported = path .. ".lua"
            assert(host.write_file(imported, text))
            local m = model_file.load(imported)
            if options.name then rules.same("name", m.name, options.name) end
        end
    end
end
