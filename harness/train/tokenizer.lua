-- Trains a tokenizer on text: SentencePiece does it, in a process of its own.
local host = require "host"
local process = require "process"
local read = require "gen.tokenizer.read"
local text_file = require "harness.base.text_file"

local tokenizer = {}

-- The path of the program that trains; raises one line if it is not there: a build without LOOKUPC_TRAIN has none.
local function program()
    local path = process.beside "lookupc-tokenizer"
    if host.kind(path) == "file" then return path end
    error(path .. ": is missing: tokenizer needs it; build lookupc with cmake -DLOOKUPC_TRAIN=ON", 0)
end

-- What SentencePiece says, and the rule that it means; the number behind it is the bound.
local messages = {
    { "too high.-<= (%d+)", "must be at most %s: the text has no more" },
    {
        "smaller than required_chars%. %d+ vs (%d+)",
        "must be at least %s: so many are the text's characters, all with --coverage 1, and what --byte-fallback adds",
    },
}

local function explained(output, pieces)
    for _, row in ipairs(messages) do
        local bound = output:match(row[1])
        if bound then return string.format("--pieces: %d: %s", pieces, row[2]:format(bound)) end
    end
    local first = output:match "[^\n]+" or "failed"
    return "SentencePiece: " .. (first:match "%] (.+)$" or first)
end

-- Trains on options.text and writes the model into options.o. Returns its record.
function tokenizer.train(options)
    local command = { program(), options.kind, tostring(options.pieces), options.coverage }
    local directory = process.temporary_directory()
    local path = directory .. "/tokenizer.model"
    command[#command + 1] = options["byte-fallback"] and "true" or "false"
    command[#command + 1] = path
    command[#command + 1] = tostring(process.id())
    for _, file in ipairs(options.text) do
        text_file.read("--text", file)
        command[#command + 1] = file
    end
    host.status "training a tokenizer"
    local result = assert(process.run(command))
    host.status ""
    if result.signal then error("SentencePiece ended by signal " .. result.signal, 0) end
    if result.status ~= 0 then error(explained(result.output, options.pieces), 0) end
    local record = read.record(path, {})
    assert(host.write_file(options.o, assert(host.read(path))))
    return record
end

return tokenizer
