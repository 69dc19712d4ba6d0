-- Compares emitted models with the reference: on every instruction set of this CPU, by every function.
local blocks = require "harness.families.model.blocks"
local budget = require "harness.verify.budget"
local compare = require "harness.families.model.compare"
local compile = require "harness.base.compile"
local isolated = require "harness.base.isolated"
local process = require "process"
local reference = require "harness.families.model.reference"
local request = require "gen.request.request"
local rules = require "gen.families.model.model"
local runnable = require "harness.base.runnable"
local runner = require "transformer"
local seen = require "harness.families.model.seen"
local verified = require "harness.report.verified"
local whole = require "harness.families.model.whole"

local verify = {}

-- Weights for plan `p`, packed in `directory`, tokens, and what the reference computes of them: { tokens, blob, cc,
-- packed_from, answers, unrounded, answer, move, jobs, ways, other }: `answers` from the weights that are packed,
-- rounded to their type, `unrounded` likewise without rounding inputs, where products round them. Where lookup FFNs are
-- seen at work, these wait for that. answer(activations, cache, taken, way): lists of answers with other types than the
-- plan's, and `taken` in their jobs; move() for compare.moved_tolerance; jobs(taken), of the runs of blocks; ways(p,
-- library, threads): how it is called (blocks.lua). other() prepares another sample: other inputs, and weights, if
-- those are random.
function verify.prepare(p, directory, options)
    local watched = seen.wanted(rules.blocks_of(p))
    local sample = (p.embedding and whole or blocks).prepare(p, directory, options, watched)
    sample.cc = (options.cc or "gcc"):match "[^,]+"
    sample.answers = not watched and sample.answer()
    sample.unrounded = not watched and p.shape.rounded and sample.answer "f32"
    function sample.move()
        local narrow = p.options.cache ~= "f32"
        return { float32 = sample.answer "single", cache = narrow and sample.answer(nil, "f32") or nil }
    end
    function sample.other()
        local seed = options.seed + 1000 -- whole models take more seeds than one
        return verify.prepare(p, process.temporary_directory(), setmetatable({ seed = seed }, { __index = options }))
    end
    return sample
end

-- What is wrong with the kernel of plan `p` in `library` for the products of `maps`, whose inputs are rounded, or nil.
local function check_products(p, library, maps)
    local known = {}
    for _, map in ipairs(maps) do
        local symbol = p.variants[1].names.product
        local good, message = known[map.inputs], nil
        if not good then
            good, message = isolated(library, function()
                return assert(runner.exact_product(library, symbol, p.activations.name, map.inputs)) and ""
            end)
        end
        if not good then return message end
        known[map.inputs] = true
    end
end

