-- A cache of packed weights, each under the digest of all that its bytes depend on, so that nothing is packed twice.
--
-- Checkpoints are too large to be read for a digest: a file is known by its place on the disk, its size and its times
-- of modification and of change, which no program can set back. One that was changed just now is not trusted: the clock
-- is too coarse to tell two changes apart.
local blob = require "gen.plan.blob"
local digest_of = require "gen.host.digest"
local evict = require "harness.base.cache_eviction"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local packing = require "gen.families.packing"
local process = require "process"

local blob_cache = {}

blob_cache.least = 4 << 20 -- bytes of a blob that is kept: smaller ones are packed in no time
local most_bytes = 8 << 30 -- of all blobs; those that were not used for longest are removed
local settled = 2 -- seconds since a file's last change

-- Appends texts of `value`, which differ for different data, to `list`. Long strings count by their digest.
local function describe(value, list)
    if type(value) == "table" then
        local keys = {}
        for key in pairs(value) do
            keys[#keys + 1] = key
        end
        local behind = getmetatable(value) and getmetatable(value).__index
        if behind then describe(behind, list) end
        table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
        list[#list + 1] = "{"
        for _, key in ipairs(keys) do
            list[#list + 1] = string.format("%q", key)
            describe(value[key], list)
        end
        list[#list + 1] = "}"
    elseif type(value) == "string" then
        list[#list + 1] = #value > 64 and host.sha256(value) or string.format("%q", value)
    else
        list[#list + 1] = type(value) == "function" and "function" or string.format("%q", value)
    end
end

-- The digest of all Lua that decides what is packed: with --tree it is not the program's own.
local function digest_of_code()
    local list = {}
    for i, name in ipairs(host.resources "gen/") do
        list[i] = name:find "%.lua$" and assert(host.resource(name)) or ""
    end
    return digest_of(list)
end

-- The files that the checkpoint `path` may consist of.
local function files_of(path)
    local folder = host.kind(path) == "directory" and path or path:find "%.json$" and (path:match "^(.*)/[^/]*$" or ".")
    if not folder then return { path } end
    local list = {}
    for _, name in ipairs(host.list(folder) or {}) do
        if name:find "%.safetensors$" or name:find "%.json$" then list[#list + 1] = folder .. "/" .. name end
    end
    return list
end

-- What stands for the files `paths`; nil if one is missing or was changed just now.
local function identity_of(paths)
    local list = {}
    for i, path in ipairs(paths) do
        local facts = process.file_facts(path)
        if not facts or facts.age < settled then return nil end
        list[2 * i - 1], list[2 * i] = path, facts.identity
    end
    return digest_of(list)
end

-- The digest of all that the blob of plan `p` depends on; nil: it cannot be known.
local function digest(p, files)
    local weights = identity_of(files_of(files.weights))
    local own = process.executable()
    local program = own and process.file_facts(own)
    if not weights or not program then return nil end
    local list = { program.identity, digest_of_code(), weights, files.ignore or "" }
    describe(blob.packing(p, { prefix = files.prefix, blocks_in_out = files.blocks_in_out }), list)
    return digest_of(list)
end

-- Packs into `path`.
local function pack(p, files, path)
    packing.pack(p, setmetatable({ output = path }, { __index = files }))
    return path
end

-- The path of the blob of plan `p` for files { weights, prefix, blocks_in_out, ignore }, packed into `directory` or
-- kept from an earlier time, and whether it is one that is kept. Raises one line.
function blob_cache.packed(p, directory, files)
    local temporary, base = directory .. "/weights.bin", library_cache.folder()
    local key = base and p.packed_bytes >= blob_cache.least and p.packed_bytes <= most_bytes and digest(p, files)
    if not key then return pack(p, files, temporary) end
    local folder = base .. "/blobs"
    local path = folder .. "/" .. key .. ".bin"
    local facts = process.file_facts(path)
    if facts and facts.bytes == p.packed_bytes then
        process.touch(path)
        return path, true
    end
    evict(folder, ".bin", p.packed_bytes, most_bytes)
    local kept = host.write_directory(folder, {}) and host.check_output(path) and pcall(pack, p, files, path)
    if not kept then return pack(p, files, temporary) end -- the folder is full, or this says what is wrong
    if digest(p, files) == key then return path, true end
    host.remove(path) -- the checkpoint was changed meanwhile
    return pack(p, files, temporary)
end

return blob_cache
