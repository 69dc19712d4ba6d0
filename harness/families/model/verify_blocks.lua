-- How blocks alone are called on this CPU, and samples of weights and tokens on which verify compares them with the
-- reference.
local block_reference = require "block_reference"
local blocks_there = require "harness.families.model.blocks_there"
local calls = require "harness.calls.blocks"
local checkpoint = require "gen.schema.checkpoint_names"
local clamped = require "harness.calls.clamped"
local compare = require "harness.families.model.compare"
local fusable = require "gen.schema.fusable"
local fuse_weights = require "gen.families.model.blocks.fuse_weights"
local packing = require "gen.families.packing"
local reference = require "harness.families.model.reference"
local rows = require "rows"
local verify_there = require "harness.families.model.verify_there"
local weights = require "weights"

local verify_blocks = {}

-- The job that harness/calls/blocks.lua wants, for calls as verify_blocks.ways makes them.
function verify_blocks.job(p, library, blob_path, way)
    return {
        library = library,
        bind = p.names.bind,
        decode = p.names.decode,
        prefill = p.names.prefill,
        encode = not p.shape.causal and p.names.encode or nil,
        encode_batch = p.shape.sequences and p.names.encode_batch or nil,
        blob = blob_path,
        d = p.shape.d,
        input = p.shape.input,
        context = p.shape.context,
        cache_bytes = p.cache_bytes,
        halves = clamped.spans(p.shape.cache, 0),
        scratch_bytes = way.scratch_bytes or p.scratch_bytes,
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

-- Whether answers depend on the first position: keys are turned by it, or weights of attention are rounded by tiles.
local function by_position(p) return p.model.attention.rope or p.shape.cache.words end

-- Where positions go on for ever, the last `count` ones: { start, skip }, the first position, and how many tokens do
-- not count because those before them are missing; nil where there is none that counts.
local function far_of(p, count)
    local reach = p.shape.endless and (p.shape.window + (p.shape.shifted > 0 and 1 or 0)) * p.shape.layers
    return reach and reach < count and { start = p.shape.context - count, skip = reach } or nil
end

-- How `count` tokens can be given: token by token, all at once, and in uneven parts; only at once where all attend to
-- all, or, as sequences of `lengths`, also each in a call of its own. Where positions go on for ever also at the last
-- ones, if they are asked for.
function verify_blocks.ways(p, count, lengths, last)
    if lengths then
        return {
            { name = "batch", calls = { count }, lengths = lengths },
            { name = "single", calls = with_tokens(lengths), lengths = lengths },
        }
    end
    if not p.shape.causal then return { { name = "encode", calls = { count } } } end
    local ones, parts = {}, { 2, 1, math.max(1, count // 2), count }
    for i = 1, count do
        ones[i] = 1
    end
    local far = last and far_of(p, count) or nil
    return {
        { name = "decode", calls = ones, scratch_bytes = p.decode_scratch_bytes },
        { name = "prefill", calls = { count } },
        { name = "parts", calls = parts },
        far and { name = "far", calls = parts, start = far.start, skip = far.skip },
    }
end

-- The weights that a token meets in a block of plan `p`: of linear maps, projections, and the rows that it takes.
function verify_blocks.words(p)
    local words = 0
    for _, map in ipairs(p.maps) do
        words = words + map.words
    end
    for _, part in ipairs(p.parts) do
        words = words + part.plan.projection_bytes // 4 + part.plan.shape.slots * part.plan.shape.d_out
    end
    return words
end

-- As many tokens as the reference computes in some seconds, at least four; up to two chunks and a bit, or enough for
-- sequences of all kinds, and for tables, of whose codes each tie takes another pass of the reference.
local function tokens_of(p)
    local most, wanted = p.shape.most_tokens, p.shape.sequences and 300 or 2 * p.variants[1].chunk + 5
    if p.shape.lsh then wanted = math.min(wanted, 300) end
    return math.min(
        most,
        p.model.positions or most,
        math.max(4, math.min(wanted, 5000000000 // (verify_blocks.words(p) * p.model.layers)))
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

-- Merging takes d^3 steps: for wider blocks `prepare` with `large` draws the weights that merging would have made.
local widest_merged = 512

-- Whether the checkpoint `path` still has one of the maps that model `m` eliminates.
local function is_unfused(m, path)
    local found = reference.tensors(path)
    local spell = checkpoint.spelling(m, found)
    for letter in (m.attention.eliminate .. (m.attention.cache and "V" or "")):gmatch "%u" do
        if found[spell(checkpoint.linear(m, 0, letter, m.d, m.d).weight.tensor)] then return true end
    end
    return false
end

-- Raises the line that `prepare` would raise for a checkpoint in options.weights with other tensors than it wants.
function verify_blocks.check_weights(p, options)
    local m, path = p.model, options.weights
    local word = m.attention.eliminate
    if fusable.is_fused(m) and not p.own and is_unfused(m, path) then
        fuse_weights.check(m, { weights = path, ignore = options.ignore, eliminate = word })
    else
        packing.check(p, packing.files(options))
    end
end

-- The ways to call plan `p`, compiled into `library`, for a sample: { name, run(seen), the result and the notes of what
-- was seen, or nil and why not; compare(y, answers, most), the largest errors of y beside answers whose ties are
-- decided as in y, relative of a row and of a value, the number of ties, and relative of all rows together; answers:
-- others than those of the sample; unfused(y, most): the relative error beside unfused weights }.
local function sample_ways(p, library, sample, watched)
    local shape, looked, shape_of = p.shape, p.lookup_types, compare.shape_of(p)
    -- Weights that are rounded to less than float32 change codes that are no ties.
    local exact = shape.cache.type.plain
        and shape.type.plain
        and not (looked and not (looked.tables.plain and looked.projection.word.rows == 1))
    local ways = sample.plain_ways(p)
    for _, way in ipairs(ways) do
        local skip = way.skip or 0
        local function beside(y, same)
            local function from_there(values) return values:sub(skip * shape.d * 8 + 1) end
            return block_reference.difference(from_there(y), from_there(same.y), shape.d)
        end
        function way.run(job_seen)
            local job = verify_blocks.job(p, library, sample.blob, way)
            job.seen = job_seen
            return calls(job, sample.x)
        end
        function way.compare(y, answers, most)
            local same, turned = compare.decided_as(y, answers[1], shape_of, skip, most)
            local relative, absolute, all = beside(y, same)
            return relative, absolute, turned, all
        end
        function way.unfused(y, most)
            local whole = sample.whole
            if whole and exact and not watched then whole = compare.decided_as(y, whole, shape_of, skip, most) end
            return whole and beside(y, whole) or nil
        end
        way.fetched = rows.doubles
        if way.start and by_position(p) and not watched then
            sample.far = sample.far or sample.answer(nil, nil, nil, way)
            way.answers = sample.far
        end
    end
    return ways
end

-- Weights for plan `p`, packed in `directory`, and tokens: what verify.prepare says, and { numbers, lengths, x, whole
-- }: `whole`, the answer end to end from the unfused weights, if there are any. Positions from that of `far_of` on have
-- an answer of their own: keys are turned in another way there before they are rounded. A checkpoint in options.weights
-- may be fused or not; an unfused one is fused here. options.exact: `whole` is wanted where nothing is fused, too.
-- watched: lookup FFNs are seen at work.
function verify_blocks.prepare(p, directory, options, watched)
    local m = p.model
    local word = m.attention.eliminate
    local without = fusable.is_fused(m) and word or ""
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
    local numbers = block_reference.random_numbers(options.seed, count, m.vocab)
    local in_out = options["blocks-in-out"]
    -- What fuse has left out is no longer there.
    local files = packing.files(options, directory .. "/weights.bin")
    files.weights, files.ignore = fused, not merged and options.ignore or nil
    packing.pack(p, files)
    local function answer_with(x, way, taken, ...)
        local job = reference.blocks_job(p, ...)
        job.lengths, job.start = lengths, way and by_position(p) and way.start or 0
        return reference.answer_blocks(setmetatable(taken or {}, { __index = job }), x)
    end
    local sample = { numbers = numbers, lengths = lengths, tokens = count, packed_from = fused, blob = files.output }
    sample.x = reference.embedded(m, fused, numbers, p.shape.input)
    function sample.answer(activations, cache, taken, way)
        local types = reference.types(p, p.shape, in_out, activations, cache)
        if taken then
            taken.first_looked, taken.off_from = 0, way and way.skip
        end
        return { answer_with(sample.x, way, taken, fused, types, without) }
    end
    function sample.jobs(taken)
        taken.first_looked = 0
        local job = reference.blocks_job(p, fused, reference.types(p, p.shape, in_out), without)
        return { setmetatable(taken, { __index = job }) }
    end
    -- A device is not called at the last positions of those that have no end.
    function sample.plain_ways(own) return verify_blocks.ways(own, count, lengths, not sample.device) end
    function sample.ways(own, library)
        local ways = sample_ways(own, library, sample, watched)
        return sample.device and verify_there.ways(sample, own, library, ways) or ways
    end
    blocks_there.add(sample)
    if merged or options.exact then
        local exact = { type = "f32", cache = "f32", activations = "f32", attention = "f32", blocks_in_out = in_out }
        sample.whole = answer_with(reference.embedded(m, unfused, numbers, m.d), nil, nil, unfused, exact, "")
    end
    return sample
end

return verify_blocks
