-- The command convert: lookup FFNs that stand in for those of a trained dense model, fitted layer by layer to what
-- texts make of the layers before, which are converted already.
local checkpoint = require "gen.model.checkpoint_names"
local families = require "gen.families.list"
local figures = require "gen.plan.figures"
local host = require "host"
local kernels = require "harness.convert.kernels"
local model_file = require "gen.families.model_file"
local module = require "convert"
local opened = require "harness.families.whole.opened"
local process = require "process"
local recording = require "harness.convert.recording"
local runnable = require "harness.base.runnable"
local validated = require "gen.model.validated"
local weights = require "weights"
local whole = require "whole"
local whole_family = require "gen.families.whole.family"
local library = require "harness.whole.library"

local convert = {}

local batch_tokens = 1024 -- of a step
local most_tokens = 4096 -- of a call
local held_out, most_held = 0.05, 20000 -- share of the text that the figures are of, and most tokens
local most_text = 1 << 30
local sweeps, ridge, most_collected = 5, 10, 100000
local table_rate, projection_share = 2e-3, 0.035 -- the projection's rate is a share of its random start
local warm_up = 0.03
local much = 0.25 -- unexplained variance that is worth a warning

-- Numbers that differ for different seeds, for the order of texts.
local function shuffled(list, seed)
    local state = (seed * 2654435761 + 1) & 0xffffffff
    for i = #list, 2, -1 do
        state = (state * 1103515245 + 12345) & 0x7fffffff
        local j = (state >> 8) % i + 1
        list[i], list[j] = list[j], list[i]
    end
    return list
end

