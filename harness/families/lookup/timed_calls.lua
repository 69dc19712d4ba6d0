-- What the measuring process is told to do with compiled variants of a LookupFFN (harness/measure/prepare.lua).
local blob = require "gen.plan.blob"
local setting = require "harness.measure.setting"

local timed_calls = {}

local least_tokens = 4096 -- that calls walk through

-- Where arguments lie: `place` bytes from place to place, `token` bytes from token to token of a call in chunks.
local function at(memory, place, token) return { memory = memory, place = place, token = token } end

-- The calls of the stages of variant `v` alone, each of `batch` of `tokens` tokens. They go from chunk to chunk as the
-- emitted driver does. The projection writes the codes of every chunk to the same place, as it does there; the gather
-- reads those of all tokens, of a batch below one tile copied into that place.
local function stages_of(job, v, tokens, batch)
    local slots, tile, name = v.h * v.neighbours, v.tile, v.name
    local rest = "/" .. name .. "/" .. batch
    local function call(stage, places, ...)
        table.insert(job.calls, { name = stage .. rest, tokens = batch, places = places, steps = { ... } })
    end
    local function step(stage, arguments, chunk)
        local count = chunk and batch
        return { library = name, ["function"] = v[stage], arguments = arguments, tokens = count, chunk = chunk }
    end
    local chunk_code, chunk_score = "chunk_code " .. name, "chunk_score " .. name
    local x = at("uniform", 4 * v.d * batch, 4 * v.d)
    call(
        "project",
        tokens // batch,
        step("project", { "weights", x, "tokens", chunk_code, chunk_score, "scratch" }, v.chunk)
    )
    if batch < tile then
        local code, score = at("token_code " .. name, 2 * slots * batch), at("token_score " .. name, 4 * slots * batch)
        call(
            "gather",
            tokens // batch,
            { ["function"] = "tile", arguments = { chunk_code, chunk_score, code, score, batch, slots, tile } },
            step("gather", { "weights", chunk_code, chunk_score, "y", batch, "scratch" })
        )
        return
    end
    local further = blob.round_up(batch, tile) * slots
    local code, score = at("code " .. name, 2 * further, 2 * slots), at("score " .. name, 4 * further, 4 * slots)
    local arguments = { "weights", code, score, at("y", 0, 4 * v.d_out), "tokens", "scratch" }
    call("gather", (tokens - batch) // blob.round_up(batch, tile) + 1, step("gather", arguments, v.chunk))
end

-- Codes and scores of all tokens, as the variant's kernels lay them out and by token, and of one chunk.
local function add_codes(job, v, tokens)
    local slots, name = v.h * v.neighbours, v.name
    local function add(kind, places)
        table.insert(job.memory, { name = kind .. "code " .. name, bytes = 2 * slots * places })
        table.insert(job.memory, { name = kind .. "score " .. name, bytes = 4 * slots * places })
    end
    add("", blob.round_up(tokens, v.tile))
    add("token_", blob.round_up(tokens, v.tile))
    add("chunk_", v.chunk)
    local code, score = "code " .. name, "score " .. name
    table.insert(job.setup, {
        name = "codes of " .. name,
        steps = {
            {
                library = name,
                ["function"] = v.project,
                arguments = {
                    "weights",
                    at("uniform", 0, 4 * v.d),
                    "tokens",
                    at(code, 0, 2 * slots),
                    at(score, 0, 4 * slots),
                    "scratch",
                },
                tokens = tokens,
                chunk = v.chunk,
            },
            {
                ["function"] = "by_token",
                arguments = { "token_" .. code, "token_" .. score, code, score, tokens, slots, v.tile },
            },
        },
    })
end

-- Adds to `job`, with batches, least_tokens (that calls walk through; nil: as usual), conditions { codes, tables },
-- stages (whether those are timed alone, too, and the whole again at the largest batch), take_turns (each repetition
-- has the next one of the conditions; else each has all) and alike (the calls of a batch and a condition are, and
-- variants of the same blob share their weights), the calls of `variants`, tables of compile.describe with name, blob,
-- least_batch and most_batch.
function timed_calls.add(job, variants)
    local largest, scratch = math.max(table.unpack(job.batches)), 0
    local tokens, of_blob, first = math.max(job.least_tokens or least_tokens, 2 * largest), {}, variants[1]
    for _, v in ipairs(variants) do
        scratch = math.max(scratch, v.scratch_bytes)
    end
    job.libraries, job.setup, job.calls = {}, {}, {}
    job.memory = {
        { name = "uniform", bytes = 4 * tokens * first.d, fill = "normal" },
        { name = "y", bytes = 4 * largest * first.d_out },
        { name = "scratch", bytes = scratch },
    }
    for _, condition in ipairs(job.conditions) do
        if condition.codes == "skewed" then
            local skewed = { name = "skewed", bytes = 4 * tokens * first.d, fill = "skewed", number = first.d }
            table.insert(job.memory, 2, skewed)
        end
    end
    for i, v in ipairs(variants) do
        job.libraries[i] = setting.library(v.name, v)
        job.libraries[i].weights_of = job.alike and of_blob[v.blob] or nil
        of_blob[v.blob] = of_blob[v.blob] or v.name
        if job.stages then add_codes(job, v, tokens) end
        for _, batch in ipairs(job.batches) do
            local function add(name, c)
                local condition, cold = job.conditions[c], job.conditions[c].tables == "cold"
                table.insert(job.calls, {
                    name = name,
                    places = tokens // batch,
                    threads = job.threads,
                    cold = cold,
                    turn = job.take_turns and c - 1 or 0,
                    turns = job.take_turns and #job.conditions or 1,
                    tokens = batch,
                    alike = job.alike and condition.tables .. "/" .. batch or nil,
                    steps = {
                        {
                            library = v.name,
                            ["function"] = v.ffn,
                            arguments = { "weights", at(condition.codes, 4 * v.d * batch), "y", batch, "scratch" },
                        },
                    },
                })
            end
            if batch >= v.least_batch and batch <= v.most_batch then
                for c, condition in ipairs(job.conditions) do
                    add(string.format("ffn/%s/%d/%s_%s", v.name, batch, condition.codes, condition.tables), c)
                end
                if job.stages then stages_of(job, v, tokens, batch) end
                -- A/A control: how far apart two figures for the same code are
                if job.stages and batch == largest then add(string.format("ffn_again/%s/%d", v.name, batch), 1) end
            end
        end
    end
    return job
end

-- Adds the calls of lookupc's own MLPs `mlps` (harness/families/own_mlp.lua) at all batches to `job`, named by
-- call_of(row, batch): a list of { mlp, row: as of harness/measure/rivals.lua }.
function timed_calls.add_mlps(job, mlps, call_of)
    local list, tokens = {}, math.max(least_tokens, 2 * math.max(table.unpack(job.batches)))
    for i, mlp in ipairs(mlps) do
        local row = { library = "lookupc", type = mlp.type }
        mlp.add(job)
        for _, batch in ipairs(job.batches) do
            table.insert(job.calls, mlp.row(call_of(row, batch), batch, tokens // batch))
        end
        list[i] = { mlp = mlp, row = row }
    end
    return list
end

return timed_calls
