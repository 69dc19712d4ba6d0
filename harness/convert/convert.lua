-- The command convert: lookup FFNs that stand in for those of a trained dense model. They are fitted layer by layer to
-- what texts make of the layers before, which are converted already; then the model learns end to end.
local checkpoint = require "gen.schema.checkpoint_names"
local compiled_model = require "harness.calls.compiled_model"
local end_to_end = require "harness.convert.end_to_end"
local figures = require "gen.plan.figures"
local fitting = require "harness.convert.fitting"
local host = require "host"
local layers = require "harness.convert.layers"
local machines = require "gen.machines.list"
local evaluation = require "harness.convert.evaluation"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local module = require "convert"
local process = require "process"
local rounding = require "harness.train.rounding"
local activations = require "harness.convert.activations"
local runnable = require "harness.base.runnable"
local same = require "gen.schema.same"
local teacher_file = require "harness.convert.teacher"
local batches = require "harness.convert.batches"
local validated = require "gen.schema.validated"
local weights = require "weights"
local whole_family = require("gen.families.model.family").whole

local convert = {}

local much = 0.25 -- unexplained variance that is worth a warning
local rounded = { tables = "i8" } -- of converted layers before one that is fitted, where the CPU sums bytes
local most_loss = 0.05 -- nats a token or 1 - mean cosine

-- The keys of a model that may be others than the dense one's: those of blocks are compared block by block.
local free = { name = true, layers = true, ffn = true, tokenizer = true }
local of_blocks = { "d", "heads", "kv_heads", "head_dim", "d_in" }
for _, key in ipairs(of_blocks) do
    free[key] = true
end

-- What `tokenizer` says of ids but for the places of its files.
local function without_files(tokenizer)
    local rest = {}
    for key, value in pairs(tokenizer) do
        if key ~= "file" and key ~= "merges" and key ~= "ends" then rest[key] = value end
    end
    return rest
end

