-- Tensors under other names: which a model finds, and what is said of those that it does not.
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local host = require "host"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local folder, path_of, shapes = checkpoints.folder, checkpoints.path_of, checkpoints.shapes
local with_copies, with, renamed = checkpoints.with_copies, checkpoints.with, checkpoints.renamed
local transformer = checkpoints.transformer
local env = { LOOKUPC_STORE = folder .. "/store.sqlite" }
local tail = "; --ignore PATTERNS leaves it out"
local test = {}

-- Old checkpoints call tensors of norms gamma and beta: what a model has no norm for is left over under either name.
function test.other_names_are_left_over_like_the_usual_ones()
    local no_norm, layers = "the model file has no norm" .. tail, "the model file has layers = 2" .. tail
    local weights, never = path_of "o.safetensors", path_of "never"
    local function refused(model, name, reason, ...)
        local changed = with(weights, { name })
        local line = ": tensor " .. name .. ": is no part of model " .. model:match "([^/]*)%.lua$" .. ": " .. reason
        refuses(1, changed .. line, { "pack", model, "--weights", changed, "-o", never, ... })
        return changed, line
    end
    local model = transformer("o", "m.checkpoint = 'bert'")
    works { "sample", model, "-o", weights }
    local first, last = "bert.encoder.layer.0.output.LayerNorm.", "bert.encoder.layer.7.output.LayerNorm."
    refused(model, last .. "beta", layers)
    refused(model, first .. "beta", no_norm)
    local changed, line = refused(model, first .. "gamma", no_norm)
    for _, words in ipairs {
        { "verify", model },
        { "tune", model, "--time", "0", "-o", never },
    } do
        table.move({ "--isa", "scalar", "--weights", changed }, 1, 4, #words + 1, words)
        refuses(1, line, words, { env = env })
    end
    -- fuse copies what follows the blocks, and nothing of them.
    model = transformer("q", "m.checkpoint = 'bert' m.attention.eliminate = 'QP'")
    works { "sample", model, "--unfused", "-o", weights }
    changed = with(weights, { first .. "gamma", "cls.predictions.decoder.bias" })
    refuses(1, ": tensor " .. first .. "gamma: is no part of model q: " .. no_norm, {
        "fuse",
        model,
        "--weights",
        changed,
        "-o",
        never,
    })
    model = transformer("l", "")
    works { "sample", model, "-o", weights }
    refused(model, "model.layers.0.extra.LayerNorm.gamma", no_norm)
    -- RMSNorms have no bias under any name.
    model = transformer("rr", "m.checkpoint = 'bert' m.skip = true m.norm = { kind = 'rmsnorm' }")
    works { "sample", model, "-o", weights }
    refused(model, first .. "beta", 'the model file has norm.kind = "rmsnorm", which has no bias' .. tail)
    -- LookupFFNs have no other names: their checkpoints are younger.
    model = program.model(
        folder,
        "layer",
        "return { name = 'layer', d = 32, h = 2, tau = 3, projection = { kind = 'dense' }, score = 'one' }"
    )
    works { "sample", model, "--prefix", "a.", "-o", weights }
    refused(model, "a.LayerNorm.gamma", no_norm, "--prefix", "a.")
    refused(model, "a.LayerNorm.beta", no_norm, "--prefix", "a.", "--arithmetic", "integer")
end

-- Some programs save a tensor under both of its names. With other values one of them would be dropped.
function test.two_names_of_a_tensor()
    local norm = "m.skip = true m.norm = { kind = 'layernorm' } m.checkpoint = 'bert'"
    local model, weights, never = transformer("c", norm), path_of "c.safetensors", path_of "never"
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    local start = "bert.encoder.layer.1.output.LayerNorm."
    local copies = { [start .. "weight"] = start .. "gamma", [start .. "bias"] = start .. "beta" }
    for _, bare in ipairs { false, true } do
        local both = with_copies(weights, copies)
        if bare then both = renamed(both, "^bert[.]", "") end
        works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
        check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    end
    local function refused(changed, first, second)
        local line = ": tensors %s and %s: are names of one tensor and must be equal; --ignore %s leaves it out"
        refuses(1, changed .. line:format(first, second, first), {
            "pack",
            model,
            "--weights",
            changed,
            "-o",
            never,
        })
        works { "pack", model, "--weights", changed, "--ignore", first, "-o", path_of "found.bin" }
        check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    end
    refused(with(weights, { start .. "gamma" }, 16), start .. "gamma", start .. "weight")
    refused(with(weights, { start .. "beta" }, 15), start .. "beta", start .. "bias") -- another shape
    -- The head of a whole model.
    local function head(changes)
        return transformer(
            "h",
            norm .. " m.checkpoint = 'roberta' m.attention.rope = nil m.attention.causal = false m.positions = 8 \z
                m.embedding = {} m.output = { head = { bias = true } } " .. changes
        )
    end
    model = head ""
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    local both = with_copies(weights, { ["lm_head.bias"] = "lm_head.decoder.bias" })
    works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
    check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    local changed = with(weights, { "lm_head.decoder.bias" }, 20)
    refused(changed, "lm_head.decoder.bias", "lm_head.bias")
    refuses(1, "tensors lm_head.decoder.bias and lm_head.bias: ", {
        "verify",
        model,
        "--weights",
        changed,
        "--isa",
        "scalar",
    })
    -- The matrix of a tied head is the word embedding.
    model = head "m.tied = true"
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    both = with_copies(weights, { ["roberta.embeddings.word_embeddings.weight"] = "lm_head.decoder.weight" })
    works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
    check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    local other = with(weights, { "lm_head.decoder.weight" }, 20)
    refused(other, "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
    model = head "m.output.head.bias = nil"
    works { "sample", model, "-o", weights }
    for name, key in pairs {
        ["lm_head.decoder.bias"] = "output.head.bias",
        ["roberta.embeddings.LayerNorm.gamma"] = "embedding.norm",
    } do
        refuses(1, ": tensor " .. name .. ": is no part of model h: the model file has no " .. key .. tail, {
            "pack",
            model,
            "--weights",
            with(weights, { name }),
            "-o",
            never,
        })
    end
end

-- Bare models lack the prefix of their names, other programs put one before all, and old files have other norms: the
-- blob is the same.
function test.spellings()
    for _, case in ipairs {
        { "roberta", "^roberta[.]", "" },
        { "roberta", "^", "model." },
        { "lookupffn", "^roberta[.]", "", "^", "_orig_mod." },
        { "gpt2", "^transformer[.]", "" },
        { "bert", "LayerNorm[.]weight", "LayerNorm.gamma" },
        { "bert", "LayerNorm[.]bias", "LayerNorm.beta" },
    } do
        local kind = case[1]
        local norm = "m.skip = true m.norm = { kind = 'layernorm' }"
        local model = transformer("ss", norm .. " m.checkpoint = '" .. kind .. "'")
        local weights, wanted, found = path_of "s.safetensors", path_of "wanted.bin", path_of "found.bin"
        works { "sample", model, "-o", weights }
        works { "pack", model, "--weights", weights, "-o", wanted }
        for i = 2, #case, 2 do
            weights = renamed(weights, case[i], case[i + 1])
        end
        works { "pack", model, "--weights", weights, "-o", found }
        check.equal(host.read(found), host.read(wanted))
    end
    -- What is left out is called as in the file, and explained.
    local model, weights = transformer("b", "m.checkpoint = 'roberta'"), path_of "b.safetensors"
    works { "sample", model, "-o", weights }
    weights = renamed(with(weights, { "roberta.encoder.layer.2.output.dense.weight" }), "^roberta[.]", "")
    refuses(
        1,
        ": tensor encoder.layer.2.output.dense.weight: is no part of model b: the model file has layers = 2",
        { "pack", model, "--weights", weights, "-o", path_of "never" }
    )
end

-- Fused files keep the spelling of theirs.
function test.spellings_of_fused_files()
    local model, weights = transformer("ff", "m.checkpoint = 'roberta' m.attention.eliminate = 'QP'"), path_of "f.st"
    works { "sample", model, "--unfused", "-o", weights }
    works { "fuse", model, "--weights", renamed(weights, "^roberta[.]", ""), "-o", path_of "g.st" }
    check.equal(shapes(path_of "g.st")["encoder.layer.1.attention.self.key.weight"], "16 16")
    works { "fuse", model, "--weights", weights, "-o", path_of "h.st" }
    works { "pack", model, "--weights", path_of "g.st", "-o", path_of "g.bin" }
    works { "pack", model, "--weights", path_of "h.st", "-o", path_of "h.bin" }
    check.equal(host.read(path_of "g.bin"), host.read(path_of "h.bin"))
    works { "verify", model, "--isa", "scalar", "--cflags", "-O0", "--weights", path_of "renamed.safetensors" }
end

-- A layer is all that lies under its prefix; without one it is the whole checkpoint.
function test.layers_and_prefixes()
    local weights = path_of "layer.safetensors"
    local model = program.model(
        folder,
        "layer",
        "return { name = 'layer', d = 32, h = 2, tau = 3, projection = { kind = 'dense' }, score = 'one' }"
    )
    works { "sample", model, "--prefix", "a.FFN.", "-o", weights }
    local function pack(changed, ...)
        return { "pack", model, "--weights", changed, "--prefix", "a.FFN.", "-o", path_of "b.bin", ... }
    end
    works(pack(with(weights, { "a.dense.weight", "b.FFN.tables", "a.FFNtables" })))
    local changed = with(weights, { "a.FFN.LayerNorm.weight" })
    refuses(
        1,
        "tensor a.FFN.LayerNorm.weight: is no part of model layer: the model file has no norm" .. tail,
        pack(changed)
    )
    refuses(1, "tensor a.FFN.LayerNorm.weight: ", {
        "verify",
        model,
        "--weights",
        changed,
        "--prefix",
        "a.FFN.",
        "--isa",
        "scalar",
    })
    refuses(1, "tensor a.FFN.LayerNorm.weight: ", pack(changed, "--arithmetic", "integer"))
    refuses(1, "tensor hash.projection.weight is missing; give --prefix a.FFN.\n", {
        "pack",
        model,
        "--weights",
        changed,
        "-o",
        path_of "never",
    })
end

function test.eight_are_named()
    local names = {}
    for i = 1, 12 do
        names[i] = string.format("extra.%02d", i)
    end
    local model, weights = "gen/models/tiny.lua", path_of "tiny.safetensors"
    works { "sample", model, "-o", weights }
    local changed = with(weights, names)
    local function pack(...) return { "pack", model, "--weights", changed, "-o", path_of "b.bin", ... } end
    refuses(
        1,
        ": tensors "
            .. table.concat(names, ", ", 1, 8)
            .. " and 4 more: are no part of model tiny; --ignore PATTERNS leaves them out",
        pack()
    )
    refuses(1, ": tensors extra.10, extra.11, extra.12: are no part", pack("--ignore", "extra.0?"))
    refuses(1, ": tensors extra.01, extra.02, ", pack("--ignore", "xtra.*,extra,extra.1?.,extra%d"))
    refuses(2, '--ignore: "extra.*,": must be names, separated by commas', pack("--ignore", "extra.*,"))
    works(pack("--ignore", "extra.0*,extra.1?"))
    works(pack("--ignore", "*"))
    refuses(1, "--ignore: extra.x*: " .. changed .. " has no such tensor", pack("--ignore", "extra.*,extra.x*"))
end

return test
