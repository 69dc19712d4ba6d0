-- The memory of a whole model: the state, and scratch with its buffers by lifetime.
local blob = require "gen.plan.blob"
local cost = require "gen.plan.cost"
local layout = require "gen.families.model.blocks.layout"
local lifetimes = require "gen.plan.lifetimes"
local rules = require "gen.families.model.model"

local memory = {}

local most_rows = 192 -- of products outside of the blocks at a time
-- Positions of a batch of sequences, where the context is not longer: products over as many tokens read weights seldom;
-- tables, whose rows are met more often, want more.
local batch_positions = { dense = 384, lookup = 768 }

-- How many positions the sequences have that go through the blocks of encoder `m` together; `target`: of firmware,
-- which takes one sequence.
function memory.positions(m, target)
    local wanted = target and 0 or batch_positions[rules.looks_up(m) and "lookup" or "dense"]
    return blob.round_up(math.max(m.attention.context, wanted), layout.keys)
end

local function pitch_of(width) return blob.round_up(width, layout.panel) end

-- How many rows of sums over tokens the last run of blocks of plan `p` makes of `tokens` tokens at most: one for each
-- sequence, and one more wherever a sequence goes on in another part.
local function rows_of_sums(p, tokens)
    local least = tokens
    for _, v in ipairs(p.segments[#p.segments].plan.variants) do
        least = math.min(least, v.sums_tokens)
    end
    return tokens // layout.keys + (tokens + least - 1) // least
end

-- Buffers of a call for up to `tokens` tokens that go through all blocks together, `rows` of them at a time through
-- what stands before, `results` of them through what stands behind: { name, bytes, first, last, doc } by stage, and the
-- names of the stages. few: one token alone.
local function buffers_of(p, tokens, rows, results, few)
    local list, stages = {}, { "embedding" }
    local last = #p.segments + 2
    local function add(name, floats, first, to, doc)
        local buffer = { name = name, bytes = 4 * floats, first = first, last = to, doc = doc }
        list[#list + 1] = buffer
        return buffer
    end
    local embedding, output = p.embedding, p.output
    local projected = embedding.projected
    if embedding.map or projected and projected.reads_rows then
        add("embedded", rows * embedding.width, 1, 1, "rows of the embedding")
    end
    if embedding.map then
        add("mapped", rows * pitch_of(embedding.input), 1, 1, "the same in the blocks' width")
    end
    if projected and projected.norm then add("factors", rows, 1, 1, "what the norm multiplies rows by") end
    local x = add("x_1", tokens * embedding.input, 1, 1, "input of the first block")
    local number = 1
    for i, segment in ipairs(p.segments) do
        local own, stage = segment.plan, i + 1
        stages[stage] = segment.word
        x.last = stage
        local width, input = own.shape.d, own.shape.input
        if own.sums then
            local doc = "sums over tokens of " .. segment.word
            x = add("sums", rows_of_sums(p, tokens) * own.sums.pitch, stage, stage, doc)
        elseif width ~= input then
            number = number + 1
            x = add("x_" .. number, tokens * width, stage, stage, "output of " .. segment.word)
        end
        segment.to = x.name
        if not p.causal then
            add(segment.word .. "_cache", own.cache_bytes // 4, stage, stage, rules.cached(own.model))
        end
        local bytes = few and own.decode_scratch_bytes or own.scratch_bytes
        add(segment.word .. "_scratch", bytes // 4, stage, stage, "scratch of the blocks")
    end
    stages[last], x.last = "output", last
    local sums, map = output.sums, output.sums and output.sums.map
    if output.pool then
        add("pooled", results * (sums and sums.pitch or output.width), last, last, "a vector for each sequence")
    end
    if map then add("mapped_means", results * map.pitch, last, last, "the means behind the last block's last map") end
    if output.dense then add("features", results * output.dense.pitch, last, last, "outputs of the dense map") end
    if output.head and output.head.pitch > output.head.outputs then
        add("rest", results * layout.panel, last, last, "the last panel of the head")
    end
    -- So do the inputs of products that round them.
    local function pitch_of_rounded(map) return map and layout.rounded_pitch(map.inputs, p.rounded) or 0 end
    if p.rounded then
        local doc = "rounded inputs of products"
        local largest = math.max(pitch_of_rounded(output.dense), pitch_of_rounded(output.head))
        if embedding.map then add("map_rounded", rows * pitch_of_rounded(embedding.map), 1, 1, doc) end
        if map then add("means_rounded", results * pitch_of_rounded(map), last, last, doc) end
        if largest > 0 then add("rounded", results * largest, last, last, doc) end
    end
    -- Converting weights for several tokens takes room before and behind the blocks.
    local unpacked = 0
    for _, v in ipairs(p.variants) do
        unpacked = math.max(unpacked, v.product.unpacked_floats)
    end
    if unpacked > 0 and not few then
        if embedding.map then add("map_weights", unpacked, 1, 1, "weights converted to floats") end
        if map then add("means_weights", unpacked, last, last, "weights converted to floats") end
        if output.dense or output.head then add("weights", unpacked, last, last, "weights converted to floats") end
    end
    return list, stages
end

-- Gives plan `p` its state and its scratch: state_bytes, memory { buffers, stages, peaks, bytes }, step_memory, and how
-- many tokens, rows and results go together. header: bytes of a state before the caches.
function memory.plan(p, header)
    local chunk, tiles = 1, {}
    for _, segment in ipairs(p.segments) do
        for _, v in ipairs(segment.plan.variants) do
            chunk = math.max(chunk, v.chunk)
            tiles[1] = v.product.tiles and v.product.tiles.from or tiles[1] -- as gen/families/model/blocks/phases.lua
        end
    end
    p.tokens = p.causal and math.min(chunk, p.context) or memory.positions(p.model, p.target)
    p.rows = p.one_by_one and 1 or math.min(p.tokens, p.causal and p.tokens or most_rows)
    -- A pool leaves a row of each sequence, which is a tile long at least.
    p.results = p.output.pool and math.min(p.rows, math.max(1, p.tokens // layout.keys)) or p.rows
    local dense, head = p.output.dense, p.output.head
    local words = (dense and dense.inputs * dense.outputs or 0) + (head and head.inputs * head.outputs or 0)
    p.results_part = words > 0 and cost.part(p.results, cost.tokens_worth_a_thread(2e-6 * words), tiles) or p.results
    p.state_bytes = header
    for _, segment in ipairs(p.segments) do
        if p.causal then
            segment.cache_at = p.state_bytes
            p.state_bytes = p.state_bytes + blob.round_up(segment.plan.cache_bytes, blob.align)
        end
    end
    local function placed(tokens, rows, results, few)
        local buffers, stages = buffers_of(p, tokens, rows, results, few)
        local bytes, peaks = lifetimes.place(buffers, #stages)
        local by_name = {}
        for _, buffer in ipairs(buffers) do
            by_name[buffer.name] = buffer
        end
        return { buffers = buffers, by_name = by_name, stages = stages, peaks = peaks, bytes = bytes }
    end
    p.memory = placed(p.tokens, p.rows, p.results, false)
    p.step_memory = p.causal and placed(1, 1, 1, true) or nil
    p.scratch_bytes = p.memory.bytes
    p.step_scratch_bytes = p.step_memory and p.step_memory.bytes
end

return memory
