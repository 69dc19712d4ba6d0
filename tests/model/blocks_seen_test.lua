-- verify sees lookup FFNs of blocks at work where products round their inputs, and finds what is wrong with one.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local effort = require "tests.effort"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local packed = require "harness.families.lookup.packed"
local packing = require "gen.families.packing"
local plan = require "gen.families.model.plan"
local program = require "tests.support.program"
local stand_ins = require "tests.support.stand_ins"
local verify = require "harness.families.model.verify"
local weights = require "weights"

local test = {}
local folder = program.folder()
local tables = 8

-- Blocks, and a whole model.
local kinds = {
    [[return { name = "seen", d = 32, heads = 2, layers = 2, vocab = 20, skip = true, norm = { kind =
            "layernorm" }, attention = { context = 24 }, checkpoint = "gpt2", positions = 24, ffn = { kind = "lookup",
            h = 8, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu", neighbours = %d } }]],
    [[return { name = "seen", d = 32, heads = 2, layers = 2, vocab = 20, skip = true, norm = { kind =
            "layernorm" }, attention = { context = 24, causal = false }, checkpoint = "bert", positions = 24,
            embedding = {}, output = { pool = "mean" }, ffn = { kind = "lookup", h = 8, tau = 4, projection = { kind =
            "bh4", block = 8 }, score = "gelu", neighbours = %d } }]],
}

-- The checkpoint `path` with change(number) instead of some floats of the second tensor of that name's end: every
-- `step`-th of the first `count`.
local function damaged(path, ending, count, step, change)
    local bytes = assert(host.read(path))
    local header = json.decode(bytes:sub(9, 8 + string.unpack("<I8", bytes)))
    local names = {}
    for name in pairs(header) do
        if name:sub(-#ending) == ending then names[#names + 1] = name end
    end
    table.sort(names)
    local at = 9 + string.unpack("<I8", bytes) + header[names[2]].data_offsets[1]
    for i = 0, count - 1, step do
        local from = at + 4 * i
        local value = string.pack("<f", change((string.unpack("<f", bytes, from))))
        bytes = bytes:sub(1, from - 1) .. value .. bytes:sub(from + 4)
    end
    local other = folder .. "/damaged.safetensors"
    assert(host.write_file(other, bytes))
    return other
end

local narrow = {
    { projection = "i8" },
    { projection = "i16", tables = "i8" },
    { projection = "i8", type = "i8", activations = "i8" },
    { projection = "i8", ["multiply-out"] = true, schedule = { scalar = { ["project.dense"] = 1 } } },
}

local count = effort.full "lookups" and #narrow - 1 or 1 -- of them, but the last

-- What verify finds, of kernels of kind number `k` for the weights that `damage(path)` leaves, beside the weights at
-- `path`, with the types number `i`.
local made = {}
local function found_with(k, i, neighbours, damage)
    local kind, key = kinds[k], k .. "/" .. i
    local own = made[key]
    if not own then
        local path = program.model(folder, "seen", kind:format(neighbours))
        own = { directory = program.folder(), sample = folder .. "/sample" .. k .. ".safetensors" }
        own.plan = plan.build(model.load(path), isa.select "scalar", narrow[i])
        assert(weights.sample(own.sample, "", own.plan.samples, 1))
        own.prepared = verify.prepare(own.plan, own.directory, { seed = 1, weights = own.sample })
        own.library = compile.library({ own.plan }, own.directory, "gcc", "-O0")
        made[key] = own
    end
    local packed = damage and damage(own.sample) or own.sample
    packing.pack(own.plan, { weights = packed, output = own.prepared.blob, prefix = "" })
    return verify.check_library(own.plan, own.library, own.prepared, 1)
end

function test.every_lookup_is_seen()
    for k = 1, #kinds do
        for i = 1, count do
            local neighbours = i % 2 + 1
            for _, result in ipairs(found_with(k, i, neighbours)) do
                check.equal({ result.message or "", result.ok }, { "", true })
                check.equal(result.looked.codes, result.tokens * 2 * tables * neighbours)
            end
        end
    end
end

local hash, rows = "hash.projection.weight", "tables"

-- A token alone goes by BH4, several by the dense matrix: in i8 some codes differ.
function test.each_token_is_judged_by_the_form_of_the_projection_that_it_went_by()
    local forms = {}
    for _, result in ipairs(found_with(1, #narrow, 1)) do
        check.equal({ result.message or "", result.ok }, { "", true })
    end
    for i, stage in ipairs(made["1/" .. #narrow].plan.parts[1].plan.variants[1].stages) do
        forms[i] = packed.form_of(stage) or "bh4"
    end
    check.equal(forms, { "multiplied_out", "bh4" })
    local form_of = packed.form_of
    packed.form_of = function() end
    local first, second = table.unpack(found_with(1, #narrow, 1)) -- one by one, and several
    packed.form_of = form_of
    check.equal({ first.ok, second.ok }, { true, false })
    check.matches(second.message, "^lookup FFN 0: ")
end

-- One thing that is wrong with the second block, and what is said of it.
local errors = {
    { "a sign of a weight", hash, 1, 1, function(w) return -w end, "^lookup FFN 1: " },
    { "the scale of a block", hash, 64, 1, function(w) return 1.1 * w end, "^lookup FFN 1: " },
    { "a number in every row", rows, tables * 16 * 32, 32, function(w) return w + 0.1 end, "." },
}

function test.errors_in_one_block_are_found()
    for k = 1, #kinds do
        for i = 1, count do
            for _, row in ipairs(errors) do
                local what, ending, floats, step, change, message = table.unpack(row)
                local found = found_with(k, i, i % 2 + 1, function(path)
                    return damaged(path, ending, floats, step, change)
                end)
                for _, result in ipairs(found) do
                    check.equal({ what, result.ok }, { what, false })
                    check.matches(result.message, message)
                end
            end
        end
    end
end

-- The tiles are arrays in C.
function test.lookup_ffns_are_projected_by_a_matrix_engine()
    local set, header = stand_ins.get "amx_int8"
    if not set then return end
    local path = program.model(folder, "seen", kinds[1]:gsub("d = 32", "d = 64"):format(1))
    local p = plan.build(model.load(path), { set }, { projection = "i8", ["multiply-out"] = true })
    check.equal(p.parts[1].plan.variants[1].stages[1].projection.tiled.panels, 2)
    local library = stand_ins.library({ p }, folder .. "/tiles", header)
    local prepared = verify.prepare(p, program.folder(), { seed = 1 })
    for _, result in ipairs(verify.check_library(p, library, prepared, 1)) do
        check.equal({ result.message or "", result.ok }, { "", true })
    end
end

return test
