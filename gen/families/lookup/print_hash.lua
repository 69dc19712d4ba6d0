-- What the templates of the sign hash print: transposes to its lanes, and where a table's codes go.
local blob = require "gen.plan.blob"
local figures = require "gen.plan.figures"
local expression = require "gen.isa.expression"
local steps = require "gen.families.lookup.print_steps"

-- Adds the words for what the lanes hash, and where bits and vertices lie.
local function add_texts(values, shape, lanes)
    local bit, vertex = expression.times("j", values.step), expression.times("n", values.step)
    if lanes == 1 then
        values.lists_text = "A list of vertices of the cube"
        values.group_text = string.format("a group of %s: bit j is z[%s]", figures.plural(shape.tau, "bit"), bit)
        values.vertex_text = string.format("vertex n is code[%s]", vertex)
    else
        values.lists_text = "A list of vertices of the cube, one list a lane"
        local groups, bits = figures.plural(lanes, "group"), figures.plural(shape.tau, "bit")
        values.group_text = string.format("%s of %s, one group a lane: bit j is z[%s] and on", groups, bits, bit)
        values.vertex_text = string.format("vertex n is code[%s] and on", vertex)
    end
end

-- Lists of vectors in memory, as C: `floats` or `integers` is the type of their elements; put, get, put_index and
-- get_index an element of the list of that name; at, its address. Vectors without a size lie there as their lanes.
local function lists_of(isa)
    if not isa.sizeless then
        local function get(list, i) return list .. "[" .. i .. "]" end
        local function put(list, i, value) return get(list, i) .. " = " .. value end
        local function at(list, i) return list .. " + " .. i end
        return {
            floats = isa.vector,
            integers = isa.index,
            get = get,
            get_index = get,
            put = put,
            put_index = put,
            at = at,
        }
    end
    local function lanes_before(i)
        if math.type(i) then return i * isa.lanes end
        return expression.times(i:find "%W" and "(" .. i .. ")" or i, isa.lanes)
    end
    return {
        floats = "float",
        integers = "uint32_t",
        get = function(list, i) return isa.load(list, lanes_before(i)) end,
        get_index = function(list, i) return isa.load_words(list, lanes_before(i)) end,
        put = function(list, i, value) return isa.store(list, lanes_before(i), value) end,
        put_index = function(list, i, value) return isa.store_words(list, lanes_before(i), value) end,
        at = function(list, i) return list .. " + " .. lanes_before(i) end,
    }
end

-- Which rows a hash finds, in words.
local function rows_text(shape)
    local bits = ": bit j%s is z > 0, the first bit the most significant"
    if shape.neighbours == 1 then return "row of each table" .. bits:format "" end
    if shape.neighbours == shape.rows then return "all rows of each table, in order" end
    return "the " .. shape.neighbours .. " best rows of each table" .. bits:format " of the first"
end

-- Adds to `values` what the template of the hash of stage `v` reads beside what kernels have in common.
return function(p, v, values)
    local shape, lanes, by_tile, hash = p.shape, v.isa.lanes, v.layout == "lanes", v.hash
    -- What is transposed of a table's bits: { at, columns }.
    values.used, values.transposed = steps.used, {}
    local bits = not by_tile and lanes > 1 and shape.tau or 0
    for at = 0, bits - 1, lanes do
        table.insert(values.transposed, { at = at, columns = math.min(lanes, bits - at) })
    end
    values.list = lists_of(v.isa)
    values.step = v.layout == "rows" and lanes or v.tile
    add_texts(values, shape, lanes)
    values.bits_floats = shape.tau * lanes
    values.aligned_floats = not v.isa.any_alignment and values.bits_floats + blob.align // 4
    values.rows_text = rows_text(shape)
    local section = ' (LookupFFN, section "Put it together")'
    if by_tile then
        values.of_text = "tile of " .. v.tile .. " tokens" .. section
    else
        local how = lanes > 1 and ", " .. lanes .. " tables side by side" or ", table by table"
        values.of_text = "token" .. section .. how
    end
    -- Those of the lists of vertices.
    local lists, floats = hash.list_count, hash.spread and hash.count * lanes
    values.lists_floats = floats and (lists > 1 and lists .. " * " .. floats or lists * floats) or false
    -- How the tables of a token, or of a tile, are hashed; what hashes one, or as many as lanes.
    local in_lanes = hash.spread and "rows/hash_spread.c" or "rows/hash_lanes.c"
    local tables = by_tile and "lanes/hash_tables.c" or lanes == 1 and "rows/hash_tables.c" or in_lanes
    values.tables_template = "templates/lookup/" .. tables
    values.hash_one = values.helper .. "_" .. hash.name
    values.vertices = hash.bytes > 0 and "vertices"
end
