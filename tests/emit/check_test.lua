-- `check` sees every way in which a bundle can be wrong.
local bundle = require "gen.request.bundle"
local bundles = require "tests.support.bundles"
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local tiny_model, lookupc, contents = bundles.tiny_model, bundles.lookupc, bundles.contents
local emitted, emitted_firmware, generic = bundles.emitted, bundles.emitted_firmware, bundles.generic
local edit, file_of, check_gives = bundles.edit, bundles.file_of, bundles.check_gives
local tiny_plan = bundles.tiny_plan

local names = table.concat(isa.names, ", ") -- as messages list them

-- Writes the manifest of a folder as another lookupc would have written it: as `change` makes it, with its own digest.
local function rewrite_manifest(folder, change)
    edit(folder, "MANIFEST.json", function(text)
        local manifest = json.decode(text)
        change(manifest)
        return emit.manifest_text(manifest)
    end)
end

local wrapped = { "--wrap", "zephyr,esp-idf,platformio,arduino,cmsis-pack", table.unpack(generic) }

local test = {}

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
    assert(host.remove(folder .. "/tiny.c"))
    check_gives(folder, 1, "lookupc check: FOLDER/tiny.c: missing\n")
    assert(host.remove(folder .. "/LICENSE"))
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
        assert(host.remove(folder .. "/" .. name))
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
        for at = i, #text, effort.full "damage" and 7 or 193 do
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
        assert(host.remove(folder .. "/" .. name))
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

return test
