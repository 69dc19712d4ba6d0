-- Runs compiled integer kernels, and compares them with their reference (harness/verify/lua_integer.c).
--
-- A job = { library, bind, ffn, project, blob, d, d_out, slots, scratch_bytes, weights_struct_bytes, x_unit, y_unit },
-- for the reference also what the module `integer_reference` wants.
local compiled = require "compiled"
local isolated = require "harness.base.isolated"
local npy = require "npy"
local reference = require "integer_reference"

local integer = { vectors = reference.vectors }

local special = 8 -- tokens out of the ordinary, before the others

local function opened(job)
    local model, message = compiled.open(job)
    return model or error(message, 0)
end

-- Rows, scores and y of the tokens x: rows and scores token by token, y in one call, each with memory of exactly its
-- size; the first tokens alone must give the same.
local function called(job, x)
    local model, rows, scores = opened(job), {}, {}
    local d, tokens = 2 * job.d, #x // (2 * job.d)
    local row, score = compiled.memory(4 * job.slots), compiled.memory(4 * job.slots)
    local scratch = compiled.memory(job.scratch_bytes)
    for token = 1, tokens do
        model:call(job.project, model, x:sub((token - 1) * d + 1, token * d), row, score, scratch)
        rows[token], scores[token] = row:read(4 * job.slots), score:read(4 * job.slots)
    end
    local function guarded(values, place)
        local count = #values // d
        local from <close> = compiled.memory(#values, place, 2)
        local to <close> = compiled.memory(4 * count * job.d_out, "end", 4)
        local work <close> = compiled.memory(job.scratch_bytes, "end")
        from:write(values)
        from:read_only()
        model:call(job.ffn, model, from, to, count, work)
        if to:intact() and work:intact() then return to:read() end
        error(string.format("%s: a call of %d tokens wrote beyond its memory", job.ffn, count), 0)
    end
    guarded("", "end")
    local y, bytes = guarded(x, "start"), 4 * job.d_out
    for token = 0, special - 1 do
        local alone = guarded(x:sub(token * d + 1, (token + 1) * d), token % 2 == 1 and "unaligned" or "end")
        if alone ~= y:sub(token * bytes + 1, (token + 1) * bytes) then
            error(string.format("%s: token %d alone differs from it among others", job.ffn, token), 0)
        end
    end
    return table.concat(rows) .. table.concat(scores) .. y
end

-- What the module `integer_reference` says of the kernels.
function integer.check(job)
    local x = reference.tokens(job.d, job.model.norm_eps ~= nil, job.seed, job.tokens)
    return reference.compare(job, isolated(job.library, function() return called(job, x) end))
end

-- Applies the kernels to the floats of the .npy file `input` -> tokens | nil, message
function integer.run(job, input, output)
    local x, message = npy.read(input, job.d)
    if not x then return nil, message end
    local model, tokens = opened(job), #x // (4 * job.d)
    local y, scratch = compiled.memory(4 * tokens * job.d_out), compiled.memory(job.scratch_bytes)
    model:call(job.ffn, model, reference.units(x, job.x_unit), y, tokens, scratch)
    local good, wrong = npy.write(output, job.d_out, reference.values(y:read(4 * tokens * job.d_out), job.y_unit))
    return good and tokens, wrong
end

return integer
