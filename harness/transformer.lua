-- Compiles the emitted blocks of a transformer and runs them on this CPU: for run, and for verify against the reference.
local blob = require "gen.blob"
local blocks = require "blocks"
local checkpoint = require "gen.checkpoint"
local compile = require "harness.compile"
local fuse_commands = require "gen.fuse_commands"
local host = require "host"
local json = require "json"
local process = require "process"
local statistics = require "harness.tune.statistics"
local weights = require "weights"

local transformer = {}

-- The job that blocks.run wants, for calls as ways_of makes them.
local function run_job(p, library, blob_path, way)
    return { library = library, bind = p.names.bind, decode = p.names.decode, prefill = p.names.prefill, encode = p.names.encode, blob = blob_path,
        d = p.shape.d, context = p.shape.context, cache_bytes = p.cache_bytes, scratch_bytes = way.scratch_bytes, weights_struct_bytes = p.weights_struct_bytes, start = way.start, calls = way.calls }
end

-- How `count` tokens can be given: token by token, all at once, and in uneven parts; only at once where all attend to all. Where positions go
-- on for ever also at the last ones: tokens before it are missing, but after as many as reach through all layers results are the same again.
local function ways_of(p, count)
    if not p.shape.causal then return { { name = "encode", calls = { count }, scratch_bytes = p.scratch_bytes } } end
    local ones = {}
    for i = 1, count do ones[i] = 1 end
    local parts = { 2, 1, math.max(1, count // 2), count }
    local ways = { { name = "decode", calls = ones, scratch_bytes = p.decode_scratch_bytes }, { name = "prefill", calls = { count }, scratch_bytes = p.scratch_bytes },
        { name = "parts", calls = parts, scratch_bytes = p.scratch_bytes } }
    local reach = p.shape.window and p.shape.window * p.shape.layers
    if p.shape.ring and reach < count then ways[4] = { name = "far", calls = parts, scratch_bytes = p.scratch_bytes, start = p.shape.context - count, skip = reach } end
    return ways
end

-- Packs `path` for plan `p` into `output`.
function transformer.pack(p, path, output) assert(weights.pack(blob.packing(p, { weights = path, output = output, prefix = "" }))) end

function transformer.run(p, options)
    local directory = process.temporary_directory()
    local x = assert(blocks.load(options.input, p.shape.d))
    local count = #x // (8 * p.shape.d)
    if count > p.shape.context then error(string.format("%s: %d tokens: must be at most attention.context = %d", options.input, count, p.shape.context), 0) end
    transformer.pack(p, options.weights, directory .. "/weights.bin")
    local library = compile.library({ p }, directory, options.cc, options.cflags)
    local ways = ways_of(p, count)
    local y = assert(blocks.run(run_job(p, library, directory .. "/weights.bin", options.decode and ways[1] or ways[2] or ways[1]), x))
    assert(blocks.save(options.output, p.shape.d, y))
    host.print(string.format("wrote %s, %d tokens, %s", options.output, count, p.variants[1].isa.name))
end

-- What blocks.reference wants: the maps of every layer but those in `without`, weights of the type of that name.
local function reference_job(p, path, type, cache, without)
    local m, s, layers = p.model, p.shape, {}
    for layer = 0, m.layers - 1 do
        local maps = {}
        for _, letter in ipairs { "Q", "K", "V", "P" } do
            local rows = (letter == "K" or letter == "V") and s.e or s.d
            local map = checkpoint.linear(m, layer, letter, rows, s.d)
            if not without:find(letter, 1, true) then maps[letter:lower()] = without == "" and map or checkpoint.alone(map) end
        end
        local inputs = checkpoint.inputs(m, layer)
        maps.m, maps.g, maps.o = inputs[#inputs], s.gated and inputs[1] or nil, checkpoint.linear(m, layer, "O", s.d, s.f)
        for i, key in ipairs { "first", "second" } do
            if m.norm then
                local name = checkpoint.norm(m, layer, i)
                maps[key] = { gain = { tensor = name .. ".weight", shape = { s.d } }, offset = m.norm.kind == "layernorm" and { tensor = name .. ".bias", shape = { s.d } } or nil }
            end
        end
        layers[layer + 1] = maps
    end
    local rope = m.attention.rope
    return { weights = path, type = type, cache = cache, d = s.d, heads = s.heads, kv_heads = s.kv_heads, f = s.f, scale = m.attention.scale or (s.d / s.heads) ^ -0.5, causal = m.attention.causal,
        window = m.attention.window, half = rope and math.tointeger(rope.share * (s.d // s.heads) / 2), theta = rope and rope.theta, interleaved = rope and rope.pairs == "interleaved",
        gated = s.gated, parallel = m.parallel, skip = m.skip, mean = m.norm and m.norm.kind == "layernorm", post = m.norm and m.norm.place == "post",
        eps = m.norm and m.norm.eps, activation = m.ffn.activation, layers = layers }
end

-- The inputs of the first block for token numbers, out of a checkpoint.
local function embedded(p, path, numbers)
    local m, names = p.model, checkpoint.family(p.model).embeddings
    local tensors = { { name = names.word, rows = m.vocab } }
    if m.positions then tensors[2] = { name = names.positions, rows = m.positions, by_position = true, first = 0 } end
    if m.token_types then tensors[#tensors + 1] = { name = names.token_types, rows = m.token_types, fixed = true } end
    return assert(blocks.rows(path, tensors, numbers, m.d))
end

-- As many tokens as the reference computes in some seconds, at least four; up to two chunks and a bit.
local function tokens_of(p)
    local words = 0
    for _, map in ipairs(p.maps) do words = words + map.words end
    return math.min(p.shape.context, p.model.positions or p.shape.context, math.max(4, math.min(2 * p.variants[1].chunk + 5, 5000000000 // (words * p.model.layers))))
end

-- Largest relative error of a token that emitted code may have, by the cache's type: a key or value in the middle of two values of f16 or i8 may
-- become either.
transformer.tolerance = { f32 = 1e-5, f16 = 1e-3, i8 = 3e-2 }

-- Compares every variant of the plans, each for one instruction set, with the reference: on the weights that they are packed from, rounded to
-- their type, and end to end on the unfused ones. Returns a list of results.
function transformer.check(plans, options)
    local p, directory = plans[1], process.temporary_directory()
    local m = p.model
    local word = m.attention.eliminate
    local without = word == "none" and "" or word
    local unfused = options.weights
    if not unfused then
        unfused = directory .. "/unfused.safetensors"
        assert(weights.sample(unfused, "", p.samples, options.seed))
    end
    local fused, merged = unfused, without ~= "" and not p.own
    if merged then
        fused = directory .. "/fused.safetensors"
        fuse_commands.fuse_weights(m, { weights = unfused, o = fused, eliminate = word, ["max-condition"] = "1e10", ["max-error"] = "0.1" })
    end
    local numbers = blocks.random_numbers(options.seed, tokens_of(p), m.vocab)
    local x = embedded(p, fused, numbers)
    local kept = p.shape.cache.type.name
    local rounded = assert(blocks.reference(reference_job(p, fused, p.shape.type.name, kept, without), x))
    local whole = merged and assert(blocks.reference(reference_job(p, unfused, "f32", "f32", ""), embedded(p, unfused, numbers)))
    transformer.pack(p, fused, directory .. "/weights.bin")
    local results, tolerance = {}, transformer.tolerance[kept]
    for _, one in ipairs(plans) do
        local library = compile.library({ one }, directory .. "/" .. one.variants[1].isa.name, options.cc, options.cflags)
        for _, way in ipairs(ways_of(one, #numbers)) do
            local result = { isa = one.variants[1].isa.name, call = way.name, tokens = #numbers, type = p.shape.type.name, cache = kept }
            local y, message = blocks.run(run_job(one, library, directory .. "/weights.bin", way), x)
            if y then
                local at = (way.skip or 0) * m.d * 8 + 1
                result.kernel_rel_err, result.max_abs_err = blocks.difference(y:sub(at), rounded:sub(at), m.d)
                if whole then result.rel_err = blocks.difference(y:sub(at), whole:sub(at), m.d) end
                result.ok = result.kernel_rel_err <= tolerance
                if not result.ok then result.message = string.format("relative error %.2g: must be at most %g", result.kernel_rel_err, tolerance) end
            else
                result.ok, result.message = false, message
            end
            results[#results + 1] = result
        end
    end
    return results
end

function transformer.verify(plans, options, skipped)
    local results, ok, p = transformer.check(plans, options), true, plans[1]
    for _, result in ipairs(results) do ok = ok and result.ok end
    if options.json then
        host.print(assert(json.encode { model = p.model.name, ok = ok, seed = options.seed, results = json.array(results), skipped = json.array(skipped) }))
        return ok and 0 or 1
    end
    host.print(string.format("%-8s %-8s %-8s %-6s %-6s %7s %9s %9s %11s", p.model.name, "", "", "type", "cache", "tokens", "rel error", "max error", "vs. unfused"))
    for _, r in ipairs(results) do
        host.print(string.format("%-8s %-8s %-8s %-6s %-6s %7d %9.1e %9.1e %11s", r.isa, r.call, r.ok and "ok" or "FAILED", r.type, r.cache, r.tokens,
            r.kernel_rel_err or 0, r.max_abs_err or 0, r.rel_err and string.format("%.1e", r.rel_err) or "-"))
        if not r.ok then host.note(string.format("lookupc verify: %s %s: %s", r.isa, r.call, r.message)) end
    end
    for _, name in ipairs(skipped) do host.print("skipped: " .. name .. ": this CPU or its operating system does not run it") end
    return ok and 0 or 1
end

-- The blocks of plan `p`, compiled, as blocks.time wants them.
local function timed_blocks(p, directory, options)
    local packing = blob.packing(p, {})
    local library = compile.library({ p }, directory, options.cc, options.cflags)
    local sections = {}
    for i, section in ipairs(p.sections) do sections[i] = { elements = section.elements, at = section.at, type = section.type } end
    return { library = library, bind = p.names.bind, prefill = p.names.prefill, blob_bytes = p.packed_bytes, cache_bytes = p.cache_bytes, scratch_bytes = p.scratch_bytes,
        weights_struct_bytes = p.weights_struct_bytes, sections = sections, magic = packing.magic, digest = packing.digest, format = packing.format, header_bytes = packing.header_bytes }
end

-- Bytes that one call reads at least: weights, and keys and values of the positions before and of its own.
local function bytes_of(p, position, tokens)
    local seen = math.min(position + tokens, p.shape.window or position + tokens)
    return p.packed_bytes + seen * p.shape.cache.position_bytes
end

-- Times the blocks of `plans`, the model's own and, last, the unfused ones, for calls of so many tokens from `position` on: medians of
-- interleaved CPU times.
function transformer.bench(plans, tokens, position, options)
    local p, list, maps = plans[1], {}, nil
    for i, one in ipairs(plans) do list[i] = timed_blocks(one, process.temporary_directory(), options) end
    if p.shape.type.name == "f32" then
        maps = {}
        for i, map in ipairs(plans[#plans].maps) do maps[i] = { inputs = map.inputs, outputs = map.outputs } end
    end
    local samples = assert(blocks.time { d = p.shape.d, position = position, tokens = tokens, repetitions = options.repetitions, blocks = list, dense = maps })
    local result = { tokens = tokens, position = position, type = p.shape.type.name, isa = p.variants[1].isa.name, read_gbytes = p.packed_bytes / statistics.median(samples[1]) * 1e-9 }
    result.seconds = statistics.median(samples[2])
    result.gbytes = bytes_of(p, position, tokens) / result.seconds * 1e-9
    local operations = 0
    for _, map in ipairs(p.maps) do operations = operations + 2 * map.inputs * map.outputs * p.model.layers * tokens end
    result.gflops = operations / result.seconds * 1e-9
    if plans[2] then
        result.unfused_seconds = statistics.median(samples[3])
        result.speedup = result.unfused_seconds / result.seconds
        result.predicted = plans[2].packed_bytes / p.packed_bytes
    end
    local dense = samples[#plans + 2]
    -- OpenBLAS multiplies one unfused block.
    result.dense_seconds = dense and statistics.median(dense) * p.model.layers
    return result
end

function transformer.print_bench(p, results, compiler)
    local lines = { string.format("%s, %s, one thread, weights in %s", p.model.name, compiler, results[1].type),
        string.format("%-7s %7s %8s %10s %7s %8s %7s %9s %9s %9s %10s", "isa", "tokens", "position", "ms", "GB/s", "of read", "GFLOP/s", "unfused", "x faster", "predicted", "openblas") }
    for _, r in ipairs(results) do
        local function cell(format, value) return value and string.format(format, value) or "-" end
        lines[#lines + 1] = string.format("%-7s %7d %8d %10.3f %7.2f %6.0f %% %7.1f %9s %9s %9s %10s", r.isa, r.tokens, r.position, 1e3 * r.seconds, r.gbytes,
            100 * r.gbytes / r.read_gbytes, r.gflops, cell("%.3f", r.unfused_seconds and 1e3 * r.unfused_seconds), cell("%.3f", r.speedup), cell("%.3f", r.predicted),
            cell("%.3f", r.dense_seconds and 1e3 * r.dense_seconds))
    end
    lines[#lines + 1] = string.format("ms, unfused, openblas: medians of interleaved CPU times; openblas: only the products of the unfused blocks, float32. GB/s: weights, keys and values.")
    lines[#lines + 1] = string.format("of read: of the speed of reading these weights in the same run, %.2f GB/s. predicted: by the weights' bytes.", results[1].read_gbytes)
    host.print(table.concat(lines, "\n"))
end

return transformer
