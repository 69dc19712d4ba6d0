-- What `lookupc plan` and `lookupc pack` tell people about a transformer: the table of arXiv 2404.12362, section 4.
local dtype = require "gen.plan.dtype"
local ffn_parts = require "gen.model.ffn_parts"
local figures = require "gen.plan.figures"
local plan = require "gen.families.model.blocks.plan"
local transformer_model = require "gen.families.model.blocks.model"
local validated = require "gen.model.validated"
local weight_count = require "gen.families.model.blocks.weight_count"

local describe = {}

-- What the FFN `ffn` is.
local function ffn_text(ffn)
    local dense = ffn_parts.dense(ffn)
    local hidden = dense and string.format("%s %s of %d", dense.kind, dense.activation, dense.f)
    if ffn.kind ~= "lookup" then return hidden end
    return hidden and "lookup beside " .. hidden or "lookup"
end

local function groups(m) return m.kv_heads == m.heads and "MHA" or m.kv_heads == 1 and "MQA" or "GQA" end

-- The shape of the model's blocks.
function describe.shape_text(m)
    return string.format(
        "%sd %d, %s, %s, %s %d/%d%s, e %d, %s",
        m.d_in and "d_in " .. m.d_in .. ", " or "",
        m.d,
        figures.plural(m.layers, "layer"),
        m.parallel and "parallel" or "serial",
        groups(m),
        m.heads,
        m.kv_heads,
        m.head_dim and " of " .. m.head_dim or "",
        transformer_model.kv_width(m),
        ffn_text(m.ffn)
    )
end

-- The type of the weights of plan `p`, that of its products where it is another one, and those of its lookup FFNs that
-- were asked for.
function describe.types(p, type)
    local text, activations = type.name, dtype.get(p.options.activations, "activations")
    if activations.products and activations ~= type then text = text .. ", of products in " .. activations.name end
    for _, key in ipairs { "tables", "projection" } do
        if p.options[key] then text = string.format("%s, %s in %s", text, key, p.options[key]) end
    end
    return text
end

-- The schedules of plan `p`, where the options ask for them.
function describe.schedules(p, add, options)
    for _, v in ipairs(options.schedules and p.variants or {}) do
        add("schedule " .. v.isa.name, "%s", v.schedule_text)
    end
end

function describe.lines(m, make, options)
    local c, lines, word = weight_count.of(m), {}, m.attention.eliminate
    local function add(name, ...) lines[#lines + 1] = string.format("%-20s ", name) .. string.format(...) end
    add(m.name, "%s, vocab %d", describe.shape_text(m), m.vocab)
    add("Q+P per layer", "%15s", figures.grouped(c.qp))
    add("K+V per layer", "%15s", figures.grouped(c.kv))
    if c.skip_map then add("S per layer", "%15s", figures.grouped(c.skip_map)) end
    add("FFN per layer", "%15s", figures.grouped(c.ffn))
    add("embeddings", "%15s", figures.grouped(c.embeddings))
    add("all weights", "%15s  %s", figures.grouped(c.total), figures.rounded(c.total))
    if word ~= "none" then
        local letters = word:gsub("(%u)", "%1+"):sub(1, -2)
        add("without " .. letters, "%15s  %s", figures.grouped(c.total_without), figures.rounded(c.total_without))
        add("savings", "%14.0f %%", 100 * c.savings)
        add("speed-up limit", "%14.2fx  of one token, where reading weights takes all time", c.speedup)
    end
    local chain, value, rule = plan.misfit(m)
    if chain then
        add("cannot be emitted", "%s", validated.problem(m, chain, value, rule))
        return lines
    end
    local p = make()
    local cache, decoding = p.shape.cache, ", to decode " .. figures.bytes(p.decode_scratch_bytes)
    add("packed blocks", "%15s  of %s", figures.bytes(p.packed_bytes), describe.types(p, p.shape.type))
    add(
        "cache",
        "%15s  of keys and values of %d positions in %s",
        figures.bytes(p.cache_bytes),
        cache.positions,
        cache.type.name
    )
    local also = m.attention.causal and decoding or ""
    add("scratch", "%15s%s, with %s", figures.bytes(p.scratch_bytes), also, figures.sets(p))
    describe.schedules(p, add, options)
    return lines
end

function describe.summary(m) return { model = m, weights = weight_count.of(m) } end

-- The largest error of a tensor.
function describe.packed_text(p, errors)
    local worst
    for name, value in pairs(errors) do
        if not worst or value > errors[worst] or value == errors[worst] and name < worst then worst = name end
    end
    local types = describe.types(p, p.shape.type)
    return string.format("weights in %s, relative error up to %.2g (%s)", types, errors[worst], worst)
end

return describe
