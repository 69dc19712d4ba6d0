-- Bundles that tests emit, look into, edit and check.
local check = require "tests.support.check"
local host = require "host"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local bundles = {}

bundles.tiny_model = program.root .. "/gen/models/tiny.lua"

function bundles.tiny_plan() return plan.build(model.load(bundles.tiny_model), isa.select(sets.bundled)) end

function bundles.lookupc(arguments, options)
    return assert(process.run({ check.lookupc, table.unpack(arguments) }, options))
end

function bundles.new_folder() return process.temporary_directory() .. "/bundle" end

-- All files of a folder: { name = bytes }.
function bundles.contents(folder)
    local files = {}
    for _, name in ipairs(assert(host.list(folder))) do
        files[name] = assert(host.read(folder .. "/" .. name))
    end
    return files
end

-- Emits tiny into a new folder and returns it.
function bundles.emitted(isas, before, options)
    local folder = bundles.new_folder()
    local words = { "emit", bundles.tiny_model, "-o", folder, "--isa", isas or sets.bundled }
    table.move(words, 1, #words, 1 + #(before or {}), words)
    table.move(before or {}, 1, #(before or {}), 1, words)
    local result = bundles.lookupc(words, options)
    if result.status ~= 0 then error(result.output, 2) end
    return folder
end

-- `lookupc check` of a folder ends so; FOLDER in the lines stands for its path.
function bundles.check_gives(folder, status, lines)
    local result = bundles.lookupc { "check", folder }
    local actual = result.output:gsub(folder:gsub("%p", "%%%0"), "FOLDER")
    if result.status ~= status or actual ~= lines then
        error(
            string.format("got status %d and\n%s, expected status %d and\n%s", result.status, actual, status, lines),
            2
        )
    end
end

-- Replaces one file of a folder by what `change` makes of its text.
function bundles.edit(folder, name, change)
    local text = assert(host.read(folder .. "/" .. name))
    local changed = change(text)
    assert(changed ~= text, name .. " was not changed")
    assert(host.write_file(folder .. "/" .. name, changed))
end

-- A bundle for a microcontroller of a small model, wrapped for build systems.
function bundles.emitted_firmware(...)
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

bundles.generic = { "--profile", "firmware", "--target", "generic", "--without-misra" }

-- The kernel file of a bundle whose name starts so.
function bundles.file_of(folder, start)
    for _, name in ipairs(assert(host.list(folder))) do
        if name:sub(1, #start) == start then return name end
    end
    error("no file " .. start)
end

return bundles
