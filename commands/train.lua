-- The commands that make weights: tokenizer and train.
local figures = require "gen.plan.figures"
local file_rules = require "commands.file_rules"
local host = require "host"
local tokenizer = require "harness.train.tokenizer"

local commands = {}

function commands.tokenizer(_, options)
    if options.kind == "bytes" then
        error('--kind: bytes: needs no training: the model file says tokenizer = { kind = "bytes" }', 0)
    end
    local coverage = tonumber(options.coverage)
    if not coverage or coverage < 0.9 or coverage > 1 then
        error("--coverage: " .. options.coverage .. ": must be a number from 0.9 to 1", 0)
    end
    if options.pieces < 4 or options.pieces > 1 << 20 then
        error(string.format("--pieces: %d: must be an integer from 4 to %d", options.pieces, 1 << 20), 0)
    end
    if not options.o:find "%.model$" then error("-o: " .. options.o .. ": must end in .model", 0) end
    file_rules.not_over("-o", options.o, options.text)
    assert(host.check_output(options.o))
    local record = tokenizer.train(options)
    host.print(string.format("wrote %s, %s pieces of %s", options.o, figures.grouped(#record.pieces), record.kind))
    return 0
end

return commands
