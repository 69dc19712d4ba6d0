-- Compares the compiled kernels of LookupFFNs with the float64 reference.
local budget = require "harness.verify.budget"
local checks = require "harness.verify.checks"
local compile = require "harness.base.compile"
local integer = require "harness.families.lookup.integer"
local lookup_reference = require "lookup_reference"
local packed = require "harness.families.lookup.packed"
local verify_there = require "harness.families.lookup.verify_there"

local verify = {}

-- The least and most tokens of calls that take the stage of that number.
local function range_of(v, number)
    local after = v.stages[number + 1]
    return (after and after.up_to or 0) + 1, v.stages[number].up_to
end

-- Numbers of tokens around which calls change: where the stage of that number begins and ends, up to how many take
-- another gather, and where one more thread gets a range.
local function turning_points(v, number, threads)
    local stage, first, last = v.stages[number], range_of(v, number)
    local wanted = { first, first + stage.tile, number > 1 and last or first }
    for i = 2, #stage.gathers do
        local up_to = stage.gathers[i].up_to
        table.move({ up_to, up_to + 1 }, 1, 2, #wanted + 1, wanted)
    end
    for _, ranges in ipairs(threads > 1 and stage.split and { 2, threads } or {}) do
        local at = math.max(first + 1, ranges * stage.split.min)
        table.move({ at - 1, at, at + 1, at + stage.split.tile }, 1, 4, #wanted + 1, wanted)
    end
    local list, seen = {}, {}
    for _, count in ipairs(wanted) do
        if count >= first and count <= last and not seen[count] then list[#list + 1] = count end
        seen[count] = true
    end
    return list
end

-- What kernels of plan `p` with the weights `files` are compared with, one for each form of the projection (as it is,
-- if absent) and for scores of a byte or not: made once, kept in `files` and shared by all schedules of the model.
function verify.reference_of(p, files, seed, form, byte_scores)
    local key = (form or "reference") .. (byte_scores and ", scores in 8 bits" or "")
    local known = files[key]
    if not known or known.seed ~= seed then
        known = {
            seed = seed,
            answers = assert(lookup_reference.open {
                model = packed.reference_model(p.model, p.model.d, p.model.d_out),
                weights = files.weights,
                prefix = files.prefix,
                blocks_in_out = files.blocks_in_out or false,
                blob = files.output,
                form = form,
                byte_scores = byte_scores,
                tables = p.tables.name,
                projection = p.projection.name,
                seed = seed,
            }),
        }
        files[key] = known
    end
    return known.answers
end

-- Checks every kernel of the libraries `list` { {plan, library} }, of schedules of one model compiled for up to
-- `threads` threads (one, if absent), against the reference, and what it costs against the model's budget. Of
-- `options`, if any: `budget`, another one (harness/verify/budget.lua); `only`, the one regime to check; `work`, the
-- multiplications that one call is worth; `bind_known`, when a bind that differs in its name only was checked before;
-- `left`, the most seconds for each; `quick`, to compare codes and outputs of a few tokens only; `at_once`, how many to
-- check at the same time; `device`, where they are called, nil: here. Returns for each a list of results, each with
-- `isa` and `regime`; the first one of all has the check of bind.
function verify.all(list, files, seed, threads, options)
    threads, options = threads or 1, options or {}
    if options.device then
        local function reference_of(p, stage)
            local form, byte_scores = packed.form_of(stage), packed.has_byte_scores(stage)
            local name = string.format("%s %s", form, byte_scores)
            return verify.reference_of(p, files, seed, form, byte_scores), name
        end
        return verify_there.all(list, files, options, reference_of, range_of)
    end
    local jobs, of, all = {}, {}, {}
    for i, made in ipairs(list) do
        local p = made.plan
        all[i] = {}
        for _, v in ipairs(p.variants) do
            for number, stage in ipairs(v.stages) do
                if (options.only or stage.name) == stage.name then
                    local variant = compile.describe(p, v, made.library, stage.name, threads)
                    variant.ffn = stage.names.ffn
                    local least, most = range_of(v, number)
                    local byte_scores = packed.has_byte_scores(stage)
                    -- bind takes the best one of those that can run, as all can
                    local taken = v == p.variants[#p.variants]
                    jobs[#jobs + 1] = {
                        variant = variant,
                        reference = verify.reference_of(p, files, seed, packed.form_of(stage), byte_scores),
                        counts = turning_points(v, number, threads),
                        least = least,
                        most = taken and most or 0,
                        work = options.work,
                        bind_known = options.bind_known or #jobs > 0,
                        quick = options.quick,
                        patience = 60 + (p.packed_bytes >> 22),
                        timeout = options.left and math.max(0.01, options.left),
                    }
                    of[#jobs] = { results = all[i], plan = p, isa = v.isa.name, stage = stage }
                end
            end
        end
    end
    for i, result in ipairs(checks.all(jobs, options.at_once or 1)) do
        local p = of[i].plan
        result.isa, result.regime, result.tables, result.projection =
            of[i].isa, of[i].stage.name, p.tables.name, p.projection.name
        local types = string.format("projection in %s and tables in %s", p.projection.name, p.tables.name)
            .. (packed.has_byte_scores(of[i].stage) and ", scores in 8 bits" or "")
        budget.check(result, options.budget or budget.of(p.model), types)
        table.insert(of[i].results, result)
    end
    return all
end

-- The same for one library of plan `p`, of any arithmetic. Kernels of integers have one result, without a regime.
function verify.variants(p, library, files, seed, threads, options)
    if p.exact then return { integer.check(p, library, files, seed, options) } end
    return verify.all({ { plan = p, library = library } }, files, seed, threads, options)[1]
end

-- Tokens of a self-test and what the reference makes of them: { {x, y} }. Rounding cannot change their codes.
function verify.vectors(p, files, seed)
    if p.exact then return integer.vectors(p, files, seed) end
    local reference, list, tried = verify.reference_of(p, files, seed), {}, 100 * packed.vectors
    assert(reference:extend(tried))
    local sample = reference:sample "random"
    local x, y = sample:x(tried), sample:y(tried)
    for token = 0, tried - 1 do
        if #list < packed.vectors and not sample:is_near(token) then
            list[#list + 1] = packed.vector("f", x, p.model.d, "d", y, p.model.d_out, token)
        end
    end
    if #list == packed.vectors then return list end
    error("verify: rounding may change a code of nearly every token: no vectors for a self-test", 0)
end

return verify
