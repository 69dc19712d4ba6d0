-- What a C function of a whole model's training calls the values, gradients and weights that it reads and writes.
--
-- Each tape has two structs of rows, `values` and `gradients`. A function declares one for the tokens of its part,
-- `own` and `own_d`, or one for those of all parts, `all` and `all_d`, and has it filled by a function of the tape.
local expression = require "gen.isa.expression"

local scope = {}

local sum = expression.sum

-- The name of a gradient in its struct.
local function field_of(name) return (name:gsub("^d_", "")) end

-- Adds to the names `c` of a function what its operations `attention` and `lookup` take: lists of fields, of structs
-- that declare(type, name) declares.
local function add_operations(c, tape, declare)
    local function fields(struct, list)
        declare(struct.type .. " ", struct.name)
        return list
    end
    function c.attention(step, o)
        local list = {}
        local function add(name, of) list[#list + 1] = { name = name, value = of } end
        for _, word in ipairs { "q", "k", "v" } do
            add(word, "&" .. c.rows(step[word]))
        end
        if not o then add("y", "&" .. c.rows(step.to)) end
        for _, word in ipairs { "softmax", "sums" } do
            if step[word] then add(word, "&" .. c.rows(step[word])) end
        end
        for _, word in ipairs { "scales", "shape" } do
            if step[word] then add(word, sum(c.weights(), tape.place("tensor", step[word]))) end
        end
        if o then
            add("dy", "&" .. c.gradient(o.from))
            for _, word in ipairs { "q", "k", "v" } do
                add("d" .. word, "&" .. c.gradient_of_view(o["to_" .. word], step[word]))
            end
        end
        return fields(tape.attention_struct, list)
    end
    function c.lookup(step, o)
        local list = { { name = "x", value = c.all(step.from) .. ".at" } }
        for _, field in ipairs(tape.lookup.fields) do
            if not field.back or o then
                list[#list + 1] = { name = field.name, value = field.cast .. c.all(step[field.name]) .. ".at" }
            end
        end
        if o then
            list[#list + 1] = { name = "dy", value = c.all_gradient(o.from) .. ".at" }
            list[#list + 1] = { name = "dx", value = c.all_gradient(o.to) .. ".at" }
        else
            list[#list + 1] = { name = "y", value = c.all(step.to) .. ".at" }
        end
        return fields(tape.lookup.struct, list)
    end
end

-- The names in a function that runs operations of `tape`: variables, which the list `variables` has in the order of
-- their first use, { type, name, value: nil, it is filled }; fills, the structs of rows among them: { kind, name,
-- first: token }. of_part: rows are those of a part; those of all parts are c.all and c.all_gradient.
--   rows, gradient         rows of a value, and of a gradient
--   gradient_of_view       those of the columns of a view
--   attention, lookup      the fields of what these operations take: { name, value }
function scope.new(tape, of_part)
    local c, declared, used = { variables = {}, fills = {} }, {}, tape.used
    local of_layer = tape.of_layer(tape.place("layer", tape.stride))
    local function declare(type, name, value)
        if not declared[name] then
            declared[name] = true
            table.insert(c.variables, { type = type, name = name, value = value })
        end
        return name
    end
    -- The rows `name` in a struct; of: they are a view of the rows `of`.
    local function field(kind, own, name, view, of)
        local struct = (own and "own" or "all") .. (kind == "gradients" and "_d" or "")
        if not declared[struct] then
            table.insert(c.fills, { kind = kind, name = struct, first = own and "r->first" or "0" })
        end
        if of then
            field(kind, own, of)
            local views = used[kind][of]
            if not views[name] then
                views[name] = true
                views[#views + 1] = view
            end
        else
            used[kind][name] = used[kind][name] or {}
        end
        return declare(string.format("%s_%s_%s ", tape.helper, tape.word, kind), struct) .. "." .. name
    end
    local function value(of, own)
        return field("values", own, of.name, of, of.of and of.of.name)
    end
    function c.rows(of) return value(of, of_part) end
    function c.all(of) return value(of, false) end
    function c.gradient(name) return field("gradients", of_part, field_of(name)) end
    function c.all_gradient(name) return field("gradients", false, field_of(name)) end
    function c.gradient_of_view(name, of)
        if not of.of then return c.gradient(name) end
        return field("gradients", of_part, of.name, of, field_of(name))
    end
    function c.weights() return declare("const float *", "weights", sum("r->t->parameters", of_layer)) end
    function c.sums() return declare("float *", "gradients", sum("r->t->gradients", of_layer)) end
    function c.site(number)
        local text = sum(number + tape.site, tape.of_layer(tape.sites))
        return math.type(text) and text or expression.cast("uint32_t", text)
    end
    -- Gradients of `word` of each sequence, and how many each has.
    function c.scalars(word)
        local one = tape.attention.scalars[word]
        local value = string.format("{ r->memory + r->%s_at, %d }", one.place, one.count)
        return "&" .. declare("const " .. tape.rows_type .. " ", "of_" .. word, value)
    end
    add_operations(c, tape, declare)
    return c
end

-- The values or gradients `list` in the order in which they lie in memory, one behind the other.
local function in_order(list)
    local sorted, at = table.move(list, 1, #list, 1, {}), 0
    table.sort(sorted, function(a, b) return a.at < b.at end)
    for _, value in ipairs(sorted) do
        assert(value.at == at, value.name)
        at = at + value.pitch
    end
    return sorted
end

-- The structs of rows that functions of `tape` use, once all of these are printed: { kind, variable, fields, names: of
-- all fields, in_memory: whether some lie behind each other there }; fields: { name, step, base: a pointer, nil: they
-- lie behind those before }, or those of the columns of another field: { name, of, at }.
function scope.structs(tape)
    local list = {}
    local function open(kind, variable)
        local struct, used = { kind = kind, variable = variable, fields = {} }, tape.used[kind]
        local function add(name, of, base)
            struct.in_memory = struct.in_memory or not base
            table.insert(struct.fields, { name = name, step = tape.pitch(of), base = base })
            for _, view in ipairs(used[name] or {}) do
                table.insert(struct.fields, { name = view.name, of = name, at = tape.place("view", view.at) })
            end
        end
        if next(used) then list[#list + 1] = struct end
        return add
    end
    local add_value = open("values", "own")
    for _, value in ipairs(in_order(tape.values)) do
        add_value(value.name, value)
    end
    local add_gradient = open("gradients", "d")
    add_gradient("out", tape.last, "r->d_out")
    for _, gradient in ipairs(in_order(tape.back.gradients)) do
        add_gradient(field_of(gradient.name), gradient)
    end
    if tape.first then add_gradient("in", tape.first, "r->d_in") end
    for _, struct in ipairs(list) do
        local names = {}
        for i, field in ipairs(struct.fields) do
            names[i] = field.name
        end
        struct.names = table.concat(names, ", ")
    end
    return list
end

return scope
