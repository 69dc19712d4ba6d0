-- From a validated whole model to its plan: the runs of blocks as parts with plans of their own, what stands before and
-- behind them, one blob, one state and one scratch. Pure data.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.schema.checkpoint_names"
local dtype = require "gen.plan.dtype"
local fusable = require "gen.schema.fusable"
local isa_list = require "gen.isa.list"
local memory = require "gen.families.model.memory"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local product = require "gen.families.model.blocks.product"
local same = require "gen.schema.same"
local samples = require "gen.families.model.samples"
local sections = require "gen.families.model.sections"
local shape_of = require "gen.families.model.blocks.shape"
local stages = require "gen.families.model.stages"
local tokenizer = require "gen.families.tokenizer.plan"
local tokenizer_plan = require "gen.tokenizer.plan"
local transformer = require "gen.families.model.blocks.plan"
local validated = require "gen.schema.validated"
local rules = require "gen.families.model.model"

local plan = {}

plan.state_header = blob.align -- bytes of a state before the caches: the position

-- The instruction sets `isas` with what the weights of any block need of them: kernels of all blocks are one file.
local function sets_of(m, isas, type, activations, options)
    local cache = dtype.cached(options.cache, activations, m.attention.shaped)
    local looked = rules.looks_up(m) and transformer.lookup_types(type, options) or nil
    local types, sets = transformer.isa_types(type, cache, activations, looked), {}
    for i, isa in ipairs(isas) do
        sets[i] = isa_list.with_types(isa, types)
    end
    return sets
end

-- What names the kernel for products that all runs of blocks share whose schedules agree, and their plans.
local function shared_products(m, type, rounded)
    local planned = {}
    local function shared(number, isa, own)
        planned[number] = planned[number] or own
        return same(planned[number], own) and names.variant(m.name, product.name(type, rounded), isa.name) or nil
    end
    return shared, planned
end

-- Whether all that is asked for of the last block are means over tokens, or the same times a factor. Firmware sums
-- rows: it has no memory for sums of hidden values.
local function means_only(m, options)
    local output = m.output or {}
    return not options.target and not output.norm and (output.pool == "mean" or output.pool == "sqrt_n")
end

