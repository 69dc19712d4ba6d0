-- Headers of intrinsics, compiled ahead of the sources that include them: alone they take most of the time of a small
-- source. What gcc made is kept for other runs.
local compilers = require "harness.base.compilers"
local digest_of = require "gen.host.digest"
local evict = require "harness.base.cache_eviction"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local process = require "process"

local precompiled_headers = {}

local most_bytes = 1 << 30 -- of all that is kept, 24 MB each
local suffix = ".h.gch" -- which clang takes, too

-- What `flags` of a unit for `isa` say of its headers: a model's macro for threads says nothing.
local function key_of(o, flags, isa)
    local words = { o.cc, o.version, digest_of(isa.includes) }
    for _, flag in ipairs(flags) do
        if not flag:find "^%-D[%w_]+_OPENMP=%d+$" then words[#words + 1] = flag end
    end
    return digest_of(words)
end

local function text_of(isa)
    local lines = {}
    for i, header in ipairs(isa.includes) do
        lines[i] = "#include " .. header .. "\n"
    end
    return table.concat(lines)
end

-- The folder of what is kept; nil: it is not. clang refuses what it made as soon as a header of the system is a newer
-- one.
local function kept_in(o)
    local folder = not o.version:find "clang" and library_cache.folder()
    return folder and folder .. "/headers"
end

-- Keeps what is in the folder `from` under `key`. Returns its path, or nil if there is no room.
local function keep(folder, key, from)
    local bytes = assert(host.read(from .. "/" .. key .. suffix))
    evict(folder, suffix, #bytes, most_bytes)
    local files = { [key .. ".h"] = assert(host.read(from .. "/" .. key .. ".h")), [key .. suffix] = bytes }
    return host.write_directory(folder, files, true) and folder .. "/" .. key .. ".h"
end

-- For each of `units`, { flags = all that it is compiled with, isa = the instruction set that it is for or nil }, the
-- options that include its headers, precompiled; none where that cannot be.
--   o  cc, version: the first line of its --version; run(commands): what went wrong with each, or false; many: whether
--      so much is compiled that headers pay which are not kept; known: a table that this fills, for later calls
function precompiled_headers.options(units, o)
    local list, commands, made, folder, new = {}, {}, {}, kept_in(o), nil
    for i, unit in ipairs(units) do
        local key = (folder or o.many) and unit.isa and #unit.isa.includes > 0 and key_of(o, unit.flags, unit.isa)
        list[i] = key or false
        local kept = key and folder and folder .. "/" .. key
        if key and not o.known[key] then
            o.known[key] = {}
            if kept and process.file_facts(kept .. suffix) and process.file_facts(kept .. ".h") then
                process.touch(kept .. suffix)
                o.known[key] = { "-include", kept .. ".h" }
            elseif o.many or host.write_directory(folder, {}) and host.check_output(kept .. suffix) then
                new = new or process.temporary_directory()
                assert(host.write_directory(new, { [key .. ".h"] = text_of(unit.isa) }))
                local header = new .. "/" .. key .. ".h"
                local what = { "-x", "c-header", header, "-o", header .. ".gch" }
                commands[#commands + 1], made[#made + 1] = compilers.joined({ o.cc }, unit.flags, what), key
            end
        end
    end
    for i, failure in ipairs(#commands > 0 and o.run(commands) or {}) do
        local key = made[i]
        local header = not failure and (folder and keep(folder, key, new) or new .. "/" .. key .. ".h")
        o.known[key] = header and { "-include", header } or {}
    end
    for i, key in ipairs(list) do
        list[i] = key and o.known[key] or {}
    end
    return list
end

-- Runs `commands` of a compiler, each with its `options` that include headers. What fails runs once more without them:
-- if that helps, the headers are damaged, and no longer kept. Returns what `run` does: what went wrong with each.
function precompiled_headers.compiled(commands, options, run)
    local with, again, of = {}, {}, {}
    for i, command in ipairs(commands) do
        with[i] = compilers.joined(command, options[i])
    end
    local failures = run(with)
    for i, failure in ipairs(failures) do
        if failure and #options[i] > 0 then
            again[#again + 1], of[#of + 1] = commands[i], i
        end
    end
    for k, failure in ipairs(#again > 0 and run(again) or {}) do
        failures[of[k]] = failure
        if not failure then host.remove((options[of[k]][2]:gsub("%.h$", suffix))) end
    end
    return failures
end

return precompiled_headers
