-- A bundle in a folder: what an older one leaves behind, and whether its files are still what lookupc emits.
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local firmware = require "gen.emit.firmware"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local model_file = require "gen.families.model_file"
local target = require "gen.plan.target"

local bundle = {}

-- Whether `name` is a file in a bundle's folder or in one of its folders.
local function stays_inside(name)
    return name:find("^[%w_./]+$") and not name:find("^/") and not name:find("..", 1, true)
end

-- The files of an earlier bundle of plan `p`'s model in `directory` that are none of `files` any more: recorded in its
-- manifest and not edited since. Raises one line if the folder holds another model.
function bundle.leftovers(p, directory, files)
    local path = directory .. "/" .. p.names.manifest
    local manifest = json.decode(host.read(path, 1 << 24) or "")
    if type(manifest) ~= "table" or manifest.generator ~= "lookupc" or type(manifest.files) ~= "table" then
        return {}
    end
    local held = type(manifest.model) == "table" and tostring(manifest.model.name)
    if held ~= p.model.name then error(path .. ": holds model " .. tostring(held) .. ": choose another folder", 0) end
    local emitted, list = {}, {}
    for _, file in ipairs(files) do
        emitted[file.name] = true
    end
    for _, entry in ipairs(manifest.files) do
        local name = type(entry) == "table" and entry.name
        if type(name) == "string" and stays_inside(name) and not emitted[name] then
            local bytes = host.read(directory .. "/" .. name, 1 << 28)
            if bytes and host.sha256(bytes) == entry.sha256 then list[#list + 1] = name end
        end
    end
    return list
end

-- The choices of a manifest in `space`, by instruction set; raises one line for what is none.
local function wanted_of(recorded, space)
    local wanted, sets = {}, {}
    for name in pairs(type(recorded) == "table" and recorded or {}) do
        sets[#sets + 1] = tostring(name)
    end
    table.sort(sets)
    for _, name in ipairs(sets) do
        isa.check(name)
        if type(recorded[name]) ~= "table" then error("schedule." .. name .. ": must be a table of choices", 0) end
        local choices = {}
        for key, value in pairs(recorded[name]) do
            choices[#choices + 1] = tostring(key) .. "=" .. tostring(value)
        end
        table.sort(choices)
        wanted[name] = #choices > 0 and space.parse(table.concat(choices, ",")) or {}
    end
    return wanted
end

-- The plan a manifest was made from; raises one line that starts with `path`.
local function plan_of_manifest(manifest, path)
    local names_of_isas = {}
    for i, name in ipairs(manifest.options.isa) do
        names_of_isas[i] = tostring(name)
    end
    local m = model_file.validate(manifest.model, "", path)
    local good, p = pcall(function()
        local row = manifest.profile == "firmware" and target.get(manifest.target) or nil
        local family, options = families.of(m, manifest.options), { firmware = row }
        local isas = row and { isa.get(row.isa) }
            or family.without_weights and {}
            or isa.select(table.concat(names_of_isas, ","))
        for _, name in ipairs(family.options) do
            options[name] = manifest.options[name]
        end
        return family.build(m, isas, options, family.space and wanted_of(manifest.options.schedule, family.space))
    end)
    if not good then error(path .. ": " .. p, 0) end
    return p
end

-- The files that the bundle in `directory` should have. Of firmware, what only a compiler or the reference knows is
-- taken from the manifest, and files that hold only that have no text: they are as recorded or edited.
local function expected_files(p, manifest, directory, path)
    if not p.target then return emit.files(p) end
    local weights, message = firmware.weights_of(p, directory)
    if not weights then error(message, 0) end
    local good, files = pcall(
        firmware.files,
        p,
        weights,
        manifest.measured,
        {},
        { c_array = manifest.c_array, wrap = manifest.wrap }
    )
    if not good then error(path .. ": measured: is not what lookupc records", 0) end
    local list, known = {}, {}
    for _, file in ipairs(files) do
        known[file.name] = true
        list[#list + 1] = { name = file.name, text = not firmware.as_recorded(p, file.name) and file.text or nil }
    end
    for _, entry in ipairs(manifest.files) do
        if not known[entry.name] and firmware.as_recorded(p, entry.name) then
            list[#list + 1] = { name = entry.name }
        end
    end
    return list
end

-- Compares the bundle in `directory` with what this lookupc emits for the manifest's model and options.
-- Returns a list of { name, state = "stale" | "edited" | "missing" | "unknown" }, empty when all is fresh; raises one
-- line for a folder that is no bundle.
function bundle.check(directory)
    local path = directory .. "/MANIFEST.json"
    local text, message = host.read(path, 1 << 24)
    if not text then error(message, 0) end
    local manifest, why = json.decode(text)
    if not manifest then error(path .. ": " .. why, 0) end
    if
        type(manifest) ~= "table"
        or manifest.generator ~= "lookupc"
        or type(manifest.files) ~= "table"
        or type(manifest.model) ~= "table"
        or type(manifest.options) ~= "table"
        or type(manifest.options.isa) ~= "table"
    then
        error(path .. ": not a manifest of lookupc", 0)
    end
    local p = plan_of_manifest(manifest, path)
    local recorded = {}
    for _, entry in ipairs(manifest.files) do
        if type(entry) == "table" and type(entry.name) == "string" then recorded[entry.name] = entry.sha256 end
    end
    local wrong, expected = {}, {}
    for _, file in ipairs(expected_files(p, manifest, directory, path)) do
        expected[file.name] = true
        local found = host.read(directory .. "/" .. file.name, 1 << 28)
        if found and not file.text then
            if recorded[file.name] and recorded[file.name] ~= host.sha256(found) then
                wrong[#wrong + 1] = { name = file.name, state = "edited" }
            end
        elseif not found then
            wrong[#wrong + 1] = { name = file.name, state = "missing" }
        elseif found ~= file.text then
            local as_recorded = recorded[file.name] == host.sha256(found) or file.name == p.names.manifest
            wrong[#wrong + 1] = { name = file.name, state = as_recorded and "stale" or "edited" }
        end
    end
    for _, name in ipairs(assert(host.list(directory))) do
        if not expected[name] and recorded[name] then wrong[#wrong + 1] = { name = name, state = "stale" } end
        if not expected[name] and not recorded[name] and name:find("%.[ch]$") then
            wrong[#wrong + 1] = { name = name, state = "unknown" }
        end
    end
    return wrong
end

return bundle
