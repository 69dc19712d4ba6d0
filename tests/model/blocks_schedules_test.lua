-- Random schedules of small transformers verify, on every instruction set, with every type of the cache; none changes
-- the blob.
local check = require "tests.support.check"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local machines = require "gen.machines.list"
local model = require "gen.families.model_file"
local program = require "tests.support.program"
local space = require "gen.families.model.blocks.schedule"
local model_plan = require "gen.families.model.plan"

local test = {}
local folder = program.folder()

local shapes = {
    "d = 48, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 150 }, ffn = { kind = \z
        'glu', f = 70, activation = 'silu' }",
    "d = 40, heads = 5, kv_heads = 1, attention = { eliminate = 'QP', window = 45, context = 64, rope = { share = 0.5 \z
        } }, ffn = { kind = 'mlp', f = 66, activation = 'relu' }",
    "d = 33, heads = 3, attention = { causal = false, window = 20, context = 100 }, ffn = { kind = 'mlp', f = 40, \z
        activation = 'gelu' }",
    "d = 34, heads = 1, parallel = true, skip = true, norm = { kind = 'rmsnorm' }, attention = { eliminate = 'QP', \z
        rope = {}, window = 70, context = 90 }, ffn = { kind = 'mlp', f = 100, activation = 'gelu_tanh' }",
}

local function random_schedule(random, shape, set)
    local s = {}
    for _, choice in ipairs(space.choices) do
        local values = choice.values(shape, set, s)
        s[choice.key] = values[random(1, #values)]
    end
    return s
end

-- The options of the type of weights and rounded inputs that the instruction set `set` is there for, if any.
local function types_of(set)
    for _, type in ipairs(dtype.list) do
        for _, served in ipairs(type.products and set.serves or {}) do
            if served == type.products.needs then return { type = type.name, activations = type.name } end
        end
    end
    return { type = "f32", activations = "f32" }
end

for number, name in ipairs(cpu.describe().isa) do
    test["random_schedules_of_" .. name .. "_verify"] = function()
        local random, set = fuzz.generator(31 * number), isa.get(name)
        local types = types_of(set)
        for _ = 1, 8 do
            random(0, 1)
        end
        for i = 1, effort.fuzz_schedules do
            local keys = shapes[(number + i) % #shapes + 1]
            local path = program.model(folder, "m", "return { name = 'm', layers = 2, vocab = 30, " .. keys .. " }")
            local shape = model_plan.build(model.load(path), { set }, types).shape
            local caches = { "f32", "f16", "i8", types.type }
            local s, cache = space.text(random_schedule(random, shape, set)), caches[random(1, #caches)]
            local result = program.run {
                "verify",
                path,
                "--isa",
                name,
                "--cflags",
                "-O0",
                "--json",
                "--schedule",
                s,
                "--cache",
                cache,
                "--type",
                types.type,
                "--activations",
                types.activations,
            }
            local found = json.decode(result.output)
            if not found or not found.ok then
                error(
                    string.format("--schedule %s --cache %s: %s%s", s, cache, keys, result.errors),
                    0
                )
            end
        end
    end
end

function test.choices_of_a_transformer()
    local path = program.model(folder, "m", "return { name = 'm', layers = 2, vocab = 30, " .. shapes[1] .. " }")
    local found = json.decode(program.works { "schedules", path, "--json", "--schedule", "attention.sums=2" })
    check.equal(
        { #found.sets, found.sets[1].choices[1].key, #found.sets[1].choices },
        { #isa.bundled, "few.vectors", #space.choices }
    )
    program.refuses(
        2,
        '--schedule: few.unrol: unknown choice; did you mean "few.unroll"?',
        { "emit", path, "-o", folder .. "/never", "--schedule", "few.unrol=2" }
    )
    program.refuses(
        2,
        "--schedule: product.tokens = 5: scalar: must be one of 1",
        { "emit", path, "-o", folder .. "/never", "--schedule", "product.tokens=5" }
    )
    program.refuses(
        2,
        "--schedule: gather.group: unknown choice",
        { "emit", path, "-o", folder .. "/never", "--schedule", "gather.group=4" }
    )
    check.equal(host.kind(folder .. "/never"), nil)
end

-- Products that unpack weights before read none so many bytes ahead, and take no other way of prefetching instead.
function test.prefetches_of_products_follow_the_machine()
    local path = program.model(folder, "m", "return { name = 'm', layers = 2, vocab = 30, " .. shapes[1] .. " }")
    for machine, wanted in pairs { generic = { 0, 0 }, zen3 = { 4096, 0 }, ["sapphire-rapids"] = { 1, 1 } } do
        local sets, found = machines.sets(isa.select "avx2", machine), {}
        for i, type in ipairs { "f32", "i8" } do
            local p = model_plan.build(model.load(path), sets, { type = type })
            found[i] = p.segments[1].plan.variants[1].schedule["product.prefetch"]
        end
        check.equal({ machine, found }, { machine, wanted })
    end
end

function test.a_bundle_remembers_its_schedule()
    local path = program.model(folder, "m", "return { name = 'm', layers = 2, vocab = 30, " .. shapes[1] .. " }")
    local bundle = folder .. "/bundle"
    program.works {
        "emit",
        path,
        "-o",
        bundle,
        "--isa",
        "avx2",
        "--schedule",
        "attention.sums=2,product.prefetch=512",
        "--cache",
        "i8",
    }
    check.equal(program.works { "check", bundle }, bundle .. ": fresh\n")
    check.equal(json.decode(assert(host.read(bundle .. "/MANIFEST.json"))).options, {
        isa = { "avx2" },
        type = "f32",
        cache = "i8",
        schedule = { avx2 = { ["attention.sums"] = 2, ["product.prefetch"] = 512 } },
    })
    assert(assert(host.read(bundle .. "/m__avx2.c")):find("512)", 1, true))
end

function test.no_choice_changes_the_blob()
    local path = program.model(folder, "m", "return { name = 'm', layers = 2, vocab = 30, " .. shapes[2] .. " }")
    local m, sets = model.load(path), isa.select "avx2"
    local digest = model_plan.build(m, sets, {}).digest
    for _, choice in ipairs(space.choices) do
        for _, value in
            ipairs(
                choice.values(
                    model_plan.build(m, sets, {}).shape,
                    sets[1],
                    space.make(model_plan.build(m, sets, {}).shape, sets[1], {})
                )
            )
        do
            local p = model_plan.build(m, sets, { schedule = { avx2 = { [choice.key] = value } } })
            check.equal({ p.digest, p.variants[1].schedule[choice.key] }, { digest, value })
        end
    end
end

return test
