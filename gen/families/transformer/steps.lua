-- A block as a list of steps on named buffers; projections that were eliminated have no step.
local steps = {}

-- The steps of a block on the tokens of a chunk, in two parts: what must be done for all tokens that are attended to,
-- and the rest. Buffers are named; "in" is the block's input, "rows" the same at distances that suit the cache.
-- `width`: elements of a token that a step writes, where no linear map says so.
function steps.of(shape, has, parts)
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
    if not shape.delivered then
        prepare(before)
        k, v, k_at, v_at = product(before, "K", source, "k"), product(before, "V", source, "v"), 0, 0
    end
    -- Into a ring tokens enter a few at a time, just before they attend: more would push out what the first of them
    -- still sees.
    if not shape.ring then add(before, { op = "append", k = k, k_at = k_at, v = v, v_at = v_at }) end
    if not shape.delivered then
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
    if shape.lookup then
        add(after, { op = "lookup", parts = parts, from = inner, to = out, width = shape.made })
    else
        if shape.gated then product(after, "G", inner, "gate") end
        product(after, "M", inner, "hidden")
        local activate = { op = "activate", gate = shape.gated and "gate" or false, to = "hidden" }
        add(after, activate)
        -- A token's hidden values are rounded while they are in the nearest cache.
        if shape.rounded then
            activate.rounded, activate.inputs, rounded.hidden = "hidden_rounded", shape.f, true
        end
        product(after, "O", "hidden", out)
    end
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

return steps
