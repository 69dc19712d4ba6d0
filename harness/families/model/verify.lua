-- Compares emitted models with the reference: on every instruction set of this CPU, by every function.
local block_reference = require "block_reference"
local budget = require "harness.verify.budget"
local clamped = require "harness.calls.clamped"
local compare = require "harness.families.model.compare"
local compile = require "harness.base.compile"
local exact_product = require "harness.verify.exact_product"
local isolated = require "harness.base.isolated"
local observed_lookups = require "harness.families.model.observed_lookups"
local process = require "process"
local reference = require "harness.families.model.reference"
local request = require "gen.request.request"
local rules = require "gen.families.model.model"
local runnable = require "harness.base.runnable"
local verified = require "harness.report.verified"
local verify_blocks = require "harness.families.model.verify_blocks"
local verify_whole = require "harness.families.model.verify_whole"

local verify = {}

-- Weights for plan `p`, packed in `directory`, tokens, and what the reference computes of them: { tokens, blob, cc,
-- packed_from, answers, unrounded, answer, move, jobs, ways, other }: `answers` from the weights that are packed,
-- rounded to their type, `unrounded` likewise without rounding inputs, where products round them. Where lookup FFNs are
-- seen at work, these wait for that. answer(activations, cache, taken, way): lists of answers with other types than the
-- plan's, and `taken` in their jobs; move() for compare.moved_tolerance; jobs(taken), of the runs of blocks; ways(p,
-- library, threads): how it is called. other() prepares another sample: other inputs, and weights, if
-- those are random. On options.device, if there is one, products and lookup FFNs are not seen alone.
function verify.prepare(p, directory, options)
    local watched = not options.device and observed_lookups.wanted(rules.blocks_of(p))
    local sample = (p.embedding and verify_whole or verify_blocks).prepare(p, directory, options, watched)
    sample.cc, sample.device = (options.cc or "gcc"):match "[^,]+", options.device
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

-- What is wrong with the kernels of plan `p` in `library` for products, whose inputs are rounded, or nil.
local function check_products(p, library)
    local known = {}
    local function check(own, maps)
        local symbol, type = own.variants[1].names.product, own.type.groups and own.type.name or p.activations.name
        for _, map in ipairs(maps) do
            local key = symbol .. " " .. map.inputs
            local good, message = known[key], nil
            if not good then
                good, message = isolated(library, function()
                    exact_product(library, symbol, type, map.inputs)
                    return ""
                end)
            end
            if not good then return message end
            known[key] = true
        end
    end
    local wrong = check(p, p.own_maps or {})
    for _, own in ipairs(rules.blocks_of(p)) do
        wrong = wrong or check(own, own.maps)
    end
    return wrong
end

