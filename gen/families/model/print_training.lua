-- What the templates of a whole model's training print: from the lists of operations to lines of C.
local blob = require "gen.plan.blob"
local lookup_print = require "gen.families.lookup.print_training"
local literal = require "gen.print.literal"

local print_training = {}

-- What operations on tape `t` call values, gradients and weights in C: variables, which the list `lines` declares. own:
-- the rows of values and gradients are those of a part, of c.all and c.all_gradient all rows.
local function variables(t, helper, own)
    local c = { lines = {} }
    local declared = {}
    local function declare(name, text)
        if not declared[name] then
            declared[name] = true
            c.lines[#c.lines + 1] = text
        end
        return name
    end
    local function pointer(name, base, place, pitch, of_part)
        local text = base .. (place > 0 and " + " .. place .. " * r->all" or "")
        if of_part then text = text .. " + r->first * " .. pitch end
        return declare(name, "float *" .. name .. " = " .. text .. ";")
    end
    local function value_of(value, of_part)
        local held = value.of or value
        declare("kept", "float *kept = r->memory + r->kept_at + " .. t.kept_text .. ";")
        local name = pointer((own and not of_part and "all_" or "") .. held.name, "kept", held.at, held.pitch, of_part)
        return value.of and value.at > 0 and name .. " + " .. value.at or name
    end
    local function gradient_of(name, of_part)
        local g = t.gradient_of[name]
        if name ~= "d_out" and name ~= "d_in" then
            return pointer(
                (own and not of_part and "all_" or "") .. name,
                "r->memory + r->arena_at",
                g.at,
                g.pitch,
                of_part
            )
        elseif not of_part then
            c.takes_output = c.takes_output or name == "d_out"
            return name
        end
        local type = name == "d_out" and "const float *" or "float *"
        return declare("own_" .. name, type .. "own_" .. name .. " = " .. name .. " + r->first * " .. g.pitch .. ";")
    end
    function c.value(value) return value_of(value, own) end
    function c.all(value) return value_of(value, false) end
    function c.gradient(name) return gradient_of(name, own) end
    function c.all_gradient(name) return gradient_of(name, false) end
    function c.pitch(value) return (value.of or value).pitch end
    local layer = t.stride_text and " + layer * " .. t.stride_text or ""
    function c.weights(place)
        return declare("weights", "const float *weights = r->t->parameters" .. layer .. ";") .. " + " .. place
    end
    function c.sums(place)
        return declare("gradients", "float *gradients = r->t->gradients" .. layer .. ";") .. " + " .. place
    end
    function c.call(name, ...) return helper .. "_" .. name .. "(" .. table.concat({ ... }, ", ") .. ");" end
    return c
end

local forward, backward, parameters = {}, {}, {}

local function site_text(t, step) return t.site_text and t.site_text .. " + " .. step.site or tostring(step.site) end

function forward.embed(c, _, step) return { c.call("embed", "r", c.value(step.to)) } end
function forward.norm(c, t, step)
    local list = { c.value(step.from), c.pitch(step.from), c.weights(step.gain), c.value(step.to), c.pitch(step.to) }
    if step.offset then table.insert(list, 4, c.weights(step.offset)) end
    list[#list + 1], list[#list + 2] = c.value(step.statistics), "r->count"
    return { c.call(t.norm_name(step), table.unpack(list)) }
end
function forward.product(c, _, step)
    local map = step.map
    local list = {
        c.call(
            "multiply",
            "r",
            0,
            map.across and 0 or 1,
            "r->count",
            map.outputs,
            map.inputs,
            c.value(step.from),
            c.pitch(step.from),
            c.weights(map.at),
            map.step,
            c.value(step.to),
            c.pitch(step.to),
            0
        ),
    }
    if map.bias then
        list[2] = c.call("add_bias", c.weights(map.bias), c.value(step.to), c.pitch(step.to), map.outputs, "r->count")
    end
    return list
end
-- What attention takes of q, k and v of each sequence, and the loop over the sequences of a part.
local function sequences(lines)
    local list = { "for (size_t s = 0; s < r->count / r->length; ++s) {", "    const size_t at = s * r->length;" }
    for _, text in ipairs(lines) do
        list[#list + 1] = "    " .. text
    end
    list[#list + 1] = "}"
    return list
end
local function at_sequence(c, value) return c.value(value) .. " + at * " .. c.pitch(value) end
local own_length = "r->t->lengths ? r->t->lengths[r->first / r->length + s] : r->length"
function forward.attend(c, t, step)
    local a = t.attention
    local name = a.word .. "_attend"
    return sequences({
        c.call(
            name,
            (a.rope and "r->t, " or "") .. at_sequence(c, step.q),
            at_sequence(c, step.k),
            at_sequence(c, step.v),
            at_sequence(c, step.to),
            at_sequence(c, step.softmax) .. (step.shape and ", " .. c.weights(step.shape) or ""),
            "r->length",
            own_length,
            "r->scratch"
        ),
    })
end
function forward.lookup(c, t, step)
    return {
        c.call(
            t.word .. "_look_up",
            t.run,
            c.all(step.from),
            c.all(step.to),
            c.all(step.z),
            c.all(step.code),
            c.all(step.score)
        ),
    }
end
function forward.activate(c, t, step)
    local name = t.activation_of[step.activation] .. (step.gate and "_gate" or "_activate")
    local list = { c.value(step.hidden), c.value(step.to), c.pitch(step.to), "r->count" }
    if step.gate then table.insert(list, 1, c.value(step.gate)) end
    return { c.call(name, table.unpack(list)) }
end
function forward.add(c, _, step)
    return { c.call("add", c.value(step.a), c.value(step.b), c.value(step.to), c.pitch(step.to), "r->count") }
end
function forward.dropout(c, t, step)
    local value = step.value
    return {
        "if (r->drops)",
        "    " .. c.call(
            "drop",
            "r->t",
            "(uint32_t) (" .. site_text(t, step) .. ")",
            "r->t->first_sequence * r->length + r->first",
            c.value(value),
            c.value(value),
            c.pitch(value),
            "r->count"
        ),
    }
end

function backward.product(c, t, step)
    local map = step.map
    return {
        c.call(
            "multiply",
            "r",
            0,
            map.across and 1 or 0,
            "r->count",
            map.inputs,
            map.outputs,
            c.gradient(step.from),
            t.gradient_of[step.from].pitch,
            c.weights(map.at),
            map.step,
            c.gradient(step.to),
            t.gradient_of[step.to].pitch,
            step.add and 1 or 0
        ),
    }
end
function backward.norm(c, t, operation)
    local step = operation.step
    return {
        c.call(
            t.norm_name(step) .. "_back",
            c.gradient(operation.from),
            t.gradient_of[operation.from].pitch,
            c.value(step.from),
            c.pitch(step.from),
            c.weights(step.gain),
            c.value(step.statistics),
            operation.plus and c.gradient(operation.plus) or "NULL",
            c.gradient(operation.to),
            t.gradient_of[operation.to].pitch,
            "r->count"
        ),
    }
end
function backward.attend(c, t, operation)
    local step, a = operation.step, t.attention
    local shapes = "r->memory + r->shapes_at + (r->first / r->length + s) * " .. 3 * a.heads
    local function of(name, value)
        local place = value.of and value.at or 0
        return c.gradient(name) .. (place > 0 and " + " .. place or "") .. " + at * " .. t.gradient_of[name].pitch
    end
    return sequences({
        c.call(
            a.word .. "_attend_back",
            (a.rope and "r->t, " or "") .. at_sequence(c, step.q),
            at_sequence(c, step.k),
            at_sequence(c, step.v),
            c.gradient(operation.from) .. " + at * " .. t.gradient_of[operation.from].pitch,
            at_sequence(c, step.softmax) .. (step.shape and ", " .. c.weights(step.shape) .. ", " .. shapes or ""),
            of(operation.to_q, step.q),
            of(operation.to_k, step.k),
            of(operation.to_v, step.v),
            "r->length",
            own_length,
            "r->scratch"
        ),
    })
end
function backward.activate(c, t, operation)
    local step = operation.step
    local name = t.activation_of[step.activation] .. (step.gate and "_gate_back" or "_activate_back")
    local list = { c.gradient(operation.from) }
    if step.gate then list[2] = c.value(step.gate) end
    list[#list + 1] = c.value(step.hidden)
    if step.gate then list[#list + 1] = c.gradient(operation.to_gate) end
    list[#list + 1] = c.gradient(operation.to_hidden)
    list[#list + 1], list[#list + 2] = c.pitch(step.hidden), "r->count"
    return { c.call(name, table.unpack(list)) }
end
function backward.lookup(c, t, operation)
    local step = operation.step
    return {
        c.call(
            t.word .. "_look_back",
            t.run,
            c.all(step.from),
            c.all_gradient(operation.from),
            c.all(step.z),
            c.all(step.code),
            c.all(step.score),
            c.all(step.slope),
            c.all_gradient(operation.to)
        ),
    }
end
function backward.sum(c, t, operation)
    return {
        c.call(
            "add",
            c.gradient(operation.a),
            c.gradient(operation.b),
            c.gradient(operation.to),
            t.gradient_of[operation.to].pitch,
            "r->count"
        ),
    }
end
function backward.copy(c, t, operation)
    return {
        c.call(
            "copy",
            c.gradient(operation.from),
            c.gradient(operation.to),
            t.gradient_of[operation.to].pitch,
            "r->count"
        ),
    }
end
function backward.dropout(c, t, operation)
    local from, to = c.gradient(operation.from), c.gradient(operation.to)
    local list = {
        "if (r->drops)",
        "    " .. c.call(
            "drop",
            "r->t",
            "(uint32_t) (" .. site_text(t, operation) .. ")",
            "r->t->first_sequence * r->length + r->first",
            from,
            to,
            t.gradient_of[operation.to].pitch,
            "r->count"
        ),
    }
    if operation.from ~= operation.to then
        list[3] = "else"
        list[4] = "    " .. c.call("copy", from, to, t.gradient_of[operation.to].pitch, "r->count")
    end
    return list
end

-- The share of a part in `count` rows or columns, as variables of C.
local function share(helper, count, lines)
    local list = {
        "{",
        "    const size_t first = " .. helper .. "_from(r->t, " .. count .. ", r->t->part);",
        "    const size_t end = " .. helper .. "_from(r->t, " .. count .. ", r->t->part + 1);",
    }
    for _, text in ipairs(lines) do
        list[#list + 1] = "    " .. text
    end
    list[#list + 1] = "}"
    return list
end
local all_rows = "r->sequences * r->length"

function parameters.product(c, t, operation)
    local map, pitch = operation.map, t.gradient_of[operation.from].pitch
    local d, x = c.gradient(operation.from), c.value(operation.x)
    local list
    local function part(a, a_step, b, b_step, columns)
        return c.call(
            "multiply",
            "r",
            1,
            0,
            "end - first",
            columns,
            all_rows,
            a .. " + first",
            a_step,
            b,
            b_step,
            c.sums(map.at) .. " + first * " .. map.step,
            map.step,
            1
        )
    end
    if map.across then
        list = share(t.helper, map.inputs, { part(x, c.pitch(operation.x), d, pitch, map.outputs) })
    else
        list = share(t.helper, map.outputs, { part(d, pitch, x, c.pitch(operation.x), map.inputs) })
    end
    if map.bias then
        local sums = share(
            t.helper,
            map.outputs,
            { c.call("column_sums", d, pitch, c.sums(map.bias), "first", "end", all_rows) }
        )
        table.move(sums, 1, #sums, #list + 1, list)
    end
    return list
end
function parameters.shape(c, t, operation)
    return {
        "if (r->t->part == 0)",
        "    " .. c.call(
            "column_sums",
            "r->memory + r->shapes_at",
            3 * t.attention.heads,
            c.sums(operation.step.shape),
            0,
            3 * t.attention.heads,
            "r->sequences"
        ),
    }
end
function parameters.lookup(c, t, operation)
    local tensors = operation.step.tensors
    return {
        "if (r->t->part == 0)",
        "    " .. c.call(
            t.word .. "_look_sums",
            "r",
            c.sums(tensors.projection.at),
            c.sums(tensors.projection_bias.at),
            c.sums(tensors.bias.at)
        ),
    }
end
function parameters.norm(c, t, operation)
    local step = operation.step
    return share(t.helper, step.width, {
        c.call(
            "norm_sums",
            c.gradient(operation.from),
            t.gradient_of[operation.from].pitch,
            c.value(step.from),
            c.pitch(step.from),
            c.value(step.statistics),
            c.sums(step.gain),
            step.offset and c.sums(step.offset) or "NULL",
            "first",
            "end",
            all_rows
        ),
    })
end
function parameters.embed(c, t, operation)
    return share(
        t.helper,
        operation.step.to.width,
        { c.call("embed_back", "r", c.gradient(operation.from), "first", "end") }
    )
end

-- Lines of a list of operations, and of the variables that they use.
local function printed(t, helper, kinds, operations, row, c)
    c = c or variables(t, helper, row)
    local lines = {}
    for _, operation in ipairs(operations) do
        for _, line in ipairs(kinds[operation.op](c, t, operation)) do
            lines[#lines + 1] = line
        end
    end
    return lines, c.lines, c.takes_output or false
end

-- What the templates print of a tape: `of` says what it is called and where it lies.
local function tape_values(helper, tape, of, activation_of, norm_name)
    local t = {
        kept_text = of.layers and "(" .. tape.at .. " + layer * " .. tape.region .. ") * r->all"
            or (tape.at > 0 and tape.at .. " * r->all" or "0"),
        stride_text = of.stride,
        site_text = of.site,
        attention = of.attention,
        activation_of = activation_of,
        norm_name = norm_name,
        word = of.word,
        helper = helper,
        run = of.layers and "r, layer" or "r",
        gradient_of = { d_out = { pitch = tape.last.pitch }, d_in = tape.first and { pitch = tape.first.pitch } },
    }
    for _, gradient in ipairs(tape.back.gradients) do
        t.gradient_of[gradient.name] = gradient
    end
    local values = {
        word = of.word,
        layers = of.layers,
        attention = of.attention,
        lookup = of.lookup or false,
        first = tape.first ~= nil,
        doc = of.doc,
        back_doc = of.back_doc,
    }
    values.forward, values.forward_names = printed(t, helper, forward, tape.forward, true)
    values.rows, values.row_names = printed(t, helper, backward, tape.back.rows, true)
    values.parameters, values.parameter_names, values.sums_of_output =
        printed(t, helper, parameters, tape.back.parameters, false)
    return values
end

-- The norms of the tapes that differ: { name, kind, width, eps, multiplies }; and a function from a norm to its name.
-- alike: those that multiply and those that divide are the same.
local function norms_of(tapes, alike)
    local list, names = {}, {}
    local function multiplies(step) return step.multiplies and not alike or false end
    local function key(step)
        return string.format("%s %d %.17g %s", step.kind, step.width, step.eps, multiplies(step))
    end
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "norm" and not names[key(step)] then
                local name = step.kind .. "_" .. step.width
                for _, other in ipairs(list) do
                    if other.name == name then name = name .. "_" .. #list + 1 end
                end
                names[key(step)] = name
                list[#list + 1] = {
                    name = name,
                    kind = step.kind,
                    width = step.width,
                    eps = step.eps,
                    multiplies = multiplies(step),
                }
            end
        end
    end
    return list, function(step) return names[key(step)] end
end

-- The activations of the tapes: { name, helper, gated: a list of false, true }, and what the names of their functions
-- begin with behind the helper.
local function activations_of(tapes, helper)
    local list, words, by_name = {}, {}, {}
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "activate" then
                local one = by_name[step.activation]
                if not one then
                    one = { name = step.activation, helper = helper .. "_" .. step.activation, gated = {}, has = {} }
                    list[#list + 1], by_name[step.activation], words[step.activation] = one, one, step.activation
                end
                local gated = step.gate ~= nil
                if not one.has[gated] then
                    one.has[gated] = true
                    one.gated[#one.gated + 1] = gated
                end
            end
        end
    end
    return list, words
end

-- What the declarations of the LookupFFNs in the blocks print.
local function lookups_of(p)
    local list = {}
    for _, segment in ipairs(p.segments) do
        for _, part in ipairs(segment.plan.parts) do
            local own = part.plan
            list[#list + 1] = {
                names = own.names,
                shape = own.shape,
                variants = own.variants,
                training = lookup_print.values(own),
            }
        end
    end
    return list
end

function print_training.api(p)
    local t = p.training
    return {
        training = t,
        helper = p.names.model .. "_train",
        variants = p.variants,
        lookups = lookups_of(p),
    }
end

-- What the kernels of a LookupFFN in the blocks `own` are called with.
local function lookup_of(own, v, gradients)
    local step = own.lookup
    if not step then return end
    local ffn = step.ffn
    local trained = ffn.training
    return {
        names = trained.names,
        kernels = ffn.variants[v.number].training.names,
        tensors = step.tensors,
        layers = own.layers,
        stride = own.stride,
        tables_stride = own.tables_stride,
        rows = ffn.shape.h * ffn.shape.rows,
        h = ffn.shape.h,
        table_rows = ffn.shape.rows,
        prepared_at = step.prepared_at,
        prepared = blob.round_up(trained.prepared, 16),
        tile = trained.tile,
        slots = trained.slots,
        z = trained.z,
        sums = trained.sums.floats,
        x_step = step.from.pitch,
        y_step = step.to.pitch,
        pitch = step.tensors.tables.pitch,
        listed_at = step.tensors.tables.at - gradients,
    }
end

-- Which functions on rows the operations of the tapes and the head call: compilers warn of others.
local function uses_of(tapes, head)
    local uses = { bias = head.bias ~= nil, sums = head.bias ~= nil, add = false }
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "product" and step.map.bias then
                uses.bias, uses.sums = true, true
            end
            if step.shape then uses.sums = true end
            if step.op == "add" then uses.add = true end
        end
        for _, operation in ipairs(tape.back.rows) do
            if operation.op == "sum" then uses.add = true end
        end
    end
    return uses
end

function print_training.files(p, v)
    local t, helper = p.training, p.names.model .. "_train"
    local product = v.training.product
    local tapes = { t.embedding }
    for _, own in ipairs(t.segments) do
        tapes[#tapes + 1] = own.tape
    end
    tapes[#tapes + 1] = t.output
    local norms, norm_name = norms_of(tapes, v.isa.lanes > 1)
    local activations, activation_of = activations_of(tapes, helper)
    local printed_tapes = {}
    local function add(tape, of)
        printed_tapes[#printed_tapes + 1] = tape_values(helper, tape, of, activation_of, norm_name)
    end
    local forward_lines, back_lines = { helper .. "_forward_embedding(r);" }, {}
    add(t.embedding, {
        word = "embedding",
        doc = "From ids to the input of the first block.",
        back_doc = "Adds to the gradients of the embeddings.",
    })
    local back_segments = {}
    for _, own in ipairs(t.segments) do
        local a = setmetatable({
            word = own.word,
            strip = product.strip,
            padded_width = blob.round_up(own.attention.width, product.strip),
        }, { __index = own.attention })
        for _, step in ipairs(own.tape.forward) do
            if step.op == "attend" then
                local function head_step(value) return value.head_step or own.attention.width end
                local function pitch(value) return (value.of or value).pitch end
                a.q_step, a.k_step, a.v_step = pitch(step.q), pitch(step.k), pitch(step.v)
                a.q_head, a.k_head, a.v_head = head_step(step.q), head_step(step.k), head_step(step.v)
                a.y_step, a.softmax_step = step.to.pitch, step.softmax.pitch
            end
        end
        for _, operation in ipairs(own.tape.back.rows) do
            if operation.op == "attend" then
                local pitches = { d_in = own.tape.first.pitch }
                for _, gradient in ipairs(own.tape.back.gradients) do
                    pitches[gradient.name] = gradient.pitch
                end
                a.dq_step, a.dk_step, a.dv_step =
                    pitches[operation.to_q], pitches[operation.to_k], pitches[operation.to_v]
            end
        end
        local layers = own.layers > 1
        add(own.tape, {
            word = own.word,
            layers = layers,
            stride = layers and own.stride or nil,
            site = layers and own.site .. " + layer * " .. own.tape.sites or tostring(own.site),
            attention = a,
            lookup = lookup_of(own, v, t.gradients),
            doc = "A block.",
            back_doc = "The gradient of its input from that of its output, and those of its weights.",
        })
        if layers then
            forward_lines[#forward_lines + 1] = "for (size_t layer = 0; layer < " .. own.layers .. "; ++layer)"
            forward_lines[#forward_lines + 1] = "    " .. helper .. "_forward_" .. own.word .. "(r, layer);"
        else
            forward_lines[#forward_lines + 1] = helper .. "_forward_" .. own.word .. "(r);"
        end
        back_segments[#back_segments + 1] = { own = own, layers = layers }
    end
    add(t.output, {
        word = "output",
        doc = "From the last block to what the head reads.",
        back_doc = "The gradient of the last block's output.",
    })
    if t.output.forward[1] then forward_lines[#forward_lines + 1] = helper .. "_forward_output(r);" end

    -- Gradients of the streams between tapes take turns in two buffers.
    local from = 0
    local function step(word)
        back_lines[#back_lines + 1] =
            string.format("%s_back_%s(r, streams[%d], streams[%d]);", helper, word, from, 1 - from)
        from = 1 - from
    end
    step "output"
    for i = #back_segments, 1, -1 do
        local own = back_segments[i].own
        if back_segments[i].layers then
            local first = (from + own.layers - 1) % 2
            back_lines[#back_lines + 1] = "for (size_t layer = " .. own.layers .. "; layer-- > 0;)"
            back_lines[#back_lines + 1] = string.format(
                "    %s_back_%s(r, layer, streams[%s], streams[%s]);",
                helper,
                own.word,
                (first == 0 and "layer" or "(layer + 1)") .. " % 2",
                (first == 0 and "(layer + 1)" or "layer") .. " % 2"
            )
            from = (from + own.layers) % 2
        else
            step(own.word)
        end
    end
    back_lines[#back_lines + 1] = helper .. "_back_embedding(r, streams[" .. from .. "]);"

    local h = setmetatable({ rows = t.head.rows }, { __index = t.head })
    local scratch = v.training.scratch
    local run = {
        "/* A pass, and what of it a part does. */",
        "typedef struct " .. helper .. "_run {",
        "    const " .. helper .. " *t;",
        "    const int32_t *ids, *targets; /* [sequences][length] */",
        "    size_t sequences, length;",
        "    size_t all;             /* tokens of a row of memory */",
        "    size_t first, count;    /* tokens of the part */",
        "    size_t targets_counted;",
        "    int drops;              /* whether there is dropout */",
        "    float *memory, *scratch;",
    }
    local places = {
        { name = "kept", floats = t.kept .. " * all" },
        { name = "arena", floats = t.arena .. " * all" },
        { name = "streams", floats = 2 * t.stream .. " * all" },
        { name = "losses", floats = "all" },
        { name = "counted", floats = "all" },
        { name = "head", floats = h.at and h.rows * (2 * h.features_pitch + h.pitch) or h.rows * h.features_pitch },
    }
    local shapes = 0
    for _, own in ipairs(t.segments) do
        if own.attention.shaped then shapes = math.max(shapes, 3 * own.attention.heads) end
    end
    if shapes > 0 then
        places[#places + 1] = { name = "shapes", floats = string.format("(%d * sequences + 15) / 16 * 16", shapes) }
    end
    local looked, sums, bytes, slots = {}, 0, 0, 0
    for _, own in ipairs(t.segments) do
        if own.lookup then
            local trained = own.lookup.ffn.training
            looked[#looked + 1] = { word = own.word, layers = own.layers }
            sums = math.max(sums, blob.round_up(trained.sums.floats, 16))
            bytes = math.max(bytes, trained.scratch_bytes)
            slots = math.max(slots, 8 * own.lookup.ffn.shape.neighbours)
        end
    end
    if looked[1] then
        places[#places + 1] = { name = "prepared", floats = t.prepared }
        places[#places + 1] = { name = "sums", floats = sums .. " * parts" }
    end
    local words = {}
    for i, place in ipairs(places) do
        words[i] = place.name .. "_at"
    end
    run[#run + 1] = "    size_t " .. table.concat(words, ", ") .. ", scratch_at, scratch_floats; /* places in memory */"
    run[#run + 1] = "} " .. helper .. "_run;"
    local values = {
        isa = v.isa,
        lanes = v.isa.lanes,
        helper = helper,
        v = v,
        prologue = {},
        product = product,
        norms = norms,
        activations = activations,
        uses = uses_of(tapes, h),
        tapes = printed_tapes,
        head = h,
        embed = setmetatable(
            { width = t.embedding.forward[1].to.width, pitch = t.embedding.forward[1].to.pitch },
            { __index = t.embedding.forward[1] }
        ),
        float = literal.float,
        training = {
            run_struct = run,
            tile = t.tile,
            places = places,
            looked = looked,
            scratch = string.format(
                "%d + %d * ((length + 63) / 64 * 64)%s",
                math.max(product.floats, scratch.fixed, blob.round_up(bytes // 4, 16)),
                scratch.each,
                slots > 0 and " + " .. slots // 4 .. " * all" or ""
            ),
            forward = forward_lines,
            back = back_lines,
            stream = t.stream,
            features_at = t.output.last.at and t.output.at + t.output.last.at,
        },
    }
    local files = { { template = "templates/model/training/step.c", symbol = v.training.names.step, values = values } }
    for _, segment in ipairs(p.segments) do
        for _, part in ipairs(segment.plan.parts) do
            for _, file in ipairs(lookup_print.files(part.plan, part.plan.variants[v.number])) do
                file.plan = part.plan
                files[#files + 1] = file
            end
        end
    end
    return files
end

return print_training
