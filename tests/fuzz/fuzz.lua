-- Random small models, each emitted, compiled, packed and verified on every instruction set of this CPU.
local blob = require "gen.plan.blob"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local verify = require "harness.families.lookup.verify"
local effort = require "tests.effort"
local dtype = require "gen.plan.dtype"
local host = require "host"
local machines = require "gen.machines.list"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local schedule = require "gen.families.lookup.schedule"
local score = require "gen.plan.score"
local weights = require "weights"
local lookup_model = require "gen.families.lookup.model"

local fuzz = {}

-- A linear congruential generator: the same models on every machine.
function fuzz.generator(seed)
    local state = seed
    return function(first, last)
        state = (state * 6364136223846793005 + 1442695040888963407)
        return first + (state >> 33) % (last - first + 1)
    end
end

-- Model number `index` and the types of its tables and of its projection: widths that are odd, even, powers of two; few
-- and many tables; every kind of projection, score, norm; one row of a table, some, or all.
function fuzz.model(index, name)
    local random = fuzz.generator(index * 7919 + 17)
    for _ = 1, 8 do
        random(0, 1)
    end
    local function width() return random(0, 3) == 0 and 1 << random(0, 7) or random(1, 200) end
    local m = { name = name or "fuzz", d = width(), d_out = width() }
    m.tau = random(0, 4) == 0 and random(9, 16) or random(1, 8)
    local tables_wanted = random(0, 5) == 0 and random(100, 300) or random(1, 40)
    m.h = math.max(1, math.min(tables_wanted, (1 << 21) // (m.d_out << m.tau)))
    if m.d > 1 and random(0, 3) > 0 then
        local padded = lookup_model.power_of_two_at_least(m.d)
        local bits = 0
        while 1 << bits < padded do
            bits = bits + 1
        end
        m.projection = { kind = "bh4", block = 1 << random(1, bits) }
        local decay = random(0, 3)
        if decay < 2 then m.projection.decay = decay == 0 and 1.0 or 0.25 end
    else
        m.projection = { kind = "dense" }
    end
    m.score = score.names[random(1, #score.names)]
    if random(0, 1) == 0 then m.norm = { kind = "layernorm", eps = 1e-5 } end
    if random(0, 2) == 0 then m.scale = "1/h" end
    if random(0, 1) == 0 then
        m.d_out = nil
        m.h = math.max(1, math.min(m.h, (1 << 21) // (m.d << m.tau)))
    end
    local tables, projection =
        dtype.names[random(1, #dtype.names)], dtype.projection_names[random(1, #dtype.projection_names)]
    m.same_codes = index % 4 == 0 or nil
    if random(0, 2) == 0 then
        local rows = 1 << m.tau
        m.neighbours = math.min(rows, ({ 2, 3, 4, 7, 21, math.min(rows, 256) })[random(1, 6)])
        if not score.get(m.score).share then m.neighbours = math.min(rows - 1, m.neighbours) end
    end
    return m, tables, projection
end

-- Makes the model one for arithmetic of integers: two rows of a table at most, one where a score could be negative.
function fuzz.for_integers(given)
    if not given.neighbours then return end
    local negative = given.tau == 1 and score.get(given.score).along
    given.neighbours = negative and 1 or math.min(2, given.neighbours)
end

-- The model as the text of a model file.
function fuzz.text(m)
    local function write(value)
        if type(value) == "table" then
            local names, list = {}, {}
            for i, item in ipairs(value) do
                list[i] = write(item)
            end
            for key in pairs(value) do
                if not list[key] then names[#names + 1] = key end
            end
            table.sort(names)
            for _, key in ipairs(names) do
                list[#list + 1] = key .. " = " .. write(value[key])
            end
            return "{ " .. table.concat(list, ", ") .. " }"
        end
        return type(value) == "string" and string.format("%q", value) or tostring(value)
    end
    return "return " .. write(m) .. "\n"
end

local function runnable()
    local list = {}
    for _, name in ipairs(cpu.describe().isa) do
        list[#list + 1] = isa.get(name)
    end
    return list
end

-- Multiplications of one call that are worth their time here: what large calls take is better spent on more schedules.
fuzz.work = 5e5

-- As many tokens as take half of that work: more than a chunk of them can then be checked.
local function worthwhile_tokens(shape)
    local projected = shape.kind == "dense" and shape.bits * shape.d or shape.repeats * 4 * shape.padded * shape.block
    return fuzz.work // 2 // (projected + shape.slots * shape.d_out)
end

-- A random legal schedule out of `choices` for the instruction set `set`. `tokens_of(key, s)`: how many tokens each
-- unit of that choice's value is, nil: none; more than `most` tokens are not chosen, where there are fewer.
function fuzz.chosen(random, choices, shape, set, most, tokens_of)
    local s = {}
    for _, choice in ipairs(choices) do
        local values, tokens = choice.values(shape, set, s), tokens_of(choice.key, s)
        local count = #values
        while tokens and count > 1 and values[count] * tokens > most do
            count = count - 1
        end
        s[choice.key] = values[random(1, count)]
    end
    return s
end

-- A random legal schedule for the instruction set `set`; passes and chunks stay small.
function fuzz.schedule(random, shape, set)
    local most = math.min(512, worthwhile_tokens(shape))
    return fuzz.chosen(random, schedule.choices, shape, set, most, function(key, s)
        return key == "chunk.tokens" and 1 or key == "project.tiles" and s["tile.vectors"] * set.lanes or nil
    end)
end

-- The plans of model number `index`, with names of their own to share a library and one blob: the default schedule on
-- all of `defaults`, as it is for the machine whose turn it is, then `schedules` random ones, each on one of `sets`.
local function plans_of(index, defaults, sets, schedules)
    local given, tables, projection = fuzz.model(index)
    local function build(isas, wanted)
        local m = model.validate(given, "", given.name)
        local part = m.projection.kind == "bh4" and index % 2 == 0 and { multiply_out = true } or nil
        return plan.build(m, isas, wanted, tables, projection, part)
    end
    local for_machine = machines.names[index % #machines.names + 1]
    local random, plans = fuzz.generator(index * 104729 + 5), { build(machines.sets(defaults, for_machine)) }
    for _ = 1, 8 do
        random(0, 1)
    end
    for n = 1, schedules do
        local set = sets[random(1, #sets)]
        given.name = "fuzz_" .. n
        local own = build({ set }, {
            [set.name] = fuzz.schedule(
                random,
                plans[1].shape,
                isa.with_types(set, { dtype.get(tables), dtype.get(projection, "projection") })
            ),
        })
        plans[n + 1] = setmetatable({ digest = plans[1].digest }, { __index = own })
    end
    given.name = "fuzz"
    return plans, fuzz.text(given)
end

-- Verifies plans of one model in the files of `directory`, each compiled with `cc`: how many kernels there were, and a
-- line for each failure.
local function verify_plans(plans, text, index, directory, cc, cflags)
    local files = { weights = directory .. "/w.safetensors", prefix = "", output = directory .. "/w.bin" }
    local verified, failures = 0, {}
    assert(weights.sample(files.weights, "", plans[1].tensors, index))
    assert(weights.pack(blob.packing(plans[1], files)))
    local library = compile.library(plans, directory .. "/source", cc, cflags)
    for i, p in ipairs(plans) do
        local options = { work = fuzz.work, bind_known = i > 1 }
        for _, result in ipairs(verify.variants(p, library, files, index, 1, options)) do
            verified = verified + 1
            for _, row in ipairs(result.checks) do
                if not row.ok then
                    failures[#failures + 1] = string.format(
                        "%s %s %s --projection %s --tables %s --seed %d --schedule %s: %s: %s\n  %s",
                        cc,
                        result.isa,
                        result.regime,
                        p.projection.name,
                        p.tables.name,
                        index,
                        p.variants[1].schedule_text,
                        row.name,
                        row.detail,
                        text
                    )
                end
            end
        end
    end
    collectgarbage() -- the model's reference
    return verified, failures
end

-- The first and the last number of the `count` random models that `cc` compiles: all with effort full, otherwise gcc
-- the first half of them and clang the other.
function fuzz.share(cc, count)
    local first, last = effort.seed, effort.seed + count - 1
    local middle = first + (count + 1) // 2
    if effort.full "compilers" then return first, last end
    return cc == "gcc" and first or middle, cc == "gcc" and middle - 1 or last
end

-- Verifies the share of `cc` of all models, each with its default schedule on the instruction sets `defaults` (all that
-- this CPU runs, if absent) and with `schedules` random ones on any; raises one line a failure.
function fuzz.verify(cc, cflags, schedules, defaults)
    local sets, directory, failures, verified = runnable(), process.temporary_directory(), {}, 0
    local first, last = fuzz.share(cc, effort.fuzz_models)
    host.print(string.format("%s: models %d to %d", cc, first, last))
    for index = first, last do
        local plans, text = plans_of(index, defaults or sets, sets, schedules)
        local count, failed = verify_plans(plans, text, index, directory, cc, cflags)
        verified = verified + count
        table.move(failed, 1, #failed, #failures + 1, failures)
    end
    host.print(string.format("%s: %d kernels verified, %d failures", cc, verified, #failures))
    if #failures == 0 then return end
    error(table.concat(failures, "\n") .. "\nLOOKUPC_SEED=" .. effort.seed .. " repeats this", 0)
end

-- Verifies the model `given`, the table of a model file, with its default schedule on the instruction sets `sets`,
-- compiled with `cc`; raises one line a failure.
function fuzz.verify_model(cc, cflags, given, sets)
    local p = plan.build(model.validate(given, "", given.name), sets, nil, "f32", "f32")
    local _, failures = verify_plans({ p }, fuzz.text(given), 1, process.temporary_directory(), cc, cflags)
    if #failures > 0 then error(table.concat(failures, "\n"), 0) end
end

-- What the sanitizers look for.
fuzz.sanitizers = "-fsanitize=address,undefined,pointer-overflow,integer-divide-by-zero,bounds,alignment "
    .. "-fno-sanitize-recover=all"

-- Calls `verify` under the sanitizers of `cc`, which must be there before this program itself: so it runs the function
-- `name` of the test file `path` once more, in a process of its own that has them.
function fuzz.sanitized(path, name, lookupc, cc, verify)
    if process.variable "FUZZ_SANITIZED" == cc then return verify() end
    local library = cc == "gcc" and "libasan.so" or "libclang_rt.asan-" .. cpu.describe().architecture .. ".so"
    local runtime = assert(process.run { cc, "-print-file-name=" .. library }).output:gsub("%s+$", "")
    if not runtime:find "^/" then error(cc .. ": has no " .. library, 0) end
    local result = assert(process.run({ assert(process.executable()), ".", lookupc, path }, {
        env = {
            FUZZ_SANITIZED = cc,
            LOOKUPC_TEST = name,
            LD_PRELOAD = runtime,
            ASAN_OPTIONS = "detect_leaks=0",
        },
        show_stderr = true,
    }))
    if result.status ~= 0 then error(result.output, 0) end
end

return fuzz
