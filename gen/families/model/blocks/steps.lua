-- A block as a list of steps on named buffers; projections that were eliminated have no step.
local steps = {}

-- The lists `before` and `after` of steps, and what adds to them; has: linear maps by letter.
local function builder(shape, has)
    local b, rounded = { before = {}, after = {}, has = has }, {} -- the buffers that are rounded as they are
    function b.add(list, step)
        list[#list + 1] = step
        if step.to then rounded[step.to] = nil end
    end
    -- The buffer that has inputs of products rounded, if they are, beside buffer `from`. `letter`: for what map.
    local function round(list, letter, from)
        local to = from .. "_rounded"
        if not rounded[from] then
            b.add(list, { op = "round", letter = letter, from = from, rounded = to, inputs = has[letter].inputs })
            rounded[from] = true
        end
        return to
    end
    function b.product(list, letter, from, to)
        if not has[letter] then return from end
        local inputs = shape.rounded and round(list, letter, from) or from
        b.add(list, { op = "product", map = has[letter], from = inputs, source = from, to = to })
        return to
    end
    -- A token's hidden values are rounded while they are in the nearest cache.
    function b.round_hidden(activate)
        if not shape.rounded then return end
        activate.rounded, activate.inputs, rounded.hidden = "hidden_rounded", shape.f, true
    end
    return b
end

-- The name of the constant of where k or v lies, at element `at` of a block's input or of rows of tables.
function steps.constant_of(shape, at)
    return (shape.qkv and "LOOKED_" or "IN_") .. (at == shape.q and "K" or "V")
end

-- Where q or k is that lies in buffer `from` from element `at` on, whose heads may be normed: the buffer, and where.
local function norm_heads(b, shape, list, from, at, to, width)
    for number in ipairs(shape.head_norms) do
        b.add(list, {
            op = "norm_heads",
            number = number,
            letter = to == "q" and "q" or "k", -- whose gains
            from = from,
            at = at,
            constant = at > 0 and steps.constant_of(shape, at) or nil,
            to = to,
            width = width,
        })
        from, at = to, 0
    end
    return from, at
end

-- From the block's input to what attention mixes, in "mixed"; source: what Q, K and V read, or `parts`, LookupFFNs
-- whose rows are q, k, v and their output. keeps: queries, or these rows, of all tokens of a call are kept.
local function add_attention(b, shape, parts, source, keeps)
    local q, k, v, k_at, v_at = "in", "in", "in", shape.q, shape.q + shape.e
    local function prepare(list)
        b.add(
            list,
            source == "normed" and { op = "norm", number = 1, from = "in", to = source, width = shape.input }
                or { op = "copy", from = "in", to = source, width = shape.input }
        )
    end
    local function look_up(list)
        prepare(list)
        b.add(list, { op = "lookup", parts = parts, from = source, to = "looked", width = shape.row, of_call = keeps })
    end
    if shape.qkv then
        look_up(b.before)
        q, k, v = "looked", "looked", "looked"
    elseif not shape.given then
        prepare(b.before)
        k, v = b.product(b.before, "K", source, "k"), not shape.from_keys and b.product(b.before, "V", source, "v")
        k_at, v_at = 0, 0
    end
    k, k_at = norm_heads(b, shape, b.before, k, k_at, "k", shape.e)
    if keeps and not shape.qkv then
        q = b.product(b.before, "Q", source, "q")
        b.before[#b.before].of_call = true
        norm_heads(b, shape, b.before, q, 0, q, shape.q)
    end
    -- Into a ring tokens enter a few at a time, just before they attend: more would push out what the first of them
    -- still sees.
    if not shape.ring then b.add(b.before, { op = "append", k = k, k_at = k_at, v = v, v_at = v_at }) end
    if shape.qkv then
        if not shape.causal and not keeps then look_up(b.after) end
    elseif not shape.given and not keeps then
        if not shape.causal then prepare(b.after) end
        q = b.product(b.after, "Q", source, "q")
    end
    if shape.qkv or not keeps then q = norm_heads(b, shape, b.after, q, 0, "q", shape.q) end
    b.add(b.after, {
        op = "attend",
        from = q,
        to = "mixed",
        width = shape.q,
        values = shape.from_keys and b.has.V, -- the map that makes them of keys
        appends = shape.ring and not shape.lsh, -- what it attends to
        k = shape.ring and k,
        k_at = k_at,
        v = shape.ring and v,
        v_at = v_at,
        q_codes = shape.lsh and "q_codes",
        k_codes = shape.lsh and shape.ring and "k_codes",
    })
end

-- From attention's output `mixed` to the input of the FFN; behind it what the FFN's output is added to.
local function add_middle(b, shape, source, mixed)
    local place = shape.norm and shape.norm.place
    if place == "both" then
        b.add(b.after, { op = "norm", number = 3, from = mixed, to = mixed, width = shape.d })
    end
    local inner = shape.parallel and source or mixed
    if not shape.parallel and shape.skip then
        local skipped = b.product(b.after, "S", "in", "skipped")
        b.add(b.after, { op = "add", a = skipped, b = mixed, to = "stream", width = shape.d })
        inner = "stream"
    end
    local stream = inner
    if place == "post" and not shape.parallel then
        b.add(b.after, { op = "norm", number = 1, from = stream, to = "normed", width = shape.d })
        return "normed", "normed"
    elseif place and place ~= "post" and not shape.norm.shared then
        -- A buffer has rows of one width.
        inner = shape.input == shape.d and "normed" or "inner"
        local from = shape.parallel and "in" or stream
        b.add(b.after, { op = "norm", number = 2, from = from, to = inner, width = shape.d })
    end
    return inner, stream
end

-- The FFN from `inner` to "out". Returns whether the block ends there: with sums over tokens of `stream`, and of hidden
-- values.
local function add_ffn(b, shape, parts, inner, stream)
    local after, out = b.after, "out"
    if shape.lookup then
        b.add(after, { op = "lookup", parts = parts, from = inner, to = out, width = shape.made })
    end
    if not shape.f then return false end
    if shape.gated then b.product(after, "G", inner, "gate") end
    b.product(after, "M", inner, "hidden")
    local activate = { op = "activate", gate = shape.gated and "gate" or false, to = "hidden" }
    if shape.gated or not shape.sums then b.add(after, activate) end
    if shape.sums then
        b.add(after, { op = "sum", a = stream, from = "hidden", activates = not shape.gated })
        return true
    end
    b.round_hidden(activate)
    b.product(after, "O", "hidden", shape.lookup and "beside" or out)
    if shape.lookup then b.add(after, { op = "add", a = out, b = "beside", to = out, width = shape.d }) end
    return false
end

-- The steps of a block on the tokens of a chunk, in two parts: what must be done for all tokens that are attended to,
-- and the rest. Buffers are named; "in" is the block's input, "rows" the same at distances that suit the cache.
-- `width`: elements of a token that a step writes, where no linear map says so. Queries of what attends to all tokens
-- are made with keys and values, of the same normed and rounded inputs, and kept: `of_call`, of all tokens of a call;
-- so are rows of tables that hold all three, and the FFN's output from `b_at` on.
-- one_by_one: memory is short, and they are not. Where only means over tokens are asked for, shape.sums, a block ends
-- before the last product, which commutes with the mean.
function steps.of(shape, has, parts, one_by_one)
    local b, place = builder(shape, has), shape.norm and shape.norm.place
    local source = place and place ~= "post" and "normed" or "rows"
    -- Other steps than Q may read what is prepared.
    local makes_q = not shape.given and not shape.parallel and has.Q ~= nil
    local keeps = not shape.causal and (makes_q or shape.qkv) and not one_by_one
    add_attention(b, shape, parts, source, keeps)
    local mixed, stream = b.product(b.after, "P", "mixed", "projected"), "in"
    local function add(first, second, b_at)
        b.add(b.after, { op = "add", a = first, b = second, b_at = b_at, to = "out", width = shape.d })
    end
    if shape.qkv then
        add(mixed, "looked", shape.output_at)
    else
        local inner, sum = add_middle(b, shape, source, mixed)
        if add_ffn(b, shape, parts, inner, sum) then return b.before, b.after end
        if place == "both" then
            b.add(b.after, { op = "norm", number = 4, from = "out", to = "out", width = shape.d })
        end
        if shape.parallel then
            add(mixed, "out")
        else
            stream = sum
        end
    end
    if shape.skip then add(stream, "out") end
    if place == "post" then
        b.add(b.after, { op = "norm", number = 2, from = "out", to = "out", width = shape.d })
    end
    b.add(b.after, { op = "output", from = "out" })
    return b.before, b.after
end

-- The steps `after` of blocks of `shape` where their last sum goes to the output at once.
function steps.joined(shape, after)
    local sum, output = after[#after - 1], after[#after]
    if shape.delivered or not sum or sum.op ~= "add" or output.from ~= sum.to then return after end
    local joined = table.move(after, 1, #after - 2, 1, {})
    joined[#joined + 1] = { op = "output", a = sum.a, b = sum.b, b_at = sum.b_at }
    return joined
end

-- Lets an activation among the steps `list` that rounds know the product right before it, `of`, of inputs in `words`
-- that fill a tile of a matrix engine, and that product that its outputs are `activated`: tiles do both at once. Of a
-- GLU also the product of its gate before that, `of_gate`.
function steps.join_activations(shape, list)
    for i, step in ipairs(list) do
        local product = list[i - 1]
        if step.op == "activate" and step.rounded and product and product.op == "product" and product.to == step.to then
            local words = (product.map.inputs + shape.rounded.rows - 1) // shape.rounded.rows
            if words >= 16 then
                step.of, product.activated, product.words = product, true, words
                if step.gate then
                    step.of_gate = list[i - 2]
                    step.of_gate.activated = true
                end
            end
        end
    end
end

return steps
