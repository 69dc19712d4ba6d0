-- What a C function of a whole model's training calls the values, gradients and weights that it reads and writes.
local expression = require "gen.isa.expression"

local sum, times = expression.sum, expression.times

-- The names in a function that runs operations of `tape`: pointers, which the list `pointers` has in the order of their
-- first use. of_part: the function is for the rows of a part; those of all parts are c.all and c.all_gradient. c.to has
-- the same for what is written. takes_output: whether the function reads the gradient of the tape's last value.
--   rows, gradient_rows    where they are, and how many floats apart
--   sequence, gradient_at  where those of the sequence that begins at row `at` are
--   gradient_of_view       where the gradient has the columns of a view
return function(tape, of_part)
    local scoped, declared, gradients = { pointers = {}, takes_output = false }, {}, {}
    for _, gradient in ipairs(tape.back.gradients) do
        gradients[gradient.name] = gradient
    end
    gradients.d_out, gradients.d_in = tape.last, tape.first
    local of_layer = tape.layers and tape.of_layer(tape.place("layer", tape.stride)) or 0
    local function declare(name, written, ...)
        if not declared[name] then
            declared[name] = { type = "const float", name = name, at = sum(...) }
            table.insert(scoped.pointers, declared[name])
        end
        if written then declared[name].type = "float" end
        return name
    end
    local function pointer(base, written, name, of, own)
        local place = times(tape.place(base == "kept" and "value" or "gradient", of.at), "r->all")
        if own then return declare(name, written, base, place, times("r->first", tape.pitch(of))) end
        return declare((of_part and "all_" or "") .. name, written, base, place)
    end
    local function value(of, written, own)
        local held = of.of or of
        local at = sum(tape.place("kept", tape.at), tape.of_layer(tape.place("kept_layer", tape.region)))
        declare("kept", written, "r->memory", "r->kept_at", times(at, "r->all"))
        return sum(pointer("kept", written, held.name, held, own), of.of and tape.place("view", of.at) or 0)
    end
    local function gradient(name, written, own)
        if name ~= "d_out" and name ~= "d_in" then
            return pointer("r->memory + r->arena_at", written, name, gradients[name], own)
        elseif not own then
            scoped.takes_output = scoped.takes_output or name == "d_out"
            return name
        end
        return declare("own_" .. name, written, name, times("r->first", tape.pitch(gradients[name])))
    end
    local function add_access(c, written)
        function c.value(of) return value(of, written, of_part) end
        function c.all(of) return value(of, written, false) end
        function c.pitch(of) return tape.pitch(of.of or of) end
        function c.rows(of) return c.value(of) .. ", " .. c.pitch(of) end
        function c.sequence(of) return sum(c.value(of), times("at", c.pitch(of))) end
        function c.gradient(name) return gradient(name, written, of_part) end
        function c.all_gradient(name) return gradient(name, written, false) end
        function c.gradient_pitch(name) return tape.pitch(gradients[name]) end
        function c.gradient_rows(name) return c.gradient(name) .. ", " .. c.gradient_pitch(name) end
        function c.gradient_of_view(name, of)
            return sum(c.gradient(name), of and of.of and tape.place("view", of.at) or 0)
        end
        function c.gradient_at(name, of)
            return sum(c.gradient_of_view(name, of), times("at", c.gradient_pitch(name)))
        end
        return c
    end
    local c = add_access(scoped, false)
    c.to = add_access({}, true)
    function c.weights(place)
        return sum(declare("weights", false, "r->t->parameters", of_layer), tape.place("tensor", place))
    end
    function c.sums(place, ...)
        return sum(declare("gradients", true, "r->t->gradients", of_layer), tape.place("tensor", place), ...)
    end
    function c.site(number)
        local text = sum(number + tape.site, tape.of_layer(tape.sites))
        return math.type(text) and text or expression.cast("uint32_t", text)
    end
    return c
end
