-- What plan says of a model, and what emit writes by the options that both take.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local works, refuses = program.works, program.refuses
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local odd, weights, packed = odd_ffn.model, odd_ffn.weights, odd_ffn.packed
local plain = packed(weights)

function test.plan_for_machines()
    local found = assert(json.decode(works { "plan", "gen/models/roberta_base.lua", "--json" }))
    local expected = {
        d = 768,
        d_out = 768,
        h = 170,
        tau = 9,
        block = 64,
        padded = 1024,
        repeats = 2,
        table_bytes = 170 * 512 * 768 * 4,
    }
    for key, value in pairs(expected) do
        check.equal(found[key], value)
    end
    check.near(found.dense_mflop_per_token, 9.44, 0.005)
    check.near(found.mflop_per_token, 1.39, 0.005)
    if not (found.mflop_per_token_folded > 0 and found.mflop_per_token_folded < found.mflop_per_token) then
        error("folding saves nothing: " .. found.mflop_per_token_folded)
    end
    for _, key in ipairs { "packed_bytes", "scratch_bytes" } do
        check.equal(math.type(found[key]), "integer")
    end
    local dense = program.model(
        folder,
        "dense",
        'return { name = "m", d = 5, h = 3, tau = 2, projection = { kind = "dense" }, score = "softmax" }'
    )
    found = assert(json.decode(works { "plan", dense, "--json" }))
    check.equal({ found.d, found.d_out, found.padded, found.repeats }, { 5, 5, 5, 1 })
end

function test.plan_for_people()
    local text = works { "plan", "gen/models/roberta_base.lua" }
    check.matches(text, "1%.39")
    check.matches(text, "9%.44")
    check.equal(select(2, text:gsub("\n", "")) < 20, true)
end

