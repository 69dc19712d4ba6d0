-- What the templates of the sign hash print: transposes to its lanes, and where a table's codes go.
local blob = require "gen.plan.blob"
local literal = require "gen.print.literal"
local steps = require "gen.families.lookup.print_steps"

-- Adds the words for what the lanes hash, and where bits and vertices lie.
local function add_texts(values, shape, lanes)
    local bit, vertex = literal.times("j", values.step), literal.times("n", values.step)
    if lanes == 1 then
        values.lists_text = "A list of vertices of the cube"
        values.group_text = string.format("a group of %d bits: bit j is z[%s]", shape.tau, bit)
        values.vertex_text = string.format("vertex n is code[%s]", vertex)
    else
        values.lists_text = "A list of vertices of the cube, one list a lane"
        values.group_text =
            string.format("%d groups of %d bits, one group a lane: bit j is z[%s] and on", lanes, shape.tau, bit)
        values.vertex_text = string.format("vertex n is code[%s] and on", vertex)
    end
end

-- Adds to `values` what the template of the hash of `v` reads beside what kernels have in common.
return function(p, v, values)
    local shape, lanes = p.shape, v.isa.lanes
    values.used, values.transposes = steps.used, steps.transposes(shape.tau, lanes)
    values.step = v.regime == "few" and lanes or v.tile
    add_texts(values, shape, lanes)
    values.bits_floats = shape.tau * lanes
    values.aligned_floats = not v.isa.any_alignment and values.bits_floats + blob.align // 4
    values.each_table = shape.neighbours > 1 and "table * " .. shape.neighbours or "table"
    values.rows_text = shape.neighbours == shape.rows and "all rows of each table, in order"
        or "the "
            .. shape.neighbours
            .. " best rows of each table: bit j of the first is z > 0, the first bit the most significant"
    values.prefetch_parameter = values.prefetch_first and ", const " .. p.names.weights .. " *prefetch" or ""
end
