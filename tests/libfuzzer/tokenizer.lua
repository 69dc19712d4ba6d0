-- The file of a tokenizer, as every format that begins like it: what is read can be planned, the same each time.
local host = require "host"
local read = require "gen.tokenizer.read"
local rules = require "tests.libfuzzer.rules"
local tokenizer_plan = require "gen.tokenizer.plan"

-- The first bytes decide: text in braces or brackets is JSON, a field of a protocol buffer SentencePiece's.
local function endings(bytes)
    local first = bytes:match "^%s*(.)"
    if first == "{" or first == "[" then return { ".json" } end
    return first == "\n" and { ".model", ".txt" } or bytes:find "%c" and { ".txt", ".model" } or { ".txt" }
end

return function(path)
    local bytes = assert(host.read(path, 1 << 28))
    for _, ending in ipairs(endings(bytes)) do
        local named, merges = path .. ending, path .. ".merges"
        local cut = bytes:find("\n#version", 1, true) or #bytes -- behind a vocab.json stand its merges
        assert(host.write_file(named, bytes:sub(1, cut)))
        assert(host.write_file(merges, bytes:sub(cut + 1)))
        local options = { merges = merges, lower = ending == ".txt" or nil }
        local record = rules.try(path, read.record, named, options)
        local facts = record and rules.try(path, tokenizer_plan.build, record)
        if facts then
            tokenizer_plan.check(facts)
            rules.same("planned again", facts, (tokenizer_plan.build(read.record(named, options))))
        end
    end
end
