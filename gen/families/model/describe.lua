-- What `lookupc plan` and `lookupc pack` tell people about a model: of blocks the table of arXiv 2404.12362, section 4;
-- of a whole model its weights and the map of its memory.
local dtype = require "gen.plan.dtype"
local ffn_parts = require "gen.schema.ffn_parts"
local figures = require "gen.plan.figures"
local json = require "json"
local plan = require "gen.families.model.plan"
local rules = require "gen.families.model.model"
local validated = require "gen.schema.validated"
local weight_count = require "gen.families.model.weight_count"

local describe = {}

-- What the FFN `ffn` is.
local function ffn_text(ffn)
    local dense = ffn_parts.dense(ffn)
    local hidden = dense and string.format("%s %s of %d", dense.kind, dense.activation, dense.f)
    if ffn.kind ~= "lookup" then return hidden end
    if ffn.qkv then return "lookup with q, k, v" end
    return hidden and "lookup beside " .. hidden or "lookup"
end

local function groups(m) return m.kv_heads == m.heads and "MHA" or m.kv_heads == 1 and "MQA" or "GQA" end

-- The shape of the model's blocks.
local function shape_text(m)
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
        rules.kv_width(m),
        ffn_text(m.ffn)
    )
end

-- The type of the weights of plan `p`, that of its products where it is another one, and those of its lookup FFNs that
-- were asked for.
local function types_text(p)
    local text, activations = p.options.type, dtype.get(p.options.activations, "activations")
    if activations.products and activations.name ~= text then text = text .. ", of products in " .. activations.name end
    for _, key in ipairs { "tables", "projection" } do
        if p.options[key] then text = string.format("%s, %s in %s", text, key, p.options[key]) end
    end
    return text
end

-- The schedules of plan `p`, where the options ask for them.
local function add_schedules(p, add, options)
    for _, v in ipairs(options.schedules and p.variants or {}) do
        add("schedule " .. v.isa.name, "%s", v.schedule_text)
    end
end

