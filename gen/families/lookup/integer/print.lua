-- What the templates of integer kernels print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local buffers = require "gen.families.lookup.print_buffers"
local kernels = require "gen.families.lookup.print"
local literal = require "gen.print.literal"
local prologue = require "gen.print.prologue"

local integer_kernels = {}

-- Which instructions beside portable C's the CPUs of plan `p` may have: the functions are written with these, too.
-- Flags of the user choose another CPU of the target's kind.
local function may_have(p)
    local target, own = p.target, {}
    local function kind(name) return not target or target.name:find("^" .. name) ~= nil end
    local another = not target or target.more_flags ~= nil
    own.mve = kind "cortex" and (another or target.isa == "mve")
    own.dsp = kind "cortex" and (another or target.name ~= "cortex-m0plus")
    own.neon = kind "aarch64"
    own.vectors = own.mve or own.neon
    return own
end

-- The templates of the model's own files, and what they read beside the plan.
function integer_kernels.api(p)
    local values = kernels.api(p)
    values.prototypes = "templates/lookup/integer/prototypes.h"
    values.calls_text = "templates/lookup/integer/calls.h"
    values.functions = "templates/lookup/integer/functions.h"
    values.x_scale, values.y_scale = literal.float(p.unit), literal.float(2.0 ^ -p.fraction)
    values.fraction = p.fraction
    values.storage, values.may_have = p.projection.storage, may_have(p)
    return values
end

-- Integers as lines of a C initialiser, 16 to a line.
local function initialiser(list)
    local lines = {}
    for first = 1, #list, 16 do
        lines[#lines + 1] = table.concat(list, ", ", first, math.min(first + 15, #list)) .. ","
    end
    return lines
end

-- Whether a block of `blocks` takes eight inputs at a time.
local function has_eights(blocks)
    for _, block in ipairs(blocks) do
        if block.rows >= 8 and block.strips[1].together == 4 then return true end
    end
    return false
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function integer_kernels.files(p, v)
    local files, plan, stage = {}, p.projection_plan, v.stages[1]
    local function add(name, symbol, more)
        local values = {
            isa = v.isa,
            kernels = stage,
            symbol = symbol,
            prologue = prologue(p, v.isa),
            helper = p.names.helper(false),
            normalise = p.normalise or false,
            score = p.score,
            residual = p.residual,
            fraction = p.fraction,
            initialiser = initialiser,
            in_scratch = buffers.in_scratch(p, stage),
            slots_text = buffers.slots(p.shape),
            may_have = may_have(p),
        }
        for key, value in pairs(more or {}) do
            values[key] = value
        end
        files[#files + 1] = { template = "templates/lookup/integer/" .. name, symbol = symbol, values = values }
    end
    if p.normalise then add("normalise.c", v.names.normalise) end
    add("projection.c", v.names.projection, {
        blocks = plan.blocks,
        passes = plan.passes,
        groups = plan.groups,
        z_rows = plan.rows.z,
        blocks_total = p.shape.block > 0 and p.shape.padded // p.shape.block or 1,
        bh4 = p.shape.kind == "bh4",
        storage = p.projection.storage,
        eights = has_eights(plan.blocks),
        tile = 1,
        of_tile = function(floats) return floats end, -- a tile is a token
        lane_axis = "",
        values_type = "int32_t",
    })
    add("hash.c", v.names.hash)
    add("gather.c", v.names.gather)
    add("ffn.c", v.names.ffn)
    return files
end

return integer_kernels
