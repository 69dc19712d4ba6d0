-- What the templates of a whole model's training print: from the plan's tapes to the names and places that they read.
local blob = require "gen.plan.blob"
local expression = require "gen.isa.expression"
local lookup_print = require "gen.families.lookup.print_training"
local layout = require "gen.families.model.blocks.layout"
local literal = require "gen.print.literal"
local print_run = require "gen.families.model.blocks.print_run"
local scope = require "gen.families.model.training.scope"

local print_training = {}

local sum, times = expression.sum, expression.times

-- How many floats apart the rows of values are, by width: a list of macros { name, value, doc } in the order of width,
-- and a function from a value or gradient, { width, pitch }, to the macro, or to the number where rows are not filled.
local function pitches_of(p, tapes, head)
    local list, found = {}, {}
    local function is_filled(of) return of.pitch == layout.pitch(of.width) end
    local function name_of(of) return p.names.macro("TRAIN_PITCH_" .. of.width) end
    local function add(of)
        if found[of.width] or not is_filled(of) then return end
        found[of.width] = true
        list[#list + 1] = { name = name_of(of), value = of.pitch, width = of.width, doc = "of rows of " .. of.width }
    end
    for _, own in ipairs(tapes) do
        for _, value in ipairs(own.values) do
            add(value)
        end
        for _, gradient in ipairs(own.back.gradients) do
            add(gradient)
        end
    end
    add(head.row)
    if head.logits then add(head.logits) end
    table.sort(list, function(a, b) return a.width < b.width end)
    return list, function(of) return is_filled(of) and name_of(of) or of.pitch end
end

-- Names for the places of tape `own` of plan `p`, with the `values` that with_scope adds: groups of macros of the
-- emitted code, { doc, list = { name, value, doc } }; and a function from what a place is of and its number to its
-- name, or to the number where it has none, as 0.
local function places_of_tape(p, own, values)
    local groups, by_kind, tensors = {}, {}, {}
    local function open(doc) groups[#groups + 1] = { doc = doc .. values.of, list = {} } end
    local function add(kind, number, name, doc)
        by_kind[kind] = by_kind[kind] or {}
        if not number or number == 0 or by_kind[kind][number] then return end
        local macro = p.names.macro("TRAIN_" .. values.word:upper() .. "_" .. name:upper())
        by_kind[kind][number] = macro
        table.insert(groups[#groups].list, { name = macro, value = number, doc = doc })
    end
    for _, tensor in ipairs(p.training.tensors) do
        tensors[tensor.at] = tensors[tensor.at] or tensor
    end
    -- `first`: number of the row that begins there, with `width` columns
    local function tensor(number, name, first, width)
        local of = number and tensors[number - (first or 0) * (width or 0)]
        local behind = (first or 0) > 0 and ", from row " .. first .. " on" or ""
        if not of then return end
        add("tensor", number, name .. "_at", of.name .. ", [" .. table.concat(of.shape, "][") .. "]" .. behind)
    end
    open "Where tensors lie among all parameters, in floats: "
    for _, step in ipairs(own.forward) do
        local to = step.to and step.to.name
        if step.op == "norm" then
            tensor(step.gain, to .. "_gain")
            tensor(step.offset, to .. "_offset")
        elseif step.op == "product" then
            tensor(step.map.at, to .. "_weights")
            tensor(step.map.bias, to .. "_bias")
        elseif step.op == "attend" then
            tensor(step.shape, "attention_shape")
            tensor(step.scales, "attention_scale")
        elseif step.op == "embed" then
            tensor(step.word, "words")
            tensor(step.positions, "positions", step.first_position, step.to.width)
            tensor(step.token_type, "token_type")
        elseif step.op == "lookup" then
            for _, field in ipairs { "projection", "projection_bias", "bias", "tables" } do
                tensor(step.tensors[field].at, field)
            end
        end
    end
    if values.head then
        tensor(values.head.at, "head_weights")
        tensor(values.head.bias, "head_bias")
    end
    if values.layers then
        add("layer", values.stride, "layer", "from layer to layer")
        local looked = values.lookup or {}
        add("tables_layer", looked.tables_stride, "tables_layer", "from the tables of a layer to those of the next")
        add("rows_layer", looked.rows, "rows_layer", "rows of all tables of a layer")
        add("prepared_layer", looked.prepared, "prepared_layer", "of the packed projection of a layer")
    end
    open "Where values that the way back needs lie in memory, in floats for each token of it: "
    add("kept", own.at, "at", "before the first of them")
    if values.layers then add("kept_layer", own.region, "kept_layer", "from layer to layer") end
    if values.head then add("value", own.last.at, own.last.name .. "_at", "of those that the head reads") end
    for _, step in ipairs(own.forward) do
        for _, view in ipairs { step.q or step.from, step.k, step.v } do
            if view.of then add("view", view.at, view.name .. "_at", "in a row of " .. view.of.name) end
        end
    end
    return groups, function(kind, number) return by_kind[kind] and by_kind[kind][number] or number end
end

-- What the attention of segment `own` takes beside the plan: how many floats apart heads of q, k, v lie, and rows of v
-- and of the output; what C calls its layer; where gradients of its scalars are.
local function attention_of(own, v, pitch, names)
    local strip = v.training.product.strip
    local a = { strip = strip, padded_width = blob.round_up(own.attention.width, strip) }
    setmetatable(a, { __index = own.attention })
    for _, step in ipairs(own.tape.forward) do
        for _, word in ipairs(step.op == "attend" and { "q", "k", "v" } or {}) do
            local value = step[word]
            a[word .. "_head"] = value.head_step or own.attention.width
            a.v_step, a.y_step = pitch(step.v.of or step.v), pitch(step.to)
        end
    end
    a.layer = own.layers > 1 and "r->layer" or 0
    a.scalars = { shape = { place = "shapes", count = 3 * a.heads }, scales = { place = "scales", count = a.heads } }
    local lsh = own.attention.lsh
    if lsh then
        a.z = 2 * lsh.padded * v.isa.lanes -- floats that hashes work in
        local constants = { VALUE_PITCH = lsh.shape.cache.pitch, CODE_PITCH = lsh.code_pitch }
        a.tables = print_run.of_tables(lsh.shape, { sparse = lsh.sparse })
        a.tables.prologue, a.tables.symbol, a.tables.helper = {}, a.helper .. "_sums_of_tables", a.helper
        a.tables.shape = lsh.shape
        a.tables.names = {
            span = names.span,
            constant = function(name) return constants[name] end,
            type = function(word) return a.helper .. "_" .. word end,
        }
    end
    return a
end

-- The maps and norms of tape `own`, with the `values` that with_scope adds, as tables of the emitted code: a list of
-- { type, name, fields: what stands in its braces }; and, by the map or the step of a norm, the name.
local function tables_of(p, own, values)
    local list, names = {}, {}
    local function add(of, type, word, fields)
        local name = p.names.model .. "_train_" .. values.word .. "_" .. word
        list[#list + 1], names[of] = { type = type, name = name, fields = table.concat(fields, ", ") }, name
    end
    local function place(number) return values.place("tensor", number) end
    local function add_map(map, word)
        local across = p.names.macro(map.across and "TRAIN_ACROSS" or "TRAIN_PLAIN")
        local fields = { place(map.at), map.step, across, map.inputs, map.outputs }
        if values.uses.bias then fields[#fields + 1] = map.bias and place(map.bias) or 0 end
        add(map, "map", word .. "_map", fields)
    end
    for _, step in ipairs(own.forward) do
        if step.op == "norm" then
            local fields = { step.width, place(step.gain) }
            if values.uses.offsets then fields[#fields + 1] = step.offset and place(step.offset) or 0 end
            add(step, "norm", (step.to.name:gsub("normed", "norm")), fields)
        elseif step.op == "product" then
            add_map(step.map, step.to.name)
        end
    end
    local h = values.head
    if h and h.at then
        local map = { at = h.at, step = h.features, inputs = h.features, outputs = h.vocab, bias = h.bias }
        add_map(map, "head")
        names.head = names[map]
    end
    return list, names
end

-- Adds to tape `own` what templates read beside the plan: { word, of: what it computes, doc, back_doc, layers: false or
-- how many, stride, site, attention, lookup }. attention_struct: the type and the variable that attention takes.
local function with_scope(p, own, pitch, attention_struct, values)
    values.pitch = pitch
    values.site = values.site or 0
    function values.of_layer(step) return values.layers and times("r->layer", step) or 0 end
    local tape = setmetatable(values, { __index = own })
    values.places, values.place = places_of_tape(p, own, values)
    values.tables, values.table_of = tables_of(p, own, values)
    values.rows_type, values.attention_struct = p.names.rows, attention_struct
    values.helper, values.used = p.names.model .. "_train", { values = {}, gradients = {} }
    function values.scope(of_part) return scope.new(tape, of_part) end
    function values.structs() return scope.structs(tape) end
    return tape
end

-- The norms of the tapes that differ: { name, kind, width, eps }; and a function from a norm to its name.
local function norms_of(tapes)
    local list, names = {}, {}
    local function key(step) return string.format("%s %d %.17g", step.kind, step.width, step.eps) end
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "norm" and not names[key(step)] then
                local name = step.kind .. "_" .. step.width
                for _, other in ipairs(list) do
                    if other.name == name then name = name .. "_" .. #list + 1 end
                end
                names[key(step)] = name
                list[#list + 1] = { name = name, kind = step.kind, width = step.width, eps = step.eps }
            end
        end
    end
    return list, function(step) return names[key(step)] end
end

-- The activations of the tapes: { name, helper, gated: a list of false, true }.
local function activations_of(tapes, helper)
    local list, by_name = {}, {}
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "activate" then
                local one = by_name[step.activation]
                if not one then
                    one = { name = step.activation, helper = helper .. "_" .. step.activation, gated = {}, has = {} }
                    list[#list + 1], by_name[step.activation] = one, one
                end
                local gated = step.gate ~= nil
                if not one.has[gated] then
                    one.has[gated] = true
                    one.gated[#one.gated + 1] = gated
                end
            end
        end
    end
    return list
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
        table_rows = ffn.names.constant "TABLE_ROWS",
        table_floats = ffn.names.constant "TABLE_PITCH",
        prepared_at = step.prepared_at,
        prepared = blob.round_up(trained.prepared, 16),
        tile = trained.tile,
        sums = ffn.names.constant "TRAIN_SUMS",
        struct = { type = trained.names.tokens, name = "tokens" },
        fields = {
            { name = "z", cast = "" },
            { name = "code", cast = "(uint16_t *) (void *) " },
            { name = "score", cast = "" },
            { name = "slope", cast = "", back = true },
        },
        listed_at = step.tensors.tables.at - gradients,
    }
end

-- The fields of attention: { type, name, doc }; rows: the type of rows. has: what the attention of some block has.
local function attention_fields(rows, has)
    local list = {}
    local function add(type, name, doc) list[#list + 1] = { type = type, name = name, doc = doc } end
    local pointer = "const " .. rows .. " *"
    add(pointer, "q, *k, *v, *y", "rows of heads, and what becomes of them")
    if has.softmax then add(pointer, "softmax", "the largest score and 1 / total of each head") end
    if has.sums then add(pointer, "sums", "of rows of tables, before their norm") end
    if has.scales then add("const float *", "scales", "factors of scores of each head") end
    if has.shape then add("const float *", "shape", "alpha, beta and gamma of each head") end
    add(pointer, "dy, *dq, *dk, *dv", "gradients, on the way back")
    return list
end

-- Likewise those of scores that only some attention needs.
local function scores_fields(rows, has)
    local list = {}
    local function add(type, name, doc) list[#list + 1] = { type = type, name = name, doc = doc } end
    if has.softmax then add(rows .. " ", "softmax", "the largest score and 1 / total of each row") end
    if has.sums then add("float *", "signs", "of the hashes of tables") end
    if has.shape then
        add("const float *", "shape", "alpha, beta and gamma, on the way back")
        add("float ", "along", "the gradient of beta, added to on the way back")
    end
    return list
end

-- Which functions on rows the operations of the tapes and the head of training `t` call, as compilers warn of others;
-- and which fields structs have.
local function uses_of(p, t, tapes, helper)
    local head, has = t.head, {}
    local uses = { bias = head.bias ~= nil, sums = head.bias ~= nil, add = false, columns = false, tables = false }
    for _, tape in ipairs(tapes) do
        for _, step in ipairs(tape.forward) do
            if step.op == "product" and step.map.bias then
                uses.bias, uses.sums = true, true
            end
            if step.op == "norm" then
                uses.norms, uses.offsets = true, uses.offsets or step.offset ~= nil
            end
            if step.op == "attend" then
                for _, word in ipairs { "softmax", "sums", "scales", "shape" } do
                    has[word] = has[word] or step[word] ~= nil
                end
            end
            if step.op == "add" or step.op == "columns" then uses[step.op] = true end
        end
        for _, operation in ipairs(tape.back.rows) do
            if operation.op == "sum" then uses.add = true end
        end
    end
    for _, segment in ipairs(t.segments) do
        uses.layers = uses.layers or segment.layers > 1
    end
    uses.scalars, uses.tables = has.scales or has.shape or false, has.sums
    uses.sums = uses.sums or uses.scalars
    local rows = p.names.rows
    uses.attention = { type = helper .. "_attention", name = "attention", fields = attention_fields(rows, has) }
    uses.scores = scores_fields(rows, has)
    return uses
end

-- The tapes as templates read them, in the order of a forward pass; pitch: of pitches_of.
local function tapes_of(p, v, pitch, uses)
    local t = p.training
    local list = {
        with_scope(p, t.embedding, pitch, uses.attention, {
            word = "embedding",
            uses = uses,
            layers = false,
            what = "what stands before the blocks",
            doc = "From ids to the input of the first block",
            back_doc = "The gradients of values up to the embeddings",
            of = "what stands before the blocks.",
        }),
    }
    for _, own in ipairs(t.segments) do
        list[#list + 1] = with_scope(p, own.tape, pitch, uses.attention, {
            word = own.word,
            uses = uses,
            layers = own.layers > 1 and own.layers,
            stride = own.stride,
            site = own.site,
            attention = attention_of(own, v, pitch, p.names),
            lookup = lookup_of(own, v, t.gradients),
            what = "a block" .. (t.segments[2] and " of " .. own.word or ""),
            doc = "A block",
            back_doc = "The gradient of a block's input from that of its output",
            of = (t.segments[2] and own.word or "blocks") .. (own.layers > 1 and ", the first one." or "."),
        })
    end
    list[#list + 1] = with_scope(p, t.output, pitch, uses.attention, {
        word = "output",
        uses = uses,
        head = t.head,
        layers = false,
        what = "what stands behind the blocks",
        doc = "From the last block to what the head reads",
        back_doc = "The gradient of the last block's output",
        of = "what stands behind the blocks.",
    })
    return list
end

-- The arrays of a pass in the caller's memory, one behind the other: { name, doc, floats as C }; their sizes as macros:
-- { name, value, doc }; and what lookup FFNs need of a part's scratch: { bytes, floats for each token }.
local function places_of(p)
    local t, list, sizes = p.training, {}, {}
    local h, shapes, scales = t.head, 0, 0
    local function add_size(word, floats, doc)
        local name = p.names.macro("TRAIN_" .. word .. "_FLOATS")
        sizes[#sizes + 1] = { name = name, value = floats, doc = doc }
        return name
    end
    local function add(name, doc, floats) list[#list + 1] = { name = name, doc = doc, floats = floats } end
    add("kept", "values that the way back needs", times(add_size("KEPT", t.kept, "of each token"), "all"))
    add("arena", "gradients of values of one block", times(add_size("ARENA", t.arena, "of each token"), "all"))
    local stream = add_size("STREAM", t.stream, "of each token")
    add("streams", "gradients between blocks, two in turn", times(2, stream, "all"))
    add("losses", "of the counted targets", "all")
    add("counted", "the numbers of their tokens, integers", "all")
    local head = h.rows * (h.at and 2 * h.features_pitch + h.pitch or h.features_pitch)
    add("head", "features and logits of some of them", add_size("HEAD", head, "of all parts"))
    local sums, looked = 0, { bytes = 0, each = 0 }
    for _, own in ipairs(t.segments) do
        if own.attention.shaped then shapes = math.max(shapes, 3 * own.attention.heads) end
        if own.attention.scaled then scales = math.max(scales, own.attention.heads) end
        if own.lookup then
            local ffn = own.lookup.ffn
            sums = math.max(sums, blob.round_up(ffn.training.sums.floats, 16))
            looked.bytes = math.max(looked.bytes, ffn.training.scratch_bytes)
            looked.each = math.max(looked.each, 2 * ffn.shape.neighbours)
        end
    end
    if shapes > 0 then
        add("shapes", "gradients of alpha, beta and gamma", "(" .. shapes .. " * sequences + 15) / 16 * 16")
    end
    if scales > 0 then
        add("scales", "gradients of factors of scores", "(" .. scales .. " * sequences + 15) / 16 * 16")
    end
    if sums > 0 then
        add("prepared", "projections of LookupFFNs, packed", add_size("PREPARED", t.prepared, "of all layers"))
        add("sums", "their gradients, of each part", times(add_size("SUMS", sums, "of each part"), "parts"))
    end
    return list, sizes, looked
end

function print_training.files(p, v)
    local t, helper = p.training, p.names.model .. "_train"
    local product, scratch, macro = v.training.product, v.training.scratch, p.names.macro
    local own, head = { t.embedding, t.output }, {
        row = { width = t.head.features, pitch = t.head.features_pitch },
        logits = t.head.at and { width = t.head.vocab, pitch = t.head.pitch },
    }
    for _, segment in ipairs(t.segments) do
        own[#own + 1] = segment.tape
    end
    local pitches, pitch = pitches_of(p, own, head)
    local uses = uses_of(p, t, own, helper)
    local tapes = tapes_of(p, v, pitch, uses)
    local output = tapes[#tapes]
    local norms, norm_name = norms_of(tapes)
    local steps = { features_pitch = pitch(head.row), pitch = head.logits and pitch(head.logits) }
    steps.map = output.table_of.head
    local places, sizes, looked = places_of(p)
    local fixed = math.max(product.floats, scratch.fixed, blob.round_up(looked.bytes // 4, 16))
    local scratch_floats, scratch_each = macro "TRAIN_SCRATCH_FLOATS", macro "TRAIN_SCRATCH_EACH"
    sizes[#sizes + 1] = { name = scratch_floats, value = fixed, doc = "of each part" }
    sizes[#sizes + 1] = { name = scratch_each, value = scratch.each, doc = "more for each token of a sequence" }
    local embed = t.embedding.forward[1]
    local values = {
        isa = v.isa,
        lanes = v.isa.lanes,
        helper = helper,
        v = v,
        prologue = {},
        product = product,
        norms = norms,
        norm_name = norm_name,
        activations = activations_of(tapes, helper),
        uses = uses,
        tapes = tapes,
        head = setmetatable(steps, { __index = t.head }),
        embed = setmetatable({ width = embed.to.width, pitch = pitch(embed.to) }, { __index = embed }),
        float = literal.float,
        inverse = literal.inverse,
        features_pitch = steps.features_pitch,
        features_at = sum(output.place("kept", t.output.at), output.place("value", t.output.last.at)),
        training = {
            tile = t.tile,
            places = places,
            looks_up = looked.bytes > 0,
            scratch = sum(
                scratch_floats,
                times(scratch_each, "((length + 63) / 64 * 64)"),
                times(looked.each, "all")
            ),
            pitches = pitches,
            sizes = sizes,
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
