-- What bench.lua times of whole models: calls of several lengths, by stage, and beside their dense twins of the same
-- types.
local bench_report = require "harness.report.bench_report"
local columns = require "harness.report.columns"
local compile = require "harness.base.compile"
local host = require "host"
local json = require "json"
local misuse = require "gen.schema.misuse"
local packing = require "gen.families.packing"
local process = require "process"
local rules = require "gen.families.model.model"
local runnable = require "harness.base.runnable"
local statistics = require "harness.base.statistics"
local timed_calls = require "harness.families.model.timed_calls"
local timed_parts = require "harness.families.model.timed_parts"
local whole_model = require "harness.calls.whole_model"
local whole_plan = require "gen.families.model.plan"

local bench = { title = ": the time of a whole model" }

local default_lengths = { 16, 128, 512 }
local batch_tokens = 512 -- of several sequences in a call, at least

-- The lengths of --lengths, or the usual ones that the context `context` holds.
local function lengths_of(text, context)
    local list = {}
    if not text then
        for _, length in ipairs(default_lengths) do
            if length <= context then list[#list + 1] = length end
        end
        return #list > 0 and list or { context }
    end
    for word in (text .. ","):gmatch "([^,]*)," do
        local length = word:find "^%d+$" and math.tointeger(tonumber(word))
        if not length or length < 1 or length > context then
            misuse(string.format('--lengths: "%s": must be integers from 1 to the context, %d', word, context))
        end
        list[#list + 1] = length
    end
    return list
end

-- How many tokens a state of plan `p` is timed with: windows have no end.
local function context_of(p) return math.min(p.context, p.model.attention.context) end

-- The calls that are timed: { what, tokens of a sequence, sequences, position }.
local function calls_of(p, lengths)
    local list = {}
    local function add(what, tokens, sequences, position)
        list[#list + 1] = { what = what, tokens = tokens, sequences = sequences, position = position }
    end
    for _, length in ipairs(lengths) do
        if p.causal then
            add("prefill", length, 1, 0)
        else
            add("encode", length, 1, 0)
            if length < batch_tokens then add("encode", length, -(-batch_tokens // length), 0) end
        end
    end
    if p.causal then
        add("step", 1, 1, 0)
        local last = context_of(p)
        for _, length in ipairs(rules.has_tables(p.model) and lengths or {}) do -- from which on tables are faster
            if length > 1 and length < last then add("step", 1, 1, length - 1) end
        end
        if last > 1 then add("step", 1, 1, last - 1) end
    end
    return list
end

-- The model of plan `p` as the job names it: what harness/measure/prepare.lua wants of a library, and how it is called.
local function described(p, name, path, blob, threads)
    local function shared(of) return threads > 1 and p.names.openmp(of) or of end
    local entry = timed_calls.entry(p, name, path, blob)
    entry.encode_batch, entry.prefill = shared(p.names.encode_batch), shared(p.names.prefill)
    entry.scratch_bytes = p.scratch_bytes * threads
    return entry
end

-- Whether plan `p` reads fewer tensors than plan `of`, whose checkpoint it is packed from.
local function reads_less(p, of) return #p.tensors < #of.tensors end

-- A model and what is left of it without its parts, those of the rows `left_out`, compiled: entries of the job by name.
local function add_model(entries, path, p, prefix, isa, options, left_out)
    local failing = string.format("%s: %s fails verification", path, p.model.name)
    local library, prepared, rel_err = timed_calls.verified(failing, p, options)
    entries[#entries + 1] = described(p, prefix .. "whole", library, prepared.blob, options.threads)
    local directory = process.temporary_directory()
    local body = timed_parts.plan(timed_parts.body(p.model), isa, p.options.schedule, options)
    local body_blob = directory .. "/body.bin"
    local files = packing.files(options, body_blob)
    files.weights, files.ignore = prepared.packed_from, reads_less(body, p) and "*" or nil
    packing.pack(body, files)
    local function add(part_plan, name)
        local flags = compile.threaded(part_plan, options.cflags .. " " .. timed_parts.cflags, options.threads)
        local folder, kind = directory .. "/" .. name, options.device and options.device.link_options
        local own = compile.library({ part_plan }, folder, options.cc, flags, kind)
        entries[#entries + 1] = described(part_plan, prefix .. name, own, body_blob, options.threads)
    end
    host.status("compiling parts of " .. p.model.name)
    add(body, "body")
    for _, row in ipairs(left_out) do
        add(timed_parts.plan(body.model, isa, p.options.schedule, options, row.part), row.name)
    end
    return rel_err
end

local function call_name(entry, i) return entry .. "/" .. i end

local turns = 64 -- calls take turns in ids: rows of tables that the same ones take would stay in the caches

-- A step: the call `what` of whole_model.lua, by function `name` of an entry; `a`: its arguments, where they are not
-- those of most.
local function step(entry, what, name, a)
    local given = setmetatable(a, { __index = { weights = "weights", y = "y", scratch = "scratch" } })
    return {
        library = entry.library.name,
        ["function"] = name,
        status = what ~= "start",
        arguments = { whole_model.arguments[what](given) },
    }
end

-- Appends to `job` the row called `name` of the call `of` of an entry.
local function add_call(job, entry, name, of, threads)
    local p, names = entry.plan, entry.plan.names
    local row = { name = name, places = turns, threads = threads, tokens = of.tokens * of.sequences }
    local function memory(kind, bytes)
        table.insert(job.memory, { name = kind .. name, bytes = bytes, large = true })
        return kind .. name
    end
    local function start(state) return step(entry, "start", names.start, { state = state }) end
    local function prefill(state, ids, tokens)
        return step(entry, "prefill", entry.prefill, { state = state, ids = ids, count = tokens })
    end
    local walked = { memory = "ids", place = 4 }
    if of.what == "encode" then
        local offsets = { name = "offsets " .. name, bytes = 8 * (of.sequences + 1), sizes = {} }
        for i = 0, of.sequences do
            offsets.sizes[i + 1] = i * of.tokens
        end
        table.insert(job.memory, offsets)
        local given = { ids = walked, offsets = offsets.name, sequences = of.sequences }
        row.steps = { step(entry, "encode_batch", entry.encode_batch, given) }
    elseif of.what == "prefill" then
        row.steps = { start "state", prefill("state", walked, of.tokens) }
    else
        -- The state is that of `position` tokens again before every call: what a step adds to it lies behind them.
        local header = math.min(whole_plan.state_header, p.state_bytes)
        local state, kept = memory("state ", p.state_bytes), memory("header ", header)
        local function copy(...) return { ["function"] = "copy", arguments = { ... } } end
        table.insert(job.setup, {
            name = name,
            steps = {
                start(state),
                of.position > 0 and prefill(state, "ids", of.position) or copy(kept, state, 0),
                copy(kept, state, header),
            },
        })
        local id = { memory = "ids", place = 4, value = true }
        row.threads = 1
        row.steps = { copy(state, kept, header), step(entry, "step", names.step, { state = state, id = id }) }
    end
    table.insert(job.calls, row)
end

function bench.job(run, made, options)
    local job = {
        threads = options.threads,
        libraries = {},
        memory = {},
        setup = {},
        calls = {},
    }
    local calls, tokens, values, state, scratch = made.calls, 1, 1, 1, 1
    for i, entry in ipairs(made.entries) do
        local p = entry.plan
        job.libraries[i] = entry.library
        state, scratch = math.max(state, p.state_bytes), math.max(scratch, entry.scratch_bytes)
        for _, of in ipairs(calls) do
            tokens = math.max(tokens, of.tokens * of.sequences, of.position)
            values = math.max(values, (p.causal and 1 or of.tokens * of.sequences) * p.widths.out)
        end
    end
    local function memory(name, bytes, fill, number)
        table.insert(job.memory, { name = name, bytes = bytes, fill = fill, number = number, large = true })
    end
    memory("ids", 4 * (tokens + turns), "ids", run.model.vocab)
    memory("y", 4 * values)
    memory("state", state)
    memory("scratch", scratch)
    for i, of in ipairs(calls) do
        for n, entry in ipairs(made.entries) do
            add_call(job, entry, call_name(entry.library.name, i), of, options.threads)
            -- A/A control: how far apart two figures for the same code are
            if i == #calls and n == 1 then add_call(job, entry, call_name("again", i), of, options.threads) end
        end
    end
    return job
end

-- The median µs of a call of the model with prefix `prefix`, whole and without its parts, by name, on that clock; share
-- of the CPU.
local function times_of(samples, prefix, i, clock)
    local us = {}
    for _, row in ipairs { { name = "whole" }, { name = "body" }, table.unpack(timed_parts.left_out) } do
        us[row.name] = statistics.of(samples, call_name(prefix .. row.name, i), clock)
    end
    return us, statistics.of(samples, call_name(prefix .. "whole", i), "share")
end

-- How many times as fast as a twin the result `r` is, with and without what stands behind the last block.
local function speedups(r, twin)
    return twin.us_per_sequence / r.us_per_sequence, twin.body_us_per_sequence / r.body_us_per_sequence
end

-- One result for every call. Of what runs on several threads wall time counts, and they need not be busy all of the
-- time.
function bench.add(run, made, samples, _, options)
    local p, errors, threads = made.plan, made.errors, options.threads
    local clock = threads > 1 and "wall" or "cpu"
    local function counts(...) return threads > 1 or statistics.counts(...) end
    for i, of in ipairs(made.calls) do
        local us, share = times_of(samples, "", i, clock)
        local tokens = of.tokens * of.sequences
        local r = bench_report.typed(p, options, {
            cache = p.options.cache,
            call = of.what,
            tokens = of.tokens,
            sequences = of.sequences,
            position = of.position,
            us_per_sequence = us.whole / of.sequences,
            us_per_token = us.whole / tokens,
            body_us_per_sequence = us.body / of.sequences,
            stages = timed_parts.stages(us),
            cpu_over_wall = share,
            threads = threads,
            counts = counts(share),
            rel_err = errors.own,
        })
        local together = 0.0
        for name, time in pairs(r.stages) do
            r.stages[name] = time / of.sequences
            together = together + r.stages[name]
        end
        r.stages_share = together / r.us_per_sequence
        local again = statistics.of(samples, call_name("again", i), clock)
        r.again_ratio = again and again / us.whole
        for _, twin in ipairs(timed_parts.twins) do
            if errors[twin.key] then
                local other, other_share = times_of(samples, twin.key .. "_", i, clock)
                r[twin.key] = {
                    us_per_sequence = other.whole / of.sequences,
                    body_us_per_sequence = other.body / of.sequences,
                    [twin.stage] = (other.body - other[twin.without]) / of.sequences,
                    rel_err = errors[twin.key],
                }
                r.counts = r.counts and counts(other_share)
            end
        end
        if r.dense then
            r.speedup, r.body_speedup = speedups(r, r.dense)
        end
        if r.exact then
            r.exact.speedup, r.exact.body_speedup = speedups(r, r.exact)
            r.exact.attention_speedup = r.exact.attention / r.stages.attention
        end
        table.insert(run.results, r)
    end
end

-- The columns of the tables for people (harness/report/columns.lua).
local first_columns = bench_report.behind_types {
    { "call", -7, "call" },
    { "tokens", 6, "tokens" },
    { "sequences", 9, "sequences", only = function(r) return r.call == "encode" end },
    { "position", 8, "position", only = function(r) return r.call == "step" end },
}
local call_columns = {
    { "us/sequence", 11, "us_per_sequence", "%.1f" },
    { "us/token", 9, "us_per_token", "%.2f" },
    { "dense twin", 10, "dense.us_per_sequence", "%.1f" },
    { "x faster", 8, "speedup", "%.2f" },
    { "no head", 9, "body_us_per_sequence", "%.1f" },
    { "dense twin", 10, "dense.body_us_per_sequence", "%.1f" },
    { "x faster", 8, "body_speedup", "%.2f" },
    { "error", 7, "rel_err", "%.1e" },
    { "twin's", 7, "dense.rel_err", "%.1e" },
}
local stage_columns = {
    { "embedding", 9, "stages.embedding", "%.1f" },
    { "products", 9, "stages.products", "%.1f" },
    { "attention", 9, "stages.attention", "%.1f" },
    { "FFN", 9, "stages.ffn", "%.1f" },
    { "dense FFN", 9, "dense.ffn", "%.1f" },
    { "head", 9, "stages.head", "%.1f" },
    { "together", 8, "stages_share", "%" },
}
local exact_columns = {
    { "attention", 9, "stages.attention", "%.1f" },
    { "exact", 9, "exact.attention", "%.1f" },
    { "x faster", 8, "exact.attention_speedup", "%.2f" },
    { "all", 11, "us_per_sequence", "%.1f" },
    { "exact", 10, "exact.us_per_sequence", "%.1f" },
    { "x faster", 8, "exact.speedup", "%.2f" },
    { "no head", 9, "body_us_per_sequence", "%.1f" },
    { "exact", 10, "exact.body_us_per_sequence", "%.1f" },
    { "x faster", 8, "exact.body_speedup", "%.2f" },
    { "twin's error", 12, "exact.rel_err", "%.1e" },
}

-- The columns that all tables begin with, and those of `list`.
local function behind_first(list)
    local all = table.move(first_columns, 1, #first_columns, 1, {})
    return columns.of(table.move(list, 1, #list, #all + 1, all))
end

-- The tables of what --json prints, as bench_report.of_tables has them.
function bench.tables(given)
    local results = given.results
    local tables = {
        { columns = behind_first(call_columns), results = results },
        { name = "by stage, us/sequence", columns = behind_first(stage_columns), results = results },
    }
    if results[1] and results[1].exact then
        local name = "beside exact attention, us/sequence"
        tables[3] = { name = name, columns = behind_first(exact_columns), results = results }
    end
    return tables
end

function bench.head(run, setting) return run.model.name .. " on " .. setting end

function bench.notes(run)
    local results = run.results
    local notes = {
        "us/sequence, us/token: medians of interleaved "
            .. (run.threads > 1 and "wall" or "CPU")
            .. " times. error, twin's: relative to float64. "
            .. "no head: without what stands behind the last block and its pool.",
    }
    if results[1].dense then
        notes[2] = "dense twin: the same model, emitted with the same types, whose FFNs are MLPs of f = 4 d with GELU"
            .. (results[1].exact and " and whose attention is exact." or ".")
    end
    if results[1].exact then
        notes[#notes + 1] = "exact: the same model, emitted with the same types, whose attention is exact."
    end
    notes[#notes + 1] = "Stages are differences to the model without them; they do not add up exactly (together)."
    notes[#notes + 1] = string.format(
        "A/A control: the last call measured twice differs by at most %.1f %%.",
        bench_report.control(results)
    )
    return notes
end

-- Whole models have no --batch.
function bench.batches() return "1" end

function bench.start(path, m, options)
    if options.batch then
        misuse("--batch: " .. options.batch .. ": is for blocks and FFNs; whole models take --lengths")
    end
    local results = json.array {}
    return {
        path = path,
        model = m,
        threads = compile.threads_of(options),
        results = results,
        printed = { results = results },
    }
end

function bench.made(run, isa, options)
    local p, entries = runnable.plan(run.path, { isa }, options), {}
    local calls = calls_of(p, lengths_of(options.lengths, context_of(p)))
    local errors = { own = add_model(entries, run.path, p, "", isa, options, timed_parts.left_out) }
    for _, twin in ipairs(timed_parts.twins) do
        local m = twin.of(run.model)
        if m then
            local changes = { weights = false, ignore = false }
            if not rules.looks_up(m) then
                changes.tables, changes.projection = false, false
            end
            local random = setmetatable(changes, { __index = function(_, key) return options[key] end })
            local left_out = {}
            for _, row in ipairs(timed_parts.left_out) do
                if row.name == twin.without then left_out[1] = row end
            end
            local other = timed_parts.plan(m, isa, nil, random)
            errors[twin.key] = add_model(entries, run.path, other, twin.key .. "_", isa, random, left_out)
        end
    end
    return { plan = p, calls = calls, entries = entries, errors = errors }
end

return bench