-- The linear maps of plan `p`.
local function maps_of(p)
    local maps, ends = {}, p.embedding and { p.embedding.map or false, p.output.dense or false, p.output.head or false }
    for _, map in ipairs(ends or {}) do
        if map then maps[#maps + 1] = map end
    end
    for _, own in ipairs(rules.blocks_of(p)) do
        table.move(own.maps, 1, #own.maps, #maps + 1, maps)
    end
    return maps
end

-- How far all values of emitted code may be from the answers together, which rounding moves as far as those of
-- sample.unrounded.
local function together_of(p, sample)
    local squares, values, layers = 0.0, 0, p.embedding and 1 or 0 -- of embedding and output
    for i, answer in ipairs(sample.answers) do
        local _, _, all = runner.difference(sample.unrounded[i].y, answer.y, compare.shape_of(p).d)
        squares, values = squares + all ^ 2, values + #answer.y // 8
    end
    for _, own in ipairs(rules.blocks_of(p)) do
        layers = layers + own.model.layers
    end
    return compare.moved_together(math.sqrt(squares / #sample.answers), layers, values)
end

-- Compares plan `p`, for one instruction set and compiled into `library` for up to `threads` threads, with the
-- reference for one sample: a list of results, one for each way to call it, and what compare.settled wants.
local function check_sample(p, library, sample, threads)
    local runs, shape = rules.blocks_of(p), compare.shape_of(p)
    local tolerance, looks_up, widths = 0, false, {}
    for i, own in ipairs(runs) do
        tolerance, widths[i] = math.max(tolerance, reference.tolerance(own.shape)), own.shape.d
        looks_up = looks_up or own.shape.lookup
    end
    local rounded, watched = p.shape.rounded, seen.wanted(runs) and seen.of(runs, library, sample.cc, sample.tokens)
    local wrong, activations_err, together, why = nil, nil, nil, nil
    if rounded then wrong = check_products(p, library, maps_of(p)) end
    if rounded and not watched then
        together = together_of(p, sample)
        tolerance, activations_err = compare.rounded_tolerance(tolerance, sample.answers, sample.unrounded, shape.d)
    end
    -- What is found of results `y` of `way`: { off, absolute, turned, all, tolerance, why, activations_err, looked,
    -- wrong }.
    local function found_of(way, y, notes)
        local absolute, turned, all
        local function off(answers)
            local relative
            relative, absolute, turned, all = way.compare(y, answers, tolerance)
            return relative
        end
        local found
        if watched then
            local function evaluate(activations, cache)
                return sample.answer(activations, cache, { seen = watched, notes = notes }, way)
            end
            local narrow = p.options.cache ~= "f32"
            found = compare.beside_seen(evaluate, off, tolerance, rounded, narrow, shape, widths)
            found.looked, found.wrong = seen.compare(sample.jobs { seen = watched, notes = notes }, found.answers)
            turned, all = nil, nil
        else
            found = { off = off(way.answers or sample.answers), tolerance = tolerance, why = why }
            found.activations_err = activations_err
        end
        found.absolute, found.turned, found.all = absolute, looks_up and turned or nil, all
        return found
    end
    local kernels = not p.embedding -- their errors are beside those from unfused weights
    local results, off_together, row_off
    local function check(way)
        local y, notes = way.run(watched or nil)
        local found = y and found_of(way, y, notes) or { activations_err = activations_err, wrong = notes }
        local fault, only_together = y and wrong or found.wrong, nil
        row_off = row_off or y and not (found.off <= found.tolerance)
        if not fault then
            fault, only_together = compare.fault(found, found.all, together)
        end
        off_together[#results + 1] = only_together
        local result = {
            isa = p.variants[1].isa.name,
            call = way.name,
            tokens = sample.tokens,
            type = runs[1].shape.type.name,
            cache = p.options.cache,
            activations = p.options.activations,
            activations_err = found.activations_err,
            float32_err = found.why and found.why.float32,
            cache_err = found.why and found.why.cache,
            tables = p.options.tables,
            projection = p.options.projection,
            max_abs_err = found.absolute,
            ties = found.turned,
            looked = found.looked,
            ok = fault == nil,
            message = fault,
        }
        if kernels then
            result.activations = rounded and p.activations.name or nil
            result.kernel_rel_err = found.off
            result.rel_err = y and way.unfused(y, tolerance) or nil
        else
            result.rel_err = found.off
        end
        results[#results + 1] = result
    end
    local function check_ways()
        results, off_together, row_off = {}, {}, false
        for _, way in ipairs(sample.ways(p, library, threads)) do
            check(way)
        end
    end
    check_ways()
    if row_off and not rounded and not watched then
        sample.moved = sample.moved or sample.move()
        tolerance, why = compare.moved_tolerance(tolerance, sample.moved, sample.answers, shape)
        check_ways()
    end
    return results, off_together
end

-- Compares plan `p`, for one instruction set and compiled into `library` for up to `threads` threads (default 1), with
-- the reference: a list of results, one for each way to call it.
function verify.check_library(p, library, prepared, threads)
    return compare.settled(prepared, function(sample) return check_sample(p, library, sample, threads or 1) end)
end

local best_ways = { batch = 3, prefill = 2, encode = 1 } -- to see all layers at work

-- Which codes flip in each layer of plan `p`, compiled into `library`, by its types: as seen.flips says it.
local function flips_of(p, library, sample, threads)
    local best
    for _, way in ipairs(sample.ways(p, library, threads)) do
        if (best_ways[way.name] or 0) > (best and best_ways[best.name] or 0) then best = way end
    end
    local watched = seen.of(rules.blocks_of(p), library, sample.cc, sample.tokens)
    local y, notes = best.run(watched)
    if not y then error(notes, 0) end
    return seen.flips(sample.jobs { seen = watched, notes = notes, first_token = 0 })
end

-- Compares every one of the plans, each for one instruction set, with the reference. Returns a list of results, and
-- with options.budget which codes of each layer flip on the last instruction set.
local function check(plans, options)
    local flips
    local directory, results = process.temporary_directory(), {}
    local threads = plans[1].embedding and compile.threads_of(options) or 1
    local prepared = verify.prepare(plans[1], directory, options)
    for i, p in ipairs(plans) do
        local flags = compile.threaded(p, options.cflags, threads)
        local library = compile.library({ p }, directory .. "/" .. p.variants[1].isa.name, options.cc, flags)
        local found = verify.check_library(p, library, prepared, threads)
        table.move(found, 1, #found, #results + 1, results)
        flips = options.budget and i == #plans and flips_of(p, library, prepared, threads) or nil
    end
    return results, flips
end

function verify.run(path, options)
    local _, family = request.model(path, options)
    local plans, skipped = runnable.plans(path, family, options, runnable.every)
    local m = plans[1].model
    local most = budget.of_layers(m, options.budget, plans[1].lookup_types ~= nil)
    local results, flips = check(plans, options)
    return verified.print(m, results, skipped, options, flips and budget.layers(flips, most))
end

-- Verifies plan `p` in `library` for those who time it; raises one line that begins with `what` if a call is wrong.
-- Returns the largest relative error.
function verify.worst(what, p, library, prepared, threads)
    local worst = 0.0
    for _, result in ipairs(verify.check_library(p, library, prepared, threads)) do
        if not result.ok then
            error(string.format("%s: %s: %s: nothing was timed", what, result.call, result.message), 0)
        end
        worst = math.max(worst, result.kernel_rel_err or result.rel_err)
    end
    return worst
end

return verify
