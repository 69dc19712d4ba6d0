-- Distils the dense model into the converted one end to end: all of its blocks learn to make what the dense model makes
-- of each token, its logits or the states behind its last block.
local activations = require "harness.convert.activations"
local checkpoint = require "gen.schema.checkpoint_names"
local compile = require "harness.base.compile"
local constants = require "gen.families.model.training.constants"
local distil = require "distil"
local emit = require "gen.emit.emit"
local fitting = require "harness.convert.fitting"
local host = require "host"
local process = require "process"
local rounding = require "harness.train.rounding"
local teacher_file = require "harness.convert.teacher"

local end_to_end = {}

local rate, table_rate = 3e-4, 3e-4
local pooled, vectors = 4.0, 4.0 -- weights of the errors of a sequence's pool and vector beside that of its tokens
local slopes = { tanh = true, relu = true } -- activations

-- Factors of the rate by kind of tensor; embeddings and the head stay as they are.
local factors = { matrix = 1, norm = 1, bias = 1, scalar = 1, embedding = 0, tables = 1 }

-- The factor of a projection's rate: as small a share of its weights as fitting.lua moves.
local function of_projection(m)
    local projection = m.ffn.projection
    return projection and projection.kind == "bh4" and 0.75 * projection.block ^ -0.5 or 0.3
end

-- The plan of the dense model `m` whose results are what the last block makes, behind its norm.
local function plan_of_features(m, plan_of, path)
    local norm = m.output and m.output.norm
    local blocks = activations.blocks(m)
    local changes = { name = "convert_features", tied = false, tokenizer = false }
    changes.output = norm and { norm = norm } or false
    return plan_of(activations.with_blocks(m, blocks, changes, path))
end

-- Why model `m` cannot learn so, or nil.
function end_to_end.obstacle(p)
    local good, message = pcall(emit.add_training, p)
    return not good and tostring(message) or nil
end

-- Whether the slopes of what the dense map of output `o` makes are known: not those of every activation, nor those of a
-- pool that is no mean.
local function has_slopes(o)
    local dense = o.dense
    if not dense then return true end
    return not dense.norm and o.pool ~= "sqrt_n" and (not dense.activation or slopes[dense.activation] ~= nil)
end

-- Adds to the job what becomes of a sequence's pool in model `m`, if it learns that.
local function add_vector(job, m, c)
    local o = m.output or {}
    job.vectors = job.pool ~= "" and has_slopes(o) and vectors or 0.0
    job.out, job.weight, job.bias, job.unit = job.width, "", "", o.unit
    if not o.dense or job.vectors == 0 then return end
    local dense, map = o.dense, checkpoint.output(m, job.width).dense
    job.out, job.activation = dense.width, dense.activation
    job.weight, job.bias = assert(teacher_file.read(map.weight, c)), teacher_file.read(map.bias, c) or ""
end

local function job_of(c, p, library, by_logits)
    local t, names, m = p.training, p.variants[1].training.names, p.model
    local pool = not by_logits and m.output and m.output.pool
    local job = {
        library = library,
        step = names.step,
        workspace = names.workspace,
        parameters = t.parameters,
        gradients = t.gradients,
        table_rows = t.table_rows,
        constants = constants.bytes(p),
        width = by_logits and m.vocab or t.head.features,
        pitch = by_logits and t.head.pitch or t.head.features_pitch,
        logits = by_logits,
        soft_cap = by_logits and t.head.soft_cap or 0.0,
        pool = pool == "sqrt_n" and "mean" or pool or "",
        pooled = pooled,
        tensors = {},
    }
    add_vector(job, m, c)
    for i, tensor in ipairs(t.tensors) do
        job.tensors[i] = {
            at = tensor.at,
            rows = tensor.rows,
            columns = tensor.columns,
            pitch = tensor.pitch or tensor.columns,
            rate = tensor.role == "head" and 0.0
                or tensor.kind == "projection" and tensor.projection_rate
                or factors[tensor.kind],
            tables = tensor.kind == "tables",
            rounding = rounding.of(tensor, c.rounds),
        }
    end
    return job
end

-- The blocks' rates of projections, by layer.
local function note_projections(p, blocks)
    for _, tensor in ipairs(p.training.tensors) do
        if tensor.kind == "projection" then tensor.projection_rate = of_projection(blocks[tensor.layer + 1]) end
    end
end

-- Goes on with the weights in the file `weights`, of the plan `p` that plan_of made anew, for options["end-to-end"]
-- tokens of `text`. c: dense (model and its plan and library: dense_plan, teacher), blocks of the target, rounds,
-- options; dense_file(plan): the path of a checkpoint of a part of the dense model. Returns tensors by name: { shape,
-- bytes }, and the first and the last loss.
function end_to_end.run(c, p, weights, text, plan_of, dense_file)
    local by_logits = p.model.output ~= nil and p.model.output.head ~= nil
    note_projections(p, c.blocks)
    host.status "compiling"
    local library = compile.library({ p }, process.temporary_directory(), c.options.cc, c.options.cflags)
    local student = assert(distil.open(job_of(c, p, library, by_logits)))
    local own, found = { path = weights, spell = function(name) return name end }, {}
    for i, tensor in ipairs(p.training.tensors) do
        local view = { tensor = tensor.name, shape = tensor.shape, rows = tensor.rows, columns = tensor.columns }
        found[i] = teacher_file.read(view, own)
        if found[i] then student:set(i, found[i]) end
    end
    local features, model = c.dense_plan, c.teacher
    if not by_logits then
        features = plan_of_features(c.dense, plan_of, c.options.dense)
        model = activations.open(features, dense_file(features), c.options)
    end
    local steps = math.max(1, c.options["end-to-end"] // fitting.batch_tokens)
    local first, last
    for step = 1, steps do
        local batch = text.even[(step - 1) % #text.even + 1]
        local share = fitting.rate_at(step, steps)
        local rows = activations.states(features, model, batch.ids)
        last = assert(student:step(batch.ids, rows, step, share * rate, share * table_rate))
        if not (last < math.huge) then error("end to end: the loss of step " .. step .. " is no number", 0) end
        first = first or last
        host.status(string.format("end to end: %d of %d batches, loss %.4f", step, steps, last))
    end
    host.status ""
    local made = {}
    for i, tensor in ipairs(p.training.tensors) do
        if found[i] then made[tensor.name] = { shape = tensor.shape, bytes = student:get(i) } end
    end
    return made, first, last
end

return end_to_end