-- The runs of blocks: { word, field, plan, cache_at: of its cache in the state }. Their sections follow place `at` of
-- the blob. Returns also where they end.
local function segments_of(m, isas, public, options, at, shared_product, threads)
    local list, first_layer = {}, 0
    local models = rules.segments(m)
    for i, model in ipairs(models) do
        local sequences
        if not m.attention.causal then
            local means = i == #models and means_only(m, options)
            sequences = { positions = memory.positions(m, options.target), means = means }
        end
        local word = model.name:sub(#m.name + 2)
        local own = rules.with_types(options, {
            schedule = options.schedule,
            names = names.part(public, word),
            first_layer = first_layer,
            at = at,
            shared_product = shared_product,
            sequences = sequences,
            one_by_one = options.one_by_one,
            float_sums = options.target ~= nil,
            unpadded = options.target ~= nil,
            part = options.part,
            threads = threads,
        })
        local p = transformer.build(model, isas, own)
        list[i] = { word = word, plan = p, first_layer = first_layer }
        first_layer, at = first_layer + model.layers, p.packed_bytes
    end
    return list, at
end

-- The sums over tokens that the last run of blocks, `segment`, makes in place of rows, as its plan has them; the map
-- that their hidden values are still to go through as stages have maps. nil: it makes rows.
local function sums_of(segment)
    local sums = segment.plan.sums
    if not sums or not sums.map then return sums end
    local name = segment.word .. "." .. sums.map.field
    local map = setmetatable({ name = name, bias = name .. "_bias" }, { __index = sums.map })
    return { pitch = sums.pitch, hidden = sums.hidden, map = map }
end

-- The types of the lookup FFNs of `segments`, nil without any. Raises one line for options that then mean nothing.
local function lookup_types(m, segments, options)
    local found
    for _, segment in ipairs(segments) do
        found = found or segment.plan.lookup_types
    end
    transformer.check_lookup(m.name, found ~= nil, options)
    return found
end

-- The tokenizer's facts, and its sections behind place c.at of the blob. `facts`: those of an earlier plan.
local function add_tokenizer(m, facts, c)
    local contents, ends
    facts, contents, ends = tokenizer.facts(m, facts)
    c.group = "tokenizer"
    for _, section in ipairs(tokenizer_plan.sections(facts, contents)) do
        local placed = c.add(section.name, section.dtype, section.elements, section.doc)
        placed.slow = true
        if section.text then c.pieces[#c.pieces + 1] = { name = section.name, at = placed.at, text = section.text } end
    end
    return facts, ends
end

-- What all kernels of one instruction set are planned as: number `i` of the bundle.
local function variant_of(m, segments, products, type, rounded, i)
    local first = segments[1].plan.variants[i]
    return {
        isa = first.isa,
        schedule = first.schedule,
        schedule_text = first.schedule_text,
        choices_text = first.choices_text,
        product = products[i],
        number = i,
        names = {
            product = names.variant(m.name, product.name(type, rounded), first.isa.name),
            forward = names.variant(m.name, "forward", first.isa.name),
        },
    }
end

-- Raises one line if checkpoints of the model's kind cannot hold it.
local function refuse_misfit(m)
    local function check(of, chain, value, rule)
        if chain then validated.refuse(of, chain, value, rule) end
    end
    for _, segment in ipairs(rules.segments(m)) do
        check(segment, checkpoint.misfit_of_blocks(segment))
    end
    check(m, checkpoint.misfit_of_ends(m))
end

-- The plan of model `m` for the instruction sets `isas`. options, all optional: type, cache, activations, of weights,
-- caches and inputs of products (names, default f32); tables, projection, of lookup FFNs (default type, and f32);
-- schedule, the choices wanted by name of the instruction set; machine, the name of that which `isas` are for; facts,
-- of the tokenizer, without its file; part, for timing: what is left of the steps of blocks
-- (gen/families/model/blocks/plan.lua); target, a row of gen/plan/target.lua: for its firmware; one_by_one: as
-- transformer.build takes it.
function plan.build(m, isas, options)
    if not m.embedding then
        transformer.check_lookup(m.name, rules.looks_up(m), options)
        return transformer.build(m, isas, options)
    end
    refuse_misfit(m)
    local type, public, widths = dtype.get(options.type, "type"), names.public(m.name), rules.widths(m)
    local activations = dtype.activations(options.activations, type)
    local rounded = activations and activations.products
    isas = sets_of(m, isas, type, activations, options)
    local c = sections.collector(blob.header_bytes, type, rounded)
    local first = rules.segments(m)[1]
    local embedding = stages.embedding(m, widths, first, shape_of.widths(first), c)
    local shared_product, products = shared_products(m, type, rounded)
    local threads = not options.target and { ranges = public.ranges, range = public.range }
    local segments, at = segments_of(m, isas, public, options, c.at, shared_product, threads)
    c.at = at
    local output = stages.output(m, widths, embedding, c)
    output.sums = sums_of(segments[#segments])
    local facts, ends
    if m.tokenizer then
        facts, ends = add_tokenizer(m, options.facts, c)
    end
    if facts and facts.pieces > m.vocab then
        validated.refuse(m, { "vocab" }, m.vocab, string.format("the tokenizer has %d pieces", facts.pieces))
    end
    if options.target and facts and facts.real == "double" and not options.target.doubles then
        local name = options.target.name
        misuse("--target: " .. name .. ": has no doubles, in which the tokenizer of " .. m.name .. " sums scores")
    end
    local p = {
        family = "whole",
        model = m,
        names = public,
        type = type,
        activations = activations or dtype.get "f32",
        lookup_types = lookup_types(m, segments, options), -- of tables and projection; nil: there are none
        rounded = rounded,
        widths = widths,
        embedding = embedding,
        segments = segments,
        output = output,
        facts = facts,
        ends = ends, -- ids that end a text, of a tokenizer's file
        own_sections = c.list,
        sections = table.move(c.list, 1, #c.list, 1, {}),
        pieces = c.pieces,
        packed_bytes = c.at,
        digest = transformer.digest(m, c.list, segments),
        variants = {},
        causal = m.attention.causal,
        layers = rules.count(m),
        target = options.target,
        one_by_one = options.one_by_one or false,
        threads = threads, -- names of what shares tokens in an OpenMP build; false: there is none
        float_sums = options.target ~= nil, -- doubles are software on many targets
        options = {
            type = type.name,
            cache = segments[1].plan.shape.cache.type.name,
            activations = activations and activations.name,
            tables = options.tables or nil,
            projection = options.projection or nil,
            schedule = options.schedule or {},
            facts = facts,
            ["for"] = options.machine, -- which LookupFFNs of blocks have their defaults for
        },
    }
    p.context = math.min(m.attention.context, segments[1].plan.shape.context)
    local ring = segments[1].plan.shape.ring
    if ring and not embedding.positions then p.context = segments[1].plan.shape.context end
    for _, segment in ipairs(segments) do
        for _, section in ipairs(segment.plan.sections) do
            local bound = setmetatable({ name = segment.word .. "." .. section.name }, { __index = section })
            p.sections[#p.sections + 1] = bound
        end
        table.move(segment.plan.pieces, 1, #segment.plan.pieces, #p.pieces + 1, p.pieces)
    end
    p.tensors = transformer.tensors(p.pieces)
    p.weights_struct_bytes = p.target and p.target.pointer_bytes * #p.sections or 8 * (#p.sections + #p.segments) + 8
    for i = 1, #isas do
        p.variants[i] = variant_of(m, segments, products, type, rounded, i)
    end
    p.shape = setmetatable({ d_out = widths.out, vocab = m.vocab }, { __index = segments[1].plan.shape })
    memory.plan(p, plan.state_header)
    p.samples = samples.of(p, "samples")
    local word = m.attention.eliminate
    local fused = word ~= "none" and not fusable.obstacle(m, word)
    p.unfused_samples = fused and samples.of(p, "unfused_samples") or nil
    return p
end

return plan
