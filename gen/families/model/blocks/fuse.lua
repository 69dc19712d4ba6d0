-- Makes the steps that merge a transformer's weights exactly (arXiv 2404.12362, table 1): from a model and the tensors
-- of its checkpoint to the job of gen/weights/lua_fuse.c.
--
-- In the checkpoint's layout y = S x + b. Let A be the projection that is eliminated first. With x* = A x + b_A, the
-- attention's own input:
--   what makes x        S* = A S, b* = A b + b_A     ("left", "vector"; "rows" for embeddings and tables, whose rows
--                       are outputs)
--   what reads x        S* = S A^-1, b* = b - S* b_A ("solve")
--   P before what reads it, in serial blocks: M* = M P, b* = b + M b_P ("right")
local checkpoint = require "gen.schema.checkpoint_names"
local ffn_parts = require "gen.schema.ffn_parts"
local fusable = require "gen.schema.fusable"
local ignored = require "gen.schema.ignored"
local lookup_model = require "gen.families.lookup.model"
local misuse = require "gen.schema.misuse"
local rules = require "gen.families.model.model"
local unused_tensors = require "gen.schema.unused_tensors"
local validated = require "gen.schema.validated"

local fuse = {}

local widths = { F64 = 8, F32 = 4, F16 = 2, BF16 = 2 }

-- Collects steps and the tensors that they write.
local builder = {}
builder.__index = builder

local function new_builder(found, dtype)
    return setmetatable({ steps = {}, tensors = {}, work = 0, used = {}, found = found, dtype = dtype }, builder)
end

-- What the steps that follow are called.
function builder:label(text) self.text = text end

