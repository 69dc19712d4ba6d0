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
    local result = assert(process.run(arguments, { timeout = 300, env = { LD_PRELOAD = "" } })) -- what we were started with is not for compilers
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

-- Whether a kernel of the model `name` calls no other: all functions with the model's prefix are its own.
local function is_leaf(text, name)
    local own = {}
    for symbol in text:gmatch("%f[%w_](" .. name .. "_[%w_]+)%b()\n{") do own[symbol] = true end
    for symbol in text:gmatch("%f[%w_](" .. name .. "_[%w_]+)%(") do
        if not own[symbol] then return false end
    end
    return true
end

-- Finds kernels that differ in the name of their model only. Returns a function of a plan and one of its files: for a kernel known, a list
-- of the linker's options that give the functions of the first the names of this one; else nil.
local function aliases()
    local known = {}
    return function(p, file)
        local name = p.model.name
        if not is_leaf(file.text, name) then return nil end
        local text = file.text:gsub("model " .. name .. "%.", "model $."):gsub("%f[%w_]" .. name .. "_", "$_"):gsub("%f[%w_]" .. name:upper() .. "_", "$$_")
        local functions = {}
        for symbol in file.text:gmatch("\nvoid ([%w_]+)%b()\n{") do functions[#functions + 1] = symbol end
        if not known[text] then
            known[text] = functions
            return nil
        end
        local options = {}
        for i, symbol in ipairs(functions) do options[i] = string.format("-Wl,--defsym=%s=%s", symbol, known[text][i]) end
        return options
    end
end

-- Emits `plans`, of models with different names, below `directory` and compiles them with `cc` and `cflags` into one library.
-- Returns its path.
function compile.library(plans, directory, cc, cflags)
    local files, contents, same, alias = {}, {}, {}, aliases()
    for _, p in ipairs(plans) do
        for _, file in ipairs(emit.files(p)) do
            local options = file.isa and alias(p, file)
            if options then
                table.move(options, 1, #options, #same + 1, same)
            else
                contents[file.name] = file.text
                files[#files + 1] = file
            end
        end
    end
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
    assert(host.write_directory(directory, contents, true))

    local library = directory .. "/lib" .. plans[1].model.name .. ".so"
    local link = { cc, "-shared", "-o", library, table.unpack(words(cflags)) }
    table.move(same, 1, #same, #link + 1, link)
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
