-- From a validated model to the plan: every size, offset and name of what is emitted, packed, verified and timed.
-- Pure data; nobody else computes any of it.
local bh4 = require "gen.families.lookup.bh4"
local bh4_steps = require "gen.families.lookup.bh4_steps"
local blob = require "gen.plan.blob"
local cost = require "gen.plan.cost"
local dense = require "gen.families.lookup.dense"
local dtype = require "gen.plan.dtype"
local figures = require "gen.plan.figures"
local gather = require "gen.families.lookup.gather"
local gather_calls = require "gen.families.lookup.gather_calls"
local gather_i8 = require "gen.families.lookup.gather_i8"
local isa_list = require "gen.isa.list"
local words = require "gen.isa.words"
local lookup_model = require "gen.families.lookup.model"
local names = require "gen.schema.names"
local product = require "gen.families.lookup.product"
local neighbours = require "gen.families.lookup.top_m"
local schedule = require "gen.families.lookup.schedule"
local lookup_sections = require "gen.families.lookup.sections"
local score = require "gen.plan.score"

local plan = {}

-- Tokens that the kernels for few project before they gather: rows push the projection's weights out of L2, and they
-- come back once for all of these.
local few_chunk = 32

-- Bytes after which addresses fall into the same set of L1 again: 64 sets of 64 bytes, on x86 and most of Arm.
local sets_bytes = 4096

-- Tables written out in one step of a gather of whole rows of integers: gcc 12 copies sums in a loop.
local max_whole_unroll = 16
local max_float_unroll = 8 -- tables of floats

-- The sizes of model `m` with tables and projection of these types (rows of gen/plan/dtype.lua).
--   x_step, y_step  floats from token to token of x and y
--   weighted        whether rows have a factor: their score, or the unit that they are in
function plan.shape(m, tables, projection)
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
        score = score.get(m.score),
        weighted = score.get(m.score).share or tables.scaled,
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

local function projection_plan(shape, radix, align)
    if shape.kind == "bh4" then return bh4.plan(shape, radix, align) end
    return dense.plan(shape)
end

