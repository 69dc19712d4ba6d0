-- Plans the gather y = bias + sum of s_k T_k[c_k]: how tables lie in memory, and which columns are summed together.
local gather_i8 = require "gen.families.lookup.gather_i8"

local gather = {}

local cache_line = 64 -- bytes
-- How a copy prefetches, by the choice gather.pack: the instruction set's word and how many lines ahead. Past L2, more
-- than a core can have under way, less than pushes others out; into L2, more; not at all.
local copies = { { word = "prefetch_nta", lines = 32 }, { word = "prefetch_l2", lines = 128 }, {} }

-- of a row, prefetched by the hash: two and four take 1 to 2 % longer (one token of roberta_small, Cascade Lake)
local first_lines = 3

-- Packed tables: [h][2^tau][pitch], a row of d_out elements whole and on a line of its own, so that one token reads it
-- in one go. An odd number of lines: the same columns of all rows then fall into all sets of a cache, and many tokens
-- can keep a tile of columns of a group of tables there. Rows shorter than a line are not padded, nor are those of
-- firmware, where flash is short.
function gather.pitch(d_out, bytes)
    local elements = cache_line // bytes
    if d_out < elements then return d_out end
    local lines = (d_out + elements - 1) // elements
    return (lines | 1) * elements
end

function gather.layout(shape, unpadded)
    local pitch = unpadded and shape.d_out or gather.pitch(shape.d_out, shape.tables.bytes)
    return {
        pitch = pitch,
        elements = shape.h * shape.rows * pitch,
        boxes = {
            {
                from = 0,
                to = 0,
                slice_to = shape.rows * pitch,
                dims = {
                    { count = shape.rows, from = shape.d_out, to = pitch },
                    { count = shape.d_out, from = 1, to = 1 },
                },
            },
        },
    }
end

-- The tiles of `columns` columns: { {from, width, count, strips} }, `count` tiles of `width` columns from column
-- `from`. A row of a tile is held in registers as `strips.count` strips of `vectors` vectors, then a remainder of
-- `vectors_left` whole vectors and `partial` floats, `rest` floats in all.
function gather.tiles(shape, columns, lanes, vectors)
    local tiles = {}
    local function add(from, width, count)
        if width == 0 or count == 0 then return end
        local whole = width // lanes
        tiles[#tiles + 1] = {
            from = from,
            width = width,
            count = count,
            strips = {
                count = whole // vectors,
                vectors = vectors,
                floats = vectors * lanes,
                rest_at = whole // vectors * vectors * lanes,
                rest = width % (vectors * lanes),
                vectors_left = whole % vectors,
                partial = width % lanes,
            },
        }
    end
    local full = shape.d_out // columns
    add(0, columns, full)
    add(full * columns, shape.d_out % columns, 1)
    return tiles
end

-- Whether the hash can prefetch rows as soon as it knows them: not if a token takes all.
function gather.finds_rows(shape) return shape.neighbours < shape.rows end

-- How many elements of a row it prefetches for the gather of `v`: at least the first strip where strips are prefetched
-- from token to token.
function gather.prefetch_first(shape, v)
    local elements = first_lines * cache_line // shape.tables.bytes
    local s = v.gather[1].strips
    if v.prefetch_tokens then elements = math.max(elements, s.count > 0 and s.floats or s.rest) end
    return math.min(elements, shape.d_out)
end

-- How the choice `value` of a gather has the next strip of rows prefetched while one is summed: the word of the
-- instruction set, nil: not; and whether behind the last strip of a token comes the first one of the next token, if
-- the choice is `far`.
function gather.prefetch_strip(value, far)
    if value == 0 then return nil, false end
    if value == far then return "prefetch_l2", true end
    return "prefetch_l1", false
end

-- How many of `tiles`, what gather.tiles returns, there are: threads can gather one each.
function gather.parts(tiles)
    local parts = 0
    for _, t in ipairs(tiles) do
        parts = parts + t.count
    end
    return parts
end

-- How the tokens of a chunk share the prefetch of the rows of the next `group` tables: { every, rows }, `rows` rows by
-- every `every`th token.
function gather.prefetch_next(shape, group, chunk)
    local rows = group * shape.rows
    if chunk >= rows then return { every = chunk // rows, rows = 1 } end
    return { every = 1, rows = rows // chunk }
end

-- How a slice of the tables, the pieces of rows in a tile of `columns` columns, is copied side by side before the
-- tokens read it: { pitch, bytes, word, distance }, elements from piece to piece, bytes of `group` tables, by `choice`
-- the instruction set's word that prefetches a piece, nil: none, and how many rows ahead of its copy; nil if pieces do
-- not start on a cache line or fill whole rows.
function gather.pack(shape, columns, group, choice)
    local bytes = shape.tables.bytes
    if columns >= shape.d_out or columns * bytes % cache_line > 0 then return nil end
    local lines, copy = columns * bytes // cache_line, copies[choice]
    return {
        pitch = lines * cache_line // bytes,
        bytes = group * shape.rows * lines * cache_line,
        word = copy.word,
        distance = copy.lines and math.max(1, copy.lines // lines),
    }
end

-- Whether sums of a tile of columns wait in a buffer of their own between groups of tables: pieces of y lie so far
-- apart that they fall into few sets of a cache, and each on a page of its own.
function gather.sums_wait(shape, choices)
    return choices["gather.columns"] < shape.d_out and choices["gather.group"] < shape.h
end

-- Whether y can be written past the caches: in whole lines, once, and not read again.
function gather.streams(shape, isa, choices)
    local floats = cache_line // 4
    if shape.d_out % floats > 0 or shape.y_step % floats > 0 or choices["gather.columns"] % floats > 0 then
        return false
    end
    if gather_i8.words(shape, isa) then return shape.h <= gather_i8.max_tables(shape) end
    return choices["gather.group"] >= shape.h or gather.sums_wait(shape, choices)
end

return gather
