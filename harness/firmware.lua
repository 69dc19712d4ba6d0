-- lookupc emit --profile firmware: packs, compiles for the target to measure, checks limits, and only then writes the bundle.
local blob = require "gen.blob"
local firmware_files = require "gen.firmware"
local harness = require "harness.commands"
local host = require "host"
local isa = require "gen.isa"
local model_file = require "gen.model"
local process = require "process"
local request = require "gen.request"
local target = require "gen.target"
local toolchain = require "harness.toolchain"

local firmware = {}

local vectors = 4 -- tokens of the self-test

-- What a command's options ask for, measured: { plan, weights, measured, vectors, directory }. Raises one line.
function firmware.build(path, options)
    local wanted = target.get(options.target)
    model_file.only_lookup(model_file.load(path))
    options.firmware = wanted
    local p = request.plan(path, { isa.get(wanted.isa) }, options)
    local directory = process.temporary_directory()
    local files = harness.packed(p, directory, options)
    local weights = assert(host.read(files.output, 1 << 31))
    return {
        plan = p, weights = weights, measured = toolchain.measure(p, firmware_files.unmeasured(p, weights), directory .. "/measured"),
        vectors = assert(require "verify".vectors(harness.reference_of(p, files, options.seed), vectors)),
    }
end

-- The files of the bundle.
function firmware.files(b, options)
    return firmware_files.files(b.plan, b.weights, b.measured, b.vectors, { c_array = options["weights-array"] })
end

return firmware
