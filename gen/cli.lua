-- The commands of lookupc: one table says their arguments, options and help, one parser reads them.
local host = require "host"
local dtype = require "gen.dtype"
local isa = require "gen.isa"
local model_file = require "gen.model"

local isa_option = { name = "isa", value = "LIST", doc = "instruction sets, of " .. table.concat(isa.names, ",") }
local output_option = { name = "o", value = "PATH", required = true }
local weights_option = { name = "weights", value = "FILE", required = true, doc = "safetensors file with the checkpoint's tensors" }
local prefix_option = { name = "prefix", value = "TEXT", default = "", doc = "what stands before the tensor names, such as roberta.encoder.layer.3.FFN." }
local blocks_option = { name = "blocks-in-out", doc = "the checkpoint's BH4 blocks are stored [b in][b out]" }
local seed_option = { name = "seed", value = "N", default = 1, integer = true, doc = "of the random numbers" }
local schedule_option = { name = "schedule", value = "CHOICES", doc = "choices such as gather.group=8,gather.columns=128 (see lookupc schedules)" }
local tables_option = { name = "tables", value = "TYPE", doc = "type of the tables' elements: " .. table.concat(dtype.names, ", ") .. "; default f32" }
local projection_option = { name = "projection", value = "TYPE", doc = "type of the projection's weights: " .. table.concat(dtype.projection_names, ", ") .. "; default f32" }
local threads_option = { name = "threads", value = "N", default = 1, integer = true, doc = "most threads of a call; more than one: an OpenMP build" }
local json_option = { name = "json", doc = "print JSON for machines" }
local compiler_option = { name = "cc", value = "COMPILER", default = "gcc", doc = "compiles the emitted C" }
local flags_option = { name = "cflags", value = "FLAGS", default = "-O2", doc = "its flags, beside those of the instruction set" }

local function with(option, changes)
    local copy = {}
    for key, value in pairs(option) do copy[key] = value end
    for key, value in pairs(changes) do copy[key] = value end
    return copy
end

-- One row a command; `run` is the function of that name in the module `from`.
local commands = {
    { name = "plan", arguments = { "MODEL.lua" }, from = "gen.commands", doc = "print shapes, MFLOP and bytes of a model",
        options = { json_option, isa_option, schedule_option, tables_option, projection_option } },
    { name = "schedules", arguments = { "MODEL.lua" }, from = "gen.commands", doc = "list every choice of a schedule with its legal values",
        options = { json_option, isa_option, schedule_option, tables_option, projection_option } },
    { name = "emit", arguments = { "MODEL.lua" }, from = "gen.commands", doc = "write the C sources of a model into a folder",
        options = { with(output_option, { value = "DIR", doc = "folder of the bundle" }), isa_option, schedule_option, tables_option, projection_option } },
    { name = "check", arguments = { "DIR" }, from = "gen.commands", doc = "exit 1 if a vendored bundle is stale or was edited", options = {} },
    { name = "sample", arguments = { "MODEL.lua" }, from = "gen.commands", doc = "write random weights under the checkpoint's tensor names",
        options = { seed_option, with(output_option, { value = "FILE", doc = "safetensors file" }), prefix_option } },
    { name = "pack", arguments = { "MODEL.lua" }, from = "gen.commands", doc = "fold weights in float64 and lay them out for the kernels",
        options = { weights_option, with(output_option, { value = "FILE", doc = "blob for <model>_bind" }), prefix_option, blocks_option, schedule_option, tables_option, projection_option } },
    { name = "run", arguments = { "MODEL.lua" }, from = "harness.commands", doc = "apply a model to a .npy file, [tokens][d] float32",
        options = { weights_option, { name = "input", value = "X.npy", required = true, doc = "float32 [tokens][d]" },
            { name = "output", value = "Y.npy", required = true, doc = "float32 [tokens][d_out]" }, isa_option, prefix_option, blocks_option,
            schedule_option, tables_option, projection_option, compiler_option, flags_option } },
    { name = "verify", arguments = { "MODEL.lua" }, from = "harness.commands", doc = "compare every emitted kernel with the float64 reference",
        options = { with(weights_option, { required = false, doc = "safetensors file; absent: random weights" }), isa_option, seed_option, prefix_option,
            blocks_option, schedule_option, tables_option, projection_option, threads_option, compiler_option, flags_option, json_option } },
    { name = "bench", arguments = { "MODEL.lua" }, from = "harness.commands", doc = "time the emitted kernels against the dense FFN through OpenBLAS and oneDNN",
        options = { { name = "batch", value = "LIST", default = "1,8,64,512,4096", doc = "tokens a call" }, isa_option, json_option, seed_option, schedule_option,
            with(tables_option, { value = "LIST", default = "f32", doc = "types of the tables' elements, measured in one run, of " .. table.concat(dtype.names, ",") }),
            with(projection_option, { value = "LIST", default = "f32", doc = "types of the projection's weights, likewise, of " .. table.concat(dtype.projection_names, ",") }), threads_option,
            { name = "html", value = "FILE", doc = "also write a page with charts" },
            { name = "repetitions", value = "N", default = 7, integer = true, doc = "interleaved repetitions of every measurement" },
            compiler_option, flags_option } },
    { name = "help", arguments = { "[COMMAND]" }, doc = "print this, or all about one command", options = {} },
}

