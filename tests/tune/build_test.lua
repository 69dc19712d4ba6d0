-- Candidates are compiled once, a compiler that hangs or fails rejects a candidate, and the others do not suffer.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpus = require "harness.base.cpus"
local host = require "host"
local isa = require "gen.isa.list"
local packed = require "harness.families.lookup.packed"
local objects = require "harness.tune.objects"
local model_file = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"
local tuning = require "harness.families.lookup.tuning"
local build = require "harness.tune.build"

local test = {}
local tiny = model_file.load "gen/models/tiny.lua"

local function plan_of(choices) return plan.build(tiny, isa.select "scalar", { scalar = choices or {} }) end

local files = packed.make(plan_of(), program.folder(), { seed = 1 })

-- A compiler that runs `script` first, and notes its calls in the file `calls` of its folder.
local function compiler(script)
    local folder = program.folder()
    local path = folder .. "/cc"
    assert(
        host.write_file(path, '#!/bin/bash\necho call >> "' .. folder .. '/calls"\n' .. script .. '\nexec gcc "$@"\n')
    )
    assert(process.run { "chmod", "+x", path })
    return path, folder
end

-- A build with a folder of its own for what it keeps.
local function new_builder(cc, folder, timeout)
    return build.new {
        apart = true,
        folder = folder,
        cc = cc,
        version = compilers.version(cc),
        cflags = "-O0",
        threads = 1,
        seed = 1,
        files = files,
        timeout = timeout,
    }
end

local function calls(folder)
    local _, count = assert(host.read(folder .. "/calls")):gsub("call", "")
    return count
end

function test.what_is_right_is_kept_and_not_compiled_again()
    local cc, folder = compiler ""
    local kept = program.folder()
    local plans = { plan_of(), plan_of { ["gather.unroll"] = 2 }, plan_of { ["gather.unroll"] = 4 } }
    local first = new_builder(cc, kept):make(plans, "many")
    local before = calls(folder)
    local again = new_builder(cc, kept):make(plans, "many")
    check.equal(calls(folder), before + 1) -- --version
    for i, made in ipairs(first) do
        check.equal(
            { made.failure, made.bytes > 0, again[i].library, again[i].bytes },
            { nil, true, made.library, made.bytes }
        )
    end
    check.equal(first[1].library ~= first[2].library, true)
    -- other flags are another library
    local other = new_builder(cc, kept)
    other.options.cflags = "-O1"
    check.equal(other:make({ plans[1] }, "many")[1].library ~= first[1].library, true)
end

-- Which sources of the candidate `choices` a builder compiles that has compiled the default.
local function compiled_beside_the_default(choices, apart)
    local cc, folder = compiler 'echo "$*" >> "$(dirname "$0")/arguments"'
    local builder = new_builder(cc, program.folder())
    builder.options.apart = apart
    check.equal(builder:make({ plan_of() }, "many", nil, true)[1].failure, nil)
    assert(host.write_file(folder .. "/arguments", ""))
    check.equal(builder:make({ plan_of(choices) }, "many", nil, true)[1].failure, nil)
    local names = {}
    for name in assert(host.read(folder .. "/arguments")):gmatch "-c [^ \n]*/([%w_]+)%.c" do
        names[#names + 1] = name
    end
    table.sort(names)
    return names
end

function test.only_files_that_differ_are_compiled()
    check.equal(compiled_beside_the_default({ ["gather.unroll"] = 2 }, true), { "tiny_gather_f32__scalar_t8_g4_c64" })
    -- the driver calls kernels of other names
    check.equal(
        compiled_beside_the_default({ ["gather.group"] = 2 }, true),
        { "tiny_ffn__scalar", "tiny_gather_f32__scalar_t8_g2_c64" }
    )
    -- all kernels in one file: a short run
    check.equal(compiled_beside_the_default({ ["gather.unroll"] = 2 }, false), { "tiny__scalar" })
end

function test.lines_of_headers_that_say_nothing_to_a_file_do_not_count()
    local headers = "#ifndef H\n#define H\n/* any words */\n#define SIZE 5 /* bytes */\n#define OTHER SIZE\n"
        .. "#define ALONE 7\nvoid f(const float *x,\n    float *y);\nvoid g(int);\nint h(void);\n#endif\n"
    local without = "#ifndef H\n#define H\n#define SIZE 5\n#define OTHER SIZE\n\nvoid g(int);\nint h(void);\n#endif\n"
    check.equal(objects.relevant(headers, "void k(void) { g(OTHER); }"), without)
    check.equal(
        objects.relevant(headers:gsub("ALONE 7", "ALONE 8"), "x = ALONE;") ~= objects.relevant(headers, "x = ALONE;"),
        true
    )
end

-- An object that fails rejects every candidate that needs it, and is not compiled again.
function test.an_object_that_fails_is_compiled_once()
    local cc, folder =
        compiler [[case "$*" in *_gather_f32__scalar_t8*) echo bad >> "$(dirname "$0")/bad"; exit 4 ;; esac]]
    local builder = new_builder(cc, program.folder())
    for _, choices in ipairs { {}, { ["project.tiles"] = 2 } } do
        check.matches(builder:make({ plan_of(choices) }, "many")[1].failure, "^compile: ")
    end
    check.equal(assert(host.read(folder .. "/bad")), "bad\n")
