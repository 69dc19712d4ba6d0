-- How far results of compiled models may be from what the reference answers: ties, rounding, and what both explain.
local block_reference = require "block_reference"
local rules = require "gen.families.model.model"

local compare = {}

-- What decides ties of rows that plan `p` makes, and how wide these are. A tie of a key's code changes tokens far
-- behind, as if all attended to all.
function compare.shape_of(p)
    local causal = p.model.attention.causal and not rules.has_tables(p.model)
    return { d = p.widths and p.widths.out or p.shape.d, attention = { causal = causal } }
end

local most_turned = 8 -- ties of a run that may go the other way
local most_trials = 32 -- runs of the reference that look for them

-- A token of y from number `from` on that is further than `most` from that of the answer, and how far, or nil: the
-- first one, or the `worst`.
local function token_off(y, found, d, from, most, worst)
    local token, largest = nil, most
    for at = 8 * d * from + 1, #y, 8 * d do
        local off = block_reference.difference(y:sub(at, at + 8 * d - 1), found.y:sub(at, at + 8 * d - 1), d)
        if not (off <= largest) then
            token, largest = (at - 1) // (8 * d), off
            if not worst then break end
        end
    end
    return token, token and largest
end

-- The answer whose ties (harness/reference/block_lookup.h) are decided as in y, as far as that explains where tokens
-- from number `from` on are further than `most` from it, and how many of them differ from `found`. A tie changes its
-- token and later ones, or, where all attend to all, its token more than others.
function compare.decided_as(y, found, m, from, most)
    local turned, trials, causal = {}, 0, m.attention.causal
    for count = 0, most_turned do
        local token, off = token_off(y, found, m.d, from, most, not causal)
        if not token or count == most_turned then return found, count end
        local better
        local function try_ties(own)
            for _, tie in ipairs(found.ties) do
                if not better and trials < most_trials and (tie.token == token) == own then
                    trials = trials + 1
                    local next_turned = table.move(turned, 1, #turned, 2, { tie })
                    local other = found.again(next_turned)
                    local next_token, next_off = token_off(y, other, m.d, from, most, not causal)
                    local later = causal and next_token and next_token > token
                    if not next_token or later or (next_token == token or not causal) and next_off < off then
                        better, turned = other, next_turned
                    end
                end
            end
        end
        try_ties(true)
        if not causal then try_ties(false) end
        if not better then return found, count end
        found = better
    end
end

-- The largest relative error of a row of the answers `a`, d values wide, beside the answers `b`, and of an input of a
-- lookup FFN where they were seen at work, d_ffn wide.
local function apart(a, b, d, d_ffn)
    local largest = 0
    for i, answer in ipairs(a) do
        largest = math.max(largest, (block_reference.difference(answer.y, b[i].y, d)))
        for k, inputs in ipairs(answer.inputs or {}) do
            largest = math.max(largest, (block_reference.difference(inputs, b[i].inputs[k], d_ffn[k])))
        end
    end
    return largest
end

-- How far emitted code may be from the reference where inputs of products are rounded, `tolerance` where they are not.
-- An input half-way between two numbers may become either, and after some layers much is rounded in another way: the
-- results differ as much as those with and without rounding, `rounded` and `unrounded`, lists of answers as for
-- `apart`. Behind it the largest relative error of a row that rounding makes.
function compare.rounded_tolerance(tolerance, rounded, unrounded, d, d_ffn)
    local largest = apart(rounded, unrounded, d, d_ffn)
    return math.max(tolerance, 2 * largest), largest
end

-- How far all values together may be from the reference: a share of `explained`, how far rounding inputs moves them.
-- The reference rounds as kernels do, so that only inputs half-way between two numbers move a block's output; those of
-- blocks before move more and more, until both are rounded independently. `values`: how many there are.
function compare.moved_together(explained, layers, values)
    return math.max(1e-4, explained * (layers / 5 + 4 / math.sqrt(values)))
end

-- Some models amplify rounding, so that float32 is hardly enough for them: without norms values grow from block to
-- block, until the last bits decide between two keys. Rounding the inputs of products to float32 then moves the rows of
-- the reference. Kernels also round the sums of those products after every term, which moves a sum of n terms about
-- sqrt(n) times as far, what a LookupFFN hashes and gathers, and norms.
local kernels_round = 32 -- times as far
local most_moved = 1e-2 -- a row that kernels may move by more is none

-- How far emitted code may be from the reference where results further than `tolerance` from it have been found, and
-- why: { float32, cache }: how far float32 moves a row of model `m`, and how far rounding the cache does, nil if it is
-- not rounded. `moved`: { float32, cache }: lists of answers with inputs of products rounded to float32, and with an
-- exact cache, beside `answers`. What is half-way between two numbers of the cache's type may become either: many
-- codes may differ then, more than decided_as tries.
function compare.moved_tolerance(tolerance, moved, answers, m, d_ffn)
    local decided = {}
    for i, answer in ipairs(moved.float32) do
        decided[i] = compare.decided_as(answer.y, answers[i], m, 0, tolerance)
    end
    local why = {
        float32 = apart(moved.float32, decided, m.d, d_ffn),
        cache = moved.cache and apart(moved.cache, answers, m.d, d_ffn),
    }
    return math.max(tolerance, math.min(kernels_round * why.float32, most_moved), 2 * (why.cache or 0)), why
end

-- Values that tables round may flip codes of the next layer's tables in kernels, and none in the reference. They move a
-- row by less than this.
local most_flipped = 0.3

-- What is wrong with a result, or nil; behind it true if that may be chance: only all values together are off, or rows
-- by codes that flip. found: { off, tolerance, why }: how far its rows are from the reference and may be, why of
-- moved_tolerance or nil; all, together: the same of all values together, the latter of moved_together; nil: not
-- compared; flips: whether codes may.
function compare.fault(found, all, together, flips)
    if not (found.off <= found.tolerance) then
        local text = string.format("relative error %.2g: must be at most %.2g", found.off, found.tolerance)
        local chance = flips and found.off < most_flipped or nil
        if not found.why then return text, chance end
        local form = "%s; rounding to float32 alone moves a row of this model by up to %.2g"
        return form:format(text, found.why.float32), chance
    elseif together and all and all > together then
        return string.format("all values together are off by %.2g: rounding alone by at most %.2g", all, together), true
    end
end

-- The results of check(prepared), which returns a list, and the set of the numbers of those that are wrong by chance
-- unless they are in each sample. An input half-way between two numbers puts all values together off, too, where it is
-- of a token that most others attend to. That is rare: an error shows in `more_samples` more samples as well.
local more_samples = 2
function compare.settled(prepared, check)
    local results, unsettled = check(prepared)
    for _ = 1, more_samples do
        if not next(unsettled) then break end
        prepared = prepared.other()
        local others, still_off = check(prepared)
        for i in pairs(unsettled) do
            results[i].ok, results[i].message, unsettled[i] = others[i].ok, others[i].message, still_off[i]
        end
    end
    return results
end

-- What the reference answers for codes and scores that were seen. evaluate(activations, cache): lists of answers with
-- them, activations and the cache of the plan's types if absent; off(answers): how far what was computed is from them;
-- rounded, narrow: whether products round their inputs, and the cache its values; m: what has the width of rows, d;
-- d_ffn: widths of inputs of lookup FFNs, by run of blocks. Returns { answers, off, tolerance, why (as of
-- moved_tolerance, nil: not needed), activations_err }.
function compare.beside_seen(evaluate, off, tolerance, rounded, narrow, m, d_ffn)
    local answers = evaluate()
    local found = { answers = answers, off = off(answers), tolerance = tolerance }
    for _, answer in ipairs(answers) do
        found.off = math.max(found.off, answer.looked.off)
    end
    if rounded then
        found.tolerance, found.activations_err =
            compare.rounded_tolerance(tolerance, answers, evaluate "f32", m.d, d_ffn)
    elseif not (found.off <= tolerance) then
        local moved = { float32 = evaluate "single", cache = narrow and evaluate(nil, "f32") or nil }
        found.tolerance, found.why = compare.moved_tolerance(tolerance, moved, answers, m, d_ffn)
    end
    return found
end

return compare
