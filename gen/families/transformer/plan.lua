-- From a validated transformer to the plan of its blocks: sizes, offsets and names of what is emitted, packed, verified
-- and timed. Pure data.
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.transformer.block_lookup"
local checkpoint = require "gen.model.checkpoint_names"
local dtype = require "gen.plan.dtype"
local fuse = require "gen.weights.fuse"
local host = require "host"
local isa_list = require "gen.isa.list"
local json = require "json"
local layout = require "gen.families.transformer.layout"
local maps_of = require "gen.families.transformer.maps"
local model_file = require "gen.model.file"
local names = require "gen.model.names"
local samples = require "gen.families.transformer.samples"
local schedule = require "gen.families.transformer.schedule"
local sections_of = require "gen.families.transformer.sections"
local shape_of = require "gen.families.transformer.shape"
local steps_of = require "gen.families.transformer.steps"
local variant = require "gen.families.transformer.variant"

local transformer_plan = {}

-- Why the blocks of a model cannot be emitted: a key chain, a value and a rule; nil: they can.
function transformer_plan.misfit(m)
    if m.attention.eliminate:find("QKV", 1, true) and (m.skip or m.norm) then
        return { "attention", "eliminate" },
            m.attention.eliminate,
            "tables that deliver q, k and v leave nothing to norms and skip connections"
    end
    return checkpoint.misfit(m)
end

-- What decides a blob's bytes but the weights.
local function digest_of(m, sections, parts)
    local described = {}
    for i, section in ipairs(sections) do
        described[i] = { section.name, section.type, section.elements, section.at }
    end
    for _, part in ipairs(parts) do
        described[#described + 1] = part.plan.digest
    end
    return host.sha256(
        json.encode({ format = blob.format, model = m, sections = described, panel = layout.panel }, "compact")
    )
end

-- Whether one of `steps` does `op`.
local function has_step(steps, op)
    for _, step in ipairs(steps) do
        if step.op == op then return true end
    end
    return false
end

-- Whether one of `steps` reads the block's input.
local function reads_input(steps)
    for _, step in ipairs(steps) do
        if step.from == "in" or step.a == "in" or step.b == "in" then return true end
    end
    return false
end

-- The plan of the blocks of model `m` for the instruction sets `isas`. options, all optional: type, cache, of weights
-- and cache (names, default f32); schedule, the choices wanted by name of the instruction set; part(maps, before,
-- after), for timing: what is left of linear maps and steps.
function transformer_plan.build(m, isas, options)
    local chain, value, rule = transformer_plan.misfit(m)
    if chain then model_file.refuse(m, chain, value, rule) end
    local shape = shape_of.of(m, dtype.get(options.type, "type"), dtype.get(options.cache, "cache"))
    local own_maps, has = maps_of.of(m, shape)
    local own = m.attention.eliminate ~= "none" and not pcall(fuse.check, m, m.attention.eliminate)
    local public, types, sets, choices, wanted = names.public(m.name), { shape.type }, {}, {}, options.schedule or {}
    if shape.cache.type ~= shape.type then types[2] = shape.cache.type end
    for i, isa in ipairs(isas) do
        for _, one in ipairs(types) do
            -- What integers need is for the sums of a LookupFFN's tables.
            if not one.scaled then isa = isa_list.with_types(isa, { one }) end
        end
        sets[i], choices[i] = isa, schedule.make(shape, isa, wanted[isa.name] or {})
    end
    local parts = shape.lookup
            and block_lookup.parts(
                m,
                sets,
                choices,
                shape.type,
                public,
                shape.input,
                variant.pitch(shape.d),
                variant.pitch(shape.input)
            )
        or {}
    local before, after = steps_of.of(shape, has, parts)
    if options.part then
        own_maps, before, after = options.part(own_maps, before, after)
    end
    local sections, pieces, bytes = sections_of.of(m, shape, own_maps, parts)
    local p = {
        model = m,
        shape = shape,
        names = public,
        maps = own_maps,
        parts = parts,
        sections = sections,
        pieces = pieces,
        tensors = {},
        own = own, -- an architecture of its own, that no unfused checkpoint becomes
        samples = samples.of(m, shape, own),
        packed_samples = samples.of(m, shape, m.attention.eliminate ~= "none"), -- of the checkpoint that pack reads
        packed_bytes = bytes,
        digest = digest_of(m, sections, parts),
        before = before,
        after = after,
        reads_input = reads_input(after),
        activates = has_step(after, "activate"),
        variants = {},
        scratch_bytes = 0,
        decode_scratch_bytes = 0,
        cache_bytes = m.layers * shape.cache.layer_bytes,
        weights_struct_bytes = 8 * #sections + 8,
        types = types,
        kept_type = shape.cache.type,
        schedules = schedule,
        -- as the manifest records them
        options = { type = shape.type.name, cache = shape.cache.type.name, schedule = wanted },
    }
    for i, isa in ipairs(sets) do
        local v = variant.of(m, shape, before, after, isa, choices[i], parts, i)
        p.variants[i] = v
        p.scratch_bytes = math.max(p.scratch_bytes, v.scratch_bytes)
        p.decode_scratch_bytes = math.max(p.decode_scratch_bytes, v.decode_scratch_bytes)
    end
    return p
end

return transformer_plan