end

function test.what_passed_quickly_is_verified_thoroughly_before_it_wins()
    local kept = program.folder()
    local builder = new_builder("gcc", kept)
    local made = builder:make({ plan_of() }, "many", nil, true)[1]
    local function marks(word)
        local count = 0
        for _, name in ipairs(assert(host.list(kept))) do
            if name:find("." .. word .. "_many", 1, true) then count = count + 1 end
        end
        return count
    end
    check.equal({ made.failure, marks "passed", marks "right" }, { nil, 1, 0 })
    check.equal(builder:prove({ made }, "many", 100), { false })
    check.equal(marks "right", 1)
    check.equal(builder:prove({ made }, "few", 0), nil)
end

function test.a_compiler_that_hangs_rejects_its_candidate_only()
    local cc = compiler [[case "$*" in *_g2_*) sleep 1000 ;; esac]]
    local kept, first, last = program.folder(), plan_of(), plan_of { ["gather.group"] = 8 }
    local builder = new_builder(cc, kept)
    builder:make({ first, last }, "many", nil, true)
    for _, name in ipairs(assert(host.list(kept))) do -- all but their objects is made again
        if name:find "%.so$" then assert(host.remove(kept .. "/" .. name)) end
    end
    builder.options.timeout = 2
    local made = builder:make({ first, plan_of { ["gather.group"] = 2 }, last }, "many", nil, true)
    check.equal({ made[1].failure, made[3].failure }, {})
    check.matches(made[2].failure, "^compile: [^\n]*/cc: took more than 2 seconds$")
end

function test.a_compiler_that_fails_is_quoted()
    local cc = compiler [[case "$*" in *_gather_*) echo "x.c:1: error: no more registers"; exit 4 ;; esac]]
    check.matches(
        new_builder(cc, program.folder()):make({ plan_of() }, "many")[1].failure,
        "^compile: [^\n]*/cc: exit status 4: x%.c:1: error: no more registers$"
    )
end

function test.a_folder_that_is_full_is_halved()
    local kept = program.folder()
    assert(process.run { "bash", "-c", 'cd "$0" && touch {1..4001}', kept })
    new_builder("gcc", kept)
    check.equal(#assert(host.list(kept)), 2000)
end

function test.a_library_that_was_damaged_is_compiled_again()
    local folder, plans = program.folder(), { plan_of() }
    local first = new_builder("gcc", folder):make(plans, "many")[1]
    local whole = assert(host.read(first.library))
    for _, damaged in ipairs { whole:sub(1, -2), whole:sub(1, 5000) .. "x" .. whole:sub(5002), "", whole:sub(-64) } do
        assert(host.write_file(first.library, damaged))
        local again = new_builder("gcc", folder):make(plans, "many")[1]
        check.equal({ again.failure, again.library }, { nil, first.library })
        check.equal(#assert(host.read(first.library)), #whole)
    end
end

-- Candidates that were verified before the time was up count.
function test.only_what_was_not_verified_in_time_is_late()
    local count, clock, failures, calls, ahead = cpus.count, process.clock, tuning.failures, 0, 0
    cpus.count = function() return 2 end
    process.clock = function() return clock() + ahead end
    function tuning.failures(_, _, _, options)
        calls = calls + 1
        ahead = options.left
        return {}
    end
    local plans = { plan_of(), plan_of { ["gather.unroll"] = 2 }, plan_of { ["gather.unroll"] = 4 } }
    local builder = new_builder("gcc", program.folder())
    local good, made = pcall(builder.make, builder, plans, "many", 100, true)
    cpus.count, process.clock, tuning.failures = count, clock, failures
    if not good then error(made) end
    check.equal({ calls, made[1].late, made[2].late, made[3].late }, { 1, nil, nil, true })
    check.equal(made[2].library ~= nil and made[3].library == nil, true)
end

-- What is not done when its time is up says nothing of the candidate.
function test.what_has_no_time_is_late_and_not_rejected()
    local kept = program.folder()
    local slow = new_builder(compiler "[[ $1 != --version ]] && exec sleep 1000", kept)
    for _, left in ipairs { 0, 0.2 } do
        local made = slow:make({ plan_of(), plan_of { ["gather.unroll"] = 2 } }, "many", left)
        for i = 1, 2 do
            check.equal({ made[i].late, made[i].failure, made[i].library }, { true })
        end
    end
    local made = new_builder("gcc", kept):make({ plan_of() }, "many", 1000)[1]
    check.equal({ made.late, made.library ~= nil, made.seconds > 0 }, { nil, true, true })
end

return test
