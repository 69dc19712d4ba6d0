-- The commands that write checkpoints: fuse, quantise, import.
local dtype = require "gen.plan.dtype"
local figures = require "gen.plan.figures"
local file_rules = require "commands.file_rules"
local files_read = require "gen.host.files_read"
local fuse = require "gen.families.model.blocks.fuse"
local fuse_weights = require "gen.families.model.blocks.fuse_weights"
local host = require "host"
local import = require "gen.import.import"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local packing = require "gen.families.packing"
local request = require "gen.request.request"
local rules = require "gen.families.model.model"
local safetensors_bytes = require "gen.import.safetensors_bytes"
local validated = require "gen.schema.validated"
local weights = require "weights"

local commands = {}

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

-- The transformer of a model file: blocks alone, or a whole model whose blocks are all of one shape.
local function loaded(path)
    local m = model_file.load(path)
    fuse.only_transformer(m)
    if not m.embedding then return m end
    if m.embedding.projected then
        local rule = "must be absent: fuse merges the maps that this looks up into the embedding"
        validated.refuse(m, { "embedding", "projected" }, true, rule)
    end
    return rules.of_one_shape(m)
        or validated.refuse(m, { "layers" }, nil, "fuse merges weights of blocks that are all of one shape")
end

function commands.fuse(arguments, options)
    local m = loaded(arguments[1])
    local eliminate = options.eliminate or m.attention.eliminate
    fuse.check(m, eliminate, options.eliminate ~= nil)
    local own = setmetatable({ eliminate = eliminate }, { __index = options })
    file_rules.not_over("-o", options.o)
    local results = fuse_weights.fuse(m, own)
    if options.report then host.print(table.concat(report_lines(results), "\n")) end
    local worst, off = largest(results, "condition"), largest(results, "error")
    host.print(
        string.format(
            "wrote %s %s, %s%s%s",
            options.o,
            eliminate == "none" and "with values made of keys" or "without " .. eliminate,
            figures.plural(m.layers, "layer"),
            worst and string.format(", condition numbers up to %.2g (%s)", worst.condition, worst.name) or "",
            off and string.format(", errors up to %.2g (%s)", off.error, off.name) or ""
        )
    )
    return 0
end

-- The plan whose weights `quantise --type` writes, the forms of their tensors, and how many lie transposed.
local function planned(path, options)
    local types = dtype.of_parts(options.type)
    if not (types.blocks.groups or types.head.groups or types.embedding.groups) then
        local rule = "must have a part in i4, u4 or q8; without --type all matrices are in i8"
        misuse(string.format("--type: %s: %s", options.type, rule))
    end
    local p = request.plan(options.model, nil, {
        type = options.type,
        tables = options.tables == "i4" and "i4" or nil,
        isa = "scalar",
        tokenizer = options.tokenizer,
    })
    return p, packing.forms(p, packing.files({ weights = path, ignore = options.ignore }))
end

function commands.quantise(arguments, options)
    local path = arguments[1]
    files_read.note_checkpoint(path)
    file_rules.not_over("-o", options.o)
    file_rules.can_become("-o", options.o)
    local how, p, transposed = options.tables == "i4", nil, 0
    local text = options.calibrate or options["calibrate-ids"]
    if options.type then
        p, how, transposed = planned(path, options)
    end
    local rounding, nearest, off
    if text then
        local halves = options.type:find "[iu]4"
        if not halves then misuse("--calibrate: is for matrices in i4 and u4, not " .. options.type) end
        file_rules.not_over("-o", options.o, { text })
        local round = require "harness.families.model.rounded_for_text"
        local files = packing.files({ weights = path, ignore = options.ignore })
        rounding, nearest, off = round(options.model, p, how, files, options)
    end
    local share, message = weights.quantise(path, options.o, how, rounding and rounding:given())
    if not share then error(message, 0) end
    if rounding then
        local form = "wrote %s, outputs of matrices are off by %.3g, rounded to the nearest by %.3g"
        host.print(form:format(options.o, off, nearest))
    else
        host.print(string.format("wrote %s, relative error %.2g", options.o, share))
    end
    if transposed > 0 then
        host.print(string.format("%s: %d matrices lie transposed and stay in F32", path, transposed))
    end
    return 0
end

function commands.import(arguments, options)
    local path, output = arguments[1], options.o
    local weights_only = output:find "%.safetensors$" ~= nil
    local tensors = weights_only and output or output:gsub("%.lua$", "") .. ".safetensors"
    file_rules.not_over("-o", output, { path })
    if output ~= "-" then file_rules.can_become("-o", output) end
    local found = import.read(path, {
        name = options.name,
        eliminate = options.eliminate,
        skipless = options.skipless,
        output = output,
    })
    if output == "-" then
        if not found.text or found.tensors then misuse("-o: -: " .. path .. ": has weights: name a model file") end
        host.print(found.text)
        return 0
    end
    if weights_only and not found.tensors then
        misuse("-o: " .. output .. ": the weights of " .. path .. " need no conversion: name a model file")
    end
    if not found.text and not weights_only then
        misuse(
            "-o: "
                .. output
                .. ": the graph in "
                .. path
                .. " is no model that is known here: -o WEIGHTS.safetensors writes its tensors"
        )
    end
    if found.tensors then
        file_rules.not_over("-o", tensors, { path })
        file_rules.can_become("-o", tensors)
        assert(host.write_file(tensors, safetensors_bytes.of(found.tensors)))
        host.print("wrote " .. tensors)
    end
    if not weights_only then
        assert(host.write_file(output, found.text))
        host.print("wrote " .. output)
    end
    if found.note then host.print(found.note) end
    return 0
end

return commands
