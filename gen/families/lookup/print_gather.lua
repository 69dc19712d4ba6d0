-- What the templates of the gather print: loads of rows, sums of integers, and the arguments of its calls.
local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"
local steps = require "gen.families.lookup.print_steps"

local sum, times = expression.sum, expression.times

-- What sums of integers print.
local function add_integers(gather, values)
    values.words = gather.integers.words
    -- Rows lie `pitch` apart: a parameter where they may be copied, but a constant of each call that is inlined.
    -- Multiplying by one in a register and adding where its table begins takes 4096 tokens of roberta_small 1.02 times
    -- as long.
    values.pitch_parameter = gather.pack and "size_t pitch, " or ""
    values.pitch_argument = gather.pack and "pitch, " or ""
    values.tables_on = function(table, number)
        local rows = gather.pack and times(number, values.constant("TABLE_ROWS"), "pitch")
        return sum(table, rows or times(number, values.constant("TABLE_PITCH")))
    end
    values.commas = function(list) return table.concat(list, ", ") end
    values.used = steps.used
    -- What C calls the sums of a column, each between `before` and `after`.
    values.each_sum = function(before, after)
        local list = {}
        for k, name in ipairs(gather.integers.words.sums) do
            list[k] = before .. name .. after
        end
        return list
    end
    values.run_name = function(run, t) return values.helper .. "_" .. run.name .. "x" .. t.width end
end

-- Rows of floats are loaded in place; of other types, by one small function for whole vectors and one for each partial
-- vector that there is, whose name the template gives it where it prints it.
local function add_loads(p, isa, gather, values)
    local word = p.tables.name
    if p.tables.plain then
        values.load_row, values.load_row_partial = isa.load_unaligned, isa.load_partial or false
        return
    end
    -- Two elements to a byte: only a set of one lane begins in the middle of one.
    local packed, seen = p.tables.bytes < 1, {}
    local odd = packed and isa.lanes == 1
    local function add(n)
        if not seen[n] then
            seen[n] = {
                ending = "_load_" .. word .. (n < isa.lanes and "_first" .. n or ""),
                n = n,
                column = odd and ", size_t column" or "",
                value = odd and isa["load_" .. word]("row", "column")
                    or n < isa.lanes and isa["load_partial_" .. word]("row", n)
                    or isa["load_" .. word]("row"),
            }
            values.loads[#values.loads + 1] = seen[n]
        end
        return seen[n]
    end
    for _, tile in ipairs(gather.tiles) do
        local s = tile.strips
        if s.count > 0 or s.vectors_left > 0 then add(isa.lanes) end
        if s.partial > 0 then add(s.partial) end
    end
    values.load_row_partial = function(row, offset, n)
        return expression.call(add(n).name, odd and row .. ", " .. offset or sum(row, values.place(offset)))
    end
    values.load_row = function(row, offset) return values.load_row_partial(row, offset, isa.lanes) end
end

-- Adds how a call of gen/families/lookup/gather_calls.lua names tables: `table_at(table, call)` of a pointer to the
-- first one, and `next_at(table, call, after)`, what is read next.
local function add_places(values)
    local pitch = values.constant("TABLE_PITCH")
    local function at(table, number)
        return sum(table, times(number, pitch))
    end
    values.table_at = function(table, call) return at(table, call.loop and "k" or call.first) end
    values.next_at = function(table, call, after)
        if not call.loop then return call.next and at(table, call.next) or after end
        local step, next = call.loop.step, at(table, sum("k", call.loop.step))
        if call.max_next and call.max_next < call.loop.last then
            next = "k > " .. call.max_next - step .. " ? " .. at(table, call.max_next) .. " : " .. next
        elseif call.last_turn then
            next = "k == "
                .. call.last_turn
                .. " ? "
                .. (after:find("?", 1, true) and "(" .. after .. ")" or after)
                .. " : "
                .. next
        end
        return next
    end
end

-- What y is the sum of, in words.
local function sum_text(shape)
    local m, tables = shape.neighbours, shape.h == 1 and "the one table"
    if shape.weighted then
        local all = tables or (m > 1 and "each of " or "the ") .. shape.h .. " tables"
        return "over " .. (m > 1 and m .. " rows of " or "") .. all .. " of score times row"
    end
    return "of " .. (m > 1 and m .. " rows" or "one row") .. " of " .. (tables or "each of " .. shape.h .. " tables")
end

-- What waits in scratch during a gather, in words; empty: nothing.
local function waits_text(gather, integers)
    local list = { integers and "scores as integers" or nil }
    if gather.scratch.sums then list[#list + 1] = "sums of a tile of columns" end
    if gather.pack then list[#list + 1] = "a slice of the tables" end
    return (table.concat(list, ", "):gsub(", ([^,]*)$", " and %1"))
end

-- Adds to `values` what the template of the gather `gather` of stage `v` reads beside what kernels have in common.
return function(p, v, values, gather)
    local shape, m = p.shape, p.shape.neighbours
    -- Rows that a token takes in a call.
    local full, last = math.min(gather.group, shape.h) * m, shape.h % gather.group * m
    add_places(values)
    values.sum_text, values.product_text = sum_text(shape), shape.weighted and "score times row" or "rows"
    values.bytes_of = function(elements) return dtype.size(p.tables, elements) end
    values.vector_elements = dtype.held(p.tables, v.isa.lanes * 4)
    values.tables, values.pack, values.prefetch_next = p.tables, gather.pack, gather.prefetch_next
    values.sums_of_integers = gather.integers ~= nil and gather.integers.spans ~= nil
    values.waits_text = waits_text(gather, values.sums_of_integers)
    values.loads, values.unroll = {}, gather.unroll
    values.rest_rows = gather.unroll > 1 and (full % gather.unroll > 0 or last % gather.unroll > 0)
    local function factor(k) return k:find(" ") and "(" .. k .. ")" or k end
    values.count = m == 1 and "tables" or "tables * " .. m
    values.slot = function(k) return v.tile == 1 and k or factor(k) .. " * " .. v.tile end
    values.row_pitch = gather.pack and (gather.integers and "pitch" or "row_step") or values.constant("ROW_PITCH")
    values.row_of = function(k, code)
        return string.format(
            "table + (%s * %s + %s[%s]) * %s",
            values.table_of(factor(k)),
            values.constant("TABLE_ROWS"),
            code,
            values.slot(k),
            values.row_pitch
        )
    end
    if gather.integers then
        add_integers(gather, values)
    else
        add_loads(p, v.isa, gather, values)
    end
end
