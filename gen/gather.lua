-- Plans the gather y = bias + sum of s_k T_k[c_k]: tables packed by column tile, summed group by group.
local gather = {}

-- Packed tables: [column tile][h][2^tau][columns], the last tile narrower when `columns` does not divide d_out.
-- Returns { tiles = { {from, width, count, at} }, weights, boxes }: `count` tiles of `width` columns from column `from`.
function gather.layout(shape, columns)
    local layout = { tiles = {}, boxes = {}, columns = columns, weights = shape.h * shape.rows * shape.d_out }
    local function add(from, width, count)
        if width == 0 or count == 0 then return end
        local at = from * shape.h * shape.rows
        layout.tiles[#layout.tiles + 1] = { from = from, width = width, count = count, at = at }
        layout.boxes[#layout.boxes + 1] = {
            from = from, to = at, slice_to = shape.rows * width,
            dims = {
                { count = count, from = width, to = shape.h * shape.rows * width },
                { count = shape.rows, from = shape.d_out, to = width },
                { count = width, from = 1, to = 1 },
            },
        }
    end
    local full = shape.d_out // columns
    add(0, columns, full)
    add(full * columns, shape.d_out % columns, 1)
    return layout
end

-- How a row of `width` floats is held in registers: `strips` strips of `vectors` vectors, then a remainder of
-- `vectors_left` whole vectors and `partial` floats.
function gather.strips(width, lanes, vectors)
    local whole = width // lanes
    return {
        count = whole // vectors, vectors = vectors, floats = vectors * lanes,
        rest_at = whole // vectors * vectors * lanes, vectors_left = whole % vectors, partial = width % lanes,
    }
end

return gather
