-- The manifest of a bundle: `lookupc check` finds it fresh only if it is the one that was emitted, and `lookupc emit`
-- over it removes nothing but files of an older bundle, and says one line of strangers.
local bundle = require "gen.request.bundle"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local host = require "host"
local isa = require "gen.isa.list"
local model_file = require "gen.families.model_file"
local rules = require "tests.libfuzzer.rules"

local m = model_file.load "tests/libfuzzer/small.lua"
local plan = families.of(m).build(m, isa.select "scalar", {})
local files, contents = emit.files(plan), {}
for _, file in ipairs(files) do
    contents[file.name] = file.text
end

return function(path)
    local folder = path .. ".bundle"
    local manifest, input = folder .. "/MANIFEST.json", assert(host.read(path))
    if not host.kind(folder) then assert(host.write_directory(folder, contents)) end
    assert(host.write_file(manifest, input))
    local wrong = rules.try(folder, bundle.check, folder)
    if wrong and (#wrong == 0) ~= (input == contents["MANIFEST.json"]) then
        error(#wrong == 0 and "a changed manifest is fresh" or "an emitted bundle is not fresh", 0)
    end
    for _, name in ipairs(rules.try(folder, bundle.stale, plan, folder, files) or {}) do
        error(name .. ": is taken for a file of an older bundle", 0)
    end
    rules.try(folder, bundle.refuse_strangers, plan, folder, files)
end
