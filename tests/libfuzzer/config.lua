-- What `lookupc import` reads: a model file that it makes is accepted, and tensors that it writes are read back.
local host = require "host"
local import = require "gen.import.import"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"
local safetensors_bytes = require "gen.import.safetensors_bytes"
local weights = require "weights"

return function(path)
    local imported = path .. ".lua"
    for _, options in ipairs {
        { eliminate = "none", skipless = true },
        { eliminate = "none", name = "named" },
        { eliminate = "none", folder = "." },
    } do
        options.output = imported
        local found = rules.try(path, import.file, path, options)
        if found and found.text then
            assert(host.write_file(imported, found.text))
            local m = model_file.load(imported)
            if options.name then rules.same("name", m.name, options.name) end
        end
        if found and found.tensors then
            local file = path .. ".safetensors"
            assert(host.write_file(file, safetensors_bytes.of(found.tensors)))
            local read = assert(weights.tensors(file))
            for _, tensor in ipairs(found.tensors) do
                rules.same(tensor.name, read[tensor.name], { dtype = tensor.dtype, shape = tensor.shape })
            end
        end
    end
end