function builder:push(step, work)
    step.label = self.text
    self.steps[#self.steps + 1] = step
    self.work = self.work + (work or 0)
end

function builder:use(view)
    if view and self.found[view.tensor] then self.used[view.tensor] = true end
    return view
end

function builder:present(view) return view and self.found[view.tensor] and self:use(view) or nil end

-- Notes a tensor to be written; a merged one has the dtype asked for, or that of the tensor it replaces.
function builder:writes(name, shape, view)
    local given = view and self.found[view.tensor] and self.found[view.tensor].dtype or "F32"
    local own = self.dtype or widths[given] and given or "F32"
    self.tensors[#self.tensors + 1] = { name = name, shape = shape, dtype = own }
    return own
end

local function alone_names(map)
    local alone = checkpoint.alone(map)
    return alone.weight.tensor, alone.bias.tensor
end

function builder:copy(view, name)
    if not self.found[view.tensor] then
        self:push { op = "copy", from = self:use(view) } -- says that it is missing
        return
    end
    local own, count = view.transposed or view.group, 1 -- a tensor of its own
    local shape = own and (view.columns > 1 and { view.rows, view.columns } or { view.rows }) or view.shape
    for _, n in ipairs(shape) do
        count = count * n
    end
    name = name or view.tensor
    local step = { op = "copy", from = self:use(view) }
    if own then
        step.name, step.dtype = name, self:writes(name, shape, view)
    else
        self.tensors[#self.tensors + 1] = { name = name, shape = shape, dtype = self.found[view.tensor].dtype }
    end
    self:push(step, count)
end

function builder:copy_map(map)
    local name, bias = alone_names(map)
    self:copy(map.weight, name)
    if self:present(map.bias) then self:copy(map.bias, bias) end
end

-- The tensor of that name stays as it is.
function builder:copy_whole(name)
    local shape, count = self.found[name].shape, 1
    for _, n in ipairs(shape) do
        count = count * n
    end
    self:copy { tensor = name, shape = shape, rows = math.max(count, 1), columns = 1 }
end

-- The names of the tensors that no step reads so far, as the file spells them, in their order, and the model's own by
-- these.
function builder:unread(spell)
    local names, own = {}, {}
    for name in pairs(self.found) do
        if not self.used[name] and not checkpoint.is_buffer(name) then
            names[#names + 1], own[spell(name)] = spell(name), name
        end
    end
    table.sort(names)
    return names, own
end

-- The matrix is the maps below each other. self.offset: whether it has a bias.
function builder:load(maps)
    local parts, rows = {}, 0
    self.offset = false
    for i, map in ipairs(maps) do
        parts[i] = { from = self:use(map.weight), bias = self:present(map.bias) }
        rows = rows + map.weight.rows
        self.offset = self.offset or parts[i].bias ~= nil
    end
    self.rows, self.columns = rows, maps[1].weight.columns
    self:push { op = "load", parts = parts, rows = rows, columns = self.columns, has_offset = self.offset }
end

-- first_look: only to refuse what cannot be inverted.
function builder:factor(map, first_look)
    self:push({ op = "factor", name = map.name, first_look = first_look }, 2 / 3 * self.rows ^ 3)
end

-- Behind a linear map `map` comes the matrix; `add`: its offset as well.
function builder:left(map, add)
    local v = map.weight
    local name, bias = alone_names(map)
    local own = self:writes(name, { self.rows, v.columns }, v)
    local work = 2 * self.rows * self.columns * v.columns
    self:push({ op = "left", from = self:use(v), name = name, dtype = own }, work)
    local from = self:present(map.bias)
    if from or (add and self.offset) then self:vector(from, bias, add, from or v) end
end

function builder:vector(from, name, add, like)
    local own = self:writes(name, { self.rows }, like)
    self:push { op = "vector", from = self:use(from), add_offset = add, name = name, dtype = own }
end

-- The matrix is behind every row of `view`, which becomes a tensor of `shape`; `factor`: and so much of its offset.
function builder:rows_of(view, shape, factor)
    self:push({
        op = "rows",
        from = self:use(view),
        add_offset = factor ~= nil,
        offset_factor = factor,
        name = view.tensor,
        dtype = self:writes(view.tensor, shape, view),
    }, 2 * view.rows * self.rows * self.columns)
end

-- The matrix, or its inverse, is in front of a linear map, which becomes `to`, nil: itself, alone.
function builder:in_front(op, map, work, to)
    local v = map.weight
    local name, bias = alone_names(to or map)
    local step = { op = op, from = self:use(v), name = name }
    step.dtype = self:writes(step.name, { v.rows, self.columns }, v)
    step.bias = self:present(map.bias)
    step.with_bias = step.bias ~= nil or self.offset
    if step.with_bias then step.bias_dtype = self:writes(bias, { v.rows }, step.bias or v) end
    self:push(step, work)
end

function builder:solve(map, to) self:in_front("solve", map, 10 * map.weight.rows * self.columns ^ 2, to) end

function builder:right(map) self:in_front("right", map, 2 * map.weight.rows * self.rows * self.columns) end

-- The tensors of the LookupFFN of a layer: tables, bias, and the projection as a linear map.
local function lookup_of(m, layer)
    local family, ffn = checkpoint.family(m), m.ffn
    local prefix, bits = family.layer:format(layer) .. family.lookup, ffn.h * ffn.tau
    local shape, rows, columns = { bits, m.d }, bits, m.d
    if ffn.projection.kind == "bh4" then
        local padded, block = lookup_model.power_of_two_at_least(m.d), ffn.projection.block
        shape = { (bits + padded - 1) // padded, 4, padded // block, block, block }
        rows, columns = shape[1] * 4 * padded, block -- it is only copied
    end
    return {
        tables = {
            tensor = prefix .. "tables",
            shape = { ffn.h, 1 << ffn.tau, m.d },
            rows = ffn.h << ffn.tau,
            columns = m.d,
        },
        bias = { tensor = prefix .. "bias", shape = { m.d }, rows = m.d, columns = 1 },
        projection = {
            name = prefix .. "hash.projection",
            weight = { tensor = prefix .. "hash.projection.weight", shape = shape, rows = rows, columns = columns },
            bias = { tensor = prefix .. "hash.projection.bias", shape = { bits }, rows = bits, columns = 1 },
        },
    }
end

-- The matrix that is loaded is merged into the embeddings, or into the map behind them.
local function merge_behind_embeddings(b, m)
    local embedding = m.embedding or {}
    local parts = checkpoint.embeddings(m, embedding.d or m.d, m.d)
    for _, key in ipairs { "word", "positions", "token_types" } do
        local rows = parts[key]
        if rows and parts.map then
            b:copy(rows)
        elseif rows then
            -- Rows of words are scaled later on.
            b:rows_of(rows, { rows.rows, b.rows }, key == "word" and 1 / (embedding.scale or 1) or nil)
        end
    end
    if parts.norm then
        b:copy(parts.norm.gain)
        if embedding.norm.kind == "layernorm" then b:copy(parts.norm.offset) end
    end
    if parts.map then b:left(parts.map, true) end
end

-- What makes the input of a layer reads the matrix that is loaded: embeddings, or the FFN, and in parallel blocks P, of
-- the layer before.
local function merge_behind_sources(b, m, layer, p, o)
    if layer == 0 then return merge_behind_embeddings(b, m) end
    if m.parallel then b:left(p, false) end
    if m.ffn.kind == "lookup" then
        local before = lookup_of(m, layer - 1)
        b:rows_of(before.tables, { m.ffn.h, 1 << m.ffn.tau, b.rows })
        b:vector(before.bias, before.bias.tensor, true, before.bias)
    end
    if o then b:left(o, m.ffn.kind ~= "lookup") end -- what is added is so once
end

-- The map V of a layer becomes what makes values of keys: with k = K x + b_K, v = V x + b_V is V K^-1 k + b_V - V K^-1
-- b_K, whatever is merged into both.
local function make_values_of_keys(b, maps)
    b:load { maps.K }
    b:factor(maps.K)
    b:solve(maps.V, checkpoint.from_keys(maps.V))
end

-- Steps of one layer; `p` and `o` are maps of the layer before.
local function add_layer(b, m, layer, eliminate, p_before, o_before)
    local d, e = m.d, rules.kv_width(m)
    local maps, first, all = {}, eliminate:sub(1, 1), eliminate:find("QKV", 1, true)
    for letter, rows in pairs { Q = d, K = e, V = e, P = d } do
        maps[letter] = checkpoint.linear(m, layer, letter, rows, d)
    end
    local inputs = checkpoint.inputs(m, layer)
    if m.ffn.kind == "lookup" then table.insert(inputs, 1, lookup_of(m, layer).projection) end

    b:label("layer " .. layer)
    local signs = rules.lsh(m) and checkpoint.attention_signs(m, layer, rules.lsh(m))
    if b:present(signs) then b:copy(signs) end
    if m.attention.unit then b:copy(checkpoint.attention_scale(m, layer)) end
    if m.attention.shaped then b:copy(checkpoint.attention_shape(m, layer)) end
    for _, word in ipairs(m.attention.qk_norm and { "q", "k" } or {}) do
        b:copy(checkpoint.head_norm(m, layer, word, rules.head_width(m)))
    end
    if all then
        b:load { maps.Q, maps.K, maps.V }
    else
        b:load { maps[first] }
    end
    merge_behind_sources(b, m, layer, p_before, o_before)
    if not all then
        b:factor(maps[first])
        for _, letter in ipairs { "Q", "K", "V" } do
            if letter ~= first and (letter ~= "V" or not m.attention.cache) then b:solve(maps[letter]) end
        end
    end
    if m.parallel then
        for _, map in ipairs(inputs) do
            b:solve(map)
        end
    elseif eliminate:find("P", 1, true) then
        b:load { maps.P }
        for _, map in ipairs(inputs) do
            b:right(map)
        end
    else
        b:copy_map(maps.P)
        for _, map in ipairs(inputs) do
            b:copy_map(map)
        end
    end
    if m.attention.cache then make_values_of_keys(b, maps) end
    return maps.P
end

-- Steps of a model of which nothing but V is merged; all else stays, a matrix that was packed or transposed by itself.
local function only_make_values(b, m, options, spell)
    local dense = ffn_parts.dense(m.ffn)
    for layer = 0, m.layers - 1 do
        local maps = {}
        for _, letter in ipairs { "Q", "K", "V", "P" } do
            maps[letter] = checkpoint.linear(m, layer, letter, m.d, m.d)
        end
        b:label("layer " .. layer)
        for _, letter in ipairs { "Q", "K", "P" } do
            b:copy_map(maps[letter])
        end
        make_values_of_keys(b, maps)
        for _, map in ipairs(checkpoint.inputs(m, layer)) do
            b:copy_map(map)
        end
        if dense then b:copy_map(checkpoint.linear(m, layer, "O", m.d, dense.f)) end
    end
    local names, own = b:unread(spell)
    for _, name in ipairs(ignored.without(names, options.ignore)) do
        b:copy_whole(own[name])
    end
end

-- What no attention follows: the FFN of the last layer, and what is behind it.
local function add_end(b, m, found, p, o)
    if m.parallel then b:copy_map(p) end
    if m.ffn.kind == "lookup" then
        local last = lookup_of(m, m.layers - 1)
        b:copy(last.tables)
        b:copy(last.bias)
    end
    if o then b:copy_map(o) end
    b:label "head"
    local family, names = checkpoint.family(m), {}
    for name in pairs(found) do
        if checkpoint.is_behind(m, name) then names[#names + 1] = name end
    end
    table.sort(names)
    for _, name in ipairs(names) do
        b:copy_whole(name)
    end
    local head = checkpoint.head(m)
    if head and not found[head] and m.tied and not fusable.has_map(m) then
        b:copy({ tensor = family.embeddings.word, shape = { m.vocab, m.d }, rows = m.vocab, columns = m.d }, head)
    end
end

-- Raises one line for a model that is no transformer.
function fuse.only_transformer(m)
    if not m.attention then
        validated.refuse(m, { "attention" }, nil, "required key is missing; only a transformer has weights to fuse")
    end
end

-- Raises one line for a model that cannot be fused exactly.
function fuse.check(m, eliminate, option)
    local function refuse(rule)
        if option then misuse("--eliminate: " .. tostring(eliminate) .. ": " .. rule) end
        validated.refuse(m, { "attention", "eliminate" }, eliminate, rule)
    end
    local obstacle, found, why = fusable.obstacle(m, eliminate)
    if eliminate == "none" and m.attention.cache then obstacle = nil end -- V is merged across nothing
    local of_word = obstacle and obstacle[2] == "eliminate"
    if obstacle and not of_word then validated.refuse(m, obstacle, found, why) end
    local chain, value, rule = checkpoint.misfit(m)
    if chain then validated.refuse(m, chain, value, rule) end
    rule = eliminate ~= "none" and fusable.has_map(m) and checkpoint.without_map(m)
    if rule then validated.refuse(m, { "embedding", "d" }, m.embedding.d, rule) end
    local reason = rules.impossible(m, eliminate)
    if reason then refuse(reason) end
    if m.embedding and eliminate:find("QKV", 1, true) then refuse(rules.not_whole) end
    if eliminate == "none" and not m.attention.cache then
        refuse 'names nothing to eliminate; "QP" is what serial blocks can do without, "Q" parallel ones'
    end
    if of_word then refuse(why) end
end

-- Raises one line for tensors of the checkpoint that no step reads: a fused model without them would compute something
-- else.
local function check_unused(b, m, found, options, spell)
    local family, all = checkpoint.family(m), {}
    local headless = m.embedding and not (m.output and m.output.head)
    if family.needs_head and not found[checkpoint.head(m)] and not m.tied and not headless then
        error(
            options.weights
                .. ": tensor "
                .. checkpoint.head(m)
                .. " is missing; a model whose output embedding is its input embedding says tied = true",
            0
        )
    end
    for name in pairs(found) do
        all[spell(name)] = true
    end
    local names, known = b:unread(spell)
    local read = {}
    for name in pairs(b.used) do
        read[spell(name)] = true
    end
    unused_tensors.refuse_parts(options.weights, names, read)
    local function reason(of, name) return checkpoint.left_out(of, known[name]) end
    unused_tensors.refuse(options.weights, m, ignored.without(names, options.ignore), reason)
    ignored.check(options.weights, all, options.ignore)
end

-- The steps, the tensors they write in their order, and their work in floating-point operations, for model `m` without
-- the projections of the word options.eliminate. tensors: those of the checkpoint options.weights by name; those
-- that options.ignore names are left out; dtype: that of merged tensors, nil for that of those they replace.
function fuse.steps(m, tensors, options, dtype)
    local spell, model_name = checkpoint.spelling(m, tensors)
    local found = {}
    for name, tensor in pairs(tensors) do
        found[model_name(name)] = tensor
    end
    local b = new_builder(found, dtype)
    local eliminate = options.eliminate
    local p, first = nil, eliminate:sub(1, 1)
    -- Merging takes long: a matrix of the last layer that has no inverse shall not be found at the end.
    local inverted = eliminate == "none" and "" or eliminate:find("QKV", 1, true) and "" or first
    if m.attention.cache and first ~= "K" then inverted = inverted .. "K" end
    for layer = 0, m.layers - 1 do
        for letter in inverted:gmatch "." do
            local map = checkpoint.linear(m, layer, letter, m.d, m.d)
            b:label("layer " .. layer)
            b:load { map }
            b:factor(map, true)
        end
    end
    local dense = ffn_parts.dense(m.ffn)
    local function output(layer) return dense and checkpoint.linear(m, layer, "O", m.d, dense.f) or nil end
    for layer = 0, eliminate == "none" and -1 or m.layers - 1 do
        p = add_layer(b, m, layer, eliminate, p, layer > 0 and output(layer - 1))
    end
    if eliminate == "none" then
        only_make_values(b, m, options, spell)
    else
        add_end(b, m, found, p, output(m.layers - 1))
    end
    check_unused(b, m, found, options, spell)
    b.steps = checkpoint.respelled(b.steps, spell)
    for _, tensor in ipairs(b.tensors) do
        tensor.name = spell(tensor.name)
    end
    return b
end

-- How many bytes a tensor takes.
local function bytes_of(tensor)
    local bytes = widths[tensor.dtype] or 1
    for _, n in ipairs(tensor.shape) do
        bytes = bytes * n
    end
    return bytes
end

-- The tensors in files of at most `most` bytes each, unless one tensor is larger; all in one for nil.
function fuse.files(tensors, most)
    local files, size = { {} }, 0
    for _, tensor in ipairs(tensors) do
        local bytes = bytes_of(tensor)
        if most and size > 0 and size + bytes > most then
            files[#files + 1] = {}
            size = 0
        end
        table.insert(files[#files], tensor)
        size = size + bytes
    end
    return files
end

-- The index of files with these names, as other programs write it.
function fuse.index(files, names)
    local map, total = {}, 0
    for i, tensors in ipairs(files) do
        for _, tensor in ipairs(tensors) do
            map[tensor.name] = names[i]
            total = total + bytes_of(tensor)
        end
    end
    return { metadata = { total_size = total }, weight_map = map }
end

return fuse
