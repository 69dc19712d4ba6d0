-- Whole models as files: which are valid, what plan counts and where buffers lie, how code grows with depth, and which
-- commands refuse what.
local activations = require "harness.convert.activations"
local check = require "tests.support.check"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local lifetimes = require "gen.plan.lifetimes"
local model = require "gen.families.model_file"
local plan = require "gen.families.model.plan"
local program = require "tests.support.program"
local rules = require "gen.families.model.model"
local target_list = require "gen.plan.target"
local whole_family = require("gen.families.model.family").whole

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()

-- A model file with `changes`, Lua source that changes the table t.
local function source(changes)
    return [[
local t = { name = "m", d = 32, heads = 4, layers = 2, vocab = 100, skip = true, positions = 40, checkpoint = "roberta",
    norm = { kind = "layernorm", place = "post" }, attention = { context = 38, causal = false },
    ffn = { kind = "mlp", f = 64, activation = "gelu" }, embedding = { first_position = 2 } }
]] .. (changes or "") .. "\nreturn t\n"
end

local function path(changes) return program.model(folder, "m", source(changes)) end
local function load(changes) return model.load(path(changes)) end
local function planned(changes) return plan.build(load(changes), { isa.get "scalar" }, {}) end

function test.defaults()
    local m =
        load "t.embedding = { sinusoidal = {} } t.positions = nil t.output = { head = {}, norm = { kind = 'rmsnorm' } }"
    check.equal(m.embedding, { scale = 1, sinusoidal = { order = "interleaved", steps = "n", max = 10000 } })
    check.equal(m.output, { unit = false, head = { bias = false }, norm = { kind = "rmsnorm", eps = 1e-5 } })
    check.equal(load("t.layers = { { d_in = 20 }, {}, { count = 3 } } t.embedding = { d = 20 }").layers, {
        { count = 1, d_in = 20 },
        { count = 1 },
        { count = 3 },
    })
    local layers = 't.layers = { {}, { ffn = { kind = "lookup" } } } t.ffn = { kind = "lookup", h = 3 }'
    local lookup = load(layers)
    check.equal({ lookup.ffn.h, lookup.ffn.neighbours, lookup.layers[1].ffn }, { 3, 1, nil })
    check.equal({ lookup.layers[2].ffn.h, lookup.layers[2].ffn.neighbours }, { lookup.d // 4, 2 })
end

-- convert records what the FFN of a layer reads in models cut off there.
function test.a_model_that_is_cut_off_keeps_the_windows_of_its_layers()
    local changes = "t.layers, t.attention.window, t.attention.full_layers = 4, 9, { 1, 3 }"
    local m, sets = load(changes), { isa.get "scalar" }
    local blocks = activations.blocks(m)
    for count, wanted in ipairs { false, { 1 }, { 1 }, { 1, 3 } } do
        local cut = activations.plan_until(m, blocks, count, sets, "m.lua").model
        check.equal({ cut.attention.window, cut.attention.full_layers or false }, { 9, wanted })
    end
    check.equal(m.attention.full_layers, { 1, 3 })
end

-- What `attention` of an entry of `layers` does not say, the model says, but for what is of another kind.
function test.entries_of_layers_attend_as_the_model_but_for_what_they_say()
    local function attention(of_model, of_entry)
        local changes = "t.attention, t.layers = { context = 20, %s }, { { attention = { %s } }, {} }"
        return rules.segments(load(changes:format(of_model, of_entry)))[1].attention
    end
    local a = attention("window = 9, unit = true", "kind = 'exact'")
    check.equal({ a.window, a.unit }, { 9, true })
    a = attention("window = 9, unit = true", "kind = 'exact', unit = false")
    check.equal({ a.window, a.unit or false }, { 9, false })
    a = attention("kind = 'lsh', tables = 5, tau = 3, eps = 0.5, seed = 7, window = 0", "kind = 'lsh', tau = 2")
    check.equal({ a.tables, a.tau, a.eps, a.seed, a.window }, { 5, 2, 0.5, 7, 0 })
    a = attention("kind = 'lsh', window = 2", "kind = 'exact'")
    check.equal({ a.kind or "exact", a.window or "none", a.tables or "none" }, { "exact", "none", "none" })
    a = attention("window = 9", "kind = 'lsh'")
    check.equal({ a.tables, a.tau, a.eps, a.seed, a.window }, { 16, 8, 0.3, 1, 16 })
end

function test.full_layers_are_counted_over_entries_without_a_count()
    local changes = "t.layers, t.attention.window, t.attention.full_layers = { {}, { count = 2 } }, 9, "
    check.equal(load(changes .. "{ 2 }").attention.full_layers, { 2 })
    check.fails_with("attention.full_layers: has 3: must be below the number of layers, 3", load, changes .. "{ 3 }")
end

-- All kernels of an instruction set are one file, which is compiled with one set of flags.
function test.blocks_of_all_kinds_have_the_flags_of_a_later_lookup_ffn()
    local m = load 't.layers = { {}, { ffn = { kind = "lookup" } } }'
    for _, options in ipairs { { type = "i8" }, { tables = "i8" }, { projection = "i16" }, { tables = "e4m3" } } do
        for _, name in ipairs(isa.names) do
            local p = plan.build(m, { isa.get(name) }, options)
            local alone = isa.with_types(isa.get(name), whole_family.isa_types(options, m))
            check.equal(p.variants[1].isa.flags, alone.flags)
            check.equal(p.variants[1].isa.cpu, alone.cpu)
            for _, segment in ipairs(p.segments) do
                check.equal(segment.plan.variants[1].isa.flags, alone.flags)
            end
        end
    end
    local avx512 = plan.build(m, { isa.get "avx512" }, { tables = "i8" }).variants[1].isa
    check.equal(avx512.flags[#avx512.flags], "-mavx512vnni")
end

function test.rules_between_keys()
    local causal = "t.attention.causal = true "
    for _, row in ipairs {
        { "t.embedding.d = 0", "embedding.d = 0: must be an integer from 1 to 65536" },
        { "t.embedding.widht = 0", "embedding.widht = 0: unknown key" },
        {
            "t.output, t.embedding = {}",
            "output = {...}: is of a whole model, whose required key embedding is missing; it must be a table of",
        },
        { "t.attention = nil", ": is of a whole model, whose required key attention is missing; it must be a table" },
        { "t.embeding, t.embedding = t.embedding", 'embeding = {...}: unknown key; did you mean "embedding"?' },
        { "t.embeding, t.embedding, t.output = {}", 'embeding = {...}: unknown key; did you mean "embedding"?' },
        { "t.atention, t.attention = t.attention", 'atention = {...}: unknown key; did you mean "attention"?' },
        { "t.layers = { {}, { heads = 3 } }", "layers.2.heads = 3: must divide d = 32" },
        {
            "t.layers = { {}, { ffn = { kind = 'lookup', projection = { kind = 'bh4', block = 7 } } } }",
            "layers.2.ffn.projection.block = 7: must be a power of two",
        },
        { "t.tokenizer = { file = 'none.model' }", 'tokenizer.file = "none.model": there is no file ' },
        { "t.checkpoint = nil", "llama checkpoints have no such embeddings; checkpoint is llama by default" },
        { "t.layers = 0", "layers = 0: must be an integer from 1 to 4096, or a list" },
        { "t.layers = {}", "layers = {...}: must be an integer from 1 to 4096, or a list" },
        { "t.layers = { { count = 0 } }", "layers.1.count = 0: must be an integer" },
        { "t.layers = { { depth = 2 } }", "layers.1.depth = 2: unknown key" },
        { "t.layers = { { d = 16 }, {} }", "layers.2: a block takes 32 values a token, but the one before makes 16" },
        { "t.layers = { { d = 16 } }", "d = 32: must be the width of the last block of layers, 16" },
        { "t.layers = { { d_in = 16, count = 2 } }", "d_in = 16: must be d = 32" },
        { "t.layers = { { count = 4096 }, {} }", "layers = 4097: must be at most 4096 blocks" },
        { "t.heads = 3", "heads = 3: must divide d = 32" },
        { "t.positions = 39", "positions = 39: must be at least attention.context + embedding.first_position = 40" },
        { "t.embedding.sinusoidal = {}", "embedding.sinusoidal: must be absent where positions are learned" },
        { "t.positions = nil", "embedding.first_position = 2: is of learned positions" },
        {
            "t.positions = nil t.embedding = { d = 21, sinusoidal = {} }",
            "embedding.sinusoidal: needs rows of an even width, not of 21",
        },
        { "t.embedding.projected = 1", "embedding.projected = 1: must be true or false" },
        {
            "t.attention.eliminate = 'QP' t.embedding.projected = true",
            'embedding.projected = true: needs attention.eliminate = "none", not "QP"',
        },
        { "t.parallel = true t.embedding.projected = true", "embedding.projected = true: needs serial blocks: the" },
        {
            "t.embedding.d = 16 t.embedding.projected = true",
            "embedding.projected = true: needs rows as wide as the first block's input, 32, not 16",
        },
        {
            "t.norm.place = 'pre' t.embedding.norm = { kind = 'layernorm' } t.embedding.projected = true",
            "embedding.projected = true: needs one norm before the maps: the model has embedding.norm and norm.place",
        },
        { causal .. "t.output = { pool = 'mean' }", 'output.pool = "mean": is of encoders' },
        { "t.output = { pool = 'median' }", 'output.pool = "median": must be "mean" or "first" or "last" or "sqrt_n"' },
        { "t.output = { head = {}, classes = 3 }", "output.classes = 3: must be absent beside output.head" },
        { "t.output = { unit = true, classes = 3 }", "output.unit = true: must be absent beside output.classes" },
        { "t.tied = true", "tied = true: needs output.head" },
        {
            "t.tied = true t.output = { dense = { width = 8 }, head = {} }",
            "tied = true: the head takes 8 values, but rows of the embedding have 32",
        },
        {
            "t.attention.eliminate = 'QP' t.layers = { { d = 32, heads = 2 }, {} }",
            "only of blocks that are all of one shape",
        },
        { "t.tokenizer = {}", 'tokenizer.file: is missing: only kind = "bytes" has none' },
        { "t.output = { norm = { kind = 'layernorm' } }", "output.norm: roberta checkpoints have no such tensors" },
        {
            "t.token_types = 2 t.positions = nil t.embedding = {} t.checkpoint = 'llama'",
            "token_types = 2: llama checkpoints have no such embeddings",
        },
        {
            "t.checkpoint = 'mingpt' t.embedding.d = 16",
            "embedding.d = 16: mingpt checkpoints have no map to the blocks",
        },
        { "t.tokenizer = { kind = 'bytes' }", "vocab = 100: the tokenizer has 256 pieces" },
    } do
        refuses(1, row[2], { "plan", path(row[1]) })
    end
end

-- What only a plan shows is told of the entry of `layers` where it stands; what no block has matters to none.
function test.refusals_of_runs_of_blocks_name_their_entry()
    local glu = "{ kind = 'glu', f = 8, activation = 'silu' }"
    refuses(1, 'layers.2.ffn.kind = "glu": roberta checkpoints have no such FFN', {
        "plan",
        path("t.layers = { {}, { ffn = " .. glu .. " } }"),
    })
    works { "plan", path("t.ffn, t.layers = " .. glu .. ", { { ffn = t.ffn }, { ffn = t.ffn } }") }
    local one = "t.attention.causal, t.output = true, { head = {} } t.layers = { { count = 2 }, { ffn = { kind = \z
        'lookup', h = 4, tau = 4, projection = { kind = 'dense' }, score = 'one' } } }"
    local words = { "emit", path(one), "--training", "-o", folder .. "/untrained" }
    refuses(1, 'layers.2.ffn.score = "one": cannot be trained: it gives z no gradient', words)
end

function test.what_training_does_not_know_is_refused()
    local changes = "t.checkpoint, t.token_types, t.embedding.norm, t.attention.causal = 'llama', nil, nil, true \z
        t.positions, t.embedding.first_position, t.output = nil, nil, { head = {} } "
    local function refused(more, message)
        refuses(1, message, { "emit", path(changes .. more), "--training", "-o", folder .. "/untrained" })
    end
    refused("t.attention.qk_norm = {}", "attention.qk_norm: cannot be trained")
    refused("t.attention.soft_cap = 50", "attention.soft_cap: cannot be trained")
    refused("t.attention.cache = 'k'", 'attention.cache = "k": cannot be trained: fuse makes it of a trained model')
    refused("t.attention.window, t.attention.full_layers = 9, { 1 }", "attention.full_layers: cannot be trained: all")
    refused("t.checkpoint, t.norm.kind = 'gemma', 'rmsnorm'", 'checkpoint = "gemma": cannot be trained: its files hold')
    local blocks = { "emit", "gen/models/tiny_skipless.lua", "--training", "-o", folder .. "/untrained" }
    refuses(2, "is for a LookupFFN or a whole model, not for a transformer", blocks)
end

function test.schedules_are_those_of_each_run_of_blocks()
    local text = works { "plan", path "t.layers = { {}, { heads = 2 } }", "--isa", "scalar", "--schedules" }
    check.matches(text, "\nblocks_1 schedule scalar few.vectors=4,")
    check.matches(text, "\nblocks_2 schedule scalar few.vectors=4,")
    check.matches(works { "plan", path(), "--isa", "scalar", "--schedules" }, "\nschedule scalar +few.vectors=4,")
end

-- The first run has no projection, the third one only that of the dense matrix.
function test.runs_without_a_choice_of_matrices_leave_it_to_others()
    local ffn = 'ffn = { kind = "lookup", h = 3, projection = { kind = "bh4", block = 8 }, same_codes = %s }'
    local m = load(("t.layers = { {}, { %s }, { %s } }"):format(ffn:format "false", ffn:format "true"))
    local sets = { isa.get "avx2", isa.get "scalar" }
    local options = { ["multiply-out"] = true, projection = "i8" }
    for value = 0, 1 do
        local wanted = { avx2 = { ["project.dense"] = value } }
        local p = whole_family.build(m, sets, options, wanted)
        local all = p.variants[1].schedule
        check.equal(all["project.dense"], value)
        local again = whole_family.build(m, sets, options, { avx2 = all })
        for i, own in ipairs { 0, value, 1 } do
            check.equal(again.segments[i].plan.variants[1].schedule["project.dense"], own)
        end
    end
end

-- Heads of unit length have no gains: what a model lacks is a field that does not exist.
function test.structs_have_what_steps_read()
    for key, reads in pairs { unit = false, qk_norm = true } do
        local changes = "t.checkpoint, t.layers, t.attention.%s = 'llama', 1, %s "
            .. "t.embedding, t.positions = { projected = true }"
        local p = planned(changes:format(key, reads and "{}" or "true")).segments[1].plan
        local gains = false
        for _, field in ipairs(p.structs.layer.fields) do
            gains = gains or field.name == "k_norm"
        end
        check.equal({ key, gains }, { key, reads })
    end
end

function test.weights_are_counted_once()
    -- RoBERTa-base: a tied embedding counts once, positions count
    local roberta = program.model(
        folder,
        "base",
        [[return { name = "base", d = 768, heads = 12, layers = 12, vocab = 50265, positions = 514,
    token_types = 1, tied = true,
    skip = true, norm = { kind = "layernorm", place = "post" }, attention = { causal = false, context = 512 },
    ffn = { kind = "mlp", f = 3072, activation = "gelu" },
    embedding = { first_position = 2, norm = { kind = "layernorm" } },
    output = { dense = { width = 768, activation = "gelu", norm = { kind = "layernorm" } }, head = { bias = true } },
    checkpoint = "roberta" }]]
    )
    local found = json.decode(works { "plan", roberta, "--json" })
    check.equal(found.weights.embedding, (50265 + 514 + 1) * 768)
    check.equal(found.weights.blocks, 12 * (4 * 768 * 768 + 2 * 768 * 3072))
    check.equal(found.weights.output, 768 * 768)
    check.matches(works { "plan", roberta }, "all weights%s+124,523,520  124%.5M")
    local mixed = json.decode(
        works { "plan", path "t.layers = { { d_in = 20, head_dim = 5 }, {} } t.embedding.d = 12", "--json" }
    )
    check.equal(mixed.weights.embedding, (100 + 40) * 12 + 12 * 20)
    check.equal(mixed.weights.layers, {
        { count = 1, weights = 3 * 20 * 20 + 20 * 32 + 20 * 32 + 2 * 32 * 64 },
        { count = 1, weights = 4 * 32 * 32 + 2 * 32 * 64 },
    })
end

-- The sources of a model by name, and their bytes; those for AVX-512 with weights of 8 bits.
local function sources(changes, set)
    local texts, bytes = {}, 0
    local options = { type = set == "avx512" and "i8" or nil }
    for _, file in ipairs(emit.sources(plan.build(load(changes), { isa.get(set or "scalar") }, options))) do
        texts[file.name], bytes = file.text, bytes + #file.text
    end
    return texts, bytes
end

-- Models of every kind of block and checkpoint.
local decoder_ends = "t.positions = nil t.embedding = {} t.output = { norm = { kind = 'layernorm' }, head = {} } "
local llama = decoder_ends
    .. "t.norm = { kind = 'rmsnorm' } t.kv_heads = 2 t.ffn = { kind = 'glu', f = 64, activation = 'silu' } \z
        t.checkpoint = 'llama' t.attention = { context = 38, rope = {}, window = 16 } "
local neox = decoder_ends
    .. "t.norm = { kind = 'layernorm' } t.checkpoint = 'gpt_neox' t.attention = { context = 38, rope = {} } "
local gpt = "t.norm.place = 'pre' t.embedding = {} t.attention.causal = true \z
    t.output = { norm = { kind = 'layernorm' }, head = {} } "
local lookups =
    "t.ffn = { kind = 'lookup', h = 4, tau = 4, score = 'gelu', projection = { kind = 'bh4', block = 16 } } "
local of_each_kind = {
    { "roberta", "scalar", "" },
    { "bert", "avx512", "t.checkpoint = 'bert' t.output = { pool = 'mean', unit = true }" },
    { "lookupffn", "avx512", "t.checkpoint = 'lookupffn' " .. lookups },
    { "llama", "avx512", llama },
    { "skipless", "scalar", llama .. "t.skip, t.norm, t.output.norm = nil t.attention.eliminate = 'QP'" },
    { "gpt_neox", "avx512", neox .. "t.parallel = true" },
    { "in turn", "scalar", neox },
    { "gpt2", "scalar", gpt .. "t.checkpoint = 'gpt2'" },
    { "mingpt", "scalar", gpt .. "t.checkpoint = 'mingpt' " .. lookups },
}

-- A source without its numbers and the model's digest.
local function numberless(text) return (text:gsub('"%x+"', "digest"):gsub("0x%x+", "N"):gsub("%d+", "N")) end

function test.code_does_not_grow_with_depth()
    for _, row in ipairs(of_each_kind) do
        local name, set, changes = table.unpack(row)
        local few, few_bytes = sources(changes .. " t.layers = 4", set)
        local many, many_bytes = sources(changes .. " t.layers = 12", set)
        assert(many_bytes - few_bytes < 200, name)
        for file, text in pairs(many) do
            assert(numberless(text) == numberless(few[file] or ""), name .. " " .. file)
        end
    end
    -- blocks of one shape are a run, however the list says them
    local _, many = sources "t.layers = 12"
    check.equal(select(2, sources "t.layers = { { count = 3 }, {}, {}, {}, { count = 6 } }"), many)
    local _, two =
        sources "t.layers = { { ffn = { kind = 'mlp', f = 32, activation = 'gelu' }, count = 5 }, { count = 7 } }"
    assert(two > many + 1000)
end

-- Firmware whose tokens go one by one calls no kernel for many.
function test.no_symbol_repeats_a_word()
    for _, layers in ipairs { "", 't.layers = { {}, { ffn = { kind = "lookup" } } }' } do
        local p = plan.build(load(layers), { isa.get "avx2" }, { type = "i8", activations = "i8" })
        for _, file in ipairs(emit.files(p)) do
            local symbol = file.text:match "[%a_][%w_]-_(%l+)_%1_[%w_]*" or file.text:match "_blocks_%d_blocks_"
            check.equal(symbol, nil)
        end
    end
end

function test.firmware_has_the_kernels_that_it_calls()
    local target = target_list.get "cortex-m4f"
    local p = whole_family.build(model.load "tests/firmware/lookups.lua", { isa.get "scalar" }, { firmware = target })
    for _, segment in ipairs(p.segments) do
        for _, part in ipairs(segment.plan.parts) do
            local v = part.plan.variants[1]
            check.equal({ #v.stages, v.stages[1].name, segment.plan.variants[1].product.several }, { 1, "few", false })
        end
    end
end

-- `sample --unfused` takes whole models as it takes transformers.
function test.what_eliminates_nothing_is_its_own_unfused_model()
    local p = planned()
    check.equal(p.unfused_samples, p.samples)
end

-- Flash holds rows of tables without the padding that a cache is served by.
function test.firmware_has_no_padding_between_rows()
    local text = [[
return { name = "m", d = 128, heads = 4, layers = 1, vocab = 8, embedding = {}, attention = { context = 8 },
    ffn = { kind = "lookup", h = 2, tau = 3, score = "gelu", projection = { kind = "bh4", block = 16 } } }
]]
    local m, set = model.load(program.model(folder, "rows", text)), isa.get "scalar"
    local function pitch(options)
        options.type = "i8"
        return whole_family.build(m, { set }, options).segments[1].plan.parts[1].plan.pitch
    end
    check.equal({ pitch {}, pitch { firmware = target_list.get "cortex-m33" } }, { 192, 128 })
end

-- Means over tokens go through the last linear map instead of all tokens, where nothing but sums stands behind it.
function test.the_last_map_takes_means()
    local base = "t.norm.place = 'pre' t.layers = 1 t.output = { pool = 'mean' } "
    local p = planned(base)
    local map = p.output.sums.map
    check.equal({ map.name, map.bias, map.inputs, map.outputs }, { "blocks.o", "blocks.o_bias", 64, 32 })
    check.equal({ p.output.sums.hidden, p.output.sums.pitch }, { 32, 96 })
    check.equal(p.memory.by_name.mapped_means ~= nil, true)
    for _, changes in ipairs { "t.output.pool = 'sqrt_n'", "t.norm = nil", "t.layers = { { d_in = 20 }, {} }" } do
        local more = changes:find "d_in" and " t.embedding = { d = 20 }" or ""
        assert(planned(base .. changes .. more).output.sums, changes)
    end
    for _, changes in ipairs {
        "t.output.pool = 'first'",
        "t.checkpoint = 'mingpt' t.embedding = {} t.output.norm = { kind = 'layernorm' }",
        "t.norm.place = 'post'",
        "t.skip = false",
        "t.layers = 2",
        lookups,
    } do
        check.equal(planned(base .. changes).output.sums, nil, changes)
    end
    local target = target_list.get "cortex-m33"
    local firmware = plan.build(load(base), { isa.get "scalar" }, { target = target })
    check.equal(firmware.output.sums, nil)
end

function test.buffers_share_memory_by_lifetime()
    local function made(first, last, bytes) return { first = first, last = last, bytes = bytes } end
    local list = { made(1, 2, 640), made(2, 3, 320), made(3, 3, 500), made(1, 1, 100) }
    local total, used = lifetimes.place(list, 3)
    check.equal(used, { 740, 960, 820 })
    check.equal(total, 960)
    for i, a in ipairs(list) do
        check.equal(a.at % 64, 0)
        for n = 1, i - 1 do
            local b = list[n]
            local together = a.first <= b.last and b.first <= a.last
            assert(not together or a.at + a.bytes <= b.at or b.at + b.bytes <= a.at)
        end
    end
    local p = planned "t.output = { pool = 'mean', dense = { width = 50, activation = 'tanh' }, unit = true }"
    local sum = 0
    for _, buffer in ipairs(p.memory.buffers) do
        sum = sum + buffer.bytes
        assert(buffer.at + buffer.bytes <= p.scratch_bytes)
    end
    assert(p.scratch_bytes < sum)
    local text = works { "plan", path "t.output = { pool = 'mean' }", "--isa", "scalar", "--schedules" }
    check.matches(text, "tokens at a time, with scalar\n")
    check.matches(text, "\nschedule scalar +%S+\n")
    for _, words in ipairs { "flash embedding", "flash blocks", "RAM scratch", "in use: blocks", "x_1" } do
        check.matches(text, words)
    end
end

-- A small decoder, its weights, and their blob.
local function decoder()
    local file = program.model(
        folder,
        "d",
        [[return { name = "d", d = 16, heads = 2, layers = 1, vocab = 40, positions = 12, skip = true,
    norm = { kind = "layernorm" },
    attention = { context = 12 }, ffn = { kind = "mlp", f = 20, activation = "relu" }, embedding = {},
    output = { norm = { kind = "layernorm" }, head = {} }, checkpoint = "mingpt" }]]
    )
    local weights = folder .. "/d.safetensors"
    works { "sample", file, "-o", weights }
    return file, weights
end

local function ids(text)
    local name = folder .. "/ids"
    assert(host.write_file(name, text))
    return name
end

function test.ids_are_checked()
    local file, weights = decoder()
    local function refused(text, line)
        local words = { "run", file, "--weights", weights, "--ids", ids(text), "--output", folder .. "/none.npy" }
        refuses(1, line, words)
        check.equal(host.kind(folder .. "/none.npy"), nil)
    end
    refused("1 2 40", "ids: id 3 = 40: must be from 0 to vocab - 1 = 39")
    refused("-1", "ids: id 1 = -1: must be from 0")
    refused("1 two", 'ids: "two": must be an integer')
    refused("1 99999999999999999999", 'ids: "99999999999999999999": must be an integer')
    refused("", "ids: has no ids")
    refused(("1 "):rep(13), "ids: 13 ids: must be at most attention.context = 12")
    refused("\x93NUMPY\1\0\10\0{'descr': ", "is no .npy file")
    refused(
        "\x93NUMPY\1\0\70\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }           \n\0\0\0\0",
        "must be integers"
    )
    local without = { "run", file, "--weights", weights, "--output", folder .. "/none.npy" }
    refuses(2, "or give --ids (see", without)
    local tiny = { "run", "gen/models/tiny.lua", "--weights", weights, "--ids", "x", "--input", "x", "--output", "y" }
    refuses(2, "--ids: x: gen/models/tiny.lua takes --input instead", tiny)
    local input = { "run", file, "--weights", weights, "--input", "x", "--output", folder .. "/none.npy" }
    refuses(2, "--input: x: " .. file .. " takes --ids instead", input)
    works { "run", file, "--weights", weights, "--ids", ids "1, 2,\n3", "--output", folder .. "/some.npy" }
end

function test.commands_that_need_vectors_say_so()
    local file = decoder()
    refuses(1, "tokenizer: is missing", { "tokenize", file, "text" })
    refuses(2, "--tables: i8: d has no LookupFFN", { "plan", file, "--tables", "i8" })
    local encoder = program.model(folder, "e", source())
    works { "sample", encoder, "-o", folder .. "/e.safetensors" }
    local words =
        { "run", encoder, "--weights", folder .. "/e.safetensors", "--ids", ids "1", "--output", "y", "--decode" }
    refuses(2, "is an encoder", words)
end

function test.loading_is_strict()
    local file, weights = decoder()
    local shallow = program.model(
        folder,
        "d",
        (
            assert(host.read(file)):gsub(
                'output = { norm = { kind = "layernorm" }, head = {} }',
                "output = { head = {} }"
            )
        )
    )
    refuses(
        1,
        "tensors transformer.ln_f.bias, transformer.ln_f.weight: are no part of model d: the model file has no \z
            output.norm; ",
        { "pack", shallow, "--weights", weights, "-o", folder .. "/blob" }
    )
    works { "pack", shallow, "--weights", weights, "-o", folder .. "/blob", "--ignore", "transformer.ln_f.*" }
    local timed = { "bench", shallow, "--weights", weights, "--isa", "scalar", "--repetitions", "1", "--cflags", "-O0" }
    refuses(1, weights .. ": tensors transformer.ln_f.bias, transformer.ln_f.weight: are no part of model d", timed)
    local firmware = { "--profile", "firmware", "--target", "generic", "--without-misra", "-o", folder .. "/firmware" }
    local words = { "emit", shallow, "--weights", weights, table.unpack(firmware) }
    refuses(1, "tensors transformer.ln_f.bias, transformer.ln_f.weight: are no part of model d", words)
    check.equal(host.kind(folder .. "/firmware"), nil)
    words[#words + 1], words[#words + 2] = "--ignore", "transformer.ln_f.*"
    works(words)
    local tied = program.model(folder, "t", (assert(host.read(file)):gsub("embedding = ", "tied = true, embedding = ")))
    words = { "pack", tied, "--weights", weights, "-o", folder .. "/blob" }
    refuses(1, "tensors transformer.ln_f.bias, transformer.ln_f.weight: are no part of model d", words)
    words[#words + 1], words[#words + 2] = "--ignore", "transformer.ln_f.*"
    refuses(
        1,
        "tensors lm_head.weight and transformer.wte.weight: are names of one tensor and must be equal; \z
            --ignore lm_head.weight leaves it out",
        words
    )
    words[#words] = "transformer.ln_f.*,lm_head.weight"
    works(words)
end

function test.bundles_stay_fresh()
    local file = path "t.vocab = 300 t.tokenizer = { kind = 'bytes' }"
    works { "emit", file, "-o", folder .. "/bundle" }
    check.matches(works { "check", folder .. "/bundle" }, "fresh")
    check.equal(works { "tokenize", file, "AB" }, "65 66\n")
end

return test
