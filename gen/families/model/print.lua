-- What the templates of models print: from the plan's numbers to the names, lists and words that a template loops over.
local cost = require "gen.plan.cost"
local layout = require "gen.families.model.blocks.layout"
local print_forward = require "gen.families.model.print_forward"
local print_run = require "gen.families.model.blocks.print_run"
local rules = require "gen.families.model.model"
local structs = require "gen.families.model.blocks.structs"
local tokenizer_print = require "gen.tokenizer.print"

local print = {}

-- Bytes into scratch as constants: where the buffers of calls lie, and those of a step, where a step has others.
local function constants_of(p)
    local list = {}
    local title = "How much goes through a stage together."
    local function add(name, value, doc) list[#list + 1] = { name = name, value = value, doc = doc, title = title } end
    for _, segment in ipairs(p.segments) do
        if segment.cache_at then
            local doc = "bytes into the state: " .. rules.cached(segment.plan.model)
            add(segment.word:upper() .. "_STATE_AT", segment.cache_at, doc)
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
    local head = p.output.head
    if head and head.outputs > layout.panel and head.outputs % layout.panel > 0 then
        local panels = head.outputs // layout.panel
        title = "Where the head's last panel begins, which has fewer outputs."
        add("HEAD_REST", panels * layout.panel, "outputs before it")
        add("HEAD_REST_WEIGHTS", panels * head.panel_step, "and their weights")
    end
    title = "Where buffers lie in scratch, in bytes."
    for _, buffer in ipairs(p.memory.buffers) do
        local step = p.step_memory and p.step_memory.by_name[buffer.name]
        local named = buffer.at > 0 or step and step.at ~= buffer.at -- else nothing is added
        if named then add(buffer.name:upper() .. "_AT", buffer.at, buffer.doc) end
    end
    for _, buffer in ipairs(p.step_memory and p.step_memory.buffers or {}) do
        if buffer.at ~= p.memory.by_name[buffer.name].at then
            add("STEP_" .. buffer.name:upper() .. "_AT", buffer.at, "the same for a token alone")
        end
    end
    return list
end

local error_position = {
    name = "ERROR_POSITION",
    code = 9,
    doc = "more tokens than the context holds; none, where a vector of them is wanted",
}
local error_id = { name = "ERROR_ID", code = 10, doc = "an id below 0, or not below the vocabulary's size" }

-- What the files of a transformer read beside what prototypes of its blocks do.
local function add_blocks(p, values)
    local eliminate, shape = p.model.attention.eliminate, p.shape
    values.header, values.source, values.prototypes =
        "templates/model/blocks/model.h", "templates/model/blocks/model.c", "templates/model/blocks/prototypes.h"
    values.openmp = false
    values.tile = layout.keys
    values.context = shape.context .. (shape.endless and "u" or "")
    values.cache_bytes, values.decode_scratch_bytes = p.cache_bytes, p.decode_scratch_bytes
    values.eliminated_text = eliminate == "none" and ""
        or "without " .. eliminate:gsub("(%u)", "%1 and "):gsub(" and $", "") .. ", "
    values.statuses = { { name = "ERROR_POSITION", code = 9, doc = "a position beyond the context" } }
end

-- What the files of a whole model read.
local function add_whole(p, values)
    for key, value in pairs(p.facts and tokenizer_print.values(p.facts, p.float_sums) or {}) do
        values[key] = value
    end
    values.facts, values.plan, values.own_sections = p.facts or false, p, p.own_sections
    values.openmp, values.threads, values.max_threads = p.threads and true, p.threads, cost.max_threads
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
    values.cached, values.state_bytes = rules.cached(p.model), p.state_bytes
    values.step_scratch_bytes = p.step_scratch_bytes or false
    values.type = p.type
    values.statuses = { error_position, error_id }
    for _, status in ipairs(p.facts and tokenizer_print.statuses or {}) do
        table.insert(values.statuses, { name = status.name, code = status.code + 2, doc = status.doc })
    end
end

-- Adds the struct of the linear maps of plan `p` to `list`, unless it is there; by_name: those that are.
local function add_matrix(list, by_name, p)
    local one = structs.matrix(p)
    local known = by_name[one.name]
    if known then
        known.converts = known.converts or one.converts
    else
        list[#list + 1], by_name[one.name] = one, one
    end
end

-- The templates of the model's own files, and what they read beside the plan.
function print.api(p)
    local runs, inlines, barred = {}, false, false
    for i, segment in ipairs(p.segments) do
        local has_inlines, has_barriers = print_run.helpers(segment.plan)
        runs[i], inlines, barred = print_run.prototypes(segment.plan), inlines or has_inlines, barred or has_barriers
    end
    local values = p.embedding and { parts_of_blocks = runs } or runs[1]
    values.inlines, values.register_barriers, values.types = inlines, barred, "templates/model/types.h"
    values.rounded, values.matrices = p.rounded or p.shape.rounded or false, {}
    values.causal = p.segments[1].plan.shape.causal
    values.matrix = p.variants[1].product and structs.matrix(p).name
    local by_name = {}
    for _, segment in ipairs(p.segments) do
        add_matrix(values.matrices, by_name, segment.plan)
    end
    if p.embedding then add_matrix(values.matrices, by_name, p) end
    values.returns_text = "the functions return";
    (p.embedding and add_whole or add_blocks)(p, values)
    return values
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, plan, values} }.
function print.files(p, v)
    local files = {}
    if p.embedding then files[1] = print_run.product(p, v) end
    for _, segment in ipairs(p.segments) do
        local own = print_run.files(segment.plan, segment.plan.variants[v.number])
        table.move(own, 1, #own, #files + 1, files)
    end
    if p.embedding then
        local template, symbol = "templates/model/forward.c", v.names.forward
        files[#files + 1] = print_run.file(p, v, template, symbol, "forward", print_forward)
    end
    return files
end

return print
