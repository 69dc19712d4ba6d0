-- Compiles an emitted model and runs it on this CPU: on ids, or blocks alone on rows.
local calls = require "harness.calls.blocks"
local clamped = require "harness.calls.clamped"
local compile = require "harness.base.compile"
local compiled_model = require "harness.calls.compiled_model"
local families = require "gen.families.list"
local ids = require "harness.families.model.ids"
local input = require "harness.verify.input"
local machines = require "gen.machines.list"
local misuse = require "gen.schema.misuse"
local npy = require "npy"
local packing = require "gen.families.packing"
local process = require "process"
local request = require "gen.request.request"
local rows = require "rows"
local runnable = require "harness.base.runnable"
local verify_blocks = require "harness.families.model.verify_blocks"

local execute = {}

execute.not_in_checkpoints_of_blocks = {
    "norm.eps",
    "norm.place",
    "attention.rope.theta",
    "attention.rope.share",
    "attention.rope.pairs",
    "attention.rope.scaling.kind",
    "attention.rope.scaling.factor",
    "attention.rope.scaling.original",
    "attention.rope.scaling.slow",
    "attention.rope.scaling.fast",
    "attention.rope.scaling.truncate",
    "attention.rope.scaling.attention_factor",
    "attention.qk_norm.eps",
    "attention.scale",
    "attention.soft_cap",
    "attention.window",
    "attention.kind",
    "attention.tables",
    "attention.tau",
    "attention.eps",
    "attention.seed",
    "parallel",
    "ffn.activation",
    "ffn.score",
    "ffn.projection.decay",
    "ffn.scale",
    "ffn.neighbours",
}
execute.not_in_checkpoints = {
    "embedding.scale",
    "embedding.sinusoidal.order",
    "embedding.sinusoidal.steps",
    "embedding.sinusoidal.max",
    "embedding.first_position",
    "embedding.norm.eps",
    "output.norm.eps",
    "output.pool",
    "output.dense.activation",
    "output.dense.norm.eps",
    "output.unit",
    "output.head.soft_cap",
    table.unpack(execute.not_in_checkpoints_of_blocks),
}

-- One plan for the best instruction set that this CPU runs of those in options.isa.
function execute.plan(path, options)
    local m, family = request.model(path, options)
    local sets = runnable.sets(options.isa, family.isa_types(options, m))
    return runnable.plan(path, { sets[#sets] }, options)
end

-- The instruction sets on which `m` is to be timed with the types of the options: the best one, or those that are
-- asked for, with the defaults of this CPU.
function execute.timed_sets(m, options)
    local sets = runnable.sets(options.isa, families.of(m).isa_types(options, m))
    return machines.sets(options.isa and sets or { sets[#sets] }, runnable.machine(options))
end

-- Raises one line for more tokens, of the file `path`, than the context of plan `p` holds.
function execute.check_context(p, path, count, what)
    if count > p.context then
        error(string.format("%s: %d %s: must be at most attention.context = %d", path, count, what, p.context), 0)
    end
end

local function check_decode(path, causal, options, what)
    if options.decode and not causal then
        misuse("--decode: " .. path .. ": is an encoder, which takes all " .. what .. " at once")
    end
end

-- Compiles plan `p`, and packs the checkpoint of the options for it: the library, and the blob.
function execute.made(p, options)
    local directory = process.temporary_directory()
    local blob = directory .. "/weights.bin"
    packing.pack(p, packing.files(options, blob))
    return compile.library({ p }, directory, options.cc, options.cflags), blob
end

-- Blocks of plan `p` on the rows of the file `path`: the result, and what was seen with the field `watched`(library)
-- of the job, nil: nothing. `one_by_one`: token by token.
function execute.blocks(p, path, options, one_by_one, watched)
    local ways = verify_blocks.ways(p, input.check(path, p.shape.input))
    local compiled, blob = execute.made(p, options)
    local job = verify_blocks.job(p, compiled, blob, one_by_one and ways[1] or ways[2] or ways[1])
    job.seen = watched and watched(compiled)
    local y, notes, beyond = calls(job, rows.doubles(assert(npy.read(path, p.shape.input))))
    if y then clamped.warn(beyond) end
    return y or error(notes, 0), notes
end

function execute.run_blocks(path, options)
    local p = execute.plan(path, options)
    local count = input.check(options.input, p.shape.input)
    execute.check_context(p, options.input, count, "tokens")
    check_decode(path, p.shape.causal, options, "tokens")
    options.check_expected(count, p.shape.d)
    local y = execute.blocks(p, options.input, options, options.decode)
    assert(npy.write(options.output, p.shape.d, rows.singles(y)))
    return string.format("%d tokens, %s", count, p.variants[1].isa.name)
end

function execute.run(path, options)
    local p = execute.plan(path, options)
    local list = ids.read(options.ids, p.model.vocab)
    execute.check_context(p, options.ids, #list, "ids")
    check_decode(path, p.causal, options, "ids")
    if options.decode and options.threads > 1 then
        local rule = "cannot be given beside --decode, whose calls have one thread"
        misuse(string.format("--threads: %d: %s", options.threads, rule))
    end
    if #list == 0 then error(options.ids .. ": has no ids", 0) end
    local pooled = p.model.output and p.model.output.pool
    options.check_expected(pooled and 1 or #list, p.widths.out)
    local model = compiled_model.of(p, options, true)
    local y
    local state = p.causal and model:state()
    if not state then
        y = assert(model:encode_batch { list })
    elseif options.decode then
        local parts = {}
        for i, id in ipairs(list) do
            parts[i] = assert(state:step(id))
        end
        y = table.concat(parts)
    else
        y = assert(state:prefill_all(list))
    end
    if state then clamped.warn(state:clamped()) end
    assert(npy.write(options.output, p.widths.out, y))
    local count = #y // (4 * p.widths.out)
    return string.format("%d ids, %d rows of %d, %s", #list, count, p.widths.out, p.variants[1].isa.name)
end

return execute
