-- The commands that make weights: tokenizer and train.
local figures = require "gen.plan.figures"
local file_rules = require "commands.file_rules"
local host = require "host"
local log = require "harness.train.log"
local misuse = require "gen.schema.misuse"
local tokenizer = require "harness.train.tokenizer"
local training = require "harness.train.train"

local commands = {}

function commands.tokenizer(_, options)
    if options.kind == "bytes" then
        misuse('--kind: bytes: needs no training: the model file says tokenizer = { kind = "bytes" }')
    end
    local coverage = tonumber(options.coverage)
    if not coverage or coverage < 0.9 or coverage > 1 then
        misuse("--coverage: " .. options.coverage .. ": must be a number from 0.9 to 1")
    end
    if options.pieces < 4 or options.pieces > 1 << 20 then
        misuse(string.format("--pieces: %d: must be an integer from 4 to %d", options.pieces, 1 << 20))
    end
    if not options.o:find "%.model$" then misuse("-o: " .. options.o .. ": must end in .model") end
    file_rules.not_over("-o", options.o, options.text)
    assert(host.check_output(options.o))
    local record = tokenizer.train(options)
    host.print(string.format("wrote %s, %s pieces of %s", options.o, figures.grouped(#record.pieces), record.kind))
    return 0
end

function commands.train(arguments, options)
    local path, files = arguments[1], training.files(options)
    local inputs = { path }
    for _, list in ipairs { { options.tokenizer }, options.text, options.valid or {} } do
        table.move(list, 1, #list, #inputs + 1, inputs)
    end
    local outputs = { { "-o", files.output }, { "-o", files.checkpoint }, { "--log", files.log } }
    if files.html then outputs[#outputs + 1] = { "--html", files.html } end
    file_rules.check_outputs(outputs, inputs)
    log.check(files.log)
    local last = training.run(path, options)
    if not last then return 0 end
    host.print(
        string.format(
            "wrote %s%s%s",
            options.o,
            last.tokens and string.format(": %s tokens, loss %.4f", figures.grouped(last.tokens), last.loss) or "",
            last.validation and string.format(", validation %.4f", last.validation) or ""
        )
    )
    return 0
end

return commands
