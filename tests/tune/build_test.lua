-- Candidates are compiled once, a compiler that hangs or fails rejects a candidate, and the others do not suffer.
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local host = require "host"
local isa = require "gen.isa.list"
local packed = require "harness.families.lookup.packed"
local model_file = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local process = require "process"
local program = require "tests.support.program"
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
        folder = folder,
        cc = cc,
        version = compile.version(cc),
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

function test.a_compiler_that_hangs_rejects_its_candidate_only()
    local cc = compiler [[case "$*" in *unit_scalar*)
            if grep -q _g2_ "$(dirname "${@: -1}")/unit_scalar.c"; then sleep 100; fi ;;
        esac]]
    local start = process.clock()
    local made = new_builder(cc, program.folder(), 15):make(
        { plan_of(), plan_of { ["gather.group"] = 2 }, plan_of { ["gather.group"] = 8 } },
        "many"
    )
    check.equal({ made[1].failure, made[3].failure }, {})
    check.matches(made[2].failure, "^compile: [^\n]*/cc: took more than 15 seconds$")
    if process.clock() - start > 80 then error "waited for the compiler" end
end

function test.a_compiler_that_fails_is_quoted()
    local cc = compiler [[case "$*" in *unit_scalar*) echo "x.c:1: error: no more registers"; exit 4 ;; esac]]
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