-- Places of buffers in scratch, each aligned to `align` bytes (blob.align, if absent), and their end. A buffer that is
-- read `beside` another one lies half of `sets_bytes` off it: so the same elements of both fall into other sets of L1.
function plan.scratch_of(list, align)
    local places, at = {}, 0
    for _, buffer in ipairs(list) do
        local beside = places[buffer.beside]
        if beside then at = at + (sets_bytes // 2 - (at - beside)) % sets_bytes end
        places[buffer.name] = at
        at = blob.round_up(at + buffer.bytes, align or blob.align)
    end
    return places, at
end

-- The buffers of a projection that rounds its inputs, as work_of returns them. `blocks`: units of a token.
local function work_of_integers(shape, projection, tokens, lanes, many, rows_first)
    local word = shape.projection.word
    -- A vector of words is stored at a time, whatever a block needs: the next one's follow.
    local block = not word.offset and shape.padded or shape.kind == "bh4" and shape.block or shape.d
    local blocks, lines = shape.padded // block, product.lines(block, word.rows)
    local pitch = (blocks - 1) * lines + blob.round_up(lines, lanes)
    if many and not rows_first then
        pitch, blocks = projection.max_lines, word.offset and projection.max_folds or 2
    end
    local units_of = rows_first and "block" or "fold"
    local list = {
        {
            name = "integers",
            storage = word.storage,
            pitch = pitch,
            bytes = tokens * pitch * 4,
            text = (many and "[tiles][" or "[tokens][") .. pitch .. "]" .. (many and "[tile]" or "") .. " words",
        },
        {
            name = "units",
            storage = "float",
            blocks = blocks,
            bytes = tokens * blocks * (many and 8 or 4),
            text = not many and "[tokens]" .. (word.offset and "[" .. figures.plural(blocks, "block") .. "]" or "")
                or word.offset and "[tiles][" .. figures.plural(blocks, units_of) .. "][unit, inverse][tile]"
                or "[tiles][x, outputs of a stage][unit, inverse][tile]",
        },
    }
    if word.offset then
        list[3] = {
            name = "starts",
            storage = word.storage,
            bytes = tokens * blocks * 4,
            text = many and "[tiles][" .. figures.plural(blocks, units_of) .. "][tile]"
                or "[tokens][" .. figures.plural(blocks, "block") .. "]",
        }
    end
    if rows_first then
        list[4] = {
            name = "maxima",
            storage = "uint32_t",
            bytes = tokens * blocks * 4,
            text = "[" .. figures.plural(blocks, "block") .. "][tile] words",
        }
    end
    return list
end

-- What a projection works in beside its vectors, for `tokens` tokens: { name, storage, bytes, text = shape and use }.
--   integers, units   inputs rounded to words of integers, and the units of the tokens. Few tokens round all inputs,
--                     many the blocks one after the other
--   starts            what sums begin with where weights have an offset: then each block has a unit and a start
--   maxima            where stages go by rows: the largest magnitude of each block that butterflies make
--   unpacked          kernels for many tokens broadcast one weight after the other: they unpack words of several, a
--                     panel at a time
local function work_of(shape, projection, tokens, lanes, many, rows_first)
    local word = shape.projection.word
    if word.integers then return work_of_integers(shape, projection, tokens, lanes, many, rows_first) end
    if word.rows > 1 and many then
        return {
            {
                name = "unpacked",
                storage = "float",
                bytes = projection.panel_floats * 4,
                text = "[" .. projection.panel_floats .. "]",
            },
        }
    end
    return {}
end

local function buffers_of(shape, projection, hash, chunk, tokens, work)
    local list = { { name = "code", bytes = chunk * shape.slots * 2 } }
    if shape.weighted then list[2] = { name = "score", bytes = chunk * shape.slots * 4 } end
    for _, name in ipairs { "x", "a", "b", "z" } do
        if projection.rows[name] then
            -- The last butterfly adds a share of x to z: as many elements of each as it has wires, often 4 KiB apart.
            local beside = name == "z" and tokens > 1 and projection.rows.x and "x" or nil
            list[#list + 1] = { name = name, bytes = projection.rows[name] * tokens * 4, beside = beside }
        end
    end
    if hash.bytes > 0 then list[#list + 1] = { name = "vertices", bytes = hash.bytes } end
    return table.move(work, 1, #work, #list + 1, list)
end

-- The tiles of the gather of `vectors` accumulators.
local function gather_tiles(shape, isa, columns, vectors)
    local words = gather_i8.words(shape, isa)
    if words then return gather.tiles(shape, columns, words.columns, vectors // words.vectors) end
    return gather.tiles(shape, columns, isa.lanes, vectors)
end

-- How calls of up to `max` tokens are split over threads: ranges of whole tiles of `tile` tokens, each of at least
-- `min`; nil if none is large enough.
local function split_of(shape, projection, tile, max)
    local min = blob.round_up(cost.tokens_worth_a_thread(cost.folded(shape, projection.flops)), tile)
    return 2 * min <= max and { tile = tile, min = min } or nil
end

-- Adds to the kernels `v` what depends on all of their buffers: steps of the projection and calls of the gather.
local function add_steps(v, shape)
    (shape.kind == "bh4" and bh4_steps or dense).add(v, shape)
    v.calls = gather_calls.plan(shape, v)
end

-- The kernels for few tokens of `isa`, or of a narrower set, up to `chunk` of them at a time: a token is a tile of its
-- own, outputs, features and tables are in the lanes.
local function few_of(m, shape, isa, choices, chunk)
    isa = schedule.few_isa(shape, isa)
    local projection = projection_plan(shape, choices["butterfly.radix"], isa.lanes)
    local few = {
        regime = "few",
        constants = isa.name:upper() .. "_FEW_SCRATCH_",
        isa = isa,
        threshold = choices["few.threshold"],
        tile = 1,
        vectors = product.few_vectors(isa),
        tokens = choices["few.tokens"],
        chunk = chunk,
        group = choices["few.group"],
        unroll = 1,
        x_step = m.norm == nil and shape.x_step or shape.d, -- floats from token to token of the projection's input
        projection = projection,
        hash = neighbours.plan(shape, isa.lanes, isa.lanes > 1),
        gather = gather_tiles(shape, isa, shape.d_out, choices["few.accumulators"]),
    }
    few.prefetch_strip, few.prefetch_tokens = gather.prefetch_strip(choices["few.prefetch"], 3)
    few.gather_i8 = gather_i8.plan(shape, few, math.min(few.group, shape.h))
    few.prefetch_first = choices["few.prefetch"] >= 2 and gather.prefetch_first(shape, few) or nil
    few.split = split_of(shape, projection, few.tokens, few.threshold)
    -- Sums of several tokens fill the registers; those of a token alone would wait for each other. Words are unpacked
    -- one at a time and leave room for twice as many sums, beside the inputs of a word, the word and what is in it.
    local rows = shape.projection.word.rows
    few.vectors_alone = rows > 1 and 2 * few.vectors + rows + 2 <= isa.registers and 2 * few.vectors or few.vectors
    few.work = work_of(shape, projection, few.chunk, isa.lanes, false)
    few.scratch, few.scratch_bytes =
        plan.scratch_of(buffers_of(shape, projection, few.hash, few.chunk, few.chunk, few.work))
    few.names = {
        load = names.variant(m.name, "normalise_f32", isa.name, "few"),
        projection = names.variant(
            m.name,
            shape.kind .. "_" .. shape.projection.name,
            isa.name,
            "few_v" .. few.vectors .. "_n" .. few.tokens
        ),
        hash = names.variant(m.name, "sign_hash_" .. shape.score.name .. "_f32", isa.name, "few"),
        gather = names.variant(m.name, "gather_" .. shape.tables.name, isa.name, "few"),
        project = names.variant(m.name, "project", isa.name, "few"),
        ffn = names.variant(m.name, "ffn", isa.name, "few"),
    }
    add_steps(few, shape)
    return few
end

-- Appends to `buffers` those of a gather of many tokens `v`, for the v.room of a call.
local function add_gather_buffers(shape, v, choices, buffers)
    if v.gather_i8 then
        -- Scores as integers and their units, what sums of a tile of columns begin with, and those that wait between
        -- groups of tables.
        local sums = gather_i8.pitch(v.gather_i8, choices["gather.columns"])
        buffers[#buffers + 1] = { name = "words", bytes = v.room * v.gather_i8.quads * v.gather_i8.rows * 2 }
        buffers[#buffers + 1] = { name = "score_units", bytes = v.room * #v.gather_i8.spans * 4 }
        buffers[#buffers + 1] = { name = "zeros", bytes = sums * 4 }
        if v.gather_i8.waits then buffers[#buffers + 1] = { name = "sums", bytes = v.room * sums * 4 } end
    elseif gather.sums_wait(shape, choices) then
        buffers[#buffers + 1] = { name = "sums", bytes = v.room * choices["gather.columns"] * 4 }
    end
end

-- The gather of whole rows for the tokens of a chunk that are neither few nor many: `v` with other choices, for as many
-- tokens as its sums have room for. Sums run over the tables in the same order as those of slices: threads that share a
-- call, some of them with so few tokens, make the same y.
local function whole_of(m, shape, isa, choices, v)
    local whole, own = {}, {}
    for key, value in pairs(v) do
        whole[key] = value
    end
    for key, value in pairs(choices) do
        own[key] = value
    end
    local words = gather_i8.words(shape, isa)
    own["gather.columns"], own["gather.group"] = shape.d_out, choices["whole.group"]
    whole.constants, whole.word = isa.name:upper() .. "_WHOLE_SCRATCH_", "whole"
    whole.tokens = math.min(v.chunk, choices["whole.tokens"])
    whole.room = blob.round_up(whole.tokens, v.tile) -- scores and sums of whole tiles are written
    whole.group = choices["whole.group"]
    whole.unroll = math.min(whole.group, words and max_whole_unroll or max_float_unroll)
    whole.prefetch_strip, whole.prefetch_tokens = gather.prefetch_strip(choices["whole.prefetch"], 2)
    whole.prefetch_next, whole.pack, whole.prefetch_codes = nil, nil, false
    whole.stream = false
    whole.gather = gather_tiles(shape, isa, shape.d_out, choices["whole.accumulators"])
    whole.gather_i8 = gather_i8.plan(shape, whole)
    whole.parts = gather.parts(whole.gather)
    local buffers = buffers_of(shape, v.projection, v.hash, v.chunk, v.tile * v.tiles, v.work)
    add_gather_buffers(shape, whole, own, buffers)
    whole.scratch, whole.scratch_bytes = plan.scratch_of(buffers)
    whole.names = {
        gather = names.variant(
            m.name,
            "gather_" .. shape.tables.name,
            isa.name,
            "t" .. v.tile .. "_g" .. whole.group .. "_whole"
        ),
    }
    whole.calls = gather_calls.plan(shape, whole)
    return whole
end

-- The kernels of one instruction set, their buffers in scratch, names and loops: those for many tokens, tokens in the
-- lanes, and in `few` those for few tokens, if the schedule has any.
local function variant_of(m, shape, isa, choices, openmp)
    local tile = choices["tile.vectors"] * isa.lanes
    local projection = projection_plan(shape, choices["butterfly.radix"], 1)
    local v = {
        regime = "many",
        constants = isa.name:upper() .. "_SCRATCH_",
        isa = isa,
        schedule = choices,
        schedule_text = schedule.text(choices),
        choices_text = schedule.used_text(choices),
        projection = projection,
        vectors = choices["tile.vectors"],
        tile = tile,
        tiles = choices["project.tiles"],
        chunk = choices["chunk.tokens"],
        room = choices["chunk.tokens"], -- tokens of a call of the gather, in whole tiles
        rows_first = choices["project.rows_first"] == 1,
        outputs = choices["product.outputs"],
        group = choices["gather.group"],
        unroll = choices["gather.unroll"],
        prefetch_next = choices["gather.prefetch_next"] == 1
                and gather.prefetch_next(shape, choices["gather.group"], choices["chunk.tokens"])
            or nil,
        pack = choices["gather.pack"] > 0
                and gather.pack(
                    shape,
                    choices["gather.columns"],
                    choices["gather.group"],
                    choices["gather.pack"]
                )
            or nil,
        stream = choices["gather.stream"] == 1,
        -- tokens: a tile alone meets too few rows of a slice; to copy only those that it meets takes 1.2 to 4 times as
        -- long as none
        packs_from = 2 * tile,
        prefetch_codes = choices["gather.prefetch_codes"] == 1,
        hash = neighbours.plan(shape, isa.lanes, false),
        gather = gather_tiles(shape, isa, choices["gather.columns"], choices["gather.vectors"]),
        x_step = shape.d, -- floats from token to token of the projection's input
    }
    v.gather_i8 = gather_i8.plan(shape, v)
    v.split = split_of(shape, projection, tile, math.maxinteger)
    v.parts = gather.parts(v.gather)
    v.work = work_of(shape, projection, tile * v.tiles, isa.lanes, true, v.rows_first)
    local buffers = buffers_of(shape, projection, v.hash, v.chunk, tile * v.tiles, v.work)
    add_gather_buffers(shape, v, choices, buffers)
    if v.pack then buffers[#buffers + 1] = { name = "slice", bytes = v.pack.bytes } end
    v.scratch, v.scratch_bytes = plan.scratch_of(buffers)
    local t = "t" .. tile
    v.names = {
        load = names.variant(m.name, "load_f32", isa.name, t),
        projection = names.variant(
            m.name,
            shape.kind .. "_" .. shape.projection.name,
            isa.name,
            t .. "_o" .. v.outputs .. "_m" .. v.tiles
        ),
        hash = names.variant(m.name, "sign_hash_" .. shape.score.name .. "_f32", isa.name, t),
        gather = names.variant(
            m.name,
            "gather_" .. shape.tables.name,
            isa.name,
            t .. "_g" .. v.group .. "_c" .. choices["gather.columns"]
        ),
        columns = openmp and v.parts > 1 and names.variant(
            m.name,
            "gather_columns_" .. shape.tables.name,
            isa.name,
            t .. "_g" .. v.group .. "_c" .. choices["gather.columns"]
        ) or nil,
        project = names.variant(m.name, "project", isa.name, "many"),
        many = names.variant(m.name, "ffn", isa.name, "many"),
        ffn = names.variant(m.name, "ffn", isa.name),
    }
    if choices["few.threshold"] > 0 then
        v.few = few_of(m, shape, isa, choices, math.min(few_chunk, choices["few.threshold"]))
        v.scratch_bytes = math.max(v.scratch_bytes, v.few.scratch_bytes)
    end
    if choices["whole.tokens"] > 0 then
        v.whole = whole_of(m, shape, isa, choices, v)
        v.scratch_bytes = math.max(v.scratch_bytes, v.whole.scratch_bytes)
    end
    v.scratch_bytes_one = v.few and v.few.scratch_bytes or v.scratch_bytes
    add_steps(v, shape)
    return v
end

-- The offsets and strides that kernels use by name: { name, value, doc }. Those of a regime follow its `constants`.
local function constants_of(p)
    local list = {}
    local prefix = p.names.prefix
    local function add(name, value, doc) list[#list + 1] = { name = prefix .. name, value = value, doc = doc } end
    add("ROW_PITCH", p.pitch, "elements from row to row of the tables")
    add("TABLE_PITCH", p.shape.rows * p.pitch, "elements from table to table")
    if p.openmp and not p.target then add("THREAD_SCRATCH_BYTES", p.scratch_bytes, "of one thread") end
    local function add_scratch(v, text)
        local buffers = {}
        for name, at in pairs(v.scratch) do
            if at > 0 then buffers[#buffers + 1] = name end
        end
        table.sort(buffers, function(a, b) return v.scratch[a] < v.scratch[b] end)
        for _, name in ipairs(buffers) do
            add(v.constants .. name:upper(), v.scratch[name], "bytes into scratch" .. text)
        end
    end
    for _, v in ipairs(p.variants) do
        add_scratch(v, "")
        if v.few then add_scratch(v.few, ", few tokens") end
        if v.whole then add_scratch(v.whole, ", whole rows") end
    end
    return list
end

-- What firmware has: kernels for one token at a time only, and no threads.
local function firmware_of(m, shape, isa, choices)
    if not schedule.few_possible(shape, isa) then
        error(
            string.format(
                "%s: projection.block = %d: must be a multiple of the %d lanes of %s",
                m.name,
                shape.block,
                isa.lanes,
                isa.name
            ),
            0
        )
    end
    if m.neighbours > 1 and words.missing(isa, "masks") then
        error(
            string.format(
                "%s: neighbours = %d: must be 1 for %s, which has no words to compare vertices",
                m.name,
                m.neighbours,
                isa.name
            ),
            0
        )
    end
    choices["few.tokens"] = 1
    local v = few_of(m, shape, isa, choices, 1)
    v.schedule, v.schedule_text, v.choices_text = choices, schedule.text(choices), schedule.used_text(choices, "few")
    v.scratch_bytes_one = v.scratch_bytes
    return v
end

-- Buffers of the gather, which a plan that takes another's codes may have elsewhere.
local of_gather = { words = true, score_units = true, zeros = true, sums = true, slice = true }

-- Makes `kernels` use the codes and scores that those of another plan make: they have the same choices and places in
-- scratch.
local function take_codes(kernels, others)
    for _, stage in ipairs { "load", "projection", "hash", "project" } do
        kernels.names[stage] = others.names[stage]
    end
    for place, at in pairs(others.scratch) do
        assert(kernels.scratch[place] == at or of_gather[place], place)
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
-- or { target = a row of gen/plan/target.lua }: the firmware of a model.
-- `isas` then have what they need for tables of that type, if they want it.
function plan.build(m, isas, wanted, tables, projection_type, part)
    local shape = plan.shape(m, dtype.get(tables), dtype.get(projection_type, "projection"))
    local target = part and part.target
    if target then part = nil end
    if part then
        shape.x_step, shape.y_step = part.x_step, part.y_step
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
    local projection = projection_plan(shape, 2, 1)
    local sections, packed_bytes = lookup_sections.of(m, shape, projection, layout)

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
        table_bytes = shape.h * shape.rows * shape.d_out * shape.tables.bytes,
        projection_bytes = projection.words * 4,
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
        options = { schedule = wanted or {}, tables = shape.tables.name, projection = shape.projection.name },
    }
    p.digest = lookup_sections.digest(m, sections, nil, { panel = product.panel, pitch = layout.pitch })
    for i, isa in ipairs(isas) do
        local alone = target or part and part.one_by_one and schedule.few_possible(shape, isa)
        p.variants[i] = alone and firmware_of(m, shape, isa, choices[i])
            or variant_of(m, shape, isa, choices[i], p.openmp)
        if not p.makes_codes then
            local others = part.codes_of.variants[i]
            take_codes(p.variants[i], others)
            if others.few then take_codes(p.variants[i].few, others.few) end
        end
        p.scratch_bytes = math.max(p.scratch_bytes, p.variants[i].scratch_bytes)
        p.scratch_bytes_one = math.max(p.scratch_bytes_one, p.variants[i].scratch_bytes_one)
    end
    p.constants = constants_of(p)
    p.mflop = plan.mflop(shape, p.variants[#p.variants].projection.flops)
    return p
end

-- How many of up to `threads` threads share a call of `tokens` tokens by `kernels`, a variant or its `few`.
function plan.threads(kernels, tokens, threads)
    return kernels.split and math.max(1, math.min(threads, tokens // kernels.split.min)) or 1
end

-- What variant `v` does for a call of `tokens` tokens, as gen/plan/cost.lua wants it; `few`: with its kernels for few
-- tokens.
function plan.work(p, v, few, tokens)
    local word, at_once = p.projection.word, v.isa.products_at_once or {}
    return {
        projection_flops = p.mflop.projection * 1e6,
        products_at_once = word.integers and (at_once[p.projection.name] or word.rows) or nil,
        projection_bytes = p.projection_bytes,
        pass = few and v.few.tokens or v.tile * v.tiles,
        row_bytes = p.table_bytes // p.shape.rows * p.shape.neighbours,
        table_bytes = p.table_bytes,
        tokens = tokens,
        chunk = v.chunk,
    }
end

return plan