function test.sizes_of_the_plan_are_those_of_the_files()
    local found = assert(json.decode(works { "plan", odd, "--json" }))
    check.equal(found.packed_bytes, #plain)
    works { "emit", odd, "-o", folder .. "/sizes" }
    local header = assert(host.read(folder .. "/sizes/odd.h"))
    check.matches(header, "#define ODD_WEIGHTS_BYTES " .. found.packed_bytes .. "u")
    check.matches(header, "#define ODD_SCRATCH_BYTES " .. found.scratch_bytes .. "u")
end

function test.types_of_tables()
    local o = folder .. "/never"
    for _, text in ipairs { "i5", "F32", "f32,i8" } do
        refuses(
            2,
            '--tables: "' .. text .. '": must be one of ' .. table.concat(dtype.names, ", "),
            { "emit", tiny, "-o", o, "--tables", text }
        )
    end
    check.equal(host.kind(o), nil)
    check.matches(works { "plan", tiny, "--tables", "i8" }, "\ntables +32%.0 KiB of i8\n")
    local blobs = {}
    for _, text in ipairs(dtype.names) do
        local bundle = folder .. "/" .. text
        works { "emit", odd, "--tables", text, "-o", bundle }
        check.matches(works { "check", bundle }, ": fresh\n$")
        check.equal(json.decode(host.read(bundle .. "/MANIFEST.json")).options.tables, text)
        check.equal(blobs[packed(weights, "--tables", text)], nil)
        blobs[packed(weights, "--tables", text)] = true
    end
    check.equal(blobs[plain], true)
end

-- What no one has given is what training takes; what somebody has is refused.
function test.tables_stay_float32_in_training()
    local model, to = "gen/models/roberta_small_whole.lua", folder .. "/trained_bf16"
    local made = { "emit", model, "--training", "--type", "bf16", "--isa", "scalar", "-o", to }
    works(made)
    check.equal(works { "check", to }:find "fresh" ~= nil, true)
    refuses(2, "--tables: bf16: must be f32 with --training", program.with(made, "--tables", "bf16"))
end

-- The types of a command that packs by itself are those of pack, though a blob does not depend on all of them.
function test.pack_takes_the_type_of_the_cache()
    local model, path = "gen/models/tiny_skipless.lua", folder .. "/cached.safetensors"
    works { "sample", model, "-o", path }
    local function blob(...)
        works { "pack", model, "--weights", path, "-o", folder .. "/cached.bin", ... }
        return assert(host.read(folder .. "/cached.bin"))
    end
    local exact, types = blob(), { "--type", "bf16", "--activations", "bf16" }
    for _, name in ipairs(dtype.cache_names) do
        if not dtype.get(name, "cache").cache.words_only then check.equal(blob("--cache", name) == exact, true) end
    end
    exact = blob(table.unpack(types))
    check.equal(blob("--cache", "bf16", table.unpack(types)) == exact, true)
end

function test.types_of_projections()
    local o = folder .. "/never"
    for _, text in ipairs { "f16", "f32,bf16" } do -- more of them: every option with a list of values takes no other
        for _, words in ipairs {
            { "plan", tiny },
            { "schedules", tiny },
            { "emit", tiny, "-o", o },
            { "pack", odd, "--weights", weights, "-o", o },
            { "verify", odd },
            { "run", odd, "--weights", weights, "--input", "x.npy", "--output", o },
        } do
            table.insert(words, "--projection")
            table.insert(words, text)
            refuses(
                2,
                '--projection: "' .. text .. '": must be one of ' .. table.concat(dtype.projection_names, ", "),
                words
            )
        end
    end
    refuses(
        2,
        '--projection: "f16": must be one of ' .. table.concat(dtype.projection_names, ", "),
        { "bench", tiny, "--batch", "1", "--projection", "f32,f16" }
    )
    refuses(2, '--projection: "bf16": given twice', { "bench", tiny, "--batch", "1", "--projection", "bf16,f32,bf16" })
    check.equal(host.kind(o), nil)
    check.matches(works { "plan", tiny, "--projection", "bf16" }, "\nprojection +bh4, [^\n]*, 8%.0 KiB of bf16\n")
    local bundle = folder .. "/projection"
    works { "emit", odd, "--projection", "bf16", "--tables", "i8", "-o", bundle }
    check.matches(works { "check", bundle }, ": fresh\n$")
    local options = json.decode(host.read(bundle .. "/MANIFEST.json")).options
    check.equal({ options.projection, options.tables }, { "bf16", "i8" })
    check.equal(packed(weights, "--projection", "f32"), plain)
    check.equal(packed(weights, "--projection", "bf16") == plain, false)
end

-- Defaults for a machine are choices like any others: recorded, the same everywhere, and behind --schedule.
function test.defaults_are_for_a_machine()
    local small = "gen/models/roberta_small.lua"
    local function chosen_of(model, ...)
        local words = { "schedules", model, "--isa", "avx512", "--json", ... }
        local list = {}
        for _, choice in ipairs(json.decode(works(words)).sets[1].choices) do
            list[choice.key] = choice.chosen
        end
        return list
    end
    local function chosen(...) return chosen_of(small, "--tables", "i8", ...) end
    check.equal(chosen("--for", "generic"), chosen())
    local zen = chosen("--for", "zen4")
    check.equal({ zen["gather.pack"], zen["whole.prefetch"], zen["few.prefetch"], zen["few.group"] }, { 2, 3, 3, 128 })
    local rapids = chosen("--for", "sapphire-rapids")
    check.equal({ rapids["gather.pack"], rapids["gather.prefetch_codes"], rapids["few.prefetch"] }, { 3, 1, 3 })
    check.equal(rapids["gather.prefetch_next"], 0) -- copies read slices as they come
    check.equal(zen["gather.prefetch_codes"], 0)
    check.equal(chosen("--for", "zen4", "--schedule", "few.prefetch=1")["few.prefetch"], 1)
    local blocks = "gen/models/tiny_skipless.lua"
    local function prefetched(...) return chosen_of(blocks, ...)["attention.prefetch"] end
    check.equal({ prefetched(), prefetched("--for", "zen4") }, { 2, 3 })
    check.equal(prefetched("--for", "zen4", "--cache", "f16"), prefetched("--cache", "f16"))
    local out = folder .. "/for_zen4"
    works { "emit", "gen/models/tiny.lua", "--for", "zen4", "--isa", "avx512", "-o", out }
    works { "check", out }
    -- So are those of LookupFFNs in blocks, and in packages for other languages.
    local plain = out .. "_plain"
    for _, name in ipairs { "lookup_skipless", "roberta_small_whole" } do
        local model, made = "gen/models/" .. name .. ".lua", out .. name
        works { "emit", model, "--for", "zen4", "--isa", "avx512", "-o", made }
        works { "emit", model, "--isa", "avx512", "-o", plain .. name }
        works { "check", made }
        check.equal(json.decode(host.read(made .. "/MANIFEST.json")).options["for"], "zen4")
        local file = name .. "/" .. name .. "__avx512.c"
        check.equal(host.read(out .. file) == host.read(plain .. file), false)
    end
    works { "emit", small, "--for", "zen4", "--tables", "i8", "--isa", "avx512", "--python", out .. "_python" }
    check.matches(host.read(out .. "_python/MANIFEST.json"), '"few.prefetch": 3')
    for _, row in ipairs {
        { { "plan", small, "--for", "z80" }, '--for: "z80": must be one of generic, granite-rapids' },
        { { "plan", small, "--for", "zen4", "--tuned", "t.lua" }, "--for: zen4: cannot be given beside --tuned" },
        {
            { "plan", small, "--for", "zen4", "--arithmetic", "integer" },
            "--for: zen4: cannot be given beside --arithmetic integer",
        },
        {
            { "emit", small, "--for", "neoverse-v1", "--isa", "neon,avx512", "-o", out },
            "--isa: avx512: is not of --for neoverse-v1, which has scalar, neon, dotprod, sve, i8mm",
        },
        { { "schedules", blocks, "--for", "zen3", "--isa", "avx512" }, "--isa: avx512: is not of --for zen3" },
        { { "bench", small, "--for", "zen3", "--isa", "neon" }, "--isa", status = 1 }, -- this CPU runs none
        { { "plan", small, "--for", "neoverse-v1" }, "neoverse-v1: does not run avx2: needs --isa, of scalar, neon" },
        {
            { "emit", small, "--for", "zen4", "--profile", "firmware", "-o", out },
            "--for: is not for --profile firmware",
        },
    } do
        refuses(row.status or 2, row[2], row[1])
    end
end

function test.emit_of_some_instruction_sets()
    local function kinds(list)
        local bundle = program.folder()
        works { "emit", tiny, "-o", bundle, "--isa", list }
        local seen = {}
        for _, name in ipairs(host.list(bundle)) do
            local isa = name:match("__(%w+)")
            if isa then seen[isa] = (seen[isa] or 0) + 1 end
        end
        works { "check", bundle }
        return seen, bundle
    end
    local all = kinds(sets.bundled)
    check.equal(kinds "scalar", { scalar = all.scalar })
    check.equal(kinds "avx512", { avx512 = all.avx512 })
    local _, one = kinds "scalar,avx2"
    local _, other = kinds "avx2,scalar,avx2"
    check.equal(process.run({ "diff", "-r", one, other }).output, "")
end

function test.emit_says_what_changed()
    local bundle = program.folder() .. "/new/folder"
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("EMIT  [^\n]*\n", ""), "")
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("same  [^\n]*\n", ""), "")
    assert(host.write_file(bundle .. "/tiny.h", "edited"))
    refuses(1, "tiny.h: edited", { "check", bundle })
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("same  [^\n]*\n", ""), "EMIT  " .. bundle .. "/tiny.h\n")
    check.equal(works { "check", bundle }, bundle .. ": fresh\n")
