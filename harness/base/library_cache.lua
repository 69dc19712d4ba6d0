-- A cache of compiled libraries, each under the digest of everything they depend on, so that nothing is compiled twice.
--
-- Behind the library's own bytes its file has their SHA-256: what was damaged there is compiled again.
local digest_of = require "gen.host.digest"
local host = require "host"
local process = require "process"

local library_cache = {}

local max_files = 4000 -- of the folder: with more, half of them are removed
local digest_length = 64

-- The folder of compiled libraries; nil: nothing says where, and nothing is kept.
function library_cache.folder() return process.kept_folder() end

-- The digest of all that a library depends on: `parts`, a list of strings, and the sources `contents` by file name.
function library_cache.digest(parts, contents)
    local list, names = table.move(parts, 1, #parts, 1, {}), {}
    for name in pairs(contents) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        list[#list + 1] = name
        list[#list + 1] = contents[name]
    end
    return digest_of(list)
end

local function path_of(folder, digest) return folder .. "/" .. digest .. ".so" end

-- The bytes of the library `digest` in `folder`, and its path; nil: it is not there, or damaged.
function library_cache.find(folder, digest)
    local path = path_of(folder, digest)
    local file = host.kind(path) == "file" and host.read(path)
    if not file or #file <= digest_length then return nil end
    local bytes = file:sub(1, -digest_length - 1)
    if host.sha256(bytes) ~= file:sub(-digest_length) then return nil end
    return bytes, path
end

-- Makes room in `folder`, which is made if it is not there. Returns nil and a message if that cannot be done.
function library_cache.open(folder)
    local made, message = host.write_directory(folder, {})
    if not made then return nil, message end
    local names = host.list(folder) or {}
    if #names > max_files then
        for i = 1, #names, 2 do -- as good as at random: names are digests
            host.remove(folder .. "/" .. names[i])
        end
    end
    return true
end

-- Puts the library `bytes` into `folder`. Returns its path, or nil and a message.
function library_cache.put(folder, digest, bytes)
    local written, message = host.write_directory(folder, { [digest .. ".so"] = bytes .. host.sha256(bytes) }, true)
    if not written then return nil, message end
    return path_of(folder, digest)
end

return library_cache
