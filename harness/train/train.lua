-- The command train: a whole model from text, with the training code that lookupc emits for it.
local compile = require "harness.base.compile"
local constants = require "gen.families.model.training.constants"
local corpus = require "harness.train.corpus"
local digest_of = require "gen.host.digest"
local emit = require "gen.emit.emit"
local figures = require "gen.plan.figures"
local host = require "host"
local learning_rates = require "harness.train.learning_rates"
local misuse = require "gen.schema.misuse"
local model_file = require "gen.families.model_file"
local process = require "process"
local request = require "gen.request.request"
local rounding = require "harness.train.rounding"
local run = require "harness.train.run"
local runnable = require "harness.base.runnable"
local settings = require "harness.train.settings"
local tokenizer = require "harness.families.tokenizer.family"
local tokenizer_plan = require "gen.families.tokenizer.plan"
local train = require "train"

local training = {}

local patience = 10 -- seconds
local of_lookups = { "table-rate", "table-optimiser", "quantise", "projection-rate" }
local products = { type = "bf16", activations = "bf16" } -- of --type bf16
local masked = 0.15 -- share of tokens that an encoder has to find

local function refuse(path, key, rule) error(string.format("%s: %s: %s", path, key, rule), 0) end

-- Joins the processes that mpirun started: the number of this one from 0, and how many there are. Without any: 0, 1.
local function join()
    if not (process.variable "OMPI_COMM_WORLD_SIZE" or process.variable "PMI_SIZE") then return 0, 1 end
    local path = process.beside "lookupc-mpi.so"
    if host.kind(path) ~= "file" then
        error(path .. ": is missing: training under mpirun needs it; build lookupc with cmake -DLOOKUPC_MPI=ON", 0)
    end
    return assert(train.join(path))
end

-- The files of a run whose weights become `output`.
function training.files(options)
    return {
        output = options.o,
        checkpoint = options.o .. ".resume",
        log = options.log or options.o:gsub("%.safetensors$", "") .. ".jsonl",
        html = options.html,
    }
end

