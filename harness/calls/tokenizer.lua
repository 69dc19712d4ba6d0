-- Calls of an emitted tokenizer, alone or in a whole model.
--
-- `model`: of the module `compiled`. `job`: { tokenize, text_of (names of functions), scratch_factor, scratch_more
-- (scratch for any text: bytes for each of its bytes, and beside), around (ids beside those of the text), room_refused,
-- scratch_refused (its codes) }.
local compiled = require "compiled"

local tokenizer = {}

local most_scratch = 64 << 20 -- at first

-- The ids of the text as a string of int32 | nil, message
function tokenizer.packed(model, job, from)
    local all = #from * job.scratch_factor + job.scratch_more
    local most, scratch_bytes = 3 * #from + job.around + 16, all < most_scratch and all or all // 8
    while true do
        local ids <close> = compiled.memory(4 * most)
        local scratch <close> = compiled.memory(scratch_bytes)
        local count = model:call(job.tokenize, model, from, #from, ids, most, scratch, scratch_bytes)
        if count >= 0 then return ids:read(4 * count) end
        if count == -job.room_refused and most <= 16 * #from + job.around + 16 then
            most = 8 * most
        elseif count == -job.scratch_refused and scratch_bytes < all then
            scratch_bytes = all
        else
            return nil, string.format("a text of %d bytes: refused with code %d", #from, -count)
        end
    end
end

-- Their list | nil, message
function tokenizer.ids(model, job, from)
    local ids, message = tokenizer.packed(model, job, from)
    return ids and compiled.unpack(ids), message
end

-- What the id adds to a text | nil
function tokenizer.text_of(model, job, id)
    local bytes <close> = compiled.memory(8)
    local piece = model:call(job.text_of, model, id, bytes)
    return piece ~= 0 and compiled.bytes(piece, string.unpack("=I8", bytes:read(8))) or nil
end

return tokenizer
