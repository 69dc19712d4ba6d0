-- The command convert: harness/convert does the work.
local file_rules = require "commands.file_rules"
local misuse = require "gen.schema.misuse"

local commands = {}

-- Tokens that a layer learns from, with --quick, and that the whole model learns from in the end.
local tokens, quick_tokens, end_to_end = 480000, 100000, 120000

local function check_most_loss(options)
    local given = options["most-loss"]
    if not given then return end
    local most = tonumber(given)
    if not most or not (most >= 0) then misuse("--most-loss: " .. given .. ": must be a number from 0 on") end
end

function commands.convert(arguments, options)
    local path = arguments[1]
    options.tokens = options.tokens or options.quick and quick_tokens or tokens
    options["end-to-end"] = options["end-to-end"] or (options.quick or options.method == "hash-w") and 0 or end_to_end
    if options.tokens < 1024 then misuse(string.format("--tokens: %d: must be at least 1024", options.tokens)) end
    check_most_loss(options)
    local inputs = { path, options.dense, options.text or options.ids }
    local outputs = { { "-o", options.o } }
    if options.layers then outputs[2] = { "-o", require("harness.convert.layers").path(options.o) } end
    file_rules.check_outputs(outputs, inputs)
    return require("harness.convert.convert").run(path, options)
end

return commands
