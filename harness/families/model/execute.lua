-- Compiles an emitted whole model and runs it on this CPU.
local blocks = require "harness.families.model.blocks.execute"
local ids = require "harness.families.model.ids"
local library = require "harness.whole.library"
local misuse = require "gen.model.misuse"
local request = require "gen.bundle.request"
local runnable = require "harness.base.runnable"
local transformer = require "transformer"
local whole = require "whole"
local whole_family = require("gen.families.model.family").whole

local execute = {}

execute.unsaid = {
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
}
table.move(blocks.unsaid, 1, #blocks.unsaid, #execute.unsaid + 1, execute.unsaid)

-- One plan for the best instruction set that this CPU runs of those in options.isa.
function execute.plan(path, options)
    local sets = runnable.sets(options.isa, whole_family.isa_types(options, (request.model(path, options))))
    return runnable.plan(path, { sets[#sets] }, options)
end

function execute.run(path, options)
    local p = execute.plan(path, options)
    local list = ids.read(options.ids, p.model.vocab)
    if #list > p.context then
        error(string.format("%s: %d ids: must be at most attention.context = %d", options.ids, #list, p.context), 0)
    end
    if options.decode and not p.causal then
        misuse("--decode: " .. path .. ": is an encoder, which takes all ids at once")
    end
    if options.decode and options.threads > 1 then
        local rule = "cannot be given beside --decode, whose calls have one thread"
        misuse(string.format("--threads: %d: %s", options.threads, rule))
    end
    if #list == 0 then error(options.ids .. ": has no ids", 0) end
    local pooled = p.model.output and p.model.output.pool
    options.check_expected(pooled and 1 or #list, p.widths.out)
    local model = library.of(p, options, true)
    local y
    if not p.causal then
        y = assert(model:encode_batch { list })
    elseif options.decode then
        local state, parts = model:state(), {}
        for i, id in ipairs(list) do
            parts[i] = assert(state:step(id))
        end
        y = table.concat(parts)
    else
        y = assert(model:state():prefill_all(list))
    end
    assert(transformer.save(options.output, p.widths.out, whole.doubles(y)))
    local rows = #y // (4 * p.widths.out)
    return string.format("%d ids, %d rows of %d, %s", #list, rows, p.widths.out, p.variants[1].isa.name)
end

return execute