-- The plan of the model file for the best instruction set of this CPU, with its training code.
local function plan_of(path, options)
    local m, family = request.model(path, {})
    if not family.training or not m.output then
        error(string.format("%s: is a %s: train takes whole models with output.head", path, family.noun), 0)
    end
    local sets = runnable.sets(options.isa, family.isa_types(options.type == "bf16" and products or {}))
    local p = request.plan(path, { sets[#sets] }, { training = true })
    if not (p.model.output and p.model.output.head) then
        refuse(path, "output.head", "is missing: a model learns by the logits of a head")
    end
    emit.add_training(p, options.type)
    return p
end

-- The plan of the tokenizer in the file `path`, that of --tokenizer, for a model called `name`.
local function plan_of_file(name, path)
    if path:find "%.txt$" then
        local rule = "must end in .json or .model; a vocab.txt needs tokenizer.lower of the model file"
        misuse("--tokenizer: " .. path .. ": " .. rule)
    end
    local good, p = pcall(function()
        local file = assert(host.absolute(path))
        return tokenizer_plan.build(model_file.validate({ name = name, tokenizer = { file = file } }, "", path))
    end)
    return good and p or error("--tokenizer: " .. p, 0)
end

-- The tokenizer of model `m`, or of --tokenizer, and its plan.
local function tokenizer_of(m, path, options)
    if options.tokenizer and m.tokenizer then
        misuse("--tokenizer: " .. options.tokenizer .. ": cannot be given beside tokenizer of " .. path)
    elseif not options.tokenizer and not m.tokenizer then
        refuse(path, "tokenizer", 'is missing, or --tokenizer: text needs one, such as tokenizer = { kind = "bytes" }')
    end
    local p = options.tokenizer and plan_of_file(m.name, options.tokenizer) or tokenizer_plan.build(m)
    local opened = tokenizer.opened(p, options)
    if p.facts.pieces > m.vocab then
        refuse(path, "vocab = " .. m.vocab, "the tokenizer has " .. p.facts.pieces .. " pieces")
    end
    return opened, p
end

-- The tensors of `p` as train.open wants them.
local function tensors_of(p, s)
    local list, types = {}, { tables = s.tables_type, projection = s.projection_type }
    for i, tensor in ipairs(p.training.tensors) do
        local how = learning_rates.of(tensor.kind, tensor.projection, s.projection_rate)
        list[i] = {
            name = tensor.name,
            shape = tensor.shape,
            at = tensor.at,
            rows = tensor.rows,
            columns = tensor.columns,
            pitch = tensor.pitch or tensor.columns,
            tables = tensor.kind == "tables" and tensor.shape[2] or 0,
            state_at = tensor.state_at or 0,
            first_table = tensor.first_table or 0,
            rate = how.factor,
            decays = how.decays,
            rounding = rounding.of(tensor, types),
            means = tensor.init.means or { 0.0 },
            deviation = tensor.init.deviation,
            layer = tensor.layer,
        }
    end
    return list
end

local function job_of(p, s, own, texts, library)
    local names = p.variants[1].training.names
    local job = {
        library = library,
        step = names.step,
        loss = names.loss,
        workspace = names.workspace,
        apply = names.apply,
        flush_denormals = p.names.flush_denormals,
        parameters = p.training.parameters,
        gradients = p.training.gradients,
        table_rows = p.training.table_rows,
        constants = constants.bytes(p),
        context = s.context,
        batch = s.batch // own.ranks,
        threads = own.threads,
        seed = s.seed,
        train = texts.train,
        valid = texts.valid,
        mask = s.mask or 0,
        vocab = p.model.vocab,
        masked = s.masked or 0.0,
        dropout = s.dropout,
        decay = learning_rates.decay,
        adam = s.table_optimiser == "adam",
        tensors = tensors_of(p, s),
        first_weights = p.training.first_weights,
        samples = p.training.by_tables and s.attention ~= "exact",
    }
    for key, value in pairs(learning_rates.optimiser) do
        job[key] = value
    end
    return job
end

-- The id that stands for a token to be found: that of --mask-id, or the first one that is no piece of the tokenizer.
local function mask_of(p, path, options, pieces)
    local mask, vocab = options["mask-id"] or pieces, p.model.vocab
    if mask < vocab then return mask end
    if options["mask-id"] then
        misuse(string.format("--mask-id: %d: must be below vocab = %d of %s", mask, vocab, path))
    end
    refuse(path, "vocab = " .. vocab, "leaves no id for masked tokens: one more than the tokenizer has, or --mask-id")
end

-- Raises one line for a --valid with less than a window of `context` tokens; a part of --text may be too short for any.
local function check_validation(tokens, context, options)
    if tokens > context then return end
    local rule = string.format("%d tokens to validate on: a window has --context = %d and one more", tokens, context)
    if options.valid then error(string.format("--valid: %s: has %s", options.valid[1], rule), 0) end
    host.note("lookupc: there are no validations: --text leaves " .. rule)
end

-- The texts of the options as ids, and how many pieces the tokenizer has; raises one line for too short ones.
local function texts_of(p, path, options, s)
    local opened, of = tokenizer_of(p.model, path, options)
    local texts = corpus.read(opened, of.facts, of.ends and of.ends[1], options)
    if #texts.train // 4 <= s.context then
        error(
            string.format(
                "--text: %s: has %d tokens to train on: must be more than --context = %d",
                options.text[1],
                #texts.train // 4,
                s.context
            ),
            0
        )
    end
    check_validation(#texts.valid // 4, s.context, options)
    return texts, of.facts.pieces
end

-- Takes as many threads as the run had that is resumed, and says where the bits of its results will be others: with
-- tables sums depend on the number of threads, and everything on the instruction set.
local function resume_as(p, position, own, options)
    if not options.threads and own.ranks == 1 then own.threads = math.min(position.parts, position.settings.batch) end
    local function note(now, before)
        if now == before or own.rank ~= 0 then return end
        host.note(string.format("lookupc: --resume: on %s instead of %s the last bits of sums differ", now, before))
    end
    local parts = own.threads * own.ranks
    if p.training.table_rows > 0 and parts ~= position.parts then
        note(figures.plural(parts, "thread") .. " of all ranks", position.parts)
    end
    note(p.variants[1].isa.name, position.isa)
end

local function trained(path, options, rank, ranks)
    local files = training.files(options)
    local p = plan_of(path, options)
    local s, own = settings.of(options, p.context)
    own.rank, own.ranks = rank, ranks
    if s.batch % own.ranks ~= 0 then
        misuse(string.format("--batch: %d: must be a multiple of the %d ranks", s.batch, own.ranks))
    end
    own.threads = math.min(own.threads, s.batch // own.ranks)
    if not options.resume and host.kind(files.checkpoint) then
        error(files.checkpoint .. ": is of an unfinished run: --resume goes on with it; or remove the file", 0)
    end
    if options.resume and not host.kind(files.checkpoint) then
        error("--resume: " .. files.checkpoint .. ": is missing: there is no unfinished run", 0)
    end
    for _, name in ipairs(p.training.table_rows == 0 and of_lookups or {}) do
        if options[name] then misuse(string.format("--%s: %s: %s has no LookupFFN", name, options[name], path)) end
    end
    local exact = options.attention
    if exact and not p.training.by_tables then
        misuse(string.format('--attention: %s: attention of %s has no tables: kind = "lsh"', exact, path))
    end
    local position = options.resume and run.position(files.checkpoint) or nil
    if not p.causal then
        s.masked = s.masked or masked
    elseif s.masked or options["mask-id"] then
        local option = s.masked and "masked" or "mask-id"
        misuse(string.format("--%s: %s: is for encoders: %s predicts the next token", option, options[option], path))
    end
    local texts, pieces = texts_of(p, path, options, s)
    if s.masked then s.mask = mask_of(p, path, options, pieces) end
    s.model, s.text = p.digest:sub(1, 16), digest_of({ texts.train, texts.valid }):sub(1, 16)
    if position then
        settings.check(files.checkpoint, s, position.settings)
        resume_as(p, position, own, options)
    end
    for _, file in pairs(own.rank == 0 and files or {}) do
        assert(host.check_output(file)) -- by now all inputs are known, the tokenizer's files among them
    end
    host.status "compiling"
    local library = compile.library({ p }, process.temporary_directory(), options.cc, options.cflags)
    host.status ""
    local facts = {
        model = p.model.name,
        lookupc = host.version,
        parameters = p.training.parameters,
        isa = p.variants[1].isa.name,
        threads = own.threads,
        ranks = own.ranks,
        tokens = #texts.train // 4,
        validation_tokens = #texts.valid // 4,
    }
    return run.train(job_of(p, s, own, texts, library), s, own, files, facts, position)
end

-- Trains the model of the file `path`. Returns the last line of the log, or nil where another rank says it.
function training.run(path, options)
    local rank, ranks = join()
    if rank == 0 then return trained(path, options, rank, ranks) end
    local good, message = pcall(trained, path, options, rank, ranks)
    if good then return nil end
    process.run { "sleep", tostring(patience) } -- the first rank has mostly the same to say, and ends this one
    error(message, 0)
end

return training
