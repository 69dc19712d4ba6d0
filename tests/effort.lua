-- How much the tests do: quick, or full where the environment says LOOKUPC_EFFORT=full. Of random cases quick runs
-- fewer, and what it leaves out of fixed lists has a name here, too. Tests in other languages ask for one:
-- `lua5.4 tests/effort.lua fuzz_models`; it is 1 or 0 where only full runs something.
local random = {
    -- name, quick, full, meaning
    { "fuzz_models", 2, 25, "random LookupFFNs of each fuzz test; quick: half by each compiler" },
    { "fuzz_transformers", 2, 12, "random transformers, and whole models, under sanitizers; likewise" },
    { "fuzz_schedules", 1, 5, "random schedules of each such LookupFFN, and of transformers for each instruction set" },
    { "fuzz_limit", "-runs=50", "-max_total_time=20", "inputs or seconds of each libFuzzer target" },
    { "bundles", 2, 8, "random models whose bundles are compiled, and whose pointers are watched" },
    { "plans", 60, 200, "random models whose plans and names are checked" },
    { "candidates", 2, 15, "random models whose candidates for tuning are emitted" },
    { "integer_models", 6, 40, "random models of integer kernels" },
    { "trained_models", 1, 20, "random whole models whose gradients are compared, in f32 and in bf16" },
    { "several_sets", 1, 20, "random blocks and whole models of which all instruction sets of a bundle are compared" },
    { "emulated_models", 0, 10, "random models of each kind that are verified on emulated CPUs of AArch64" },
    { "tokenizer_texts", 300, 20000, "texts of each tokenizer, beside an independent one and under sanitizers" },
    { "races", 10, 40, "simulated races of the tuner; three and six times as many on calmer machines" },
}

local only_full = {
    { "compilers", "emitted C by each compiler, level and standard; quick: by the next of them in turn" },
    { "instruction_sets", "tests of another subject on all instruction sets; quick: on the next in turn" },
    { "covering", "models with all pairs of features for each instruction set; quick: for equal vectors together" },
    { "planted", "most wrong templates for verify and bench, and most wrong kernels of training, that must be found" },
    { "transformers", "more shapes of transformers and whole models, in verify, bench, pack and beside NumPy" },
    { "lookups", "more shapes and types of LookupFFNs beside the definition in NumPy, and beside the softmax" },
    { "training", "more shapes that are trained and converted, groups of train's options, deaths and resumptions" },
    { "merged", "all eliminations beside NumPy, without each merged tensor in turn" },
    { "machines", "choices of all known machines" },
    { "emulated", "more models on emulated CPUs, all on those of AArch64; natively all that stand-ins run" },
    { "firmware", "all targets, not one of a class, with all bundles, by -Os, too; inputs of sort; boards; MISRA.md" },
    { "devices", "tuning of firmware for Helium and on a board that counts clocks" },
    { "exp", "every argument of exp; quick: each 509th" },
    { "damage", "every bit and byte of what is damaged; quick: some at equal distances" },
    { "orders", "all orders in which five logs are merged" },
    { "tokenizers", "all kinds of tokenizers under sanitizers" },
    { "sort", "gpt-nano-sort in all types, each input one by one" },
    { "sentences", "all pairs of sentences of STS-B" },
    { "web", "narrow types in WebAssembly" },
    { "published", "bench, firmware and a page of each imported model; quick: one of the three" },
    { "bundled", "more bundles whose lines are looked at, and that are compiled as other projects do" },
    { "pages", "commands of firmware.md, training.md, types.md and whole-models.md in docs/" },
    { "programs", "a program for Windows, and one that is replaced while it runs" },
}

-- lua5.4 or tests/support/lua_runner.c
local process = not os and require "process"
local variable = process and process.variable or os.getenv
local level = variable "LOOKUPC_EFFORT" or "quick"
if level ~= "quick" and level ~= "full" then error('LOOKUPC_EFFORT: "' .. level .. '": must be quick or full', 0) end
local full = level == "full"

-- The number of the first of random cases, and whose turn it is: 1, the same cases on every commit and machine, unless
-- LOOKUPC_SEED in the environment says another. `./build.sh test full` draws one.
local function seed()
    local given = variable "LOOKUPC_SEED" or "1"
    return math.tointeger(tonumber(given)) or error('LOOKUPC_SEED: "' .. given .. '": must be an integer', 0)
end

local effort = setmetatable({}, {
    __index = function(self, name)
        if name ~= "seed" then error("tests/effort.lua: " .. tostring(name) .. ": no such name", 2) end
        self.seed = seed()
        return self.seed
    end,
})
for _, row in ipairs(random) do
    effort[row[1]] = row[full and 3 or 2]
end

local has = {}
for _, row in ipairs(only_full) do
    has[row[1]] = full
end

-- Whether this run does what only full does under that name.
function effort.full(name)
    if has[name] == nil then error("tests/effort.lua: " .. tostring(name) .. ": not what only full runs", 2) end
    return has[name]
end

-- The fixed `list`, or with effort quick `count` of it, at equal distances from the first one on: always the same.
function effort.some(name, list, count)
    if effort.full(name) then return list end
    local some = {}
    for i = 1, count do
        some[i] = list[1 + (i - 1) * #list // count]
    end
    return some
end

if arg then -- a script: prints what is named, or all
    local name = arg[1]
    if name then return print(has[name] == nil and effort[name] or has[name] and 1 or 0) end
    for _, row in ipairs(random) do
        print(string.format("%-18s %-18s %s", row[1], effort[row[1]], row[4]))
    end
    print(string.format("%-18s %-18s %s", "seed", effort.seed, "of random cases; LOOKUPC_SEED=N repeats them"))
    print(full and "and the fixed lists whole:" or "what runs only in full:")
    for _, row in ipairs(only_full) do
        print(string.format("%-18s %s", row[1], row[2]))
    end
end
return effort
