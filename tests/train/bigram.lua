-- Jobs for the training code by hand in tests/train/bigram.c.
local process = require "process"

local bigram = { vocab = 16 }

local vocab, rows = bigram.vocab, 256

local library
local function compiled()
    if library then return library end
    library = process.temporary_directory() .. "/bigram.so"
    local words = { "gcc", "-std=c11", "-O1", "-I.", "-shared", "-fPIC", "-o", library, "tests/train/bigram.c", "-lm" }
    local result = assert(process.run(words))
    if result.status ~= 0 then error(result.output, 0) end
    return library
end

-- Ids, each of which is mostly followed by the same one.
local function ids(count, seed)
    local list, id, state = {}, 0, seed
    for i = 1, count do
        state = (state * 1103515245 + 12345) & 0x7fffffff
        id = (state >> 16) % 4 == 0 and (state >> 18) % vocab or (5 * id + 3) % vocab
        list[i] = string.pack("<i4", id)
    end
    return table.concat(list)
end

bigram.ids = ids

-- A job of train.open with `changes`.
function bigram.job(changes)
    local j = {
        library = compiled(),
        step = "bigram_step",
        loss = "bigram_loss",
        workspace = "bigram_workspace",
        apply = "bigram_apply",
        parameters = 2 * rows,
        gradients = rows,
        table_rows = vocab,
        constants = "",
        context = 12,
        batch = 6,
        threads = 1,
        seed = 1,
        train = ids(4000, 1),
        valid = ids(400, 2),
        mask = 0,
        vocab = vocab,
        masked = 0.0,
        decay = 0.01,
        beta1 = 0.9,
        beta2 = 0.98,
        epsilon = 1e-8,
        table_epsilon = 1e-8,
        clip = 1.0,
        dropout = 0.0,
        tensors = {
            {
                name = "dense",
                shape = { vocab, vocab },
                at = 0,
                rows = vocab,
                columns = vocab,
                pitch = vocab,
                tables = 0,
                state_at = 0,
                first_table = 0,
                rate = 1.0,
                decays = true,
                means = { 0.0 },
                deviation = 0.02,
            },
            {
                name = "tables",
                shape = { 2, vocab // 2, vocab },
                at = rows,
                rows = vocab,
                columns = vocab,
                pitch = vocab,
                tables = vocab // 2,
                state_at = 0,
                first_table = 0,
                rate = 0.0,
                decays = false,
                means = { 0.0 },
                deviation = 0.02,
                layer = 0,
            },
        },
    }
    for key, value in pairs(changes or {}) do
        j[key] = value
    end
    return j
end

return bigram
