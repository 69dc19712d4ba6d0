-- What `lookupc plan` and `lookupc pack` tell people about a whole model: its weights, and the map of its memory.
local figures = require "gen.plan.figures"
local json = require "json"
local transformer_describe = require "gen.families.model.blocks.describe"
local weight_count = require "gen.families.model.weight_count"
local whole_model = require "gen.families.model.model"

local describe = {}

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
    for i, segment in ipairs(whole_model.segments(m)) do
        add(
            p.segments[i].word,
            "%s, %s a layer",
            transformer_describe.shape_text(segment),
            figures.grouped(c.layers[i].weights)
        )
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
    bytes("flash", p.packed_bytes, "of " .. transformer_describe.types(p, p.type))
    if p.causal then
        bytes("RAM state", p.state_bytes, "a sequence, keys and values in " .. p.options.cache)
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
        transformer_describe.schedules(segment.plan, add_of_run, options)
    end
    return lines
end

function describe.summary(m, make)
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
        flash = { bytes = p.packed_bytes, parts = json.array(flash_of(p)) },
        state_bytes = p.causal and p.state_bytes or nil,
        scratch = memory_of(p.memory),
        step_scratch = memory_of(p.step_memory),
    }
end

function describe.packed_text(p, errors)
    local typed = { shape = { type = p.type }, options = p.options }
    return transformer_describe.packed_text(typed, errors)
end

return describe
