-- The commands that need no compiler, no clock and no CPU: plan, emit, check, sample, pack.
local blob = require "gen.plan.blob"
local bundle = require "gen.bundle.folder"
local emit = require "gen.print.emit"
local file_rules = require "commands.file_rules"
local host = require "host"
local integer_plan = require "gen.families.integer.plan"
local isa = require "gen.isa.list"
local json = require "json"
local model_file = require "gen.model.file"
local plan = require "gen.families.lookup.plan"
local request = require "gen.bundle.request"
local transformer_plan = require "gen.families.transformer.plan"
local weight_count = require "gen.families.transformer.weight_count"

local commands = {}

local function load_plan(path, options)
    return request.plan(path, isa.select(options.isa or table.concat(isa.names, ",")), options)
end

local function bytes_text(n)
    for _, unit in ipairs { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } } do
        if n >= unit[1] then return string.format("%.1f %s", n / unit[1], unit[2]) end
    end
    return n .. " bytes"
end

-- 33554432 as 33,554,432.
local function grouped(n)
    local text = tostring(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
    return text
end

-- A number of weights in billions or millions, as papers write it.
local function rounded(n) return n >= 1e9 and string.format("%.1fB", n / 1e9) or string.format("%.1fM", n / 1e6) end

-- The table of arXiv 2404.12362, section 4.
local function plan_transformer(m, path, options)
    request.check_options(m, options)
    local c = weight_count.of(m)
    if options.json then
        host.print(assert(json.encode { model = m, weights = c }))
        return
    end
    local lines, word = {}, m.attention.eliminate
    local function add(name, ...) lines[#lines + 1] = string.format("%-20s ", name) .. string.format(...) end
    local groups = m.kv_heads == m.heads and "MHA" or m.kv_heads == 1 and "MQA" or "GQA"
    add(
        m.name,
        "d %d, %d layers, %s, %s %d/%d, e %d, %s%s, vocab %d",
        m.d,
        m.layers,
        m.parallel and "parallel" or "serial",
        groups,
        m.heads,
        m.kv_heads,
        c.e,
        m.ffn.kind,
        m.ffn.f and " " .. m.ffn.activation .. " of " .. m.ffn.f or "",
        m.vocab
    )
    add("Q+P per layer", "%15s", grouped(c.qp))
    add("K+V per layer", "%15s", grouped(c.kv))
    add("FFN per layer", "%15s", grouped(c.ffn))
    add("embeddings", "%15s", grouped(c.embeddings))
    add("all weights", "%15s  %s", grouped(c.total), rounded(c.total))
    if word ~= "none" then
        add(
            "without " .. word:gsub("(%u)", "%1+"):sub(1, -2),
            "%15s  %s",
            grouped(c.total_without),
            rounded(c.total_without)
        )
        add("savings", "%14.0f %%", 100 * c.savings)
        add("speed-up limit", "%14.2fx  of one token, where reading weights takes all time", c.speedup)
    end
    if not transformer_plan.misfit(m) then
        local p = request.plan(path, isa.select(options.isa or table.concat(isa.names, ",")), options)
        add("packed blocks", "%15s  of %s", bytes_text(p.packed_bytes), p.shape.type.name)
        add(
            "cache",
            "%15s  of keys and values of %d positions in %s",
            bytes_text(p.cache_bytes),
            p.shape.cache.positions,
            p.shape.cache.type.name
        )
        for _, v in ipairs(p.variants) do
            add("schedule " .. v.isa.name, "%s", v.schedule_text)
        end
        add(
            "scratch",
            "%15s%s",
            bytes_text(p.scratch_bytes),
            m.attention.causal and ", to decode " .. bytes_text(p.decode_scratch_bytes) or ""
        )
    end
    host.print(table.concat(lines, "\n"))
end

function commands.plan(arguments, options)
    local m = model_file.load(arguments[1])
    if m.attention then
        plan_transformer(m, arguments[1], options)
        return 0
    end
    local p = load_plan(arguments[1], options)
    if options.json then
        host.print(assert(json.encode((p.arithmetic and integer_plan or plan).summary(p))))
        return 0
    end
    local s, lines = p.shape, {}
    local function add(name, text) lines[#lines + 1] = string.format("%-18s %s", name, text) end
    local projection = s.kind == "bh4"
            and string.format("bh4, %d repeats of 4 stages, blocks of %d, %d padded", s.repeats, s.block, s.padded)
        or "dense"
    add(
        p.model.name,
        string.format(
            "d %d, d_out %d, %d tables of 2^%d rows%s, %s score%s",
            s.d,
            s.d_out,
            s.h,
            s.tau,
            s.neighbours > 1 and ", " .. s.neighbours .. " taken of each" or "",
            p.model.score,
            p.model.norm and ", layernorm" or ""
        )
    )
    add("projection", string.format("%s, %s of %s", projection, bytes_text(p.projection_bytes), p.projection.name))
    add(
        "MFLOP per token",
        string.format(
            "%.2f by the paper's formula, %.2f after folding; dense FFN %.2f",
            p.mflop.lookup,
            p.mflop.folded,
            p.mflop.dense
        )
    )
    add("tables", bytes_text(p.table_bytes) .. " of " .. p.tables.name)
    add("packed weights", bytes_text(p.packed_bytes))
    add("scratch", bytes_text(p.scratch_bytes))
    if p.arithmetic then
        add("integers", string.format("x int16 in units of %g, y int32 in units of 2^-%d", p.unit, p.fraction))
    end
    for _, v in ipairs(p.variants) do
        if not p.arithmetic then add("schedule " .. v.isa.name, v.schedule_text) end
    end
    host.print(table.concat(lines, "\n"))
    return 0
end

function commands.schedules(arguments, options)
    local p = load_plan(arguments[1], options)
    local sets = {}
    for i, v in ipairs(p.variants) do
        sets[i] = { isa = v.isa.name, choices = json.array(p.schedules.legal(p.shape, v.isa, v.schedule)) }
    end
    if options.json then
        host.print(assert(json.encode { model = p.model.name, sets = json.array(sets) }))
        return 0
    end
    for _, set in ipairs(sets) do
        host.print(set.isa)
        for _, choice in ipairs(set.choices) do
            host.print(
                string.format(
                    "  %-16s %6d  of %-38s %s",
                    choice.key,
                    choice.chosen,
                    table.concat(choice.values, " "),
                    choice.doc
                )
            )
        end
    end
    return 0
end

-- The plan of what emit is asked for, and its files.
local function emitted(path, options)
    if options.profile == nil then
        for name in ("target weights weights-array wrap without-misra flash ram stack"):gmatch "%S+" do
            if options[name] then error(string.format("--%s: is for --profile firmware", name), 0) end
        end
        local p = load_plan(path, options)
        return p, emit.files(p)
    end
    if options.profile ~= "firmware" then error('--profile: "' .. options.profile .. '": must be firmware', 0) end
    for _, name in ipairs { "target", "weights" } do
        if not options[name] then error(string.format("--%s: is missing: --profile firmware needs it", name), 0) end
    end
    if options.isa then error("--isa: " .. options.isa .. ": is what --target decides", 0) end
    local firmware = require "harness.firmware.build" -- needs the target's compiler
    local b = firmware.build(path, options)
    return b.plan, firmware.files(b, options)
end

function commands.emit(arguments, options)
    local p, files = emitted(arguments[1], options)
    local contents = {}
    for _, file in ipairs(files) do
        contents[file.name] = file.text
    end
    local leftovers = bundle.leftovers(p, options.o, files)
    local written = assert(host.write_directory(options.o, contents))
    local lines = {}
    for i, file in ipairs(files) do
        lines[i] =
            string.format("%-5s %s/%s", written[file.name] == "written" and "EMIT" or "same", options.o, file.name)
    end
    for _, name in ipairs(leftovers) do
        assert(host.remove(options.o .. "/" .. name))
        lines[#lines + 1] = string.format("%-5s %s/%s", "gone", options.o, name)
    end
    host.print(table.concat(lines, "\n"))
    return 0
end

function commands.check(arguments)
    local wrong = bundle.check(arguments[1])
    for _, file in ipairs(wrong) do
        host.note(string.format("lookupc check: %s/%s: %s", arguments[1], file.name, file.state))
    end
    if #wrong == 0 then host.print(arguments[1] .. ": fresh") end
    return #wrong == 0 and 0 or 1
end

function commands.sample(arguments, options)
    local weights = require "weights"
    file_rules.not_over("-o", options.o, { arguments[1] })
    local p = load_plan(arguments[1], options)
    assert(weights.sample(options.o, options.prefix, p.samples or p.tensors, options.seed))
    host.print("wrote " .. options.o)
    return 0
end

function commands.pack(arguments, options)
    local weights = require "weights"
    file_rules.not_over("-o", options.o, { arguments[1], options.weights })
    local p = load_plan(arguments[1], options)
    if p.model.attention then
        local errors, worst =
            assert(weights.pack(blob.packing(p, { weights = options.weights, output = options.o, prefix = "" }))), nil
        for name, value in pairs(errors) do
            if not worst or value > errors[worst] or value == errors[worst] and name < worst then worst = name end
        end
        host.print(
            string.format(
                "wrote %s, %s, weights in %s, relative error up to %.2g (%s)",
                options.o,
                bytes_text(p.packed_bytes),
                p.shape.type.name,
                errors[worst],
                worst
            )
        )
        return 0
    end
    local errors = assert(weights.pack(blob.packing(p, {
        weights = options.weights,
        output = options.o,
        prefix = options.prefix,
        blocks_in_out = options["blocks-in-out"],
    })))
    if p.rival then
        host.print(
            string.format(
                "wrote %s, %s, relative error %.2g and %.2g",
                options.o,
                bytes_text(p.packed_bytes),
                errors.first,
                errors.second
            )
        )
        return 0
    end
    host.print(
        string.format(
            "wrote %s, %s, projection in %s, relative error %.2g, tables in %s, relative error %.2g",
            options.o,
            bytes_text(p.packed_bytes),
            p.projection.name,
            errors.projection,
            p.tables.name,
            errors.tables
        )
    )
    return 0
end

return commands
