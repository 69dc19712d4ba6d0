-- The commands that need no compiler, no clock and no CPU: plan, emit, check, sample, pack.
local benchmark = require "gen.emit.benchmark"
local bundle = require "gen.request.bundle"
local emit = require "gen.emit.emit"
local extras = require "gen.emit.extras"
local families = require "gen.families.list"
local figures = require "gen.plan.figures"
local file_rules = require "commands.file_rules"
local files_read = require "gen.host.files_read"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local languages = require "gen.emit.languages"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local packing = require "gen.families.packing"
local request = require "gen.request.request"
local validated = require "gen.schema.validated"

local commands = {}

local function load_plan(path, options) return request.plan(path, nil, options) end

function commands.plan(arguments, options)
    if options.profile then
        local firmware = require "harness.firmware.build" -- needs the target's compiler
        local found = firmware.figures(arguments[1], options)
        host.print(options.json and assert(json.encode(firmware.figures_json(found))) or firmware.figures_text(found))
        return 0
    end
    local m, family = request.model(arguments[1], options)
    local function make() return load_plan(arguments[1], options) end
    if options.json then
        host.print(assert(json.encode(family.summary(m, make))))
    else
        host.print(table.concat(family.describe(m, make, options), "\n"))
    end
    return 0
end

function commands.schedules(arguments, options)
    local p = load_plan(arguments[1], options)
    local space, sets = families.get(p.family).space, {}
    if not space then error(arguments[1] .. ": has no choices: it has one schedule", 0) end
    for i, v in ipairs(p.variants) do
        sets[i] = { isa = v.isa.name, choices = json.array(space.legal(p.shape, v.isa, v.schedule)) }
    end
    if options.json then
        host.print(assert(json.encode { model = p.model.name, sets = json.array(sets) }))
        return 0
    end
    for _, set in ipairs(sets) do
        host.print(set.isa)
        for _, choice in ipairs(set.choices) do
            host.print(
                string.format(
                    "  %-16s %6d  of %-38s %s",
                    choice.key,
                    choice.chosen,
                    table.concat(choice.values, " "),
                    choice.doc
                )
            )
        end
    end
    return 0
end

-- Options of emit that only one of its two profiles has.
local of_firmware =
    { "target", "target-flags", "weights", "ignore", "weights-array", "wrap", "without-misra", "flash", "ram", "stack" }
local of_bundles = { "for", "linked", "fixed-names", "single-file", "training", "cmake", "meson", "make", "cpp" }

