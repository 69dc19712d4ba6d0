-- Compares emitted whole models with the reference: on every instruction set of this CPU, by every function.
local compile = require "harness.base.compile"
local library = require "harness.whole.library"
local packing = require "gen.families.packing"
local process = require "process"
local reference = require "harness.families.whole.reference"
local runnable = require "harness.base.runnable"
local runner = require "transformer"
local transformer = require "harness.families.transformer.execute"
local weights = require "weights"
local whole = require "whole"
local whole_family = require "gen.families.whole.family"
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

-- Whether products of plan `p` round their inputs.
local function rounds_inputs(p) return p.rounded or p.lookup_types and p.lookup_types.projection.word.integers end

-- Weights for plan `p`, packed in `directory`, sequences, and what the reference computes of them: { jobs, lists,
-- answers, unrounded, move, blob }: as in harness/families/transformer/execute.lua.
function verify.prepare(p, directory, options)
    local path = options.weights
    if not path then
        path = directory .. "/weights.safetensors"
        assert(weights.sample(path, "", p.samples, options.seed))
    end
    local blob = directory .. "/weights.bin"
    packing.pack(p, { weights = path, output = blob, prefix = "", ignore = options.ignore })
    local lists, total = {}, tokens_of(p)
    local lengths = p.causal and { math.min(p.context, total) } or lengths_of(p, total)
    for i, length in ipairs(lengths) do
        lists[i] = runner.random_numbers(options.seed + i - 1, length, p.model.vocab)
    end
    local function answers_with(inputs, cache)
        local jobs, answers = reference.jobs(p, path, inputs, cache), {}
        for i, list in ipairs(lists) do
            answers[i] = reference.answer(jobs, list)
        end
        return answers
    end
    return {
        lists = lists,
        answers = answers_with "own",
        unrounded = rounds_inputs(p) and answers_with "none",
        move = function()
            local rounds = p.options.cache ~= "f32"
            return { float32 = answers_with "single", cache = rounds and answers_with("own", "f32") or nil }
        end,
        blob = blob,
    }
end

-- What decides ties of rows of the output.
local function shape_of(p) return { d = p.widths.out, attention = { causal = p.causal } } end

-- The largest errors of y beside the answer, whose ties are decided as in y: relative of a row, and of a value.
local function errors_of(p, y, answer, tolerance)
    local same, turned = transformer.decided_as(y, answer, shape_of(p), 0, tolerance)
    local relative, absolute = runner.difference(y, same.y, p.widths.out)
    return relative, absolute, turned
end

