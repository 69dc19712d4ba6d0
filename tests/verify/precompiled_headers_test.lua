-- Headers of intrinsics are compiled once for all sources with the same flags, and do no harm where they are damaged.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local precompiled_headers = require "harness.base.precompiled_headers"
local program = require "tests.support.program"

local test = {}

local set = { flags = {}, includes = { "<emmintrin.h>" } } -- a small one
local flags = compile.flags({ flags = set.flags }, "-O1")
local scalar = { includes = {} }

-- What `precompiled_headers.options` wants, with a cache of its own, and how often it runs a compiler.
local function with_cache(run)
    local folder, before, started = program.folder(), library_cache.folder, 0
    library_cache.folder = function() return folder end
    local function options(cc)
        return {
            cc = cc or "gcc",
            version = compilers.version(cc or "gcc"),
            known = {},
            run = function(commands)
                started = started + #commands
                return compilers.failures(commands)
            end,
        }
    end
    local done, message = pcall(run, folder .. "/headers", options, function() return started end)
    library_cache.folder = before
    if not done then error(message, 0) end
end

function test.headers_are_compiled_once_and_kept()
    with_cache(function(folder, options, started)
        local threads = compilers.joined(flags, { "-fPIC", "-DTINY_OPENMP=4" })
        local units = {
            { flags = flags },
            { flags = flags, isa = scalar },
            { flags = flags, isa = set },
            { flags = flags, isa = set },
            { flags = compilers.joined(flags, { "-fPIC" }), isa = set },
            { flags = threads, isa = set },
        }
        local list = precompiled_headers.options(units, options())
        check.equal(started(), 2)
        check.equal({ #list[1], #list[2], list[3][1] }, { 0, 0, "-include" })
        check.equal(list[3], list[4])
        check.equal(list[5], list[6])
        check.equal(list[3][2] ~= list[5][2], true)
        check.equal(list[3][2]:sub(1, #folder), folder)
        check.equal(precompiled_headers.options(units, options()), list)
        check.equal(started(), 2)
    end)
end

function test.what_is_not_kept_is_made_only_for_many()
    with_cache(function(folder, options, started)
        local o, unit = options(), { flags = flags, isa = set }
        o.version = "clang version 0"
        check.equal(precompiled_headers.options({ unit }, o), { {} })
        check.equal(started(), 0)
        o.many = true
        local list = precompiled_headers.options({ unit }, o)
        check.equal(host.kind(list[1][2] .. ".gch"), "file")
        check.equal(host.kind(folder), nil)
    end)
end

function test.damaged_headers_are_left_out_and_removed()
    with_cache(function(_, options, started)
        local unit, source = { flags = flags, isa = set }, program.folder() .. "/s.c"
        assert(host.write_file(source, "#include " .. set.includes[1] .. "\nint f(void);\nint f(void) { return 1; }\n"))
        local command = compilers.joined({ "gcc" }, flags, { "-c", source, "-o", source .. ".o" })
        local list = precompiled_headers.options({ unit }, options())
        local made = list[1][2] .. ".gch"
        check.equal(precompiled_headers.compiled({ command }, list, options().run), { false })
        check.equal(started(), 2)
        local bytes = assert(host.read(made))
        assert(host.write_file(made, bytes:sub(1, 1 << 20) .. ("?"):rep(#bytes - (1 << 20))))
        check.equal(precompiled_headers.compiled({ command }, list, options().run), { false })
        check.equal(started(), 4)
        check.equal(host.kind(made), nil)
        check.equal(#precompiled_headers.options({ unit }, options())[1], 2)
        check.equal(host.kind(made), "file")

        -- What is wrong with a source is no fault of its headers.
        assert(host.write_file(source, "int f(void) { return x; }\n"))
        check.equal(precompiled_headers.compiled({ command }, list, options().run)[1]:find "error" ~= nil, true)
        check.equal(host.kind(made), "file")
    end)
end

return test
