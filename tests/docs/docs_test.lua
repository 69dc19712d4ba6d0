-- The documentation is right: blocks of commands run, links resolve, and commands, options, keys, choices and paths
-- that exist are documented under the names that they have.
--
-- Blocks of README.md, CONTRIBUTING.md and docs/ by their fence:
--   ```sh                  is run by bash -e; the blocks of a page share a scratch folder that looks like a checkout
--   ```sh no-test: reason  is not run; commands and options of lookupc in it must exist
--   ```c main.c            is written to that file of the scratch folder, whatever the language
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local test = {}

local function lines_of(command)
    local result = assert(process.run { "bash", "-c", command })
    if result.status ~= 0 then error(command .. ": " .. result.output, 0) end
    local list = {}
    for line in result.output:gmatch "[^\n]+" do
        list[#list + 1] = line
    end
    return list
end

local pages = lines_of "ls *.md docs/*.md"
local text, all = {}, ""
for _, path in ipairs(pages) do
    text[path] = assert(host.read(path))
    all = all .. text[path] .. "\n"
end

-- The fenced blocks of a page: { {info, line, body} }.
local function blocks_of(path)
    local list, open, number = {}, nil, 0
    for line in (text[path] .. "\n"):gmatch "(.-)\n" do
        number = number + 1
        local info = line:match "^```([^`]*)$"
        if open and info == "" then
            open.body, open, list[#list + 1] = table.concat(open, "\n") .. "\n", nil, open
        elseif open then
            open[#open + 1] = line
        elseif info then
            open = { info = info, line = number }
        end
    end
    if open then error(string.format("%s:%d: this block does not end", path, open.line), 0) end
    return list
end

-- The text of a page without its fenced blocks and without code in backticks.
local function prose_of(path)
    local list, inside = {}, false
    for line in (text[path] .. "\n"):gmatch "(.-)\n" do
        if line:find "^```" then
            inside = not inside
        elseif not inside then
            list[#list + 1] = line:gsub("`[^`]*`", "")
        end
    end
    return table.concat(list, "\n")
end

-- A folder in which commands of a checkout work, but what they write stays apart from it. Its compilers do not
-- optimise: compiling takes longer than what is compiled.
local function checkout()
    local folder = program.folder()
    local script = [=[
        mkdir "$1/home" "$1/build"
        for path in "$0"/*; do
            [[ $path == */build ]] || ln -s "$path" "$1/"
        done
        ln -s "$(dirname "$2")"/lookupc* "$1/build/"
        for cc in $3; do
            printf '#!/bin/bash\nexec %s "${@/#-O[1-3]/-O0}"\n' "$(command -v "$cc")" >"$1/build/$cc"
            chmod +x "$1/build/$cc"
        done
    ]=]
    local result = assert(process.run { "bash", "-ec", script, program.root, folder, check.lookupc, "gcc cc c++" })
    if result.status ~= 0 then error(result.output, 0) end
    program.cache(folder .. "/home")
    return folder
end

-- What the blocks of commands of a page print, or an error that says which block fails.
local function run_page(path)
    local folder, printed = checkout(), {}
    for _, block in ipairs(blocks_of(path)) do
        local file = block.info:match "^%a+ ([%w_.]+)$"
        if file then
            assert(host.write_file(folder .. "/" .. file, block.body))
        elseif block.info == "sh" then
            local output = process.temporary_directory() .. "/printed"
            local result = assert(process.run({ "bash", "-e", "-o", "pipefail", "-c", block.body }, {
                directory = folder,
                output = output,
                timeout = 300,
                env = {
                    PATH = folder .. "/build:" .. process.variable "PATH",
                    HOME = folder .. "/home",
                    XDG_DATA_HOME = folder .. "/home",
                    XDG_CACHE_HOME = folder .. "/home",
                    LOOKUPC_STORE = folder .. "/store.sqlite",
                },
            }))
            if result.status ~= 0 or result.timed_out then
                error(string.format("%s:%d: %s\n%s", path, block.line, block.body, assert(host.read(output))), 0)
            end
            printed[#printed + 1] = assert(host.read(output))
        end
    end
    return printed
end

-- Pages with commands; that of JSON has a test of its own.
local run_pages = {}
for _, path in ipairs(pages) do
    local commands = false
    for _, block in ipairs(blocks_of(path)) do
        commands = commands or block.info == "sh"
    end
    if commands and path ~= "docs/json.md" then run_pages[#run_pages + 1] = path end
end
local one = process.variable "LOOKUPC_TEST" -- it may be a page that quick leaves out
-- Much of what they do tests/firmware, tests/train and tests/model do.
local long = {}
for name in ("firmware training types whole-models"):gmatch "%S+" do
    long["docs/" .. name .. ".md"] = true
end
for _, path in ipairs(run_pages) do
    if one or effort.full "pages" or not long[path] then
        test["commands_of_" .. path:gsub("%W", "_")] = function() run_page(path) end
    end
end

-- The keys of a value that JSON holds, at any depth.
local function keys_of(value, keys)
    if type(value) ~= "table" then return end
    for key, inner in pairs(value) do
        -- a file of the user's, and the choices of a schedule
        if type(key) == "string" and key ~= "model" then keys_of(inner, keys) end
        if type(key) == "number" then keys_of(inner, keys) end
        if type(key) == "string" then keys[key] = true end
    end
end

function test.json_page_has_every_key_that_is_printed()
    local printed, keys = table.concat(run_page "docs/json.md", "\n"), {}
    for object in ("\n" .. printed):gmatch "%b{}" do
        keys_of(assert(json.decode(object)), keys)
    end
    local missing = {}
    for key in pairs(keys) do
        if not text["docs/json.md"]:find("`" .. key .. "`", 1, true) then missing[#missing + 1] = key end
    end
    table.sort(missing)
    check.equal(table.concat(missing, " "), "")
end

function test.blocks_are_run_or_say_why_not()
    local languages = { [""] = true }
    for language in ("c cpp lua make cmake json js python rust"):gmatch "%S+" do
        languages[language] = true
    end
    for _, path in ipairs(pages) do
        for _, block in ipairs(blocks_of(path)) do
            local language = block.info:match "^%S*"
            local known = block.info == "sh" or block.info:find "^sh no%-test: %w" or languages[language]
            if not known then error(string.format("%s:%d: ```%s", path, block.line, block.info), 0) end
        end
    end
end

-- Names of all commands, and by each of them its options.
local commands, options = {}, {}
for name in program.works({ "help" }):gmatch "\n  (%l[%l ]-)  +[^\n]*" do
    if name ~= "help" then
        local words = { "help" }
        for word in name:gmatch "%l+" do
            words[#words + 1] = word
        end
        commands[#commands + 1], options[name] = name, { ["--help"] = true }
        for option in program.works(words):gmatch "\n  (%-%-?[%w-]+)" do
            options[name][option] = true
        end
    end
end

-- The program of README.md says whether its blob is missing or too short.
function test.the_program_of_the_readme_tells_a_missing_blob_from_a_short_one()
    local folder = program.folder()
    for _, block in ipairs(blocks_of "README.md") do
        if block.info == "c main.c" then assert(host.write_file(folder .. "/main.c", block.body)) end
    end
    program.works { "emit", "gen/models/tiny.lua", "--isa", "scalar", "-o", folder .. "/tiny" }
    local function run(line)
        local words = { "bash", "-c", "cd " .. folder .. "; " .. line .. " 2>&1" }
        return assert(process.run(words)).output
    end
    check.equal(run "gcc -std=c11 -O0 -Itiny main.c tiny/*.c -o main", "")
    check.equal(run "./main", "tiny.bin: No such file or directory\n")
    check.matches(run "echo few >tiny.bin; ./main", "^tiny.bin: not as many bytes as this model's blob has: run ")
end

function test.commands_that_are_not_run_exist()
    check.equal(#commands > 10, true)
    for _, path in ipairs(pages) do
        for _, block in ipairs(blocks_of(path)) do
            for line in (block.info:find "^sh no%-test" and block.body or ""):gmatch "[^\n]+" do
                local where = string.format("%s:%d: %s: ", path, block.line, line)
                local first, second = line:match "^lookupc (%l+) ?(%l*)"
                local of = first and (options[first .. " " .. second] or options[first])
                if first and not of then error(where .. "no such command", 0) end
                for option in (of and line:gsub("#.*", "") or ""):gmatch " (%-%-?%l[%w-]*)" do
                    if not of[option] then error(where .. option .. ": no such option", 0) end
                end
            end
        end
    end
end

-- Raises an error with the words of `list` that page `path` (all of them, if nil) does not hold as `shown(word)`.
local function documented(list, path, shown)
    local missing = {}
    for _, word in ipairs(list) do
        local pattern = shown(word):gsub("[%-.|]", "%%%0") .. (shown(word):find "%w$" and "%f[^%w_.-]" or "")
        if not (path and text[path] or all):find(pattern) then missing[#missing + 1] = word end
    end
    if #list == 0 then error((path or "docs") .. ": nothing to look for", 0) end
    if missing[1] then error((path or "docs") .. ": not documented: " .. table.concat(missing, " "), 0) end
end

function test.commands_and_options_are_documented()
    documented(commands, "docs/commands.md", function(name) return name end)
    local seen, list = {}, {}
    for _, of in pairs(options) do
        for option in pairs(of) do
            if not seen[option] and option ~= "--help" then list[#list + 1] = option end
            seen[option] = true
        end
    end
    table.sort(list)
    documented(list, nil, function(option) return option end)
end

function test.keys_of_model_files_are_documented()
    local list = {}
    for key in program.works({ "help", "model" }):gmatch "\n  (%l[%l_.]*) " do
        -- tables of keys are documented by their keys, those of a layer's transformer copy once
        list[#list + 1] = key:match "[%l_]+$"
    end
    documented(list, "docs/model-files.md", function(key) return key end)
end

function test.choices_are_documented()
    local list, seen = {}, {}
    for _, model in ipairs { "tiny", "tiny_skipless" } do
        local sets = json.decode(program.works { "schedules", "gen/models/" .. model .. ".lua", "--json" }).sets
        for _, choice in ipairs(sets[1].choices) do
            if not seen[choice.key] then list[#list + 1] = choice.key end
            seen[choice.key] = true
        end
    end
    documented(list, "docs/tuning.md", function(key) return "`" .. key .. "`" end)
end

function test.lists_are_documented()
    local isa, dtype, target = require "gen.isa.list", require "gen.plan.dtype", require "gen.plan.target"
    documented(isa.names, "docs/commands.md", function(name) return "`" .. name .. "`" end)
    documented(target.names, "docs/firmware.md", function(name) return "`" .. name .. "`" end)
    local types = {}
    for i, row in ipairs(dtype.list) do
        types[i] = row.name
    end
    documented(types, "docs/types.md", function(name) return "| `" .. name .. "` |" end)
end

-- The anchor that a heading has on GitHub.
local function anchor_of(heading) return (heading:lower():gsub("`", ""):gsub("[^%w _-]", ""):gsub(" ", "-")) end

function test.links_resolve()
    local anchors = {}
    for _, path in ipairs(pages) do
        anchors[path] = {}
        for heading in ("\n" .. text[path]):gmatch "\n#+ ([^\n]+)" do
            anchors[path][anchor_of(heading)] = true
        end
    end
    local broken, links = {}, 0
    for _, path in ipairs(pages) do
        for link in prose_of(path):gmatch "%]%(([^)%s]+)%)" do
            links = links + 1
            local file, anchor = link:match "^([^#]*)#?(.*)$"
            if not link:find "^https?:" then
                local from = (path:match "^(.*)/" or ".") .. "/" .. file
                local place = file == "" and path or from:gsub("^%./", ""):gsub("[^/]+/%.%./", "")
                local good = host.read(place) or assert(process.run({ "test", "-d", place })).status == 0
                if not good or anchor ~= "" and not (anchors[place] or {})[anchor] then
                    broken[#broken + 1] = path .. ": " .. link
                end
            end
        end
    end
    check.equal(links > 40, true)
    check.equal(table.concat(broken, "\n"), "")
end

-- `{a,b}` in a text as the texts that it stands for.
local function expanded(written)
    local before, list, after = written:match "^(.-){(.-)}(.*)$"
    if not before then return { written } end
    local texts = {}
    for part in (list .. ","):gmatch "(.-)," do
        texts = program.with(texts, table.unpack(expanded(before .. part .. after)))
    end
    return texts
end

local tops = {}
for _, path in ipairs(lines_of "ls -d */") do
    tops[path:sub(1, -2)] = path ~= "build/"
end

function test.paths_in_the_text_exist()
    local missing, count = {}, 0
    for _, path in ipairs(pages) do
        local names = {}
        -- what was is in the changes; NAME stands for any name
        for name in (path == "CHANGELOG.md" and "" or text[path]):gmatch "`([%l_]+/[%w_./*{},-]*)`" do
            if tops[name:match "^[^/]+"] then
                names = program.with(names, table.unpack(expanded((name:gsub("%u[%u_]+", "*")))))
            end
        end
        count = count + #names
        local script = 'for name; do compgen -G "$name" >/dev/null || echo "$0: $name"; done'
        missing[#missing + 1] = assert(process.run { "bash", "-c", script, path, table.unpack(names) }).output
    end
    check.equal(count > 50, true)
    check.equal(table.concat(missing), "")
end

-- Of "`a` and `b` in `gen/c.lua`" and "`a` (`gen/c.lua`)": a and b stand in that file.
function test.names_stand_in_the_files_that_the_text_says()
    local missing, count = {}, 0
    for _, path in ipairs(pages) do
        for line in (path == "CHANGELOG.md" and "" or text[path]):gmatch "[^\n]+" do
            for at, file in line:gmatch "()`([%l_]+/[%w_./]+%.%l+)`" do
                local before = line:sub(1, at - 1)
                local names = before:match "^(.*`) in $" or before:match "^(.*`) of $" or before:match "^(.*`) %($"
                local code = names and not file:find "%u%u" and assert(host.read(file))
                while code and names:find "`[%w_.]+`$" do
                    local name = names:match "([%w_]+)`$"
                    count = count + 1
                    if not code:find("%f[%w_]" .. name .. "%f[^%w_]") then
                        missing[#missing + 1] = path .. ": " .. name .. " in " .. file
                    end
                    names = names:gsub("`[%w_.]+`$", ""):gsub(",? and $", ""):gsub(", $", "")
                end
            end
        end
    end
    check.equal(count > 20, true)
    check.equal(table.concat(missing, "\n"), "")
end

-- Every name between backticks of the two pages that say where things stand is one of a file or stands in one.
function test.names_of_code_exist()
    local named, wanted = program.folder() .. "/names", {}
    for _, path in ipairs { "docs/where.md", "docs/adding.md" } do
        for written in text[path]:gmatch "`([^`\n]+)`" do
            for _, code in ipairs(expanded(written)) do
                for name in code:gmatch "%f[%w_]%l[%w_]*%f[^%w_*<]" do
                    wanted[name] = path
                end
            end
        end
    end
    local list = {}
    for name in pairs(wanted) do
        list[#list + 1] = name
    end
    check.equal(#list > 200, true)
    assert(host.write_file(named, table.concat(list, "\n") .. "\n"))
    local script = "find build.sh CMakeLists.txt cmake commands docs gen harness templates tests -type f -print \z
        ! -name '*.md' -exec cat {} + | grep -aowFf " .. named .. " | sort -u"
    for _, name in ipairs(lines_of(script)) do
        wanted[name] = nil
    end
    local missing = {}
    for name, path in pairs(wanted) do
        missing[#missing + 1] = path .. ": " .. name
    end
    table.sort(missing)
    check.equal(table.concat(missing, "\n"), "")
end

function test.readme_is_short()
    local _, count = text["README.md"]:gsub("\n", "")
    check.equal(count <= 120, true)
end

function test.performance_is_what_report_prints()
    local printed = program.works { "report", table.unpack(lines_of "ls docs/results/*.json") }
    check.equal(printed, text["docs/performance.md"])
end

function test.picture_is_what_its_script_draws()
    check.equal(assert(process.run { "lua5.4", "docs/dataflow.lua" }).output, assert(host.read "docs/dataflow.svg"))
end

function test.makefile_of_firmware_is_the_one_that_is_tested()
    local makefile = assert(host.read "tests/consumers/firmware.mk")
    check.equal(text["docs/firmware.md"]:find(makefile, 1, true) ~= nil, true)
end

return test