-- How far all values of `answers` of plan `p` together are from those of the sample.
local function apart_together(p, sample, answers)
    local squares = 0.0
    for i, answer in ipairs(sample.answers) do
        local _, _, all = block_reference.difference(answers[i].y, answer.y, compare.shape_of(p).d)
        squares = squares + all ^ 2
    end
    return math.sqrt(squares / #sample.answers)
end

-- Whether values that tables of plan `p` hold are rounded.
local function rounds_tables(p) return p.options.cache ~= "f32" and rules.has_tables(p.model) end

-- How far all values of emitted code may be from the answers together, which rounding moves as far as those of
-- sample.unrounded. Attention by tables rounds values in units of its own, others than the reference's.
local function together_of(p, sample)
    local values, layers = 0, p.embedding and 1 or 0 -- of embedding and output
    for _, answer in ipairs(sample.answers) do
        values = values + #answer.y // 8
    end
    for _, own in ipairs(rules.blocks_of(p)) do
        layers = layers + own.model.layers
    end
    local most = compare.moved_together(apart_together(p, sample, sample.unrounded), layers, values)
    if not rounds_tables(p) then return most end
    sample.unrounded_cache = sample.unrounded_cache or sample.answer(nil, "f32") -- the same for all instruction sets
    return most + 2 * apart_together(p, sample, sample.unrounded_cache)
end

-- What a sample of plan `p`, compiled into `library`, is judged by: shape, widths, looks_up, rounded; tolerance, of a
-- row, and together, of all values, nil: it is not asked; watched: what sees lookup FFNs at work, false: nothing does;
-- wrong: what is wrong with products alone, nil: nothing; why, of compare.moved_tolerance, nil: it is not needed.
local function judged_by(p, library, sample)
    local runs = rules.blocks_of(p)
    local by = { tolerance = 0, widths = {}, shape = compare.shape_of(p), rounded = p.shape.rounded }
    for i, own in ipairs(runs) do
        by.tolerance, by.widths[i] = math.max(by.tolerance, reference.tolerance(own.shape)), own.shape.d
        by.looks_up = by.looks_up or own.shape.lookup
    end
    by.watched = not sample.device
        and observed_lookups.wanted(runs)
        and observed_lookups.of(runs, library, sample.cc, sample.tokens)
    if by.rounded and not sample.device then by.wrong = check_products(p, library) end
    if by.rounded and not by.watched then
        by.together = together_of(p, sample)
        by.tolerance, by.activations_err =
            compare.rounded_tolerance(by.tolerance, sample.answers, sample.unrounded, by.shape.d)
    end
    return by
end

-- What is found of results `y` of `way`, and of the notes of what was seen: { off, absolute, turned, all, tolerance,
-- why, activations_err, looked, wrong }.
local function found_of(p, sample, by, way, y, notes)
    local absolute, turned, all
    local function off(answers)
        local relative
        relative, absolute, turned, all = way.compare(y, answers, by.tolerance)
        return relative
    end
    local found = { tolerance = by.tolerance, why = by.why, activations_err = by.activations_err }
    if by.watched then
        local function evaluate(activations, cache)
            return sample.answer(activations, cache, { seen = by.watched, notes = notes }, way)
        end
        local narrow = p.options.cache ~= "f32"
        found = compare.beside_seen(evaluate, off, by.tolerance, by.rounded, narrow, by.shape, by.widths)
        local jobs = sample.jobs { seen = by.watched, notes = notes }
        found.looked, found.wrong = observed_lookups.compare(jobs, found.answers)
        turned, all = nil, nil
    else
        found.off = off(way.answers or sample.answers)
    end
    found.absolute, found.turned, found.all = absolute, by.looks_up and turned or nil, all
    return found
end

-- The result of a call of plan `p`, of which so much was `found`; fault: what is wrong, nil: nothing.
local function result_of(p, sample, call, found, fault)
    return {
        isa = p.variants[1].isa.name,
        call = call,
        tokens = sample.tokens,
        type = p.options.type,
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
end

-- Compares plan `p`, for one instruction set and compiled into `library` for up to `threads` threads, with the
-- reference for one sample: a list of results, one for each way to call it, and what compare.settled wants.
local function check_sample(p, library, sample, threads)
    local by = judged_by(p, library, sample)
    local results, unsettled, row_off
    local function check(way)
        local y, notes, beyond = way.run(by.watched or nil)
        local found = y and found_of(p, sample, by, way, y, notes)
            or { activations_err = by.activations_err, wrong = notes }
        local fault, chance = y and by.wrong or found.wrong, nil
        row_off = row_off or y and not (found.off <= found.tolerance)
        if not fault then
            fault, chance = compare.fault(found, found.all, by.together, rounds_tables(p))
        end
        if fault and y and beyond > 0 then fault = fault .. "; " .. clamped.text(beyond) end
        unsettled[#results + 1] = chance
        local result = result_of(p, sample, way.name, found, fault)
        if p.embedding then
            result.rel_err = found.off
        else -- errors of kernels are beside those from unfused weights
            result.activations = by.rounded and p.activations.name or nil
            result.kernel_rel_err = found.off
            result.rel_err = y and way.unfused(y, by.tolerance) or nil
        end
        results[#results + 1] = result
    end
    local function check_ways()
        results, unsettled, row_off = {}, {}, false
        for _, way in ipairs(sample.ways(p, library, threads)) do
            check(way)
        end
    end
    check_ways()
    if row_off and not by.rounded and not by.watched then
        sample.moved = sample.moved or sample.move()
        by.tolerance, by.why = compare.moved_tolerance(by.tolerance, sample.moved, sample.answers, by.shape)
        check_ways()
    end
    return results, unsettled
end

-- Compares plan `p`, for one instruction set and compiled into `library` for up to `threads` threads (default 1), with
-- the reference: a list of results, one for each way to call it.
function verify.check_library(p, library, prepared, threads)
    return compare.settled(prepared, function(sample) return check_sample(p, library, sample, threads or 1) end)
end

local best_ways = { batch = 3, prefill = 2, encode = 1 } -- to see all layers at work

-- Which codes flip in each layer of plan `p`, compiled into `library`, by its types: as observed_lookups.flips says it.
local function flips_of(p, library, sample, threads)
    local best
    for _, way in ipairs(sample.ways(p, library, threads)) do
        if (best_ways[way.name] or 0) > (best and best_ways[best.name] or 0) then best = way end
    end
    local watched = observed_lookups.of(rules.blocks_of(p), library, sample.cc, sample.tokens)
    local y, notes = best.run(watched)
    if not y then error(notes, 0) end
    return observed_lookups.flips(sample.jobs { seen = watched, notes = notes, first_token = 0 })
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
        local folder, kind = directory .. "/" .. p.variants[1].isa.name, options.device and options.device.link_options
        local library = compile.library({ p }, folder, options.cc, flags, kind)
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
-- Returns the largest relative error of the kernels, and that beside unfused weights that are not rounded.
function verify.worst(what, p, library, prepared, threads)
    local worst, beside_unfused = 0.0, 0.0
    for _, result in ipairs(verify.check_library(p, library, prepared, threads)) do
        if not result.ok then
            error(string.format("%s: %s: %s: nothing was timed", what, result.call, result.message), 0)
        end
        worst = math.max(worst, result.kernel_rel_err or result.rel_err)
        beside_unfused = math.max(beside_unfused, result.rel_err or 0.0)
    end
    return worst, beside_unfused
end

return verify
