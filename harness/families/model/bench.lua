-- Times whole models, verified, in the measuring process: calls of several lengths, by stage, and beside their dense
-- twins of the same types.
local bench_report = require "harness.report.bench_report"
local blocks = require "harness.families.model.timed"
local choices = require "harness.measure.choices"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local execute = require "harness.families.model.execute"
local host = require "host"
local json = require "json"
local measure = require "harness.measure.measure"
local misuse = require "gen.schema.misuse"
local packing = require "gen.families.packing"
local parts = require "harness.families.model.parts"
local process = require "process"
local request = require "gen.request.request"
local runnable = require "harness.base.runnable"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"
local verify = require "harness.families.model.verify"
local whole_plan = require "gen.families.model.plan"

local bench = {}

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
        if context_of(p) > 1 then add("step", 1, 1, context_of(p) - 1) end
    end
    return list
end

-- The model of plan `p` as the job names it: what harness/measure/rows.h wants of a library, and how it is called.
local function described(p, name, path, blob, threads)
    local function shared(of) return threads > 1 and p.names.openmp(of) or of end
    local entry = blocks.entry(p, name, path, blob)
    entry.encode_batch, entry.prefill = shared(p.names.encode_batch), shared(p.names.prefill)
    entry.scratch_bytes = p.scratch_bytes * threads
    return entry
end

-- Compiles plan `p` and compares it with the reference; raises one line if a call is wrong. Returns the library, the
-- blob, and the largest relative error.
local function verified(path, p, options)
    local directory = process.temporary_directory()
    host.status("verifying " .. p.model.name)
    local flags = compile.threaded(p, options.cflags, options.threads)
    local compiled = compile.library({ p }, directory .. "/library", options.cc, flags)
    local prepared = verify.prepare(p, directory, options)
    local failing = string.format("%s: %s fails verification", path, p.model.name)
    local worst = verify.worst(failing, p, compiled, prepared, options.threads)
    return compiled, prepared.blob, worst, prepared.packed_from
end

-- Whether plan `p` reads fewer tensors than plan `of`, whose checkpoint it is packed from.
local function reads_less(p, of) return #p.tensors < #of.tensors end

