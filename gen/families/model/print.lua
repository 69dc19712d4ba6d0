-- What the templates of whole models print: from the plan's numbers to the names, lists and words that a template loops
-- over.
local cost = require "gen.plan.cost"
local isa_list = require "gen.isa.list"
local layout = require "gen.families.model.blocks.layout"
local expression = require "gen.isa.expression"
local literal = require "gen.print.literal"
local prologue = require "gen.print.prologue"
local tokenizer_print = require "gen.tokenizer.print"
local transformer = require "gen.families.model.blocks.print"

local whole = {}

-- Bytes into scratch as constants: where the buffers of calls lie, and those of a step, where a step has others.
local function constants_of(p)
    local list = {}
    local function add(name, value, doc) list[#list + 1] = { name = name, value = value, doc = doc } end
    for _, segment in ipairs(p.segments) do
        if segment.cache_at then
            add(segment.word:upper() .. "_STATE_AT", segment.cache_at, "bytes into the state: keys and values")
        end
    end
    if p.causal then
        add("CHUNK", p.tokens, "tokens that go through all blocks together")
    else
        add(
            "POSITIONS",
            p.tokens,
            "positions of sequences that go through all blocks together, each filled up to a tile"
        )
    end
    if p.embedding.map or p.embedding.projected then
        add("ROWS", p.rows, "rows that go through the embedding together")
    end
    add("RESULTS", p.results, "results that are made together")
    if p.threads then
        add("RESULTS_PART", p.results_part, "of these, that are worth a thread")
        add("THREAD_SCRATCH_BYTES", p.scratch_bytes, "of one thread")
    end
    for _, buffer in ipairs(p.memory.buffers) do
        add(buffer.name:upper() .. "_AT", buffer.at, "bytes into scratch: " .. buffer.doc)
    end
    for _, buffer in ipairs(p.step_memory and p.step_memory.buffers or {}) do
        if buffer.at ~= p.memory.by_name[buffer.name].at then
            add("STEP_" .. buffer.name:upper() .. "_AT", buffer.at, "the same for a token alone")
        end
    end
    return list
end

-- What the prototypes and kernels of a run of blocks print, of the `values` that they print alone.
local function part_values(segment, values)
    local shares = true
    for _, v in ipairs(segment.plan.variants) do
        shares = shares and v.shares_product or false
    end
    return {
        names = segment.plan.names,
        shape = segment.plan.shape,
        parts = values.parts,
        variants = segment.plan.variants,
        dense = values.dense and not shares,
        attention_parameters = values.attention_parameters,
        constants = segment.plan.constants,
        tokens_parameters = values.tokens_parameters,
    }
end

local error_position = {
    name = "ERROR_POSITION",
    code = 9,
    doc = "more tokens than the context holds; none, where a vector of them is wanted",
}
local error_id = { name = "ERROR_ID", code = 10, doc = "an id below 0, or not below the vocabulary's size" }

-- The templates of the model's own files, and what they read beside the plan.
function whole.api(p)
    local values = p.facts and tokenizer_print.values(p.facts, p.float_sums) or {}
    local inlines, parts = false, {}
    values.register_barriers = p.rounded and transformer.has_barriers(p) or false
    for i, segment in ipairs(p.segments) do
        local own = transformer.api(segment.plan)
        inlines = inlines or own.inlines
        values.register_barriers = values.register_barriers or own.register_barriers
        parts[i] = part_values(segment, own)
    end
    values.facts = p.facts or false
    values.whole = p
    values.parts_of_blocks = parts
    values.own_sections = p.own_sections
    values.inlines, values.openmp = inlines, p.threads and true
    values.threads, values.max_threads = p.threads, cost.max_threads
    values.header, values.source, values.prototypes =
        "templates/model/model.h", "templates/model/model.c", "templates/model/prototypes.h"
    if p.target then
        values.header, values.source = "templates/firmware/model.h", "templates/firmware/model.c"
        values.integers = true
        values.layer_text, values.shape_text = "templates/model/layer.h", "templates/model/shape.h"
        values.sizes_text, values.calls_text = "templates/model/sizes.h", "templates/model/calls.h"
    end
    values.struct_of_weights = "templates/model/weights.h"
    values.constants = constants_of(p)
    values.context = p.context .. (p.context > 1 << 24 and "u" or "")
    values.state_bytes, values.step_scratch_bytes = p.state_bytes, p.step_scratch_bytes or false
    values.type = p.type
    values.returns_text = "the functions return"
    values.statuses = { error_position, error_id }
    for _, status in ipairs(p.facts and tokenizer_print.statuses or {}) do
        table.insert(values.statuses, { name = status.name, code = status.code + 2, doc = status.doc })
    end
    return values
end

-- What the kernel of the forward pass prints.
local function forward_values(p, v, values)
    local scalar, isa = isa_list.get "scalar", v.isa
    values.load_weights = function(base, at)
        if p.type.plain then return isa.load_unaligned(base, at) end
        return isa["load_" .. p.type.name](expression.sum(base, at))
    end
    values.load_some_weights = function(base, at, count)
        if p.type.plain then return isa.load_partial(base, at, count) end
        return isa["load_partial_" .. p.type.name](expression.sum(base, at), count)
    end
    -- One element as a float, in C that all sets have.
    values.element = function(base, at)
        if p.rounded and p.rounded.integers then
            return "(float) ((int) " .. scalar.load(base, at) .. " - " .. p.rounded.offset .. ")"
        end
        if p.type.plain then return scalar.load(base, at) end
        return scalar["load_" .. p.type.name](expression.sum(base, at))
    end
    local inputs, seen = {}, {}
    local o = p.output
    local of_means = o.sums and o.sums.map
    for _, map in ipairs { p.embedding.map or false, of_means or false, o.dense or false, o.head or false } do
        if p.rounded and map and not seen[map.inputs] then
            inputs[#inputs + 1], seen[map.inputs] = map.inputs, true
        end
    end
    values.rounded_step = function(map) return layout.rounded_pitch(map.inputs, p.rounded) end
    transformer.rounding_values(isa, p.rounded, inputs, values)
    values.float_sums, values.threads = p.float_sums, p.threads
    values.whole, values.embedding, values.output, values.segments = p, p.embedding, p.output, p.segments
    values.float = literal.float
    -- Where a buffer lies: `alone` is the condition of a token alone.
    values.place = function(name)
        local many, step = p.memory.by_name[name], p.step_memory and p.step_memory.by_name[name]
        local at = p.names.macro(name:upper() .. "_AT")
        if step and step.at ~= many.at then
            at = "(alone ? " .. p.names.macro("STEP_" .. name:upper() .. "_AT") .. " : " .. at .. ")"
            return "memory + " .. at
        end
        return many.at == 0 and "memory" or "memory + " .. at
    end
    values.has = function(name)
        local converted = name:find "weights$" -- which not all instruction sets need
        return p.memory.by_name[name] ~= nil and (v.product.unpacks or not converted)
    end
    values.depends = false
    for _, buffer in ipairs(p.step_memory and p.step_memory.buffers or {}) do
        values.depends = values.depends or buffer.at ~= p.memory.by_name[buffer.name].at
    end
    values.sums_tokens = p.segments[#p.segments].plan.variants[v.number].sums_tokens
    values.run_of = function(segment) return segment.plan.variants[v.number].names.blocks end
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, plan, values} }.
function whole.files(p, v)
    local files = {}
    local function add(path, symbol, helper, extend)
        local values = {
            isa = v.isa,
            v = v,
            lanes = v.isa.lanes,
            symbol = symbol,
            prologue = prologue(p, v.isa),
            type = p.type,
            panel = layout.panel,
            tile = layout.keys,
            helper = p.names.model .. "_" .. helper,
        }
        extend(p, v, values)
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    add(
        transformer.product(p),
        v.names.product,
        "product",
        function(_, own, values)
            transformer.product_values({ names = p.names, shape = { type = p.type, rounded = p.rounded } }, own, values)
        end
    )
    for _, segment in ipairs(p.segments) do
        for _, file in ipairs(transformer.files(segment.plan, segment.plan.variants[v.number])) do
            file.plan = file.plan or segment.plan
            files[#files + 1] = file
        end
    end
    add("templates/model/forward.c", v.names.forward, "forward", forward_values)
    return files
end

return whole