local not_of_pages = { "o", "list", "profile", "isa", "benchmark", table.unpack(of_bundles) }
for _, name in ipairs(of_firmware) do
    if name ~= "weights" and name ~= "ignore" then not_of_pages[#not_of_pages + 1] = name end
end

-- The language whose package emit is asked for, or nil; raises one line for options that go with none.
local function language_of(options)
    for _, row in ipairs(languages.list) do
        if options[row.name] then
            local others = { "o", "web", "profile", "benchmark" }
            for _, name in ipairs(of_bundles) do
                if name ~= "for" then others[#others + 1] = name end -- a package has kernels as a bundle has
            end
            table.move(of_firmware, 1, #of_firmware, #others + 1, others)
            for _, other in ipairs(languages.list) do
                if other ~= row then others[#others + 1] = other.name end
            end
            for _, name in ipairs(others) do
                local dashes = #name > 1 and "--" or "-"
                if options[name] then
                    misuse(string.format("--%s: cannot be given beside %s%s", row.name, dashes, name))
                end
            end
            return row.name
        end
    end
end

-- What gen/emit/extras.lua shall add for these options.
local function extras_of(options, p)
    local wanted = { linked = options.linked, single_file = options["single-file"], training = options.training }
    wanted.cmake, wanted.meson, wanted.make, wanted.cpp = options.cmake, options.meson, options.make, options.cpp
    if options.benchmark then wanted.benchmark = json.array(benchmark.batches(options.batch)) end
    if options["single-file"] and options["fixed-names"] then
        misuse("--fixed-names: cannot be given beside --single-file")
    end
    if options["single-file"] and options.training then misuse("--training: cannot be given beside --single-file") end
    if options["fixed-names"] then
        local names = {}
        for i, set in ipairs(isa.select(options.isa, families.get(p.family).isa_types(options, p.model))) do
            names[i] = set.name
        end
        wanted.fixed = json.array(names)
    end
    return wanted
end

-- The plan and the files of a web page.
local function web_page(path, options)
    for _, name in ipairs(not_of_pages) do
        local dashes = #name > 1 and "--" or "-"
        if options[name] then misuse("--web: cannot be given beside " .. dashes .. name) end
    end
    if not options.weights then misuse("--weights: is missing: --web needs it") end
    local build = require "harness.web.build" -- needs a compiler for WebAssembly
    return build.page(path, options)
end

-- The plan of what emit is asked for, and its files.
local function emitted(path, options)
    local language = language_of(options)
    if language then
        local p = load_plan(path, options)
        return p, languages.files(p, language)
    end
    if options.web then return web_page(path, options) end
    for _, name in ipairs(options.profile and of_bundles or of_firmware) do
        if options[name] then
            local page = (name == "weights" or name == "ignore") and " and --web" or ""
            misuse(
                string.format("--%s: is %s --profile firmware%s", name, options.profile and "not for" or "for", page)
            )
        end
    end
    if options.profile == nil then
        local p = load_plan(path, options)
        return p, emit.files(p, extras_of(options, p))
    end
    for _, name in ipairs { "target", "weights" } do
        if not options[name] then misuse(string.format("--%s: is missing: --profile firmware needs it", name)) end
    end
    if options.isa then misuse("--isa: " .. options.isa .. ": is what --target decides") end
    local firmware = require "harness.firmware.build" -- needs the target's compiler
    local b = firmware.build(path, options)
    return b.plan, firmware.files(b, options)
end

-- Raises one line if the model of the file `path` has another name than `name`.
local function check_name(path, name)
    local m = request.model(path, {})
    if m.name ~= name then
        local from = ", as --name says (in lookupc_add_library: NAME, or else the name of the model's file)"
        validated.refuse(m, { "name" }, m.name, 'must be "' .. name .. '"' .. from)
    end
end

-- Raises one line if the file that tells a build system what the output depends on cannot be written: before anything
-- is.
local function check_depfile(options)
    if not options.depfile then return end
    file_rules.not_over("--depfile", options.depfile)
    file_rules.can_be_made(options.depfile)
end

-- Raises one line if it would take the place of one of the files that have been read, or of those that are `made`.
local function check_depfile_apart(options, made)
    if not options.depfile then return end
    file_rules.not_over("--depfile", options.depfile)
    file_rules.not_over_output("--depfile", options.depfile, made)
end

-- Writes the file that tells a build system what `made` depends on, if the command is asked for it.
local function write_depfile(options, made)
    if not options.depfile then return end
    if options["depfile-target"] then made = { options["depfile-target"] } end
    file_rules.make(options.depfile, files_read.rule(made))
end

-- Prints what the command has done, unless it shall not.
local function say(options, text)
    if not options.quiet then host.print(text) end
end

local function list_files(files, folder, options)
    local lines, list = {}, {}
    for i, file in ipairs(files) do
        lines[i] = (folder and folder .. "/" or "") .. file.name
        local flags = extras.flags(file)
        list[i] = { name = lines[i], flags = flags and json.array(flags) }
    end
    host.print(options.json and assert(json.encode { files = json.array(list) }) or table.concat(lines, "\n"))
end

function commands.emit(arguments, options)
    local folder = options.web or options.python or options.rust or options.o
    if options.name then check_name(arguments[1], options.name) end
    if options.rename and not names.valid(options.rename) then
        misuse(string.format('--rename: "%s": %s', options.rename, names.rule))
    end
    check_depfile(options)
    local p, files = emitted(arguments[1], options)
    local contents, paths = {}, {}
    for i, file in ipairs(files) do
        contents[file.name], paths[i] = file.text, (folder or "") .. "/" .. file.name
    end
    if options.list then
        list_files(files, folder, options)
        return 0
    end
    check_depfile_apart(options, paths)
    local stale = bundle.stale(p, folder, files)
    bundle.refuse_strangers(p, folder, files)
    local written = assert(host.write_directory(folder, contents, false, p.names.manifest))
    local lines = {}
    for i, file in ipairs(files) do
        lines[i] = string.format("%-5s %s/%s", written[file.name] == "written" and "EMIT" or "same", folder, file.name)
    end
    for _, name in ipairs(stale) do
        local path = folder .. "/" .. name
        local removed, message = host.remove(path)
        if not removed and host.kind(path) then error(message, 0) end -- else another emit has removed it
        lines[#lines + 1] = string.format("%-5s %s/%s", "gone", folder, name)
    end
    write_depfile(options, paths)
    say(options, table.concat(lines, "\n"))
    return 0
end

local most_unknown = 20 -- lines

function commands.check(arguments, options)
    local wrong = bundle.check(arguments[1], options.ignore)
    local unknown = 0
    for _, file in ipairs(wrong) do
        unknown = unknown + (file.state == "unknown" and 1 or 0)
        if file.state ~= "unknown" or unknown <= most_unknown then
            local path = arguments[1] .. "/" .. file.name:gsub("%c", "?")
            local why = file.state == "unknown" and ": not in MANIFEST.json" or ""
            host.note(string.format("lookupc check: %s: %s%s", path, file.state, why))
        end
    end
    if unknown > most_unknown then
        host.note(
            string.format(
                "lookupc check: %s: %d more files are not in MANIFEST.json",
                arguments[1],
                unknown - most_unknown
            )
        )
    end
    if #wrong == 0 then host.print(arguments[1] .. ": fresh") end
    return #wrong == 0 and 0 or 1
end

function commands.sample(arguments, options)
    local weights = require "weights"
    file_rules.not_over("-o", options.o, { arguments[1] })
    local p = load_plan(arguments[1], options)
    if families.get(p.family).without_weights then error(arguments[1] .. ": has no weights", 0) end
    if options.unfused and not p.unfused_samples then
        validated.refuse(
            p.model,
            { "attention", "eliminate" },
            p.model.attention.eliminate,
            "such a model is trained with it: there is no unfused checkpoint"
        )
    end
    local tensors = options.unfused and p.unfused_samples or p.samples or p.tensors
    assert(weights.sample(options.o, options.prefix, tensors, options.seed))
    host.print("wrote " .. options.o)
    return 0
end

-- What the packer is told to calibrate the LookupFFNs of plan `p`, of the model file `path`, for the inputs of the
-- options: the rows of a LookupFFN, or what its float model makes of the inputs of a larger one. nil: nothing. Raises
-- one line.
local function calibrations_of(p, path, options)
    local option = options.calibrate and "calibrate" or "calibrate-ids"
    local file = options[option]
    if not file then return nil end
    local of = families.get(p.family).calibrations
    local list = of and of(p) or {}
    if #list == 0 then
        misuse(string.format("--%s: %s: is for LookupFFNs with --projection i8 or i7", option, file))
    end
    files_read.note(file)
    if not options.weights then return list end
    local lookup_inputs = require("harness.families.list").get(p.family).lookup_inputs -- needs a compiler
    local paths = lookup_inputs and lookup_inputs(path, options) or { file }
    for i, calibration in ipairs(list) do
        calibration.x = paths[i]
    end
    return list
end

local function calibrated_text(r)
    local text = string.format(
        "of %s rows held back z is off by %.2g and %.3g %% of the codes flip, calibrated %.2g and %.3g %%",
        figures.grouped(math.tointeger(r.rows)),
        r.nearest_z_error,
        100 * r.nearest_flips,
        r.z_error,
        100 * r.flips
    )
    return r.z_error < r.nearest_z_error and text or text .. ": not taken"
end

function commands.pack(arguments, options)
    file_rules.not_over("-o", options.o, { arguments[1], options.calibrate or options["calibrate-ids"] })
    check_depfile(options)
    local p = load_plan(arguments[1], options)
    local calibrations = calibrations_of(p, arguments[1], options)
    local without = families.get(p.family).without_weights
    if without and options.weights then misuse("--weights: " .. arguments[1] .. ": has no weights") end
    if not without and not options.weights then return nil, "weights" end
    check_depfile_apart(options, { options.o })
    local files = { weights = options.weights, output = options.o, prefix = options.prefix }
    files.blocks_in_out, files.ignore, files.calibrations = options["blocks-in-out"], options.ignore, calibrations
    local errors, changed, note = packing.pack(p, files)
    local calibrated = errors.calibrations or {}
    errors.calibrations = nil
    local text = families.get(p.family).packed_text(p, errors)
    local by_layer = calibrations and calibrations[1].layer
    if calibrations and not by_layer then text = text .. "; " .. calibrated_text(calibrated[1]) end
    write_depfile(options, { options.o })
    local word = changed and "wrote" or "same "
    say(options, string.format("%s %s, %s, %s", word, options.o, figures.bytes(p.packed_bytes), text))
    if note then say(options, note) end
    for i, r in ipairs(by_layer and calibrated or {}) do
        say(options, string.format("layer %d: %s", calibrations[i].layer, calibrated_text(r)))
    end
    return 0
end

return commands