-- Raises one line unless `target` is `dense` with other FFNs. Returns the numbers of the blocks that can be converted.
local function check(target, dense)
    local ours, theirs, list = activations.blocks(target), activations.blocks(dense), {}
    local function refuse(key, value, rule) validated.refuse(target, { key }, value, rule) end
    local function compare(key, own, other, where)
        if same(own, other) then return end
        if type(own) == "table" or type(other) == "table" then
            refuse(key, nil, "must be the same as in --dense" .. where)
        elseif other == nil then
            refuse(key, own, "must be absent, as in --dense" .. where)
        end
        refuse(key, own, string.format("must be %s, as in --dense%s", other, where))
    end
    -- What stays beside a lookup FFN are some of the neurons of the other one.
    local function check_beside(own, whole, where)
        for _, key in ipairs { "kind", "activation" } do
            if own[key] ~= whole[key] then
                local rule = string.format("must be %s, as the FFN in --dense%s", whole[key], where)
                validated.refuse(target, { "ffn", "dense", key }, own[key], rule)
            end
        end
        if own.f >= whole.f then
            local rule = string.format("must be less than %d, as the FFN in --dense has%s", whole.f, where)
            validated.refuse(target, { "ffn", "dense", "f" }, own.f, rule)
        end
    end
    for _, m in ipairs { target, dense } do
        if m.embedding.projected then
            local rule = "must be absent while FFNs are converted; the converted weights pack with it, too"
            validated.refuse(m, { "embedding", "projected" }, true, rule)
        end
    end
    if #ours ~= #theirs then refuse("layers", #ours, string.format("must be %d, as in --dense", #theirs)) end
    for _, row in ipairs(whole_family.model.keys) do
        if not free[row.key] then compare(row.key, target[row.key], dense[row.key], "") end
    end
    if target.tokenizer and dense.tokenizer then
        compare("tokenizer", without_files(target.tokenizer), without_files(dense.tokenizer), "")
    end
    for i, block in ipairs(ours) do
        local where = ", layer " .. i - 1
        for _, key in ipairs(of_blocks) do
            compare(key, block[key], theirs[i][key], where)
        end
        if block.ffn.kind == "lookup" and theirs[i].ffn.kind ~= "lookup" then
            local rule = "must be absent where an FFN is converted: Q, K, V and P stay"
            if block.ffn.qkv then validated.refuse(target, { "ffn", "qkv" }, true, rule) end
            if block.ffn.dense then check_beside(block.ffn.dense, theirs[i].ffn, where) end
            list[#list + 1] = i
        else
            compare("ffn", block.ffn, theirs[i].ffn, where .. ": only lookup FFNs take the place of others")
        end
    end
    if #list == 0 then refuse("ffn", nil, "has no lookup FFN where --dense has another one") end
    return list
end

-- What is written for the tensors of plan `p`: those in `made`, by name, and else the dense model's. c.spell: what its
-- checkpoint calls a tensor; c.found: those that it has; c.renamed: names there that differ.
local function tensors_of(p, made, c)
    local list = {}
    for _, tensor in ipairs(activations.tensors(p)) do
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

-- Names of second norms that are others beside lookup FFNs.
local function renamed_of(target, dense, ours, theirs)
    local renamed = {}
    for i, block in ipairs(ours) do
        local function second(m, ffn)
            return checkpoint.norm(setmetatable({ ffn = ffn }, { __index = m }), i - 1, 2, block.d)
        end
        local own, other = second(target, block.ffn), second(dense, theirs[i].ffn)
        renamed[own.gain.tensor], renamed[own.offset.tensor] = other.gain.tensor, other.offset.tensor
    end
    return renamed
end

-- The plan of model `m` with tables and projection of these types, nil: in float32; each time another one.
local function plan_of(c, m, types) return whole_family.build(m, c.sets, types or {}, nil) end

local function open(c, p, path)
    return compiled_model.of(p, { weights = path, cc = c.options.cc, cflags = c.options.cflags, threads = 1 })
end

-- A file in a temporary folder with the weights of plan `p`, of which some are in `made`, nil: in c.made.
local function written(c, p, name, made)
    local path = c.folder .. "/" .. name .. ".safetensors"
    assert(module.write(path, c.path, tensors_of(p, made or c.made, c)))
    return path
end

-- Fits block number `i` behind the first ones of `blocks`, and prints how well. Its tensors go to c.made.
local function fit_block(c, i, blocks)
    local p = activations.plan_until(c.target, blocks, i, c.sets, c.target_path, c.tables)
    local probed = setmetatable({ ffn = activations.nothing }, { __index = c.blocks[i] })
    for _, tensor in ipairs(activations.ffn_tensors(c.target, probed, i - 1)) do
        local count = 4
        for _, size in ipairs(tensor.shape) do
            count = count * size
        end
        c.made[tensor.name] = { shape = tensor.shape, bytes = ("\0"):rep(count) }
    end
    local model = activations.open(p, written(c, p, "until_" .. i), c.options)
    local dense = teacher_file.ffn(c.dense, c.dense_blocks[i], i - 1, c)
    -- Where some of its neurons stay, so does the bias of what they make.
    if c.blocks[i].ffn.dense then dense.output_bias = nil end
    local r, tensors = fitting.run(c, i - 1, c.blocks[i], dense, c.text, function(batch)
        return activations.states(p, model, batch.ids)
    end)
    if not (math.abs(r.unexplained) < math.huge) then
        error(string.format("%s: layer %d: its outputs leave the range of float32", c.options.from, i - 1), 0)
    end
    for name, tensor in pairs(tensors) do
        c.made[name] = tensor
    end
    host.print(
        string.format(
            "%5d %12.4f %9.1f%% %8.2f %8s %8.1f%s",
            i - 1,
            r.unexplained,
            100 * r.used,
            r.entropy,
            r.missed and string.format("%.3f", r.missed) or "-",
            r.seconds,
            r.unexplained > much and "   warning: more than a quarter of the variance is lost" or ""
        )
    )
    collectgarbage()
end

-- What the model with the lookup FFNs of the blocks `numbers` loses by the metric.
local function loss_of(c, numbers)
    local m = layers.model(c.target, layers.mixed(c.blocks, c.dense_blocks, numbers), c.target_path)
    local p = plan_of(c, m, c.rounds)
    local path = written(c, p, "some")
    local _, loss = c.metric(p, open(c, p, path))
    host.remove(path)
    return loss
end

-- Fits each of the blocks `numbers` behind dense ones, and returns as many of them as lose at most --most-loss.
local function best_of(c, numbers)
    local losses, list = {}, {}
    for _, i in ipairs(numbers) do
        fit_block(c, i, c.dense_blocks)
        losses[i], list[#list + 1] = loss_of(c, { i }), i
        host.print(string.format("%5d   alone it loses %.4f", i - 1, losses[i]))
    end
    table.sort(list, function(a, b)
        if losses[a] ~= losses[b] then return losses[a] < losses[b] end
        return a < b
    end)
    local chosen = layers.most(list, c.most_loss, function(some)
        local loss = loss_of(c, some)
        host.print(string.format("  %d of %d together lose %.4f", #some, #list, loss))
        return loss
    end)
    if #chosen == 0 then
        local form = "--most-loss: %g: the layer that loses least, %d, loses %.4f"
        error(form:format(c.most_loss, list[1] - 1, losses[list[1]]), 0)
    end
    table.sort(chosen)
    local names = {}
    for at, i in ipairs(chosen) do
        names[at] = tostring(i - 1)
    end
    host.print("layers " .. table.concat(names, ","))
    return chosen
end

-- What everything below works on, and the numbers of the blocks that can be converted.
local function context(path, options)
    local rounds = options.quantise and rounding.types(options.quantise) or {}
    local sets = runnable.sets(options.isa, whole_family.isa_types(rounds))
    local runs_bytes = runnable.runs(sets[#sets], whole_family.isa_types(rounded))
    local target, dense = model_file.load(path), model_file.load(options.dense)
    for file, m in pairs { [path] = target, [options.dense] = dense } do
        if not whole_family.model.claims(m) then error(file .. ": must be a whole model, which has embedding", 0) end
    end
    local numbers = check(target, dense)
    local c = {
        options = options,
        path = options.from,
        sets = machines.sets({ sets[#sets] }, runnable.machine(options)),
        -- Rows of i8 are a fourth of what a token gathers, and make states that are hardly other ones.
        tables = rounds.tables or runs_bytes and rounded.tables or nil,
        rounds = rounds,
        target = target,
        target_path = path,
        dense = dense,
        blocks = activations.blocks(target),
        dense_blocks = activations.blocks(dense),
        made = {},
        folder = process.temporary_directory(),
        most_loss = tonumber(options["most-loss"]) or most_loss,
    }
    local message
    c.found, message = weights.tensors(options.from)
    if not c.found then error(message, 0) end
    c.spell = checkpoint.spelling(dense, c.found)
    c.renamed = renamed_of(target, dense, c.blocks, c.dense_blocks)
    c.dense_plan = plan_of(c, dense)
    if options.text and not c.dense_plan.facts then
        error(options.dense .. ": tokenizer: is missing: --text needs one; --ids takes ids", 0)
    end
    if options.ids and not c.dense_plan.causal then
        misuse("--ids: " .. options.ids .. ": is for decoders: --text has the sequences of an encoder, its lines")
    end
    c.teacher = open(c, c.dense_plan, options.from)
    return c, numbers
end

-- Prints the metric of the converted model, which is called `when`, and returns what it loses.
local function report(c, p, path, when)
    local line, loss = c.metric(p, open(c, p, path))
    host.print(when .. ": " .. line)
    return loss
end

-- Lets model `m`, whose weights are in the file `path`, learn end to end. Returns its tensors as c.made has them, or
-- nil where that cannot be.
local function distilled(c, m, path)
    local start, trained = process.cpu(), plan_of(c, m, { training = true })
    local obstacle = end_to_end.obstacle(trained)
    if obstacle then
        host.note("lookupc: not distilled end to end: " .. obstacle)
        return nil
    end
    local function plan(own) return plan_of(c, own) end
    local function dense_file(p) return written(c, p, "dense", {}) end
    local made, first, last = end_to_end.run(c, trained, path, c.text, plan, dense_file)
    local line = "end to end: loss %.4f in the first batch, %.4f in the last one, %.1f seconds"
    host.print(string.format(line, first, last, process.cpu() - start))
    return setmetatable(made, { __index = c.made })
end

function convert.run(path, options)
    local start = process.cpu()
    local c, numbers = context(path, options)
    local auto, possible = options.layers == "auto", #numbers
    if not auto then numbers = layers.chosen(options.layers, numbers, path) end
    c.text = batches.read(c.teacher, c.dense_plan, options, fitting.batch_tokens)
    c.metric = evaluation.new(c.dense_plan, c.teacher, c.text.test)
    host.print(
        string.format(
            "%s tokens in %d sequences, %d of them held out",
            figures.grouped(c.text.total),
            c.text.sequences,
            c.text.held
        )
    )
    host.print "layer  unexplained  rows used  entropy   missed  seconds"
    if auto then
        numbers = best_of(c, numbers)
    else
        local blocks = layers.mixed(c.blocks, c.dense_blocks, numbers)
        for _, i in ipairs(numbers) do
            fit_block(c, i, blocks)
        end
    end
    local m, some = c.target, #numbers < possible
    if some then m = layers.model(c.target, layers.mixed(c.blocks, c.dense_blocks, numbers), path) end
    local p = plan_of(c, m, c.rounds)
    local fitted = written(c, p, "fitted")
    local loss, best = report(c, p, fitted, "fitted"), c.made
    local learned = options["end-to-end"] > 0 and distilled(c, m, fitted)
    if learned then
        if report(c, p, written(c, p, "learned", learned), "end to end") <= loss then
            best = learned
        else
            host.print "end to end: no better on held-out text: the fitted weights are written"
        end
    end
    assert(module.write(options.o, options.from, tensors_of(p, best, c)))
    host.print(string.format("wrote %s, %.0f seconds of a CPU", options.o, process.cpu() - start))
    if some then
        layers.write(m, path, layers.path(options.o))
        host.print("wrote " .. layers.path(options.o) .. ": " .. #numbers .. " of " .. possible .. " FFNs look up")
    end
    return 0
end

return convert
