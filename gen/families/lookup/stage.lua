-- Plans a stage of a variant: the kernels that take calls of up to so many tokens, one for each step of the layer.
--
-- Every stage has
--   name, up_to      "many" or "few", as names of kernels end; the tokens of a call that it takes
--   layout           how its kernels hold tokens, a row of `layouts`
--   shape            sizes, of a BH4 projection that it has multiplied out those of the dense one
--   isa              the instruction set, or a narrower one under its name
--   tile             tokens that lie side by side in codes, scores and z
--   chunk            tokens whose codes and scores wait in scratch before they are gathered
--   projected        tokens that buffers of the projection have room for
--   pass             tokens that share one pass over the projection's weights
--   x_step           floats from token to token of the projection's input
--   projection, hash, gathers    the steps: gen/families/lookup/{bh4,dense,neighbours,gather}.lua. The first gather
--                    takes chunks of any number of tokens, the others those of up to `up_to`
--   work, scratch    buffers of the projection; places of all buffers but those of gathers
--   split            how threads share a call: whole tiles of `tile` tokens, each thread `min` at least; nil: not
--   names            of the kernels
local bh4 = require "gen.families.lookup.bh4"
local bh4_steps = require "gen.families.lookup.bh4_steps"
local blob = require "gen.plan.blob"
local cost = require "gen.plan.cost"
local dense = require "gen.families.lookup.dense"
local gather = require "gen.families.lookup.gather"
local names = require "gen.schema.names"
local neighbours = require "gen.families.lookup.neighbours"
local product = require "gen.families.lookup.product"
local schedule = require "gen.families.lookup.schedule"
local scratch = require "gen.families.lookup.scratch"

local stage = {}

-- Tokens in rows that are projected before they are gathered: rows of tables push the projection's weights out of L2,
-- and they come back once for all of these.
local rows_chunk = 32

function stage.projection(shape, radix, align)
    if shape.kind == "bh4" then return bh4.plan(shape, radix, align) end
    return dense.plan(shape)
end

-- How the kernels of a stage hold tokens: each row gives what a stage has of its own, for an instruction set and
-- choices, and `endings` of names. A matrix engine needs none: it multiplies what `lanes` has rounded.
local layouts = {}

-- Tokens lie in the lanes, feature after feature.
function layouts.lanes(_, shape, isa, choices)
    local vectors, tiles, outputs = choices["tile.vectors"], choices["project.tiles"], choices["product.outputs"]
    local tile = vectors * isa.lanes
    local t = "t" .. tile
    return {
        name = "many",
        isa = isa,
        tile = tile,
        chunk = choices["chunk.tokens"],
        projected = tile * tiles,
        pass = tile * tiles,
        vectors = vectors,
        tiles = tiles,
        outputs = outputs,
        rows_first = choices["project.rows_first"] == 1,
        x_step = shape.d,
        projection = stage.projection(shape, choices["butterfly.radix"], 1),
        hash = neighbours.plan(shape, isa.lanes, false),
        gather_choices = choices["whole.tokens"] > 0 and { "gather", "whole" } or { "gather" },
        load = "load_f32",
        endings = { load = t, projection = t .. "_o" .. outputs .. "_m" .. tiles, hash = t },
        range = tile, -- tokens that a thread's range is made of
    }
end

-- A token is a row, a tile of its own: outputs, features and tables lie in the lanes.
function layouts.rows(m, shape, isa, choices, up_to)
    isa = schedule.few_isa(shape, isa)
    local vectors, pass, chunk = product.few_vectors(isa), choices["few.tokens"], math.min(rows_chunk, up_to)
    -- Sums of several tokens fill the registers; those of a token alone would wait for each other. Words are unpacked
    -- one at a time and leave room for twice as many sums, beside the inputs of a word, the word and what is in it.
    local rows = shape.projection.word.rows
    return {
        name = "few",
        isa = isa,
        tile = 1,
        chunk = chunk,
        projected = chunk,
        pass = pass,
        vectors = vectors,
        vectors_alone = rows > 1 and 2 * vectors + rows + 2 <= isa.registers and 2 * vectors or vectors,
        x_step = m.norm == nil and shape.x_step or shape.d,
        projection = stage.projection(shape, choices["butterfly.radix"], isa.lanes),
        hash = neighbours.plan(shape, isa.lanes, isa.lanes > 1),
        gather_choices = { "few" },
        load = "normalise_f32",
        endings = { load = "few", projection = "few_v" .. vectors .. "_n" .. pass, hash = "few" },
        range = pass,
    }
end

-- How calls of up to `max` tokens are split over threads: ranges of whole tiles of `tile` tokens, each of at least
-- `min`; nil if none is large enough.
local function split_of(shape, projection, tile, max)
    local min = blob.round_up(cost.tokens_worth_a_thread(cost.folded(shape, projection.flops)), tile)
    return 2 * min <= max and { tile = tile, min = min } or nil
end

-- The stage of `layout` of model `m` for calls of up to `up_to` tokens; `shared`: threads may share a call.
function stage.plan(m, shape, isa, choices, layout, up_to, shared)
    if choices["project.dense"] == 1 and (layout == "lanes" or shape.same_codes) then shape = shape.multiplied end
    local s = layouts[layout](m, shape, isa, choices, up_to)
    s.layout, s.up_to, s.shape = layout, up_to, shape
    s.split = split_of(shape, s.projection, s.range, up_to)
    s.work = scratch.work(shape, s)
    local kernels = {
        load = s.load,
        projection = shape.kind .. "_" .. shape.projection.name,
        hash = "sign_hash_" .. shape.score.name .. "_f32",
        project = "project",
        ffn = "ffn",
    }
    s.names = {}
    for kernel, text in pairs(kernels) do
        s.names[kernel] = names.variant(m.name, text, isa.name, s.endings[kernel] or s.name)
    end
    (shape.kind == "bh4" and bh4_steps or dense).add(s, shape)
    s.scratch, s.scratch_bytes = scratch.places(scratch.buffers(shape, s), 0)
    local gathers, last = {}, 0
    for i, prefix in ipairs(s.gather_choices) do
        gathers[i] = gather.plan(m, shape, s, choices, prefix, shared)
        last = math.max(last, gathers[i].scratch_bytes)
    end
    s.gathers, s.constants, s.scratch_bytes = gathers, gathers[1].constants, last
    return s
end

return stage
