-- What the templates of integer kernels print: from the plan's numbers to the names, lists and words that a template
-- loops over.
local kernels = require "gen.families.lookup.print"
local literal = require "gen.print.literal"

local integer_kernels = {}

-- Whether the functions are also written with NEON's instructions, which every AArch64 CPU has.
local function neon(p) return not p.target or p.target.name:find "^aarch64" ~= nil end

-- The templates of the model's own files, and what they read beside the plan.
function integer_kernels.api(p)
    return {
        header = p.target and "templates/firmware/model.h" or "templates/integer/model.h",
        source = p.target and "templates/firmware/model.c" or "templates/integer/model.c",
        prototypes = "templates/integer/prototypes.h",
        openmp = false,
        register_barriers = false,
        statuses = {},
        integers = true,
        input = "int16_t",
        output = "int32_t",
        layer_text = "templates/integer/layer.h",
        shape_text = "templates/integer/shape.h",
        calls_text = "templates/integer/calls.h",
        sizes_text = false,
        formula = kernels.formula(p),
        x_scale = literal.float(p.unit),
        y_scale = literal.float(2.0 ^ -p.fraction),
        fraction = p.fraction,
        norm = p.normalise ~= nil,
        functions = "templates/integer/functions.h",
        storage = p.projection.storage,
        neon = neon(p),
        constants = p.constants,
    }
end

-- Where the buffer of that name lies in the scratch of variant `v`, as a pointer to `storage`.
local function in_scratch(p, v)
    return function(name, storage)
        if v.scratch[name] == 0 then return "(" .. storage .. " *) scratch" end
        local at = "(unsigned char *) scratch + " .. p.names.macro("SCRATCH_" .. name:upper())
        return "(" .. storage .. " *) (void *) (" .. at .. ")"
    end
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
    local files = {}
    local function add(path, symbol, extend)
        local values = {
            isa = v.isa,
            v = v,
            symbol = symbol,
            prologue = kernels.prologue(p, v.isa),
            helper = p.names.helper(false),
            normalise = p.normalise or false,
            score = p.score,
            residual = p.residual,
            fraction = p.fraction,
            initialiser = initialiser,
            in_scratch = in_scratch(p, v),
            slots_text = "[" .. p.shape.h .. "]" .. (p.shape.neighbours > 1 and "[" .. p.shape.neighbours .. "]" or ""),
        }
        if extend then extend(values) end
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    if p.normalise then add("templates/integer/normalise.c", v.names.normalise) end
    add("templates/integer/projection.c", v.names.projection, function(values)
        local plan = p.projection_plan
        values.blocks, values.passes, values.groups, values.z_rows = plan.blocks, plan.passes, plan.groups, plan.rows.z
        values.blocks_total = p.shape.block > 0 and p.shape.padded // p.shape.block or 1
        values.bh4, values.storage = p.shape.kind == "bh4", p.projection.storage
        values.tile, values.lane_axis, values.values_type = 1, "", "int32_t"
    end)
    add("templates/integer/hash.c", v.names.hash)
    add("templates/integer/gather.c", v.names.gather)
    add("templates/integer/ffn.c", v.names.ffn)
    return files
end

return integer_kernels
