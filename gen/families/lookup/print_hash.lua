-- What the templates of the sign hash print: transposes to its lanes, and where a table's codes go.
local blob = require "gen.plan.blob"
local steps = require "gen.families.lookup.print_steps"

-- Adds to `values` what the template of the hash of `v` reads beside what kernels have in common.
return function(p, v, values)
    local shape, lanes = p.shape, v.isa.lanes
    values.used, values.transposes = steps.used, steps.transposes(shape.tau, lanes)
    values.step = v.regime == "few" and lanes or v.tile
    values.panel_floats = shape.tau * lanes
    values.aligned_floats = not v.isa.any_alignment and values.panel_floats + blob.align // 4
    values.each_table = shape.neighbours > 1 and "table * " .. shape.neighbours or "table"
    values.rows_text = shape.neighbours == shape.rows and "all rows of each table, in order"
        or "the "
            .. shape.neighbours
            .. " best rows of each table: bit j of the first is z > 0, the first bit the most significant"
    values.prefetch_parameter = values.prefetch_first and ", const " .. p.names.weights .. " *prefetch" or ""
end
