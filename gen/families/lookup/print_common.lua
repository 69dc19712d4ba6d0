-- What the kernels of a stage have in common: names, loops and words of comments that their templates print.
local barriers = require "gen.print.barriers"
local blob = require "gen.plan.blob"
local buffers = require "gen.families.lookup.print_buffers"
local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"
local literal = require "gen.print.literal"
local prologue = require "gen.print.prologue"

-- The values of the kernel `symbol` of stage `v` of plan `p`, or of the gather `gather` of that stage.
return function(p, v, symbol, gather)
    local m, shape, first = p.model, p.shape, v.gathers and v.gathers[1]
    local name = (gather or v).name
    return {
        isa = v.isa,
        kernels = v,
        gather = gather or first or false,
        values_type = "float",
        hash = v.hash,
        projection = p.projection,
        symbol = symbol,
        lanes = v.isa.lanes,
        tile = v.tile,
        vectors = v.vectors,
        prologue = prologue(p, v.isa),
        helper = p.names.helper(name ~= "many" and name or nil),
        score = shape.score,
        weighted = shape.weighted,
        norm = m.norm ~= nil,
        eps = m.norm and literal.float(m.norm.eps) or "",
        one_over_d = literal.inverse(shape.d),
        openmp = p.openmp,
        makes_codes = p.makes_codes,
        -- Whether the hash prefetches rows of which it has just found the codes.
        prefetch_first = p.makes_codes and first and first.prefetch_first or false,
        pitch = p.pitch,
        line_elements = dtype.held(p.tables, blob.align),
        -- where a column of a row is, in units of storage
        place = function(column) return p.tables.bytes < 1 and expression.half(column) or column end,
        -- slot: number of a row among those that a token takes
        table_of = function(slot) return shape.neighbours > 1 and slot .. " / " .. shape.neighbours or slot end,
        vertices_argument = v.hash.bytes > 0 and ", vertices" or "",
        vertices_parameter = v.hash.bytes > 0 and ", void *restrict vertices" or "",
        x_rows = buffers.rows(shape.d, shape.x_step),
        y_rows = buffers.rows(shape.d_out, shape.y_step),
        slots_text = buffers.slots(shape),
        lane_axis = v.layout == "rows" and "" or "[" .. v.tile .. "]",
        constant = p.names.constant,
        -- so many floats of a tile, as rows of its tokens
        of_tile = function(floats)
            local rows = v.tile > 1 and floats % v.tile == 0 and floats // v.tile or 1
            return rows > 1 and rows .. " * " .. v.tile or floats
        end,
        in_scratch = buffers.in_scratch(p, gather or v),
        barriers = function(list) return barriers(p, v.isa, list) end,
    }
end
