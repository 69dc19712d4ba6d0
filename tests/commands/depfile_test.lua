-- What a build is told of outputs: their names, and what they depend on.
local check = require "tests.support.check"
local host = require "host"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local with = program.with
local test = {}

local tiny = "gen/models/tiny.lua"
local odd = odd_ffn.model

-- What a build is told of a bundle: its files beforehand, and what they depend on.
function test.files_of_a_bundle_and_what_they_depend_on()
    local there = program.folder()
    assert(host.write_directory(there, { ["a b.lua"] = assert(host.read(tiny)) }))
    local words = { "emit", there .. "/a b.lua", "--isa", "scalar,avx2", "--fixed-names", "--linked" }
    local function with(...) return table.move({ ... }, 1, select("#", ...), #words + 1, { table.unpack(words) }) end
    local listed = works(with "--list")
    check.equal(host.kind(there .. "/out"), nil)
    works(with("-o", there .. "/out", "--depfile", there .. "/d", "--depfile-target", "all"))
    local names = {}
    for name in listed:gmatch "[^\n]+" do
        names[#names + 1] = name
    end
    table.sort(names)
    check.equal(host.list(there .. "/out"), names)
    check.equal(host.read(there .. "/d"), "all: \\\n  " .. there .. "/a\\ b.lua\n")
    check.equal(host.read(there .. "/out/tiny__avx2.flags"), "-mavx2 -mfma\n")
    check.equal(works { "check", there .. "/out" }, there .. "/out: fresh\n")
    assert(host.remove(there .. "/out/tiny_linked.c"))
    refuses(1, "tiny_linked.c: missing", { "check", there .. "/out" })

    -- Integer kernels are scalar: the other file is there, too.
    works(with("--arithmetic", "integer", "-o", there .. "/out"))
    check.matches(host.read(there .. "/out/tiny__avx2.c"), "No kernels for avx2")
    check.equal(works { "check", there .. "/out" }, there .. "/out: fresh\n")
    -- Meson takes a folder as a subproject if project() comes first, and by subdir() if it does not come at all.
    works(with("--meson", "-o", there .. "/out"))
    local project = "^#[^\n]*\n#[^\n]*\nproject%('tiny', 'c'%)\nsubdir%('meson'%)\n"
    check.matches(host.read(there .. "/out/meson.build"), project)
    check.equal(host.read(there .. "/out/meson/meson.build"):find("project(", 1, true), nil)
    local named = 'name = "tiny": must be "tony", as --name says (in lookupc_add_library: NAME, or else'
    refuses(1, named, with("--name", "tony", "-o", there .. "/out"))
    refuses(2, "--linked: is not for --profile firmware", with("--profile", "firmware", "-o", there .. "/out"))

    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    works { "pack", tiny, "--weights", there .. "/w.safetensors", "-o", there .. "/w.bin", "--depfile", there .. "/d" }
    check.equal(host.read(there .. "/d"), there .. "/w.bin: \\\n  " .. there .. "/w.safetensors \\\n  " .. tiny .. "\n")
end

-- No output is written before it is known that this one can be, and that it replaces no other file.
function test.dependency_files_that_cannot_be_written()
    local there = program.folder()
    local model, w = there .. "/tiny.lua", there .. "/w.safetensors"
    assert(host.write_file(model, assert(host.read(tiny))))
    works { "sample", tiny, "-o", w }
    assert(process.run { "ln", "-s", "nothing", there .. "/link" })
    for path, fragment in pairs {
        [there .. "/tiny.lua/d"] = "/tiny.lua/d: Not a directory",
        [there .. "/none/d/"] = "/none/d/: ",
        [there .. "/link"] = "/link: is a symbolic link to nothing",
        [there] = ": is not a regular file",
        [model] = "--depfile: " .. model .. ": is the input " .. model,
        [there .. "/out/tiny.c"] = "--depfile: " .. there .. "/out/tiny.c: is the output ",
        [there .. "/out/none/..//./tiny.c"] = "/tiny.c: is the output ",
    } do
        local emits = { "emit", model, "--isa", "scalar", "-o", there .. "/out", "--depfile", path }
        refuses(1, fragment, emits)
        if not path:find "tiny%.c$" then
            refuses(1, fragment, { "pack", model, "--weights", w, "-o", there .. "/blob", "--depfile", path })
        end
    end
    local packs = { "pack", model, "--weights", w, "-o", there .. "/blob", "--depfile" }
    refuses(1, "--depfile: " .. w .. ": is the input", with(packs, w))
    refuses(1, "is the output", with(packs, there .. "/blob"))
    check.equal(host.list(there), { "link", "tiny.lua", "w.safetensors" })
    check.equal(host.read(model) == host.read(tiny), true)

    works { "emit", model, "--isa", "scalar", "-o", there .. "/out", "--depfile", there .. "/out/d" }
    check.matches(host.read(there .. "/out/d"), "tiny%.lua\n$")
    works(with(packs, there .. "/d"))
    refuses(1, "is the output", with(packs, there .. "/out/../blob"))
end

-- As a build of an empty folder needs it; and nothing is printed there.
function test.the_folder_of_a_dependency_file_is_made_quietly()
    local there = program.folder()
    local emit = { "emit", tiny, "--isa", "scalar", "-o", there .. "/x/tiny", "--depfile-target", "s", "--depfile" }
    works(with(emit, there .. "/x/tiny.d"))
    check.equal(works(with(emit, there .. "/y/z//tiny.d", "--quiet")), "")
    check.equal(host.read(there .. "/x/tiny.d"), "s: \\\n  " .. tiny .. "\n")
    check.equal(host.read(there .. "/y/z/tiny.d"), host.read(there .. "/x/tiny.d"))
    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    local pack = { "pack", tiny, "--weights", there .. "/w.safetensors", "-o", there .. "/b" }
    check.equal(works(with(pack, "--depfile", there .. "/v/d", "--quiet")), "")
    check.matches(host.read(there .. "/v/d"), "^" .. there:gsub("%p", "%%%0") .. "/b: ")
end

-- Nor do a command's outputs replace each other, or what it reads.
function test.outputs_are_files_of_their_own()
    local there = program.folder()
    local tune = { "tune", tiny, "--time", "1s", "-o", there .. "/t.lua", "--html" }
    refuses(1, "--html: " .. there .. "/t.jsonl: is the output ", with(tune, there .. "/t.jsonl"))
    refuses(1, "is the output", with(tune, there .. "/../" .. there:match "[^/]*$" .. "/t.lua"))
    refuses(1, "is the input", { "bench", tiny, "--html", tiny })
    local pack = { "pack", tiny, "--weights", tiny, "-o", there .. "/blob", "--depfile" }
    refuses(1, "is the output", with(pack, there .. "/./blob"))
    check.equal(host.list(there), {})
end

function test.nothing_is_left_in_the_folder_of_temporary_files()
    local there = program.folder()
    works({ "verify", odd, "--isa", "scalar" }, { env = { TMPDIR = there } })
    check.equal(host.list(there), {})
end

return test
