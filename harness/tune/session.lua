-- What tuning one instruction set of a model with one compiler needs.
local build = require "harness.tune.build"
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local harness = require "harness.families.list"
local key = require "harness.tune.key"
local measure = require "harness.measure.measure"
local process = require "process"
local setting = require "harness.measure.setting"
local tuning = require "harness.tune.tuning"

local session = {}

-- The hooks of a family for what runs on a device; on boards nothing is out of caches.
local function there(hooks, device)
    local conditions = device.unit and { hooks.conditions[1] } or hooks.conditions
    return setmetatable({ rivals = false, conditions = conditions }, { __index = hooks })
end

-- The flags that the kernels of plan `p` are compiled with.
local function flags_of(of, p)
    if of.device and of.device.unit then return of.device.flags(p, of.cflags) end
    return compile.flags(p.variants[1].isa, compile.threaded(p, of.cflags, of.threads))
end

-- A session of harness/tune/tuning.lua, as far as it follows from `of`: model, family, isa, cc, cflags, options (types
-- and weights), threads, seed, batches, files (packed weights, once there are any), apart (whether to compile kernels
-- apart), device (where candidates run, nil: here), label (what tells its records from those of others, nil: cc).
function session.new(of)
    local version, facts, hooks = compilers.version(of.cc), cpu.describe(), harness.get(of.family.name).tuning
    local caches, options = setting.caches_of(facts), of.options
    caches.l1i = facts.l1i
    local s = {
        model = of.model,
        name = of.model.name,
        isa = of.isa,
        cc = of.label or of.cc,
        version = version,
        cflags = of.cflags,
        threads = of.threads,
        family = of.family,
        -- the dense FFNs' libraries are here only
        tuning = of.device and there(hooks, of.device) or hooks,
        measure = function(job, how)
            how.device = of.device
            return measure.run(job, how)
        end,
        options = options,
        types = hooks.types(options),
        batches = of.batches,
        batches_text = table.concat(of.batches, ","),
        seed = of.seed,
        files = of.files,
        caches = caches,
        -- a device may have little memory, and an emulator shows the caches of a server
        sweep_bytes = math.min(math.max(caches.l3, 8 << 20), of.device and 64 << 20 or math.maxinteger),
        device = of.device,
        host = key.host_id(),
        apart = of.apart,
        now = process.clock,
    }
    local p = tuning.plan(s, nil)
    if options.weights then hooks.check_weights(p, options) end -- also where the store answers
    s.digest, s.schedules = p.digest, of.family.space
    local sample, sample_family, sample_options = hooks.sample(of.model, p, caches, options)
    s.model, s.family, s.options = sample, sample_family or of.family, sample_options or options
    s.key = key.here {
        compiler = version,
        flags = table.concat(flags_of(of, p), " "),
        model = p.digest,
        tables = s.types[1],
        projection = s.types[2],
        isa = of.isa.name,
        threads = of.threads,
    }
    s.shop = build.new {
        apart = of.apart,
        cc = of.cc,
        version = version,
        cflags = of.cflags,
        threads = of.threads,
        seed = of.seed,
        files = of.files,
        device = of.device,
    }
    return s
end

-- Names the run of session `s`, which goes on with the records `known` of an earlier one, if there are any.
function session.name_run(s, known)
    s.known, s.run = known, known[1] and known[1].run or string.format("%s-%d-%d", s.host, process.time(), process.id())
end

return session
