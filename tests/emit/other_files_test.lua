-- Emission into a folder that has files: its own are replaced, those of the user stay.
local bundle = require "gen.request.bundle"
local bundles = require "tests.support.bundles"
local check = require "tests.support.check"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local languages = require "gen.emit.languages"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"

local tiny_model, lookupc, contents = bundles.tiny_model, bundles.lookupc, bundles.contents
local emitted, emitted_firmware, generic = bundles.emitted, bundles.emitted_firmware, bundles.generic
local edit, file_of, new_folder = bundles.edit, bundles.file_of, bundles.new_folder

local names = table.concat(isa.names, ", ") -- as messages list them

local test = {}

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
    local result = lookupc { "emit", program.root .. "/gen/models/roberta_small.lua", "-o", folder, "--isa", "scalar" }
    check.equal(result.status, 1)
    check.equal(result.output, "lookupc: " .. folder .. "/MANIFEST.json: holds model tiny: choose another folder\n")
    check.equal(contents(folder), before)
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
    assert(host.remove(folder .. "/MANIFEST.json"))
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

return test