local function check_decoder(p, job, prepared, tolerance, add)
    for _, way in ipairs(decoder_ways(prepared.lists[1])) do
        local results, message = whole.run(job, way.calls)
        local relative, absolute, turned
        if results then
            local answer = prepared.answers[1]
            local found, wanted = rows_of(p, way, results, answer.y)
            if #wanted == #answer.y then
                relative, absolute, turned = errors_of(p, found, answer, tolerance)
            else
                -- of some rows: beside the answer whose ties the way with all rows has decided
                local same = way.name == "prefill" and prepared.decided or answer
                local _, rows = rows_of(p, way, results, same.y)
                relative, absolute = runner.difference(found, rows, p.widths.out)
            end
            if way.name == "step" then
                prepared.decided = transformer.decided_as(found, answer, shape_of(p), 0, tolerance)
            end
        end
        add(way.name, #prepared.lists[1], message, relative, absolute, turned)
    end
end

local function check_encoder(p, job, prepared, tolerance, add)
    local lists, width = prepared.lists, 8 * p.widths.out
    local pooled = p.output.pool ~= nil
    local function worst(rows_of_list)
        local relative, absolute, turned = 0, 0, 0
        for i, answer in ipairs(prepared.answers) do
            local one, two, three = errors_of(p, rows_of_list(i), answer, tolerance)
            relative, absolute, turned = math.max(relative, one), math.max(absolute, two), turned + three
            if one ~= one then relative = one end
        end
        return relative, absolute, turned
    end
    local tokens, calls = 0, {}
    for i, list in ipairs(lists) do
        tokens = tokens + #list
        calls[i] = { what = "encode", sequences = { list } }
    end
    local results, message = whole.run(job, calls)
    local relative, absolute, turned
    if results then
        relative, absolute, turned = worst(function(i) return whole.doubles(results[i]) end)
    end
    add("encode", tokens, message, relative, absolute, turned)
    results, message = whole.run(job, { { what = "encode_batch", sequences = lists } })
    if results then
        local y, places, at = whole.doubles(results[1]), {}, 0
        for i, list in ipairs(lists) do
            places[i], at = at, at + (pooled and 1 or #list)
        end
        places[#lists + 1] = at
        relative, absolute, turned = worst(function(i) return y:sub(places[i] * width + 1, places[i + 1] * width) end)
    end
    add("batch", tokens, message, results and relative, results and absolute, results and turned)
end

-- Compares plan `p`, for one instruction set and compiled into `path` for up to `threads` threads, with the reference:
-- a list of results, one for each way to call it.
function verify.check_library(p, path, prepared, threads)
    local results, tolerance = {}, transformer.tolerance(p.segments[1].plan.shape)
    local lookup, maps, wrong, inputs_err = false, {}, nil, nil
    for _, map in ipairs { p.embedding.map or false, p.output.dense or false, p.output.head or false } do
        if map then maps[#maps + 1] = map end
    end
    for _, segment in ipairs(p.segments) do
        lookup = lookup or segment.plan.shape.lookup
        table.move(segment.plan.maps, 1, #segment.plan.maps, #maps + 1, maps)
    end
    if p.rounded then
        wrong = transformer.check_products(path, p.variants[1].names.product, p.activations.name, maps)
    end
    local function rows_of_all(answers)
        local list = {}
        for i, answer in ipairs(answers) do
            list[i] = answer.y
        end
        return list
    end
    if prepared.unrounded then
        local rounded, unrounded = rows_of_all(prepared.answers), rows_of_all(prepared.unrounded)
        tolerance, inputs_err = transformer.rounded_tolerance(tolerance, rounded, unrounded, p.widths.out)
    end
    local why, row_off
    local function add(call, tokens, message, relative, absolute, turned)
        local near = message ~= nil or relative <= tolerance
        local ok = message == nil and wrong == nil and near
        row_off = row_off or not near
        results[#results + 1] = {
            isa = p.variants[1].isa.name,
            call = call,
            tokens = tokens,
            type = p.type.name,
            cache = p.options.cache,
            activations = p.options.activations,
            activations_err = inputs_err,
            float32_err = why and why.float32,
            cache_err = why and why.cache,
            tables = p.options.tables,
            projection = p.options.projection,
            rel_err = relative or nil,
            max_abs_err = absolute or nil,
            ties = lookup and turned or nil,
            ok = ok,
            message = not ok and (message or wrong or transformer.off(relative, tolerance, why)) or nil,
        }
    end
    local check = p.causal and check_decoder or check_encoder
    local job = library.job(p, path, prepared.blob, threads)
    check(p, job, prepared, tolerance, add)
    if row_off and not prepared.unrounded then
        prepared.moved = prepared.moved or prepared.move()
        tolerance, why = transformer.moved_tolerance(tolerance, prepared.moved, prepared.answers, shape_of(p))
        results = {}
        check(p, job, prepared, tolerance, add)
    end
    return results
end

-- Compares every one of the plans, each for one instruction set, with the reference. Returns a list of results.
function verify.check(plans, options)
    local directory, results, threads = process.temporary_directory(), {}, compile.threads_of(options)
    local prepared = verify.prepare(plans[1], directory, options)
    for _, p in ipairs(plans) do
        local flags = compile.threaded(p, options.cflags, threads)
        local path = compile.library({ p }, directory .. "/" .. p.variants[1].isa.name, options.cc, flags)
        local found = verify.check_library(p, path, prepared, threads)
        table.move(found, 1, #found, #results + 1, results)
    end
    return results
end

function verify.run(path, options)
    local plans, skipped = runnable.plans(path, whole_family, options, runnable.every)
    return verified.print(plans[1].model, verify.check(plans, options), skipped, options)
end

return verify
