-- The commands that take text in and give an answer out: embed, similar, generate, perplexity. The model's family does
-- the work.
local file_rules = require "commands.file_rules"
local harness = require "harness.families.list"
local host = require "host"
local misuse = require "gen.schema.misuse"
local request = require "gen.request.request"

local commands = {}

-- The function `command` of the model's family; raises one line for a family without it.
local function work_of(command, path, options)
    local _, family = request.model(path, options)
    local work = harness.get(family.name).text
    if not work then
        error(string.format("%s: is a %s: %s takes whole models, which have embedding", path, family.noun, command), 0)
    end
    return work[command]
end

function commands.embed(arguments, options)
    local path = arguments[1]
    local work = work_of("embed", path, options)
    if options.o then
        if options.json then misuse("--json: cannot be given beside -o") end
        file_rules.not_over("-o", options.o, { path, options.tuned })
        assert(host.check_output(options.o))
    end
    return work(path, { table.unpack(arguments, 2) }, options)
end

function commands.similar(arguments, options)
    return work_of("similar", arguments[1], options)(arguments[1], { table.unpack(arguments, 2) }, options)
end

function commands.generate(arguments, options)
    return work_of("generate", arguments[1], options)(arguments[1], { table.unpack(arguments, 2) }, options)
end

function commands.perplexity(arguments, options)
    return work_of("perplexity", arguments[1], options)(arguments[1], options)
end

return commands
