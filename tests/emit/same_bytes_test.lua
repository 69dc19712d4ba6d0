-- Emission gives the same bytes everywhere, and leaves files alone that have them.
local bundles = require "tests.support.bundles"
local check = require "tests.support.check"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"

local tiny_model, lookupc, contents = bundles.tiny_model, bundles.lookupc, bundles.contents
local emitted, edit, file_of = bundles.emitted, bundles.edit, bundles.file_of
local check_gives, new_folder, tiny_plan = bundles.check_gives, bundles.new_folder, bundles.tiny_plan

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
    check.equal(contents(emitted(nil, { "--tree", program.root })), expected)
    check.equal(contents(emitted(nil, { "--tree", "." }, { directory = program.root })), expected)

    -- Another path and place of the model file, and a relative output folder.
    local there = process.temporary_directory()
    assert(host.write_file(there .. "/other.lua", assert(host.read(tiny_model))))
    check.equal(lookupc({ "emit", "other.lua", "-o", "a/b" }, { directory = there }).status, 0)
    check.equal(contents(there .. "/a/b"), expected)
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

return test
