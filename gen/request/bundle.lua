-- A bundle in a folder: what an older one leaves behind, which files are not lookupc's, and whether its files are still
-- what lookupc emits.
local emit = require "gen.emit.emit"
local extras = require "gen.emit.extras"
local families = require "gen.families.list"
local firmware = require "gen.emit.firmware"
local host = require "host"
local ignored = require "gen.schema.ignored"
local isa = require "gen.isa.list"
local json = require "json"
local languages = require "gen.emit.languages"
local model_file = require "gen.families.model_file"
local naming = require "gen.schema.names"
local renamed = require "gen.request.renamed"
local schema = require "gen.schema.schema"
local target = require "gen.plan.target"
local web = require "gen.emit.web"

local bundle = {}

-- Bytes of the files of a bundle that are read: of its manifest, of those that an emit replaces or removes, and of
-- those that are compared.
local largest_manifest = 1 << 24
local largest_old = 1 << 28
local largest_file = 1 << 31

-- Whether `name` is a file in a bundle's folder or in one of its folders, in the one way that such a file is written.
local function stays_inside(name)
    return name:find("^[%w_./]+$") and not name:find("..", 1, true) and not ("/" .. name .. "/"):find("/%.?/")
end

-- The manifest at `path`, or nil if there is none of lookupc.
local function manifest_at(path)
    local manifest = json.decode(host.read_regular(path, largest_manifest) or "")
    local good = type(manifest) == "table" and manifest.generator == "lookupc" and type(manifest.files) == "table"
    return good and manifest or nil
end

