-- Plans a gather that sums rows of i8 or i4 times scores as integers: spans of tables that share a unit of scores, and
-- the distinct functions for cache lines of columns, strips of lines and groups of tables.
local blob = require "gen.plan.blob"

local integer_sums = {}

-- Rows whose scores have one unit: a sum of products of two bytes stays exact in float32, one of a score and a byte
-- below 2^31.
local max_rows = 256

-- Tables whose scores have one unit.
function integer_sums.max_tables(shape) return max_rows // shape.neighbours end

-- Whether no score is below 0, of the best row of a table and of the second one. A score is a share of the softmax,
-- which is positive, perhaps times <z, S>, S the signs of the row's number.
--   the best row    <z, S> = A, the sum of |z|
--   the second one  differs in the bit with the least |z|, a: <z, S> = A - 2 a. With tau >= 2 another bit has b >= a,
--                   and A >= a + b >= 2 a. (With tau = 1 it is -a.)
-- Kernels compute the same in float32, not less: A is made by adding tau numbers >= 0 one after the other, and rounding
-- keeps the order of two numbers, so A is at least a + b rounded, which is at least 2 a, a float32 number; -2 a is
-- exact, and a difference of float32 numbers has its sign. Shares are exponentials and a quotient: not negative either.
-- NaN and infinities make the token's unit NaN (templates/lookup/integer_sums/scores.c).
-- Of m rows the m-th has <z, S> >= 0 up to m = 2^(tau-1), since of a vertex and the opposite one only one is negative;
-- but for m > 2 costs are sums themselves, and float32 may end a little below 0.
local function never_negative(shape)
    return shape.score.never_negative and (shape.neighbours == 1 or shape.neighbours == 2 and shape.tau >= 2)
end

-- Whether rows of these tables can be summed as integers, where an instruction set has words for that.
function integer_sums.possible(shape) return shape.tables.integer_gather and never_negative(shape) end

-- The words with which `isa` sums rows of these tables as integers times integer scores, of one byte each where the
-- choice `byte_scores` is 1; nil if it does not.
function integer_sums.words(shape, isa, byte_scores)
    local words = integer_sums.possible(shape) and isa.integer_sums or nil
    if words and byte_scores == 1 then words = words.bytes end
    if words and shape.tables.bytes < 1 then return words.nibbles end
    return words
end

-- Tables whose rows are added in one step.
function integer_sums.step(words, shape) return words.rows // shape.neighbours end

-- Integers that `columns` columns of a token take: interleaved rows leave whole lines of a load.
function integer_sums.pitch(words, columns) return blob.round_up(columns, words.columns) end

-- How the sums of up to `room` tokens are made, `group` tables after the others: { {table, tables, unit_at, group,
-- last} }, spans of tables whose scores have one unit a token, at `unit_at` of all units. All groups but the last are
-- summed by `group`, { tables, last }, and wait.
local function spans_of(shape, group, room)
    local spans = {}
    local max_tables = integer_sums.max_tables(shape)
    for first = 0, shape.h - 1, max_tables do
        local tables = math.min(max_tables, shape.h - first)
        spans[#spans + 1] = {
            table = first,
            tables = tables,
            unit_at = #spans * room,
            group = { tables = group, last = false },
            last = { tables = (tables - 1) % group + 1, last = true },
        }
    end
    return spans
end

