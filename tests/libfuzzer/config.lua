-- What `lookupc import` reads: a model file that it makes is accepted, and tensors that it writes are read back; the
-- same text as settings of a tokenizer gives keys of a model file.
local host = require "host"
local import = require "gen.import.import"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"
local safetensors_bytes = require "gen.import.safetensors_bytes"
local slow_tokenizer = require "gen.import.slow_tokenizer"
local weights = require "weights"

-- Files of tokenizers, and a model_type that reads them.
local tokenizers = {
    { "vocab.txt", "bert" },
    { "vocab.json", "roberta" },
    { "tokenizer.model", "llama" },
    { "sentencepiece.bpe.model", "xlm-roberta" },
}

local function try_settings(path)
    local folder, text = path .. ".folder", assert(host.read(path, 1 << 28))
    for _, name in ipairs { "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json" } do
        assert(host.write_directory(folder, { [name] = text }, true))
        for _, row in ipairs(tokenizers) do
            local keys, ids = rules.try(path, slow_tokenizer.keys, folder, row[1], { model_type = row[2] })
            for key, value in pairs(keys or {}) do
                assert(key == "lower" or type(value) == "string" and #value > 0 and not value:find "%c", key)
            end
            for _, id in pairs(ids or {}) do
                assert(math.type(id) == "integer")
            end
        end
        assert(host.remove(folder .. "/" .. name))
    end
end

return function(path)
    try_settings(path)
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
