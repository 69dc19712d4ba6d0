-- A block as a list of steps on named buffers; projections that were eliminated have no step.
local steps = {}

-- The steps of a block on the tokens of a chunk, in two parts: what must be done for all tokens that are attended to,
-- and the rest. Buffers are named; "in" is the block's input, "rows" the same at distances that suit the cache.
-- `width`: elements of a token that a step writes, where no linear map says so. Queries of what attends to all tokens
-- are made with keys and values, of the same normed and rounded inputs, and kept: `of_call`, of all tokens of a call.
-- one_by_one: memory is short, and they are not. Where only means over tokens are asked for, shape.sums, a block ends
-- before the last product, which commutes with the mean.
function steps.of(shape, has, parts, one_by_one)
    local before, after = {}, {}
    local rounded = {} -- the buffers that are rounded as they are
    local function add(list, step)
        list[#list + 1] = step
        if step.to then rounded[step.to] = nil end
    end
    -- Products take their inputs rounded, if they do, from a buffer beside those. `letter`: for what map.
    local function round(list, letter, from)
        local to = from .. "_rounded"
        if not rounded[from] then
            add(list, { op = "round", letter = letter, from = from, rounded = to, inputs = has[letter].inputs })
            rounded[from] = true
        end
        return to
    end
    local function product(list, letter, from, to)
        if not has[letter] then return from end
        local inputs = shape.rounded and round(list, letter, from) or from
        add(list, { op = "product", map = has[letter], from = inputs, source = from, to = to })
        return to
    end
    local pre, post = shape.norm and shape.norm.place == "pre", shape.norm and shape.norm.place == "post"
    local source = pre and "normed" or "rows"
    local function prepare(list)
        add(
            list,
            pre and { op = "norm", which = "first", from = "in", to = source, width = shape.input }
                or { op = "copy", from = "in", to = source, width = shape.input }
        )
    end
    local q, k, v, k_at, v_at = "in", "in", "in", shape.q, shape.q + shape.e
    -- Other steps than Q may read what is prepared.
    local keeps = not shape.causal and not shape.given and not shape.parallel and has.Q ~= nil and not one_by_one
    if not shape.given then
        prepare(before)
        k, v, k_at, v_at = product(before, "K", source, "k"), product(before, "V", source, "v"), 0, 0
    end
    if keeps then
        q = product(before, "Q", source, "q")
        before[#before].of_call = true
    end
    -- Into a ring tokens enter a few at a time, just before they attend: more would push out what the first of them
    -- still sees.
    if not shape.ring then add(before, { op = "append", k = k, k_at = k_at, v = v, v_at = v_at }) end
    if not shape.given and not keeps then
        if not shape.causal then prepare(after) end
        q = product(after, "Q", source, "q")
    end
    add(after, {
        op = "attend",
        from = q,
        to = "mixed",
        width = shape.q,
        k = shape.ring and k,
        k_at = k_at,
        v = shape.ring and v,
        v_at = v_at,
    })
    local mixed = product(after, "P", "mixed", "projected")
    local inner = shape.parallel and source or mixed
    if not shape.parallel and shape.skip then
        add(after, { op = "add", a = product(after, "S", "in", "skipped"), b = mixed, to = "stream", width = shape.d })
        inner = "stream"
    end
    local stream = inner
    if post and not shape.parallel then
        add(after, { op = "norm", which = "first", from = stream, to = "normed", width = shape.d })
        inner, stream = "normed", "normed"
    elseif pre then
        -- A buffer has rows of one width.
        inner = shape.input == shape.d and "normed" or "inner"
        add(
            after,
            { op = "norm", which = "second", from = shape.parallel and "in" or stream, to = inner, width = shape.d }
        )
    end
    local out = "out"
    if shape.lookup then add(after, { op = "lookup", parts = parts, from = inner, to = out, width = shape.made }) end
    if shape.f then
        if shape.gated then product(after, "G", inner, "gate") end
        product(after, "M", inner, "hidden")
        local activate = { op = "activate", gate = shape.gated and "gate" or false, to = "hidden" }
        if shape.sums then
            if shape.gated then add(after, activate) end
            add(after, { op = "sum", a = stream, from = "hidden", activates = not shape.gated })
            return before, after
        end
        add(after, activate)
        -- A token's hidden values are rounded while they are in the nearest cache.
        if shape.rounded then
            activate.rounded, activate.inputs, rounded.hidden = "hidden_rounded", shape.f, true
        end
        product(after, "O", "hidden", shape.lookup and "beside" or out)
    end
    if shape.lookup and shape.f then add(after, { op = "add", a = out, b = "beside", to = out, width = shape.d }) end
    if shape.parallel then
        add(after, { op = "add", a = mixed, b = out, to = "out", width = shape.d })
        if shape.skip then add(after, { op = "add", a = "in", b = out, to = "out", width = shape.d }) end
    elseif shape.skip then
        add(after, { op = "add", a = stream, b = out, to = "out", width = shape.d })
    end
    if post then add(after, { op = "norm", which = "second", from = "out", to = "out", width = shape.d }) end
    add(after, { op = "output", from = out })
    return before, after
end

-- The steps `after` of blocks of `shape` where their last sum goes to the output at once.
function steps.joined(shape, after)
    local sum, output = after[#after - 1], after[#after]
    if shape.delivered or not sum or sum.op ~= "add" or output.from ~= sum.to then return after end
    local joined = table.move(after, 1, #after - 2, 1, {})
    joined[#joined + 1] = { op = "output", a = sum.a, b = sum.b }
    return joined
end

return steps