local function find(name)
    for _, command in ipairs(commands) do
        if command.name == name then return command end
    end
end

local function dashes(option) return (#option.name == 1 and "-" or "--") .. option.name end

local function usage_error(text, command)
    return setmetatable({ text = text, command = command }, { __name = "usage" })
end

local function option_words(option)
    return dashes(option) .. (option.value and " " .. option.value or "")
end

local function usage(command)
    local words = { "lookupc", command.name, table.unpack(command.arguments) }
    for _, option in ipairs(command.options) do
        local text = option_words(option)
        words[#words + 1] = option.required and text or "[" .. text .. "]"
    end
    return table.concat(words, " ")
end

local function help_all()
    local lines = { "lookupc turns a model file into specialised C.", "", "usage: lookupc [--tree DIR] COMMAND …", "" }
    for _, command in ipairs(commands) do lines[#lines + 1] = string.format("  %-9s %-11s %s", command.name, table.concat(command.arguments, " "), command.doc) end
    lines[#lines + 1] = ""
    lines[#lines + 1] = "  --version            print the version"
    lines[#lines + 1] = "  --tree DIR           take Lua modules and templates from DIR, a checkout, instead of from the program"
    lines[#lines + 1] = ""
    lines[#lines + 1] = "A model file is a Lua table of data:"
    for _, line in ipairs(model_file.describe()) do lines[#lines + 1] = line end
    return table.concat(lines, "\n")
end

local function help_command(command)
    local lines = { "usage: " .. usage(command), "", command.doc .. "." }
    if #command.options > 0 then lines[#lines + 1] = "" end
    for _, option in ipairs(command.options) do
        local default = option.default ~= nil and option.default ~= "" and " (" .. option.default .. ")" or ""
        lines[#lines + 1] = string.format("  %-18s %s%s", option_words(option), option.doc, default)
    end
    return table.concat(lines, "\n")
end

local function parse(command, words)
    local arguments, options, i = {}, {}, 1
    local by_name, list = {}, {}
    for _, option in ipairs(command.options) do by_name[dashes(option)] = option list[#list + 1] = dashes(option) end
    while i <= #words do
        local word = words[i]
        if word:find("^%-.") then
            local name, value = word:match("^(%-%-[^=]+)=(.*)$")
            name = name or word
            local option = by_name[name]
            if not option then
                local near = model_file.nearest(name, list)
                return nil, usage_error("unknown option " .. name .. (near and "; did you mean " .. near .. "?" or ""), command)
            end
            if option.value then
                if not value then i = i + 1 value = words[i] end
                if value == nil or value == "" and option.required then return nil, usage_error(name .. ": needs a value, " .. option.value, command) end
                if option.integer then
                    local number = value:find("^%d+$") and math.tointeger(tonumber(value))
                    if not number or number > 4294967295 then return nil, usage_error(name .. ": " .. value .. ": must be an integer from 0 to 4294967295", command) end
                    value = number
                end
            elseif value then
                return nil, usage_error(name .. ": takes no value", command)
            else
                value = true
            end
            if options[option.name] ~= nil then return nil, usage_error(name .. ": given twice", command) end
            options[option.name] = value
        else
            arguments[#arguments + 1] = word
        end
        i = i + 1
    end
    for _, option in ipairs(command.options) do
        if options[option.name] == nil then options[option.name] = option.default end
        if option.required and options[option.name] == nil then return nil, usage_error(dashes(option) .. " is missing", command) end
    end
    local optional = command.arguments[1] and command.arguments[1]:find("^%[")
    if #arguments > #command.arguments or #arguments < #command.arguments and not optional then
        return nil, usage_error("takes " .. table.concat(command.arguments, " ") .. ", got " .. (#arguments == 0 and "nothing" or table.concat(arguments, " ")), command)
    end
    return arguments, options
end

local function fail_usage(problem)
    local command = problem.command
    host.note("lookupc" .. (command and " " .. command.name or "") .. ": " .. problem.text .. " (see lookupc help" .. (command and " " .. command.name or "") .. ")")
    return 2
end

return function(words)
    local name = words[1]
    if name == "--version" then host.print("lookupc " .. host.version) return 0 end
    if name == nil or name == "--help" or name == "-h" then name = "help" end
    local command = find(name)
    if not command then
        local list = {}
        for i, row in ipairs(commands) do list[i] = row.name end
        local near = model_file.nearest(name, list)
        return fail_usage(usage_error('unknown command "' .. name .. '"' .. (near and "; did you mean " .. near .. "?" or "")))
    end
    local rest = { table.unpack(words, 2) }
    if command.name ~= "help" and (rest[1] == "--help" or rest[1] == "-h") then
        host.print(help_command(command))
        return 0
    end
    local arguments, options = parse(command, rest)
    if not arguments then return fail_usage(options) end
    if command.name == "help" then
        local about = arguments[1] and find(arguments[1])
        if arguments[1] and not about then return fail_usage(usage_error('unknown command "' .. arguments[1] .. '"')) end
        host.print(about and help_command(about) or help_all())
        return 0
    end
    return require(command.from)[command.name](arguments, options)
end
