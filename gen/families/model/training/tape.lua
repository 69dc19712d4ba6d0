-- From the steps of a forward pass to those of its backward pass: both as lists of operations on named values, pure
-- data.
--
-- A value is { name, width }: a row of `width` floats for each token. What a projection of a packed tensor makes is a
-- view of another value: { name, of, at, head_step }, element i of head h at `at` + h head_step + i of a row.
--
-- Forward operations:
--   norm      from, to, statistics (two floats a token), kind, eps, width, gain, offset
--   product   from, to, map
--   embed     to, and where its tensors are
--   attend    q, k, v, to, softmax (largest score and 1 / total, for each head; nil: attention by tables), shape and
--             scales (tensors) or nil
--   lookup    from, to, parts
--   activate  gate (GLU) or nil, hidden, to
--   add       a, b, to
--   columns   from (a view), to: its columns alone
--   dropout   value, site
-- Backward operations; from and to are names of gradients, `step` is the forward operation. First those of rows:
--   product   from, to, map, add: to what `to` has already
--   norm      from, to, plus: a gradient that is added, nil: none; step
--   attend    from, to_q, to_k, to_v, step
--   lookup    from, to, step
--   activate  from, to_gate, to_hidden, step
--   sum       a, b, to
--   dropout   from, to, site
--   copy      from, to
--   columns   from, to, step: to columns of `to`
-- then those that add to the gradients of parameters:
--   product   from, x, map
--   norm      from, step
--   embed     from, step
local tape = {}

-- Records operations. c.value(name, width) makes a value, c.add(operation) appends one.
function tape.new()
    local c = { values = {}, forward = {}, by_name = {} }
    function c.value(name, width)
        local unique, number = name, 1
        while c.by_name[unique] do
            number = number + 1
            unique = name .. "_" .. number
        end
        local value = { name = unique, width = width }
        c.values[#c.values + 1], c.by_name[unique] = value, value
        return value
    end
    -- A part of the rows of another value.
    function c.view(name, of, at, width, head_step)
        local value = { name = name, of = of, at = at, width = width, head_step = head_step }
        c.by_name[name] = value
        return value
    end
    function c.add(operation)
        c.forward[#c.forward + 1] = operation
        return operation.to
    end
    return c
end

-- The value that holds the floats of `value`.
local function held(value) return value.of or value end

-- What records a backward pass to the gradient of value `first` from that of `last`: rows, parameters and gradients,
-- and found, by value the gradient of one that has some: { name, owned: no other value's gradient is the same }.
local function recorder(first, last)
    local found = { [last] = { name = "d_out", owned = false } }
    local apart = {} -- names of gradients that lie apart until they are added
    local b = { rows = {}, parameters = {}, gradients = {}, found = found }
    function b.add(operation) b.rows[#b.rows + 1] = operation end
    function b.add_to_parameters(operation) b.parameters[#b.parameters + 1] = operation end

    local function made(value)
        local name = value == first and "d_in" or "d_" .. value.name
        if value ~= first then b.gradients[#b.gradients + 1] = { name = name, width = value.width } end
        return { name = name, owned = true }
    end
    -- Where more of the gradient of `value` goes: its name; what is to be added, of another one; whether it has some.
    function b.more_of(value)
        local before = found[value]
        if before and before.owned then return before.name, nil, true end
        found[value] = made(value)
        return found[value].name, before and before.name, false
    end
    -- The gradient of `value` is also that of the name.
    function b.share(value, name)
        if not found[value] then
            found[value] = { name = name, owned = false }
            return
        end
        local to, plus, some = b.more_of(value)
        b.add { op = "sum", a = some and to or plus, b = name, to = to }
    end
    -- Where the gradient of a view of `value` goes, whose other columns attention writes.
    function b.columns_of(value)
        found[value] = made(value)
        found[value].in_columns = true
        return found[value].name
    end
    -- Where an operation writes the gradient of `value` that cannot add to another one, and what is to be done then.
    function b.written(value)
        if not found[value] or found[value].in_columns then
            found[value] = found[value] or made(value)
            return found[value].name, function() end
        end
        local name = "d_" .. value.name .. "_too" -- free again once it is added
        if not apart[name] then
            apart[name] = true
            b.gradients[#b.gradients + 1] = { name = name, width = value.width }
        end
        return name, function() b.share(value, name) end
    end
    return b
end

-- What the gradient `from` of the output of operation `step` gives those of its inputs, by its op.
local back = {}

function back.add(b, step, from)
    b.share(step.a, from)
    b.share(step.b, from)
end

function back.columns(b, step, from)
    b.add { op = "columns", from = from, to = b.columns_of(step.from.of), step = step }
end

function back.dropout(b, step, from)
    local value, to = step.value, from
    if not b.found[value].owned then
        b.found[value] = nil
        to = b.more_of(value)
    end
    b.add { op = "dropout", from = from, to = to, site = step.site, width = value.width }
end

function back.product(b, step, from)
    b.add_to_parameters { op = "product", from = from, x = step.from, map = step.map }
    local to, plus, some = b.more_of(step.from)
    if plus then b.add { op = "copy", from = plus, to = to, width = step.from.width } end
    b.add { op = "product", from = from, to = to, map = step.map, add = some or plus ~= nil }
end

function back.norm(b, step, from)
    b.add_to_parameters { op = "norm", from = from, step = step }
    local to, plus, some = b.more_of(step.from)
    b.add { op = "norm", from = from, to = to, plus = some and to or plus, step = step }
end

function back.attend(b, step, from)
    local operation, to, after = { op = "attend", from = from, step = step }, {}, {}
    for _, word in ipairs { "q", "k", "v" } do
        local of = held(step[word])
        if not to[of] then
            to[of], after[#after + 1] = b.written(of)
        end
        operation["to_" .. word] = to[of]
    end
    b.add(operation)
    for _, run in ipairs(after) do
        run()
    end
    for _, word in ipairs { "shape", "scales" } do
        if step[word] then b.add_to_parameters { op = word, step = step } end
    end
end

function back.lookup(b, step, from)
    b.add_to_parameters { op = "lookup", step = step }
    local to, after = b.written(step.from)
    b.add { op = "lookup", from = from, to = to, step = step }
    after()
end

function back.activate(b, step, from)
    local operation = { op = "activate", from = from, step = step, to_hidden = b.more_of(step.hidden) }
    if step.gate then operation.to_gate = b.more_of(step.gate) end
    b.add(operation)
end

function back.embed(b, step, from) b.add_to_parameters { op = "embed", from = from, step = step } end

-- The backward pass of the operations of tape `c` from the gradient of value `last` to that of `first`, nil: of no
-- value: rows, the operations on gradients of values; parameters, those that then add to gradients of parameters;
-- gradients, a list of { name, width }. The gradient of `last` is called "d_out", that of `first` "d_in".
function tape.backward(c, first, last)
    local b = recorder(first, last)
    for i = #c.forward, 1, -1 do
        local step = c.forward[i]
        local value = held(step.op == "dropout" and step.value or step.to)
        assert(b.found[value], "nothing depends on " .. value.name)
        back[step.op](b, step, b.found[value].name)
    end
    local start = first and b.found[first].name or "d_in"
    if start ~= "d_in" then b.add { op = "copy", from = start, to = "d_in", width = first.width } end
    return { rows = b.rows, parameters = b.parameters, gradients = b.gradients }
end

return tape
