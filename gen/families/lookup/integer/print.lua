-- What the templates of integer kernels print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local buffers = require "gen.families.lookup.print_buffers"
local kernels = require "gen.families.lookup.print"
local literal = require "gen.print.literal"
local prologue = require "gen.print.prologue"

local integer_kernels = {}

-- Whether the functions are also written with NEON's instructions, which every AArch64 CPU has.
local function neon(p) return not p.target or p.target.name:find "^aarch64" ~= nil end

-- The templates of the model's own files, and what they read beside the plan.
function integer_kernels.api(p)
    local values = kernels.api(p)
    values.prototypes = "templates/lookup/integer/prototypes.h"
    values.calls_text = "templates/lookup/integer/calls.h"
    values.functions = "templates/lookup/integer/functions.h"
    values.x_scale, values.y_scale = literal.float(p.unit), literal.float(2.0 ^ -p.fraction)
    values.fraction = p.fraction
    values.storage, values.neon = p.projection.storage, neon(p)
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
        tile = 1,
        lane_axis = "",
        values_type = "int32_t",
    })
    add("hash.c", v.names.hash)
    add("gather.c", v.names.gather)
    add("ffn.c", v.names.ffn)
    return files
end

return integer_kernels
