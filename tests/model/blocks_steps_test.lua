-- What a block does once: norms, roundings and queries of encoders, sums that go to the output, keys that go to the
-- cache by whole vectors, and rows of i8 tables that are summed as integers.
local cpu = require "harness.base.cpu"
local emit = require "gen.emit.emit"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local program = require "tests.support.program"
local model_plan = require "gen.families.model.plan"
local check = require "tests.support.check"

local test = {}
local folder = program.folder()

local dense, tables =
    "ffn = { kind = 'mlp', f = 64, activation = 'gelu' }",
    "ffn = { kind = 'lookup', h = 12, tau = 5, projection = { kind = 'bh4', block = 16, decay = 0.7 }, score = 'gelu' }"
local encoder = "d = 48, heads = 3, layers = 2, vocab = 30, positions = 70, checkpoint = 'roberta', skip = true, \z
    norm = { kind = 'layernorm' }, attention = { causal = false, context = 64 }, "
local decoder = "d = 48, heads = 3, layers = 2, vocab = 30, attention = { %s context = 64 }, "

local function path_of(name, text)
    return program.model(folder, name, "return { name = '" .. name .. "', " .. text .. " }")
end

local function plan_of(name, text, options, set)
    return model_plan.build(model.load(path_of(name, text)), { isa.get(set or "avx512") }, options or {})
end

-- How many steps of `list` do `op`, with `value` in the field `key` if these are given.
local function count(list, op, key, value)
    local found = 0
    for _, step in ipairs(list) do
        if step.op == op and (not key or step[key] == value) then found = found + 1 end
    end
    return found
end

function test.inputs_of_attention_are_normed_and_rounded_once()
    for _, options in ipairs { {}, { type = "i8", activations = "i8" } } do
        local p = plan_of("once", encoder .. dense, options)
        check.equal({ count(p.before, "norm"), count(p.after, "norm", "which", "first") }, { 1, 0 })
        check.equal({ count(p.before, "product"), count(p.after, "product") }, { 3, 3 })
        check.equal(count(p.before, "round"), options.activations and 1 or 0)
        check.equal(p.variants[1].buffers.of_call.name, "q")
    end
    -- Where memory is short, queries are not kept.
    check.equal(plan_of("once", encoder .. dense, { one_by_one = true }, "scalar").variants[1].buffers.of_call, nil)
end

-- The header that all files of kernels include has one offset for each buffer of attention.
function test.all_instruction_sets_share_the_places_of_attentions_buffers()
    local text = "d = 64, heads = 4, %s layers = 2, vocab = 30, attention = { %s context = 64 }, " .. dense
    for _, case in ipairs {
        { "kv_heads = 2,", "", { type = "bf16", activations = "bf16" } },
        { "kv_heads = 2,", "", { type = "i8", activations = "i8" } },
        { "", "cache = 'k',", { type = "i8", activations = "i8", cache = "f32" } },
        { "", "kind = 'lsh', tables = 2, tau = 2, causal = false, window = 4,", {} },
    } do
        local m = model.load(path_of("shared", text:format(case[1], case[2])))
        local sets = { isa.get "scalar", isa.get "avx2", isa.get "avx512" }
        local p = model_plan.build(m, sets, case[3])
        for _, v in ipairs(p.variants) do
            for i, buffer in ipairs(v.buffers.queries) do
                check.equal({ buffer.name, buffer.at }, {
                    p.variants[1].buffers.queries[i].name,
                    p.variants[1].buffers.queries[i].at,
                })
            end
        end
    end
end