-- Distinct lines of columns of one load, { columns, suffix, vectors = { {at, floats} } }: the vectors of floats that
-- they become; and distinct strips of them by width and as a list, { width, lines = { {at, suffix} }, prefetches }:
-- the columns of the next strip that are prefetched while one of this width is summed, 0: none.
local function lines_and_strips(gather, words, lanes)
    local lines, seen_lines, strips, by_width = {}, {}, {}, {}
    local function line_of(columns)
        if not seen_lines[columns] then
            local line =
                { columns = columns, suffix = columns < words.columns and "_first" .. columns or "", vectors = {} }
            for at = 0, columns - 1, lanes do
                line.vectors[#line.vectors + 1] = { at = at, floats = math.min(lanes, columns - at) }
            end
            seen_lines[columns], lines[#lines + 1] = line, line
        end
        return seen_lines[columns]
    end
    local function add_strip(width, prefetches)
        if width == 0 then return end
        local strip = by_width[width]
        if not strip then
            strip = { width = width, lines = {}, prefetches = 0 }
            for at = 0, width - 1, words.columns do
                strip.lines[#strip.lines + 1] =
                    { at = at, suffix = line_of(math.min(words.columns, width - at)).suffix }
            end
            by_width[width], strips[#strips + 1] = strip, strip
        end
        strip.prefetches = math.max(strip.prefetches, prefetches)
    end
    for _, tile in ipairs(gather.tiles) do
        local s = tile.strips
        local ahead = gather.prefetch_tokens or gather.prefetch_strip and s.count > 1
        if s.count > 0 then add_strip(s.floats, ahead and s.floats or 0) end
        add_strip(s.rest, gather.prefetch_tokens and (s.count > 0 and s.floats or s.rest) or 0)
    end
    return lines, strips, by_width
end

-- Distinct calls of the functions for many tokens: { name, tables, last }, last if with them the tables of a span end.
local function runs_of(spans, group)
    local runs, seen = {}, {}
    local function add(run)
        run.name = (run.last and "end_" or "sum_") .. run.tables
        if not seen[run.name] then
            seen[run.name], runs[#runs + 1] = true, run
        end
    end
    for _, span in ipairs(spans) do
        if span.tables > group then add(span.group) end
        add(span.last)
    end
    return runs
end

-- Distinct groups of more tables than are added at a time, `together` of them in a turn of a loop: { tables, together,
-- strip }.
local function groups_of(runs, strips, step, unroll)
    local groups, seen = {}, {}
    for _, run in ipairs(runs) do
        if run.tables > step and not seen[run.tables] then
            seen[run.tables] = true
            for _, strip in ipairs(strips) do
                groups[#groups + 1] = {
                    tables = run.tables,
                    together = math.min(unroll, blob.round_up(run.tables, step)),
                    strip = strip,
                }
            end
        end
    end
    return groups
end

-- The plan of `gather` of `stage`, whose tiles of columns are planned; nil if rows are not summed as integers.
--   words             of the instruction set
--   max_rows          that share a unit of scores
--   rows, step, columns   of a step: rows, the tables that they are of, and columns of one load
--   vectors           of floats that the sums of these columns become
--   lines, strips, strip_of (by width)
--   partial           whether a step has fewer tables somewhere
--   parts             words of a step's scores
--   low_at            offset of the second ones of a token from the first ones
-- and for tokens in the lanes
--   quads             steps of a token
--   spans, runs, groups
--   waits             whether sums wait between groups
--   tile_pitch        integers of a token's sums of the widest tile of columns
function integer_sums.plan(shape, stage, gather)
    local isa, group = stage.isa, gather.group
    local words = integer_sums.words(shape, isa, gather.byte_scores)
    if not words then return nil end
    local lines, strips, by_width = lines_and_strips(gather, words, isa.lanes)
    local plan = {
        words = words,
        vectors = words.columns // isa.lanes,
        max_rows = max_rows,
        rows = words.rows,
        step = integer_sums.step(words, shape),
        columns = words.columns,
        parts = #words.scores,
        lines = lines,
        strips = strips,
        strip_of = by_width,
        groups = {},
    }
    if stage.layout == "rows" then
        -- Scores of one token's call are made a vector of tables at a time.
        plan.partial = group % plan.step > 0 or shape.h % group % plan.step > 0
        plan.low_at = blob.round_up(group * shape.neighbours, isa.lanes) // words.rows
        return plan
    end
    plan.partial = shape.h % plan.step > 0
    plan.quads, plan.low_at = blob.round_up(shape.slots, words.rows) // words.rows, stage.tile
    plan.spans = spans_of(shape, group, gather.room)
    plan.runs = runs_of(plan.spans, group)
    plan.groups = groups_of(plan.runs, strips, plan.step, gather.unroll)
    plan.waits, plan.tile_pitch = false, 0
    for _, run in ipairs(plan.runs) do
        plan.waits = plan.waits or not run.last
    end
    for _, tile in ipairs(gather.tiles) do
        tile.pitch = integer_sums.pitch(words, tile.width)
        plan.tile_pitch = math.max(plan.tile_pitch, tile.pitch)
    end
    return plan
end

return integer_sums
