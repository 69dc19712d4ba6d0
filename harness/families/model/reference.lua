-- What the reference answers: blocks, and around them whole models, in float64, from the tensors of a checkpoint.
local block_lookup = require "gen.families.model.blocks.block_lookup"
local block_reference = require "block_reference"
local checkpoint = require "gen.schema.checkpoint_names"
local fusable = require "gen.schema.fusable"
local outer = require "whole_reference"
local packed = require "harness.families.lookup.packed"
local rules = require "gen.families.model.model"
local weights = require "weights"

local reference = {}

local tie_margin = 1e-5 -- of z, see harness/reference/block_lookup.h

-- Sums of rows as integers round scores to 1/32767 of the largest (harness/reference/error_bounds.h): 1e-5 to 2e-5 of a
-- layer's y, a few times that after some layers, and as much of the next layer's z.
local rounded_scores = { tolerance = 1e-4, tie_margin = 3e-5 }

-- Whether kernels for blocks of `shape` may sum rows of tables as integers.
local function rounds_scores(shape) return shape.lookup and shape.tables.integer_gather end

-- How much of a token's z may decide a tie, in blocks of `shape`. A key or value half-way between two numbers of a
-- narrow type of the cache may become either: z moves by as much as a token may.
local function tie_margin_of(shape)
    local cache = shape.cache.type
    return math.max(
        rounds_scores(shape) and rounded_scores.tie_margin or tie_margin,
        cache.plain and 0 or cache.cache.tolerance
    )
end

-- The largest relative error that emitted code may have of a token of blocks of `shape` whose products take floats.
function reference.tolerance(shape)
    return math.max(shape.cache.type.cache.tolerance, rounds_scores(shape) and rounded_scores.tolerance or 0)
end

-- The tensors of the checkpoint `path`, by name.
function reference.tensors(path)
    local found, message = weights.tensors(path)
    return found or error(message, 0)
end

-- The scaling of rotary positions `s`, nothing left out; nil: there is none.
local function scaling_of(s)
    return s
        and {
            kind = s.kind,
            factor = s.factor,
            original = s.original or 1,
            slow = s.slow or 1,
            fast = s.fast or 1,
            truncate = s.truncate,
            attention_factor = s.attention_factor or 1 + math.log(s.factor) / 10,
        }
end

-- Adds the norms of block `layer`, whose heads are `width` wide, to its maps.
local function add_norms(maps, m, s, layer, d_in, width)
    local place = m.norm and m.norm.place
    local post, keys = place == "post", { "first", "second", "after_attention", "after_ffn" }
    for i = 1, place == "both" and 4 or place and (s.qkv and 1 or 2) or 0 do
        if not (s.projected and i == 1 and not post) then
            local norm = checkpoint.norm(m, layer, i, i == 1 and not post and d_in or m.d)
            maps[keys[i]] = { gain = norm.gain, offset = m.norm.kind == "layernorm" and norm.offset or nil }
        end
    end
    for _, word in ipairs(m.attention.qk_norm and { "q", "k" } or {}) do
        maps[word .. "_norm"] = { gain = checkpoint.head_norm(m, layer, word, width) }
    end
end

-- The numbers of the layers of model `m` without its window, { [number] = true }.
local function full_layers_of(m)
    local full = {}
    for _, number in ipairs(m.attention.full_layers or {}) do
        full[number] = true
    end
    return full
end

-- Adds what attention has besides its maps; signs of tables only where `present(view)`.
local function add_attention(maps, m, s, layer, present)
    if m.attention.unit then maps.scales = { gain = checkpoint.attention_scale(m, layer) } end
    local signs = s.lsh and checkpoint.attention_signs(m, layer, s.lsh)
    if signs and present(signs) then maps.signs = { gain = signs } end
    if m.attention.shaped then maps.shape = { gain = checkpoint.attention_shape(m, layer) } end
end

