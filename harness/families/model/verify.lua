-- Compares emitted whole models with the reference: on every instruction set of this CPU, by every function.
local budget = require "harness.verify.budget"
local compile = require "harness.base.compile"
local library = require "harness.whole.library"
local packing = require "gen.families.packing"
local process = require "process"
local reference = require "harness.families.model.reference"
local runnable = require "harness.base.runnable"
local seen = require "harness.families.model.blocks.seen"
local runner = require "transformer"
local transformer = require "harness.families.model.blocks.execute"
local weights = require "weights"
local whole = require "whole"
local whole_family = require("gen.families.model.family").whole
local verified = require "harness.report.verified"

local verify = {}

-- As many tokens as the reference computes in some seconds.
local function tokens_of(p)
    local words = p.widths.out * p.widths.features
    for _, segment in ipairs(p.segments) do
        local own = 0
        for _, map in ipairs(segment.plan.maps) do
            own = own + map.words
        end
        for _, part in ipairs(segment.plan.parts) do
            own = own + part.plan.projection_bytes // 4 + part.plan.shape.slots * part.plan.shape.d_out
        end
        words = words + own * segment.plan.model.layers
    end
    return math.max(4, math.min(2 * p.tokens + 5, 3000000000 // words))
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

-- The rows of way `way` among the results of its calls, and those of the answer beside them.
local function rows_of(p, way, results, y)
    local width, found, wanted = 8 * p.widths.out, {}, {}
    for i, row in ipairs(way.rows) do
        found[i] = whole.doubles(results[row.call])
        wanted[i] = y:sub(row.first * width + 1, (row.first + row.count) * width)
    end
    return table.concat(found), table.concat(wanted)
end

-- The plans of the runs of blocks of plan `p`.
local function blocks_of(p)
    local list = {}
    for i, segment in ipairs(p.segments) do
        list[i] = segment.plan
    end
    return list
end

-- Weights for plan `p`, packed in `directory`, sequences, and what the reference computes of them: { lists, tokens,
-- jobs, answer, answers, unrounded, move, blob, cc, other }: as in harness/families/model/blocks/execute.lua; jobs() of
-- the reference.
function verify.prepare(p, directory, options)
    local path = options.weights
    if not path then
        path = directory .. "/weights.safetensors"
        assert(weights.sample(path, "", p.samples, options.seed))
    end
    local blob = directory .. "/weights.bin"
    local files = packing.files(options, blob)
    files.weights = path
    packing.pack(p, files)
    local lists, total, tokens = {}, tokens_of(p), 0
    local lengths = p.causal and { math.min(p.context, total) } or lengths_of(p, total)
    for i, length in ipairs(lengths) do
        lists[i] = runner.random_numbers(options.seed + i - 1, length, p.model.vocab)
        tokens = tokens + length
    end
    local function answers_with(activations, cache, seen_job, notes)
        local jobs, answers, first = reference.jobs(p, files, activations, cache), {}, 0
        for i, list in ipairs(lists) do
            local taken = notes and { seen = seen_job, notes = notes, first_token = first } or nil
            answers[i] = reference.answer(jobs, list, nil, taken)
            first = first + #list
        end
        return answers
    end
    local at_once = not seen.wanted(blocks_of(p))
    return {
        lists = lists,
        tokens = tokens,
        jobs = function() return reference.jobs(p, files) end,
        answer = answers_with,
        answers = at_once and answers_with(),
        unrounded = at_once and p.rounded and answers_with "f32",
        move = function()
            local rounds = p.options.cache ~= "f32"
            return { float32 = answers_with "single", cache = rounds and answers_with(nil, "f32") or nil }
        end,
        blob = blob,
        cc = options.cc or "gcc",
        other = function()
            return verify.prepare(p, process.temporary_directory(), transformer.other_sample(options))
        end,
    }
end

-- What decides ties of rows of the output.
local function shape_of(p) return { d = p.widths.out, attention = { causal = p.causal } } end

-- The largest errors of y beside the answer, whose ties are decided as in y: relative of a row, and of a value; behind
-- the number of ties, relative of all rows together.
local function errors_of(p, y, answer, tolerance)
    local same, turned = transformer.decided_as(y, answer, shape_of(p), 0, tolerance)
    local relative, absolute, all = runner.difference(y, same.y, p.widths.out)
    return relative, absolute, turned, all
end

-- How far all values of emitted code may be from the answers together, which rounding moves as far as those of
-- prepared.unrounded.
local function together_of(p, prepared)
    local squares, values, layers = 0.0, 0, 1 -- of embedding and output
    for i, answer in ipairs(prepared.answers) do
        local _, _, all = runner.difference(prepared.unrounded[i].y, answer.y, p.widths.out)
        squares, values = squares + all ^ 2, values + #answer.y // 8
    end
    for _, segment in ipairs(p.segments) do
        layers = layers + segment.plan.model.layers
    end
    return transformer.moved_together(math.sqrt(squares / #prepared.answers), layers, values)
end

-- The checks below compare with prepared.answers, or where `beside` is given with the answers for codes and scores that
-- were seen: beside(notes, off), off(answers) as in transformer.beside_seen. add(call, tokens, message, relative,
-- absolute, turned, found, all): `found` is what beside has returned; all: relative error of all rows together, nil
-- where that of some is known only.
local function check_decoder(p, job, prepared, tolerance, add, beside)
    for _, way in ipairs(decoder_ways(prepared.lists[1])) do
        local results, notes = whole.run(job, way.calls)
        local relative, absolute, turned, found, all
        if results and beside then
            found = beside(notes, function(answers)
                local rows, wanted = rows_of(p, way, results, answers[1].y)
                relative, absolute = runner.difference(rows, wanted, p.widths.out)
                return relative
            end)
        elseif results then
            local answer = prepared.answers[1]
            local rows, wanted = rows_of(p, way, results, answer.y)
            if #wanted == #answer.y then
                relative, absolute, turned, all = errors_of(p, rows, answer, tolerance)
            else
                -- of some rows: beside the answer whose ties the way with all rows has decided
                local same = way.name == "prefill" and prepared.decided or answer
                local _, own = rows_of(p, way, results, same.y)
                relative, absolute = runner.difference(rows, own, p.widths.out)
            end
            if way.name == "step" then
                prepared.decided = transformer.decided_as(rows, answer, shape_of(p), 0, tolerance)
            end
        end
        add(way.name, #prepared.lists[1], not results and notes or nil, relative, absolute, turned, found, all)
    end
end

local function check_encoder(p, job, prepared, tolerance, add, beside)
    local lists, width = prepared.lists, 8 * p.widths.out
    local pooled = p.output.pool ~= nil
    local function check(name, calls, rows_of_list)
        local results, notes = whole.run(job, calls)
        if not results then return add(name, prepared.tokens, notes) end
        local function worst(answers)
            local relative, absolute, turned, squares = 0, 0, 0, 0.0
            for i, answer in ipairs(answers) do
                local one, two, three, all = errors_of(p, rows_of_list(results, i), answer, tolerance)
                relative, absolute, turned = math.max(relative, one), math.max(absolute, two), turned + three
                squares = squares + all ^ 2
                if one ~= one then relative = one end
            end
            return relative, absolute, turned, math.sqrt(squares / #answers)
        end
        if not beside then
            local relative, absolute, turned, all = worst(prepared.answers)
            return add(name, prepared.tokens, nil, relative, absolute, turned, nil, all)
        end
        local relative, absolute
        local found = beside(notes, function(answers)
            relative, absolute = worst(answers)
            return relative
        end)
        add(name, prepared.tokens, nil, relative, absolute, nil, found)
    end
    local calls, places, at = {}, {}, 0
    for i, list in ipairs(lists) do
        calls[i] = { what = "encode", sequences = { list } }
        places[i], at = at, at + (pooled and 1 or #list)
    end
    places[#lists + 1] = at
    check("encode", calls, function(results, i) return whole.doubles(results[i]) end)
    check("batch", { { what = "encode_batch", sequences = lists } }, function(results, i)
        return whole.doubles(results[1]):sub(places[i] * width + 1, places[i + 1] * width)
    end)
end

-- Compares plan `p`, for one instruction set and compiled into `path` for up to `threads` threads, with the reference
-- for one sample: a list of results, one for each way to call it, and what transformer.settled wants.
local function check_sample(p, path, prepared, threads)
    local results, off_together, tolerance = {}, {}, 0
    local lookup, maps, blocks, wrong, activations_err, together = false, {}, blocks_of(p), nil, nil, nil
    for _, map in ipairs { p.embedding.map or false, p.output.dense or false, p.output.head or false } do
        if map then maps[#maps + 1] = map end
    end
    for _, own in ipairs(blocks) do
        lookup, tolerance = lookup or own.shape.lookup, math.max(tolerance, transformer.tolerance(own.shape))
        table.move(own.maps, 1, #own.maps, #maps + 1, maps)
    end
    if p.rounded then
        wrong = transformer.check_products(path, p.variants[1].names.product, p.activations.name, maps)
    end
    local job, beside = library.job(p, path, prepared.blob, threads), nil
    if seen.wanted(blocks) then
        job.seen = seen.of(blocks, path, prepared.cc, prepared.tokens)
        local widths = {}
        for i, own in ipairs(blocks) do
            widths[i] = own.shape.d
        end
        function beside(notes, off)
            local function evaluate(activations, cache) return prepared.answer(activations, cache, job.seen, notes) end
            local narrow = p.options.cache ~= "f32"
            local found = transformer.beside_seen(evaluate, off, tolerance, p.rounded, narrow, shape_of(p), widths)
            local taken = { seen = job.seen, notes = notes }
            found.looked, found.wrong = seen.compare(reference.blocks(prepared.jobs(), taken), found.answers)
            return found
        end
    elseif p.rounded then
        tolerance, activations_err =
            transformer.rounded_tolerance(tolerance, prepared.answers, prepared.unrounded, p.widths.out)
        together = together_of(p, prepared)
    end
    local why, row_off
    local function add(call, tokens, message, relative, absolute, turned, found, all)
        local own = found or { off = relative, tolerance = tolerance, why = why, activations_err = activations_err }
        local near = message ~= nil or own.off <= own.tolerance
        row_off = row_off or not near
        local fault, only_together = message or wrong or own.wrong, nil
        if not fault then
            fault, only_together = transformer.fault(own, all, together)
        end
        off_together[#results + 1] = only_together
        results[#results + 1] = {
            isa = p.variants[1].isa.name,
            call = call,
            tokens = tokens,
            type = p.type.name,
            cache = p.options.cache,
            activations = p.options.activations,
            activations_err = own.activations_err,
            float32_err = own.why and own.why.float32,
            cache_err = own.why and own.why.cache,
            tables = p.options.tables,
            projection = p.options.projection,
            rel_err = own.off or nil,
            max_abs_err = absolute or nil,
            ties = lookup and turned or nil,
            looked = own.looked,
            ok = fault == nil,
            message = fault,
        }
    end
    local check = p.causal and check_decoder or check_encoder
    check(p, job, prepared, tolerance, add, beside)
    if row_off and not p.rounded and not beside then
        prepared.moved = prepared.moved or prepared.move()
        tolerance, why = transformer.moved_tolerance(tolerance, prepared.moved, prepared.answers, shape_of(p))
        results = {}
        check(p, job, prepared, tolerance, add)
    end
    return results, off_together
end

-- Compares plan `p`, for one instruction set and compiled into `path` for up to `threads` threads, with the reference:
-- a list of results, one for each way to call it.
function verify.check_library(p, path, prepared, threads)
    return transformer.settled(prepared, function(sample) return check_sample(p, path, sample, threads) end)
end

-- Which codes flip in each layer of plan `p`, compiled into `path`, by its types: as seen.flips says it.
local function flips_of(p, path, prepared, threads)
    local job = library.job(p, path, prepared.blob, threads)
    job.seen = seen.of(blocks_of(p), path, prepared.cc, prepared.tokens)
    local calls = { { what = "encode_batch", sequences = prepared.lists } }
    if p.causal then calls = { { what = "start" }, { what = "prefill", sequences = { prepared.lists[1] } } } end
    local rows, notes = whole.run(job, calls)
    if not rows then error(notes, 0) end
    return seen.flips(reference.blocks(prepared.jobs(), { seen = job.seen, notes = notes, first_token = 0 }))
end

-- Compares every one of the plans, each for one instruction set, with the reference. Returns a list of results, and
-- with options.budget which codes of each layer flip on the last instruction set.
function verify.check(plans, options)
    local flips
    local directory, results, threads = process.temporary_directory(), {}, compile.threads_of(options)
    local prepared = verify.prepare(plans[1], directory, options)
    for i, p in ipairs(plans) do
        local flags = compile.threaded(p, options.cflags, threads)
        local path = compile.library({ p }, directory .. "/" .. p.variants[1].isa.name, options.cc, flags)
        local found = verify.check_library(p, path, prepared, threads)
        table.move(found, 1, #found, #results + 1, results)
        flips = options.budget and i == #plans and flips_of(p, path, prepared, threads) or nil
    end
    return results, flips
end

function verify.run(path, options)
    local plans, skipped = runnable.plans(path, whole_family, options, runnable.every)
    local m = plans[1].model
    local most = budget.of_layers(m, options.budget, plans[1].lookup_types ~= nil)
    local results, flips = verify.check(plans, options)
    return verified.print(m, results, skipped, options, flips and budget.layers(flips, most))
end

return verify
