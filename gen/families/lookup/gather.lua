-- Plans the gather y = bias + sum of s_k T_k[c_k]: how tables lie in memory, and which columns are summed together.
local blob = require "gen.plan.blob"
local dtype = require "gen.plan.dtype"
local gather_calls = require "gen.families.lookup.gather_calls"
local integer_sums = require "gen.families.lookup.integer_sums"
local names = require "gen.schema.names"
local scratch = require "gen.families.lookup.scratch"

local gather = {}

local cache_line = 64 -- bytes
-- How a copy prefetches, by the choice gather.pack: the instruction set's word and how many lines ahead. Past L2, more
-- than a core can have under way, less than pushes others out; into L2, more; not at all.
local copies = { { word = "prefetch_nta", lines = 32 }, { word = "prefetch_l2", lines = 128 }, {} }

-- of a row, prefetched by the hash: two and four take 1 to 2 % longer (one token of roberta_small, Cascade Lake)
local first_lines = 3

-- Tables written out in one step of a gather of whole rows of integers: gcc 12 copies sums in a loop.
local max_whole_unroll = 16
local max_float_unroll = 8 -- tables of floats

-- The least number of elements from `columns` on that fills whole bytes.
local function whole_bytes(columns, tables) return dtype.held(tables, dtype.size(tables, columns)) end

-- Packed tables: [h][2^tau][pitch], a row of d_out elements whole and on a line of its own, so that one token reads it
-- in one go. An odd number of lines: the same columns of all rows then fall into all sets of a cache, and many tokens
-- can keep a tile of columns of a group of tables there. Rows shorter than a line are not padded, nor are those of
-- firmware, where flash is short.
local function pitch_of(d_out, tables)
    local elements = dtype.held(tables, cache_line)
    if d_out < elements then return whole_bytes(d_out, tables) end
    local lines = (d_out + elements - 1) // elements
    return (lines | 1) * elements
end

function gather.layout(shape, unpadded)
    local pitch = unpadded and whole_bytes(shape.d_out, shape.tables) or pitch_of(shape.d_out, shape.tables)
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
-- `from`. A row of a tile is held in `accumulators` registers as `strips.count` strips of `vectors` vectors, then a
-- remainder of `vectors_left` whole vectors and `partial` floats, `rest` floats in all.
local function tiles_of(shape, isa, columns, accumulators, byte_scores)
    local words, tiles = integer_sums.words(shape, isa, byte_scores), {}
    local lanes = words and words.columns or isa.lanes
    local vectors = words and accumulators // words.vectors or accumulators
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

-- How many elements of a row it prefetches for the gather `g`: at least the first strip where strips are prefetched
-- from token to token.
local function prefetch_first(shape, g)
    local elements = dtype.held(shape.tables, first_lines * cache_line)
    local s = g.tiles[1].strips
    if g.prefetch_tokens then elements = math.max(elements, s.count > 0 and s.floats or s.rest) end
    return math.min(elements, shape.d_out)
end

-- How the choice `value` of a gather has the next strip of rows prefetched while one is summed: the word of the
-- instruction set, nil: not; and whether behind the last strip of a token comes the first one of the next token.
local function prefetch_strip(value)
    if value == 0 then return nil, false end
    return value == 3 and "prefetch_l2" or "prefetch_l1", value == 3
end

-- How many of `tiles` there are: threads can gather one each.
local function parts_of(tiles)
    local parts = 0
    for _, t in ipairs(tiles) do
        parts = parts + t.count
    end
    return parts
end

