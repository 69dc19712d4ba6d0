-- Compares compiled kernels of LookupFFNs with the float64 reference on a device (harness/device/device.lua): its
-- program computes the errors of outputs. Where they are larger than the tolerance the outputs are fetched, and judged
-- by what rounding explains, as here.
local compile = require "harness.base.compile"
local host = require "host"
local jobs = require "harness.measure.job"
local lookup_reference = require "lookup_reference"
local process = require "process"

local there = {}

local most_work = 1e9 -- multiplications that one call is worth on a device, which may be slow
local least_tokens = 33

-- The random tokens of a reference and what it makes of them, in files for a program: { random, tokens, x, expected
-- (paths), near (by number) }. A token whose codes rounding may change has no outputs to be compared with.
local function sample_of(reference, tokens, rows, d_out)
    assert(reference:extend(tokens))
    local folder, random = process.temporary_directory(), reference:sample("random", tokens)
    local made = { random = random, tokens = tokens, near = {} }
    made.x, made.expected = folder .. "/x", folder .. "/y"
    local y, parts, row = random:y(tokens), {}, 8 * d_out
    for token = 0, tokens - 1 do
        local own = y:sub(token * row + 1, (token + 1) * row)
        made.near[token] = random:is_near(token)
        parts[token + 1] = made.near[token] and ("<d"):pack(0 / 0) .. own:sub(9) or own
    end
    assert(host.write_file(made.x, random:x(rows)))
    assert(host.write_file(made.expected, table.concat(parts)))
    made.y = y
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

-- What is wrong with outputs y of a check of `sample`, or nil.
local function judged(sample, y, tokens, d_out, moved_share)
    local tally, row = lookup_reference.tally(), 4 * d_out
    local parts = {}
    for at = 0, tokens - 1 do
        local token = at % sample.tokens
        local own = y:sub(at * row + 1, (at + 1) * row)
        if sample.near[token] then
            local right = { ("<" .. ("d"):rep(d_out)):unpack(sample.y, token * 2 * row + 1) }
            own = ("<" .. ("f"):rep(d_out)):pack(table.unpack(right, 1, d_out))
        end
        parts[#parts + 1] = own
    end
    sample.random:compare(table.concat(parts), false, tally)
    if tally.wrong > 0 then
        local form = "%d of %d tokens wrong, the first: token %d with relative error %.3g"
        return form:format(tally.wrong, tally.compared, tally.first_wrong, tally.first_error)
    elseif tally.moved > moved_share * tally.compared + 4.0 then
        local form = "%d of %d tokens off by more than %g of what rounding inputs explains"
        return form:format(tally.moved, tally.compared, lookup_reference.same_rounding)
    end
end

-- The checks of one stage { plan, library (its row in the job), variant, sample, facts } at the end of job.checks: its
-- kernels, and unless `quick` the public function where it takes this stage, `least` to `most` tokens.
local function add_checks(job, own, quick, least, most)
    local function add(symbol, count)
        table.insert(job.checks, {
            name = string.format("%s, %d tokens", symbol, count),
            y = "y",
            expected = own.sample.name .. " expected",
            tokens = count,
            width = own.variant.d_out,
            period = own.sample.tokens,
            own = own,
            steps = {
                {
                    library = own.library,
                    ["function"] = symbol,
                    arguments = { "weights", own.sample.name .. " x", "y", count, "scratch" },
                },
            },
        })
        own.largest = math.max(own.largest or 0, count)
    end
    for _, count in ipairs(counts_of(own.variant, own.sample.tokens, own.facts.multiplications, quick)) do
        add(own.variant.ffn, count)
        if not quick and count >= least and count <= most then add(own.variant.public_ffn, count) end
    end
end

local function memory_rows(samples, scratch, y_bytes)
    local rows = { { name = "y", bytes = y_bytes }, { name = "scratch", bytes = scratch } }
    for _, sample in ipairs(samples) do
        for _, kind in ipairs { "x", "expected" } do
            local bytes = #assert(host.read(sample[kind], 1 << 31))
            local row = { name = sample.name .. " " .. kind, bytes = bytes, fill = "linked", file = sample[kind] }
            rows[#rows + 1] = row
        end
    end
    return rows
end

-- The result of a stage, as verify.all returns it, of its checks and what the device says of them.
local function result_of(device, job, own, found)
    local result = { ok = true, checks = {}, tokens = own.sample.tokens, kernel_rel_err = 0.0 }
    for i, row in ipairs(job.checks) do
        if row.own == own then
            local one, wrong = found[i], nil
            if one.failure then
                wrong = one.failure
            elseif not (one.relative <= lookup_reference.tolerance) then
                local y = device:outputs(job, i)
                wrong = y and judged(own.sample, y, row.tokens, row.width, own.facts.moved_share)
                    or not y and "crashed on the device" or nil
            end
            result.ok = result.ok and not wrong
            if one.relative then result.kernel_rel_err = math.max(result.kernel_rel_err, one.relative) end
            local detail = wrong or string.format("relative error %.2g on the device", one.relative)
            table.insert(result.checks, { name = row.name, ok = not wrong, detail = detail })
        end
    end
    return result
end

-- As verify.all for options.device. reference_of(p, stage) -> reference, its name; range_of(v, number) -> the tokens
-- of calls that take that stage.
function there.all(list, files, options, reference_of, range_of)
    local job = jobs.of { model = list[1].plan.model.name, seed = 1, repetitions = 1, checks = {} }
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
                    table.insert(job.libraries, jobs.library(own.library, variant))
                    stages[#stages + 1] = own
                    tokens = math.max(tokens, 2 * variant.tile + 3)
                    rows = math.max(rows, 9 * variant.tile + 1, variant.chunk + variant.tile + 1, variant.whole + 1)
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
        files.there[key] = files.there[key] or sample_of(reference, tokens, math.max(rows, tokens), d_out)
        own.sample, own.facts = files.there[key], reference:facts()
        if not used[own.sample] then
            samples[#samples + 1], used[own.sample] = own.sample, true
            own.sample.name = "sample " .. #samples
        end
    end
    for _, own in ipairs(stages) do
        local least, most = range_of(own.v, own.number)
        add_checks(job, own, options.quick, least, most)
    end
    local largest = 0
    for _, own in ipairs(stages) do
        largest = math.max(largest, own.largest)
    end
    job.memory = memory_rows(samples, scratch, 4 * largest * stages[1].variant.d_out)
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
