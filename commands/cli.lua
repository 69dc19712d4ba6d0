-- The command line: reads it by the table of commands (commands/list.lua), and runs what it says.
local completion = require "commands.completion"
local files_read = require "gen.host.files_read"
local host = require "host"
local man = require "commands.man"
local model_file = require "gen.families.model_file"
local one_of = require "gen.schema.one_of"
local option_rules = require "commands.option_rules"
local schema = require "gen.schema.schema"
local words = require "commands.words"

local commands = require "commands.list"

local function find(name)
    for _, command in ipairs(commands) do
        if command.name == name then return command end
    end
end

-- The command that `given` starts with, of one word or two, and how many that is.
local function first_command(given)
    local two = given[2] and find(given[1] .. " " .. given[2])
    if two then return two, 2 end
    return given[1] and find(given[1]), 1
end

-- The commands that start with the word `name`, such as tuned.
local function family(name)
    local list = {}
    for _, command in ipairs(commands) do
        if command.name:match("^(%S+) ") == name then list[#list + 1] = command end
    end
    return list
end

local usage_kind = { __name = "usage" }
local function usage_error(text, command) return setmetatable({ text = text, command = command }, usage_kind) end

local function usage(command)
    local list = { "lookupc", command.name, table.unpack(command.arguments) }
    for _, option in ipairs(command.options) do
        local text = words.option(option)
        list[#list + 1] = option.required and text or "[" .. text .. "]"
    end
    return table.concat(list, " ")
end

local function help_all()
    local lines =
        { "lookupc turns a model file into specialised C.", "", "usage: lookupc [--tree DIR] COMMAND …", "" }
    for _, command in ipairs(commands) do
        lines[#lines + 1] =
            string.format("  %-12s %-19s %s", command.name, table.concat(command.arguments, " "), command.doc)
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = "  -V, --version        print the version"
    lines[#lines + 1] =
        "  --tree DIR           take Lua modules and templates from DIR, a checkout, instead of from the program"
    lines[#lines + 1] = ""
    lines[#lines + 1] =
        "lookupc help COMMAND says more of one; lookupc help model prints the keys of model files."
    return table.concat(lines, "\n")
end

-- What else there is help of than commands.
local topics = {}

function topics.model()
    return "A model file is a Lua table of data:\n" .. table.concat(model_file.describe(), "\n")
end

local function help_command(command)
    local lines = { "usage: " .. usage(command), "", command.doc .. "." }
    if #command.options > 0 then lines[#lines + 1] = "" end
    for _, option in ipairs(command.options) do
        local text = option.doc .. words.default(option) .. option_rules.text(option)
        lines[#lines + 1] = string.format("  %-22s %s", words.option(option), text)
    end
    for _, example in ipairs(command.examples) do
        table.move({ "", "Example: " .. example[1] .. ":", "  " .. example[2] }, 1, 3, #lines + 1, lines)
    end
    return table.concat(lines, "\n")
end

-- Whether `option` may be missing beside the options given.
local function excused(option, options)
    for _, name in ipairs(option.unless or {}) do
        if options[name] then return true end
    end
    return false
end

-- What to say without `option`, which the command needs, or one of those that it names in `unless`.
local function missing_option(command, option)
    local text = words.dashes(option) .. " is missing: " .. option.value
    if option.doc then text = text .. ", " .. option.doc end
    for i, name in ipairs(option.unless or {}) do
        text = text .. (i == 1 and "; or give --" or i < #option.unless and ", --" or " or --") .. name
    end
    return usage_error(text, command)
end

-- What may be empty, by what help calls it: a script's unset variable is no path, no number and no name.
local may_be_empty = { TEXT = true, PROMPT = true, FLAGS = true }

-- Whether `value`, given for what help calls `name`, lacks what it takes.
local function is_empty(name, value) return value == "" and not may_be_empty[words.bare(name)] end

-- Raises one line for a value that `option`, which was typed as `name`, does not take.
local function check_value(name, option, value)
    if option.check then return option.check(value) end
    if not option.values then return end
    if option.value == "LIST" then
        one_of.words(name, value, option.values)
    else
        one_of.check(name, value, option.values)
    end
end

-- The option of `command` that `word` names, the name as it was typed, and the value that is part of the word.
local function option_of(command, word)
    local by_name = {}
    for _, option in ipairs(command.options) do
        by_name[words.dashes(option)] = option
    end
    local name, value = word:match("^(%-%-[^=]+)=(.*)$")
    if not name and by_name[word:sub(1, 2)] then -- -oDIR
        name, value = word:match("^(%-%a)(.+)$")
    end
    return by_name[name or word], name or word, value
end

local function unknown_option(command, name)
    local list = {}
    for i, option in ipairs(command.options) do
        list[i] = words.dashes(option)
    end
    local near = schema.nearest(name, list)
    return "unknown option " .. name .. (near and "; did you mean " .. near .. "?" or "")
end

-- The value of `option`, which word `at` of `given` names as `name`, perhaps with the `value`, and the number of its
-- last word; nil and what is wrong.
local function value_of(option, name, value, given, at)
    if not option.value then
        if value then return nil, name .. ": takes no value" end
        return true, at
    end
    if not value then
        at = at + 1
        value = given[at]
    end
    local is_list = words.is_list(option)
    if value == nil or is_empty(option.value, value) or is_list and value:find "^%-." then
        return nil, name .. ": needs a value, " .. option.value
    end
    if option.integer then
        local number = value:find("^%d+$") and math.tointeger(tonumber(value))
        if not number or number > 4294967295 then
            return nil, name .. ": " .. value .. ": must be an integer from 0 to 4294967295"
        end
        value = number
    end
    check_value(name, option, value)
    if not is_list then return value, at end
    value = { value }
    while given[at + 1] and not given[at + 1]:find "^%-." do
        at = at + 1
        value[#value + 1] = given[at]
        if is_empty(option.value, given[at]) then return nil, name .. ": a value is empty: " .. option.value end
    end
    return value, at
end

-- What is wrong with the arguments, nil: nothing.
local function wrong_arguments(command, arguments)
    local takes, last = #command.arguments, command.arguments[#command.arguments] or ""
    local optional, repeats = last:find("^%["), last:find("...", 1, true)
    if #arguments < takes - (optional and 1 or 0) then
        return words.bare(command.arguments[#arguments + 1]) .. " is missing"
    end
    if #arguments > takes and not repeats then
        local wanted = takes == 0 and "no argument" or table.concat(command.arguments, " ")
        return "takes " .. wanted .. ", got " .. table.concat(arguments, " ")
    end
    for at, argument in ipairs(arguments) do
        local name = command.arguments[math.min(at, takes)]
        if is_empty(name, argument) then return words.bare(name) .. " is empty" end
        if command.values then one_of.check(words.bare(name), argument, command.values) end
    end
end

-- Arguments and options of the words `given` behind `command`; nil and what is wrong.
local function parse(command, given)
    local arguments, options, i = {}, {}, 1
    local only_arguments = false -- behind --
    while i <= #given do
        local word = given[i]
        if word == "--" and not only_arguments then
            only_arguments = true
        elseif word:find("^%-.") and not only_arguments then
            local option, name, own = option_of(command, word)
            if not option then return nil, usage_error(unknown_option(command, name), command) end
            local value, last = value_of(option, name, own, given, i)
            if value == nil then return nil, usage_error(last, command) end
            if options[option.name] ~= nil then return nil, usage_error(name .. ": given twice", command) end
            options[option.name], i = value, last
        else
            arguments[#arguments + 1] = word
        end
        i = i + 1
    end
    local wrong = wrong_arguments(command, arguments)
    if wrong then return nil, usage_error(wrong, command) end
    option_rules.check(command, options)
    for _, option in ipairs(command.options) do
        if options[option.name] == nil then options[option.name] = option.default end
        if option.required and options[option.name] == nil and not excused(option, options) then
            return nil, missing_option(command, option)
        end
    end
    return arguments, options
end

local function fail_usage(problem)
    local command = problem.command
    host.note(
        "lookupc"
            .. (command and " " .. command.name or "")
            .. ": "
            .. problem.text
            .. " (see lookupc help"
            .. (command and " " .. command.name or "")
            .. ")"
    )
    return 2
end

local function unknown_command(name, next_word)
    local list, members = {}, {}
    for i, row in ipairs(commands) do
        list[i] = row.name
    end
    for i, member in ipairs(family(name)) do
        members[i] = member.name:match("%S+$")
    end
    if members[1] then
        local text = next_word and string.format('unknown command "%s %s"; ', name, next_word) or ""
        return usage_error(text .. name .. " takes one of " .. table.concat(members, ", "))
    end
    local near = schema.nearest(name, list)
    return usage_error('unknown command "' .. name .. '"' .. (near and "; did you mean " .. near .. "?" or ""))
end

-- The commands about lookupc itself.
local own = {}

function own.version()
    host.print("lookupc " .. host.version)
    return 0
end

function own.completion(arguments)
    host.print(table.concat(completion[arguments[1]](commands), "\n"))
    return 0
end

function own.help(arguments, options)
    if options.man then
        assert(host.write_directory(options.man, man.pages(commands)))
        return 0
    end
    local about, topic = arguments[1] and find(arguments[1]), topics[arguments[1]]
    local members = family(arguments[1] or "")
    if topic then
        host.print(topic())
        return 0
    end
    if arguments[1] and not about and not members[1] then return fail_usage(unknown_command(arguments[1])) end
    for i, member in ipairs(members) do
        host.print((i > 1 and "\n" or "") .. help_command(member))
    end
    if members[1] then return 0 end
    host.print(about and help_command(about) or help_all())
    return 0
end

-- Options that name a checkpoint to be read.
local checkpoints = { "weights", "from" }

-- Options that stand for a command.
local short = { ["--version"] = "version", ["-V"] = "version", ["--help"] = "help", ["-h"] = "help" }

local function execute(given)
    if not given[1] then
        host.note(help_all())
        return 2
    end
    local name = short[given[1]] or given[1]
    local command, used = first_command { name, table.unpack(given, 2) }
    if not command then return fail_usage(unknown_command(name, given[2])) end
    local rest = { table.unpack(given, used + 1) }
    if command.name == "help" and family(rest[1] or "")[1] then rest = { table.concat(rest, " ") } end
    if command.name ~= "help" and (rest[1] == "--help" or rest[1] == "-h") then
        host.print(help_command(command))
        return 0
    end
    local arguments, options = parse(command, rest)
    if not arguments then return fail_usage(options) end
    files_read.keep()
    for _, option in ipairs(checkpoints) do
        if options[option] then files_read.note_checkpoint(options[option]) end
    end
    local run = own[command.name] or require(command.from)[command.name:match "%S+$"]
    local status, missing = run(arguments, options)
    if status then return status end
    for _, option in ipairs(command.options) do
        if option.name == missing then return fail_usage(missing_option(command, option)) end
    end
end

-- cli(words) runs the command that `words` name and returns its exit status; cli.commands: the table.
return setmetatable({ commands = commands }, { __call = function(_, given) return execute(given) end })