-- The files of an earlier bundle of plan `p`'s model in `directory` that are none of `files` any more: recorded in its
-- manifest and not edited since. Raises one line if the folder holds another model.
function bundle.stale(p, directory, files)
    local path = directory .. "/" .. p.names.manifest
    local manifest = manifest_at(path)
    if not manifest then return {} end
    local held = manifest.renamed or type(manifest.model) == "table" and tostring(manifest.model.name)
    if held ~= (p.renamed or p.model.name) then
        error(path .. ": holds model " .. tostring(held) .. ": choose another folder", 0)
    end
    local emitted, list = {}, {}
    for _, file in ipairs(files) do
        emitted[file.name] = true
    end
    for _, entry in ipairs(manifest.files) do
        local name = type(entry) == "table" and entry.name
        if type(name) == "string" and stays_inside(name) and not emitted[name] then
            local bytes = host.read_regular(directory .. "/" .. name, largest_old)
            if bytes and host.sha256(bytes) == entry.sha256 then list[#list + 1] = name end
        end
    end
    return list
end

-- Raises one line if one of `files` would replace a file in `directory` that lookupc has not written: one of other
-- bytes that neither the folder's manifest lists nor its own first lines call generated. An emit puts its manifest in
-- place first, and the manifest is read last here: so a killed emit, or another one at the same time, is no stranger.
function bundle.refuse_strangers(p, directory, files)
    local strange = {}
    for _, file in ipairs(files) do
        local path = directory .. "/" .. file.name
        local differs = host.kind(path) == "file" and host.read_regular(path, #file.text) ~= file.text
        -- The one who writes refuses what cannot be replaced. Only files that differ are tried: to try changes the time
        -- of the folder, for which Cargo compiles again.
        if differs and host.check_output(path) then
            local start = (host.read_regular(path, largest_old) or ""):sub(1, 1000)
            if not start:find("enerated by lookupc", 1, true) then strange[#strange + 1] = file.name end
        end
    end
    if not strange[1] then return end
    local manifest, known = manifest_at(directory .. "/" .. p.names.manifest), {}
    if manifest then known[p.names.manifest] = true end
    for _, entry in ipairs(manifest and manifest.files or {}) do
        local name = type(entry) == "table" and entry.name
        if type(name) == "string" then known[name] = true end
    end
    for _, name in ipairs(strange) do
        if not known[name] then
            error(directory .. "/" .. name .. ": exists and is not of a bundle: choose another folder", 0)
        end
    end
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

-- The flags of a manifest's list as an option has them.
local function words_of(list)
    local words = {}
    for i, word in ipairs(type(list) == "table" and list or {}) do
        words[i] = tostring(word)
    end
    return table.concat(words, " ")
end

local function is_of(kind, words)
    return { words = words, holds = function(value) return type(value) == kind end }
end

-- What options of a manifest must be; those of families that are not listed here are strings.
local option_rules = {
    isa = is_of("table", "must be a list of instruction sets"),
    facts = is_of("table", "must be an object"),
    schedule = is_of("table", "must be an object"),
    ["multiply-out"] = is_of("boolean", "must be true or false"),
}
for _, family in ipairs(families.rows) do
    for _, name in ipairs(family.options) do
        option_rules[name] = option_rules[name] or is_of("string", "must be a string")
    end
end

-- Raises one line for an option of the manifest at `path` that has a wrong type; what its values may be, families know.
local function check_types(options, path)
    local names = {}
    for name in pairs(options) do
        names[#names + 1] = tostring(name)
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local rule = option_rules[name]
        if rule and not rule.holds(options[name]) then
            schema.refuse({ path = path, source = "" }, { "options", name }, options[name], rule.words)
        end
    end
end

-- The plan a manifest was made from; raises one line that starts with `path`.
local function plan_of_manifest(manifest, path)
    check_types(manifest.options, path)
    if manifest.profile == "firmware" and type(manifest.target) ~= "string" then
        schema.refuse({ path = path, source = "" }, { "target" }, manifest.target, "must be a string")
    end
    local own = manifest.renamed
    if own ~= nil and not (type(own) == "string" and naming.valid(own)) then
        schema.refuse({ path = path, source = "" }, { "renamed" }, own, naming.rule)
    end
    local names_of_isas = {}
    for i, name in ipairs(manifest.options.isa) do
        names_of_isas[i] = tostring(name)
    end
    local m = model_file.validate(manifest.model, "", path)
    local good, p = pcall(function()
        local row = manifest.profile == "firmware" and target.get(manifest.target) or nil
        if row and manifest.target_flags then row = target.with_flags(row, words_of(manifest.target_flags)) end
        local family, options = families.of(m), { firmware = row, training = manifest.training }
        if row and not family.firmware then
            error("profile: firmware: is not for " .. families.with_article(family.noun), 0)
        end
        local isas = row and { isa.get(family.firmware.isa(row, manifest.options)) }
            or manifest.profile == "web" and { isa.get(web.target.isa) }
            or family.without_weights and {}
            or isa.select(table.concat(names_of_isas, ","))
        for _, name in ipairs(family.options) do
            options[name] = manifest.options[name]
        end
        local build = own and renamed(family, own, m.name) or family.build
        return build(m, isas, options, family.space and wanted_of(manifest.options.schedule, family.space))
    end)
    if not good then error(path .. ": " .. p, 0) end
    return p
end

-- The digests that a manifest records, by name.
local function digests_of(manifest)
    local digests = {}
    for _, entry in ipairs(manifest.files) do
        if type(entry) == "table" and type(entry.name) == "string" then digests[entry.name] = entry.sha256 end
    end
    return digests
end

-- The files that the firmware bundle of plan `p` should have, the manifest last; what only a compiler or the reference
-- knows is taken from the manifest. Files that hold only that, or what follows from weights that were edited, have no
-- text: they are as recorded or edited. `found(name)`: the bytes of a file in the folder, or nil.
local function expected_firmware(p, manifest, digests, found)
    local recorded, weights = {}, nil
    for _, name in ipairs(firmware.recorded_names(p)) do
        recorded[name] = digests[name]
        local bytes = not weights and name:find("_weights%.") and digests[name] and found(name)
        if bytes and host.sha256(bytes) == digests[name] then weights = firmware.weights_in(name, bytes) end
    end
    if weights then
        local options = { c_array = manifest.c_array, wrap = manifest.wrap, recorded = recorded }
        options.benchmark = manifest.benchmark
        return firmware.files(p, weights, manifest.measured, {}, options)
    end
    local list = {}
    for name in pairs(digests) do
        if name ~= p.names.manifest then list[#list + 1] = { name = name } end
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    list[#list + 1] = { name = p.names.manifest }
    return list
end

-- Likewise of the page of plan `p`.
local function expected_page(p, manifest, digests)
    local recorded = {}
    for _, name in ipairs(web.recorded_names(p)) do
        recorded[name] = { sha256 = digests[name] or "" }
    end
    return web.files(p, recorded, manifest)
end

local crlf = "CRLF line ends"

-- Whether is(text) holds: true; `crlf`: of the text with other line ends; false.
local function holds(text, is)
    if is(text) then return true end
    return text:find("\r\n", 1, true) and is((text:gsub("\r\n", "\n"))) and crlf or false
end

-- The manifest at `path`, whether it is as lookupc has written it, as `holds` says it, and its text. Raises one line
-- for what is none.
local function read_manifest(path)
    local text = assert(host.read_regular(path, largest_manifest))
    local manifest, why = json.decode(text)
    if why then error(path .. ": " .. why, 0) end
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
    local good, written = pcall(emit.manifest_text, manifest)
    return manifest, good and holds(text, function(other) return written == other end), text
end

-- Compares the bundle in `directory` with what this lookupc emits for the manifest's model and options.
-- Returns a list of { name, state }, empty when all is fresh; raises one line for a folder that is no bundle. States:
--   "stale"     as lookupc wrote it, but this lookupc writes something else, or nothing
--   "edited"    not as lookupc wrote it
--   crlf        as it should be but for its line ends, which Git may have changed
--   "missing"   not there
--   "unknown"   not of lookupc: whatever the manifest does not list, in any folder, but .git, and what the
--               option --ignore, `ignore`, does not name
function bundle.check(directory, ignore)
    local path = directory .. "/MANIFEST.json"
    local manifest, intact, text = read_manifest(path)
    local p = plan_of_manifest(manifest, path)
    local digests, there, wrong, expected = digests_of(manifest), {}, {}, {}
    local names = assert(host.files(directory))
    for _, file in ipairs(names) do
        there[file.name] = file.kind
    end
    local function found(name)
        if not there[name] then return nil end
        return there[name] ~= "other" and host.read_regular(directory .. "/" .. name, largest_file) or ""
    end
    local good, files
    if p.target then
        good, files = pcall(expected_firmware, p, manifest, digests, found)
    elseif manifest.profile == "web" then
        good, files = pcall(expected_page, p, manifest, digests)
    elseif languages.get(manifest.profile) then
        good, files = pcall(languages.files, p, manifest.profile)
    else
        good, files = pcall(emit.files, p, extras.recorded(manifest))
    end
    if not good then error(path .. ": its figures are not what lookupc records", 0) end
    local function add(name, state) wrong[#wrong + 1] = { name = name, state = state } end
    for _, file in ipairs(files) do
        local name, bytes = file.name, file.name ~= p.names.manifest and found(file.name) or text
        local recorded = holds(bytes or "", function(other) return digests[name] == host.sha256(other) end)
        local fresh = file.text and holds(bytes or "", function(other) return other == file.text end)
        expected[name] = true
        if not there[name] then
            add(name, "missing")
        elseif name == p.names.manifest then
            if not intact then
                add(name, manifest.manifest_sha256 and "edited" or "stale")
            elseif fresh == false then
                add(name, "stale")
            elseif intact == crlf then
                add(name, crlf)
            end
        elseif not file.text then
            if intact and recorded ~= true then add(name, recorded or "edited") end
        elseif fresh ~= true then
            add(name, fresh or recorded and "stale" or "edited")
        end
    end
    local unknown = {}
    for _, file in ipairs(names) do
        local name = file.name
        if not expected[name] and digests[name] then
            add(name, "stale")
        elseif not expected[name] and name ~= ".git" and not name:find("^%.git/") then
            unknown[#unknown + 1] = name
        end
    end
    for _, name in ipairs(ignored.without(unknown, ignore)) do
        add(name, "unknown")
    end
    return wrong
end

return bundle