-- How the tokens of a chunk share the prefetch of the rows of the next `group` tables: { every, rows }, `rows` rows by
-- every `every`th token.
local function prefetch_next(shape, group, chunk)
    local rows = group * shape.rows
    if chunk >= rows then return { every = chunk // rows, rows = 1 } end
    return { every = 1, rows = rows // chunk }
end

-- How a slice of the tables, the pieces of rows in a tile of `columns` columns, is copied side by side before the
-- tokens read it: { pitch, bytes, word, distance }, units of storage from piece to piece, bytes of `group` tables, by
-- `choice` the instruction set's word that prefetches a piece, nil: none, and how many rows ahead of its copy; nil if
-- pieces do not start on a cache line or fill whole rows.
function gather.pack(shape, columns, group, choice)
    local tables = shape.tables
    if columns >= shape.d_out or columns * tables.bytes % cache_line > 0 then return nil end
    local lines, copy = dtype.size(tables, columns) // cache_line, copies[choice]
    return {
        pitch = dtype.units(tables, columns),
        bytes = group * shape.rows * lines * cache_line,
        word = copy.word,
        distance = copy.lines and math.max(1, copy.lines // lines),
    }
end

-- Whether sums of a tile of `columns` columns wait in a buffer of their own between groups of tables: pieces of y lie
-- so far apart that they fall into few sets of a cache, and each on a page of its own.
local function sums_wait(shape, columns, group) return columns < shape.d_out and group < shape.h end

-- Whether y can be written past the caches: in whole lines, once, and not read again.
function gather.streams(shape, isa, choices)
    local floats = cache_line // 4
    if shape.d_out % floats > 0 or shape.y_step % floats > 0 or choices["gather.columns"] % floats > 0 then
        return false
    end
    if integer_sums.words(shape, isa) then return shape.h <= integer_sums.max_tables(shape) end
    local columns, group = choices["gather.columns"], choices["gather.group"]
    return group >= shape.h or sums_wait(shape, columns, group)
end

-- The buffers of gather `g` with tokens in the lanes.
local function buffers_of(shape, g)
    local list, integers = {}, g.integers
    local function add(name, bytes) list[#list + 1] = { name = name, bytes = bytes } end
    if integers then
        -- Scores as integers and their units, what sums of a tile of columns begin with, and those that wait between
        -- groups of tables.
        local sums = integer_sums.pitch(integers, g.columns)
        add("words", g.room * integers.quads * integers.parts * 4)
        add("score_units", g.room * #integers.spans * 4)
        add("zeros", sums * 4)
        if integers.waits then add("sums", g.room * sums * 4) end
    elseif sums_wait(shape, g.columns, g.group) then
        add("sums", g.room * g.columns * 4)
    end
    if g.pack then add("slice", g.pack.bytes) end
    return list
end

-- The gather of stage `s` by the choices whose keys begin with `prefix`: "few", or of tokens in the lanes "gather", of
-- slices of the tables, or "whole", of whole rows, for chunks of so few tokens that they meet few rows of a slice
-- twice. Its sums run over the tables in the same order as those of slices: threads that share a call, some of them
-- with so few tokens, make the same y.
--   name, up_to       "many", "whole" or "few"; the tokens of a chunk that it takes
--   columns, group    columns and tables that are gathered in one pass over the tokens
--   byte_scores       1: where rows are summed as integers scores have a byte each
--   unroll            tables written out in one step
--   tiles, parts      of columns, and how many: threads can gather one each
--   room              tokens of a chunk, in whole tiles: scores and sums of these are written
--   integers          how rows are summed as integers (gen/families/lookup/integer_sums.lua), nil: as floats
--   prefetch_*, pack, stream    what is prefetched, copied and written past the caches; nil or false: nothing
--   packs_from        tokens: a tile alone meets too few rows of a slice; to copy only those that it meets takes 1.2 to
--                     4 times as long as none
--   calls             in their order (gen/families/lookup/gather_calls.lua)
--   scratch, scratch_bytes, constants    places of its buffers behind the stage's, their end, and what begins the names
--                     of these places
function gather.plan(m, shape, s, choices, prefix, shared)
    local function choice(name, otherwise) return choices[prefix .. "." .. name] or otherwise end
    local isa, lanes, whole = s.isa, s.layout == "lanes", prefix == "whole"
    local g = {
        name = prefix == "gather" and s.name or prefix,
        up_to = whole and math.min(s.chunk, choice "tokens") or math.maxinteger,
        columns = choice("columns", shape.d_out),
        group = choice "group",
        byte_scores = choices[lanes and "gather.byte_scores" or "few.byte_scores"],
        stream = choice "stream" == 1,
        packs_from = 2 * s.tile,
        prefetch_codes = choice "prefetch_codes" == 1,
    }
    g.tiles = tiles_of(shape, isa, g.columns, choice "accumulators", g.byte_scores)
    g.parts = parts_of(g.tiles)
    g.room = blob.round_up(math.min(s.chunk, g.up_to), s.tile)
    local most = integer_sums.words(shape, isa) and max_whole_unroll or max_float_unroll
    g.unroll = choice("unroll", lanes and math.min(g.group, most) or 1)
    g.prefetch_strip, g.prefetch_tokens = prefetch_strip(choice("prefetch", 0))
    g.prefetch_first = not lanes and choice "prefetch" >= 2 and prefetch_first(shape, g)
    g.prefetch_next = choice "prefetch_next" == 1 and prefetch_next(shape, g.group, s.chunk)
    local pack = choice("pack", 0)
    g.pack = pack > 0 and gather.pack(shape, g.columns, g.group, pack)
    g.integers = integer_sums.plan(shape, s, g)

    g.scratch, g.scratch_bytes = scratch.places(lanes and buffers_of(shape, g) or {}, s.scratch_bytes)
    g.constants = isa.name:upper() .. (g.name == "many" and "" or "_" .. g.name:upper()) .. "_SCRATCH_"
    local ending = not lanes and s.name
        or "t" .. s.tile .. "_g" .. g.group .. (whole and "_whole" or "_c" .. g.columns)
    local function name(kernel) return names.variant(m.name, kernel .. "_" .. shape.tables.name, isa.name, ending) end
    local shares = shared and lanes and not whole and g.parts > 1
    g.names = { gather = name "gather", columns = shares and name "gather_columns" }
    g.calls = gather_calls.plan(shape, s, g)
    return g
end

return gather
