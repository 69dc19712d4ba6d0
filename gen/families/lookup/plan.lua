-- From a validated model to the plan: every size, offset and name of what is emitted, packed, verified and timed.
-- Pure data; nobody else computes any of it.
local cost = require "gen.plan.cost"
local dtype = require "gen.plan.dtype"
local gather = require "gen.families.lookup.gather"
local isa_list = require "gen.isa.list"
local words = require "gen.isa.words"
local lookup_model = require "gen.families.lookup.model"
local names = require "gen.schema.names"
local product = require "gen.families.lookup.product"
local schedule = require "gen.families.lookup.schedule"
local lookup_sections = require "gen.families.lookup.sections"
local score = require "gen.plan.score"
local stage = require "gen.families.lookup.stage"

local plan = {}

-- The BH4 projection of `shape` as one dense matrix, which leaves out the share of the input that bypasses it; of:
-- `shape`.
local function multiplied_out(shape)
    local dense = { of = shape }
    for key, value in pairs(shape) do
        dense[key] = value
    end
    dense.kind, dense.block, dense.padded, dense.repeats = "dense", 0, shape.d, 1
    return dense
end

-- The sizes of model `m` with tables and projection of these types (rows of gen/plan/dtype.lua).
--   x_step, y_step  floats from token to token of x and y
--   weighted        whether rows have a factor: their score, or the unit that they are in
--   multiplied      those of the dense matrix of a BH4 projection that the blob has `multiplied` out, too; nil: not
function plan.shape(m, tables, projection, multiplied)
    local shape = {
        tables = tables,
        projection = projection,
        d = m.d,
        d_out = m.d_out,
        h = m.h,
        tau = m.tau,
        rows = 1 << m.tau,
        bits = m.h * m.tau,
        kind = m.projection.kind,
        neighbours = m.neighbours,
        same_codes = m.same_codes,
        score = score.get(m.score),
        weighted = score.get(m.score).scored or tables.scaled,
        slots = m.h * m.neighbours, -- slots: rows that a token takes
        x_step = m.d,
        y_step = m.d_out,
    }
    if shape.kind == "bh4" then
        shape.block = m.projection.block
        shape.decay = m.projection.decay
        shape.padded = lookup_model.power_of_two_at_least(m.d)
        shape.repeats = (shape.bits + shape.padded - 1) // shape.padded
    else
        shape.block, shape.padded, shape.repeats = 0, m.d, 1
    end
    if multiplied and shape.kind == "bh4" then shape.multiplied = multiplied_out(shape) end
    return shape
end

-- Millions of operations a token, where the folded projection takes `flops`.
function plan.mflop(shape, flops)
    return {
        lookup = cost.lookup(shape),
        projection = flops / 1e6,
        folded = cost.folded(shape, flops),
        dense = cost.dense(shape),
    }
end

