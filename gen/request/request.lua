-- From a model file and the options of a command to the plan.
local families = require "gen.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local machines = require "gen.machines.list"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local renamed = require "gen.request.renamed"
local space = require "gen.plan.space"
local tuned_file = require "gen.request.tuned_file"

local request = {}

-- Gives model `m` of the file `path`, which has none, the tokenizer in the file of --tokenizer.
local function add_tokenizer(m, path, file)
    if m.tokenizer then misuse("--tokenizer: " .. file .. ": cannot be given beside tokenizer of " .. path) end
    local absolute, message = host.absolute(file)
    if not absolute then error("--tokenizer: " .. message, 0) end
    m.tokenizer = { file = absolute }
end

-- The model of the file `path` and the family that the options mean; raises one line for options that do not fit it.
function request.model(path, options)
    local m = model_file.load(path)
    local family = families.of(m)
    families.check_options(family, options)
    if options.tokenizer then add_tokenizer(m, path, options.tokenizer) end
    if family.model.check_options then family.model.check_options(m, options) end
    return m, family
end

-- The choices of `schedules` that the machine of that name makes beside those `wanted`: all, so that nobody needs to
-- know it again, but for roundings, of which no machine makes any.
local function machine_choices(schedules, build, wanted, isas, name)
    local choices = {}
    for _, v in ipairs(build(wanted, machines.sets(isas, name)).variants) do
        local own = {}
        for key, value in pairs(v.schedule) do
            if value ~= 0 or not schedules.choice(key, "--for").rounds then own[key] = value end
        end
        choices[v.isa.name] = own
    end
    return choices
end

-- Raises one line if the CPU of that name is not one for the instruction sets `sets`. Those that somebody has `asked`
-- for it must have, all; a list that nobody asked for may go beyond it, on CPUs of its kind.
local function check_cpu(name, sets, asked)
    local cpu = machines.get(name)
    for _, set in ipairs(cpu.isa and sets or {}) do
        local has = table.concat(cpu.isa, ", ")
        if asked and not isa.follows(set, cpu.isa) then
            misuse(string.format("--isa: %s: is not of --for %s, which has %s", set.name, name, has))
        elseif set.architecture and set.architecture ~= cpu.architecture then
            misuse(string.format("--for: %s: does not run %s: needs --isa, of %s", name, set.name, has))
        end
    end
end

-- The plan of the model file `path` for the instruction sets `isas`, those of options.isa if absent. Raises one line
-- for options that do not fit the model; says on standard error what a tuned file leaves open. `options.firmware`: a
-- row of gen/plan/target.lua. `cpu_note(data, context)`, optional: what to say of the CPU that a tuned file is for.
function request.plan(path, isas, options, cpu_note)
    local m, family = request.model(path, options)
    isas = isas or isa.select(options.isa, family.isa_types(options, m))
    local build_model = options.rename and renamed(family, m.name, options.rename) or family.build
    local function build(wanted, sets) return build_model(m, sets or isas, options, wanted) end
    if options.schedule and options.tuned then
        misuse("--tuned: " .. options.tuned .. ": cannot be given beside --schedule")
    end
    if options["for"] and options.tuned then
        misuse("--for: " .. options["for"] .. ": cannot be given beside --tuned")
    end
    if options["for"] then check_cpu(options["for"], isas, options.isa) end
    if not options.tuned then
        local wanted = options.schedule and space.for_all(isas, family.space.parse(options.schedule))
        local machine = options["for"]
        return build(machine and machine_choices(family.space, build, wanted, isas, machine) or wanted)
    end
    local data, context = tuned_file.load(options.tuned)
    local wanted, notes = tuned_file.choices(data, context, build(nil))
    if cpu_note then notes[#notes + 1] = cpu_note(data, context) end
    for _, note in ipairs(notes) do
        host.note("lookupc: " .. note)
    end
    return build(wanted)
end

return request
