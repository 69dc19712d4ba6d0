-- From a run of equal blocks, a transformer or a part of a model, to its plan: sizes, offsets and names of what is
-- emitted, packed, verified and timed. Pure data.
local block_lookup = require "gen.families.model.blocks.block_lookup"
local constants = require "gen.families.model.blocks.constants"
local dtype = require "gen.plan.dtype"
local fusable = require "gen.schema.fusable"
local maps_of = require "gen.families.model.blocks.maps"
local misuse = require "gen.schema.misuse"
local phases = require "gen.families.model.blocks.phases"
local samples = require "gen.families.model.samples"
local schedule = require "gen.families.model.blocks.schedule"
local sections = require "gen.families.model.sections"
local shape_of = require "gen.families.model.blocks.shape"
local steps_of = require "gen.families.model.blocks.steps"
local structs = require "gen.families.model.blocks.structs"
local variant = require "gen.families.model.blocks.variant"

local run = {}

-- The sums over tokens that `steps` end with: { hidden: where those of hidden values begin, nil: there are none,
-- activates: whether these are activated as they are summed, map: which they are still to go through, pitch }; nil:
-- they end with rows.
local function sums_of(shape, steps, has)
    local last = steps[#steps]
    if not last or last.op ~= "sum" then return nil end
    local of_hidden = last.from ~= nil
    return {
        hidden = of_hidden and shape.sums.hidden,
        activates = of_hidden and last.activates,
        step = last,
        map = of_hidden and has.O,
        pitch = shape.sums.pitch,
    }
end

-- Raises one line for types that blocks of `shape` with the linear maps `maps` cannot have.
local function check_types(shape, types, maps)
    if shape.shaped and not types.cache.plain then
        misuse("--cache: " .. types.cache.name .. ": must be f32 with attention.shaped")
    end
    if shape.lsh and not (types.cache.plain or types.cache.integer_gather) then
        misuse("--cache: " .. types.cache.name .. ': must be f32 or i8 with attention.kind = "lsh"')
    end
    if shape.from_keys and types.cache.cache.words_only then
        misuse("--cache: " .. types.cache.name .. ': must be f32, f16 or i8 with attention.cache = "k"')
    end
    local activations = types.activations
    local most = activations and activations.products.most_inputs
    for _, map in ipairs(most and maps or {}) do
        if map.inputs > most then
            local form = '--activations: "%s": %d inputs of %s: must be at most %d'
            misuse(form:format(activations.name, map.inputs, map.letter, most))
        end
    end
end

-- The sections of plan `p` from place `at` of the blob on; digest: of the blob that it reads, nil: its own.
local function add_sections(p, at, first_layer, digest)
    local c = sections.collector(at, p.type, p.shape.rounded, nil, first_layer)
    sections.add_blocks(c, p.model, p.shape, p.maps, p.parts, first_layer)
    p.sections, p.pieces, p.packed_bytes = c.list, c.pieces, c.at
    p.digest = digest or sections.digest(p.model, c.list, p.parts)
    p.weights_struct_bytes = 8 * #c.list + 8
end

-- What templates ask of the steps of plan `p` together. rounded_inputs: of steps that round some, each number once;
-- where keys and values are words, also the width of a head. has: linear maps by letter.
local function add_facts(p, has)
    local list, seen = {}, {}
    local function add_rounded(inputs)
        if not seen[inputs] then
            list[#list + 1], seen[inputs] = inputs, true
        end
    end
    if p.shape.cache.words then add_rounded(p.shape.width) end
    if p.shape.from_keys and p.shape.rounded then add_rounded(p.shape.read) end
    p.sums, p.rounded_inputs = sums_of(p.shape, p.after, has), list
    p.rounds_activated = false
    for _, steps in ipairs { p.before, p.after } do
        for _, step in ipairs(steps) do
            p.rounds_activated = p.rounds_activated or step.op == "activate" and step.rounded ~= nil
            if step.rounded then add_rounded(step.inputs) end
        end
    end
end

-- The kernels of plan `p` for `isa`, the next one.
local function add_variant(p, isa, choices, shared_product)
    local v = variant.of(p, isa, choices, #p.variants + 1, shared_product)
    v.phases = phases.of(p.shape, p.before, p.after, v, p.threads and true)
    if p.threads then v.part = phases.part(v, p.maps, p.parts) end
    v.sums_tokens = p.threads and v.part.many or v.chunk -- that a row of sums is of, whatever threads share
    p.variants[v.number] = v
    p.scratch_bytes = math.max(p.scratch_bytes, v.scratch_bytes)
    p.decode_scratch_bytes = math.max(p.decode_scratch_bytes, v.decode_scratch_bytes)
end

-- The choices `wanted` of a model for one of its runs of blocks, of `shape`: which matrix projects is for those that
-- have two, and how attention is scheduled for those that attend exactly.
local function wanted_of(shape, isa, wanted)
    local key, own = "project.dense", {}
    local chooses = #schedule.choice(key).values(shape, isa, wanted) > 1
    for name, value in pairs(wanted) do
        local other = name == key and not chooses or shape.lsh and name:find "^attention%."
        own[name] = not other and value or nil
    end
    return own
end

-- The plan of the blocks of model `m` for the instruction sets `isas`, with `types` (gen/families/model/types.lua).
-- options: names, public ones; at, where their sections begin in the blob; and, all optional: schedule, the choices
-- wanted by name of the instruction set; part(maps, before, after), for timing: what is left of linear maps and steps;
-- digest, of the blob of another plan that this one reads;
-- sequences = { positions = N, means }, where tokens attend to all: calls are for several sequences of together N
-- positions at most, each filled up to a multiple of 32, and give sums over their tokens where only `means` are asked
-- for and shape.sums allows it; one_by_one: schedules have chunks of one token, and calls give no products of several.
-- Of blocks that are a part of a model: first_layer, the number of their first layer in the checkpoint;
-- among: there are other runs, and the schedule is for all;
-- shared_product(number, isa, product), the name of the model's own kernel for products that are planned so, or nil;
-- float_sums: norms sum in floats instead of doubles; unpadded, training: of block_lookup.parts; threads: the names {
-- ranges, range } of the functions that share a call's tokens among threads of the model's OpenMP build.
function run.build(m, isas, types, options)
    local first_layer = options.first_layer or 0
    local shape = shape_of.of(m, types, options.sequences, first_layer)
    local maps, has = maps_of.of(m, shape, first_layer)
    check_types(shape, types, maps)
    local fused = fusable.is_fused(m)
    local own = m.attention.eliminate ~= "none" and fusable.obstacle(m, m.attention.eliminate) ~= nil
    local p = {
        model = m,
        names = options.names,
        shape = shape,
        type = types.type,
        rounded = shape.rounded,
        activations = types.activations or dtype.get "f32",
        lookup_types = shape.lookup and types.looked or nil,
        maps = maps,
        own = own, -- an architecture of its own, that no unfused checkpoint becomes
        -- of what pack reads, and fuse
        samples = samples.of_blocks(m, shape, fused, own, options.first_layer),
        unfused_samples = not own and samples.of_blocks(m, shape, false, false, options.first_layer) or nil,
        one_by_one = options.one_by_one or false,
        float_sums = options.float_sums or false,
        threads = options.threads or false,
        variants = {},
        context = shape.context,
        scratch_bytes = 0,
        decode_scratch_bytes = 0,
        cache_bytes = shape.cache.bytes_of_all,
    }
    local choices, wanted = {}, options.schedule or {}
    for i, isa in ipairs(isas) do
        local of_set = wanted[isa.name] or {}
        if options.among then of_set = wanted_of(shape, isa, of_set) end
        choices[i] = schedule.make(shape, isa, of_set)
    end
    p.parts = shape.lookup and block_lookup.parts(p, isas, choices, options) or {}
    p.before, p.after = steps_of.of(shape, has, p.parts, p.one_by_one)
    if options.part then
        p.maps, p.before, p.after = options.part(p.maps, p.before, p.after, shape)
    end
    p.after = steps_of.joined(shape, p.after)
    steps_of.join_activations(shape, p.after)
    add_sections(p, options.at, first_layer, options.digest)
    add_facts(p, has)
    for i, isa in ipairs(isas) do
        add_variant(p, isa, choices[i], options.shared_product)
    end
    p.constants, p.pitches = constants.of(p)
    p.structs = structs.of(p)
    return p
end

return run
