-- The commands that read transformers' checkpoints: fuse, import.
local file_rules = require "commands.file_rules"
local fuse = require "gen.weights.fuse"
local host = require "host"
local import = require "gen.import.config_json"
local json = require "json"
local model_file = require "gen.model.file"
local weights = require "fuse"

local commands = {}

-- The value of an option that is a number, or one line.
local function number_option(options, name)
    local value = tonumber(options[name])
    if not value or not (value > 0) then
        error(string.format("--%s: %s: must be a number above 0", name, options[name]), 0)
    end
    return value
end

local dtypes = { f32 = "F32", bf16 = "BF16", f16 = "F16", f64 = "F64" }

-- Paths of the files to be written, and what else the job needs for several.
local function output_of(job, options, files)
    local path, names = options.o, {}
    if not options["shard-mib"] then
        job.files = { { path = path, tensors = files[1] } }
        return
    end
    job.files = {}
    for i, tensors in ipairs(files) do
        names[i] = string.format("model-%05d-of-%05d.safetensors", i, #files)
        job.files[i] = { path = path .. "/" .. names[i], tensors = tensors }
    end
    job.directory, job.index = path, path .. "/model.safetensors.index.json"
    job.index_text = assert(json.encode(fuse.index(files, names))) .. "\n"
    for _, file in ipairs { { path = job.index }, table.unpack(job.files) } do
        if host.kind(file.path) then error("-o: " .. file.path .. ": exists: choose another folder", 0) end
    end
end

-- What the steps of a layer found, as a line of a table.
local function report_lines(found)
    local lines = { string.format("%-52s %10s %10s %10s", "", "condition", "residual", "error") }
    for _, row in ipairs(found) do
        if row.condition then
            lines[#lines + 1] = string.format("%-52s %10.2g", row.name, row.condition)
        else
            lines[#lines + 1] = string.format("%-52s %10s %10.2g %10.2g", row.name, "", row.residual, row.error)
        end
    end
    return lines
end

local function largest(found, key)
    local most
    for _, row in ipairs(found) do
        if row[key] and (not most or row[key] > most[key]) then most = row end
    end
    return most
end

-- Fuses a checkpoint: { eliminate, type (nil: as it is), weights, o, shard-mib, max-condition, max-error }. Returns
-- what its steps found.
function commands.fuse_weights(m, options)
    local condition, most_error = number_option(options, "max-condition"), number_option(options, "max-error")
    local found, inputs = weights.tensors(options.weights)
    if not found then error(inputs, 0) end
    file_rules.not_over("-o", options.o, { options.model, options.weights, table.unpack(inputs) })
    local steps = fuse.steps(m, found, options.weights, options.eliminate, dtypes[options.type])
    local job = {
        weights = options.weights,
        steps = steps.steps,
        work = steps.work,
        most_condition = condition,
        most_error = most_error,
    }
    output_of(job, options, fuse.files(steps.tensors, options["shard-mib"] and options["shard-mib"] << 20))
    return assert(weights.run(job))
end

function commands.fuse(arguments, options)
    local m = model_file.load(arguments[1])
    model_file.only_transformer(m)
    local eliminate = options.eliminate or m.attention.eliminate
    fuse.check(m, eliminate, options.eliminate ~= nil)
    if options.type and not dtypes[options.type] then
        error("--type: " .. options.type .. ": must be one of f32, bf16, f16, f64", 0)
    end
    if options["shard-mib"] == 0 then error("--shard-mib: 0: must be at least 1", 0) end
    local results =
        commands.fuse_weights(m, setmetatable({ model = arguments[1], eliminate = eliminate }, { __index = options }))
    if options.report then host.print(table.concat(report_lines(results), "\n")) end
    local worst, off = largest(results, "condition"), largest(results, "error")
    host.print(
        string.format(
            "wrote %s without %s, %d layers%s%s",
            options.o,
            eliminate,
            m.layers,
            worst and string.format(", condition numbers up to %.2g (%s)", worst.condition, worst.name) or "",
            off and string.format(", errors up to %.2g (%s)", off.error, off.name) or ""
        )
    )
    return 0
end

function commands.import(arguments, options)
    local path = arguments[1]
    file_rules.not_over("-o", options.o, { path })
    local text = import.model(path, { name = options.name, eliminate = options.eliminate, skipless = options.skipless })
    assert(host.write_file(options.o, text))
    host.print("wrote " .. options.o)
    return 0
end

return commands
