-- Other programs are run with a limit and leave nothing behind.

local check = require "tests.support.check"
local cpus = require "harness.base.cpus"
local host = require "host"
local process = require "process"
local program = require "tests.support.program"

local function shell(script, options) return assert(process.run({ "sh", "-c", script }, options)) end

local test = {}

function test.output_and_status()
    check.equal(shell("echo out; echo err >&2; exit 3"), { status = 3, timed_out = false, output = "out\nerr\n" })
end

function test.arguments_are_not_a_shell_line()
    check.equal(process.run({ "printf", "%s|", "a b", "$HOME", "" }).output, "a b|$HOME||")
end

function test.program_that_is_not_there()
    check.fails_with("no-such-program: No such file or directory", process.run, { "no-such-program" })
    check.fails_with("/none: No such file or directory", process.run, { "true" }, { directory = "/none" })
    check.fails_with("/none/o: No such file or directory", process.run, { "true" }, { output = "/none/o" })
end

function test.signal()
    check.equal(shell("kill -SEGV $$"), { status = 139, signal = 11, timed_out = false, output = "" })
end

function test.ignored_signals_are_not_passed_on() check.equal(shell("kill -PIPE $$").signal, 13) end

function test.time_limit_ends_the_whole_group()
    local result = shell("sleep 60 & echo $!; sleep 60", { timeout = 0.6 })
    local other = result.output
    check.equal(result, { status = 137, signal = 9, timed_out = true, output = other })
    -- The other one ends as soon as the kernel comes to it: it is gone, or nobody has asked for its status yet.
    local ended = 'while state=$(cut -d" " -f3 /proc/$1/stat 2>/dev/null) && [ "$state" != Z ]; do sleep 0.05; done'
    check.equal(process.run({ "bash", "-c", ended, "bash", (other:gsub("\n", "")) }, { timeout = 30 }).status, 0)
end

function test.background_programs_are_not_waited_for()
    check.equal(shell("sleep 30 & echo done", { timeout = 10 }), { status = 0, timed_out = false, output = "done\n" })
end

function test.environment_directory_and_output_file()
    local folder = process.temporary_directory()
    check.equal(
        shell("echo $A-$HOME-$(pwd)", { env = { A = "1", HOME = "h" }, directory = folder }).output,
        "1-h-" .. folder .. "\n"
    )
    local result = shell("echo out; echo err >&2", { output = folder .. "/log" })
    check.equal(result.output, "")
    check.equal(host.read(folder .. "/log"), "out\nerr\n")
end

