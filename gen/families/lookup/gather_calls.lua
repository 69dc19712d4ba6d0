-- Plans the order in which a gather adds tables to a tile of columns: a list of calls, group after group.
--
-- A call is { tables, first } (numbers of tables) or, in a loop over such groups, { tables, loop = {first, last, step}
-- }
--   code_step, words_step  codes, and words of integer scores, from table to table
--   from               what is added to: "bias", "zeros" (integers), "sums" that wait, or y
--   to                 "sums" or "y"
--   next               number of the table that is read next; nil: the first one, of the next columns. In a loop it is
--                      the one that follows, but at most `max_next`; `last_turn`: the number of the table from which on
--                      it is the first one of the next columns, if it is in the loop
-- No prefetch goes beyond the tables: where fewer are left than of a group, it begins with earlier ones.
-- "sums" that wait have a buffer of their own, or are y itself.
local gather_calls = {}

-- Sums of floats: of tile-major codes, `slots` of a table apart; `waits`: whether sums have a buffer of their own.
local function float_calls(shape, stage, gather)
    local group, slots, waits = gather.group, shape.neighbours * stage.tile, gather.scratch.sums ~= nil
    local whole, rest = shape.h // group, shape.h % group
    local list = {}
    local function add(call)
        call.code_step = slots
        list[#list + 1] = call
    end
    local last_next = rest > 0 and shape.h - group or nil
    add {
        tables = group,
        first = 0,
        from = "bias",
        to = (whole > 1 or rest > 0) and "sums" or "y",
        next = whole > 1 and group or last_next,
    }
    local looped = waits and rest == 0 and whole - 1 or whole -- the last group writes y
    if looped == 2 then
        add {
            tables = group,
            first = group,
            from = "sums",
            to = "sums",
            next = looped < whole and 2 * group or last_next,
        }
    elseif looped > 2 then
        add {
            tables = group,
            loop = { first = group, last = looped * group, step = group },
            from = "sums",
            to = "sums",
            max_next = looped == whole and last_next or nil,
            last_turn = looped == whole and rest == 0 and (whole - 1) * group or nil,
        }
    end
    if looped < whole and whole > 1 then add { tables = group, first = looped * group, from = "sums", to = "y" } end
    if rest > 0 then add { tables = rest, first = whole * group, from = "sums", to = "y" } end
    return list
end

-- Sums of integers: `from` is what sums begin with, `base` what is added to them in floats.
local function integer_calls(shape, stage, gather)
    local group, step, list = gather.group, gather.integers.step, {}
    local function add(run, call)
        call.run, call.tables = run, run.tables
        call.code_step, call.words_step = shape.neighbours * stage.tile, gather.integers.parts * stage.tile // step
        list[#list + 1] = call
    end
    local max_next = math.max(0, shape.h - group)
    local function next_of(table) return table < shape.h and math.min(table, max_next) or nil end
    for n, span in ipairs(gather.integers.spans) do
        local first, last = span.table, span.table + span.tables - span.last.tables
        if first + group == last then
            add(span.group, { first = first, from = "zeros", to = "sums", next = next_of(last) })
        elseif first < last then
            add(span.group, {
                loop = { first = first, last = last, step = group },
                from = "sums",
                zeros_at = first,
                to = "sums",
                max_next = last > max_next and max_next or nil,
            })
        end
        add(span.last, {
            first = last,
            from = first < last and "sums" or "zeros",
            base = n > 1 and "y" or "bias",
            unit_at = span.unit_at,
            to = "y",
            next = next_of(span.table + span.tables),
        })
    end
    return list
end

-- The calls of `gather` of `stage` for every tile of columns.
function gather_calls.plan(shape, stage, gather)
    local of_integers = gather.integers and gather.integers.spans
    return (of_integers and integer_calls or float_calls)(shape, stage, gather)
end

return gather_calls
