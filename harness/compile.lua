-- Compiles an emitted bundle to a shared library and describes its variants.
local emit = require "gen.emit"
local host = require "host"
local process = require "process"

local compile = {}

local base_flags = { "-std=c99", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror" }

local function words(text)
    local list = {}
    for word in text:gmatch("%S+") do list[#list + 1] = word end
    return list
end

local function call(arguments)
    local result = assert(process.run(arguments, { timeout = 300 }))
    if result.timed_out then error(table.concat(arguments, " ") .. ": took more than 300 seconds", 0) end
    if result.status ~= 0 then
        local first = result.output:match("[^\n]*error[^\n]*") or result.output:match("[^\n]+") or ""
        error(string.format("%s: exit status %d: %s", arguments[1], result.status, first), 0)
    end
    return result.output
end

-- All flags of what needs the flags of `unit`, such as an instruction set.
function compile.flags(unit, cflags)
    local list = {}
    for _, flags in ipairs { base_flags, unit.flags, words(cflags) } do
        for _, flag in ipairs(flags) do list[#list + 1] = flag end
    end
    return list
end

-- The compiler's own first line of --version.
function compile.version(cc) return call { cc, "--version" }:match("[^\n]+") end

-- Emits plan `p` below `directory` and compiles it with `cc` and `cflags`. Returns the path of the library.
function compile.library(p, directory, cc, cflags)
    local files, contents = emit.files(p), {}
    for _, file in ipairs(files) do contents[file.name] = file.text end
    -- An instruction set's sources in one translation unit: <immintrin.h> alone takes most of the time of a small one.
    local units, order = {}, {}
    for _, file in ipairs(files) do
        if file.name:find("%.c$") then
            local name = file.isa and file.isa.name or "api"
            if not units[name] then
                units[name] = { flags = file.isa and file.isa.flags or {}, lines = {} }
                order[#order + 1] = name
            end
            table.insert(units[name].lines, '#include "' .. file.name .. '"\n')
        end
    end
    for _, name in ipairs(order) do contents["unit_" .. name .. ".c"] = table.concat(units[name].lines) end
    assert(host.write_directory(directory, contents))

    local library = directory .. "/lib" .. p.model.name .. ".so"
    local link = { cc, "-shared", "-o", library }
    for _, flag in ipairs(words(cflags)) do link[#link + 1] = flag end
    for _, name in ipairs(order) do
        local object = directory .. "/unit_" .. name .. ".o"
        local arguments = { cc, table.unpack(compile.flags(units[name], cflags)) }
        for _, word in ipairs { "-c", directory .. "/unit_" .. name .. ".c", "-o", object } do arguments[#arguments + 1] = word end
        call(arguments)
        link[#link + 1] = object
    end
    call(link)
    return library
end

-- The flags `cflags` with those of plan `p`'s OpenMP build for up to `threads` threads, if they are more than one.
function compile.threaded(p, cflags, threads)
    return threads > 1 and string.format("%s -fopenmp -D%s=%d", cflags, p.names.macro("OPENMP"), threads) or cflags
end

-- What verify, run and the measuring process need to know of the kernels of variant `v` of plan `p`, compiled into
-- `library` for up to `threads` threads (one, if absent): those for many tokens, or those for few if `regime` is "few". `any_ffn`
-- chooses between them.
function compile.describe(p, v, library, regime, threads)
    local kernels = regime == "few" and v.few or v
    return {
        isa = v.isa.name, library = library, bind = p.names.bind, public_ffn = (threads or 1) > 1 and p.names.ffn_openmp or p.names.ffn,
        ffn = v.names.ffn, any_ffn = v.names.ffn, project = kernels.names.project, gather = kernels.names.gather,
        tile = kernels.tile, chunk = kernels.chunk, scratch_bytes = p.scratch_bytes * (threads or 1), weights_struct_bytes = p.weights_struct_bytes,
        d = p.shape.d, d_out = p.shape.d_out, h = p.shape.h, tau = p.shape.tau, neighbours = p.shape.neighbours,
    }
end

return compile