function test.long_output_keeps_its_end()
    local output = shell("head -c 1000000 /dev/zero; echo end").output
    check.equal(#output, 65536)
    check.matches(output, "end\n$")
end

function test.standard_input_is_empty() check.equal(shell("cat").output, "") end

function test.several_at_a_time_give_results_in_order()
    local list = {}
    for i = 1, 5 do
        list[i] = { "sh", "-c", "sleep 0." .. 6 - i .. "; echo " .. i .. "; exit " .. i }
    end
    for _, at_once in ipairs { 1, 2, 64 } do
        local results = assert(process.run_all(list, { at_once = at_once }))
        for i = 1, 5 do
            check.equal(results[i], { status = i, timed_out = false, output = i .. "\n" })
        end
    end
    check.equal(process.run_all {}, {})
end

function test.each_of_several_has_its_own_time_limit()
    local folder = process.temporary_directory()
    local forever = { "sh", "-c", "echo on; sleep 30" }
    local results = assert(
        process.run_all(
            { forever, { "sh", "-c", "sleep 0.4; echo good" }, forever },
            { timeout = 0.8, at_once = 2, directory = folder }
        )
    )
    check.equal({ results[1].timed_out, results[2].timed_out, results[3].timed_out }, { true, false, true })
    check.equal({ results[1].output, results[2].output, results[2].status }, { "on\n", "good\n", 0 })
end

function test.programs_at_a_time_run_beside_each_other()
    -- each waits for the other's file
    local folder = process.temporary_directory()
    local function meet(own, other)
        return { "sh", "-c", "touch " .. own .. "; until [ -e " .. other .. " ]; do sleep 0.01; done" }
    end
    local results =
        assert(process.run_all({ meet("a", "b"), meet("b", "a") }, { at_once = 2, timeout = 20, directory = folder }))
    check.equal({ results[1].status, results[2].status }, { 0, 0 })
end

function test.one_of_several_that_cannot_start_ends_the_others()
    local folder = process.temporary_directory()
    local late = { "sh", "-c", "sleep 1; touch late" }
    check.fails_with(
        "no-such-program: No such file or directory",
        process.run_all,
        { late, { "no-such-program" } },
        { at_once = 2, directory = folder }
    )
    shell("sleep 1.2")
    check.equal(host.list(folder), {})
end

-- A function in a process of its own gives its text, or is ended; what it raises is raised here.
function test.functions_are_isolated()
    local changed = 1
    local long = ("x"):rep(200000)
    check.equal(process.isolated(function()
        changed = 2
        return long
    end), long)
    check.equal(changed, 1)
    check.equal(process.isolated(function() return "" end, 5), "")
    check.fails_with("a line", process.isolated, function() error("a line", 0) end)
    check.fails_with("crashed: signal 9", process.isolated, function()
        process.run { "sh", "-c", "kill -KILL $PPID" }
        return ""
    end)
    check.fails_with("took more than 0 seconds", process.isolated, function()
        while true do
        end
    end, 0.2)
end

-- Several run at the same time; of one that crashes or hangs what it said is known, and what it was about to do.
function test.what_was_said_before_a_crash_is_known()
    local function crashing()
        process.say "two "
        process.say "words"
        process.stage "the call"
        process.run { "sh", "-c", "kill -KILL $PPID" }
    end
    local function hanging()
        for i = 1, 3 do
            process.stage("call " .. i)
        end
        while true do
        end
    end
    local function good()
        process.say "said, "
        return "returned"
    end
    local running = {}
    for i, work in ipairs { crashing, hanging, good } do
        running[i] = assert(process.begin(work, nil, 0.3))
    end
    local words = "crashed: signal 9 (Killed) in the call"
    check.equal({ running[1]:result() }, { nil, words, "two words" })
    check.equal({ running[2]:result() }, { nil, "took more than 0 seconds in call 3", "" })
    check.equal({ running[3]:result() }, { "said, returned" })
end

-- The whole program ends when its time is up, whatever it does, and leaves nothing behind; not if it is called off.
function test.a_deadline_ends_the_program()
    local folder = process.temporary_directory()
    local function ended(name)
        local words = { process.executable(), ".", check.lookupc, "tests/support/deadline.lua" }
        return assert(process.run(words, { env = { TMPDIR = folder, LOOKUPC_TEST = name }, timeout = 20 }))
    end
    local result = ended "is_ended"
    check.equal({ result.status, result.output }, { 1, "too late\n" })
    check.equal(host.list(folder), {})
    check.equal(ended("is_called_off").status, 0)
end

function test.temporary_folders_are_new_and_empty()
    local a, b = process.temporary_directory(), process.temporary_directory()
    check.equal(a ~= b, true)
    check.equal(host.list(a), {})
end

function test.a_program_that_is_held_runs_also_once_another_takes_its_place()
    local path = process.temporary_directory() .. "/program"
    local function written(source)
        local script = 'cp "$(type -P "$1")" "$0.new" && mv "$0.new" "$0"'
        check.equal(assert(process.run { "bash", "-c", script, path, source }).status, 0)
    end
    written "true"
    local held = assert(process.held(path))
    written "false"
    check.equal({ process.run({ held }).status, process.run({ path }).status }, { 0, 1 })
    check.equal({ process.held(path .. ".none") }, { nil, path .. ".none: No such file or directory" })
    check.equal(process.beside "lua_runner", process.executable())
end

-- Quotas of control groups below a root of its own: group by group, and in a container, which sees its own as the root.
function test.no_more_cpus_than_a_quota_has()
    local function quota(groups, files)
        local root = program.folder()
        assert(host.write_directory(root .. "/proc/self", { cgroup = groups }))
        for path, text in pairs(files) do
            local folder, name = path:match "^(.*)/([^/]*)$"
            assert(host.write_directory(root .. "/sys/fs/cgroup" .. folder, { [name] = text .. "\n" }))
        end
        return cpus.quota(root)
    end
    local v1 = "9:name=systemd:/\n4:memory:/a\n3:cpu,cpuacct:/a/b\n"
    for _, case in ipairs {
        { "", {}, math.huge },
        { "0::/a/b\n", { ["/a/b/cpu.max"] = "max 100000" }, math.huge },
        { "0::/a/b\n", { ["/a/b/cpu.max"] = "50000 100000" }, 0.5 },
        { "0::/a/b\n", { ["/a/b/cpu.max"] = "max 100000", ["/a/cpu.max"] = "150000 100000" }, 1.5 },
        { "0::/a/b\n", { ["/a/b/cpu.max"] = "200000 100000", ["/a/cpu.max"] = "300000 100000" }, 2.0 },
        { "0::/\n", { ["/cpu.max"] = "250000 100000" }, 2.5 },
        { v1 .. "0::/c\n", { ["/unified/c/cpu.max"] = "100000 100000" }, 1.0 },
        { v1, { ["/cpu/a/b/cpu.cfs_quota_us"] = "-1", ["/cpu/a/b/cpu.cfs_period_us"] = "100000" }, math.huge },
        { v1, { ["/cpu/a/cpu.cfs_quota_us"] = "50000", ["/cpu/a/cpu.cfs_period_us"] = "100000" }, 0.5 },
        { v1, { ["/cpu,cpuacct/cpu.cfs_quota_us"] = "30000", ["/cpu,cpuacct/cpu.cfs_period_us"] = "10000" }, 3.0 },
        { "4:memory:/a\n", { ["/memory/a/cpu.max"] = "50000 100000" }, math.huge },
        { "0::/a\n", { ["/a/cpu.max"] = "many" }, math.huge },
    } do
        check.equal(quota(case[1], case[2]), case[3])
    end
    check.equal(cpus.count() >= 1 and cpus.count() <= process.affinity(), true)
end

function test.facts()
    check.equal(process.affinity() >= 1, true)
    check.matches(process.executable(), "^/.*lua_runner$")
    check.equal(type(process.is_terminal(0)), "boolean")
    check.equal(process.time() > 1700000000, true)
    check.equal(process.variable("LOOKUPC_NEVER_SET"), nil)
    check.equal(process.variable("LOOKUPC"), check.lookupc)
end

return test
