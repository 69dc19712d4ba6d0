-- What the templates of transformers print: from the plan's numbers to the names, lists and words that a template loops over.
local kernels = require "gen.kernels"
local literal = require "gen.literal"
local transformer_plan = require "gen.transformer_plan"

local transformer_kernels = {}

-- The templates of the model's own files, and what they read beside the plan.
function transformer_kernels.api(p)
    local eliminate = p.model.attention.eliminate
    return {
        header = "templates/transformer.h", source = "templates/transformer.c", prototypes = "templates/transformer_prototypes.h", openmp = false,
        cache_bytes = p.cache_bytes, eliminated_text = eliminate == "none" and "" or "without " .. eliminate:gsub("(%u)", "%1 and "):gsub(" and $", "") .. ", ",
        statuses = { { name = "ERROR_POSITION", code = 9, doc = "a position beyond the context" } },
    }
end

-- What the product's template reads.
function transformer_kernels.product_values(p, v, values)
    local isa, type, c = v.isa, p.shape.type, v.choices
    values.together, values.strip, values.strip_vectors, values.unroll, values.depth = c.tokens, c.strip * isa.lanes, c.strip, c.unroll, c.depth
    values.alone_vectors, values.alone_outputs, values.ahead = c.alone, c.alone * isa.lanes, c.ahead > 0 and c.ahead
    values.load_weights = function(at)
        if type.name == "f32" then return isa.load_unaligned("w", at) end
        return isa["load_" .. type.name](at == 0 and "w" or "(w + " .. at .. ")")
    end
end

local function attention_values(p, v, values)
    local c, lanes = v.choices, v.isa.lanes
    values.together, values.score_vectors, values.rows_most, values.ahead = c.rows, c.score_vectors, v.rows, c.cache_ahead
    -- The elements of a value in blocks of vectors: { at, vectors, count }.
    values.sum_blocks = {}
    local whole, at = p.shape.value_pitch // lanes, 0
    for _, block in ipairs { { c.sum_vectors, whole // c.sum_vectors }, { whole % c.sum_vectors, 1 } } do
        local vectors, count = table.unpack(block)
        if vectors > 0 and count > 0 then
            values.sum_blocks[#values.sum_blocks + 1] = { at = at, vectors = vectors, count = count }
            at = at + vectors * count * lanes
        end
    end
end

local function blocks_values(p, v, values)
    local reads_input = false
    for _, step in ipairs(p.after) do reads_input = reads_input or step.from == "in" or step.a == "in" or step.b == "in" end
    values.before, values.after, values.reads_input, values.tile = p.before, p.after, reads_input, transformer_plan.keys
    values.activation, values.scale = p.shape.activation, literal.float(p.shape.scale)
    values.hidden_pitch = v.pitches.hidden
    values.eps = p.shape.norm and literal.float(p.shape.norm.eps) or ""
    values.one_over_d = string.format("%.17g", 1 / p.shape.d)
    local by_name = {}
    for _, item in ipairs(v.buffers) do by_name[item.name] = item end
    values.buffer = function(name) return by_name[name] end
end

-- The kernel files of variant `v` of plan `p`: { {template, symbol, values} }.
function transformer_kernels.files(p, v)
    local files = {}
    local function add(path, symbol, helper, extend)
        local values = {
            isa = v.isa, v = v, lanes = v.isa.lanes, symbol = symbol, prologue = kernels.prologue(p, v.isa), type = p.shape.type,
            panel = transformer_plan.panel, keys = transformer_plan.keys, helper = p.names.model .. "_" .. helper,
        }
        extend(p, v, values)
        files[#files + 1] = { template = path, symbol = symbol, values = values }
    end
    add("templates/transformer_product.c", v.names.product, "product", transformer_kernels.product_values)
    add("templates/transformer_attention.c", v.names.attention, "attention", attention_values)
    add("templates/transformer_blocks.c", v.names.blocks, "blocks", blocks_values)
    return files
end

return transformer_kernels