-- The sequences of ids in the text file: its lines for an encoder, windows of the context for a decoder; their number
-- of tokens.
local function sequences_of(model, p, options)
    local list, total = {}, 0
    local function add(ids)
        if #ids > 0 then
            list[#list + 1], total = ids, total + #ids
        end
    end
    local text = assert(host.read(options.text, most_text))
    if p.causal then
        local ids, step = opened.ids(model, p, text, options.text, true), math.min(p.context, 512)
        for first = 1, #ids, step do
            add(table.move(ids, first, math.min(first + step - 1, #ids), 1, {}))
        end
    else
        local number = 0
        for line in text:gmatch "[^\n]+" do
            number = number + 1
            add(opened.truncated(p, opened.ids(model, p, line, options.text .. ":" .. number)))
        end
    end
    return shuffled(list, options.seed), total
end

-- Batches of at least `batch_tokens` tokens of sequences first … last.
local function batches_of(list, first, last)
    local batches, batch, tokens = {}, {}, 0
    for i = first, last do
        batch[#batch + 1], tokens = list[i], tokens + #list[i]
        if tokens >= batch_tokens or i == last then
            batches[#batches + 1] = { ids = batch, tokens = tokens }
            batch, tokens = {}, 0
        end
    end
    return batches
end

-- Raises one line unless `target` is `dense` with other FFNs. Returns the numbers of the blocks that are converted.
local function check(target, dense)
    local ours, theirs, list = recording.blocks(target), recording.blocks(dense), {}
    local function refuse(m, key, value, rule) validated.refuse(m, { key }, value, rule) end
    if #ours ~= #theirs then refuse(target, "layers", #ours, string.format("must be %d, as in --dense", #theirs)) end
    for _, key in ipairs { "vocab", "checkpoint", "skip", "parallel" } do
        if target[key] ~= dense[key] then
            refuse(target, key, target[key], string.format("must be %s, as in --dense", tostring(dense[key])))
        end
    end
    if not dense.skip or dense.parallel or not dense.norm or dense.norm.place ~= "pre" then
        refuse(
            dense,
            "norm",
            nil,
            "convert takes serial blocks with skip connections and norms before attention and FFN"
        )
    end
    for i, block in ipairs(ours) do
        if block.d ~= theirs[i].d then
            refuse(target, "d", block.d, string.format("must be %d in layer %d, as in --dense", theirs[i].d, i - 1))
        end
        if block.ffn.kind == "lookup" and theirs[i].ffn.kind ~= "lookup" then list[#list + 1] = i end
    end
    if #list == 0 then refuse(target, "ffn", nil, "has no lookup FFN where --dense has another one") end
    return list
end

-- What is written for the tensors of plan `p`: those in `made`, by name, and else the dense model's. `spell`: what its
-- checkpoint calls a tensor; `found`: those that it has; `renamed`: names there that differ.
local function tensors_of(p, made, c)
    local list = {}
    for _, tensor in ipairs(recording.tensors(p)) do
        local own = made[tensor.name]
        local from = c.spell(c.renamed[tensor.name] or tensor.name)
        if own then
            list[#list + 1] = { name = tensor.name, shape = own.shape, bytes = own.bytes }
        elseif not tensor.optional or c.found[from] then
            list[#list + 1] = { name = tensor.name, shape = tensor.shape, from = from }
        end
    end
    return list
end

-- The dense FFN of block number `i` and its norm, out of the checkpoint.
local function dense_of(m, block, i, c)
    local function read(view)
        local spelled = setmetatable({ tensor = c.spell(view.tensor) }, { __index = view })
        local copy = {}
        for _, key in ipairs { "shape", "rows", "columns", "group", "stride", "offset", "transposed" } do
            copy[key] = view[key]
        end
        copy.tensor = spelled.tensor
        local bytes, message = module.read(c.path, copy)
        if bytes == nil then error(message, 0) end
        return bytes or nil
    end
    local own = setmetatable({ ffn = block.ffn, d = block.d }, { __index = m })
    local maps = checkpoint.inputs(own, i - 1)
    local output = checkpoint.linear(own, i - 1, "O", block.d, block.ffn.f)
    local norm = checkpoint.norm(own, i - 1, 2, block.d)
    local gated = block.ffn.kind == "glu"
    return {
        d = block.d,
        f = block.ffn.f,
        activation = block.ffn.activation,
        rms = m.norm.kind == "rmsnorm",
        eps = m.norm.eps,
        input = assert(read(maps[1].weight)),
        input_bias = read(maps[1].bias),
        gate = gated and assert(read(maps[2].weight)) or nil,
        gate_bias = gated and read(maps[2].bias) or nil,
        output = assert(read(output.weight)),
        output_bias = read(output.bias),
        gain = assert(read(norm.gain)),
        offset = m.norm.kind == "layernorm" and read(norm.offset) or nil,
    }
end

-- Fits and measures block number `i`: { unexplained, used, entropy, seconds }.
local function fit_block(c, i, states)
    local options, start = c.options, process.clock()
    local block = c.blocks[i]
    local dense = dense_of(c.dense, c.dense_blocks[i], i, c)
    local fit, p = kernels.fit(block, dense, c.sets, most_tokens, options)
    local shape = p.shape
    local deviation = shape.kind == "bh4" and (shape.block * shape.padded) ^ -0.5 or shape.d ^ -0.5
    fit:random(options.seed + i, deviation)
    local train, test = c.train, c.test
    local function say(step, steps)
        host.status(string.format("layer %d: %d of %d batches, %.0f s", i - 1, step, steps, process.clock() - start))
    end
    fit:centre(states(train[1]))
    if options.method == "hash-w" then
        local transposed = {} -- rows of O: [f][d] out of [d][f]
        local values = whole.floats(dense.output)
        for row = 1, dense.f do
            local list = {}
            for column = 1, dense.d do
                list[column] = values[(column - 1) * dense.f + row]
            end
            transposed[row] = string.pack(("<" .. ("f"):rep(dense.d)), table.unpack(list))
        end
        fit:hash_rows(dense.input, table.concat(transposed))
    elseif options.quick then
        local collected, number = 0, 0
        while number < #train and collected < most_collected do
            number = number + 1
            assert(fit:collect(states(train[number])))
            collected = collected + train[number].tokens
            say(number, #train)
        end
        fit:solve(sweeps, ridge)
    else
        local steps = math.max(1, options.tokens // batch_tokens)
        for step = 1, steps do
            local share = step < warm_up * steps and step / (warm_up * steps) or (steps - step + 1) / steps
            fit:step(
                states(train[(step - 1) % #train + 1]),
                step,
                share * projection_share * deviation,
                share * table_rate
            )
            if step % 8 == 0 then say(step, steps) end
        end
    end
    for _, batch in ipairs(test) do
        fit:measure(states(batch))
    end
    host.status ""
    local unexplained, used, entropy = fit:figures()
    for _, tensor in ipairs(recording.ffn_tensors(c.target, block, i - 1)) do
        c.made[tensor.name] = { shape = tensor.shape, bytes = fit:field(tensor.field) }
    end
    return { unexplained = unexplained, used = used, entropy = entropy, seconds = process.clock() - start }
end

-- Mean cosine of the vectors that both models make of the sequences.
local function mean_cosine(one, other, batches, width)
    local sum, count = 0, 0
    for _, batch in ipairs(batches) do
        local a, b =
            whole.floats(assert(one:encode_batch(batch.ids))), whole.floats(assert(other:encode_batch(batch.ids)))
        for row = 0, #batch.ids - 1 do
            local ab, aa, bb = 0, 0, 0
            for k = row * width + 1, (row + 1) * width do
                ab, aa, bb = ab + a[k] * b[k], aa + a[k] * a[k], bb + b[k] * b[k]
            end
            sum, count = sum + ab / math.sqrt(aa * bb), count + 1
        end
    end
    return sum / count
end

local function plan_of(m, sets) return families.get("whole").build(m, sets, {}, nil) end

function convert.run(path, options)
    local sets = runnable.sets(options.isa, whole_family.isa_types {})
    sets = { sets[#sets] }
    local target, dense = model_file.load(path), model_file.load(options.dense)
    for file, m in pairs { [path] = target, [options.dense] = dense } do
        if families.of(m, {}).name ~= "whole" then error(file .. ": must be a whole model, which has embedding", 0) end
    end
    local numbers = check(target, dense)
    local dense_plan = plan_of(dense, sets)
    if not dense_plan.facts then error(options.dense .. ": tokenizer: is missing: --text needs one", 0) end
    local teacher =
        library.of(dense_plan, { weights = options.from, cc = options.cc, cflags = options.cflags, threads = 1 })
    local list, total = sequences_of(teacher, dense_plan, options)
    local first = math.max(1, math.floor(math.min(held_out, most_held / total) * #list))
    if #list < 20 or total < 20 * batch_tokens then
        error(string.format("%s: has %d tokens: at least %d are needed", options.text, total, 20 * batch_tokens), 0)
    end
    local found, message = weights.tensors(options.from)
    if not found then error(message, 0) end
    local c = {
        options = options,
        path = options.from,
        sets = sets,
        target = target,
        dense = dense,
        blocks = recording.blocks(target),
        dense_blocks = recording.blocks(dense),
        found = found,
        spell = checkpoint.spelling(dense, found),
        test = batches_of(list, 1, first),
        train = batches_of(list, first + 1, #list),
        made = {},
        renamed = {},
    }
    for i, block in ipairs(c.blocks) do
        local function second(m, ffn)
            return checkpoint.norm(setmetatable({ ffn = ffn }, { __index = m }), i - 1, 2, block.d)
        end
        local ours, theirs = second(target, block.ffn), second(dense, c.dense_blocks[i].ffn)
        c.renamed[ours.gain.tensor], c.renamed[ours.offset.tensor] = theirs.gain.tensor, theirs.offset.tensor
    end
    host.print(string.format("%s tokens in %d sequences, %d of them held out", figures.grouped(total), #list, first))
    host.print "layer  unexplained  rows used  entropy  seconds"
    local folder = process.temporary_directory()
    for _, i in ipairs(numbers) do
        local p = recording.plan_until(target, i, sets, path)
        local probed = setmetatable({ ffn = recording.nothing }, { __index = c.blocks[i] })
        for _, tensor in ipairs(recording.ffn_tensors(target, probed, i - 1)) do
            local count = 4
            for _, size in ipairs(tensor.shape) do
                count = count * size
            end
            c.made[tensor.name] = { shape = tensor.shape, bytes = ("\0"):rep(count) }
        end
        local partial = folder .. "/until_" .. i .. ".safetensors"
        assert(module.write(partial, options.from, tensors_of(p, c.made, c)))
        local model = recording.open(p, partial, options)
        local r = fit_block(c, i, function(batch) return recording.states(p, model, batch.ids) end)
        host.print(
            string.format(
                "%5d %12.4f %9.1f%% %8.2f %8.1f%s",
                i - 1,
                r.unexplained,
                100 * r.used,
                r.entropy,
                r.seconds,
                r.unexplained > much and "   warning: more than a quarter of the variance is lost" or ""
            )
        )
        collectgarbage()
    end
    local target_plan = plan_of(target, sets)
    assert(module.write(options.o, options.from, tensors_of(target_plan, c.made, c)))
    host.print("wrote " .. options.o)
    if dense_plan.output.pool then
        local student =
            library.of(target_plan, { weights = options.o, cc = options.cc, cflags = options.cflags, threads = 1 })
        host.print(
            string.format(
                "mean cosine of the vectors of held-out lines to those of the dense model: %.4f",
                mean_cosine(teacher, student, c.test, dense_plan.widths.out)
            )
        )
    end
    return 0
end

return convert
