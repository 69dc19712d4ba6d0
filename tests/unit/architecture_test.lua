-- Arrows between folders point downwards: what a file requires or includes stands in its own folder or in one below.
-- Nobody but the families' own folders asks which family a model is of.
local check = require "tests.support.check"
local families = require "gen.families.list"
local host = require "host"
local process = require "process"

local test = {}

-- The folders, lowest first: a file may see its own folder and those before it.
local folders = {
    "gen/host",
    "gen/schema",
    "gen/machines",
    "gen/plan",
    "gen/isa",
    "gen/print",
    "gen/weights",
    "gen/tokenizer",
    "gen/families/lookup",
    "gen/families/tokenizer",
    "gen/families/model",
    "gen/families",
    "gen/emit",
    "gen/request",
    "gen/import",
    "harness/base",
    "harness/reference",
    "harness/verify",
    "harness/calls",
    "harness/baseline",
    "harness/measure",
    "harness/device",
    "harness/report",
    "harness/families/lookup",
    "harness/families/tokenizer",
    "harness/families/model",
    "harness/families",
    "harness/firmware",
    "harness/web",
    "harness/tune",
    "harness/train",
    "harness/convert",
    "commands",
}

-- What a folder may see at most, where that is less than all folders below: the reference shares no code with the
-- generator.
local only = {
    ["harness/reference"] = { "harness/reference/", "gen/host/files", "gen/host/fields", "gen/weights/safetensors" },
}

-- The C modules that the generator may see: the others know clocks, processes and CPUs.
local deterministic = { host = true, sandbox = true, json = true, weights = true, fuse = true, unicode = true }

local level = {}
for i, folder in ipairs(folders) do
    level[folder] = i
end

-- The innermost folder of the table that holds `path`.
local function folder_of(path)
    local folder = path:match "^(.*)/[^/]*$"
    while folder and not level[folder] do
        folder = folder:match "^(.*)/[^/]*$"
    end
    return folder
end