-- How many positions the caches of the runs of blocks `segments` hold, by layer where layers differ.
local function held_by(segments)
    local layers, held = {}, {}
    for _, segment in ipairs(segments) do
        for _, layer in ipairs(segment.plan.shape.cache.layers) do
            if not layers[layer.positions] then held[#held + 1] = layer.positions end
            layers[layer.positions] = (layers[layer.positions] or 0) + 1
        end
    end
    table.sort(held, function(a, b) return a > b end)
    local list = {}
    for i, positions in ipairs(held) do
        list[i] = string.format("%d positions in %s", positions, figures.plural(layers[positions], "layer"))
    end
    return held[2] and table.concat(list, ", ") or held[1] .. " positions"
end

-- How many positions of exact attention take as many bytes as what a decoder's attention by tables keeps for a head.
local function equivalent_positions(shape)
    local type = shape.cache.type
    local position = type.bytes * (shape.width + shape.cache.pitch) + (type.scaled and 8 or 0) -- of exact attention
    return shape.cache.layer_bytes // (shape.kv_heads * position)
end

-- What a decoder's attention by tables keeps for a head.
local function tables_text(shape)
    local lsh, type = shape.lsh, shape.cache.type
    return string.format(
        "%d tables of %d rows, %s in %s, as %d positions",
        lsh.tables,
        lsh.rows,
        figures.plural(lsh.window, "token"),
        type.name,
        equivalent_positions(shape)
    )
end

-- What the caches of the runs of blocks `segments` hold.
local function cached_text(segments)
    local list, seen, others = {}, {}, {}
    for _, segment in ipairs(segments) do
        local shape = segment.plan.shape
        local text = shape.lsh and shape.causal and tables_text(shape)
        if not text then
            others[#others + 1] = segment
        elseif not seen[text] then
            list[#list + 1], seen[text] = text, true
        end
    end
    if others[1] then
        local own = others[1].plan
        local text = string.format("%s in %s", held_by(others), own.shape.cache.held.name)
        table.insert(list, 1, list[1] and text or rules.cached(own.model) .. " of " .. text)
    end
    return table.concat(list, "; ")
end

-- From how many tokens on attention by tables of blocks of `shape` should take less time than exact attention in
-- float32, to two digits. Its parts cost as much as so many keys of exact attention do (heads of 64, Zen 3, AVX2): a
-- butterfly 0.9 / width, a key of the window 1.3, a table 3.6, half of it for its key.
local function break_even(shape)
    local lsh, share = shape.lsh, 1 + 1 / shape.group
    local transforms = lsh.rounds * lsh.padded * math.log(lsh.padded, 2)
    local window = shape.causal and lsh.window or math.max(0, 2 * lsh.window - 1)
    local keys = (0.9 * transforms / shape.width + 1.8 * lsh.tables) * share + 1.3 * window
    local tokens = shape.causal and 2 * keys or keys -- of a decoder a token sees half of them on average
    local unit = 10 ^ math.max(0, math.floor(math.log(tokens, 10)) - 1)
    return math.floor(tokens / unit + 0.5) * math.tointeger(unit)
end

-- Attention by tables of plan `p`, of the first run of blocks that has it: from how many tokens on it pays off, and, of
-- a decoder, what its tables are as large as; and their model. nil: there is none.
local function by_tables(p)
    for _, segment in ipairs(p.segments) do
        local shape = segment.plan.shape
        if shape.lsh then
            local positions = shape.causal and equivalent_positions(shape) or nil
            return { break_even = break_even(shape), equivalent_positions = positions }, segment.plan.model
        end
    end
end

-- The line on when attention by tables pays off, by add(name, form, ...).
local function add_break_even(p, add)
    local form, tables, m = "%d tokens or more, about, are faster than with exact attention in f32%s", by_tables(p)
    if not tables then return end
    local context = m.attention.context
    local never = tables.break_even > context and string.format("; a context has %d", context) or ""
    add("break-even", form, tables.break_even, never)
end

-- Adds what blocks whose tables make q, k and v read for a token, by their counts `c`.
local function add_looked_qkv(c, name, add)
    if not c.qkv then return end
    local form = "%15s  weights that a token reads in a layer; of Q, K, V and P it would be %s"
    add(name, form, figures.grouped(c.qkv.rows), figures.grouped(c.qkv.maps))
end

local function lines_of_blocks(m, make, options)
    local c, lines, word = weight_count.of(m), {}, m.attention.eliminate
    local function add(name, ...) lines[#lines + 1] = string.format("%-20s ", name) .. string.format(...) end
    add(m.name, "%s, vocab %d", shape_text(m), m.vocab)
    if not c.qkv then
        add("Q+P per layer", "%15s", figures.grouped(c.qp))
        add("K+V per layer", "%15s", figures.grouped(c.kv))
    end
    add_looked_qkv(c, "q, k, v out of rows", add)
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
    local decoding = ", to decode " .. figures.bytes(p.decode_scratch_bytes)
    add("packed blocks", "%15s  of %s", figures.bytes(p.packed_bytes), types_text(p))
    add_break_even(p, add)
    add("cache", "%15s  of %s", figures.bytes(p.cache_bytes), cached_text(p.segments))
    local also = m.attention.causal and decoding or ""
    add("scratch", "%15s%s, with %s", figures.bytes(p.scratch_bytes), also, figures.sets(p))
    add_schedules(p, add, options)
    return lines
end

local function positions_of(m)
    if m.positions then return "learned positions" end
    if m.embedding.sinusoidal then return "sinusoidal positions" end
    return m.attention.rope and "rotary positions" or "no positions"
end

local function output_of(m)
    local list, o = {}, m.output or {}
    if o.norm then list[#list + 1] = "norm" end
    if o.pool then list[#list + 1] = o.pool end
    if o.dense then
        list[#list + 1] = "dense " .. o.dense.width .. (o.dense.activation and " " .. o.dense.activation or "")
    end
    if o.unit then list[#list + 1] = "unit" end
    if o.head then list[#list + 1] = m.tied and "tied head" or "head" end
    if o.classes then list[#list + 1] = o.classes .. " classes" end
    return #list > 0 and table.concat(list, ", ") or "the last block's"
end

-- Sections of the blob by part of the model: { { name, bytes } }.
local function flash_of(p)
    local list, by_name = {}, {}
    local function add(name, bytes)
        if not by_name[name] then
            by_name[name] = { name = name, bytes = 0 }
            list[#list + 1] = by_name[name]
        end
        by_name[name].bytes = by_name[name].bytes + bytes
    end
    local own = { embedding = {}, output = {}, tokenizer = {} }
    for _, section in ipairs(p.own_sections) do
        table.insert(own[section.group], section)
    end
    local function add_own(group)
        for _, section in ipairs(own[group]) do
            add(group, section.bytes)
        end
    end
    add_own "embedding"
    for _, segment in ipairs(p.segments) do
        for _, section in ipairs(segment.plan.sections) do
            add(segment.word, section.bytes)
        end
    end
    add_own "output"
    add_own "tokenizer"
    return list
end

-- The buffers of scratch that share it: { name, bytes, at, stages }.
local function buffers_of(memory)
    local list = {}
    for i, buffer in ipairs(memory.buffers) do
        list[i] = {
            name = buffer.name,
            bytes = buffer.bytes,
            at = buffer.at,
            first = memory.stages[buffer.first],
            last = memory.stages[buffer.last],
            doc = buffer.doc,
        }
    end
    return list
end

function describe.lines(m, make, options)
    if not m.embedding then return lines_of_blocks(m, make, options) end
    local c, lines, p = weight_count.of(m), {}, make()
    local function add(name, ...) lines[#lines + 1] = string.format("%-20s ", name) .. string.format(...) end
    local function bytes(name, count, more) add(name, "%15s%s", figures.bytes(count), more and "  " .. more or "") end
    add(
        m.name,
        "%s, d %d, %s, vocab %d, %s, context %s",
        p.causal and "decoder" or "encoder",
        m.d,
        figures.plural(p.layers, "layer"),
        m.vocab,
        positions_of(m),
        p.context
    )
    add(
        "output",
        "%s: %s %s",
        output_of(m),
        figures.plural(p.widths.out, "value"),
        m.output and m.output.pool and "a sequence" or "a token"
    )
    for i, segment in ipairs(rules.segments(m)) do
        add(
            p.segments[i].word,
            "%s, %s a layer",
            shape_text(segment),
            figures.grouped(c.layers[i].weights)
        )
    end
    for i, layers in ipairs(c.layers) do
        add_looked_qkv(layers, p.segments[2] and p.segments[i].word .. " q, k, v" or "q, k, v out of rows", add)
    end
    add("embedding", "%15s", figures.grouped(c.embedding))
    local projected = p.embedding.projected
    if projected then
        local letters = {}
        for i, part in ipairs(projected.parts) do
            letters[i] = part.letter
        end
        local form = "%s of the first block are looked up, %s a word"
        local width = projected.copied_at or p.embedding.input
        add("projected", form, table.concat(letters, ", "), figures.plural(width, "value"))
    end
    add("blocks", "%15s", figures.grouped(c.blocks))
    add("output", "%15s", figures.grouped(c.output))
    add("all weights", "%15s  %s", figures.grouped(c.total), figures.rounded(c.total))
    if p.facts then add("tokenizer", "%s, %d pieces", p.facts.kind, p.facts.pieces) end
    for _, part in ipairs(flash_of(p)) do
        bytes("flash " .. part.name, part.bytes)
    end
    bytes("flash", p.packed_bytes, "of " .. types_text(p))
    add_break_even(p, add)
    if p.causal then
        bytes("RAM state", p.state_bytes, "a sequence, " .. cached_text(p.segments))
        bytes("RAM scratch", p.step_scratch_bytes, "a step")
    end
    local most = string.format("a call for up to %d tokens at a time, with %s", p.tokens, figures.sets(p))
    bytes("RAM scratch", p.scratch_bytes, most)
    for i, stage in ipairs(p.memory.stages) do
        bytes("  in use: " .. stage, p.memory.peaks[i])
    end
    for _, buffer in ipairs(buffers_of(p.memory)) do
        bytes("  " .. buffer.name, buffer.bytes, string.format("at %d, %s", buffer.at, buffer.doc))
    end
    for _, segment in ipairs(p.segments) do
        local function add_of_run(name, ...) add(p.segments[2] and segment.word .. " " .. name or name, ...) end
        add_schedules(segment.plan, add_of_run, options)
    end
    return lines
end

function describe.summary(m, make)
    if not m.embedding then
        local tables = m.attention.kind == "lsh" and not plan.misfit(m) and by_tables(make()) or nil
        return { model = m, weights = weight_count.of(m), tables = tables }
    end
    local p = make()
    local function memory_of(memory)
        if not memory then return nil end
        local peaks = {}
        for i, stage in ipairs(memory.stages) do
            peaks[i] = { stage = stage, bytes = memory.peaks[i] }
        end
        return { bytes = memory.bytes, buffers = json.array(buffers_of(memory)), stages = json.array(peaks) }
    end
    return {
        model = m,
        weights = weight_count.of(m),
        context = p.context,
        d_out = p.widths.out,
        tables = by_tables(p),
        flash = { bytes = p.packed_bytes, parts = json.array(flash_of(p)) },
        state_bytes = p.causal and p.state_bytes or nil,
        scratch = memory_of(p.memory),
        step_scratch = memory_of(p.step_memory),
    }
end

-- The largest error of a tensor.
function describe.packed_text(p, errors)
    local worst
    for name, value in pairs(errors) do
        if not worst or value > errors[worst] or value == errors[worst] and name < worst then worst = name end
    end
    local types = types_text(p)
    return string.format("weights in %s, relative error up to %.2g (%s)", types, errors[worst], worst)
end

return describe
