-- The command convert: harness/convert does the work.
local file_rules = require "commands.file_rules"
local host = require "host"

local commands = {}

function commands.convert(arguments, options)
    local path = arguments[1]
    if options.quick and options.method == "hash-w" then error("--quick: cannot be given beside --method hash-w", 0) end
    if options.tokens < 1024 then error(string.format("--tokens: %d: must be at least 1024", options.tokens), 0) end
    file_rules.not_over("-o", options.o, { path, options.from, options.dense, options.text })
    assert(host.check_output(options.o))
    return require("harness.convert.convert").run(path, options)
end

return commands
