-- The files of a LookupFFN's bundle: which templates print them, and with what.
local buffers = require "gen.families.lookup.print_buffers"
local common = require "gen.families.lookup.print_common"
local cost = require "gen.plan.cost"
local gather = require "gen.families.lookup.print_gather"
local hash = require "gen.families.lookup.print_hash"
local prologue = require "gen.print.prologue"
local projection = require "gen.families.lookup.print_projection"
local steps = require "gen.families.lookup.print_steps"

local kernels = { prologue = prologue, projection_parameters = buffers.projection_parameters }

-- What z is, in words.
function kernels.formula(p)
    return (p.model.norm and "z projects LayerNorm(x)" or "z projects x")
        .. (p.shape.kind == "bh4" and " by BH4, blocks of " .. p.shape.block or " by one dense matrix")
        .. "."
end

-- Whether kernels have functions that work on their caller's registers: sums of integers, and what butterflies do
-- beside storing.
function kernels.inlines(p)
    for _, v in ipairs(p.variants) do
        local first, gather = v.stages[1], v.stages[1].gathers[1]
        local butterflies = first.layout == "lanes" and v.isa.lanes > 1 and first.shape.kind == "bh4" and p.makes_codes
        if butterflies or gather and gather.integers then return true end
    end
    return false
end

-- Whether kernels keep sums of integers in their registers by a macro.
function kernels.register_barriers(p)
    for _, v in ipairs(p.variants) do
        if v.isa.register_barrier then return p.tables.scaled or p.projection.word.rows > 1 end
    end
    return false
end

-- What the kernels of `stage` are for and do, in words; norm: whether those for few tokens normalise them.
function kernels.work_text(stage, makes_codes, norm)
    local few, vectors = stage.layout == "rows", stage.isa.lanes > 1
    local tokens = few and "few tokens" or "many tokens"
    if vectors then tokens = tokens .. (few and ", features in the lanes" or " in the lanes") end
    if not makes_codes then return tokens .. ": gather, and the whole layer" end
    local before = few and (norm and "normalise one, " or "") or "load one tile of " .. stage.tile .. " tokens, "
    local projected = few and (stage.chunk == 1 and "one" or "up to " .. stage.chunk)
        or (stage.tiles == 1 and "it" or "up to " .. stage.tiles .. " tiles")
    local behind = ", hash one, gather; all codes and scores; the whole layer"
    return tokens .. ": " .. before .. "project " .. projected .. behind
end

-- The templates of the model's own files, and what they read beside the plan, in any arithmetic.
function kernels.api(p)
    local integers = false
    for _, section in ipairs(p.sections) do
        integers = integers or section.storage ~= "float"
    end
    return {
        header = p.target and "templates/firmware/model.h" or "templates/lookup/model.h",
        source = p.target and "templates/firmware/model.c" or "templates/lookup/model.c",
        layer_text = "templates/lookup/layer.h",
        shape_text = "templates/lookup/shape.h",
        calls_text = "templates/lookup/ffn.h",
        sizes_text = false,
        floats = not p.exact,
        x_scale = false, -- of integers
        y_scale = false,
        fraction = false,
        input = p.input,
        output = p.output,
        prototypes = "templates/lookup/prototypes.h",
        constants = p.constants,
        projection_parameters = kernels.projection_parameters,
        work_text = kernels.work_text,
        openmp = p.openmp or false,
        makes_codes = p.makes_codes,
        register_barriers = kernels.register_barriers(p),
        inlines = kernels.inlines(p),
        integers = integers,
        max_threads = cost.max_threads,
        norm = p.model.norm ~= nil,
        scratch_bytes_one = not p.target and p.scratch_bytes_one or false,
        formula = kernels.formula(p),
        statuses = {},
        rows_text = p.shape.neighbours == p.shape.rows and "all " .. p.shape.rows .. " rows"
            or "the " .. p.shape.neighbours .. " best rows",
        alias_text = p.shape.d == p.shape.d_out and "may be x itself, otherwise no overlap" or "must not overlap x",
    }
end

-- Adds to `values` what the template of the driver of `stage` reads: buffers in scratch, and the arguments of the
-- projection and of the hash that prefetches rows; `few`: the stage for fewer tokens, false: none.
local function add_ffn(p, stage, values, few)
    local lanes = stage.layout == "lanes"
    local normalises, list = lanes or p.model.norm ~= nil, {}
    if normalises then list[1] = { name = "x", storage = "float" } end
    values.projection_arguments = "weights, " .. (lanes and "x_tiles" or normalises and "normalised" or "x")
    for _, buffer in ipairs(buffers.of_projection(stage)) do
        list[#list + 1] = buffer
        values.projection_arguments = values.projection_arguments .. ", " .. buffer.name
    end
    for _, buffer in ipairs(buffers.of_hash(stage)) do
        local at = buffer.name ~= "vertices" and " + first * " .. stage.shape.slots or ""
        values.projection_arguments = values.projection_arguments .. ", " .. buffer.name .. at
    end
    values.buffers, values.tables, values.few = list, p.tables, few
    local prefetch = values.prefetch_first
    values.prefetch_parameter = prefetch and ", const " .. p.names.weights .. " *prefetched" or ""
    values.prefetch_argument = prefetch and ", token == 0 ? prefetched : NULL" or ""
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function kernels.files(p, v)
    local files = {}
    for number, stage in ipairs(v.stages) do
        local lanes = stage.layout == "lanes"
        local function add(path, symbol, extend, of)
            local values = common(p, stage, symbol, of)
            if extend then extend(p, stage, values, of) end
            files[#files + 1] = { template = "templates/lookup/" .. path, symbol = symbol, values = values }
        end
        if p.makes_codes then
            if lanes then
                add("lanes/load_tokens.c", stage.names.load, function(_, _, values)
                    values.used, values.transposes = steps.used, steps.transposes(p.shape.d, stage.isa.lanes)
                    values.step = stage.tile
                end)
            elseif p.model.norm then
                add("rows/normalise.c", stage.names.load)
            end
            local tiled = stage.projection.tiled -- which hashes, too
            add("shared/" .. stage.shape.kind .. ".c", stage.names.projection, function(_, _, values)
                projection(p, stage, values)
                if tiled then hash(p, stage, values) end
            end)
            if not tiled then add("shared/sign_hash.c", stage.names.hash, hash) end
        end
        for _, of in ipairs(stage.gathers) do
            add("shared/gather.c", of.names.gather, gather, of)
        end
        add("shared/ffn.c", number == 1 and v.names.ffn or stage.names.ffn, function(_, _, values)
            add_ffn(p, stage, values, v.stages[number + 1] or false)
        end)
    end
    return files
end

return kernels
