-- Samples of weights and sequences on which verify compares whole models with the reference, and how they are called.
local block_reference = require "block_reference"
local compare = require "harness.families.model.compare"
local compiled_model = require "harness.calls.compiled_model"
local floats = require "rows"
local packing = require "gen.families.packing"
local reference = require "harness.families.model.reference"
local verify_blocks = require "harness.families.model.verify_blocks"
local verify_there = require "harness.families.model.verify_there"
local weights = require "weights"
local whole_model = require "harness.calls.whole_model"
local whole_there = require "harness.families.model.whole_there"

local verify_whole = {}

-- As many tokens as the reference computes in some seconds.
local function tokens_of(p)
    local words, wanted = p.widths.out * p.widths.features, 2 * p.tokens + 5
    for _, segment in ipairs(p.segments) do
        words = words + verify_blocks.words(segment.plan) * segment.plan.model.layers
        if segment.plan.shape.lsh then wanted = math.min(wanted, 300) end -- a tie takes another pass
    end
    return math.max(4, math.min(wanted, 3000000000 // words))
end

local function slice(list, first, count) return table.move(list, first, first + count - 1, 1, {}) end

-- The sequences of an encoder: a token, some lengths, and so many together that they go through the blocks in groups.
local function lengths_of(p, tokens)
    local longest = math.min(p.context, math.max(2, tokens // 2))
    local list, rest = { longest, 1, math.max(1, longest // 3), math.min(2, longest) }, tokens
    for _, length in ipairs(list) do
        rest = rest - length
    end
    while rest > 0 and #list < 40 do
        local length = math.min(rest, math.max(1, longest * 2 // (1 + #list % 5)), p.context)
        list[#list + 1], rest = length, rest - length
    end
    return list
end

-- How a decoder can be given `ids`: { name, calls, rows: { call, first row of the reference, count } }.
local function decoder_ways(ids)
    local n = #ids
    local start = { what = "start" }
    local ways = {}
    local function way(name)
        local one = { name = name, calls = { start }, rows = {} }
        ways[#ways + 1] = one
        local at = 0
        function one.call(what, count)
            count = math.min(count, n - at)
            if count < 1 then return end
            one.calls[#one.calls + 1] = { what = what, sequences = { slice(ids, at + 1, count) } }
            local rows = what == "prefill_all" and count or 1
            one.rows[#one.rows + 1] = { call = #one.calls, first = at + count - rows, count = rows }
            at = at + count
        end
        return one
    end
    local step = way "step"
    for _ = 1, n do
        step.call("step", 1)
    end
    way("prefill").call("prefill", n)
    way("prefill_all").call("prefill_all", n)
    local mixed = way "mixed"
    mixed.call("prefill", 2)
    mixed.call("step", 1)
    mixed.call("prefill_all", math.max(1, n // 2))
    mixed.call("step", 1)
    mixed.call("prefill_all", 1)
    mixed.call("prefill", n)
    return ways
end

-- The ways to call decoder `p` for a sample, as verify_blocks.lua has them: calls, instead of run; wanted(answers): the
-- rows of all calls.
local function decoder_ways_of(p, sample)
    local width, decided = 8 * p.widths.out, nil
    local ways = decoder_ways(sample.lists[1])
    for _, way in ipairs(ways) do
        -- The rows of the way among the results of its calls, and among those of an answer.
        local function found_in(results)
            local list = {}
            for i, row in ipairs(way.rows) do
                list[i] = floats.doubles(results[row.call])
            end
            return table.concat(list)
        end
        local function wanted_of(answer)
            local list = {}
            for i, row in ipairs(way.rows) do
                list[i] = answer.y:sub(row.first * width + 1, (row.first + row.count) * width)
            end
            return table.concat(list)
        end
        function way.wanted(answers) return wanted_of(answers[1]) end
        function way.compare(results, answers, most)
            local answer = answers[1]
            local rows, wanted = found_in(results), wanted_of(answer)
            if #wanted == #answer.y then
                local same, turned = compare.decided_as(rows, answer, compare.shape_of(p), 0, most)
                if way.name == "step" and not answer.inputs then decided = same end
                local relative, absolute, all = block_reference.difference(rows, same.y, p.widths.out)
                return relative, absolute, turned, all
            end
            -- of some rows: beside the answer whose ties the way with all rows has decided; its own, where it was seen
            -- what lookup FFNs look up, as few tokens may be projected by another form than many
            wanted = wanted_of(way.name == "prefill" and decided or answer)
            local relative, absolute = block_reference.difference(rows, wanted, p.widths.out)
            return relative, absolute
        end
    end
    return ways
end

-- The same for an encoder.
local function encoder_ways_of(p, sample)
    local lists, width, ways = sample.lists, 8 * p.widths.out, {}
    local function add(name, calls, rows_of_list)
        local way = { name = name, calls = calls }
        function way.wanted(answers)
            local list = {}
            for i, answer in ipairs(answers) do
                list[i] = answer.y
            end
            return table.concat(list)
        end
        function way.compare(results, answers, most)
            local relative, absolute, turned, squares = 0, 0, 0, 0.0
            for i, answer in ipairs(answers) do
                local rows = rows_of_list(results, i)
                local same, count = compare.decided_as(rows, answer, compare.shape_of(p), 0, most)
                local one, two, all = block_reference.difference(rows, same.y, p.widths.out)
                relative, absolute, turned = math.max(relative, one), math.max(absolute, two), turned + count
                squares = squares + all ^ 2
                if one ~= one then relative = one end
            end
            return relative, absolute, turned, math.sqrt(squares / #answers)
        end
        ways[#ways + 1] = way
    end
    local calls, places, at = {}, {}, 0
    for i, list in ipairs(lists) do
        calls[i] = { what = "encode", sequences = { list } }
        places[i], at = at, at + (p.output.pool and 1 or #list)
    end
    places[#lists + 1] = at
    add("encode", calls, function(results, i) return floats.doubles(results[i]) end)
    add("batch", { { what = "encode_batch", sequences = lists } }, function(results, i)
        return floats.doubles(results[1]):sub(places[i] * width + 1, places[i + 1] * width)
    end)
    return ways
end

-- Weights for plan `p`, packed in `directory`, and sequences: what verify.prepare says, and { lists }.
function verify_whole.prepare(p, directory, options)
    local path = options.weights
    if not path then
        path = directory .. "/weights.safetensors"
        assert(weights.sample(path, "", p.samples, options.seed))
    end
    local files = packing.files(options, directory .. "/weights.bin")
    files.weights = path
    packing.pack(p, files)
    local sample, total = { lists = {}, tokens = 0, blob = files.output, packed_from = path }, tokens_of(p)
    local lengths = p.causal and { math.min(p.context, total) } or lengths_of(p, total)
    for i, length in ipairs(lengths) do
        sample.lists[i] = block_reference.random_numbers(options.seed + i - 1, length, p.model.vocab)
        sample.tokens = sample.tokens + length
    end
    function sample.answer(activations, cache, taken)
        local jobs, answers, first = reference.jobs(p, files, activations, cache), {}, 0
        for i, list in ipairs(sample.lists) do
            local own = taken and { seen = taken.seen, notes = taken.notes, first_token = first }
            answers[i] = reference.answer(jobs, list, nil, own)
            first = first + #list
        end
        return answers
    end
    function sample.jobs(taken) return reference.blocks(reference.jobs(p, files), taken) end
    function sample.plain_ways(own) return (own.causal and decoder_ways_of or encoder_ways_of)(own, sample) end
    function sample.ways(own, path_of_library, threads)
        local job = compiled_model.job(own, path_of_library, sample.blob, threads)
        local ways = sample.plain_ways(own)
        for _, way in ipairs(ways) do
            function way.fetched(y) return whole_model.parted(job, way.calls, y) end
            function way.run(job_seen)
                job.seen = job_seen
                return whole_model.run(job, way.calls)
            end
        end
        return sample.device and verify_there.ways(sample, own, path_of_library, ways) or ways
    end
    whole_there.add(sample)
    return sample
end

return verify_whole
