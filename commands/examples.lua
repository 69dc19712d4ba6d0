-- Command lines that show what each command is for, by its name: { what it does, the line }, for help and man
-- pages.
return {
    plan = {
        { "sizes of a model, and the schedule of each instruction set", "lookupc plan tiny.lua --schedules" },
    },
    schedules = {
        { "choices for AVX2 with 8-bit tables", "lookupc schedules tiny.lua --isa avx2 --tables i8" },
    },
    emit = {
        { "one C file and a header that need no compiler flags", "lookupc emit tiny.lua -o tiny --single-file" },
        {
            "firmware for a Cortex-M4F with its weights, of 512 KiB at most",
            "lookupc emit kws.lua --profile firmware --target cortex-m4f --weights kws.safetensors --flash 512K -o kws",
        },
        { "a Python package", "lookupc emit tiny.lua --python package" },
    },
    check = {
        { "whether a checked-in bundle is what lookupc emits now", "lookupc check third_party/tiny --ignore '*.o'" },
    },
    sample = {
        { "random weights, to try a model before it is trained", "lookupc sample tiny.lua -o tiny.safetensors" },
    },
    pack = {
        {
            "the blob that C reads, with 8-bit tables",
            "lookupc pack tiny.lua --weights tiny.safetensors --tables i8 -o tiny.bin",
        },
    },
    run = {
        {
            "compare with what a framework makes of the same input",
            "lookupc run tiny.lua --weights tiny.safetensors --input x.npy --expect y.npy",
        },
    },
    verify = {
        { "all kernels that this CPU runs, random weights", "lookupc verify tiny.lua" },
        {
            "what 8-bit tables cost, and exit status 1 beyond it",
            "lookupc verify tiny.lua --weights tiny.safetensors --tables i8 --budget codes=1%,error=0.4",
        },
    },
    bench = {
        {
            "two types of tables beside the dense FFN, and a page with charts",
            "lookupc bench tiny.lua --tables f32,i8 --html bench.html",
        },
    },
    report = {
        { "the tables of docs/performance.md", "lookupc report docs/results/*.json >docs/performance.md" },
    },
    tokenize = {
        { "ids of a text", "lookupc tokenize encoder.lua 'Hello, world'" },
    },
    embed = {
        {
            "a vector for each line of a file",
            "lookupc embed encoder.lua --weights encoder.safetensors -o vectors.npy <lines.txt",
        },
    },
    similar = {
        {
            "the three lines most like a text",
            "lookupc similar encoder.lua --weights encoder.safetensors --lines lines.txt --top 3 'a text'",
        },
    },
    generate = {
        {
            "continue a text by the likeliest tokens",
            "lookupc generate writer.lua --weights writer.safetensors --temperature 0 'Once upon a time'",
        },
    },
    perplexity = {
        {
            "what 8-bit weights cost on a text",
            "lookupc perplexity writer.lua --weights writer.safetensors --text valid.txt --type i8 --budget 0.01",
        },
    },
    convert = {
        {
            "a dense model to one with lookup FFNs",
            "lookupc convert tables.lua --dense dense.lua --from dense.safetensors --text a.txt -o tables.safetensors",
        },
    },
    tokenizer = {
        { "a vocabulary of 512 pieces", "lookupc tokenizer --text train.txt --pieces 512 -o pieces.model" },
    },
    train = {
        {
            "train for an hour",
            "lookupc train writer.lua --text train.txt --time 1h -o writer.safetensors",
        },
        {
            "go on with that run",
            "lookupc train writer.lua --text train.txt --time 2h -o writer.safetensors --resume",
        },
    },
    fuse = {
        {
            "a checkpoint without Q and P, and how exact it is",
            "lookupc fuse skipless.lua --weights unfused.safetensors -o fused.safetensors --report",
        },
    },
    quantise = {
        { "a checkpoint of a quarter of its bytes", "lookupc quantise writer.safetensors -o writer.i8.safetensors" },
        {
            "a model's matrices in 4 bits",
            "lookupc quantise writer.safetensors --type i4 --model writer.lua -o writer.i4.safetensors",
        },
    },
    import = {
        { "a model file for a checkpoint's folder", "lookupc import checkpoint -o imported.lua" },
    },
    tune = {
        { "the fastest schedule for this CPU, in ten minutes", "lookupc tune tiny.lua -o tiny.tuned.lua --time 10m" },
        {
            "the same of a phone, from here",
            "lookupc tune tiny.lua --cc aarch64-linux-gnu-gcc --runner examples/runners/adb",
        },
        {
            "a part of that on one of four machines, for tuned merge",
            "lookupc tune tiny.lua --shard 1/4 --out shard1.jsonl",
        },
    },
    ["tuned list"] = { { "what has been measured here", "lookupc tuned list" } },
    ["tuned show"] = { { "the candidates of one key", "lookupc tuned show 3f2a" } },
    ["tuned merge"] = { { "take the logs of other machines", "lookupc tuned merge shard1.jsonl shard2.jsonl" } },
    ["tuned export"] = { { "the records of one key as a log", "lookupc tuned export 3f2a -o tiny.jsonl" } },
    ["tuned prune"] = { { "forget what is older than 90 days", "lookupc tuned prune --older 90" } },
    schema = {
        { "what an editor needs to complete model files", "lookupc schema --lua >model.lua" },
    },
    doctor = { { "what this machine has, and how to get what is missing", "lookupc doctor" } },
    completion = {
        {
            "completion for bash, from the next shell on",
            "lookupc completion bash >~/.local/share/bash-completion/completions/lookupc",
        },
    },
    version = { { "the version", "lookupc version" } },
    help = {
        { "all about one command", "lookupc help emit" },
        { "the keys of model files", "lookupc help model" },
    },
}
