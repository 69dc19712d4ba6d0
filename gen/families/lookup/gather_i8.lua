-- Plans a gather that sums rows of i8 times scores as integers: spans of tables that share a unit of scores, and the
-- distinct functions for cache lines of columns, strips of lines and groups of tables.
local blob = require "gen.plan.blob"

local gather_i8 = {}

-- Tables whose scores have one unit: a sum of products of two bytes stays exact in float32, one of a score and a byte
-- below 2^31.
gather_i8.max_tables = 256

-- The words with which `isa` sums rows of these tables as integers times integer scores, nil if it does not: scores
-- must not be negative, which those of a vertex beside the best one may be.
function gather_i8.words(shape, isa)
    local fits = shape.tables.integer_gather and shape.neighbours == 1 and shape.score.never_negative
    return fits and isa.gather_i8 or nil
end

-- Integers that `columns` columns of a token take: interleaved rows leave whole lines of a load.
function gather_i8.pitch(words, columns) return blob.round_up(columns, words.columns) end

-- How the sums of many tokens are made, `group` tables after the others: { {table, tables, group, last} }, spans of
-- tables whose scores have one unit a token. All groups but the last are summed by `group`, { tables, last }, and wait.
local function spans_of(shape, group)
    local spans = {}
    for first = 0, shape.h - 1, gather_i8.max_tables do
        local tables = math.min(gather_i8.max_tables, shape.h - first)
        spans[#spans + 1] = {
            table = first,
            tables = tables,
            group = { tables = group, last = false },
            last = { tables = (tables - 1) % group + 1, last = true },
        }
    end
    return spans
end

-- Distinct lines of columns of one load, { columns, suffix, vectors = { {at, floats} } }: the vectors of floats that
-- they become; and distinct strips of them by width and as a list, { width, lines = { {at, suffix} }, prefetches }.
local function lines_and_strips(v, words, lanes)
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
            strip = { width = width, lines = {}, prefetches = false }
            for at = 0, width - 1, words.columns do
                strip.lines[#strip.lines + 1] =
                    { at = at, suffix = line_of(math.min(words.columns, width - at)).suffix }
            end
            by_width[width], strips[#strips + 1] = strip, strip
        end
        strip.prefetches = strip.prefetches or prefetches
    end
    for _, tile in ipairs(v.gather) do
        local s = tile.strips
        if s.count > 0 then add_strip(s.floats, v.prefetch_strip and s.count > 1) end
        add_strip(s.rest, false)
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

-- Distinct groups of more tables than are added at a time, `together` of them in a step of a loop: { tables, together,
-- strip }.
local function groups_of(runs, strips, words, unroll)
    local groups, seen = {}, {}
    for _, run in ipairs(runs) do
        if run.tables > words.rows and not seen[run.tables] then
            seen[run.tables] = true
            for _, strip in ipairs(strips) do
                groups[#groups + 1] = {
                    tables = run.tables,
                    together = math.min(unroll, blob.round_up(run.tables, words.rows)),
                    strip = strip,
                }
            end
        end
    end
    return groups
end

-- The plan of the gather of `v`, whose tiles of columns are planned; nil if rows are not summed as integers.
--   max_tables        that share a unit of scores
--   rows, columns     of a step: tables, and columns of one load
--   lines, strips, strip_of (by width)
--   partial           whether a step has fewer tables somewhere
--   low_at            offset of the lower bytes of a token's words of scores from the upper ones
-- and for many tokens
--   quads             words of a token's scores, of one byte each
--   spans, runs, groups
--   waits             whether sums wait between groups
--   tile_pitch        integers of a token's sums of the widest tile of columns
-- For few tokens, `tables` of a call at most.
function gather_i8.plan(shape, v, tables)
    local words = gather_i8.words(shape, v.isa)
    if not words then return nil end
    local lines, strips, by_width = lines_and_strips(v, words, v.isa.lanes)
    local plan = {
        max_tables = gather_i8.max_tables,
        rows = words.rows,
        columns = words.columns,
        lines = lines,
        strips = strips,
        strip_of = by_width,
        groups = {},
    }
    if v.regime == "few" then
        -- Scores of one token's call are made a vector of tables at a time.
        plan.partial = tables % words.rows > 0 or shape.h % tables % words.rows > 0
        plan.low_at = blob.round_up(tables, v.isa.lanes) // words.rows
        return plan
    end
    plan.partial = shape.h % words.rows > 0
    plan.quads, plan.low_at = blob.round_up(shape.h, words.rows) // words.rows, v.tile
    plan.spans = spans_of(shape, v.group)
    plan.runs = runs_of(plan.spans, v.group)
    plan.groups = groups_of(plan.runs, strips, words, v.unroll)
    plan.waits, plan.tile_pitch = false, 0
    for _, run in ipairs(plan.runs) do
        plan.waits = plan.waits or not run.last
    end
    for _, tile in ipairs(v.gather) do
        tile.pitch = gather_i8.pitch(words, tile.width)
        plan.tile_pitch = math.max(plan.tile_pitch, tile.pitch)
    end
    return plan
end

return gather_i8
