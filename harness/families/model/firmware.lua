-- What firmware of whole models needs of the reference: recorded sequences, and what it makes of them.
local block_reference = require "block_reference"
local reference = require "harness.families.model.reference"

local firmware = {}

local smaller = {
    options = {
        { type = "f16", cache = "f32" },
        { type = "i8", cache = "f32" },
        { type = "i8", cache = "f16" },
        { type = "i8", cache = "i8" },
    },
    schedules = {},
}

function firmware.smaller() return smaller end

local lengths = { 7, 3 } -- tokens of the sequences of the self-test
local trials = 32 -- sequences that are drawn to find one without ties

-- A sequence of `n` random ids without a code that rounding might decide differently, if one is found, and its answer.
local function sequence_of(p, jobs, seed, n)
    local best, its_ids
    for trial = 1, trials do
        local ids = block_reference.random_numbers(seed + 1000 * trial, n, p.model.vocab)
        local answer = reference.answer(jobs, ids)
        if not best or #answer.ties < #best.ties then
            best, its_ids = answer, ids
        end
        if #best.ties == 0 then break end
    end
    return its_ids, best
end

-- The sequences and the rows of results that are compared: all of a sequence's, or of a decoder its last logits.
function firmware.vectors(p, files, seed)
    local jobs, list, width = reference.jobs(p, files), {}, 8 * p.widths.out
    for i, length in ipairs(lengths) do
        local ids, answer = sequence_of(p, jobs, seed + i, math.min(length, p.context))
        local y, rows = answer.y, {}
        for at = p.causal and #y - width + 1 or 1, #y, width do
            local row = {}
            for k = 0, p.widths.out - 1 do
                row[k + 1] = string.unpack("<d", y, at + 8 * k)
            end
            rows[#rows + 1] = row
        end
        list[i] = { ids = ids, rows = rows }
    end
    return list
end

-- Numbers in the place of both: all differ, as a compiler makes other code of rows and tolerances that are alike.
function firmware.stand_ins(p)
    local list, count = {}, 1
    for i, length in ipairs(lengths) do
        list[i] = { ids = {}, rows = {} }
        for k = 1, math.min(length, p.context) do
            local row = {}
            for column = 1, p.widths.out do
                count = count + 1
                row[column] = 1 / count
            end
            list[i].ids[k] = k
            list[i].rows[p.causal and 1 or p.model.output.pool and 1 or k] = row
        end
    end
    return list
end

return firmware
