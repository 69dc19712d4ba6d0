-- What firmware of a whole model is; gen/families/list.lua says what its fields mean.
local benchmark = require "gen.families.model.benchmark"
local dtype = require "gen.plan.dtype"
local isa_list = require "gen.isa.list"
local rules = require "gen.families.model.model"
local weight_count = require "gen.families.model.weight_count"
local words = require "gen.isa.words"

local firmware = { noun = "whole model", word = "MODEL", templates = "templates/model/firmware/" }

-- That of the target, if it has all words that blocks need, or portable C.
function firmware.isa(target)
    local set = isa_list.get(target.isa)
    for _, tier in ipairs { "few", "many", "masks", "cache" } do
        if words.missing(set, tier) then return "scalar" end
    end
    return set.name
end

-- The choices for the instruction sets `isas`: those in `wanted`, and otherwise what takes least memory. Behind them
-- whether tokens go through all kernels one by one.
function firmware.schedule(m, isas, wanted)
    local list, one_by_one = {}, true
    local delivered = m.attention.eliminate:find("QKV", 1, true) and not m.attention.causal
    for _, set in ipairs(isas) do
        local choices = {
            ["chunk.tokens"] = not delivered and (set.lanes == 1 and 1 or 12) or nil, -- the fewest that there are
            ["attention.tokens"] = 1,
        }
        for key, value in pairs(wanted and wanted[set.name] or {}) do
            choices[key] = value
        end
        list[set.name] = choices
        one_by_one = one_by_one and choices["chunk.tokens"] == 1
    end
    return list, one_by_one
end

function firmware.about(p)
    local o = p.output
    local what = o.head and (p.model.output.classes and "scores" or "logits") or "values"
    return string.format(
        "ids below %d to %d %s, %d blocks, sequences of up to %d tokens",
        p.model.vocab,
        p.widths.out,
        what,
        p.layers,
        p.context
    )
end

function firmware.takes(p) return p.causal and "state, scratch" or "scratch" end

function firmware.calls(p)
    local names = p.names
    local list = p.causal and { names.start, names.position, names.prefill, names.prefill_all, names.step }
        or { names.encode, names.encode_batch }
    if p.facts then table.move({ names.tokenize, names.text_of }, 1, 2, #list + 1, list) end
    return list
end

local most_values = 1024 -- of a row that the self-test records

function firmware.values(p, vectors)
    local stride = (p.widths.out + most_values - 1) // most_values
    local values = { causal = p.causal, stride = stride, rows = 1, compared = 0, ids = {}, offsets = { 0 } }
    values.each = (p.widths.out + stride - 1) // stride
    for _, vector in ipairs(vectors) do
        table.move(vector.ids, 1, #vector.ids, #values.ids + 1, values.ids)
        values.offsets[#values.offsets + 1] = #values.ids
        values.rows = math.max(values.rows, #vector.rows)
        values.compared = values.compared + #vector.rows * values.each * (p.causal and 2 or 1)
    end
    return values
end

function firmware.tolerance(p) return dtype.get(p.options.cache, "cache").cache.tolerance end

function firmware.ram(p)
    local rows, in_use = { { bytes = p.weights_struct_bytes, text = "a " .. p.names.weights } }, {}
    if p.causal then
        local text = "state: position, " .. rules.cached(p.model) .. " in " .. p.options.cache
        rows[2] = { bytes = p.state_bytes, text = text }
    end
    rows[#rows + 1] = { bytes = p.scratch_bytes, text = "scratch" }
    for i, stage in ipairs(p.memory.stages) do
        in_use[i] = { bytes = p.memory.peaks[i], text = stage }
    end
    return rows, in_use
end

-- Multiplications of a token by maps, projections, and the rows that it takes of tables.
local function products_of(p)
    local words = 0
    for _, map in ipairs(p.own_maps) do
        words = words + map.inputs * map.outputs
    end
    for _, segment in ipairs(p.segments) do
        words = words + weight_count.met(segment.plan, 1, 1, 1)
    end
    return words
end

function firmware.work(p)
    local words, attention = products_of(p), 0
    for _, segment in ipairs(p.segments) do
        local shape = segment.plan.shape
        attention = attention + 4 * shape.layers * shape.heads * shape.width * p.context
    end
    local slow_bytes = benchmark.row_bytes(p)
    return {
        slow_bytes = slow_bytes,
        lines = {
            { 2 * words, "operations of maps and tables" },
            { attention, "operations of attention where the context is full" },
            { slow_bytes, "bytes of rows read of embedding, positions and tables" },
        },
    }
end

return firmware
