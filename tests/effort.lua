-- How much the tests do: quick, or full where the environment says LOOKUPC_EFFORT=full. Every quantity that differs is
-- one row here. Tests in other languages ask for one: lua5.4 tests/effort.lua exp_stride
local rows = {
    -- name, quick, full, meaning
    { "fuzz_models", 2, 50, "random models of each fuzz test; quick: half by each compiler" },
    { "fuzz_limit", "-runs=50", "-max_total_time=60", "inputs or seconds of each libFuzzer target" },
    { "fuzz_schedules", 1, 5, "random schedules of each such model" },
    { "fuzz_transformers", 2, 20, "random transformers of each test that draws them" },
    { "sanitized_level", "-O0", "-Og", "how random transformers are optimised under sanitizers" },
    { "fuzz_bundles", 2, 8, "random models whose bundles are compiled; eight take every compiler and level" },
    { "fuzz_pointers", 2, 20, "random models whose pointers are watched" },
    { "plan_models", 60, 200, "random models whose plans and names are checked" },
    { "machines_stride", 3, 1, "every so many-th machine whose choices are planned" },
    { "candidate_models", 2, 15, "random models whose candidates are emitted" },
    { "candidates", 6, 16, "candidates of a model, instruction set and regime that are emitted" },
    { "emitted_sets_stride", 5, 1, "every so many-th instruction set of a test that only emits" },
    { "lines_stride", 2, 1, "every so many-th bundle whose lines are looked at" },
    { "instruction_sets", "one in turn", "all", "instruction sets of a test that is not about them" },
    { "left_out_stride", 4, 1, "every so many-th merged tensor is left out beside NumPy's" },
    { "fuse_stride", 4, 1, "every so many-th fused model beside NumPy's" },
    { "noisy_races", 10, 80, "simulated races of the tuner where samples differ by 5 %" },
    { "calm_races", 60, 200, "simulated races of the tuner where samples differ by 3 %" },
    { "contended_races", 30, 100, "simulated races of the tuner while other work shares the machine" },
    { "integer_models", 6, 60, "random models of integer kernels" },
    { "transformer_schedules", 2, 8, "random schedules of transformers, for each instruction set" },
    { "train_stride", 6, 1, "every so many-th check of the training of whole models" },
    { "train_shapes_stride", 12, 1, "every so many-th kind of whole model whose gradients are compared" },
    { "train_shapes", 1, 100, "random whole models whose gradients are compared" },
    { "train_errors_stride", 18, 1, "every so many-th error that is planted in a kernel of training" },
    { "train_options_stride", 4, 1, "every so many-th group of train's options, and kind of rounding" },
    { "convert_stride", 4, 1, "every so many-th kind of decoder is converted, beside an encoder" },
    { "calibrate_stride", 3, 1, "every so many-th kind of model that pack calibrates" },
    { "numpy_stride", 6, 1, "every so many-th shape of a transformer beside NumPy's" },
    { "whole_numpy_stride", 2, 1, "every so many-th whole model beside NumPy's" },
    { "identities_stride", 4, 1, "every so many-th number of rows a table beside the softmax" },
    { "wrong_stride", 3, 1, "every so many-th wrong template that verify has to find" },
    { "published_stride", 3, 1, "every so many-th of bench, firmware and page of each imported model" },
    { "bench_stride", 4, 1, "every so many-th family that bench times with weights, threads and a page" },
    { "shapes_stride", 4, 1, "every so many-th kind of transformer that verify checks" },
    { "check_level", "-O0", "-O1", "how kernels are optimised that tests call a few times" },
    { "definition_stride", 3, 1, "every so many-th LookupFFN beside the definition in NumPy" },
    { "choices_stride", 4, 1, "every so many-th choice of a schedule is emitted" },
    { "docs_stride", 2, 1, "every so many-th page of the docs whose commands run" },
    { "emulated_stride", 4, 1, "every so many-th model that is verified on an emulated CPU" },
    { "training_stride", 3, 1, "every so many-th shape of a trained LookupFFN, and planted error" },
    { "exp_stride", 509, 1, "every so many-th argument of exp" },
    { "firmware_targets", "one of a class", "all", "targets whose firmware is built and run" },
    { "firmware_stride", 6, 1, "every so many-th bundle is run by each such target, beside the first" },
    { "firmware_sort_stride", 81, 1, "every so many-th of 729 inputs is sorted by an emulated target" },
    { "writer_targets", "cortex-m33", "cortex-m33 cortex-m7", "boards that tiny-writer writes on" },
    { "writer_seeds", "11", "11 1 2", "texts that it writes on each" },
    { "merge_stride", 5, 1, "every so many-th of 120 orders in which five logs are merged" },
    { "flip_stride", 7, 1, "every so many-th bit of a store, a log and a header is flipped" },
    { "manifest_stride", 193, 7, "every so many-th byte of a bundle's manifest is edited" },
    { "weights_stride", 9973, 997, "every so many-th bit of firmware's weights is flipped" },
    { "train_deaths", 1, 2, "ranks that die in turn while they train" },
    { "train_kills", 2, 10, "times that a run is killed and resumed" },
    { "tokenizer_lines", 300, 100000, "lines that each tokenizer splits beside an independent one" },
    { "tokenizer_rounds", 300, 20000, "random texts that each tokenizer gets under sanitizers" },
    { "tokenizer_stride", 3, 1, "every so many-th of those tokenizers" },
    { "weight_types", 2, 7, "types of weights that gpt-nano-sort sorts with" },
    { "sort_stride", 27, 1, "every so many-th input of gpt-nano-sort is also given one by one" },
    { "generate_stride", 81, 1, "every so many-th input of gpt-nano-sort is also given to generate, once" },
    { "score_stride", 5, 1, "every so many-th mixture of types whose vectors similar --score correlates" },
    { "sentence_stride", 50, 1, "every so many-th pair of STS-B's sentences is encoded" },
    { "web_models", 0, 5, "models with narrow types whose numbers in WebAssembly are compared, beside the first" },
    { "emulated_models", 0, 24, "random models that are verified on emulated CPUs of AArch64" },
    { "emulated_transformers", 0, 15, "random transformers, and whole models, that likewise are" },
    { "consumer_stride", 4, 1, "every so many-th bundle, or file with wrong flags, is compiled" },
    {
        "consumer_compilers",
        1,
        2,
        "compilers of threads, of types, of bundles that are compiled only; 2: each with all its flags",
    },
}

