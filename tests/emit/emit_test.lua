-- Emission gives the same bytes everywhere, leaves unchanged files alone, and `check` sees every way a bundle can be
-- wrong.
local bundle = require "gen.request.folder"
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local sets = require "tests.support.sets"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local languages = require "gen.emit.languages"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"

local names = table.concat(isa.names, ", ") -- as messages list them

local root = process.run({ "pwd" }).output:gsub("\n$", "")
local tiny_model = root .. "/gen/models/tiny.lua"

local function tiny_plan() return plan.build(model.load(tiny_model), isa.select(sets.bundled)) end

local function lookupc(arguments, options)
    return assert(process.run({ check.lookupc, table.unpack(arguments) }, options))
end

local function new_folder() return process.temporary_directory() .. "/bundle" end

-- All files of a folder: { name = bytes }.
local function contents(folder)
    local files = {}
    for _, name in ipairs(assert(host.list(folder))) do
        files[name] = assert(host.read(folder .. "/" .. name))
    end
    return files
end

-- Emits tiny into a new folder and returns it.
local function emitted(isas, before, options)
    local folder = new_folder()
    local words = { "emit", tiny_model, "-o", folder, "--isa", isas or sets.bundled }
    table.move(words, 1, #words, 1 + #(before or {}), words)
    table.move(before or {}, 1, #(before or {}), 1, words)
    local result = lookupc(words, options)
    if result.status ~= 0 then error(result.output, 2) end
    return folder
end

-- `lookupc check` of a folder ends so; FOLDER in the lines stands for its path.
local function check_gives(folder, status, lines)
    local result = lookupc { "check", folder }
    local actual = result.output:gsub(folder:gsub("%p", "%%%0"), "FOLDER")
    if result.status ~= status or actual ~= lines then
        error(
            string.format("got status %d and\n%s, expected status %d and\n%s", result.status, actual, status, lines),
            2
        )
    end
end

-- Replaces one file of a folder by what `change` makes of its text.
local function edit(folder, name, change)
    local text = assert(host.read(folder .. "/" .. name))
    local changed = change(text)
    assert(changed ~= text, name .. " was not changed")
    assert(host.write_file(folder .. "/" .. name, changed))
end

-- Writes the manifest of a folder as another lookupc would have written it: as `change` makes it, with its own digest.
local function rewrite_manifest(folder, change)
    edit(folder, "MANIFEST.json", function(text)
        local manifest = json.decode(text)
        change(manifest)
        return emit.manifest_text(manifest)
    end)
end

-- A bundle for a microcontroller of a small model, wrapped for build systems.
local function emitted_firmware(...)
    local folder = program.folder()
    local path = program.model(
        folder,
        "small",
        'return { name = "small", d = 8, h = 2, tau = 2, projection = { kind = "dense" }, score = "gelu" }'
    )
    program.works { "sample", path, "-o", folder .. "/weights.safetensors" }
    local words = { "emit", path, "-o", folder .. "/bundle", "--weights", folder .. "/weights.safetensors", ... }
    program.works { table.unpack(words) }
    return folder .. "/bundle"
end
local generic = { "--profile", "firmware", "--target", "generic", "--without-misra" }
local wrapped = { "--wrap", "zephyr,esp-idf,platformio,arduino,cmsis-pack", table.unpack(generic) }

local function remove(path) assert(process.run({ "rm", path }).status == 0) end

-- The kernel file of a bundle whose name starts so.
local function file_of(folder, start)
    for _, name in ipairs(assert(host.list(folder))) do
        if name:sub(1, #start) == start then return name end
    end
    error("no file " .. start)
end

local test = {}

-- Weights two to a word: unpacked for many tokens, in the kernel for few. Other kernels stand in emitted/.
function test.golden_files()
    local p = plan.build(model.load(tiny_model), isa.select("scalar,avx2"), nil, nil, "bf16")
    local text = {}
    for _, file in ipairs(emit.sources(p, nil, "apart")) do
        text[file.name] = file.text
    end
    check.golden("tiny_bh4_bf16__scalar.c", text[p.variants[1].stages[1].names.projection .. ".c"])
    check.golden("tiny_bh4_bf16__avx2_few.c", text[p.variants[2].stages[2].names.projection .. ".c"])
end

-- Builds declare outputs before lookupc has read the model: names follow from its name and the instruction sets.
function test.file_names_depend_on_name_and_instruction_sets_only()
    local function names_of(words)
        local folder = new_folder()
        local result = lookupc { "emit", "-o", folder, "--isa", "scalar,avx2", table.unpack(words) }
        check.equal({ result.status, result.output:match "error.*" }, { 0 })
        return table.concat(host.list(folder), " ")
    end
    local other = new_folder() .. ".lua"
    assert(host.write_file(
        other,
        [[return { name = "tiny", d = 13, d_out = 21, h = 5, tau = 3, neighbours = 2,
        projection = { kind = "dense" }, score = "softmax" }]]
    ))
    local blocks = new_folder() .. ".lua"
    assert(host.write_file(
        blocks,
        [[return { name = "tiny", d = 24, heads = 2, layers = 2, vocab = 9,
        attention = { eliminate = "Q", context = 33 },
        ffn = { kind = "lookup", h = 9, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu" } }]]
    ))
    local expected = "LICENSE MANIFEST.json tiny.c tiny.h tiny__avx2.c tiny__scalar.c tiny_runtime.h"
    for _, words in ipairs {
        { tiny_model },
        { tiny_model, "--tables", "i8", "--projection", "i16" },
        { tiny_model, "--schedule", "few.threshold=0,gather.group=2" },
        { other },
        { blocks, "--type", "bf16" },
    } do
        check.equal(names_of(words), expected)
    end
end

-- In bundles of one instruction set too, of every family; firmware, which is short of memory, has none.
function test.every_bundle_says_which_instruction_set_it_chose()
    for _, row in ipairs {
        { "tiny", "--isa", "scalar" },
        { "tiny", "--isa", "avx2" },
        { "tiny", "--isa", sets.bundled },
        { "tiny", "--isa", "scalar", "--arithmetic", "integer" },
        { "tiny_skipless", "--isa", "scalar" },
        { "tiny_skipless", "--isa", sets.bundled },
    } do
        local folder, name = new_folder(), row[1]
        local words = { "emit", root .. "/gen/models/" .. name .. ".lua", "-o", folder, table.unpack(row, 2) }
        local result = lookupc(words)
        check.equal({ result.status, result.output:match "error.*" }, { 0 })
        for _, file in ipairs(host.list(folder)) do
            if file:find "%.c$" and not file:find "__" then name = file:gsub("%.c$", "") end
        end
        check.matches(host.read(folder .. "/" .. name .. ".h"), "\n    int isa; /%* [^\n]*: 0 " .. row[3]:match "%w+")
        check.matches(host.read(folder .. "/" .. name .. ".c"), "\n    weights%->isa = ")
    end
    check.equal(host.read("emitted/kws/inc/kws.h"):find("int isa", 1, true), nil)
end

function test.emission_twice_gives_the_same_bytes()
    check.equal(emit.files(tiny_plan()), emit.files(tiny_plan()))
    -- Also from one plan: emission leaves nothing behind in it.
    local p = tiny_plan()
    local first = emit.files(p)
    check.equal(emit.files(p), first)
    check.equal(contents(emitted()), contents(emitted()))
end

function test.another_folder_a_tree_and_the_module_give_the_same_bytes()
    local expected = {}
    for _, file in ipairs(emit.files(tiny_plan())) do
        expected[file.name] = file.text
    end
    check.equal(contents(emitted()), expected)
    check.equal(contents(emitted(nil, nil, { directory = "/" })), expected)
    check.equal(contents(emitted(nil, { "--tree", root })), expected)
    check.equal(contents(emitted(nil, { "--tree", "." }, { directory = root })), expected)

    -- Another path and place of the model file, and a relative output folder.
    local there = process.temporary_directory()
    assert(host.write_file(there .. "/other.lua", assert(host.read(tiny_model))))
    check.equal(lookupc({ "emit", "other.lua", "-o", "a/b" }, { directory = there }).status, 0)
    check.equal(contents(there .. "/a/b"), expected)
end

-- A locale that writes 0,5 for 0.5, made here where its sources are installed.
local function comma_locale()
    local folder = process.temporary_directory()
    local made = process.run { "localedef", "-i", "de_DE", "-f", "UTF-8", folder .. "/de_DE.UTF-8" }
    local shown = process.run(
        { "bash", "-c", "printf %.1f 0,5" },
        { env = { LOCPATH = folder, LC_ALL = "de_DE.UTF-8" } }
    )
    return made and shown.output == "0,5" and folder or nil
end

function test.another_locale_gives_the_same_bytes()
    local expected = contents(emitted("scalar"))
    local locales = { { LC_ALL = "C" }, { LC_ALL = "C.UTF-8" }, { LC_ALL = "none.UTF-8" }, { LANG = "de_DE.UTF-8" } }
    for _, env in ipairs(locales) do
        check.equal(contents(emitted("scalar", nil, { env = env })), expected)
    end
    local folder = comma_locale()
    if not folder then return host.note("skipped: no locale with a decimal comma can be made here") end
    check.equal(contents(emitted("scalar", nil, { env = { LOCPATH = folder, LC_ALL = "de_DE.UTF-8" } })), expected)
    check.equal(
        lookupc({ "check", emitted("scalar") }, { env = { LOCPATH = folder, LC_ALL = "de_DE.UTF-8" } }).status,
        0
    )
end

function test.the_order_of_instruction_sets_does_not_matter()
    check.equal(contents(emitted("avx2,scalar")), contents(emitted("scalar,avx2,scalar")))
end

function test.text_is_clean()
    for _, name in ipairs { "tiny", "roberta_small", "roberta_base" } do
        for _, file in
            ipairs(emit.files(plan.build(model.load("gen/models/" .. name .. ".lua"), isa.select(sets.bundled))))
        do
            local bad = file.text:match("[^\n]*[ \t]\n")
                or file.text:match("[^\n]*\t[^\n]*")
                or file.text:match("[^\n]*\r")
                or not file.text:find("[^\n]\n$") and "end of file"
            if bad then error(file.name .. ": blanks at the end of a line, tabs or no newline: " .. bad) end
            if file.name:find("%.[ch]$") then
                -- Of kernels, the banner goes on with the choices that they follow: none is 0, which makes nothing.
                local source = file.isa and "model " or "templates/[%w_/]+%.[ch] and model "
                local next = file.isa and "\n   Kernels for " .. file.isa.name .. ": %l" or " %*/\n"
                check.matches(
                    file.text,
                    "^/%* Generated by lookupc from " .. source .. name .. "%. Do not edit%." .. next
                )
                check.equal(file.text:match("^/%*.-%*/"):find "=0[,.]", nil)
            end
        end
    end
end

function test.banners_say_the_choices_of_lookup_ffns_in_blocks()
    local folder = program.folder()
    program.works { "emit", "gen/models/lookup_skipless.lua", "--isa", "scalar", "-o", folder }
    local banner = contents(folder)["lookup_skipless__scalar.c"]:match("^/%*.-%*/"):gsub("%s+", " ")
    check.matches(banner, "Kernels for scalar: few%.vectors=.*%. The LookupFFN lookup: .*gather%.columns=")
end

-- Kernels of one file share their helpers: exp stands once, and no two functions have one name.
function test.a_helper_stands_once_a_file()
    local folder = program.folder()
    local types = { "--type", "i8", "--cache", "i8", "--activations", "i8" }
    program.works { "emit", "gen/models/roberta_small_whole.lua", "-o", folder, table.unpack(types) }
    for name, text in pairs(contents(folder)) do
        local seen = {}
        for helper in text:gmatch "\nstatic [^\n;(]-([%w_]+)%([^\n;]*[,)]\n" do
            if seen[helper] then error(name .. ": " .. helper .. ": is there twice", 0) end
            seen[helper] = true
        end
        for before in text:gmatch "([^\n]*)\n[^\n]*_hidden%(1%.0f%);\n" do
            check.matches(before, "memcpy") -- why the compiler must not know the constant, if it has no room beside
        end
        local kernels = name:find "__[%w_]+%.c$" and 1 or 0
        check.equal({ name, kernels > 0 and text:match "madd_epi16%(_mm256_and_si256" or nil }, { name }) -- dot_i8
        check.equal({ name, select(2, text:gsub("\nstatic inline [^\n(]-_exp%(", "")) }, { name, kernels })
    end
end

-- Firmware for a CPU with DSP instructions and no vectors; its kernels alone have their functions.
function test.firmware_has_instructions_of_its_target_only()
    local kernels, runtime = host.read "emitted/kws/src/kws__kernels.c", host.read "emitted/kws/src/kws_runtime.h"
    check.matches(runtime, "__ARM_FEATURE_DSP")
    for _, word in ipairs { "__ARM_FEATURE_MVE", "arm_mve", "__ARM_NEON", "arm_neon" } do
        check.equal({ word, (kernels .. runtime):find(word, 1, true) }, { word })
    end
    check.matches(kernels, "void kws_add_dots8%(.*void kws_gather_begin%(")
    check.equal(runtime:match "kws_add_dots8" or runtime:match "kws_gather_begin%(", nil)
    local numbers = host.read "emitted/kws/test/kws_selftest.c"
    for line, next in numbers:gmatch "\n( +[-%d][-%d, ]+)%f[\n]()" do
        if numbers:find("^\n +[-%d]", next) then check.equal({ line, #line > 105 and #line <= 120 }, { line, true }) end
    end
end

-- Where tiles of few and of many tokens are as wide, or norms differ in eps only, they have one function.
function test.functions_of_the_same_text_stand_once_a_file()
    local cases = {
        { "gen/models/roberta_base.lua", "--for", "zen4" },
        { "gen/models/gpt_nano_sort.lua", "--training", "--isa", "scalar,avx2" },
    }
    for _, words in ipairs(cases) do
        local folder, found = program.folder(), 0
        program.works { "emit", words[1], "-o", folder, table.unpack(words, 2) }
        for name, text in pairs(contents(folder)) do
            local seen = {}
            for helper, body in text:gmatch "\nstatic [^\n;(]-([%w_]+)(%b()\n%b{})\n" do
                if helper:find "_transpose" or helper:find "_scale_scores$" or helper:find "_back$" then
                    if seen[body] then error(name .. ": " .. helper .. " is " .. seen[body] .. " once more", 0) end
                    seen[body], found = helper, found + 1
                end
            end
        end
        check.equal(found > 0, true)
    end
end

function test.the_manifest_records_every_file()
    local p = tiny_plan()
    local manifest = json.decode(contents(emitted())["MANIFEST.json"])
    local recorded = {}
    for _, entry in ipairs(manifest.files) do
        recorded[entry.name] = entry.sha256
    end
    for name, bytes in pairs(contents(emitted())) do
        if name ~= "MANIFEST.json" then
            check.equal(recorded[name], host.sha256(bytes))
            recorded[name] = nil
        end
    end
    check.equal(recorded, {})
    check.equal(manifest.version, host.version)
    check.equal(manifest.model, p.model)
    check.equal(manifest.model_digest, p.digest)
    check.equal(manifest.options.isa, sets.list)
end

-- Programs must ask the system for AMX: bundles that have it say so, and have a function for it.
function test.bundles_with_amx_need_a_permission()
    local list = isa.select "scalar,avx512,amx_int8,amx_bf16"
    local files = emit.files(plan.build(model.load(tiny_model), list), { cpp = true })
    check.equal(json.decode(files[#files].text).needs_permission, { "amx_int8", "amx_bf16" })
    check.matches(files[1].text, "\nTINY_API int tiny_request_amx%(void%);\n")
    for _, file in ipairs(emit.files(tiny_plan(), { cpp = true })) do
        check.equal(file.text:find "amx" or file.text:find "AMX" or file.text:find "needs_permission", nil)
    end
end

function test.unchanged_files_are_not_touched()
    local folder = emitted("scalar")
    local name = file_of(folder, "tiny__scalar")
    -- Times in the past tell a file that was written from one that was not, and a folder where none was made.
    local function run(line) return process.run { "sh", "-c", "cd " .. folder .. " && " .. line } end
    local function times() return run("stat -c '%n %i %y' *").output end
    local function time_of_folder() return run("stat -c %y .").output end
    assert(run("touch -d '2001-02-03 04:05:06' * .").status == 0)
    local before, folder_before = times(), time_of_folder()

    local again = lookupc { "emit", tiny_model, "-o", folder, "--isa", "scalar" }
    check.equal(again.status, 0)
    check.equal(times(), before)
    check.equal(time_of_folder(), folder_before)
    for line in again.output:gmatch("[^\n]+") do
        check.matches(line, "^same  " .. folder:gsub("%p", "%%%0") .. "/[%w_.]+$")
    end
    check.equal(select(2, again.output:gsub("\n", "")), #host.list(folder))

    edit(folder, name, function(text) return text .. "/* edited */\n" end)
    local mended = lookupc { "emit", tiny_model, "-o", folder, "--isa", "scalar" }
    check.matches(mended.output, "\nEMIT  " .. (folder .. "/" .. name):gsub("%p", "%%%0") .. "\n")
    check.equal(select(2, mended.output:gsub("EMIT  ", "")), 1)
    local function without(list) return (list:gsub(name:gsub("%p", "%%%0") .. "[^\n]*\n", "")) end
    check.equal(without(times()), without(before))
    check_gives(folder, 0, "FOLDER: fresh\n")
end

function test.checked_in_bundles_are_fresh()
    for _, name in ipairs { "tiny", "roberta_small", "tiny_skipless" } do
        local result = lookupc { "check", "emitted/" .. name }
        check.equal({ result.status, result.output }, { 0, "emitted/" .. name .. ": fresh\n" })
        check.equal(
            json.decode(assert(host.read("emitted/" .. name .. "/MANIFEST.json"))).model,
            model.load("gen/models/" .. name .. ".lua")
        )
    end
end

function test.check_of_a_fresh_bundle()
    local folder = emitted()
    local before = contents(folder)
    check_gives(folder, 0, "FOLDER: fresh\n")
    check_gives(emitted "scalar", 0, "FOLDER: fresh\n")
    check_gives(emitted "avx512", 0, "FOLDER: fresh\n")
    check.equal(contents(folder), before)
    check.equal(lookupc({ "check", "." }, { directory = folder }).output, ".: fresh\n")
end

function test.check_of_edited_files()
    for _, start in ipairs { "tiny.h", "tiny.c", "tiny_runtime.h", "tiny__scalar.c", "LICENSE" } do
        local folder = emitted "scalar"
        local name = file_of(folder, start)
        edit(folder, name, function(text) return text:gsub("\n", " \n", 1) end)
        check_gives(folder, 1, "lookupc check: FOLDER/" .. name .. ": edited\n")
        edit(folder, name, function() return "" end)
        check_gives(folder, 1, "lookupc check: FOLDER/" .. name .. ": edited\n")
    end
end

function test.check_of_missing_files()
    local folder = emitted "scalar"
    remove(folder .. "/tiny.c")
    check_gives(folder, 1, "lookupc check: FOLDER/tiny.c: missing\n")
    remove(folder .. "/LICENSE")
    check_gives(folder, 1, "lookupc check: FOLDER/tiny.c: missing\nlookupc check: FOLDER/LICENSE: missing\n")
end

-- A bundle of an older lookupc: the manifest and its files agree with each other, but not with what is emitted today.
function test.check_of_stale_files()
    local folder = emitted "scalar"
    edit(folder, "tiny.h", function(text) return text .. "/* of old */\n" end)
    rewrite_manifest(folder, function(manifest)
        for _, entry in ipairs(manifest.files) do
            if entry.name == "tiny.h" then entry.sha256 = host.sha256(assert(host.read(folder .. "/tiny.h"))) end
        end
    end)
    check_gives(folder, 1, "lookupc check: FOLDER/tiny.h: stale\nlookupc check: FOLDER/MANIFEST.json: stale\n")
end

function test.check_of_files_that_are_no_longer_emitted()
    local folder = emitted "scalar"
    assert(host.write_file(folder .. "/tiny_old.c", "int old;\n"))
    rewrite_manifest(
        folder,
        function(m) table.insert(m.files, 1, { name = "tiny_old.c", sha256 = host.sha256 "int old;\n" }) end
    )
    check_gives(folder, 1, "lookupc check: FOLDER/MANIFEST.json: stale\nlookupc check: FOLDER/tiny_old.c: stale\n")
end

-- Whatever the manifest does not list, wherever it lies and of whatever kind: a makefile would compile it, or link it.
function test.check_of_unknown_files()
    local folder = emitted "scalar"
    local function put(name) assert(host.write_directory(folder, { [name] = "int extra;\n" })) end
    local function unknown(...)
        local lines = {}
        for i, name in ipairs { ... } do
            lines[i] = "lookupc check: FOLDER/" .. name .. ": unknown: not in MANIFEST.json\n"
        end
        return table.concat(lines)
    end
    put ".git/hooks/update.c" -- the folder is a repository of its own
    check_gives(folder, 0, "FOLDER: fresh\n")
    for _, name in ipairs { "extra.c", ".hidden.h", "tiny.c.o", "src/deep/extra.S", "src/.git/x", "tiny.c~" } do
        put(name)
        check_gives(folder, 1, unknown(name))
        remove(folder .. "/" .. name)
    end
    process.run { "ln", "-s", "none", folder .. "/dangling.c" }
    process.run { "ln", "-s", "..", folder .. "/src/loop" }
    process.run { "mkfifo", folder .. "/src/pipe.c" }
    put "two\nlines"
    check_gives(folder, 1, unknown("dangling.c", "src/loop", "src/pipe.c", "two?lines"))

    folder = emitted "scalar"
    for i = 10, 39 do
        put("src/" .. i .. ".c")
    end
    local result = lookupc { "check", folder }
    check.matches(result.output, "/src/29.c: unknown: [^\n]*\nlookupc check: [^\n]*: 10 more files are not in MANIFEST")
    check.equal(result.status, 1)
    check.equal(lookupc({ "check", folder, "--ignore", "src/*.c" }).output, folder .. ": fresh\n")
    put "notes.md"
    check.equal(lookupc({ "check", folder, "--ignore", "src/*,notes.md" }).status, 0)
    check.equal(lookupc({ "check", folder, "--ignore", "src/*,note.md" }).status, 1)
    check.matches(lookupc({ "check", folder, "--ignore", "a,,b" }).output, '%-%-ignore: "a,,b": must be names')
end

-- As Git with core.autocrlf checks a bundle out: each file says so, and one that is edited, too, only that.
function test.check_names_crlf()
    local folder, expected = emitted "scalar", {}
    for _, name in ipairs(host.list(folder)) do
        edit(folder, name, function(text) return text:gsub("\n", "\r\n") end)
        expected[#expected + 1] = "lookupc check: FOLDER/" .. name .. ": CRLF line ends\n"
    end
    table.sort(expected)
    local name = file_of(folder, "tiny.c")
    local function lines_of()
        local list = {}
        local output = lookupc({ "check", folder }).output:gsub(folder:gsub("%p", "%%%0"), "FOLDER")
        for line in output:gmatch "[^\n]*\n" do
            list[#list + 1] = line
        end
        table.sort(list)
        return list
    end
    check.equal(lines_of(), expected)
    edit(folder, name, function(text) return text .. "\r\n" end)
    check.matches(table.concat(lines_of()), "FOLDER/tiny%.c: edited\n")
end

function test.check_of_an_edited_manifest()
    local folder = emitted "scalar"
    edit(folder, "MANIFEST.json", function(text) return text:gsub(host.version:gsub("%.", "%%."), "0.0.9") end)
    check_gives(folder, 1, "lookupc check: FOLDER/MANIFEST.json: edited\n")
    folder = emitted "scalar"
    rewrite_manifest(folder, function(manifest) manifest.version = "0.0.9" end)
    check_gives(folder, 1, "lookupc check: FOLDER/MANIFEST.json: stale\n")
end

-- Every bundle is fresh as it is emitted, and no other byte in its manifest passes, nor one more or less: one line says
-- what is wrong, never an error of lookupc itself.
function test.check_of_every_edit_of_a_manifest()
    local folders = {
        emitted "scalar",
        emitted_firmware(table.unpack(wrapped)),
        emitted_firmware("--weights-array", table.unpack(generic)),
    }
    local edits = {
        function(text, at) return text:sub(1, at - 1) .. string.char(text:byte(at) ~ 1) .. text:sub(at + 1) end,
        function(text, at) return text:sub(1, at) .. " " .. text:sub(at + 1) end,
        function(text, at) return text:sub(1, at - 1) .. text:sub(at + 1) end,
        function(text, at) return text:sub(1, at) .. text:sub(at, at) .. text:sub(at + 1) end,
    }
    for i, folder in ipairs(folders) do
        check_gives(folder, 0, "FOLDER: fresh\n")
        local path = folder .. "/MANIFEST.json"
        local text, count = assert(host.read(path)), 0
        for at = i, #text, effort.manifest_stride do
            count = count + 1
            local changed = edits[count % #edits + 1](text, at)
            assert(host.write_file(path, changed))
            local good, wrong = pcall(bundle.check, folder)
            local one_line = not good and not wrong:find "\n" and not wrong:find "%.lua:"
            if changed ~= text and not (good and #wrong > 0 or one_line) then
                error(string.format("%s: byte %d of MANIFEST.json: %s", folder, at, good and "passes" or wrong))
            end
        end
        assert(host.write_file(path, text))
        check_gives(folder, 0, "FOLDER: fresh\n")
    end
end

-- What only a compiler or the reference knows cannot be emitted again: it is as recorded, or edited.
function test.check_of_edited_firmware()
    local folder = emitted_firmware(table.unpack(wrapped))
    local function gives(name, state)
        local result = lookupc { "check", folder }
        check.equal(
            { result.status, result.output },
            { 1, "lookupc check: " .. folder .. "/" .. name .. ": " .. state .. "\n" }
        )
    end
    for _, name in ipairs {
        "src/small_weights.bin",
        "src/small.c",
        "test/small_selftest.c",
        "inc/small.h",
        "README.md",
        "REPORT.txt",
        "zephyr/Kconfig",
        "library.properties",
    } do
        local text = assert(host.read(folder .. "/" .. name))
        assert(host.write_file(folder .. "/" .. name, text .. " "))
        gives(name, "edited")
        remove(folder .. "/" .. name)
        gives(name, "missing")
        assert(host.write_file(folder .. "/" .. name, text))
    end
    -- a file and its digest, edited together
    local text, old = assert(host.read(folder .. "/README.md")), assert(host.read(folder .. "/MANIFEST.json"))
    assert(host.write_file(folder .. "/README.md", text .. " "))
    edit(
        folder,
        "MANIFEST.json",
        function(manifest) return manifest:gsub(host.sha256(text), host.sha256(text .. " ")) end
    )
    gives("MANIFEST.json", "edited")
    assert(host.write_file(folder .. "/README.md", text))
    assert(host.write_file(folder .. "/MANIFEST.json", old))
    -- what the makefile of README.md compiles
    assert(host.write_file(folder .. "/src/extra.c", "int extra;\n"))
    gives("src/extra.c", "unknown: not in MANIFEST.json")
end

-- The manifest's model decides what is expected.
function test.check_of_a_manifest_of_another_model()
    local folder = emitted "scalar"
    edit(folder, "MANIFEST.json", function(text) return text:gsub('"score": "gelu"', '"score": "softmax"') end)
    local result = lookupc { "check", folder }
    check.equal(result.status, 1)
    check.matches(result.output, "/tiny%.c: stale\n")
    check.matches(result.output, "/tiny__scalar%.c: stale\n")
end

function test.check_of_a_damaged_manifest()
    for _, case in ipairs {
        { "", "FOLDER/MANIFEST.json: 1:0: " },
        { "{", "FOLDER/MANIFEST.json: 1:1: " },
        { "[]", "FOLDER/MANIFEST.json: not a manifest of lookupc\n" },
        { "5", "FOLDER/MANIFEST.json: not a manifest of lookupc\n" },
        { "null", "FOLDER/MANIFEST.json: not a manifest of lookupc\n" },
        {
            '{ "generator": "other", "files": [], "model": {}, "options": { "isa": [] } }',
            "FOLDER/MANIFEST.json: not a manifest of lookupc\n",
        },
        { '{ "generator": "lookupc", "generator": "lookupc" }', "FOLDER/MANIFEST.json: 1:37: duplicate object key" },
        { "\0\255", "FOLDER/MANIFEST.json: 1:" },
    } do
        local folder = emitted "scalar"
        edit(folder, "MANIFEST.json", function() return case[1] end)
        local result = lookupc { "check", folder }
        check.equal(result.status, 1)
        local line = result.output:gsub(folder:gsub("%p", "%%%0"), "FOLDER")
        check.equal(line:sub(1, #case[2] + 9), "lookupc: " .. case[2])
        check.equal(select(2, line:gsub("\n", "")), 1)
    end
end

-- One part of the manifest wrong at a time.
function test.check_of_a_manifest_with_wrong_parts()
    local folder = emitted "scalar"
    local original = assert(host.read(folder .. "/MANIFEST.json"))
    for _, case in ipairs {
        { '"d": 64', '"d": 0', ": d = 0: must be an integer from 1 to 65536\n" },
        { '"d": 64', '"d": null', ": d = null: must be an integer" },
        { '"d": 64', '"d": 64, "e": 1', ": e = 1: unknown key" },
        { '"name": "tiny"', '"name": "../tiny"', ': name = "../tiny": must be ' },
        { '"neighbours": 1', '"neighbours": 65', "neighbours = 65: must be at most 2^tau = 64" },
        { '"scalar"', '"mmx"', '"mmx": must be one of ' .. names },
        { '"scalar"', "5", '"5": must be one of ' .. names },
        { '"scalar"', "", "MANIFEST.json: " },
        { '"isa": %[', '"isa": 5, "x": [', ": not a manifest of lookupc\n" },
        { '"model": {', '"model": [], "x": {', "MANIFEST.json: name: required key is missing" },
        { '"files": %[', '"files": 5, "x": [', ": not a manifest of lookupc\n" },
        {
            '"schedule": {}',
            '"schedule": { "tile.vectors": 2 }',
            '"tile.vectors": must be an instruction set, of ' .. names,
        },
        { '"schedule": {}', '"schedule": { "scalar": 5 }', "schedule.scalar: must be a table of choices" },
        { '"schedule": {}', '"schedule": { "scalar": { "tile.vectors": 3.5 } }', "tile.vectors" },
        { '"schedule": {}', '"schedule": { "scalar": { "tile": 3 } }', "tile: unknown choice" },
        { '"schedule": {}', '"schedule": { "scalar": { "tile.vectors": 1000 } }', "tile.vectors = 1000" },
        { '"tables": "f32"', '"tables": "f64"', '--tables: "f64": must be one of ' .. table.concat(dtype.names, ", ") },
        { '"projection": "f32"', '"projection": "f16"', '--projection: "f16": must be one of f32, bf16' },
        { '"projection": "f32"', '"projection": 16', ": options.projection = 16: must be a string\n" },
    } do
        local text, count = original:gsub(case[1], case[2], 1)
        check.equal(count, 1)
        assert(host.write_file(folder .. "/MANIFEST.json", text))
        local result = lookupc { "check", folder }
        local line = result.output
        if
            result.status ~= 1
            or select(2, line:gsub("\n", "")) ~= 1
            or line:find("%.lua:")
            or not line:find("^lookupc: .*MANIFEST%.json: ")
            or not line:find(case[3], 1, true)
        then
            error(string.format("%s: status %d, %s", case[2], result.status, line))
        end
    end
    -- Entries of the list of files that say nothing are as good as none: the files themselves are what counts.
    assert(
        host.write_file(
            folder .. "/MANIFEST.json",
            (original:gsub('"files": %[', '"files": [ 5, null, {}, { "name": 7 },'))
        )
    )
    check_gives(folder, 1, "lookupc check: FOLDER/MANIFEST.json: edited\n")
end

-- Every option that a manifest may record, with values of every type of JSON: one line says what is wrong, never an
-- error of lookupc itself.
function test.check_of_options_of_wrong_types()
    local there = program.folder()
    local function bundle_of(name, text, ...)
        local folder = there .. "/" .. name .. "_bundle"
        program.works { "emit", program.model(there, name, text), "-o", folder, "--isa", "scalar", ... }
        return folder
    end
    local blocks = "layers = 1, vocab = 300, d = 16, heads = 2, attention = { context = 8 }, "
        .. "ffn = { kind = 'mlp', f = 8, activation = 'relu' }"
    local bytes = "tokenizer = { kind = 'bytes' }"
    local folders = {
        emitted "scalar",
        emitted_firmware(table.unpack(generic)),
        emitted_firmware("--arithmetic", "integer", table.unpack(generic)),
        bundle_of("blocks", "return { name = 'blocks', " .. blocks .. " }", "--cache", "i8"),
        bundle_of("whole", "return { name = 'whole', embedding = {}, " .. bytes .. ", " .. blocks .. " }"),
        bundle_of("tokens", "return { name = 'tokens', " .. bytes .. " }"),
    }
    local values = { json.null, json.array {}, {}, true, 1, "x" }
    for _, folder in ipairs(folders) do
        local path = folder .. "/MANIFEST.json"
        local text = assert(host.read(path))
        check_gives(folder, 0, "FOLDER: fresh\n")
        local names = { "activations", "arithmetic", "cache", "facts", "for", "isa" }
        for _, name in ipairs { "projection", "schedule", "tables", "type", table.unpack(names) } do
            for i, value in ipairs(values) do
                local manifest = json.decode(text)
                manifest.options[name] = value
                assert(host.write_file(path, emit.manifest_text(manifest)))
                local good, wrong = pcall(bundle.check, folder)
                local one_line = not good and wrong:find "MANIFEST%.json: " and not wrong:find "\n"
                if not good and (not one_line or wrong:find "%.lua:" or wrong:find "userdata") then
                    error(string.format("%s: options.%s, value %d: %s", folder, name, i, wrong))
                end
                local is_text = not ("facts isa schedule"):find(name, 1, true)
                if is_text and value ~= "x" then
                    check.matches(wrong, "MANIFEST%.json: options%." .. name .. " = [^:]*: must be a string$")
                end
            end
        end
        local manifest = json.decode(text)
        if manifest.target then
            manifest.target = json.null
            assert(host.write_file(path, emit.manifest_text(manifest)))
            local line = "lookupc: FOLDER/MANIFEST.json: target = null: must be a string\n"
            check_gives(folder, 1, line)
        end
        assert(host.write_file(path, text))
        check_gives(folder, 0, "FOLDER: fresh\n")
    end
end

function test.check_of_what_is_no_bundle()
    local folder = process.temporary_directory()
    local function gives(path, line)
        local result = lookupc { "check", path }
        check.equal({ result.status, result.output }, { 1, line })
    end
    gives(folder, "lookupc: " .. folder .. "/MANIFEST.json: No such file or directory\n")
    gives(folder .. "/none", "lookupc: " .. folder .. "/none/MANIFEST.json: No such file or directory\n")
    gives(tiny_model, "lookupc: " .. tiny_model .. "/MANIFEST.json: Not a directory\n")
    assert(host.write_directory(folder .. "/MANIFEST.json", { x = "" }))
    gives(folder, "lookupc: " .. folder .. "/MANIFEST.json: Is a directory\n")
end

function test.a_refused_model_writes_nothing()
    local there = process.temporary_directory()
    assert(host.write_file(there .. "/bad.lua", (assert(host.read(tiny_model)):gsub("tau = 6", "tau = 60"))))
    local result = lookupc({ "emit", "bad.lua", "-o", "out" }, { directory = there })
    check.equal(
        { result.status, result.output },
        { 1, "lookupc: bad.lua:6: tau = 60: must be an integer from 1 to 16\n" }
    )
    check.equal(host.list(there), { "bad.lua" })
    result = lookupc({ "emit", tiny_model, "-o", "out", "--isa", "mmx" }, { directory = there })
    check.equal({ result.status, result.output }, { 2, 'lookupc: --isa: "mmx": must be one of ' .. names .. "\n" })
    result = lookupc({ "emit", tiny_model, "-o", "bad.lua" }, { directory = there })
    check.equal(result.status, 1)
    check.matches(result.output, "^lookupc: bad%.lua[^\n]*: Not a directory\n$")
    check.equal(host.list(there), { "bad.lua" })
end

function test.a_file_built_for_the_wrong_instruction_set_stops()
    for _, set in ipairs(isa.select("avx2,avx512")) do
        local folder = emitted(set.name)
        for name in pairs(contents(folder)) do
            if name:find("__" .. set.name .. ".*%.c$") then
                local result = assert(process.run { "gcc", "-std=c11", "-fsyntax-only", folder .. "/" .. name })
                check.equal(result.status ~= 0, true)
                check.matches(
                    result.output,
                    '#error "compile this file with ' .. table.concat(set.flags, " "):gsub("%p", "%%%0") .. '"'
                )
            end
        end
    end
end

-- What a header shows as code is C: the indented lines of its first comment, in a function with what they take.
function test.samples_in_headers_compile()
    local parameters = [[size_t tokens, size_t position, const size_t *offsets, size_t sequences,
    const int32_t *ids, size_t n, int32_t next_id, float *logits]]
    local function compiles(folder, name, types)
        local comment = host.read(folder .. "/" .. name .. ".h"):match "\n/%*.-%*/"
        check.matches(comment, "%.\n\n     static [^\n]+;\n")
        local sample = {}
        for line in comment:gmatch "\n     ([^\n]+)" do
            sample[#sample + 1] = line:gsub(" %*/$", "")
        end
        local text = ('#include <stdint.h>\n#include "%s.h"\nvoid use(%s, %s)\n{\n%s\n}\n'):format(
            name,
            types,
            parameters,
            table.concat(sample, "\n")
        )
        local path = program.folder() .. "/main.c"
        assert(host.write_file(path, text))
        local words = { "gcc", "-std=c11", "-fsyntax-only", "-Wall", "-I" .. folder, path }
        check.equal(process.run(words).output, "")
    end
    for _, name in ipairs { "tiny", "tiny_skipless", "gpt_nano_sort", "sentence_encoder" } do
        local folder = program.folder()
        program.works { "emit", "gen/models/" .. name .. ".lua", "--isa", "scalar", "-o", folder }
        compiles(folder, name, "const float *x, float *y")
    end
    compiles("emitted/kws/inc", "kws", "const int16_t *x, int32_t *y")
end

function test.emission_over_an_older_bundle_removes_what_is_no_longer_emitted()
    local folder = emitted("scalar,avx2,avx512")
    assert(host.write_file(folder .. "/notes.txt", "mine\n"))
    local edited = file_of(folder, "tiny__avx2")
    edit(folder, edited, function(text) return text .. "/* edited */\n" end)
    check.equal(lookupc({ "emit", tiny_model, "-o", folder, "--isa", "scalar" }).status, 0)
    local expected = contents(emitted("scalar"))
    local left = contents(folder)
    check.equal(left["notes.txt"], "mine\n")
    check.matches(left[edited], "/%* edited %*/")
    left["notes.txt"], left[edited] = nil, nil
    check.equal(left, expected)
end

function test.emission_into_the_folder_of_another_model_is_refused()
    local folder = emitted("scalar")
    local before = contents(folder)
    local result = lookupc { "emit", root .. "/gen/models/roberta_small.lua", "-o", folder, "--isa", "scalar" }
    check.equal(result.status, 1)
    check.equal(result.output, "lookupc: " .. folder .. "/MANIFEST.json: holds model tiny: choose another folder\n")
    check.equal(contents(folder), before)
end

function test.a_renamed_bundle_reads_the_blobs_of_its_model()
    for _, name in ipairs { "tiny", "tiny_skipless", "gpt_nano_sort" } do
        local path, folder = "gen/models/" .. name .. ".lua", program.folder()
        local function digest(...)
            program.works { "emit", path, "--isa", "scalar", "-o", folder, ... }
            check.equal(program.works { "check", folder }, folder .. ": fresh\n")
            return json.decode(contents(folder)["MANIFEST.json"]).model_digest
        end
        local own = digest()
        check.equal(digest("--rename", "other"), own)
        for file, text in pairs(contents(folder)) do
            local mentioned = text:find(name, 1, true) and not text:find("renamed", 1, true)
            if mentioned or file:find(name, 1, true) then error(file .. " has the name of the model") end
        end
        check.equal(digest "--cpp", own)
    end
    program.refuses(2, '--rename: "if": must be 1 to 40 of', { "emit", tiny_model, "--rename", "if", "-o", "none" })
end

-- Who changes a model and forgets to pack reads what to do.
function test.errors_of_stale_blobs_say_what_helps()
    local text = {}
    for _, file in ipairs(emit.files(plan.build(model.load(tiny_model), isa.select "scalar"))) do
        text[file.name] = file.text
    end
    for status, why in pairs {
        SIZE = "not as many bytes as this model's blob has",
        MODEL = "a blob of another model, or of other sizes or types of this one",
    } do
        check.matches(text["tiny.h"], "\n#define TINY_ERROR_" .. status .. " %d /%* " .. why .. " %*/\n")
        local words = why .. ": run lookupc pack again"
        local source = text["tiny.c"]:gsub('return\n +"', 'return "') -- where that is too long for a line
        check.matches(source, "\n    case TINY_ERROR_" .. status .. ': return "' .. words .. '";\n')
    end
    check.matches(text["tiny.h"], "\n     static _Alignas%(TINY_ALIGN%) unsigned char scratch%[TINY_SCRATCH_BYTES%];\n")
end

-- What others have written under the names of emitted files stays: nothing at all is written.
function test.emission_over_files_of_the_user_is_refused()
    local refused = "/%s: exists and is not of a bundle: choose another folder"
    local own = { LICENSE = "mine", ["MANIFEST.json"] = '{ "name": "mine" }', ["tiny.c"] = "int x;\n", notes = "" }
    local folder = new_folder()
    assert(host.write_directory(folder, own))
    program.refuses(1, folder .. refused:format "tiny.c", { "emit", tiny_model, "--isa", "scalar", "-o", folder })
    check.equal(contents(folder), own)

    local p = plan.build(model.load(tiny_model), isa.select "scalar")
    local function strange(files, name, bytes)
        local there = new_folder()
        assert(host.write_directory(there, { [name] = bytes }))
        check.fails_with(refused:format(name), bundle.refuse_strangers, p, there, files)
    end
    local files = emit.files(p, { single_file = true, cmake = true, cpp = true })
    for _, file in ipairs(files) do
        strange(files, file.name, "mine\n")
    end
    strange(languages.files(p, "python"), "README.md", "# Mine\n")
    strange(languages.files(p, "rust"), "Cargo.toml", "[package]\n")
end

-- A bundle that is there already is no licence to replace what it does not hold.
function test.emission_beside_files_of_the_user_is_refused()
    local folder = emitted "scalar"
    local before = contents(folder)
    before["tiny.mk"] = "mine:\n"
    assert(host.write_directory(folder, before))
    local message = folder .. "/tiny.mk: exists and is not of a bundle: choose another folder"
    program.refuses(1, message, { "emit", tiny_model, "--isa", "scalar", "--make", "-o", folder })
    check.equal(contents(folder), before)
end

function test.emission_over_files_of_a_firmware_project_is_refused()
    local folder = emitted_firmware(table.unpack(generic))
    local manifest = assert(host.read(folder .. "/MANIFEST.json"))
    edit(folder, "README.md", function() return "# Mine\n" end)
    local words = { "emit", folder .. "/../small.lua", "-o", folder, "--weights", folder .. "/../weights.safetensors" }
    table.move(generic, 1, #generic, #words + 1, words)
    remove(folder .. "/MANIFEST.json")
    program.refuses(1, folder .. "/README.md: exists and is not of a bundle: choose another folder", words)
    check.equal({ host.kind(folder .. "/MANIFEST.json"), host.read(folder .. "/README.md") }, { nil, "# Mine\n" })
    assert(host.write_file(folder .. "/MANIFEST.json", manifest)) -- which lists it
    program.works(words)
    check.equal(host.read(folder .. "/README.md") ~= "# Mine\n", true)
end

-- A killed emit leaves its manifest and some of its files; the next one need not be for the same options. Where the
-- manifest has been removed, files say themselves whose they are.
function test.emission_over_what_a_killed_one_left()
    local p = plan.build(model.load(tiny_model), isa.select "scalar,avx2", nil, "i8")
    local whole, files = contents(emitted "scalar"), emit.files(p, { single_file = true, cmake = true, cpp = true })
    local manifest = whole["MANIFEST.json"]
    for name, bytes in pairs(whole) do
        local folder = new_folder()
        assert(host.write_directory(folder, { [name] = bytes, ["MANIFEST.json"] = manifest }))
        bundle.refuse_strangers(p, folder, files)
        assert(host.remove(folder .. "/MANIFEST.json"))
        bundle.refuse_strangers(p, folder, files)
    end
end

-- Whoever finds a file of an emit finds the manifest, which says whose it is.
function test.the_manifest_takes_its_place_first()
    local folder = new_folder()
    check.equal(
        program.python(
            [[
import ctypes, os, subprocess
folder = sys.argv[1]
os.mkdir(folder)
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, folder.encode(), 0x80) # IN_MOVED_TO
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
print(os.read(watch, 4096)[16:].split(b"\0")[0].decode())
]],
            folder,
            check.lookupc,
            "emit",
            tiny_model,
            "--isa",
            "scalar",
            "-o",
            folder
        ),
        "MANIFEST.json\n"
    )
end

-- Sections of one file that define a structure without a tag each are told apart by its name alone.
function test.one_file_keeps_the_keywords_of_C()
    local p = plan.build(model.load(tiny_model), isa.select "avx_vnni,avx512", nil, "i8")
    for _, file in ipairs(emit.files(p, { single_file = true })) do
        check.equal(file.text:match "%f[%w_]struct__[%w_]*", nil)
    end
end

-- One folder for x86 and AArch64: a file has kernels on its own architecture only. Bundles for x86 stop elsewhere.
function test.a_bundle_for_two_architectures_leaves_out_what_is_for_the_other()
    local function files_of(sets)
        local by_name = {}
        for _, file in ipairs(emit.files(plan.build(model.load(tiny_model), isa.select(sets)))) do
            by_name[file.name] = file.text
        end
        return by_name, json.decode(by_name["MANIFEST.json"])
    end
    local both, manifest = files_of "scalar,avx2,neon,sve"
    for name, condition in pairs {
        avx2 = "defined(__x86_64__) || defined(__i386__)",
        neon = "defined(__aarch64__)",
        sve = "defined(__aarch64__) && defined(__linux__)",
    } do
        local text = both["tiny__" .. name .. ".c"]
        check.equal(text:match '"tiny_runtime%.h"\n\n#if ([^\n]*)\n\n#if !', condition)
        check.matches(text, "\n#endif\n$")
    end
    check.equal(both["tiny__scalar.c"]:find "__aarch64__", nil)
    check.matches(
        both["tiny.c"],
        "\n#if defined%(__aarch64__%) && defined%(__linux__%)\n    case 3: tiny_ffn__sve%(.-\n#endif\n"
            .. "#if defined%(__aarch64__%)\n    case 2: tiny_ffn__neon%(.-\n#endif\n#if defined%(__x86_64__%)"
    )
    for _, file in ipairs(manifest.files) do
        local set = file.name:match "__(%w+)%.c$"
        check.equal(file.architecture, set and isa.get(set).architecture)
    end
    local x86, of_x86 = files_of "scalar,avx2"
    check.equal(x86["tiny__avx2.c"]:find "__x86_64__", nil)
    for _, file in ipairs(of_x86.files) do
        check.equal(file.architecture, nil)
    end
    local good, message = pcall(files_of, "avx2,neon")
    check.equal({ good, tostring(message) }, { false, "--isa: avx2: a bundle for x86 and AArch64 needs scalar" })
end

-- Scores with a sum and no softmax, which no row has: C without warnings, from every hash and for training.
function test.what_is_printed_of_scores_follows_from_their_factors()
    local both, one = "share = true,\n        along = true", "share = false,\n        along = true"
    local tree = program.changed_tree("gen/plan/score.lua", both, one)
    local folder = new_folder()
    for _, neighbours in ipairs { 1, 2, 3, 8 } do
        local text = "return { name = 'm', d = 8, h = 3, tau = 3, score = 'gelu', projection = { kind = 'dense' }, \z
            neighbours = " .. neighbours .. " }"
        local path, to = program.model(program.folder(), "sum", text), folder .. neighbours
        program.works { "--tree", tree, "emit", path, "--isa", "scalar", "--training", "-o", to }
        for _, file in ipairs { "m__scalar.c", "m_train__scalar.c" } do
            assert(not assert(host.read(to .. "/" .. file)):find "_exp%(", file)
            local words = { "gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-c", to .. "/" .. file }
            local result = process.run(table.move({ "-o", "/dev/null" }, 1, 2, #words + 1, words))
            check.equal({ file, result.status, result.output }, { file, 0, "" })
        end
    end
end

return test