-- A model and what is left of it without its parts, compiled: entries of the job by name.
local function add_model(entries, path, p, prefix, isa, options)
    local compiled, blob, rel_err, weights = verified(path, p, options)
    entries[#entries + 1] = described(p, prefix .. "whole", compiled, blob, options.threads)
    local directory = process.temporary_directory()
    local body = parts.plan(parts.body(p.model), isa, p.options.schedule, options)
    local body_blob = directory .. "/body.bin"
    local files = packing.files(options, body_blob)
    files.weights, files.ignore = weights, reads_less(body, p) and "*" or nil
    packing.pack(body, files)
    local function add(part_plan, name)
        local flags = compile.threaded(part_plan, options.cflags .. " " .. parts.cflags, options.threads)
        local own = compile.library({ part_plan }, directory .. "/" .. name, options.cc, flags)
        entries[#entries + 1] = described(part_plan, prefix .. name, own, body_blob, options.threads)
    end
    host.status("compiling parts of " .. p.model.name)
    add(body, "body")
    for _, row in ipairs(parts.left_out) do
        add(parts.plan(body.model, isa, p.options.schedule, options, row.part), row.name)
    end
    return rel_err
end

local function call_name(entry, i) return entry .. "/" .. i end

local turns = 64 -- calls take turns in ids: rows of tables that the same ones take would stay in the caches

-- A step: a call of function `name` of an entry.
local function step(entry, name, status, arguments)
    return { library = entry.library.name, ["function"] = name, status = status, arguments = arguments }
end

-- Appends to `job` the row called `name` of the call `of` of an entry.
local function add_call(job, entry, name, of, threads)
    local p, names = entry.plan, entry.plan.names
    local row = { name = name, places = turns, threads = threads }
    local function memory(kind, bytes)
        table.insert(job.memory, { name = kind .. name, bytes = bytes, large = true })
        return kind .. name
    end
    local function prefill(state, ids, tokens)
        return step(entry, entry.prefill, true, { "weights", state, ids, tokens, "y", "scratch" })
    end
    local walked = { memory = "ids", place = 4 }
    if of.what == "encode" then
        local offsets = { name = "offsets " .. name, bytes = 8 * (of.sequences + 1), fill = "sizes", sizes = {} }
        for i = 0, of.sequences do
            offsets.sizes[i + 1] = i * of.tokens
        end
        table.insert(job.memory, offsets)
        local arguments = { "weights", walked, offsets.name, of.sequences, "y", "scratch" }
        row.steps = { step(entry, entry.encode_batch, true, arguments) }
    elseif of.what == "prefill" then
        row.steps = { step(entry, names.start, false, { "state" }), prefill("state", walked, of.tokens) }
    else
        -- The state is that of `position` tokens again before every call: what a step adds to it lies behind them.
        local header = math.min(whole_plan.state_header, p.state_bytes)
        local state, kept = memory("state ", p.state_bytes), memory("header ", header)
        local function copy(...) return { ["function"] = "copy", arguments = { ... } } end
        table.insert(job.setup, {
            name = name,
            steps = {
                step(entry, names.start, false, { state }),
                of.position > 0 and prefill(state, "ids", of.position) or copy(kept, state, 0),
                copy(kept, state, header),
            },
        })
        local id = { memory = "ids", place = 4, value = true }
        row.threads = 1
        row.steps =
            { copy(state, kept, header), step(entry, names.step, true, { "weights", state, id, "y", "scratch" }) }
    end
    table.insert(job.calls, row)
end

local function job_of(m, causal, entries, calls, options)
    local job = {
        model = m.name,
        seed = options.seed,
        threads = options.threads,
        repetitions = options.repetitions,
        slices = 0,
        min_time = setting.min_time(options.repetitions),
        draw_order = true,
        order_seed = options.seed,
        alike = false,
        sweep_bytes = 0,
        limits = false,
        libraries = {},
        memory = {},
        setup = json.array {},
        calls = json.array {},
    }
    local tokens, values, state, scratch = 1, 1, 1, 1
    for i, entry in ipairs(entries) do
        local p = entry.plan
        job.libraries[i] = entry.library
        state, scratch = math.max(state, p.state_bytes), math.max(scratch, entry.scratch_bytes)
        for _, of in ipairs(calls) do
            tokens = math.max(tokens, of.tokens * of.sequences, of.position)
            values = math.max(values, (causal and 1 or of.tokens * of.sequences) * p.widths.out)
        end
    end
    local function memory(name, bytes, fill, below)
        table.insert(job.memory, { name = name, bytes = bytes, fill = fill, below = below, large = true })
    end
    memory("ids", 4 * (tokens + turns), "ids", m.vocab)
    memory("y", 4 * values)
    memory("state", state)
    memory("scratch", scratch)
    for i, of in ipairs(calls) do
        for _, entry in ipairs(entries) do
            add_call(job, entry, call_name(entry.library.name, i), of, options.threads)
            -- A/A control: how far apart two figures for the same code are
            if i == #calls and entry == entries[1] then
                add_call(job, entry, call_name("again", i), of, options.threads)
            end
        end
    end
    return job
end

-- The median µs of a call of the model with prefix `prefix`, whole and without its parts, by name, on that clock; share
-- of the CPU.
local function times_of(samples, prefix, i, clock)
    local us = {}
    for _, name in ipairs { "whole", "body" } do
        us[name] = statistics.median(samples[call_name(prefix .. name, i)][clock])
    end
    for _, row in ipairs(parts.left_out) do
        us[row.name] = statistics.median(samples[call_name(prefix .. row.name, i)][clock])
    end
    return us, statistics.median(samples[call_name(prefix .. "whole", i)].share)
end

-- One result for every call. errors: of the model and of its twin, if there is one. Of what runs on several threads
-- wall time counts, and they need not be busy all of the time.
local function results_of(p, samples, calls, errors, options)
    local threads = options.threads
    local list, clock = {}, threads > 1 and "wall" or "cpu"
    local function counts(...) return threads > 1 or statistics.counts(...) end
    for i, of in ipairs(calls) do
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
            stages = parts.stages(us),
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
        local again = samples[call_name("again", i)]
        r.again_ratio = again and statistics.median(again[clock]) / us.whole or nil
        if errors.dense then
            local dense, dense_share = times_of(samples, "dense_", i, clock)
            r.dense = {
                us_per_sequence = dense.whole / of.sequences,
                body_us_per_sequence = dense.body / of.sequences,
                ffn = (dense.body - dense.no_ffn) / of.sequences,
                rel_err = errors.dense,
            }
            r.speedup, r.body_speedup = dense.whole / us.whole, dense.body / us.body
            r.counts = counts(share, dense_share)
        end
        list[i] = r
    end
    return list
end

local function number(format, value) return value and string.format(format, value) end
local function dense_of(r, key) return r.dense and number("%.1f", r.dense[key]) end

-- The columns of the tables for people: { head, width (negative: to the left), text(r), nil for nothing to say }. One
-- that says nothing at all is left out.
local first_columns = {
    { "call", -7, function(r) return r.call end },
    { "tokens", 6, function(r) return r.tokens end },
    { "sequences", 9, function(r) return r.call == "encode" and r.sequences end },
    { "position", 8, function(r) return r.call == "step" and r.position end },
}
local call_columns = {
    { "us/sequence", 11, function(r) return number("%.1f", r.us_per_sequence) end },
    { "us/token", 9, function(r) return number("%.2f", r.us_per_token) end },
    { "dense twin", 10, function(r) return dense_of(r, "us_per_sequence") end },
    { "x faster", 8, function(r) return number("%.2f", r.speedup) end },
    { "no head", 9, function(r) return number("%.1f", r.body_us_per_sequence) end },
    { "dense twin", 10, function(r) return dense_of(r, "body_us_per_sequence") end },
    { "x faster", 8, function(r) return number("%.2f", r.body_speedup) end },
    { "error", 7, function(r) return number("%.1e", r.rel_err) end },
    { "twin's", 7, function(r) return r.dense and number("%.1e", r.dense.rel_err) end },
}
local stage_columns = {
    { "embedding", 9, function(r) return number("%.1f", r.stages.embedding) end },
    { "products", 9, function(r) return number("%.1f", r.stages.products) end },
    { "attention", 9, function(r) return number("%.1f", r.stages.attention) end },
    { "FFN", 9, function(r) return number("%.1f", r.stages.ffn) end },
    { "dense FFN", 9, function(r) return dense_of(r, "ffn") end },
    { "head", 9, function(r) return number("%.1f", r.stages.head) end },
    { "together", 8, function(r) return number("%.0f %%", 100 * r.stages_share) end },
}

-- The columns that all tables begin with, and those of `list`.
local function behind_first(list)
    local all = bench_report.behind_types(first_columns)
    return table.move(list, 1, #list, #all + 1, all)
end

-- The tables of what --json prints, as bench_report.of_tables has them.
function bench.tables(given)
    return {
        { columns = behind_first(call_columns), results = given.results },
        { name = "by stage, us/sequence", columns = behind_first(stage_columns), results = given.results },
    }
end

-- What stands below the tables.
local function notes_of(results)
    local notes = {
        "us/sequence, us/token: medians of interleaved "
            .. (results[1].threads > 1 and "wall" or "CPU")
            .. " times. error, twin's: relative to float64. "
            .. "no head: without what stands behind the last block and its pool.",
    }
    if results[1].dense then
        notes[2] = "dense twin: the same model, emitted with the same types, whose FFNs are MLPs of f = 4 d with GELU."
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

-- Times the model of the file `path` with weights of each of the types that are asked for; the family's `bench`.
function bench.run(path, options)
    if options.batch then
        misuse("--batch: " .. options.batch .. ": is for blocks and FFNs; whole models take --lengths")
    end
    compile.threads_of(options)
    local facts, results, host_facts = cpu.describe(), json.array {}, nil
    local m = request.model(path, options)
    for _, own in ipairs(choices.of_blocks(options)) do
        for _, isa in ipairs(execute.timed_sets(m, own)) do
            local p = runnable.plan(path, { isa }, own)
            local calls, entries = calls_of(p, lengths_of(options.lengths, context_of(p))), {}
            local errors = { own = add_model(entries, path, p, "", isa, own) }
            local twin = parts.twin(m)
            if twin then
                -- nor has it tables
                local random = setmetatable({ weights = false, ignore = false, tables = false, projection = false }, {
                    __index = function(_, key) return own[key] end,
                })
                local dense = parts.plan(twin, isa, nil, random)
                errors.dense = add_model(entries, path, dense, "dense_", isa, random)
            end
            local samples, context = measure.run(job_of(m, p.causal, entries, calls, own), { show_stderr = true })
            if not samples then return nil end
            local flags = compile.threaded(p, options.cflags, options.threads)
            host_facts = host_facts or setting.host_facts(facts, isa, options.cc, flags, context)
            table.move(results_of(p, samples, calls, errors, own), 1, #calls, #results + 1, results)
        end
    end
    local printed = { host = host_facts, results = results }
    return bench_report.of_tables {
        title = m.name .. ": the time of a whole model",
        head = m.name .. " on " .. bench_report.setting(host_facts, options.cflags, options.threads),
        tables = bench.tables(printed),
        notes = notes_of(results),
        host = host_facts,
        threads = options.threads,
        json = printed,
    }
end

return bench