-- The variant of instruction set `isa`: { isa, schedule, schedule_text, choices_text, names = { ffn }, scratch_bytes,
-- scratch_bytes_one, stages }. The first stage (gen/families/lookup/stage.lua) takes calls of any number of tokens, the
-- next one those of up to `up_to`. `alone`: one stage, for one token at a time.
local function variant_of(m, shape, isa, choices, alone, shared)
    local v, threshold = { isa = isa, schedule = choices, stages = {}, scratch_bytes = 0 }, choices["few.threshold"]
    local function add(layout, up_to)
        local added = stage.plan(m, shape, isa, choices, layout, up_to, shared)
        v.stages[#v.stages + 1] = added
        v.scratch_bytes, v.scratch_bytes_one = math.max(v.scratch_bytes, added.scratch_bytes), added.scratch_bytes
    end
    if alone then
        choices["few.tokens"] = 1
        add("rows", 1)
        v.isa = v.stages[1].isa
    else
        add("lanes", math.maxinteger)
        if threshold > 0 then add("rows", threshold) end
    end
    v.schedule_text, v.choices_text = schedule.text(choices), schedule.used_text(choices, alone and "few" or nil)
    v.names = { ffn = alone and v.stages[1].names.ffn or names.variant(m.name, "ffn", isa.name) }
    return v
end

-- Whether a stage's kernels use its buffer `name`: without a projection of their own they read codes and scores only,
-- and tokens in rows that are not normalised are read where they are.
local function uses_buffer(p, s, name)
    if name == "x" and s.layout == "rows" and not p.model.norm then return false end
    return p.makes_codes or name == "code" or name == "score"
end

-- Adds by add(name, value, doc) where the weights of the stages of a BH4 projection begin: the same in all repeats.
local function add_words(p, add)
    local title = "Words of the projection's weights, before those of a stage of a repeat."
    local group
    for _, v in ipairs(p.makes_codes and p.variants or {}) do
        for _, s in ipairs(v.stages) do
            group = s.shape.kind == "bh4" and s.projection.groups[1] or group
        end
    end
    for number, s in ipairs(group and group.stages or {}) do
        for i, q in ipairs(s.products) do
            local doc = i > 1 and "of its last block, of fewer inputs" or nil
            if q.offset > 0 then add("W" .. number .. (i > 1 and "_REST_AT" or "_AT"), q.offset, doc, title) end
        end
    end
    if p.shape.repeats > 1 and group then add("REPEAT_WORDS", group.words, "of a whole repeat", title) end
end

-- The offsets and strides that kernels use by name: { name, value, doc, title: of those that follow each other }. Those
-- of a stage follow its `constants`.
local function constants_of(p)
    local list = {}
    local prefix = p.names.prefix
    local function add(name, value, doc, title)
        list[#list + 1] = { name = prefix .. name, value = value, doc = doc, title = title }
    end
    local pitch, unit = dtype.units(p.tables, p.pitch), p.tables.bytes < 1 and "bytes" or "elements"
    add("ROW_PITCH", pitch, unit .. " from row to row of the tables")
    add("TABLE_ROWS", p.shape.rows, "of a table")
    add("TABLE_PITCH", p.shape.rows * pitch, unit .. " from table to table")
    if p.openmp and not p.target then add("THREAD_SCRATCH_BYTES", p.scratch_bytes, "of one thread") end
    add_words(p, add)
    local function add_scratch(v, user, of, used)
        local buffers = {}
        for name, at in pairs(user.scratch) do
            if at > 0 and used(name) then buffers[#buffers + 1] = name end
        end
        table.sort(buffers, function(a, b) return user.scratch[a] < user.scratch[b] end)
        for _, name in ipairs(buffers) do
            local title = string.format("Bytes into scratch, where buffers of %s begin%s.", v.isa.name, of)
            add(user.constants .. name:upper(), user.scratch[name], nil, title)
        end
    end
    for _, v in ipairs(p.variants) do
        for n, s in ipairs(v.stages) do
            add_scratch(v, s, n > 1 and ", for few tokens" or "", function(name) return uses_buffer(p, s, name) end)
            for i, gather in ipairs(s.gathers) do
                add_scratch(v, gather, i > 1 and ", for whole rows" or "", function() return true end)
            end
        end
    end
    return list
end

-- Raises one line unless `isa` has kernels for one token at a time.
local function check_alone(m, shape, isa)
    if not schedule.few_possible(shape, isa) then
        local rule = "%s: projection.block = %d: must be a multiple of the %d lanes of %s"
        error(rule:format(m.name, shape.block, isa.lanes, isa.name), 0)
    end
    if m.neighbours > 1 and words.missing(isa, "masks") then
        local rule = "%s: neighbours = %d: must be 1 for %s, which has no words to compare vertices"
        error(rule:format(m.name, m.neighbours, isa.name), 0)
    end
end

-- Makes `kernels` use the codes and scores that those of another plan make: they have the same choices and places in
-- scratch.
local function take_codes(kernels, others)
    for _, kernel in ipairs { "load", "projection", "hash", "project" } do
        kernels.names[kernel] = others.names[kernel]
    end
    for place, at in pairs(others.scratch) do
        assert(kernels.scratch[place] == at, place)
    end
end

-- Builds the plan of model `m` (validated) for the instruction sets `isas`, with the choices in `wanted` (optional), by
-- name of the instruction set, and tables and projection of the types of those names (default f32). `part`: of another
-- model, for one thread:
--   names           of the part (gen/schema/names.lua)
--   x_step, y_step  floats from token to token
--   codes_of        a plan with the same projection, whose kernels make the codes (optional)
--   one_by_one      calls are for one token: there are no kernels for many where those for few are possible (optional)
--   unpadded        rows of tables lie close together, as those of firmware do (optional)
--   multiply_out    the blob has a BH4 projection as one dense matrix, too, which a schedule may choose for many
--                   tokens (optional)
-- or { target = a row of gen/plan/target.lua }: the firmware of a model; or { multiply_out = true }, of no other model.
-- `isas` then have what they need for tables of that type, if they want it.
function plan.build(m, isas, wanted, tables, projection_type, part)
    local multiply_out, target = part and part.multiply_out, part and part.target
    local shape = plan.shape(m, dtype.get(tables), dtype.get(projection_type, "projection"), multiply_out)
    if part and not part.names then part = nil end
    if part then
        for _, of in ipairs { shape, shape.multiplied } do
            of.x_step, of.y_step = part.x_step, part.y_step
        end
    else
        local sets = {}
        for i, set in ipairs(isas) do
            sets[i] = isa_list.with_types(set, { shape.tables, shape.projection })
        end
        isas = sets
    end
    local tiers = { "few", target and "few" or "many", m.neighbours > 1 and not target and "masks" or "few" }
    tiers[4], tiers[5] = shape.tables.name, shape.projection.name
    local word = shape.projection.word
    if word.integers then
        tiers[5], tiers[6] = "integer", word.rows == 2 and "pairs" or "quads"
    end
    local choices = {}
    for i, isa in ipairs(isas) do
        words.demand(isa, tiers, m.name)
        choices[i] = schedule.make(shape, isa, wanted and wanted[isa.name] or {})
    end
    local layout = gather.layout(shape, target ~= nil or part and part.unpadded)
    local projection = stage.projection(shape, 2, 1)
    local multiplied = shape.multiplied and stage.projection(shape.multiplied)
    local sections, packed_bytes = lookup_sections.of(m, shape, projection, layout, multiplied)

    local p = {
        family = "lookup",
        input = "float",
        output = "float",
        model = m,
        shape = shape,
        names = part and part.names or names.public(m.name),
        openmp = not part,
        makes_codes = not (part and part.codes_of),
        sections = sections,
        tensors = lookup_sections.tensors(m, shape),
        packed_bytes = packed_bytes,
        table_bytes = dtype.size(shape.tables, shape.h * shape.rows * shape.d_out),
        projection_bytes = projection.words * 4,
        -- of the projection multiplied out, nil: it is not
        multiplied = multiplied and { bytes = multiplied.words * 4, flops = multiplied.flops },
        variants = {},
        scratch_bytes = 0,
        scratch_bytes_one = 0, -- that a call of one token works in
        wanted = wanted or {},
        tables = shape.tables,
        projection = shape.projection,
        pitch = layout.pitch,
        residual = shape.kind == "bh4" and shape.decay < 1,
        weights_struct_bytes = target and target.pointer_bytes * #sections or 8 * #sections + 8,
        target = target,
        dense_hidden = cost.dense_hidden(shape),
        -- as the manifest records them
        options = {
            schedule = wanted or {},
            tables = shape.tables.name,
            projection = shape.projection.name,
            ["multiply-out"] = shape.multiplied and true,
        },
    }
    p.digest = lookup_sections.digest(m, sections, nil, { panel = product.panel, pitch = layout.pitch })
    for i, isa in ipairs(isas) do
        local alone = target or part and part.one_by_one and schedule.few_possible(shape, isa)
        if alone then check_alone(m, shape, isa) end
        p.variants[i] = variant_of(m, shape, isa, choices[i], alone, p.openmp)
        for n, others in ipairs(p.makes_codes and {} or part.codes_of.variants[i].stages) do
            take_codes(p.variants[i].stages[n], others)
        end
        p.scratch_bytes = math.max(p.scratch_bytes, p.variants[i].scratch_bytes)
        p.scratch_bytes_one = math.max(p.scratch_bytes_one, p.variants[i].scratch_bytes_one)
    end
    p.constants = constants_of(p)
    p.mflop = plan.mflop(shape, projection.flops)
    return p
end

-- How many of up to `threads` threads share a call of `tokens` tokens by stage `s`.
function plan.threads(s, tokens, threads)
    return s.split and math.max(1, math.min(threads, tokens // s.split.min)) or 1
end

-- The stage of variant `v` that takes a call of `tokens` tokens, and the gather of it that takes as many.
function plan.taken(v, tokens)
    local function of(list)
        local found = list[1]
        for i = 2, #list do
            if tokens <= list[i].up_to then found = list[i] end
        end
        return found
    end
    local s = of(v.stages)
    return s, of(s.gathers)
end

-- The stage of variant `v` with a gather of that name, and the gather; nil: there is none.
function plan.named(v, name)
    for _, s in ipairs(v.stages) do
        for _, g in ipairs(s.gathers) do
            if g.name == name then return s, g end
        end
    end
end

-- What variant `v` does for a call of `tokens` tokens, as gen/plan/cost.lua wants it.
function plan.work(p, v, tokens)
    local word, at_once, s = p.projection.word, v.isa.products_at_once or {}, plan.taken(v, tokens)
    local multiplied = s.shape.of and p.multiplied
    return {
        projection_flops = multiplied and multiplied.flops or p.mflop.projection * 1e6,
        products_at_once = word.integers and (at_once[p.projection.name] or word.rows) or nil,
        projection_bytes = multiplied and multiplied.bytes or p.projection_bytes,
        pass = s.pass,
        row_bytes = p.table_bytes // p.shape.rows * p.shape.neighbours,
        table_bytes = p.table_bytes,
        tokens = tokens,
        chunk = v.stages[1].chunk,
    }
end

return plan