end

function test.relative_paths_from_another_folder()
    local there = program.folder()
    local text = assert(host.read(tiny))
    program.model(there, "tiny", text)
    for _, words in ipairs {
        { "emit", "tiny.lua", "-o", "sub/tiny" },
        { "check", "sub/tiny" },
        { "sample", "tiny.lua", "-o", "w.safetensors" },
        { "pack", "tiny.lua", "--weights", "w.safetensors", "-o", "w.bin" },
    } do
        works(words, { directory = there })
    end
    program.python("np.save(sys.argv[1], np.ones((3, 64), '<f4'))", there .. "/x.npy")
    works(
        { "run", "tiny.lua", "--weights", "w.safetensors", "--input", "x.npy", "--output", "y.npy", "--isa", "scalar" },
        { directory = there }
    )
    check.equal(host.list(there), { "sub", "tiny.lua", "w.bin", "w.safetensors", "x.npy", "y.npy" })

    local here = program.folder()
    works { "emit", tiny, "-o", here }
    check.equal(process.run({ "diff", "-r", here, there .. "/sub/tiny" }).output, "")
end

function test.a_model_may_come_through_a_pipe()
    local there = program.folder()
    local piped = { limit = "exec <" .. tiny }
    check.equal(works({ "plan", "-", "--json" }, piped), works { "plan", tiny, "--json" })
    works(
        { "emit", "-", "--name", "tiny", "--isa", "scalar", "-o", there .. "/a", "--depfile", there .. "/a.d" },
        piped
    )
    works { "emit", tiny, "--isa", "scalar", "-o", there .. "/b" }
    check.equal(process.run({ "diff", "-r", there .. "/a", there .. "/b" }).output, "")
    check.equal(host.read(there .. "/a.d"):find(": \\", 1, true), nil)
    assert(host.write_file(there .. "/bad.lua", "return {\n name = 1 }"))
    refuses(1, "lookupc: -:2: name = 1: must be", { "plan", "-" }, { limit = "exec <" .. there .. "/bad.lua" })
end

function test.schedules_are_legal_choices()
    local found = assert(json.decode(works { "schedules", odd, "--isa", "scalar", "--json" }))
    for _, choice in ipairs(effort.some("bundled", found.sets[1].choices, #found.sets[1].choices // 4)) do
        local last = choice.values[#choice.values]
        local bundle = program.folder()
        works { "emit", odd, "-o", bundle, "--isa", "scalar", "--schedule", choice.key .. "=" .. last }
        works { "check", bundle }
    end
end

return test
