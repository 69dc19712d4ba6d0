-- Lookup FFNs of compiled blocks seen at work: what they are given and look up while public functions run, and how that
-- compares with the reference (harness/verify/interposed.h). For models where products round their inputs: an input
-- half-way between two numbers may become either, and then so may many codes; where attention by tables rounds values,
-- in units that grow otherwise in the reference; and where projections are multiplied out, by which a call may go or
-- not. The reference takes the codes of the kernels instead, once they have been found right
-- for the inputs that kernels were given.
local block_reference = require "block_reference"
local compilers = require "harness.base.compilers"
local host = require "host"
local packed = require "harness.families.lookup.packed"

local observed_lookups = {}

-- Whether the lookup FFNs of blocks, plans of transformers, are to be seen at work.
function observed_lookups.wanted(blocks)
    for _, p in ipairs(blocks) do
        local looked = p.lookup_types
        local shape = p.shape
        local rounds = shape.rounded or shape.lsh and shape.cache.type.scaled
        if looked and (rounds or shape.looked or looked.projection.word.integers) then return true end
    end
    return false
end

-- The functions of lookup FFNs that do the work, as harness/verify/interposed.h wants them.
local function functions_of(blocks)
    local list, known = {}, {}
    local function add(shape, name, tile, form)
        if known[name] then return end
        known[name] = true
        list[#list + 1] = {
            name = name,
            gather = tile ~= nil,
            tile = tile or 0,
            d = shape.d,
            slots = shape.slots,
            step = shape.x_step,
            form = form,
        }
    end
    for _, p in ipairs(blocks) do
        for _, part in ipairs(p.parts) do
            local shape, v = part.plan.shape, part.plan.variants[1]
            for _, stage in ipairs(v.stages) do
                add(shape, stage.names.ffn)
                for _, gather in ipairs(stage.gathers) do
                    add(shape, gather.names.gather, stage.tile, packed.form_of(stage))
                end
            end
        end
    end
    return list
end

-- The library with functions of the same names, which hand their arguments on.
local function source_of(functions)
    local lines = {
        "#include <stddef.h>",
        "#include <stdint.h>",
        "void (*lookupc_ffn)(size_t, const void *, const float *, float *, size_t, void *);",
        "void (*lookupc_gather)(size_t, const void *, const uint16_t *, const float *, float *, size_t, void *);",
    }
    local ffn = "void %s(const void *w, const float *x, float *y, size_t n, void *s) \z
        { lookupc_ffn(%d, w, x, y, n, s); }"
    local gather = "void %s(const void *w, const uint16_t *c, const float *f, float *y, size_t n, void *s) \z
        { lookupc_gather(%d, w, c, f, y, n, s); }"
    for i, row in ipairs(functions) do
        lines[#lines + 1] = (row.gather and gather or ffn):format(row.name, i - 1)
    end
    return table.concat(lines, "\n") .. "\n"
end

-- What jobs with functions of `library` have as the field `seen`, to see the lookup FFNs of `blocks`, plans for one
-- instruction set, with `tokens` tokens together.
function observed_lookups.of(blocks, library, cc, tokens)
    local functions, path = functions_of(blocks), library .. ".stand_in"
    local own = { stand_in = path .. ".so", d = 1, slots = 1, room = 0, functions = functions }
    for _, row in ipairs(functions) do
        own.d, own.slots = math.max(own.d, row.d), math.max(own.slots, row.slots)
    end
    for _, p in ipairs(blocks) do
        own.room = own.room + (p.lookup_types and p.model.layers or 0) * tokens
    end
    assert(host.write_file(path .. ".c", source_of(functions)))
    compilers.call { cc, "-shared", "-fPIC", "-o", own.stand_in, path .. ".c" }
    return own
end

-- How the lookups in `notes` compare with the reference's: { codes, flips, flips_explained, scores, scores_explained },
-- the worst of all blocks or their sum, and what is wrong with them in one line, nil: nothing. jobs: of the reference,
-- one for each run of blocks, with `seen`, `notes` and `first_looked`; answers: what it says with these notes.
function observed_lookups.compare(jobs, answers)
    local sum, wrong = { codes = 0, flips = 0, flips_explained = 0, scores = 0, scores_explained = 0 }, nil
    for _, job in ipairs(jobs) do
        for i, found in ipairs(assert(block_reference.looked(job))) do
            for _, key in ipairs { "codes", "flips", "flips_explained" } do
                sum[key] = sum[key] + found[key]
            end
            if found.scores >= sum.scores then
                sum.scores, sum.scores_explained = found.scores, found.scores_explained
            end
            if found.wrong and not wrong then
                wrong = string.format("lookup FFN %d: %s", job.first_looked + i - 1, found.wrong)
            end
        end
    end
    for _, answer in ipairs(answers) do
        if answer.looked.missing > 0 then
            wrong = "lookup FFNs are not seen at work: a compiler has joined functions that others may replace"
        end
    end
    return sum, wrong
end

-- What the types of lookup FFNs that were seen at work cost in codes, of each layer: { layer, codes, flips }: codes
-- that are not among the best of the checkpoint's own weights for the same inputs. jobs: as above.
function observed_lookups.flips(jobs)
    local list = {}
    for _, job in ipairs(jobs) do
        local exact = setmetatable({ tables = "f32", projection = "f32" }, { __index = job })
        for i, found in ipairs(job.lookup and assert(block_reference.looked(exact)) or {}) do
            local layer = (job.first_layer or 0) + i - 1
            list[#list + 1] = { layer = layer, codes = found.codes, flips = found.flips }
        end
    end
    return list
end

return observed_lookups
