-- What the reference answers for sequences of ids: a whole model in float64, from the tensors of its checkpoint.
local checkpoint = require "gen.model.checkpoint_names"
local outer = require "whole_reference"
local rules = require "gen.families.model.model"
local transformer = require "harness.families.model.blocks.execute"
local weights = require "weights"

local reference = {}

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
        type = m.tied and types.type or types.words,
        map_type = types.type,
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
        local pre = first.norm and first.norm.place == "pre"
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

local function output_job(m, w, path, types)
    local o, names = m.output or {}, checkpoint.output(m, w.last)
    local job = {
        weights = path,
        type = types.type,
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
    local m, looked, path = p.model, p.lookup_types, files.weights
    local types = {
        words = p.type.name,
        type = transformer.weights_type(p.segments[1].plan.shape),
        cache = cache or p.options.cache,
        activations = activations or p.activations.name,
        attention = activations and "f32" or transformer.attention_type(p.segments[1].plan.shape),
        tables = looked and looked.tables.name,
        projection = looked and looked.projection.name,
        blocks_in_out = files.blocks_in_out,
    }
    local found, message = weights.tensors(path)
    if not found then error(message, 0) end
    local spell = checkpoint.spelling(m, found)
    local list = {}
    for i, segment in ipairs(p.segments) do
        local without = m.attention.eliminate == "none" and "" or m.attention.eliminate
        list[i] = transformer.reference_job(segment.plan, path, types, without, segment.first_layer)
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

-- The rows of one sequence: { y, ties, looked, inputs, again } as in harness/families/model/blocks/execute.lua; a tie is
-- in run `segment` of blocks, `inputs` a list by run of blocks. taken: { seen, notes, first_token } for the jobs of
-- blocks, nil: nothing was seen.
function reference.answer(jobs, ids, turned, taken)
    local x, ties = assert(outer.embed(jobs.embedding, ids)), {}
    local looked, inputs = { off = 0, missing = 0 }, taken and {} or nil
    for i, job in ipairs(reference.blocks(jobs, taken)) do
        job.turned = {}
        for _, tie in ipairs(turned or {}) do
            if tie.segment == i then table.insert(job.turned, tie) end
        end
        local found = transformer.answer(job, x)
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