-- What the text of a file requires or includes: paths without endings, and names of C modules.
local function seen_by(path, text)
    local list = {}
    if path:find "%.lua$" then
        for _, word in ipairs { "require", "lazy" } do
            for name in text:gmatch(word .. "%s*%(?%s*[\"']([%w_.]+)[\"']") do
                list[#list + 1] = (name:gsub("%.", "/"))
            end
        end
    else
        for name in text:gmatch '#include "([^"]+)"' do
            list[#list + 1] = (name:gsub("%.%w+$", ""))
        end
    end
    return list
end

local function allowed(path, seen)
    if not seen:find("/", 1, true) then return not path:find "^gen/" or deterministic[seen] end
    local folder, other = folder_of(path), folder_of(seen)
    if not other then return false end
    for _, prefix in ipairs(only[folder] or {}) do
        if seen:sub(1, #prefix) == prefix then return true end
    end
    return not only[folder] and level[other] <= level[folder]
end

-- The arrows of `files` (text by path) that point upwards, or to what is no folder, as lines.
local function turned_arrows(files)
    local list = {}
    for path, text in pairs(files) do
        if not folder_of(path) then list[#list + 1] = path .. ": is in no folder of the table" end
        for _, seen in ipairs(folder_of(path) and seen_by(path, text) or {}) do
            if not allowed(path, seen) then list[#list + 1] = path .. " -> " .. seen end
        end
    end
    table.sort(list)
    return list
end

-- What a line may have that asks which family something is of.
local questions = { "%.family%s*[=~]=" }
for _, family in ipairs(families.rows) do
    questions[#questions + 1] = "%.name%s*[=~]=%s*[\"']" .. family.name .. "[\"']"
end
for _, key in ipairs { "attention", "arithmetic" } do
    questions[#questions + 1] = "if%s.*[%w_]%." .. key .. "%f[^%w_]%s*[%a~=]"
    questions[#questions + 1] = "[%w_]%." .. key .. " and "
end

-- Such lines, outside of the families' own folders.
local function family_questions(files)
    local list = {}
    for path, text in pairs(files) do
        for line in text:gmatch(path:find "%.lua$" and not path:find "/families/" and "[^\n]+" or "^$") do
            local asks = false
            for _, question in ipairs(questions) do
                asks = asks or line:find(question)
            end
            if asks then list[#list + 1] = path .. ": " .. line:match "^%s*(.*)" end
        end
    end
    table.sort(list)
    return list
end

-- The sources of the program by path.
local function sources()
    local found = assert(process.run { "find", "commands", "gen", "harness", "-type", "f" })
    local files = {}
    for path in found.output:gmatch "[^\n]+" do
        local source = path:find "%.lua$" or path:find "%.[ch]$" or path:find "%.cc$"
        if source and not path:find "^gen/models/" then files[path] = assert(host.read(path)) end
    end
    return files
end

-- A long line of a template hides what it decides. Those of models are still to be split.
function test.lines_of_lookup_templates_have_at_most_140_bytes()
    local found, long = assert(process.run { "find", "templates/lookup", "-type", "f" }), {}
    for path in found.output:gmatch "[^\n]+" do
        for line in assert(host.read(path)):gmatch "[^\n]+" do
            if #line > 140 then long[#long + 1] = path .. ": " .. line end
        end
    end
    check.equal(long, {})
    check.matches(found.output, "gather%.c")
end

function test.arrows_point_downwards() check.equal(turned_arrows(sources()), {}) end

-- SentencePiece and Google Benchmark have no functions for C; nothing else has to be compiled by a C++ compiler.
function test.only_two_libraries_need_cpp()
    local names = { "-name", "*.cc", "-o", "-name", "*.cpp", "-o", "-name", "*.hh", "-o", "-name", "*.hpp" }
    local found = assert(process.run { "find", "commands", "gen", "harness", table.unpack(names) })
    local list = {}
    for path in found.output:gmatch "[^\n]+" do
        list[#list + 1] = path
    end
    table.sort(list)
    check.equal(list, { "harness/measure/measure.cc", "harness/train/tokenizer.cc" })
end

function test.only_families_know_families() check.equal(family_questions(sources()), {}) end

function test.a_turned_arrow_is_found()
    check.equal(
        turned_arrows {
            ["gen/plan/cost.lua"] = 'local plan = require "gen.families.lookup.plan"',
            ["gen/isa/avx2.lua"] = 'local cpu = require "cpu"',
            ["gen/weights/fold.c"] = '#include "harness/base/clock.h"\n',
            ["harness/reference/lookup.c"] = '#include "gen/weights/fold.h"\n',
            ["harness/measure/baselines.c"] = '#include "harness/baseline/ffn.h"\n',
            ["harness/report/html.lua"] = 'local tune = require("commands.tune")',
            ["harness/report/chart.lua"] = "local run = lazy 'commands.tune'",
            ["gen/attic/old.lua"] = "",
        },
        {
            "gen/attic/old.lua: is in no folder of the table",
            "gen/isa/avx2.lua -> cpu",
            "gen/plan/cost.lua -> gen/families/lookup/plan",
            "gen/weights/fold.c -> harness/base/clock",
            "harness/reference/lookup.c -> gen/weights/fold",
            "harness/report/chart.lua -> commands/tune",
            "harness/report/html.lua -> commands/tune",
        }
    )
end

function test.a_question_for_the_family_is_found()
    check.equal(
        family_questions {
            ["gen/emit/emit.lua"] = 'if p.family == "lookup" then\nlocal row = m.attention and 1 or 2\n',
            ["gen/families/lookup/plan.lua"] = 'if p.family == "lookup" then\n',
            ["harness/convert/convert.lua"] = 'if families.of(m).name ~= "whole" then\n',
        },
        {
            'gen/emit/emit.lua: if p.family == "lookup" then',
            "gen/emit/emit.lua: local row = m.attention and 1 or 2",
            'harness/convert/convert.lua: if families.of(m).name ~= "whole" then',
        }
    )
end

return test
