-- What a C function of a whole model's training calls the values, gradients and weights that it reads and writes.
local expression = require "gen.isa.expression"

local sum, times = expression.sum, expression.times

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
-- their first use, { type, name, at; step: of rows }. of_part: rows are those of a part; those of all parts are c.all
-- and c.all_gradient. takes_output: whether the function reads the gradient of the tape's last value.
--   rows, gradient         rows of a value, and of a gradient
--   gradient_of_view       those of the columns of a view
--   attention, lookup      the fields of what these operations take: { name, value }
return function(tape, of_part)
    local c, declared, gradients = { variables = {}, takes_output = false }, {}, {}
    for _, gradient in ipairs(tape.back.gradients) do
        gradients[gradient.name] = gradient
    end
    gradients.d_out, gradients.d_in = tape.last, tape.first
    local of_layer = tape.of_layer(tape.place("layer", tape.stride))
    local function declare(type, name, at, step)
        if not declared[name] then
            declared[name] = true
            table.insert(c.variables, { type = type, name = name, at = at, step = step })
        end
        return name
    end
    local function declare_rows(name, at, step) return declare("const " .. tape.rows_type .. " ", name, at, step) end
    -- Rows of all tokens, whose place is `at`, or those of the part.
    local function rows(name, at, step, own)
        if own then return declare_rows(name, sum(at, times("r->first", step)), step) end
        return declare_rows((of_part and "all_" or "") .. name, at, step)
    end
    local function view(name, of, own_name)
        return declare_rows(own_name, sum(name .. ".at", tape.place("view", of.at)), name .. ".step")
    end
    local function value(of, own)
        if of.of then return view(value(of.of, own), of, of.name) end
        local at = sum(tape.place("kept", tape.at), tape.of_layer(tape.place("kept_layer", tape.region)))
        declare("float *", "kept", sum("r->memory", "r->kept_at", times(at, "r->all")))
        return rows(of.name, sum("kept", times(tape.place("value", of.at), "r->all")), tape.pitch(of), own)
    end
    local function gradient(name, own)
        local of = gradients[name]
        c.takes_output = c.takes_output or name == "d_out"
        if name == "d_out" or name == "d_in" then
            local place = times(own and "r->first" or 0, tape.pitch(of))
            return declare_rows((own and "own_" or "all_") .. name, sum(name, place), tape.pitch(of))
        end
        local at = sum("r->memory", "r->arena_at", times(tape.place("gradient", of.at), "r->all"))
        return rows(name, at, tape.pitch(of), own)
    end
    function c.rows(of) return value(of, of_part) end
    function c.all(of) return value(of, false) end
    function c.gradient(name) return gradient(name, of_part) end
    function c.all_gradient(name) return gradient(name, false) end
    function c.gradient_of_view(name, of)
        return of.of and view(c.gradient(name), of, "d_" .. of.name) or c.gradient(name)
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
        return "&" .. declare_rows("of_" .. word, sum("r->memory", "r->" .. one.place .. "_at"), one.count)
    end
    add_operations(c, tape, declare)
    return c
end
