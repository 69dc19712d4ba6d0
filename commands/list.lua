-- The commands of lookupc: one table says their arguments, options and help.
local combinations = require "harness.measure.combinations"
local completion = require "commands.completion"
local copied = require "gen.schema.copied"
local dtype = require "gen.plan.dtype"
local eliminations = require "gen.families.model.blocks.eliminations"
local examples = require "commands.examples"
local integer_types = require "gen.families.lookup.integer.types"
local isa = require "gen.isa.list"
local lookup = require "gen.families.lookup.family"
local machines = require "gen.machines.list"
local target = require "gen.plan.target"
local wrap = require "gen.emit.wrap"

local isa_option = {
    name = "isa",
    value = "LIST",
    values = isa.names,
    doc = "instruction sets, of " .. table.concat(isa.names, ","),
}
local output_option = { name = "o", value = "PATH", required = true }
local weights_option = {
    name = "weights",
    value = "PATH",
    required = true,
    doc = "the checkpoint: safetensors or GGUF file, index of several, or folder of safetensors",
}
local prefix_option = {
    name = "prefix",
    value = "TEXT",
    default = "",
    doc = "what stands before the tensor names, such as roberta.encoder.layer.3.FFN.",
}
local ignore_option = {
    name = "ignore",
    value = "PATTERNS",
    doc = "tensors that the model may leave out: names with * and ?, separated by commas",
}
local blocks_option = { name = "blocks-in-out", doc = "the checkpoint's BH4 blocks are stored [b in][b out]" }
local seed_option = { name = "seed", value = "N", default = 1, integer = true, doc = "of the random numbers" }
local schedule_option = {
    name = "schedule",
    value = "CHOICES",
    doc = "choices such as gather.group=8,gather.columns=128 (see lookupc schedules)",
}
local for_option = {
    name = "for",
    value = "MACHINE",
    values = machines.names,
    doc = "defaults for a CPU: " .. table.concat(machines.names, ", ") .. "; --schedule goes before them",
}
local tuned_option =
    { name = "tuned", value = "FILE", doc = "choices of a file that lookupc tune wrote, instead of --schedule" }
local arithmetic_option = {
    name = "arithmetic",
    value = "KIND",
    values = lookup.arithmetics,
    doc = "float, or integer: kernels without floating point; default float",
}
local tables_option = {
    name = "tables",
    value = "TYPE",
    values = dtype.names,
    doc = "type of the tables' elements: "
        .. table.concat(dtype.names, ", ")
        .. "; default f32, in blocks --type, or i8 for its i4, u4 and q8; with integer arithmetic "
        .. table.concat(integer_types.tables_names, ", ")
        .. "; default i8",
}
local projection_option = {
    name = "projection",
    value = "TYPE",
    values = dtype.projection_names,
    doc = "type of the projection's weights: "
        .. table.concat(dtype.projection_names, ", ")
        .. "; default f32; with integer arithmetic "
        .. table.concat(integer_types.projection_names, ", ")
        .. "; default i16",
}
local quantise_option = {
    name = "quantise",
    value = "TYPES",
    doc = "passes forward with tables and projections rounded as pack does: i8, i4, or such as i8,i16",
}
local multiply_option = {
    name = "multiply-out",
    doc = "the blob has a BH4 projection as one dense matrix, too, for calls of many tokens (see project.dense)",
}
local type_option = {
    name = "type",
    value = "TYPE",
    values = dtype.type_names,
    check = dtype.of_parts,
    doc = "type of a transformer's weights: "
        .. table.concat(dtype.type_names, ", ")
        .. "; default f32; or types of parts behind it, as in i4,head=i8: of "
        .. table.concat(dtype.parts, ", "),
}
local cache_option = {
    name = "cache",
    value = "TYPE",
    values = dtype.cache_names,
    doc = "type of a transformer's cached keys and values: "
        .. table.concat(dtype.cache_names, ", ")
        .. "; default f32",
}
local activations_option = {
    name = "activations",
    value = "TYPE",
    values = dtype.activation_names,
    doc = "type that a transformer's products round inputs to, which needs --type of the same, for i8 also i4, u4, q8: "
        .. table.concat(dtype.activation_names, ", ")
        .. "; default f32",
}