-- lua5.4 or tests/support/lua_runner.c
local process = not os and require "process"
local variable = process and process.variable or os.getenv
local level = variable "LOOKUPC_EFFORT" or "quick"
if level ~= "quick" and level ~= "full" then error('LOOKUPC_EFFORT: "' .. level .. '": must be quick or full', 0) end

-- The number of the first of random cases, and whose turn it is: 1, the same cases on every commit and machine, unless
-- LOOKUPC_SEED in the environment says another. `./build.sh test full` draws one.
local function seed()
    local given = variable "LOOKUPC_SEED" or "1"
    return math.tointeger(tonumber(given)) or error('LOOKUPC_SEED: "' .. given .. '": must be an integer', 0)
end

local effort = setmetatable({ level = level, full = level == "full" }, {
    __index = function(self, name)
        if name ~= "seed" then error("tests/effort.lua: " .. name .. ": no such quantity", 2) end
        self.seed = seed()
        return self.seed
    end,
})
local lines = {}
for i, row in ipairs(rows) do
    effort[row[1]] = row[effort.full and 3 or 2]
    lines[i] = string.format("%-18s %-18s %s", row[1], effort[row[1]], row[4])
end

-- Of `list` every `stride`-th, beginning with the one whose turn it is.
function effort.turns(list, stride)
    local some = {}
    for i = 1 + effort.seed % math.min(stride, #list), #list, stride do
        some[#some + 1] = list[i]
    end
    return some
end

if arg then -- a script: prints the quantity that is named, or all
    if arg[1] then return print(effort[arg[1]]) end
    print(table.concat(lines, "\n"))
    print(string.format("%-18s %-18s %s", "seed", effort.seed, "of random cases; LOOKUPC_SEED=N repeats them"))
end
return effort