function test.a_dense_ffn_beside_tables_reads_what_they_read()
    local both = tables:gsub("}$", ", dense = { kind = 'glu', f = 20, activation = 'silu' } }")
    local blocks = encoder:gsub("positions = 70, checkpoint = 'roberta', ", "") .. both
    local p = plan_of("beside", blocks)
    local lookup, products = nil, {}
    for _, step in ipairs(p.after) do
        if step.op == "lookup" then
            lookup = step
        elseif step.op == "product" then
            products[step.map.letter] = step
        end
    end
    check.equal({ lookup.from, products.G.from, products.M.from }, { "normed", "normed", "normed" })
    check.equal({ lookup.to, products.O.to, count(p.after, "add", "b", "beside") }, { "out", "beside", 1 })
    check.equal({ p.maps[#p.maps - 1].outputs, p.maps[#p.maps].inputs }, { 20, 20 })
    -- Rounded once, for both maps that read it.
    p = plan_of("beside", blocks, { type = "i8", activations = "i8" })
    check.equal(count(p.after, "round", "from", "normed"), 1)
end

-- Rows of q, k, v and output are looked up once a token, or, of an encoder that has no memory for them, twice.
function test.q_k_and_v_come_out_of_the_ffns_tables()
    local looked = "parallel = true, " .. tables:gsub("}$", ", qkv = true }")
    local p = plan_of("looked", encoder .. looked)
    check.equal({ #p.maps, p.parts[1].plan.shape.d_out, #p.shape.norms }, { 0, 4 * 48, 1 })
    check.equal({ count(p.before, "lookup"), count(p.after, "lookup") }, { 1, 0 })
    check.equal({ p.variants[1].buffers.of_call.name, p.after[#p.after].op }, { "looked", "output" })
    p = plan_of("looked", encoder .. looked, { one_by_one = true }, "scalar")
    check.equal({ count(p.before, "lookup"), count(p.after, "lookup"), p.variants[1].buffers.of_call }, { 1, 1, nil })
    p = plan_of("grouped", decoder:format "" .. "kv_heads = 1, " .. looked)
    check.equal({ count(p.before, "lookup"), count(p.after, "lookup"), p.parts[1].plan.shape.d_out }, { 1, 0, 128 })
end

function test.the_last_sum_is_the_output()
    local after = plan_of("sum", encoder .. dense).after
    check.equal({ after[#after].op, after[#after].a, after[#after].b }, { "output", "stream", "out" })
    check.equal(count(after, "add"), 1)
    -- Blocks without attention, which bench times, copy its input, and need the function that does.
    local function without_attention(maps, before, steps)
        local attend = steps[1]
        steps[1] = { op = "copy", from = attend.from, to = attend.to, width = attend.width }
        return maps, before, steps
    end
    local part = plan_of("sum", decoder:format "" .. "skip = true, " .. dense, { part = without_attention })
    check.equal({ count(part.after, "copy"), part.after[#part.after].op, #part.structs.copied }, { 1, "output", 1 })
    check.equal(part.after[#part.after].from, nil)
end

local function text_of(p)
    local texts = {}
    for _, source in ipairs(emit.sources(p)) do
        texts[#texts + 1] = source.text
    end
    return table.concat(texts)
end

function test.keys_are_written_by_whole_vectors()
    for set, wanted in pairs { avx512 = true, sse4 = true, scalar = false } do
        local text = text_of(plan_of("keys", decoder:format "" .. dense, {}, set))
        check.equal(text:find("_transpose_keys(", 1, true) ~= nil, wanted)
    end
    -- Keys that are rotated or rounded go one by one.
    local rotated = text_of(plan_of("keys", decoder:format "rope = {}," .. dense))
    local rounded = text_of(plan_of("keys", decoder:format "" .. dense, { cache = "i8" }))
    check.equal({ rotated:find "_turn_keys", rounded:find "_turn_keys" }, {})
end

function test.i8_tables_are_summed_as_integers()
    local v = plan_of("integers", encoder .. tables, { type = "i8" }).parts[1].plan.variants[1]
    assert(v.stages[1].gathers[1].integers and v.stages[2].gathers[1].integers)
    assert(table.concat(v.isa.flags, " "):find "vnni")
    -- Nothing else needs VNNI for i8: products convert weights, and so do gathers of other instruction sets.
    local without = plan_of("floats", encoder .. dense, { type = "i8" }).variants[1].isa
    check.equal(table.concat(without.flags, " "):find "vnni", nil)
    local function variant(set)
        return plan_of("integers", encoder .. tables, { type = "i8" }, set).parts[1].plan.variants[1]
    end
    check.equal(variant("sse4").stages[1].gathers[1].integers, nil)
    assert(variant("avx2").stages[1].gathers[1].integers)
    for _, set in ipairs { v.isa, isa.get "avx2" } do
        for _, words in ipairs(isa.runs(set, cpu.describe()) and { {}, { "--activations", "i8" } } or {}) do
            local arguments = { "verify", path_of("integers", encoder .. tables), "--type", "i8", "--isa", set.name }
            table.move({ "--cflags", "-O0", "--json", table.unpack(words) }, 1, 4 + #words, 7, arguments)
            local found = json.decode(program.works(arguments))
            check.equal({ found.ok, #found.results }, { true, 1 })
            -- Scores are rounded to 15 or 16 bits: more than floats are off, less than activations of 8 bits.
            if #words == 0 then assert(found.results[1].kernel_rel_err < 1e-4) end
        end
    end
end

return test
