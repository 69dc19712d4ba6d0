-- Plans the order in which a gather adds tables to a tile of columns: a list of calls, group after group.
--
-- A call is { tables, first } (numbers of tables) or, in a loop over such groups, { tables, loop = {first, last, step} }
--   table_at, code_at, words_at  offsets of the first table, its codes and its words of integer scores; in a loop these
--                                are steps from table to table
--   from                         what is added to: "bias", "zeros" (integers), "sums" that wait, or y
--   to                           "sums" or "y"
--   next                         offset of the tables that are read next; nil: they are those of the next columns; in a
--                                loop they follow, and `loop_next` is that of its last turn, if it has another
-- "sums" that wait have a buffer of their own, or are y itself.
local gather_calls = {}

-- Sums of floats: of tile-major codes, `slots` of a table apart; `waits`: whether sums have a buffer of their own.
local function float_calls(shape, v, pitch)
    local group, slots, waits = v.group, shape.neighbours * v.tile, v.scratch.sums ~= nil
    local slice = shape.rows * pitch -- elements of a table
    local whole, rest = shape.h // group, shape.h % group
    local list = {}
    local function add(call, at)
        call.table_at, call.code_at = at * slice, at * slots
        list[#list + 1] = call
    end
    -- Fewer tables are left than of a group: then the last rows are prefetched, some for the second time.
    local last_next = rest > 0 and (shape.h - group) * slice or nil
    add({
        tables = group,
        first = 0,
        from = "bias",
        to = (whole > 1 or rest > 0) and "sums" or "y",
        next = whole > 1 and group * slice or last_next,
    }, 0)
    local looped = waits and rest == 0 and whole - 1 or whole -- the last group writes y
    if looped > 1 then
        add({
            tables = group,
            loop = { first = group, last = looped * group, step = group },
            from = "sums",
            to = "sums",
            loop_next = looped == whole and { turn = (whole - 1) * group, at = last_next } or nil,
        }, 1)
    end
    if looped < whole and whole > 1 then
        add({ tables = group, first = looped * group, from = "sums", to = "y" }, looped * group)
    end
    if rest > 0 then add({ tables = rest, first = whole * group, from = "sums", to = "y" }, whole * group) end
    return list
end

-- Sums of integers: `from` is what sums begin with, `base` what is added to them in floats.
local function integer_calls(shape, v, pitch)
    local group, rows, list = v.group, v.gather_i8.rows, {}
    local slice = shape.rows * pitch
    local function add(run, at, call)
        call.run, call.tables = run, run.tables
        call.table_at, call.code_at, call.words_at = at * slice, at * v.tile, at * 2 * v.tile // rows
        list[#list + 1] = call
    end
    local function next_at(table) return table < shape.h and table * slice or nil end
    for n, span in ipairs(v.gather_i8.spans) do
        local first, last = span.table, span.table + span.tables - span.last.tables
        if first + group == last then
            add(span.group, first, { first = first, from = "zeros", to = "sums", next = next_at(last) })
        elseif first < last then
            add(
                span.group,
                1,
                { loop = { first = first, last = last, step = group }, from = "sums", zeros_at = first, to = "sums" }
            )
        end
        add(span.last, last, {
            first = last,
            from = first < last and "sums" or "zeros",
            base = n > 1 and "y" or "bias",
            unit_at = (n - 1) * v.chunk,
            to = "y",
            next = next_at(span.table + span.tables),
        })
    end
    return list
end

-- The calls for every tile of columns of `v`, whose tables have rows of `pitch` elements.
function gather_calls.plan(shape, v, pitch)
    return (v.gather_i8 and v.regime == "many" and integer_calls or float_calls)(shape, v, pitch)
end

return gather_calls
