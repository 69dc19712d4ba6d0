-- Runs compiled integer kernels, and compares them with their reference (harness/verify/lua_integer_reference.c).
--
-- A job = { library, bind, ffn, project, blob, d, d_out, slots, scratch_bytes, weights_struct_bytes, x_unit, y_unit },
-- for the reference also what the module `integer_reference` wants.
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local isolated = require "harness.base.isolated"
local npy = require "npy"
local reference = require "integer_reference"

local integer = { differs = "%s: token %d alone differs from it among others" }

local function tokens_of(job) return reference.tokens(job.d, job.model.norm_eps ~= nil, job.seed, job.tokens) end

-- The tokens of a job, what the reference makes of them, and how many special ones there are in front.
function integer.answers(job) return tokens_of(job), assert(reference.answers(job)), reference.special end

-- Rows, scores and y of the tokens x: rows and scores token by token, y in one call; the first tokens alone must give
-- the same.
local function outputs_of(job, x)
    local model, rows, scores = assert(compiled.open(job)), {}, {}
    local d, tokens = 2 * job.d, #x // (2 * job.d)
    local function call(name, count, ...)
        local function results(_, fault, ...)
            if not fault then return ... end
            error(string.format("%s: a call of %d tokens wrote beyond its memory", name, count), 0)
        end
        return results(guarded(model, name, model, ...))
    end
    local scratch = { name = "scratch", bytes = job.scratch_bytes }
    local function token_at(number) return x:sub(number * d + 1, (number + 1) * d) end
    for token = 1, tokens do
        local row = { name = "row", bytes = 4 * job.slots, result = true }
        local score = { name = "score", bytes = 4 * job.slots, result = true }
        local given = { text = token_at(token - 1), alignment = 2 }
        rows[token], scores[token] = call(job.project, 1, given, row, score, scratch)
    end
    local function ffn(values, place)
        local count = #values // d
        local y = { name = "y", bytes = 4 * count * job.d_out, alignment = 4, result = true }
        return call(job.ffn, count, { text = values, place = place, alignment = 2 }, y, count, scratch)
    end
    ffn("", "end")
    local y, bytes = ffn(x, "start"), 4 * job.d_out
    for token = 0, reference.special - 1 do
        local alone = ffn(token_at(token), token % 2 == 1 and "unaligned" or "end")
        if alone ~= y:sub(token * bytes + 1, (token + 1) * bytes) then
            error(integer.differs:format(job.ffn, token), 0)
        end
    end
    return table.concat(rows) .. table.concat(scores) .. y
end

local function called_here(job, x) return isolated(job.library, function() return outputs_of(job, x) end) end

-- What comes of the kernels beside their reference: { ok, checks = { { name, ok, detail } }, tokens, codes, code_flips,
-- rel_err, rel_err_flips, max_abs_err } as the module `integer_reference` says it. called(job, x) -> what
-- kernels make of the tokens x: rows, scores and y of all, one behind the other, or nil and why not; if absent, here.
function integer.check(job, called)
    local tokens = reference.special + job.tokens
    local found = { ok = true, checks = {}, tokens = tokens, codes = job.tokens * job.slots, code_flips = 0 }
    found.rel_err, found.rel_err_flips, found.max_abs_err = 0.0, 0.0, 0.0
    local function add(name, ok, detail)
        table.insert(found.checks, { name = name, ok = ok, detail = detail })
        found.ok = found.ok and ok
    end
    local results, why = (called or called_here)(job, tokens_of(job))
    add("calls", results ~= nil, why or "one token, all of them, and none")
    if not results then return found end
    local compared = assert(reference.compare(job, results))
    for _, key in ipairs { "code_flips", "rel_err", "rel_err_flips", "max_abs_err" } do
        found[key] = compared[key]
    end
    local form = "%d of %d codes, %d scores and %d of %d outputs differ from the reference's"
    local rows, scores, values = compared.rows, compared.scores, compared.values
    add("ranges", not compared.range, compared.range or "every value fits its type")
    add(
        "integers",
        rows + scores + values == 0,
        form:format(rows, tokens * job.slots, scores, values, tokens * job.d_out)
    )
    return found
end

-- Applies the kernels to the floats of the .npy file `input` -> tokens | nil, message
function integer.run(job, input, output)
    local x, message = npy.read(input, job.d)
    if not x then return nil, message end
    local model, tokens = assert(compiled.open(job)), #x // (4 * job.d)
    local y, scratch = compiled.memory(4 * tokens * job.d_out), compiled.memory(job.scratch_bytes)
    model:call(job.ffn, model, reference.units(x, job.x_unit), y, tokens, scratch)
    local good, wrong = npy.write(output, job.d_out, reference.values(y:read(4 * tokens * job.d_out), job.y_unit))
    return good and tokens, wrong
end

return integer
