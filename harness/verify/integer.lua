-- Runs compiled integer kernels, and compares them with their reference (harness/verify/lua_integer_reference.c).
--
-- A job = { library, bind, ffn, project, blob, d, d_out, slots, scratch_bytes, weights_struct_bytes, x_unit, y_unit },
-- for the reference also what the module `integer_reference` wants.
local compiled = require "compiled"
local guarded = require "harness.base.guarded"
local host = require "host"
local isolated = require "harness.base.isolated"
local npy = require "npy"
local process = require "process"
local reference = require "integer_reference"
local setting = require "harness.measure.setting"

local integer = {}

local function tokens_of(job) return reference.tokens(job.d, job.model.norm_eps ~= nil, job.seed, job.tokens) end

-- The tokens of a job, what the reference makes of them, and how many special ones there are in front.
function integer.answers(job) return tokens_of(job), assert(reference.answers(job)), reference.special end

local differs = "%s: token %d alone differs from it among others"

-- Rows, scores and y of the tokens x: rows and scores token by token, y in one call; the first tokens alone must give
-- the same.
local function called(job, x)
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
            error(differs:format(job.ffn, token), 0)
        end
    end
    return table.concat(rows) .. table.concat(scores) .. y
end

-- The same on a device, where all is called in one program: what is computed, or nil and why not.
local function called_there(job, x, device)
    local own = setting.complete { model = job.library, seed = 1, repetitions = 1, checks = {} }
    local tokens, file = #x // (2 * job.d), process.temporary_directory() .. "/x"
    local words = tokens * job.slots
    assert(host.write_file(file, x))
    own.libraries[1] = setting.library("kernels", job)
    own.memory = {
        { name = "x", bytes = #x, fill = "linked", file = file },
        { name = "codes", bytes = 8 * words },
        { name = "y", bytes = 4 * tokens * job.d_out },
        { name = "scratch", bytes = job.scratch_bytes },
    }
    local function check(y, rows, width)
        own.checks[#own.checks + 1] = { name = y, y = y, tokens = rows, width = width, steps = {} }
        return function(symbol, ...)
            local step = { library = "kernels", ["function"] = symbol, arguments = { "weights", ... } }
            table.insert(own.checks[#own.checks].steps, step)
        end
    end
    local function at(memory, bytes) return { memory = memory, at = bytes } end
    local call = check("codes", 2 * tokens, job.slots)
    for token = 0, tokens - 1 do
        local row = 4 * job.slots * token
        call(job.project, at("x", 2 * job.d * token), at("codes", row), at("codes", 4 * words + row), "scratch")
    end
    call = check("y", tokens, job.d_out)
    call(job.ffn, "x", "y", tokens, "scratch")
    call = check("y", reference.special, job.d_out)
    for token = 0, reference.special - 1 do
        call(job.ffn, at("x", 2 * job.d * token), at("y", 4 * job.d_out * token), 1, "scratch")
    end
    for _, found in ipairs(device:check(own)) do
        if found.failure then return nil, found.failure end
    end
    local outputs, why = device:outputs(own, { 1, 2, 3 })
    if not outputs then return nil, why end
    local codes, y, alone = table.unpack(outputs)
    for token = 0, reference.special - 1 do
        local first, last = 4 * job.d_out * token + 1, 4 * job.d_out * (token + 1)
        if y:sub(first, last) ~= alone:sub(first, last) then return nil, differs:format(job.ffn, token) end
    end
    return codes .. y
end

-- What comes of the kernels beside their reference: { ok, checks = { { name, ok, detail } }, tokens, codes, code_flips,
-- rel_err, rel_err_flips, max_abs_err } as the module `integer_reference` says it. They are called on `device`, nil:
-- here.
function integer.check(job, device)
    local tokens = reference.special + job.tokens
    local found = { ok = true, checks = {}, tokens = tokens, codes = job.tokens * job.slots, code_flips = 0 }
    found.rel_err, found.rel_err_flips, found.max_abs_err = 0.0, 0.0, 0.0
    local function add(name, ok, detail)
        table.insert(found.checks, { name = name, ok = ok, detail = detail })
        found.ok = found.ok and ok
    end
    local results, why
    if device then
        results, why = called_there(job, tokens_of(job), device)
    else
        results, why = isolated(job.library, function() return called(job, tokens_of(job)) end)
    end
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
