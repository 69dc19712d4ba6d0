-- What a bundle's own benchmark calls of a LookupFFN; gen/families/list.lua says what its fields mean.
local dtype = require "gen.plan.dtype"

local benchmark = {}

-- Of firmware a token a call.
function benchmark.batches(p) return p.target and { 1 } or { 1, 8, 64, 512, 4096 } end

function benchmark.most() return 65536 end

function benchmark.calls(p)
    return { { name = p.names.ffn, arguments = { "weights", "x", "y", "tokens", "scratch" } } }
end

function benchmark.memory(p) return { width = p.names.macro "D", width_out = p.names.macro "D_OUT" } end

function benchmark.rows(_, _, tokens) return tokens end

function benchmark.row_bytes(p) return p.shape.slots * dtype.size(p.tables, p.shape.d_out) end

-- Sums of rows as integers round scores to 1/32767 of the largest. z near 0 may get either sign: some tokens then take
-- other rows.
function benchmark.tolerance(p)
    if p.exact then return 0, 0 end
    return p.tables.integer_gather and 4e-4 or 4e-5, 1 / 32
end

-- Integers that nothing overflows with.
local ranges = {
    projection = { -7, 7 },
    multipliers = { 1, 8 },
    shifts = { 1, 1 },
    projection_bias = { -1000, 1000 },
    residual = { -16, 16 },
    table_scales = { 1, 16 },
    tables = { -7, 7 },
    bias = { -1000, 1000 },
}

function benchmark.range(p, name) return p.exact and ranges[name] end

return benchmark
