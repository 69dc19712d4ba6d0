-- From a validated model to its plan: runs of equal blocks with plans of their own; of a whole model what stands before
-- and behind them, one blob, one state and one scratch. The plan of a transformer, a single run with nothing around it,
-- is that of the run. Pure data.
local blob = require "gen.plan.blob"
local checkpoint = require "gen.schema.checkpoint_names"
local copied = require "gen.schema.copied"
local dtype = require "gen.plan.dtype"
local isa_list = require "gen.isa.list"
local memory = require "gen.families.model.memory"
local misuse = require "gen.schema.misuse"
local names = require "gen.schema.names"
local product = require "gen.families.model.blocks.product"
local rules = require "gen.families.model.model"
local run = require "gen.families.model.blocks.run"
local same = require "gen.schema.same"
local schedule = require "gen.families.model.blocks.schedule"
local samples = require "gen.families.model.samples"
local sections = require "gen.families.model.sections"
local shape_of = require "gen.families.model.blocks.shape"
local ends = require "gen.families.model.ends"
local tokenizer = require "gen.families.tokenizer.plan"
local tokenizer_plan = require "gen.tokenizer.plan"
local types_of = require "gen.families.model.types"
local validated = require "gen.schema.validated"
local words = require "gen.isa.words"

local plan = {}

plan.state_header = blob.align -- bytes of a state before the caches: the position

-- Why the blocks of a model cannot be emitted: a key chain, a value and a rule; nil: they can.
function plan.misfit(m)
    if m.attention.eliminate:find("QKV", 1, true) and (m.skip or m.norm) then
        return { "attention", "eliminate" },
            m.attention.eliminate,
            "tables that deliver q, k and v leave nothing to norms and skip connections"
    end
    return checkpoint.misfit(m)
end

-- Raises one line if the model cannot be planned, or checkpoints of its kind cannot hold it.
local function check(m, options)
    local function refuse(of, chain, value, rule)
        if chain then validated.refuse(of, chain, value, rule) end
    end
    types_of.check(m, options)
    for _, blocks in ipairs(rules.segments(m)) do
        refuse(blocks, plan.misfit(blocks))
    end
    refuse(m, checkpoint.misfit_of_ends(m))
end

