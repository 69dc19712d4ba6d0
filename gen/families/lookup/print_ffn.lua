-- What the templates of whole layers print: buffers in scratch, and the arguments of the stages' kernels.
local buffers = require "gen.families.lookup.print_buffers"

-- Adds to `values` what the template of the driver of stage `v` reads beside what kernels have in common.
return function(p, v, values)
    local lanes = v.layout == "lanes"
    local normalises, list = lanes or p.model.norm ~= nil, {}
    if normalises then list[1] = { name = "x", storage = "float" } end
    values.projection_arguments = "weights, " .. (lanes and "x_tiles" or normalises and "normalised" or "x")
    for _, buffer in ipairs(buffers.of_projection(v)) do
        list[#list + 1] = buffer
        values.projection_arguments = values.projection_arguments .. ", " .. buffer.name
    end
    values.buffers, values.tables = list, p.tables
    local prefetch = values.prefetch_first
    values.prefetch_parameter = prefetch and ", const " .. p.names.weights .. " *prefetch" or ""
    values.prefetch_argument = prefetch and ", token == 0 ? prefetch : NULL" or ""
end
