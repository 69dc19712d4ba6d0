-- Compiles the emitted blocks of a transformer and runs them on this CPU: for run, and for verify and bench against the
-- reference.
local block_lookup = require "gen.families.model.blocks.block_lookup"
local budget = require "harness.verify.budget"
local misuse = require "gen.model.misuse"
local runner = require "transformer"
local checkpoint = require "gen.model.checkpoint_names"
local compile = require "harness.base.compile"
local family = require("gen.families.model.family").blocks
local fuse_weights = require "gen.families.model.blocks.fuse_weights"
local input = require "harness.verify.input"
local lookup_inputs = require "harness.families.model.blocks.lookup_inputs"
local packing = require "gen.families.packing"
local process = require "process"
local runnable = require "harness.base.runnable"
local seen = require "harness.families.model.blocks.seen"
local weights = require "weights"
local packed = require "harness.families.lookup.packed"
local verified = require "harness.report.verified"

local transformer = {}

transformer.unsaid = {
    "norm.eps",
    "norm.place",
    "attention.rope.theta",
    "attention.rope.share",
    "attention.rope.pairs",
    "attention.scale",
    "attention.window",
    "parallel",
    "ffn.activation",
    "ffn.score",
    "ffn.projection.decay",
    "ffn.scale",
    "ffn.neighbours",
}

-- The job that runner.run wants, for calls as ways_of makes them.
local function run_job(p, library, blob_path, way)
    return {
        library = library,
        bind = p.names.bind,
        decode = p.names.decode,
        prefill = p.names.prefill,
        encode = p.names.encode,
        encode_batch = p.names.encode_batch,
        blob = blob_path,
        d = p.shape.d,
        input = p.shape.input,
        context = p.shape.context,
        cache_bytes = p.cache_bytes,
        scratch_bytes = way.scratch_bytes,
        weights_struct_bytes = p.weights_struct_bytes,
        start = way.start,
        calls = way.calls,
        lengths = way.lengths,
        positions = p.shape.cache.positions,
    }
end