-- What block_reference.answers wants: the maps of every layer but those in `without`, "" of a checkpoint that is not
-- fused; types: the names of those of weights, cache, activations, and attention (of queries and the softmax's
-- weights); of tables, default type, and projections of lookup FFNs, default f32; and blocks_in_out, whether the
-- checkpoint's BH4 blocks are stored [in][out].
-- Layer 0 is number `first` in the checkpoint, 0 if absent.
function reference.blocks_job(p, path, types, without, first)
    local m, s, layers = p.model, p.shape, {}
    local delivered = s.delivered and without ~= "" or s.projected
    local d_in, width = m.d_in or m.d, m.head_dim or m.d // m.heads
    local q, kv = { m.heads * width, d_in }, { m.kv_heads * width, d_in }
    local sizes = { Q = q, K = kv, V = kv, P = { m.d, m.heads * width }, S = m.skip and m.d_in and { m.d, d_in } }
    local from_keys = without ~= "" and m.attention.cache == "k"
    local function left(map) return without == "" and map or checkpoint.alone(map) end
    first = first or 0
    local found = reference.tensors(path)
    local spell = checkpoint.spelling(m, found)
    local full = full_layers_of(m)
    for layer = first, first + m.layers - 1 do
        local maps = {}
        for letter, size in pairs(sizes) do
            if size and not s.qkv and not without:find(letter, 1, true) and not (s.projected and letter ~= "P") then
                local map = checkpoint.linear(m, layer, letter, table.unpack(size))
                maps[letter:lower()] = from_keys and letter == "V" and checkpoint.from_keys(map) or left(map)
            end
        end
        maps.layer, maps.window = layer, not s.lsh and not full[layer] and m.attention.window or nil
        maps.input, maps.delivered, maps.qkv = delivered and s.input or d_in, delivered, s.qkv
        if s.lookup then
            maps.lookup = {
                prefix = block_lookup.prefix(m, layer),
                d_out = delivered and layer < first + m.layers - 1 and s.made or s.row,
            }
        end
        if s.f then
            local inputs = checkpoint.inputs(m, layer)
            maps.m, maps.g = left(inputs[#inputs]), s.gated and left(inputs[1]) or nil
            maps.o = left(checkpoint.linear(m, layer, "O", s.d, s.f))
            -- Unrounded, means may be taken behind that map, as by definition.
            maps.means = p.sums ~= nil and p.sums.map ~= nil and types.activations ~= "f32"
        end
        add_norms(maps, m, s, layer, d_in, width)
        add_attention(maps, m, s, layer, function(view) return found[spell(view.tensor)] end)
        layers[layer - first + 1] = maps
    end
    layers = checkpoint.respelled(layers, spell)
    local rope = m.attention.rope
    return {
        first_layer = first,
        weights = path,
        type = types.type,
        cache = types.cache,
        activations = types.activations,
        attention = types.attention,
        tables = types.tables or types.type,
        projection = types.projection,
        blocks_in_out = types.blocks_in_out or false,
        d = s.d,
        input = delivered and s.input or d_in,
        width = width,
        lookup = s.lookup and packed.reference_model(m.ffn, m.d, m.d) or nil,
        margin = tie_margin_of(s),
        heads = s.heads,
        kv_heads = s.kv_heads,
        f = s.f,
        scale = m.attention.scale or width ^ -0.5,
        soft_cap = m.attention.soft_cap or 0,
        causal = m.attention.causal,
        from_keys = from_keys,
        half = rope and math.floor(rope.share * width / 2 + 0.5),
        theta = rope and rope.theta or 0,
        scaling = scaling_of(rope and rope.scaling),
        interleaved = rope and rope.pairs == "interleaved",
        gated = s.gated,
        parallel = m.parallel,
        skip = m.skip,
        mean = m.norm and m.norm.kind == "layernorm",
        post = m.norm and m.norm.place == "post",
        eps = m.norm and m.norm.eps or 0,
        unit = m.attention.unit,
        lsh = s.lsh,
        shifted = m.attention.shifted or 0,
        head_eps = m.attention.qk_norm and m.attention.qk_norm.eps or 0,
        activation = s.activation or "relu",
        layers = layers,
    }
end

-- The type that weights of products are rounded to, by what `of` says of them: where inputs are rounded, too, theirs.
local function type_of_products(of)
    return of.rounded and not of.type.groups and of.rounded.name or of.type.name
end

-- The types of plan `p` for blocks_job, of blocks of `shape`; activations, cache: others instead of the plan's, nil:
-- the plan's. Queries and weights of softmax are rounded as the cache is, but not for other activations.
function reference.types(p, shape, blocks_in_out, activations, cache)
    local looked = p.lookup_types
    return {
        words = p.rows_type and p.rows_type.name, -- of rows
        type = type_of_products(shape),
        head = p.embedding and type_of_products(p), -- of the maps outside of the blocks
        cache = cache or shape.cache.type.name,
        activations = activations or p.activations.name,
        attention = not activations and shape.cache.words and shape.cache.type.name or "f32",
        tables = looked and looked.tables.name,
        projection = looked and looked.projection.name,
        blocks_in_out = blocks_in_out or false,
    }
end

-- What block_reference.answers gives for the job and x: { job, x, y, ties, looked, inputs, again }: again(turned) gives
-- it where those ties go the other way.
function reference.answer_blocks(job, x)
    local y, ties, looked = block_reference.answers(job, x)
    if not y then error(ties, 0) end
    local function again(turned)
        return reference.answer_blocks(setmetatable({ turned = turned }, { __index = job }), x)
    end
    local inputs = job.notes and { looked.inputs } or nil
    return { job = job, x = x, y = y, ties = ties, looked = looked, inputs = inputs, again = again }
end

-- The fields of a norm, if there is one, under these names.
local function add_norm(job, norm, names, name, mean, eps)
    if not norm then return end
    job[name] = { gain = names.gain, offset = norm.kind == "layernorm" and names.offset or nil }
    job[mean], job[eps] = norm.kind == "layernorm", norm.eps
end

local function map_of(view, bias) return view and { weight = view, bias = bias } or nil end

local function embedding_job(m, w, path, types)
    local e, names = m.embedding, checkpoint.embeddings(m, w.embedding, w.input)
    local sines = e.sinusoidal
    local half = w.embedding // 2
    local job = {
        weights = path,
        type = m.tied and types.head or types.words,
        map_type = types.head,
        activations = types.activations,
        width = w.embedding,
        input = w.input,
        scale = e.scale + 0.0,
        words = map_of(names.word),
        positions = m.positions and map_of(names.positions),
        first_position = e.first_position or 0,
        token_types = m.token_types and map_of(names.token_types),
        frequencies = sines and (sines.steps == "n" and half or half - 1) or 0,
        halves = sines and sines.order == "halves",
        max = sines and sines.max + 0.0 or 1.0,
        map = w.embedding ~= w.input and names.map or nil,
    }
    add_norm(job, e.norm, names.norm, "norm", "mean", "eps")
    if e.projected then
        -- the maps of the first block, and the norm before them
        local first = rules.segments(m)[1]
        local pre = first.norm and first.norm.place ~= "post"
        local width, q = w.embedding, rules.q_width(first)
        local kv = rules.kv_width(first)
        local function map(letter, rows, normed)
            local linear = checkpoint.linear(first, 0, letter, rows, width)
            return { map = { weight = linear.weight, bias = linear.bias }, normed = normed }
        end
        job.projected = { map("Q", q, true), map("K", kv, true), map("V", kv, true) }
        job.input = q + 2 * kv + (first.skip and first.d or 0)
        job.projected_type, job.copied = types.words, first.skip and first.d == width
        if first.skip and first.d ~= width then job.projected[4] = map("S", first.d, not pre) end
        local before = pre and checkpoint.norm(first, 0, 1, width)
        if pre then add_norm(job, first.norm, before, "first", "first_mean", "first_eps") end
    end
    return job
end

-- The inputs of the first of blocks alone, `width` values for each of `ids`: the sum of rows out of a checkpoint.
function reference.embedded(m, path, ids, width)
    local own = setmetatable({ embedding = { scale = 1 } }, { __index = m })
    local plain = { head = "f32", words = "f32", activations = "f32" }
    local job = embedding_job(own, { embedding = width, input = width }, path, plain)
    return assert(outer.embed(checkpoint.respelled(job, checkpoint.spelling(m, reference.tensors(path))), ids))
end

local function output_job(m, w, path, types)
    local o, names = m.output or {}, checkpoint.output(m, w.last)
    local job = {
        weights = path,
        type = types.head,
        activations = types.activations,
        width = w.last,
        out = w.out,
        pool = o.pool,
        unit = o.unit,
        soft_cap = o.head and o.head.soft_cap or 0.0,
        dense = o.dense and names.dense or nil,
        activation = o.dense and o.dense.activation,
    }
    if o.head then
        local word = checkpoint.embeddings(m, w.embedding, w.input).word
        job.head = map_of(m.tied and word or names.head.weight, o.head.bias and names.head.bias or nil)
    elseif o.classes then
        job.head = names.classes
    end
    add_norm(job, o.norm, names.norm, "norm", "mean", "eps")
    if o.dense then add_norm(job, o.dense.norm, names.dense_norm, "dense_norm", "dense_mean", "dense_eps") end
    return job
end

-- The jobs of plan `p` with the checkpoint of `files` (gen/families/packing.lua), whose weights are rounded to the
-- plan's types; activations, cache: types instead of the plan's, nil: the plan's.
function reference.jobs(p, files, activations, cache)
    local m, path = p.model, files.weights
    local types = reference.types(p, p.segments[1].plan.shape, files.blocks_in_out, activations, cache)
    local spell = checkpoint.spelling(m, reference.tensors(path))
    local list = {}
    for i, segment in ipairs(p.segments) do
        local without = fusable.is_fused(m) and m.attention.eliminate or ""
        list[i] = reference.blocks_job(segment.plan, path, types, without, segment.first_layer)
    end
    return {
        embedding = checkpoint.respelled(embedding_job(m, p.widths, path, types), spell),
        blocks = list,
        output = checkpoint.respelled(output_job(m, p.widths, path, types), spell),
    }
end

-- The jobs of the runs of blocks, with what is taken of lookup FFNs that were seen at work, nil: they were not.
function reference.blocks(jobs, taken)
    local list, first = {}, 0
    for i, job in ipairs(jobs.blocks) do
        list[i] = setmetatable({ first_looked = first }, { __index = job })
        for key, value in pairs(taken or {}) do
            list[i][key] = value
        end
        if job.lookup then first = first + #job.layers end
    end
    return list
end

-- The rows of one sequence: { y, ties, looked, inputs, again } as of answer_blocks; a tie is in run `segment` of
-- blocks, `inputs` a list by run. taken: { seen, notes, first_token } for the jobs of blocks, nil: nothing was seen.
function reference.answer(jobs, ids, turned, taken)
    local x, ties = assert(outer.embed(jobs.embedding, ids)), {}
    local looked, inputs = { off = 0, missing = 0 }, taken and {} or nil
    for i, job in ipairs(reference.blocks(jobs, taken)) do
        job.turned = {}
        for _, tie in ipairs(turned or {}) do
            if tie.segment == i then table.insert(job.turned, tie) end
        end
        local found = reference.answer_blocks(job, x)
        x = found.y
        for _, tie in ipairs(found.ties) do
            tie.segment = i
            ties[#ties + 1] = tie
        end
        looked.off = math.max(looked.off, found.looked.off)
        looked.missing = looked.missing + found.looked.missing
        if taken then inputs[i] = found.looked.inputs end
    end
    local function again(other) return reference.answer(jobs, ids, other, taken) end
    return { y = assert(outer.finish(jobs.output, x)), ties = ties, looked = looked, inputs = inputs, again = again }
end

return reference
