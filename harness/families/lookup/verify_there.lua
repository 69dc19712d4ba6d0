-- Compares compiled kernels of LookupFFNs with the float64 reference on a device (harness/device/device.lua): its
-- program computes the errors of outputs. Where they are larger than the tolerance the outputs are fetched, and judged
-- by what rounding explains, as here. Where rounding may change codes of many tokens, codes are fetched, too.
local compile = require "harness.base.compile"
local lookup_reference = require "lookup_reference"
local setting = require "harness.measure.setting"

local there = {}

local most_work = 1e9 -- multiplications that one call is worth on a device, which may be slow
local least_tokens = 33
local most_near = 0.1 -- of the tokens: with more, codes of the kernels are needed
local nan = ("<d"):pack(0 / 0)

-- The random tokens of a reference and what it makes of them, for a program: { name, random, tokens, x, expected (rows
-- of memory), near (by number), coded (whether the kernels' own codes are needed) }. A token whose codes rounding may
-- change has no outputs to be compared with.
local function sample_of(name, reference, tokens, rows, d_out)
    assert(reference:extend(tokens))
    local random = reference:sample("random", tokens)
    local made = { name = name, random = random, tokens = tokens, near = {}, y = random:y(tokens) }
    made.facts = reference:facts()
    local parts, row, count = {}, 8 * d_out, 0
    for token = 0, tokens - 1 do
        local own = made.y:sub(token * row + 1, (token + 1) * row)
        made.near[token] = random:is_near(token)
        count = count + (made.near[token] and 1 or 0)
        parts[token + 1] = made.near[token] and nan .. own:sub(#nan + 1) or own
    end
    made.coded = count > most_near * tokens
    made.x = setting.linked(name .. " x", random:x(rows))
    made.expected = setting.linked(name .. " expected", table.concat(parts))
    return made
end

-- Numbers of tokens of calls of the stage `variant`: those around which calls change, none twice, as far as they are
-- worth their time.
local function counts_of(variant, tokens, multiplications, quick)
    local tile, chunk, whole = variant.tile, variant.chunk, variant.whole
    local wanted = { tokens, 1, tile - 1, tile, tile + 1, 9 * tile + 1, chunk, chunk + tile + 1, whole, whole + 1 }
    local list, seen = {}, {}
    for i = 1, quick and 2 or #wanted do
        local count = wanted[i]
        local affordable = count <= tokens or count * multiplications <= most_work
        if count > 0 and affordable and not seen[count] then
            list[#list + 1], seen[count] = count, true
        end
    end
    return list
end

-- What a tally of outputs says against them, or nil.
local function fault_of(tally, moved_share)
    if tally.wrong > 0 then
        local form = "%d of %d tokens wrong, the first: token %d with relative error %.3g"
        return form:format(tally.wrong, tally.compared, tally.first_wrong, tally.first_error)
    elseif tally.moved > moved_share * tally.compared + 4.0 then
        local form = "%d of %d tokens off by more than %g of what rounding inputs explains"
        return form:format(tally.moved, tally.compared, lookup_reference.same_rounding)
    end
end

-- What is wrong with outputs y of a check of `sample`, or nil, and their largest errors. Tokens without outputs
-- to be compared with are right.
local function judged(sample, y, tokens, d_out)
    local tally, row, parts = lookup_reference.tally(), 4 * d_out, {}
    for at = 0, tokens - 1 do
        local token = at % sample.tokens
        parts[at + 1] = y:sub(at * row + 1, (at + 1) * row)
        if sample.near[token] then
            local right = { ("<" .. ("d"):rep(d_out)):unpack(sample.y, token * 2 * row + 1) }
            parts[at + 1] = ("<" .. ("f"):rep(d_out)):pack(table.unpack(right, 1, d_out))
        end
    end
    sample.random:compare(table.concat(parts), false, tally)
    return fault_of(tally, sample.facts.moved_share), tally.worst, tally.worst_absolute
end

-- Adds a row to job.checks: the `steps` (without their library) leave `tokens` rows of y in the memory `y`.
local function add_check(job, own, name, row)
    row.name, row.own = name, own
    for _, step in ipairs(row.steps) do
        step.library = own.library
    end
    table.insert(job.checks, row)
    return #job.checks
end

-- The check whose outputs are the codes of the sample and behind them the scores, as the projection leaves them, chunk
-- by chunk; nothing is compared on the device.
local function add_codes(job, own)
    local v, tokens, steps = own.variant, own.sample.tokens, {}
    local slots = v.h * v.neighbours
    local all = (tokens + v.tile - 1) // v.tile * v.tile * slots
    for first = 0, tokens - 1, v.chunk do
        local x = { memory = own.sample.name .. " x", at = 4 * v.d * first }
        local code, score = { memory = "codes", at = 2 * slots * first }, { memory = "codes" }
        score.at = 2 * all + 4 * slots * first
        local count = math.min(v.chunk, tokens - first)
        table.insert(steps, { ["function"] = v.project, arguments = { "weights", x, count, code, score, "scratch" } })
    end
    own.code_words = all
    job.most_codes = math.max(job.most_codes or 0, 6 * all)
    local row = { y = "codes", tokens = 3 * all // 2, width = 1, steps = steps }
    own.codes = add_check(job, own, v.project, row)
end

-- The checks of one stage { plan, library (its row in the job), variant, sample } at the end of job.checks: its
-- kernels, and unless `quick` the public function where it takes this stage, `least` to `most` tokens.
local function add_checks(job, own, quick, least, most)
    local sample, v, x = own.sample, own.variant, own.sample.name .. " x"
    local function add(symbol, count)
        add_check(job, own, string.format("%s, %d tokens", symbol, count), {
            y = "y",
            expected = sample.name .. " expected",
            tokens = count,
            width = v.d_out,
            period = sample.tokens,
            steps = { { ["function"] = symbol, arguments = { "weights", x, "y", count, "scratch" } } },
        })
        job.largest = math.max(job.largest or 0, count)
    end
    if sample.coded then add_codes(job, own) end
    for _, count in ipairs(counts_of(v, sample.tokens, sample.facts.multiplications, quick)) do
        if not sample.coded or count <= 9 * v.tile + 1 then -- all outputs are fetched then
            add(v.ffn, count)
            if not quick and count >= least and count <= most then add(v.public_ffn, count) end
        end
    end
end

local function memory_rows(job, samples, scratch, d_out)
    local rows = {
        { name = "y", bytes = 4 * job.largest * d_out },
        { name = "scratch", bytes = scratch },
        { name = "codes", bytes = job.most_codes or 0 },
    }
    for _, sample in ipairs(samples) do
        table.move({ sample.x, sample.expected }, 1, 2, #rows + 1, rows)
    end
    return rows
end

-- What is said of a check: name, what is wrong (nil: nothing), the largest errors, relative of a token's y and of a
-- value.
local function add_result(result, name, wrong, relative, absolute)
    result.ok = result.ok and not wrong
    if relative then
        result.kernel_rel_err = math.max(result.kernel_rel_err, relative)
        result.max_abs_err = math.max(result.max_abs_err, absolute)
    end
    local detail = wrong or string.format("relative error %.2g on the device", relative or 0)
    table.insert(result.checks, { name = name, ok = not wrong, detail = detail })
end

-- Adds what comes of the checks of numbers `list` of a stage whose outputs are compared here, with the codes that its
-- kernels have, after these have been found right.
local function add_coded(device, job, own, list, result)
    local outputs, failure = device:outputs(job, list)
    if not outputs then return add_result(result, own.variant.ffn, failure) end
    local v, sample, taken = own.variant, own.sample, nil
    for i, number in ipairs(list) do
        local check, tally = job.checks[number], lookup_reference.tally()
        if number == own.codes then
            local slots, words = v.h * v.neighbours, own.code_words
            local codes = lookup_reference.rows(outputs[i]:sub(1, 2 * words), 2, slots, v.tile, sample.tokens)
            local scores = ("f"):pack(1):rep(sample.tokens * slots)
            if sample.facts.weighted then
                scores = lookup_reference.rows(outputs[i]:sub(2 * words + 1), 4, slots, v.tile, sample.tokens)
            end
            taken = sample.random:taken(codes)
            taken:compare_hash(codes, scores, tally)
            local wrong = tally.wrong_codes > 0 and "codes wrong, the first: " .. tally.first_code
                or tally.wrong_scores > 0 and "scores wrong, the first: " .. tally.first_score
            add_result(result, check.name, wrong or nil)
        else
            taken:compare(outputs[i], false, tally)
            local wrong = fault_of(tally, sample.facts.moved_share)
            add_result(result, check.name, wrong, tally.worst, tally.worst_absolute)
        end
    end
end

-- The result of a stage, as verify.all returns it, of its checks and what the device says of them.
local function result_of(device, job, own, found)
    local result = { ok = true, device = true, checks = {}, tokens = own.sample.tokens }
    local coded = {}
    result.kernel_rel_err, result.max_abs_err = 0.0, 0.0
    for i, row in ipairs(job.checks) do
        local one = row.own == own and found[i]
        if one and one.failure then
            add_result(result, row.name, one.failure)
        elseif one and own.sample.coded then
            coded[#coded + 1] = i
        elseif one and one.relative <= lookup_reference.tolerance then
            add_result(result, row.name, nil, one.relative, one.absolute)
        elseif one then
            local outputs, failure = device:outputs(job, { i })
            local wrong, worst, absolute = failure, nil, nil
            if outputs then wrong, worst, absolute = judged(own.sample, outputs[1], row.tokens, row.width) end
            add_result(result, row.name, wrong, worst, absolute)
        end
    end
    if #coded > 0 and result.ok then add_coded(device, job, own, coded, result) end
    return result
end

-- As verify.all for options.device. reference_of(p, stage) -> reference, its name; range_of(v, number) -> the tokens
-- of calls that take that stage.
function there.all(list, files, options, reference_of, range_of)
    local job = setting.complete { model = list[1].plan.model.name, seed = 1, repetitions = 1, checks = {} }
    local stages, samples, tokens, rows, scratch = {}, {}, least_tokens, 0, 1
    for i, made in ipairs(list) do
        local p = made.plan
        for _, v in ipairs(p.variants) do
            for number, stage in ipairs(v.stages) do
                if (options.only or stage.name) == stage.name then
                    local variant = compile.describe(p, v, made.library, stage.name)
                    variant.ffn, variant.blob = stage.names.ffn, files.output
                    local own = { plan = p, of = i, v = v, number = number, stage = stage, variant = variant }
                    own.library = "s" .. #stages + 1
                    table.insert(job.libraries, setting.library(own.library, variant))
                    stages[#stages + 1] = own
                    tokens = math.max(tokens, 2 * variant.tile + 3)
                    local longest = math.max(9 * variant.tile, variant.chunk + variant.tile, variant.whole) + 1
                    rows = math.max(rows, options.device.unit and tokens or longest)
                    scratch = math.max(scratch, variant.scratch_bytes)
                end
            end
        end
    end
    files.there = files.there or {}
    local used = {}
    for _, own in ipairs(stages) do
        local reference, name = reference_of(own.plan, own.stage)
        local key = string.format("%s %d %d", name, tokens, rows)
        local d_out = own.variant.d_out
        files.there[key] = files.there[key] or sample_of(key, reference, tokens, math.max(rows, tokens), d_out)
        own.sample = files.there[key]
        if not used[key] then
            samples[#samples + 1], used[key] = own.sample, true
        end
    end
    for _, own in ipairs(stages) do
        local least, most = range_of(own.v, own.number)
        add_checks(job, own, options.quick or options.device.unit, least, most)
    end
    job.memory = memory_rows(job, samples, scratch, stages[1].variant.d_out)
    local all = {}
    for i in ipairs(list) do
        all[i] = {}
    end
    local found = options.device:check(job, options.left)
    for _, own in ipairs(stages) do
        local late = { name = "verified", ok = false, detail = "there was no time for the device" }
        local result = found and result_of(options.device, job, own, found) or { ok = false, checks = { late } }
        result.isa, result.regime = own.v.isa.name, own.stage.name
        result.tables, result.projection = own.plan.tables.name, own.plan.projection.name
        table.insert(all[own.of], result)
    end
    return all
end

return there
