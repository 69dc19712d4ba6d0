-- Compiles an emitted bundle to a shared library and describes its variants.
local compilers = require "harness.base.compilers"
local cost = require "gen.plan.cost"
local digest_of = require "gen.host.digest"
local emit = require "gen.emit.emit"
local host = require "host"
local lazy = require "gen.host.lazy"
local library_cache = require "harness.base.library_cache"
local misuse = require "gen.schema.misuse"
local precompiled_headers = require "harness.base.precompiled_headers"
local plan = lazy "gen.families.lookup.plan"

local compile = {}

-- Functions that others may replace: that is how verify sees lookup FFNs at work (harness/verify/interposed.h).
local base_flags =
    { "-std=c99", "-fPIC", "-fsemantic-interposition", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror" }

-- All flags of what needs the flags of `unit`, such as an instruction set.
function compile.flags(unit, cflags) return compilers.joined(base_flags, unit.flags, compilers.words(cflags)) end

-- Whether a kernel of the model `name` calls no other: all functions with the model's prefix are its own.
local function is_leaf(text, name)
    local own, called, at = {}, {}, 1
    while true do
        at = text:find(name .. "_", at, true)
        if not at then break end
        local symbol, bracket = text:match("^%f[%w_]([%w_]+)()%(", at)
        if symbol then (text:find("^%b()\n{", bracket) and own or called)[symbol] = true end
        at = at + #name
    end
    for symbol in pairs(called) do
        if not own[symbol] then return false end
    end
    return true
end

-- What the names of model `name` stand for in its `files`: { macros = {["ROW_PITCH"] = text}, fields = text }, fields:
-- those of its weights.
local function meanings(files, name)
    local macros, fields = {}, ""
    for _, file in ipairs(files) do
        for macro, value in file.text:gmatch("#define " .. name:upper() .. "_([%w_]+) ([^\n]*)") do
            macros[macro] = (macros[macro] or "") .. value .. "\n"
        end
        local own = file.text:match("typedef struct " .. name .. "_weights (%b{})")
        if own then fields = own:gsub("/%*.-%*/", "") end
    end
    return { macros = macros, fields = fields }
end

-- The text of a kernel of model `name` without that name, with the values of the macros that it uses: equal for two
-- kernels that do the same.
local function nameless(text, name, meaning)
    local seen, values = {}, { meaning.fields }
    local function normal(part)
        return (
            part:gsub("model " .. name .. "%.", "model $.")
                :gsub("%f[%w_]" .. name .. "_", "$_")
                :gsub("%f[%w_]" .. name:upper() .. "_([%w_]+)", function(macro)
                    if not seen[macro] and meaning.macros[macro] then
                        seen[macro] = true
                        values[#values + 1] = macro .. " " .. normal(meaning.macros[macro])
                    end
                    return "$$_" .. macro
                end)
        )
    end
    return normal(text):gsub("%s+", " ") .. table.concat(values, "\n") -- a longer name breaks other lines
end

-- Finds kernels that differ in the name of their model only. Returns a function of a plan, what its names mean and one
-- of its files: for a kernel known, a list of the linker's options that give the functions of the first the names of
-- this one; else nil.
local function aliases()
    local known = {}
    return function(p, meaning, file)
        local name = p.model.name
        if not is_leaf(file.text, name) then return nil end
        local text = nameless(file.text, name, meaning)
        local functions = {}
        for symbol in file.text:gmatch("\nvoid ([%w_]+)%b()\n{") do
            functions[#functions + 1] = symbol
        end
        if not known[text] then
            known[text] = functions
            return nil
        end
        local options = {}
        for i, symbol in ipairs(functions) do
            options[i] = string.format("-Wl,--defsym=%s=%s", symbol, known[text][i])
        end
        return options
    end
end

-- The sources of `plans`, of models with different names, by file name, the units to compile: { {name = file, flags,
-- isa = the instruction set that it is for or nil} }, and the linker's options that name kernels which are the same for
-- several plans: those are compiled once.
function compile.sources(plans)
    local contents, units, by_name, same = {}, {}, {}, {}
    local alias = #plans > 1 and aliases() -- kernels of one plan differ
    for _, p in ipairs(plans) do
        local files = emit.sources(p, emit.open, "apart")
        local meaning = alias and meanings(files, p.model.name)
        for _, file in ipairs(files) do
            local options = alias and file.isa and alias(p, meaning, file)
            contents[file.name] = file.text
            -- An instruction set's sources in one translation unit: each would read its headers again.
            if options then
                table.move(options, 1, #options, #same + 1, same)
            elseif file.name:find("%.c$") then
                local name = "unit_" .. (file.isa and file.isa.name or "api") .. ".c"
                if not by_name[name] then
                    by_name[name] = { name = name, flags = file.isa and file.isa.flags or {}, isa = file.isa }
                    units[#units + 1] = by_name[name]
                end
                contents[name] = (contents[name] or "") .. '#include "' .. file.name .. '"\n'
            end
        end
    end
    return contents, units, same
end

-- How `cc` makes `library` out of `units` in `directory`, with the options `same` of compile.sources if there are any:
-- a list of commands whose order does not matter, and the one that comes last, with the options `kind` of the linker,
-- -shared, if absent.
function compile.commands(units, directory, library, cc, cflags, same, kind)
    local commands = {}
    local link = compilers.joined({ cc }, kind or { "-shared" }, { "-o", library }, compilers.words(cflags))
    table.move(same or {}, 1, #(same or {}), #link + 1, link)
    for i, unit in ipairs(units) do
        local source = directory .. "/" .. unit.name
        local object = source:gsub("%.c$", ".o")
        commands[i] = compilers.joined({ cc }, compile.flags(unit, cflags), { "-c", source, "-o", object })
        link[#link + 1] = object
    end
    return commands, link
end

-- The digest of a library made of `units` with the sources `contents` and the options `same` of compile.sources, and
-- `kind` of compile.commands; `version` is the compiler's first line of --version.
function compile.digest(contents, units, same, cc, version, cflags, kind)
    local parts = { cc, version, cflags, digest_of(same), table.unpack(kind or {}) }
    for _, unit in ipairs(units) do
        parts[#parts + 1] = unit.name
        parts[#parts + 1] = digest_of(compile.flags(unit, ""))
    end
    return library_cache.digest(parts, contents)
end

local headers = {} -- that were compiled ahead

-- The options of each of `units` that include headers which were compiled ahead.
local function ahead(units, cc, version, cflags)
    local list = {}
    for i, unit in ipairs(units) do
        list[i] = { flags = compile.flags(unit, cflags), isa = unit.isa }
    end
    return precompiled_headers.options(list, { cc = cc, version = version, run = compilers.failures, known = headers })
end

-- Emits `plans`, of models with different names, below `directory` and compiles them with `cc` and `cflags` into one
-- library, if it was not kept; `kind`: as of compile.commands. Returns its path.
function compile.library(plans, directory, cc, cflags, kind)
    local contents, units, same = compile.sources(plans)
    local name = "lib" .. plans[1].model.name .. ".so"
    local library = directory .. "/" .. name
    local folder, version = library_cache.folder(), compilers.version(cc)
    local digest = folder and compile.digest(contents, units, same, cc, version, cflags, kind)
    local bytes = folder and library_cache.find(folder, digest)
    if bytes then
        assert(host.write_directory(directory, { [name] = bytes }, true))
        return library
    end

    assert(host.write_directory(directory, contents, true))
    local commands, link = compile.commands(units, directory, library, cc, cflags, same, kind)
    local options = ahead(units, cc, version, cflags)
    for _, failure in ipairs(precompiled_headers.compiled(commands, options, compilers.failures)) do
        if failure then error(failure, 0) end
    end
    compilers.call(link)
    -- A folder that cannot be written keeps nothing; what was compiled is as good.
    if folder and library_cache.open(folder) then library_cache.put(folder, digest, assert(host.read(library))) end
    return library
end

-- The option --threads; raises one line.
function compile.threads_of(options)
    if options.threads < 1 or options.threads > cost.max_threads then
        misuse(string.format("--threads: %d: must be an integer from 1 to %d", options.threads, cost.max_threads))
    end
    return options.threads
end

-- The flags `cflags` with those of plan `p`'s OpenMP build for up to `threads` threads, if they are more than one.
function compile.threaded(p, cflags, threads)
    return threads > 1 and string.format("%s -fopenmp -D%s=%d", cflags, p.names.macro("OPENMP"), threads) or cflags
end

-- What verify, run and the measuring process need to know of the kernels of variant `v` of plan `p`, compiled into
-- `library` for up to `threads` threads (one, if absent): those of the stage with a gather of the name `regime`, the
-- first one if there is none. `any_ffn` chooses between them.
function compile.describe(p, v, library, regime, threads)
    local stage, gather = plan.named(v, regime)
    stage, gather = stage or v.stages[1], gather or v.stages[1].gathers[1]
    return {
        isa = v.isa.name,
        library = library,
        bind = p.names.bind,
        public_ffn = (threads or 1) > 1 and p.names.openmp(p.names.ffn) or p.names.ffn,
        ffn = v.names.ffn,
        any_ffn = v.names.ffn,
        project = stage.names.project,
        gather = gather.names.gather,
        tile = stage.tile,
        chunk = stage.chunk,
        whole = stage.gathers[2] and stage.gathers[2].up_to or 0,
        scratch_bytes = p.scratch_bytes * (threads or 1),
        scratch_bytes_one = p.scratch_bytes_one,
        weights_struct_bytes = p.weights_struct_bytes,
        d = p.shape.d,
        d_out = p.shape.d_out,
        h = p.shape.h,
        tau = p.shape.tau,
        neighbours = p.shape.neighbours,
    }
end

return compile