-- The instruction sets `isas` with what `types` need of them: kernels of all blocks are one file.
local function sets_of(m, isas, types)
    local sets, wanted = {}, types_of.of_sets(types)
    local demanded = { "few", "many", "masks", "cache", types.cache.name }
    local function demand(tiers) table.move(tiers, 1, #tiers, #demanded + 1, demanded) end
    if types.looked then demand { types.looked.tables.name } end
    for _, type in ipairs { types.type, types.head, types.rows } do
        demand(type.groups and { "groups", "f16" } or { type.name })
        if types.rounded and type.groups then demand { "group_quads" } end
    end
    if types.rounded then demand(types.rounded.tiers) end
    for i, isa in ipairs(isas) do
        sets[i] = isa_list.with_types(isa, wanted)
        words.demand(sets[i], demanded, m.name)
    end
    return sets
end

local function product_name(p, isa) return names.variant(p.model.name, product.name(p.type, p.rounded), isa.name) end

-- What names the kernel for products that all runs of blocks share whose schedules agree, and their plans; nil: there
-- is none, as products outside of the blocks have another type.
local function shared_products(p, types)
    local planned = {}
    if types.head ~= types.type then return nil, planned end
    local function shared(number, isa, own)
        planned[number] = planned[number] or own
        return same(planned[number], own) and product_name(p, isa) or nil
    end
    return shared, planned
end

-- Whether all that is asked for of the last block are means over tokens, or the same times a factor, whose last map the
-- kernel of the other maps makes. Firmware sums rows: it has no memory for sums of hidden values.
local function means_only(m, types, options)
    local output = m.output or {}
    local means = output.pool == "mean" or output.pool == "sqrt_n"
    return not options.target and not output.norm and means and types.head == types.type
end

-- The runs of blocks of plan `p`: { word, first_layer, plan, cache_at: of its cache in the state }. Their sections
-- follow place `at` of the blob. Returns also where they end, and plans of the products that they share.
local function segments_of(p, isas, types, options, at)
    local list, first_layer, models = {}, 0, rules.segments(p.model)
    local shared_product, products = shared_products(p, types)
    for i, model in ipairs(models) do
        local sequences
        if not p.causal then
            local means = i == #models and means_only(p.model, types, options)
            sequences = { positions = memory.positions(p.model, options.target), means = means }
        end
        local word = model.name:sub(#p.model.name + 2)
        local own = run.build(model, isas, types, {
            schedule = options.schedule,
            names = names.part(p.names, word),
            first_layer = first_layer,
            among = models[2] ~= nil,
            at = at,
            shared_product = shared_product,
            sequences = sequences,
            one_by_one = options.one_by_one,
            float_sums = p.float_sums,
            unpadded = options.target ~= nil,
            training = options.training,
            part = options.part,
            threads = p.threads,
        })
        list[i] = { word = word, plan = own, first_layer = first_layer }
        first_layer, at = first_layer + model.layers, own.packed_bytes
    end
    return list, at, products
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

-- Gives plan `p` the facts of its tokenizer, whose sections `c` collects, and `ends`: ids that end a text, of a
-- tokenizer's file. options: of the plan.
local function add_tokenizer(p, options, c)
    local m, contents = p.model
    p.facts, contents, p.ends = tokenizer.facts(m, options.facts)
    c.group = "tokenizer"
    for _, section in ipairs(tokenizer_plan.sections(p.facts, contents)) do
        local placed = c.add(section.name, section.dtype, section.elements, section.doc)
        placed.slow = true
        if section.text then c.pieces[#c.pieces + 1] = { name = section.name, at = placed.at, text = section.text } end
    end
    if p.facts.pieces > m.vocab then
        validated.refuse(m, { "vocab" }, m.vocab, string.format("the tokenizer has %d pieces", p.facts.pieces))
    end
    if p.target and p.facts.real == "double" and not p.target.doubles then
        local name = p.target.name
        misuse("--target: " .. name .. ": has no doubles, in which the tokenizer of " .. m.name .. " sums scores")
    end
end

-- Gives plan `p` its blob: what `c` has collected, and behind it the sections of its runs.
local function add_sections(p, c)
    p.own_sections, p.pieces, p.packed_bytes = c.list, c.pieces, c.at
    p.digest = sections.digest(p.model, c.list, p.segments)
    p.sections = table.move(c.list, 1, #c.list, 1, {})
    for _, segment in ipairs(p.segments) do
        for _, section in ipairs(segment.plan.sections) do
            local bound = setmetatable({ name = segment.word .. "." .. section.name }, { __index = section })
            p.sections[#p.sections + 1] = bound
        end
        table.move(segment.plan.pieces, 1, #segment.plan.pieces, #p.pieces + 1, p.pieces)
    end
    p.weights_struct_bytes = p.target and p.target.pointer_bytes * #p.sections or 8 * (#p.sections + #p.segments) + 8
end

-- The plan of the first run of blocks of plan `p` whose lookup FFNs have two matrices to choose from, or of the first.
local function choosing(p)
    for _, segment in ipairs(p.segments) do
        local looked = segment.plan.shape.looked
        if looked and looked.multiplied and not looked.same_codes then return segment.plan end
    end
    return p.segments[1].plan
end

-- The choices of instruction set number `i` for all runs of blocks of plan `p`: those of the first run, and which
-- matrix projects.
local function choices_of(p, i)
    local choices, key = copied(p.segments[1].plan.variants[i].schedule), "project.dense"
    choices[key] = choosing(p).variants[i].schedule[key]
    return choices
end

-- What all kernels of one instruction set are planned as: number `i` of the bundle. Products outside of the blocks are
-- planned as those of the blocks are, or by defaults where they are of another type.
local function variant_of(p, products, i)
    local first = p.segments[1].plan.variants[i]
    local own = products[i]
    if not own then
        local shape = setmetatable({ type = p.type, rounded = p.rounded }, { __index = p.shape })
        own = product.plan(schedule.make(shape, first.isa, {}), first.isa, p.type, p.rounded, p.one_by_one)
    end
    return {
        isa = first.isa,
        schedule = choices_of(p, i),
        schedule_text = first.schedule_text,
        choices_text = first.choices_text,
        product = own,
        number = i,
        names = {
            product = product_name(p, first.isa),
            forward = names.variant(p.model.name, "forward", first.isa.name),
        },
    }
end

-- Adds to the choices that the banner of each variant's kernels says those of the lookup FFNs in the blocks.
local function add_lookup_choices(p)
    for i, v in ipairs(p.variants) do
        local text_of_all, seen = v.choices_text, {}
        for _, segment in ipairs(p.segments) do
            for _, part in ipairs(segment.plan.parts) do
                local text = part.plan.variants[i].choices_text
                if not seen[text] then
                    text_of_all = text_of_all .. ". The LookupFFN " .. part.word .. ": " .. text
                end
                seen[text] = true
            end
        end
        v.choices_text = text_of_all
    end
end

-- The plan of a model with what stands around its blocks.
local function whole(m, isas, types, options)
    local public, widths, target = names.public(m.name), rules.widths(m), options.target
    local p = {
        model = m,
        names = public,
        type = types.head, -- of the maps outside of the blocks
        rows_type = types.rows,
        activations = types.activations or dtype.get "f32",
        lookup_types = types.looked, -- of tables and projection; nil: there are none
        rounded = types.head_rounded,
        widths = widths,
        variants = {},
        causal = m.attention.causal,
        layers = rules.count(m),
        target = target,
        one_by_one = options.one_by_one or false,
        -- names of what shares tokens in an OpenMP build; false: there is none
        threads = not target and { ranges = public.ranges, range = public.range },
        float_sums = target ~= nil, -- doubles are software on many targets
    }
    local c = sections.collector(blob.header_bytes, p.type, p.rounded, p.rows_type)
    local first, products = rules.segments(m)[1]
    p.embedding = ends.embedding(m, widths, first, shape_of.widths(first), c)
    p.segments, c.at, products = segments_of(p, isas, types, options, c.at)
    p.output = ends.output(m, widths, p.embedding, c)
    p.output.sums = sums_of(p.segments[#p.segments])
    p.own_maps = {} -- before and behind the blocks
    for _, map in ipairs { p.embedding.map or false, p.output.dense or false, p.output.head or false } do
        p.own_maps[#p.own_maps + 1] = map or nil
    end
    if m.tokenizer then add_tokenizer(p, options, c) end
    add_sections(p, c)
    local shape = p.segments[1].plan.shape
    local endless = not p.embedding.positions
    for _, segment in ipairs(p.segments) do
        endless = endless and segment.plan.shape.endless
    end
    p.context = endless and shape.context or math.min(m.attention.context, shape.context)
    p.shape = { d_out = widths.out, vocab = m.vocab, looked = choosing(p).shape.looked }
    setmetatable(p.shape, { __index = shape })
    for i = 1, #isas do
        p.variants[i] = variant_of(p, products, i)
    end
    memory.plan(p, plan.state_header)
    p.samples = samples.of(p, "samples")
    p.unfused_samples = not p.segments[1].plan.own and samples.of(p, "unfused_samples") or nil
    return p
end

-- The plan of a transformer.
local function blocks_alone(m, isas, types, options)
    local p = run.build(m, isas, types, {
        schedule = options.schedule,
        names = names.public(m.name),
        at = blob.header_bytes,
        sequences = options.sequences,
        one_by_one = options.one_by_one,
        part = options.part,
        digest = options.digest,
    })
    p.blocks_prefixes = checkpoint.blocks_prefixes(m) -- the checkpoint's tensors under them are all the model's
    p.segments = { { word = "blocks", plan = p, first_layer = 0 } }
    return p
end

-- The plan of model `m` for the instruction sets `isas`. options, all optional: type, cache, activations, of weights,
-- caches and inputs of products (names, default f32); tables, projection, of lookup FFNs (default type, and f32),
-- and multiply-out, whether blobs have that projection multiplied out, too;
-- schedule, the choices wanted by name of the instruction set; machine, the name of that which `isas` are for; facts,
-- of the tokenizer, without its file; target, a row of gen/plan/target.lua: for its firmware; sequences, of a
-- transformer, training, of a whole model, part, digest, and one_by_one: as run.build
-- (gen/families/model/blocks/run.lua) takes them; lacks_parts: a model without a part that `type` names, as is timed.
function plan.build(m, isas, options)
    check(m, options)
    local types = types_of.of(options, m)
    local p = (m.embedding and whole or blocks_alone)(m, sets_of(m, isas, types), types, options)
    add_lookup_choices(p)
    p.family = m.embedding and "whole" or "transformer"
    p.tensors = sections.tensors(p.pieces)
    -- as the manifest records them
    p.options = {
        type = types.text,
        cache = types.cache.name,
        activations = types.activations and types.activations.name,
        tables = options.tables or nil,
        projection = options.projection or nil,
        schedule = options.schedule or {},
        ["multiply-out"] = options["multiply-out"] or nil,
        facts = p.facts,
        ["for"] = options.machine, -- which LookupFFNs of blocks have their defaults for
    }
    return p
end

return plan
