-- The command convert: harness/convert does the work.
local file_rules = require "commands.file_rules"
local host = require "host"

local commands = {}

function commands.convert(arguments, options)
    local path = arguments[1]
    if options.quick and options.method == "hash-w" then error("--quick: cannot be given beside --method hash-w", 0) end
    if (options.text == nil) == (options.ids == nil) then error("--text is missing, or --ids; not both", 0) end
    if options.tokens < 1024 then error(string.format("--tokens: %d: must be at least 1024", options.tokens), 0) end
    local most = tonumber(options["most-loss"])
    if not most or not (most >= 0) then
        error("--most-loss: " .. options["most-loss"] .. ": must be a number from 0 on", 0)
    end
    local inputs = { path, options.from, options.dense, options.text or options.ids }
    file_rules.not_over("-o", options.o, inputs)
    assert(host.check_output(options.o))
    if options.layers then
        local file = require("harness.convert.layers").path(options.o)
        file_rules.not_over("-o", file, inputs)
        assert(host.check_output(file))
    end
    return require("harness.convert.convert").run(path, options)
end

return commands