-- Those of the lengths that are not 0.
local function with_tokens(lengths)
    local list = {}
    for _, length in ipairs(lengths) do
        if length > 0 then list[#list + 1] = length end
    end
    return list
end

-- Where positions go on for ever, the last `count` ones: { start, skip }, the first position, and how many tokens do
-- not count because those before them are missing; nil where there is none that counts.
local function far_of(p, count)
    local reach = p.shape.ring and p.shape.window * p.shape.layers
    return reach and reach < count and { start = p.shape.context - count, skip = reach } or nil
end

-- How `count` tokens can be given: token by token, all at once, and in uneven parts; only at once where all attend to
-- all, or, as sequences of `lengths`, also each in a call of its own. Where positions go on for ever also at the last
-- ones.
local function ways_of(p, count, lengths)
    if lengths then
        return {
            { name = "batch", calls = { count }, lengths = lengths, scratch_bytes = p.scratch_bytes },
            { name = "single", calls = with_tokens(lengths), lengths = lengths, scratch_bytes = p.scratch_bytes },
        }
    end
    if not p.shape.causal then return { { name = "encode", calls = { count }, scratch_bytes = p.scratch_bytes } } end
    local ones = {}
    for i = 1, count do
        ones[i] = 1
    end
    local parts = { 2, 1, math.max(1, count // 2), count }
    local ways = {
        { name = "decode", calls = ones, scratch_bytes = p.decode_scratch_bytes },
        { name = "prefill", calls = { count }, scratch_bytes = p.scratch_bytes },
        { name = "parts", calls = parts, scratch_bytes = p.scratch_bytes },
    }
    local far = far_of(p, count)
    if far then
        ways[4] = {
            name = "far",
            calls = parts,
            scratch_bytes = p.scratch_bytes,
            start = far.start,
            skip = far.skip,
        }
    end
    return ways
end

-- Raises one line for more tokens, in the file `path`, than the context of plan `p` holds.
local function check_context(p, path, count)
    if count > p.shape.context then
        local form = "%s: %d tokens: must be at most attention.context = %d"
        error(form:format(path, count, p.shape.context), 0)
    end
end

function transformer.run(path, options)
    local plans = runnable.plans(path, family, options, runnable.sets)
    local p = plans[#plans]
    local directory = process.temporary_directory()
    local count = input.check(options.input, p.shape.input)
    check_context(p, options.input, count)
    if options.decode and not p.shape.causal then
        misuse("--decode: " .. path .. ": is an encoder, which takes all tokens at once")
    end
    options.check_expected(count, p.shape.d)
    local output = directory .. "/weights.bin"
    packing.pack(p, packing.files(options, output))
    local library = compile.library({ p }, directory, options.cc, options.cflags)
    local ways = ways_of(p, count)
    local x = assert(runner.load(options.input, p.shape.input))
    local y = assert(runner.run(run_job(p, library, output, options.decode and ways[1] or ways[2] or ways[1]), x))
    assert(runner.save(options.output, p.shape.d, y))
    return string.format("%d tokens, %s", count, p.variants[1].isa.name)
end

-- The .npy files of what the lookup FFNs of the model of the file `path` read in float32, of the rows of
-- options.calibrate.
function transformer.lookup_inputs(path, options)
    local own = lookup_inputs.options(options)
    local plans, directory = runnable.plans(path, family, own, runnable.sets), process.temporary_directory()
    local p = plans[#plans]
    local count = input.check(options.calibrate, p.shape.input)
    check_context(p, options.calibrate, count)
    local blob = directory .. "/weights.bin"
    packing.pack(p, packing.files(own, blob))
    local library = compile.library({ p }, directory, own.cc, own.cflags)
    local ways = ways_of(p, count)
    local job = run_job(p, library, blob, ways[2] or ways[1])
    job.seen = seen.of({ p }, library, own.cc, count)
    local y, notes = runner.run(job, assert(runner.load(options.calibrate, p.shape.input)))
    if not y then error(notes, 0) end
    local inputs = lookup_inputs.new { p }
    inputs:add(job.seen, notes)
    return inputs:save(directory, options.calibrate)
end

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
function transformer.tolerance(shape)
    return math.max(shape.cache.type.cache.tolerance, rounds_scores(shape) and rounded_scores.tolerance or 0)
end

-- The tensors of the checkpoint `path`, by name.
local function tensors_of(path)
    local found, message = weights.tensors(path)
    if not found then error(message, 0) end
    return found
end

-- What runner.reference wants: the maps of every layer but those in `without`; types: the names of those of weights,
-- cache, activations, and attention (of queries and the softmax's weights); of tables, default type, and projections of
-- lookup FFNs, default f32; and blocks_in_out, whether the checkpoint's BH4 blocks are stored [in][out]. Layer 0 is
-- number `first` in the checkpoint, 0 if absent.
function transformer.reference_job(p, path, types, without, first)
    local m, s, layers = p.model, p.shape, {}
    local delivered = s.delivered and without ~= "" or s.projected
    local d_in, width = m.d_in or m.d, m.head_dim or m.d // m.heads
    local q, kv = { m.heads * width, d_in }, { m.kv_heads * width, d_in }
    local sizes = { Q = q, K = kv, V = kv, P = { m.d, m.heads * width }, S = m.skip and m.d_in and { m.d, d_in } }
    local function left(map) return without == "" and map or checkpoint.alone(map) end
    first = first or 0
    for layer = first, first + m.layers - 1 do
        local maps = {}
        for letter, size in pairs(sizes) do
            if size and not without:find(letter, 1, true) and not (s.projected and letter ~= "P") then
                maps[letter:lower()] = left(checkpoint.linear(m, layer, letter, table.unpack(size)))
            end
        end
        maps.input, maps.delivered = delivered and s.input or d_in, delivered
        if s.lookup then
            maps.lookup = {
                prefix = block_lookup.prefix(m, layer),
                d_out = delivered and layer < first + m.layers - 1 and s.made or s.d,
            }
        end
        if s.f then
            local inputs = checkpoint.inputs(m, layer)
            maps.m, maps.g = left(inputs[#inputs]), s.gated and left(inputs[1]) or nil
            maps.o = left(checkpoint.linear(m, layer, "O", s.d, s.f))
            -- Unrounded, means may be taken behind that map, as by definition.
            maps.means = p.sums ~= nil and p.sums.map ~= nil and types.activations ~= "f32"
        end
        for i, key in ipairs { "first", "second" } do
            if m.norm and not (s.projected and i == 1 and m.norm.place == "pre") then
                local normed = key == "first" and m.norm.place == "pre" and d_in or m.d
                local norm = checkpoint.norm(m, layer, i, normed)
                maps[key] = { gain = norm.gain, offset = m.norm.kind == "layernorm" and norm.offset or nil }
            end
        end
        if m.attention.shaped then maps.shape = { gain = checkpoint.attention_shape(m, layer) } end
        layers[layer - first + 1] = maps
    end
    layers = checkpoint.respelled(layers, checkpoint.spelling(m, tensors_of(path)))
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
        causal = m.attention.causal,
        window = m.attention.window,
        half = rope and math.floor(rope.share * width / 2 + 0.5),
        theta = rope and rope.theta or 0,
        interleaved = rope and rope.pairs == "interleaved",
        gated = s.gated,
        parallel = m.parallel,
        skip = m.skip,
        mean = m.norm and m.norm.kind == "layernorm",
        post = m.norm and m.norm.place == "post",
        eps = m.norm and m.norm.eps or 0,
        activation = s.activation or "relu",
        layers = layers,
    }
end

-- The inputs of the first block, of so many values a token, for token numbers out of a checkpoint.
local function embedded(p, path, numbers, width)
    local m, names = p.model, checkpoint.family(p.model).embeddings
    local spell = checkpoint.spelling(m, tensors_of(path))
    local tensors = { { name = spell(names.word), rows = m.vocab } }
    if m.positions then
        tensors[2] = { name = spell(names.positions), rows = m.positions, by_position = true, first = 0 }
    end
    if m.token_types then
        tensors[#tensors + 1] = { name = spell(names.token_types), rows = m.token_types, fixed = true }
    end
    return assert(runner.rows(path, tensors, numbers, width))
end

-- As many tokens as the reference computes in some seconds, at least four; up to two chunks and a bit, or enough for
-- sequences of all kinds.
local function tokens_of(p)
    local words = 0
    for _, map in ipairs(p.maps) do
        words = words + map.words
    end
    for _, part in ipairs(p.parts) do
        words = words + part.plan.projection_bytes // 4 + part.plan.shape.slots * part.plan.shape.d_out
    end
    local most, wanted = p.shape.most_tokens, p.shape.sequences and 300 or 2 * p.variants[1].chunk + 5
    return math.min(
        most,
        p.model.positions or most,
        math.max(4, math.min(wanted, 5000000000 // (words * p.model.layers)))
    )
end

-- Lengths of sequences that together have at most `count` tokens and fit into a call of plan `p`: few and many, full
-- tiles, and none.
local function lengths_of(p, count)
    local list, positions, sum = {}, 0, 0
    for i = 1, 64 do
        local wanted = ({ 5, 0, 32, 1, 33, 17, 70, 2 })[i % 8 + 1]
        local length = math.min(wanted, p.shape.context, count - sum, p.shape.cache.positions - positions)
        list[i], sum, positions = length, sum + length, positions + (length + 31) // 32 * 32
    end
    return list, sum
end

local most_turned = 8 -- ties of a run that may go the other way
local most_trials = 32 -- runs of the reference that look for them

-- What runner.reference answers for the job and x: { job, x, y, ties, looked, inputs, again }: again(turned) answers
-- where those ties go the other way.
function transformer.answer(job, x)
    local y, ties, looked = runner.reference(job, x)
    if not y then error(ties, 0) end
    local function again(turned) return transformer.answer(setmetatable({ turned = turned }, { __index = job }), x) end
    local inputs = job.notes and { looked.inputs } or nil
    return { job = job, x = x, y = y, ties = ties, looked = looked, inputs = inputs, again = again }
end

-- A token of y from number `from` on that is further than `most` from that of the answer, and how far, or nil: the
-- first one, or the `worst`.
local function token_off(y, found, d, from, most, worst)
    local token, largest = nil, most
    for at = 8 * d * from + 1, #y, 8 * d do
        local off = runner.difference(y:sub(at, at + 8 * d - 1), found.y:sub(at, at + 8 * d - 1), d)
        if not (off <= largest) then
            token, largest = (at - 1) // (8 * d), off
            if not worst then break end
        end
    end
    return token, token and largest
end

-- The answer whose ties (harness/reference/block_lookup.h) are decided as in y, as far as that explains where tokens
-- from number `from` on are further than `most` from it, and how many of them differ from `found`. A tie changes its
-- token and later ones, or, where all attend to all, its token more than others.
function transformer.decided_as(y, found, m, from, most)
    local turned, trials, causal = {}, 0, m.attention.causal
    for count = 0, most_turned do
        local token, off = token_off(y, found, m.d, from, most, not causal)
        if not token or count == most_turned then return found, count end
        local better
        local function try_ties(own)
            for _, tie in ipairs(found.ties) do
                if not better and trials < most_trials and (tie.token == token) == own then
                    trials = trials + 1
                    local next_turned = table.move(turned, 1, #turned, 2, { tie })
                    local other = found.again(next_turned)
                    local next_token, next_off = token_off(y, other, m.d, from, most, not causal)
                    local later = causal and next_token and next_token > token
                    if not next_token or later or (next_token == token or not causal) and next_off < off then
                        better, turned = other, next_turned
                    end
                end
            end
        end
        try_ties(true)
        if not causal then try_ties(false) end
        if not better then return found, count end
        found = better
    end
end

-- Merging takes d^3 steps: for wider blocks `prepare` with `large` draws the weights that merging would have made.
local widest_merged = 512

-- Whether the checkpoint `path` still has one of the maps that model `m` eliminates.
local function is_unfused(m, path)
    local found = tensors_of(path)
    local spell = checkpoint.spelling(m, found)
    for letter in m.attention.eliminate:gmatch "%u" do
        if found[spell(checkpoint.linear(m, 0, letter, m.d, m.d).weight.tensor)] then return true end
    end
    return false
end

-- Raises the line that `prepare` would raise for a checkpoint in options.weights with other tensors than it wants.
function transformer.check_weights(p, options)
    local m, path = p.model, options.weights
    local word = m.attention.eliminate
    if word ~= "none" and not p.own and is_unfused(m, path) then
        fuse_weights.check(m, { weights = path, ignore = options.ignore, eliminate = word })
    else
        packing.check(p, packing.files(options))
    end
end

-- The name of the type that weights of products have: where inputs are rounded, weights are to the same one.
function transformer.weights_type(shape) return shape.rounded and shape.rounded.name or shape.type.name end

-- To what blocks of `shape` round queries and the weights of softmax: the name of the type.
function transformer.attention_type(shape) return shape.cache.words and shape.cache.type.name or "f32" end

-- Weights for plan `p`, packed in `directory`, and what the reference computes with them: { numbers, x, rounded, far,
-- whole, packed_from, blob, cc }: `rounded` from the weights that are packed, rounded to their type, `unrounded`
-- likewise where products round their inputs, without that, move() for moved_tolerance, `far` likewise for positions
-- from that of `far_of` on, where keys are turned in another way before they are rounded, `whole` end to end from the
-- unfused ones, if there are any. Where lookup FFNs are seen at work, these wait for that: answer(start, activations,
-- cache, taken) with `taken` in its job. other() prepares another sample. A checkpoint in options.weights may be
-- either; an unfused one is fused here.
function transformer.prepare(p, directory, options)
    local m = p.model
    local word = m.attention.eliminate
    local without = word == "none" and "" or word
    local unfused = options.weights
    local merged = without ~= "" and not p.own
    if unfused then
        merged = merged and is_unfused(m, unfused)
    else
        merged = merged and not (options.large and m.d > widest_merged)
        unfused = directory .. "/unfused.safetensors"
        assert(weights.sample(unfused, "", merged and p.unfused_samples or p.samples, options.seed))
    end
    local fused = unfused
    if merged then
        fused = directory .. "/fused.safetensors"
        fuse_weights.fuse(m, {
            weights = unfused,
            ignore = options.ignore,
            o = fused,
            eliminate = word,
            ["max-condition"] = "1e10",
            ["max-error"] = "0.1",
        })
    end
    local count, lengths = tokens_of(p), nil
    if p.shape.sequences then
        lengths, count = lengths_of(p, count)
    end
    local numbers = runner.random_numbers(options.seed, count, m.vocab)
    local x = embedded(p, fused, numbers, p.shape.input)
    local own_types = { transformer.weights_type(p.shape), p.shape.cache.type.name, p.activations.name }
    local looked = p.lookup_types
    local own_attention = transformer.attention_type(p.shape)
    local in_out = options["blocks-in-out"]
    local exact = { type = "f32", cache = "f32", activations = "f32", attention = "f32", blocks_in_out = in_out }
    local output = directory .. "/weights.bin"
    local files = packing.files(options, output)
    -- What fuse has left out is no longer there.
    files.weights, files.ignore = fused, not merged and options.ignore or nil
    packing.pack(p, files)
    local far = m.attention.rope and far_of(p, count)
    local function answer_with(x_of, start, taken, ...)
        local job = transformer.reference_job(p, ...)
        job.lengths, job.start = lengths, start
        return transformer.answer(setmetatable(taken or {}, { __index = job }), x_of)
    end
    local function answer(start, activations, cache, taken)
        local types = {
            type = own_types[1],
            cache = cache or own_types[2],
            activations = activations or own_types[3],
            attention = activations and "f32" or own_attention, -- other activations: it rounds as the cache does
            blocks_in_out = in_out,
        }
        if looked then
            types.tables, types.projection = looked.tables.name, looked.projection.name
        end
        return answer_with(x, start, taken, fused, types, without)
    end
    local at_once = not seen.wanted { p }
    return {
        numbers = numbers,
        lengths = lengths,
        x = x,
        answer = answer,
        rounded = at_once and answer(0),
        far = at_once and far and answer(far.start),
        unrounded = at_once and p.shape.rounded and answer(0, "f32"),
        move = function()
            return {
                float32 = { answer(0, "single") },
                cache = not p.shape.cache.type.plain and { answer(0, nil, "f32") } or nil,
            }
        end,
        whole = merged and answer_with(embedded(p, unfused, numbers, m.d), 0, nil, unfused, exact, ""),
        packed_from = fused,
        exact_job = function() return transformer.reference_job(p, fused, exact, without) end,
        blob = output,
        cc = (options.cc or "gcc"):match "[^,]+",
        other = function()
            return transformer.prepare(p, process.temporary_directory(), transformer.other_sample(options))
        end,
    }
end

-- The options of verify for another sample: other inputs, and weights, if those are random.
function transformer.other_sample(options)
    return setmetatable({ seed = options.seed + 1000 }, { __index = options }) -- whole models take more seeds than one
end

-- What is wrong with the kernel `symbol` for the products of `maps`, whose inputs are rounded to the type `type`, or
-- nil.
function transformer.check_products(library, symbol, type, maps)
    local seen = {}
    for _, map in ipairs(maps) do
        if not seen[map.inputs] then
            local good, message = runner.exact_product(library, symbol, type, map.inputs)
            if not good then return message end
        end
        seen[map.inputs] = true
    end
end

-- The largest relative error of a row of the answers `a`, d values wide, beside the answers `b`, and of an input of a
-- lookup FFN where they were seen at work, d_ffn wide.
local function apart(a, b, d, d_ffn)
    local largest = 0
    for i, answer in ipairs(a) do
        largest = math.max(largest, (runner.difference(answer.y, b[i].y, d)))
        for k, inputs in ipairs(answer.inputs or {}) do
            largest = math.max(largest, (runner.difference(inputs, b[i].inputs[k], d_ffn[k])))
        end
    end
    return largest
end

-- How far emitted code may be from the reference where inputs of products are rounded, `tolerance` where they are not.
-- An input half-way between two numbers may become either, and after some layers much is rounded in another way: the
-- results differ as much as those with and without rounding, `rounded` and `unrounded`, lists of answers as for
-- `apart`. Behind it the largest relative error of a row that rounding makes.
function transformer.rounded_tolerance(tolerance, rounded, unrounded, d, d_ffn)
    local largest = apart(rounded, unrounded, d, d_ffn)
    return math.max(tolerance, 2 * largest), largest
end

-- How far all values together may be from the reference: a share of `explained`, how far rounding inputs moves them.
-- The reference rounds as kernels do, so that only inputs half-way between two numbers move a block's output; those of
-- blocks before move more and more, until both are rounded independently. `values`: how many there are.
function transformer.moved_together(explained, layers, values)
    return math.max(1e-4, explained * (layers / 5 + 4 / math.sqrt(values)))
end

-- Some models amplify rounding, so that float32 is hardly enough for them: without norms values grow from block to
-- block, until the last bits decide between two keys. Rounding the inputs of products to float32 then moves the rows of
-- the reference. Kernels also round the sums of those products after every term, which moves a sum of n terms about
-- sqrt(n) times as far, what a LookupFFN hashes and gathers, and norms.
local kernels_round = 32 -- times as far
local most_moved = 1e-2 -- a row that kernels may move by more is none

-- How far emitted code may be from the reference where results further than `tolerance` from it have been found, and
-- why: { float32, cache }: how far float32 moves a row of model `m`, and how far rounding the cache does, nil if it is
-- not rounded. `moved`: { float32, cache }: lists of answers with inputs of products rounded to float32, and with an
-- exact cache, beside `answers`. What is half-way between two numbers of the cache's type may become either: many
-- codes may differ then, more than decided_as tries.
function transformer.moved_tolerance(tolerance, moved, answers, m, d_ffn)
    local decided = {}
    for i, answer in ipairs(moved.float32) do
        decided[i] = transformer.decided_as(answer.y, answers[i], m, 0, tolerance)
    end
    local why = {
        float32 = apart(moved.float32, decided, m.d, d_ffn),
        cache = moved.cache and apart(moved.cache, answers, m.d, d_ffn),
    }
    return math.max(tolerance, math.min(kernels_round * why.float32, most_moved), 2 * (why.cache or 0)), why
end

-- What is wrong with a result, or nil; behind it true, if only all values together are off. found: { off, tolerance,
-- why }: how far its rows are from the reference and may be, why of moved_tolerance or nil; all, together: the same of
-- all values together, the latter of moved_together; nil: not compared.
function transformer.fault(found, all, together)
    if not (found.off <= found.tolerance) then
        local text = string.format("relative error %.2g: must be at most %.2g", found.off, found.tolerance)
        if not found.why then return text end
        local form = "%s; rounding to float32 alone moves a row of this model by up to %.2g"
        return form:format(text, found.why.float32)
    elseif together and all and all > together then
        return string.format("all values together are off by %.2g: rounding alone by at most %.2g", all, together), true
    end
end

-- The results of check(prepared), which returns a list, and the set of the numbers of those where only all values
-- together are off. An input half-way between two numbers does that, too, where it is of a token that most others
-- attend to. That is rare: an error shows in `more_samples` more samples as well.
local more_samples = 2
function transformer.settled(prepared, check)
    local results, off_together = check(prepared)
    for _ = 1, more_samples do
        if not next(off_together) then break end
        prepared = prepared.other()
        local others, still_off = check(prepared)
        for i in pairs(off_together) do
            results[i].ok, results[i].message, off_together[i] = others[i].ok, others[i].message, still_off[i]
        end
    end
    return results
end

-- What the reference answers for codes and scores that were seen. evaluate(activations, cache): lists of answers with
-- them, activations and the cache of the plan's types if absent; off(answers): how far what was computed is from them;
-- rounded, narrow: whether products round their inputs, and the cache its values; m: what has the width of rows, d;
-- d_ffn: widths of inputs of lookup FFNs, by run of blocks. Returns { answers, off, tolerance, why (as of
-- moved_tolerance, nil: not needed), activations_err }.
function transformer.beside_seen(evaluate, off, tolerance, rounded, narrow, m, d_ffn)
    local answers = evaluate()
    local found = { answers = answers, off = off(answers), tolerance = tolerance }
    for _, answer in ipairs(answers) do
        found.off = math.max(found.off, answer.looked.off)
    end
    if rounded then
        found.tolerance, found.activations_err =
            transformer.rounded_tolerance(tolerance, answers, evaluate "f32", m.d, d_ffn)
    elseif not (found.off <= tolerance) then
        local moved = { float32 = evaluate "single", cache = narrow and evaluate(nil, "f32") or nil }
        found.tolerance, found.why = transformer.moved_tolerance(tolerance, moved, answers, m, d_ffn)
    end
    return found
end

-- Compares plan `p`, for one instruction set and compiled into `library`, with the reference for one sample: a list of
-- results, one for each way to call it, and what transformer.settled wants.
local function check_sample(p, library, prepared)
    local cache_type, looked = p.shape.cache.type, p.lookup_types
    local tolerance, exact = transformer.tolerance(p.shape), cache_type.plain and p.shape.type.plain
    exact = exact and not (looked and not (looked.tables.plain and looked.projection.word.rows == 1))
    local watched = seen.wanted { p } and seen.of({ p }, library, prepared.cc, #prepared.numbers) or nil
    local wrong, activations_err, together
    if p.shape.rounded then
        wrong = transformer.check_products(library, p.variants[1].names.product, p.activations.name, p.maps)
    end
    if p.shape.rounded and not watched then
        local rounded, unrounded, d = prepared.rounded, prepared.unrounded, p.shape.d
        local _, _, explained = runner.difference(unrounded.y, rounded.y, d)
        together = transformer.moved_together(explained, p.model.layers, #prepared.numbers * d)
        tolerance, activations_err = transformer.rounded_tolerance(tolerance, { rounded }, { unrounded }, d)
    end
    local results, off_together, why, way_off
    -- Compares y of a way with the answer for its codes and scores in `notes`.
    local function check_seen(way, y, notes, result)
        local function evaluate(activations, cache)
            local taken = { seen = watched, notes = notes, first_looked = 0, off_from = way.skip }
            return { prepared.answer(way.start or 0, activations, cache, taken) }
        end
        local from = 8 * (way.skip or 0) * p.shape.d + 1
        local function off(answers)
            local relative, absolute = runner.difference(y:sub(from), answers[1].y:sub(from), p.shape.d)
            result.max_abs_err = absolute
            return relative
        end
        local narrow, d = not cache_type.plain, { p.shape.d }
        local found = transformer.beside_seen(evaluate, off, tolerance, p.shape.rounded, narrow, p.model, d)
        local own_wrong
        result.kernel_rel_err = found.off
        result.looked, own_wrong = seen.compare({ found.answers[1].job }, found.answers)
        result.activations_err = found.activations_err
        result.float32_err, result.cache_err = found.why and found.why.float32, found.why and found.why.cache
        result.message = wrong or own_wrong or transformer.fault(found)
        result.ok = result.message == nil
        if prepared.whole then
            result.rel_err = runner.difference(y:sub(from), prepared.whole.y:sub(from), p.shape.d)
        end
    end
    local function check(way)
        local result = {
            isa = p.variants[1].isa.name,
            call = way.name,
            tokens = #prepared.numbers,
            type = p.shape.type.name,
            cache = cache_type.name,
            activations = p.shape.rounded and p.activations.name or nil,
            tables = p.options.tables,
            projection = p.options.projection,
            activations_err = activations_err,
            float32_err = why and why.float32,
            cache_err = why and why.cache,
        }
        local job = run_job(p, library, prepared.blob, way)
        job.seen = watched
        local y, message = runner.run(job, prepared.x) -- or y and notes
        if y and watched then
            check_seen(way, y, message, result)
        elseif y then
            local skip, d = way.skip or 0, p.shape.d
            local function from_there(values) return values:sub(skip * d * 8 + 1) end
            local answer = way.start and prepared.far or prepared.rounded
            local same, turned = transformer.decided_as(y, answer, p.model, skip, tolerance)
            local all
            result.kernel_rel_err, result.max_abs_err, all = runner.difference(from_there(y), from_there(same.y), d)
            result.ties = p.shape.lookup and turned or nil
            if prepared.whole then
                -- Weights that are rounded to less than float32 change codes that are no ties.
                local whole = exact and transformer.decided_as(y, prepared.whole, p.model, skip, tolerance)
                    or prepared.whole
                result.rel_err = runner.difference(from_there(y), from_there(whole.y), d)
            end
            local found = { off = result.kernel_rel_err, tolerance = tolerance, why = why }
            local only_together
            result.message = wrong
            if not wrong then
                result.message, only_together = transformer.fault(found, all, together)
            end
            result.ok = result.message == nil
            off_together[#results + 1] = only_together
            way_off = way_off or not (found.off <= tolerance)
        else
            result.ok, result.message = false, message
        end
        results[#results + 1] = result
    end
    local function check_ways()
        results, off_together, way_off = {}, {}, false
        for _, way in ipairs(ways_of(p, #prepared.numbers, prepared.lengths)) do
            check(way)
        end
    end
    check_ways()
    if way_off and not p.shape.rounded and not watched then
        prepared.moved = prepared.moved or prepared.move()
        tolerance, why = transformer.moved_tolerance(tolerance, prepared.moved, { prepared.rounded }, p.model)
        check_ways()
    end
    return results, off_together
end

-- Compares plan `p`, for one instruction set and compiled into `library`, with the reference: a list of results, one
-- for each way to call it.
function transformer.check_library(p, library, prepared)
    return transformer.settled(prepared, function(sample) return check_sample(p, library, sample) end)
end

-- Which codes flip in each layer of plan `p`, compiled into `library`, by its types: as seen.flips says it.
local function flips_of(p, library, prepared)
    local ways = ways_of(p, #prepared.numbers, prepared.lengths)
    local job = run_job(p, library, prepared.blob, ways[2] or ways[1])
    if prepared.lengths then job = run_job(p, library, prepared.blob, ways[1]) end
    job.seen = seen.of({ p }, library, prepared.cc, #prepared.numbers)
    local y, notes = runner.run(job, prepared.x)
    if not y then error(notes, 0) end
    local taken = { seen = job.seen, notes = notes, first_looked = 0, first_token = 0 }
    return seen.flips { setmetatable(taken, { __index = prepared.exact_job() }) }
end

-- Compares every one of the plans, each for one instruction set, with the reference. Returns a list of results, and
-- with options.budget which codes of each layer flip on the last instruction set.
function transformer.check(plans, options)
    local directory, results, flips = process.temporary_directory(), {}, nil
    local prepared = transformer.prepare(plans[1], directory, options)
    for i, p in ipairs(plans) do
        local library = compile.library({ p }, directory .. "/" .. p.variants[1].isa.name, options.cc, options.cflags)
        local found = transformer.check_library(p, library, prepared)
        table.move(found, 1, #found, #results + 1, results)
        flips = options.budget and i == #plans and flips_of(p, library, prepared) or nil
    end
    return results, flips
end

function transformer.verify(path, options)
    local plans, skipped = runnable.plans(path, family, options, runnable.every)
    local m = plans[1].model
    local most = budget.of_layers(m, options.budget, plans[1].lookup_types ~= nil)
    local results, flips = transformer.check(plans, options)
    return verified.print(m, results, skipped, options, flips and budget.layers(flips, most))
end

return transformer