-- Types, or the word for those of the weights (harness/measure/combinations.lua).
local function or_same(names) return table.move(names, 1, #names, 1, { [#names + 1] = "same" }) end

local type_options =
    { tables_option, projection_option, multiply_option, type_option, cache_option, activations_option }
local threads_option = {
    name = "threads",
    value = "N",
    default = 1,
    integer = true,
    doc = "most threads of a call; more than one: an OpenMP build",
}
local json_option = { name = "json", doc = "print JSON for machines" }
local compiler_option = { name = "cc", value = "COMPILER", default = "gcc", doc = "compiles the emitted C" }
local flags_option =
    { name = "cflags", value = "FLAGS", default = "-O2", doc = "its flags, beside those of the instruction set" }
local truncate_option = { name = "truncate", doc = "take the first tokens of a text that the context does not hold" }

local build_options = {
    { name = "quiet", doc = "print nothing but errors, for build systems" },
    {
        name = "depfile",
        value = "FILE",
        doc = "also write a rule for make and Ninja: which files the output depends on",
    },
    {
        name = "depfile-target",
        value = "PATH",
        needs = "depfile",
        doc = "what that rule calls the output; default: its files",
    },
}

local function with(option, changes)
    local copy = copied(option)
    for key, value in pairs(changes) do
        copy[key] = value
    end
    return copy
end

-- Of a checkpoint, where --weights may be missing.
local checkpoint_options = {}
for i, option in ipairs { prefix_option, ignore_option, blocks_option } do
    checkpoint_options[i] = with(option, { needs = "weights" })
end

local for_here_option =
    with(for_option, { doc = "defaults of a CPU, " .. table.concat(machines.names, ", ") .. ", not of this one" })
local train_text_option = { name = "text", value = "FILE...", required = true, doc = "text to train on, UTF-8" }

local tokenizer_option = { name = "tokenizer", value = "FILE", doc = "of a model file without one" }

-- Of the commands that take text.
local text_options = {
    tokenizer_option,
    ignore_option,
    blocks_option,
    isa_option,
    schedule_option,
    for_here_option,
    tuned_option,
    tables_option,
    projection_option,
    type_option,
    cache_option,
    activations_option,
    threads_option,
    compiler_option,
    flags_option,
}

local profile_option = {
    name = "profile",
    value = "firmware",
    values = { "firmware" },
    doc = "for microcontrollers: one token at a time, weights linked in, sizes as macros, a self-test",
}
local target_option = {
    name = "target",
    value = "NAME",
    values = target.names,
    doc = "of the firmware: " .. table.concat(target.names, ", "),
}
local runner_option = {
    name = "runner",
    value = "CMD",
    doc = "run on a device: CMD PROGRAM ARGUMENTS... runs there what --cc makes here, such as examples/runners/ssh",
}

local target_flags_option = {
    name = "target-flags",
    value = "FLAGS",
    doc = "firmware: compiler flags behind the target's, for another CPU of the kind",
}

-- Options of tune that concern a model.
local tuning_of_models = {
    "batch",
    "resume",
    "exhaustive",
    "choices",
    "shard",
    "html",
    "isa",
    "for",
    "threads",
    "runner",
    "profile",
    "target",
    "link",
    "weights",
    "tables",
    "projection",
    "type",
    "cache",
    "activations",
}

-- One row a command; it is the function of that name, the last word of it, in the module `from`, and returns the exit
-- status, or nil and the name of an option that this model needs. An argument in brackets may be missing, one that ends
-- with ... may be repeated. Among the options there may be lists of options; a required one may be missing where one of
-- those that it names in `unless` is given. One whose value ends with ... takes all words up to the next option, as a
-- list. One with `values` takes no other than these; one whose value is LIST takes some of them, separated by commas.
-- Where it has `check`, that raises one line for a value instead. `not_beside` and `needs` are rules of
-- commands/option_rules.lua. `values` of a command are those of its argument.
local commands = {
    {
        name = "plan",
        arguments = { "MODEL.lua" },
        from = "commands.emit",
        doc = "print shapes, MFLOP and bytes of a model",
        options = {
            json_option,
            { name = "schedules", doc = "also the schedule of each instruction set" },
            isa_option,
            schedule_option,
            for_option,
            tuned_option,
            arithmetic_option,
            type_options,
            with(profile_option, {
                not_beside = { "schedules", "isa", "for" },
                needs = "target",
                doc = "instead what such a bundle takes of flash, RAM and stack, and which options would help",
            }),
            with(target_option, { needs = "profile" }),
            with(target_flags_option, { needs = "profile" }),
        },
    },
    {
        name = "schedules",
        arguments = { "MODEL.lua" },
        from = "commands.emit",
        doc = "list every choice of a schedule with its legal values",
        options = {
            json_option,
            isa_option,
            schedule_option,
            for_option,
            tuned_option,
            type_options,
        },
    },
    {
        name = "emit",
        arguments = { "MODEL.lua" },
        from = "commands.emit",
        doc = "write the C sources of a model into a folder",
        options = {
            with(
                output_option,
                { value = "DIR", unless = { "list", "web", "python", "rust" }, doc = "folder of the bundle" }
            ),
            {
                name = "web",
                value = "DIR",
                doc = "instead folder of a web page that runs the model in a browser; needs --weights and clang-19",
            },
            isa_option,
            schedule_option,
            for_option,
            tuned_option,
            arithmetic_option,
            type_options,
            profile_option,
            target_option,
            target_flags_option,
            with(weights_option, { required = false, doc = "safetensors file, of the firmware or the page" }),
            prefix_option,
            ignore_option,
            blocks_option,
            with(seed_option, { doc = "of the self-test's tokens" }),
            { name = "flash", value = "BYTES", doc = "firmware: refuse what takes more, such as 512K" },
            { name = "ram", value = "BYTES", doc = "likewise" },
            { name = "stack", value = "BYTES", doc = "likewise" },
            { name = "weights-array", doc = "firmware: weights as a C array instead of .incbin" },
            {
                name = "wrap",
                value = "LIST",
                values = wrap.names,
                doc = "firmware: also the files with which " .. table.concat(wrap.names, ",") .. " take it",
            },
            { name = "without-misra", doc = "firmware: leave out MISRA.md, which takes most of the time" },
            {
                name = "single-file",
                doc = "one C file beside the header, which needs no compiler flags; gcc and clang",
            },
            { name = "training", doc = "also <model>_train.h and C files that train the weights" },
            { name = "linked", doc = "also <model>_linked.h and .c, which make the blob a part of the program" },
            {
                name = "fixed-names",
                doc = "for build systems: for each of --isa a C file, also without kernels, and one of its flags",
            },
            { name = "cmake", doc = "also CMakeLists.txt: add_subdirectory of the folder gives a target" },
            { name = "meson", doc = "also meson.build: in subprojects/ a dependency" },
            { name = "make", doc = "also <model>.mk, to be included in a Makefile" },
            { name = "cpp", doc = "also <model>.hpp: a class that owns weights and working memory" },
            { name = "benchmark", doc = "also <model>_benchmark.cc: a program that times the calls; firmware: .c" },
            {
                name = "batch",
                value = "LIST",
                needs = "benchmark",
                doc = "tokens a call that it times; default those of bench, up to the context, of firmware 1, or 1,8",
            },
            { name = "python", value = "DIR", doc = "instead folder of a Python package, for numpy" },
            { name = "rust", value = "DIR", doc = "instead folder of a Rust crate" },
            { name = "list", doc = "print the names of the files instead of writing them" },
            with(json_option, { needs = "list", doc = "JSON, with the compiler flags of each file" }),
            { name = "name", value = "NAME", doc = "refuse a model of another name" },
            {
                name = "rename",
                value = "NAME",
                doc = "another name than the model's, for a second bundle in a program; blobs stay the model's",
            },
            build_options,
        },
    },
    {
        name = "check",
        arguments = { "DIR" },
        from = "commands.emit",
        doc = "exit 1 if a vendored bundle is stale, was edited or holds files that are not of it",
        options = {
            {
                name = "ignore",
                value = "PATTERNS",
                doc = "files that may lie there beside: names with * and ?, separated by commas, such as notes.md,*.o",
            },
        },
    },
    {
        name = "sample",
        arguments = { "MODEL.lua" },
        from = "commands.emit",
        doc = "write random weights under the checkpoint's tensor names",
        options = {
            seed_option,
            with(output_option, { value = "FILE", doc = "safetensors file" }),
            prefix_option,
            { name = "unfused", doc = "the checkpoint that fuse reads instead of the one for pack" },
            arithmetic_option,
        },
    },
    {
        name = "pack",
        arguments = { "MODEL.lua" },
        from = "commands.emit",
        doc = "fold weights in float64 and lay them out for the kernels",
        options = {
            with(weights_option, { required = false }),
            with(output_option, { value = "FILE", doc = "blob for <model>_bind" }),
            {
                name = "calibrate",
                value = "FILE",
                doc = "choose scales and integers of --projection i8 or i7 for such inputs: of a LookupFFN and of "
                    .. "blocks a .npy file, float32 [tokens][d], of a whole model text",
            },
            {
                name = "calibrate-ids",
                value = "FILE",
                not_beside = { "calibrate" },
                doc = "a whole model's ids instead, text or .npy of integers",
            },
            checkpoint_options,
            arithmetic_option,
            tables_option,
            projection_option,
            multiply_option,
            type_option,
            with(cache_option, { doc = "as run takes it: the blob is the same" }),
            activations_option,
            with(compiler_option, { doc = "compiles the float model that --calibrate runs" }),
            flags_option,
            build_options,
        },
    },
    {
        name = "run",
        arguments = { "MODEL.lua" },
        from = "commands.run",
        doc = "apply a model to a .npy file, [tokens][d] float32, or a whole model to ids",
        options = {
            weights_option,
            {
                name = "input",
                value = "X.npy",
                required = true,
                unless = { "ids" },
                doc = "float32 [tokens][d]",
            },
            { name = "ids", value = "FILE", doc = "a whole model: the ids of a sequence, text or .npy of integers" },
            {
                name = "output",
                value = "Y.npy",
                required = true,
                unless = { "expect" },
                doc = "float32 [tokens][d_out]",
            },
            {
                name = "expect",
                value = "Y.npy",
                doc = "what a framework makes of the same input, float32 or float64: compare with it",
            },
            {
                name = "tolerance",
                value = "NUMBER",
                needs = "expect",
                doc = "exit 1 above this relative error of a row; default 1e-5",
            },
            isa_option,
            prefix_option,
            ignore_option,
            blocks_option,
            schedule_option,
            for_here_option,
            tuned_option,
            arithmetic_option,
            type_options,
            { name = "decode", doc = "a transformer or whole model: give it its tokens one by one" },
            threads_option,
            compiler_option,
            flags_option,
        },
    },
    {
        name = "verify",
        arguments = { "MODEL.lua" },
        from = "commands.run",
        doc = "compare every emitted kernel with the float64 reference",
        options = {
            with(weights_option, { required = false, doc = "safetensors file; absent: random weights" }),
            {
                name = "budget",
                value = "LIST",
                not_beside = { "runner" },
                doc = "exit 1 if it costs more, such as codes=1%,error=0.4: share of codes that flip, of blocks and "
                    .. "whole models in each layer; of a LookupFFN also error of y, default: the model's budget",
            },
            isa_option,
            seed_option,
            checkpoint_options,
            schedule_option,
            for_here_option,
            tuned_option,
            arithmetic_option,
            type_options,
            runner_option,
            threads_option,
            compiler_option,
            flags_option,
            json_option,
        },
    },
    {
        name = "bench",
        arguments = { "MODEL.lua..." },
        from = "commands.run",
        doc = "time the emitted code of models, verified, against OpenBLAS and oneDNN or a dense twin",
        options = {
            { name = "batch", value = "LIST", doc = "tokens a call; default 1,8,64,512,4096, of a transformer 1,512" },
            { name = "lengths", value = "LIST", doc = "a whole model: tokens of a sequence; default 16,128,512" },
            with(weights_option, { required = false, doc = "the checkpoint of the one model; absent: random weights" }),
            checkpoint_options,
            isa_option,
            json_option,
            seed_option,
            schedule_option,
            for_here_option,
            with(
                tuned_option,
                { value = "LIST", doc = "tuned files instead of --schedule, measured in one run; default: without one" }
            ),
            arithmetic_option,
            with(tables_option, {
                value = "LIST",
                values = or_same(dtype.names),
                doc = "types of the tables' elements, of "
                    .. table.concat(dtype.names, ",")
                    .. "; default f32, in blocks and whole models --type, which same says, too",
            }),
            with(projection_option, {
                value = "LIST",
                values = or_same(dtype.projection_names),
                doc = "types of the projection's weights, of "
                    .. table.concat(dtype.projection_names, ",")
                    .. "; default f32, with integer arithmetic i16; same: of blocks those of --type",
            }),
            multiply_option,
            with(type_option, {
                value = "LIST",
                check = combinations.check_types,
                doc = "types of a transformer's weights, of " .. table.concat(dtype.type_names, ",") .. "; default f32",
            }),
            with(cache_option, {
                value = "LIST",
                doc = "types of a transformer's cached keys and values, of "
                    .. table.concat(dtype.cache_names, ",")
                    .. "; default that of --activations",
            }),
            with(activations_option, {
                value = "LIST",
                values = or_same(dtype.activation_names),
                doc = "types that a transformer's products round inputs to, beside weights of the same, of "
                    .. table.concat(dtype.activation_names, ",")
                    .. "; same: each --type; default f32",
            }),
            { name = "position", value = "N", integer = true, doc = "a transformer: of the first token" },
            with(runner_option, { not_beside = { "raw", "rivals", "position" } }),
            with(threads_option, {
                doc = "most threads of a call, in an OpenMP build; of blocks and integers: callers at a time",
            }),
            {
                name = "rivals",
                value = "LIST",
                values = { "same", "f32", "mlp" },
                doc = "what LookupFFNs and products of blocks stand beside: same (of the same type), f32; \z
                    default both; mlp: LookupFFNs also beside lookupc's own MLP of the same type",
            },
            { name = "html", value = "FILE", doc = "also write a page with charts" },
            { name = "raw", value = "FILE", doc = "also write all samples, for compare.py of Google Benchmark" },
            {
                name = "repetitions",
                value = "N",
                default = 7,
                integer = true,
                doc = "interleaved repetitions of every measurement, at most 3 of calls of half a second and more; \z
                    1: shorter ones, for a glance",
            },
            compiler_option,
            flags_option,
        },
    },
    {
        name = "report",
        arguments = { "FILE..." },
        from = "commands.report",
        doc = "print a page of results that bench --json printed: Markdown, a section a file",
        options = { { name = "html", value = "FILE", doc = "also write a page with charts" } },
    },
    {
        name = "tokenize",
        arguments = { "MODEL.lua", "[TEXT...]" },
        from = "commands.run",
        doc = "print the ids of texts, or of the lines of standard input, a row each",
        options = { tokenizer_option, json_option, compiler_option, flags_option },
    },
    {
        name = "embed",
        arguments = { "MODEL.lua", "[TEXT...]" },
        from = "commands.text",
        doc = "vectors of texts, or of the lines of standard input, a row each",
        options = {
            weights_option,
            { name = "o", value = "V.npy", doc = "float32 [texts][d_out]; absent: numbers on standard output" },
            truncate_option,
            json_option,
            text_options,
        },
    },
    {
        name = "similar",
        arguments = { "MODEL.lua", "[TEXT]" },
        from = "commands.text",
        doc = "rank the lines of standard input by how similar they are to a text",
        options = {
            weights_option,
            { name = "lines", value = "FILE", doc = "the lines, instead of standard input" },
            { name = "top", value = "N", integer = true, doc = "print so many lines; default 10" },
            {
                name = "similarity",
                value = "KIND",
                values = { "angle", "cosine" },
                default = "angle",
                doc = "angle: 1 - arccos(cosine) / pi, or cosine",
            },
            {
                name = "score",
                value = "PAIRS.csv",
                doc = "instead of a text: rows of sentence, sentence, score; prints how similarity correlates with it",
            },
            {
                name = "budget",
                value = "NUMBER",
                needs = "score",
                doc = "exit 1 if these types lose more of Pearson's correlation against float32",
            },
            truncate_option,
            json_option,
            text_options,
        },
    },
    {
        name = "generate",
        arguments = { "MODEL.lua", "[PROMPT]" },
        from = "commands.text",
        doc = "continue a text",
        options = {
            weights_option,
            { name = "tokens", value = "N", default = 100, integer = true, doc = "tokens to make, at most" },
            {
                name = "temperature",
                value = "NUMBER",
                default = "0.8",
                doc = "of the softmax; 0: always the likeliest token",
            },
            { name = "top-p", value = "NUMBER", default = "1", doc = "draw from the fewest tokens that share so much" },
            { name = "top-k", value = "N", default = 0, integer = true, doc = "draw from so many tokens; 0: from all" },
            with(seed_option, { doc = "of what is drawn" }),
            { name = "ids", value = "IDS", doc = "the prompt as ids, such as 0,2,1, or a file of them" },
            { name = "stop", value = "TEXT", doc = "end before this text" },
            {
                name = "stop-ids",
                value = "IDS|none",
                doc = "end before one of these ids; default: those that the model file or the tokenizer says",
            },
            json_option,
            text_options,
        },
    },
    {
        name = "perplexity",
        arguments = { "MODEL.lua" },
        from = "commands.text",
        doc = "how well a model predicts a text",
        options = {
            weights_option,
            { name = "text", value = "FILE", doc = "the text; -: standard input" },
            {
                name = "ids",
                value = "FILE",
                not_beside = { "text" },
                doc = "its ids instead, text or .npy of integers",
            },
            { name = "context", value = "N", integer = true, doc = "tokens of a window; default the model's context" },
            { name = "stride", value = "N", integer = true, doc = "tokens between windows; default half a window" },
            { name = "positions", doc = "also by how many tokens of the window stand before the predicted one" },
            {
                name = "budget",
                value = "NUMBER",
                doc = "exit 1 if these types lose more nats a token against the same weights in float32",
            },
            json_option,
            text_options,
        },
    },
    {
        name = "convert",
        arguments = { "MODEL.lua" },
        from = "commands.convert",
        doc = "fit the lookup FFNs of a whole model to a trained one that has dense FFNs",
        options = {
            { name = "from", value = "FILE", required = true, doc = "checkpoint of the dense model, safetensors" },
            { name = "dense", value = "DENSE.lua", required = true, doc = "its model file, with its tokenizer" },
            {
                name = "text",
                value = "FILE",
                required = true,
                unless = { "ids" },
                doc = "text of which the activations are recorded; lines, for an encoder",
            },
            {
                name = "ids",
                value = "FILE",
                not_beside = { "text" },
                doc = "its ids instead, of a decoder; text or .npy of integers",
            },
            with(output_option, { doc = "safetensors file of the model with lookup FFNs" }),
            {
                name = "tokens",
                value = "N",
                integer = true,
                not_beside = { "method=hash-w" },
                doc = "tokens that each layer learns from; a shorter text is read again; default 480000, "
                    .. "with --quick 100000",
            },
            {
                name = "end-to-end",
                value = "N",
                integer = true,
                not_beside = { "quick", "method=hash-w" },
                doc = "tokens that the whole model learns from in the end; 0: none; default 120000",
            },
            {
                name = "layers",
                value = "LIST",
                doc = "convert these layers, such as 0,2-5; auto: as many as --most-loss allows",
            },
            {
                name = "most-loss",
                value = "NUMBER",
                needs = "layers=auto",
                doc = "what the model may lose, nats a token or 1 - mean cosine; default 0.05",
            },
            {
                name = "quick",
                not_beside = { "method=hash-w" },
                doc = "neurons' hash stays as it is; tables by least squares; not end to end",
            },
            {
                name = "method",
                value = "METHOD",
                values = { "learned", "hash-w" },
                default = "learned",
                doc = "learned, or hash-w: tables out of hashed weights, a baseline",
            },
            quantise_option,
            with(seed_option, { doc = "of the hash's start and the order of the text" }),
            isa_option,
            compiler_option,
            flags_option,
        },
    },
    {
        name = "tokenizer",
        arguments = {},
        from = "commands.train",
        doc = "train a tokenizer on text",
        options = {
            train_text_option,
            { name = "pieces", value = "N", integer = true, required = true, doc = "of the vocabulary" },
            {
                name = "kind",
                value = "KIND",
                values = { "bpe", "unigram", "bytes" },
                default = "bpe",
                doc = "bpe or unigram; bytes: says what the model file needs instead",
            },
            {
                name = "coverage",
                value = "SHARE",
                default = "1",
                doc = "share of the text's characters that are pieces; the rarest are left out",
            },
            {
                name = "byte-fallback",
                doc = "characters that are no pieces become their bytes, which are 256 of the pieces",
            },
            with(output_option, { value = "FILE.model", doc = "SentencePiece model" }),
        },
    },
    {
        name = "train",
        arguments = { "MODEL.lua" },
        from = "commands.train",
        doc = "train a whole model on text",
        options = {
            train_text_option,
            { name = "valid", value = "FILE...", doc = "text to validate on; default: a tenth of the other" },
            tokenizer_option,
            with(output_option, { value = "FILE", doc = "safetensors file of the weights" }),
            { name = "steps", value = "N", integer = true, doc = "steps to train, or --tokens or --time" },
            { name = "tokens", value = "N", not_beside = { "steps" }, doc = "instead so many tokens, such as 2e6" },
            {
                name = "time",
                value = "TIME",
                not_beside = { "steps", "tokens" },
                doc = "instead for so long, such as 90s, 5m, 1h",
            },
            { name = "batch", value = "N", integer = true, doc = "sequences a step; default 16" },
            {
                name = "context",
                value = "N",
                integer = true,
                doc = "tokens of a sequence; default the model's context",
            },
            { name = "rate", value = "NUMBER", doc = "highest learning rate of matrices; default 2e-3" },
            { name = "table-rate", value = "NUMBER", doc = "of tables; default 0.04, with adam three times --rate" },
            {
                name = "table-optimiser",
                value = "NAME",
                values = { "adagrad", "adam" },
                doc = "of tables: adagrad, a sum for each row (default), or adam, two moments for each number",
            },
            {
                name = "type",
                value = "NAME",
                values = { "f32", "bf16" },
                doc = "of factors of dense products; default f32",
            },
            quantise_option,
            {
                name = "projection-rate",
                value = "NUMBER",
                doc = "of projections, times that of matrices; default 0.03 for BH4, 0.3 for dense ones",
            },
            {
                name = "attention",
                value = "NAME",
                values = { "exact" },
                doc = "of kind lsh: exact, with the weights that tables have on average to the end",
            },
            { name = "dropout", value = "SHARE", doc = "default 0" },
            { name = "masked", value = "SHARE", doc = "an encoder: tokens to be found; default 0.15" },
            { name = "mask-id", value = "N", integer = true, doc = "an encoder: the id that stands for them" },
            with(seed_option, { doc = "of weights, order and dropout" }),
            { name = "threads", value = "N", integer = true, doc = "default: one a CPU" },
            { name = "evaluate", value = "N", integer = true, doc = "steps between validations; default a twentieth" },
            { name = "save-every", value = "TIME", doc = "between checkpoints, at most; default 60s" },
            { name = "resume", doc = "go on with the run whose checkpoint is beside the weights" },
            { name = "log", value = "FILE.jsonl", doc = "default beside the weights" },
            { name = "html", value = "FILE", doc = "also write a page with charts, at each validation" },
            isa_option,
            compiler_option,
            flags_option,
        },
    },
    {
        name = "fuse",
        arguments = { "MODEL.lua" },
        from = "commands.checkpoint",
        doc = "merge projections of a transformer's checkpoint exactly into others",
        options = {
            with(
                weights_option,
                { value = "PATH", doc = "unfused safetensors file, index of several, or folder of either" }
            ),
            ignore_option,
            with(output_option, { doc = "fused safetensors file, or with --shard-mib a folder" }),
            {
                name = "eliminate",
                value = "WORD",
                values = eliminations,
                doc = "projections to do without, such as QP; default attention.eliminate of the model",
            },
            {
                name = "type",
                value = "TYPE",
                values = { "f32", "bf16", "f16", "f64" },
                doc = "of merged tensors: f32, bf16, f16 or f64; default that of the tensors they replace",
            },
            { name = "report", doc = "print condition numbers and errors of every layer" },
            { name = "max-condition", value = "NUMBER", default = "1e10", doc = "refuse to invert matrices beyond it" },
            {
                name = "max-error",
                value = "NUMBER",
                default = "0.1",
                doc = "refuse merged matrices whose product with the inverted one is off by more, relatively",
            },
            {
                name = "shard-mib",
                value = "N",
                integer = true,
                doc = "write files of at most so many MiB and an index",
            },
        },
    },
    {
        name = "quantise",
        arguments = { "WEIGHTS" },
        from = "commands.checkpoint",
        doc = "write a checkpoint with its matrices and tables in integers of 8 or 4 bits",
        options = {
            {
                name = "tables",
                value = "TYPE",
                values = { "i8", "i4" },
                default = "i8",
                doc = "of the tables of LookupFFNs: i8 or i4",
            },
            with(type_option, {
                needs = "model",
                doc = "i4, u4, q8, or types of parts with one: what the model reads is written as pack rounds it",
            }),
            { name = "model", value = "MODEL.lua", needs = "type", doc = "model file of the weights" },
            {
                name = "calibrate",
                value = "FILE",
                needs = "model",
                doc = "choose the integers of matrices in 4 bits for what this text brings them",
            },
            {
                name = "calibrate-ids",
                value = "FILE",
                needs = "model",
                not_beside = { "calibrate" },
                doc = "ids instead, text or .npy of integers",
            },
            with(ignore_option, { needs = "model" }),
            with(tokenizer_option, { needs = "calibrate" }),
            with(compiler_option, { needs = "calibrate", doc = "compiles the model, whose tokenizer reads the text" }),
            with(flags_option, { needs = "calibrate" }),
            with(output_option, { value = "FILE", doc = "safetensors file" }),
        },
    },
    {
        name = "import",
        arguments = { "PATH" },
        from = "commands.checkpoint",
        doc = "make a model file of a checkpoint's folder or config.json, a GGUF file, a TensorFlow.js or minGPT model",
        options = {
            with(
                output_option,
                { value = "MODEL.lua", doc = "model file; weights that need conversion become MODEL.safetensors" }
            ),
            { name = "name", value = "NAME", doc = "of the model; default from the file" },
            {
                name = "eliminate",
                value = "WORD",
                values = eliminations,
                default = "none",
                doc = "projections to do without",
            },
            {
                name = "skipless",
                doc = "the checkpoint has neither skip connections nor norms, whatever config.json says",
            },
        },
    },
    {
        name = "tune",
        arguments = { "[MODEL.lua]" },
        from = "commands.tune",
        doc = "find the fastest schedule for this CPU and compiler, and how sure that is",
        options = {
            {
                name = "o",
                value = "FILE",
                not_beside = { "shard" },
                doc = "tuned file for emit --tuned, tuned.lua, if absent; the log of the run is beside it, FILE.jsonl",
            },
            {
                name = "machine",
                value = "NAME",
                not_beside = tuning_of_models,
                doc = "instead of a model tune the defaults of this CPU: writes gen/machines/NAME.lua, or -o FILE",
            },
            {
                name = "time",
                value = "TIME",
                doc = "at most, for the whole run, such as 90s, 5m, 1h; 0: only what the store of measurements knows; \z
                    5m, if absent, of a CPU 1h",
            },
            { name = "batch", value = "LIST", doc = "tokens a call; default 1,8,64,512,4096, of a transformer 1,512" },
            { name = "resume", doc = "go on with the run that the log tells of; a finished one only answers" },
            { name = "again", doc = "measure, even if the store or the log knows the answer" },
            { name = "exhaustive", doc = "race all schedules of the space; their compilation does not count as time" },
            { name = "choices", value = "LIST", doc = "vary only these choices, such as gather.group,gather.columns" },
            {
                name = "shard",
                value = "I/N",
                needs = "out",
                doc = "race the I-th of N parts of the candidates; writes a log for tuned merge, no tuned file",
            },
            {
                name = "out",
                value = "FILE.jsonl",
                needs = "shard",
                doc = "the log of a shard; an unfinished one is continued",
            },
            { name = "html", value = "FILE", not_beside = { "shard" }, doc = "also write a page with charts" },
            json_option,
            isa_option,
            with(for_here_option, { doc = "start from the defaults for a CPU, such as generic; default: this one's" }),
            threads_option,
            runner_option,
            with(profile_option, {
                needs = "target",
                not_beside = { "isa", "for", "html", "cc", "cflags" },
                doc = "kernels for microcontrollers, by -O2 and -Os; without --runner QEMU counts their instructions",
            }),
            with(target_option, { needs = "profile" }),
            {
                name = "link",
                value = "FLAGS",
                needs = "profile",
                doc = "firmware: what a link for the board of --runner takes, with its start-up code and linker script",
            },
            with(weights_option, { required = false, doc = "safetensors file; absent: random weights" }),
            checkpoint_options,
            type_options,
            seed_option,
            with(compiler_option, { value = "LIST", doc = "compilers, the first one that of the default" }),
            flags_option,
        },
    },
    {
        name = "tuned list",
        arguments = {},
        from = "commands.tuned",
        doc = "list what the local store of measurements holds",
        options = { json_option },
    },
    {
        name = "tuned show",
        arguments = { "KEYPREFIX" },
        from = "commands.tuned",
        doc = "list the candidates measured under one key",
        options = { json_option },
    },
    {
        name = "tuned merge",
        arguments = { "LOG.jsonl..." },
        from = "commands.tuned",
        doc = "take logs of lookupc tune into the local store",
        options = { json_option },
    },
    {
        name = "tuned export",
        arguments = { "KEYPREFIX" },
        from = "commands.tuned",
        doc = "write the records of one key as a log",
        options = { with(output_option, { value = "FILE.jsonl", doc = "log to be written" }) },
    },
    {
        name = "tuned prune",
        arguments = {},
        from = "commands.tuned",
        doc = "remove records from the local store",
        options = {
            { name = "older", value = "DAYS", integer = true, doc = "those measured more than so many days ago" },
            {
                name = "templates",
                value = "other",
                values = { "other" },
                doc = "those of other templates than this lookupc's",
            },
            json_option,
        },
    },
    {
        name = "schema",
        arguments = {},
        from = "commands.schema",
        doc = "print what a model file may hold, for editors",
        options = {
            { name = "json", doc = "as a JSON Schema" },
            { name = "lua", doc = "as annotations for the Lua language server" },
        },
    },
    {
        name = "doctor",
        arguments = {},
        from = "commands.doctor",
        doc = "print what this machine has of all that lookupc can use, and how to get what is missing",
        options = { json_option },
    },
    {
        name = "completion",
        arguments = { "SHELL" },
        values = completion.shells,
        doc = "print what completes command lines in " .. table.concat(completion.shells, ", "),
        options = {},
    },
    { name = "version", arguments = {}, doc = "print the version", options = {} },
    {
        name = "help",
        arguments = { "[COMMAND]" },
        doc = "print this, or all about one command, or the keys of model files: help model",
        options = { { name = "man", value = "DIR", doc = "write man pages, one a command, into a folder" } },
    },
}

for _, command in ipairs(commands) do
    local options = {}
    for _, item in ipairs(command.options) do
        table.move(item.name and { item } or item, 1, item.name and 1 or #item, #options + 1, options)
    end
    command.options, command.examples = options, examples[command.name]
end

return commands
