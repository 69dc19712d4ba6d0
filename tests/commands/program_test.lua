-- lookupc as a program: every end of it is one line and an exit status, and leaves nothing behind.

local check = require "tests.support.check"
local host = require "host"
local process = require "process"

-- A folder for --tree whose command line is this Lua text.
local function tree(cli)
    local folder = process.temporary_directory()
    assert(host.write_directory(folder .. "/commands", { ["cli.lua"] = cli }))
    return folder
end

-- Runs a shell script in which $L is lookupc with that command line.
local function run(cli, script, options)
    local folder = tree(cli)
    options = options or {}
    options.env = options.env or {}
    options.env.L = check.lookupc .. " --tree " .. folder
    local result = assert(process.run({ "bash", "-c", script }, options))
    return result.status, result.output, folder
end

local function gives(cli, script, status, output)
    local got_status, got_output = run(cli, script)
    check.equal({ got_status, got_output }, { status, output })
end

local prints = 'require("host").print("text") '
local test = {}

function test.status_and_message()
    gives("return function() return 0 end", "$L", 0, "")
    gives("return function() return 2 end", "$L", 2, "")
    gives("return function(a) return nil, #a .. a[1] .. a[2] end", "$L x y", 1, "lookupc: 2xy\n")
    gives("return function() error('broken', 0) end", "$L", 1, "lookupc: broken\n")
    gives("return function() error('a\\nb', 0) end", "$L", 1, "lookupc: a b\n")
    gives("return function() error({}) end", "$L 2>&1 | sed s/0x.*/0x/", 0, "lookupc: table: 0x\n")
    gives("local", "$L", 1, "lookupc: commands/cli.lua:1: <name> expected near <eof>\n")
    gives(
        "return function() end",
        "$L",
        1,
        "lookupc: commands.cli: returned neither an exit status nor nil and a \z
        message\n"
    )
end

function test.traceback_only_when_asked_for()
    local cli = "local function f() local x = nil + 1 end return function() f() return 0 end"
    local _, plain = run(cli, "$L")
    check.equal(select(2, plain:gsub("\n", "")), 1)
    local status, long = run(cli, "LOOKUPC_TRACEBACK=1 $L")
    check.equal(status, 1)
    check.matches(long, "stack traceback:\n.*commands/cli.lua:1: in ")
end

function test.wrong_tree()
    gives(
        "",
        check.lookupc .. " --tree /none x",
        2,
        "lookupc: --tree: /none: must be the folder that holds gen/ and templates/\n"
    )
    gives("", check.lookupc .. " --tree", 2, "lookupc: --tree: : must be the folder that holds gen/ and templates/\n")
end

function test.full_disk_under_standard_output()
    gives(
        "return function() " .. prints .. "return 0 end",
        "$L > /dev/full",
        1,
        "lookupc: standard output: No space left on device\n"
    )
end

-- Texts around the size of a buffer, with and without a newline at their end, of each function that prints.
function test.lost_text_is_an_error_whatever_its_length()
    for _, length in ipairs { 0, 4095, 4096, 4097, 8192, 100000 } do
        for _, last in ipairs { "", "\\n" } do
            for _, name in ipairs { "print", "write" } do
                local form = 'return function() require("host").%s(("x"):rep(%d) .. "%s") return 0 end'
                local cli = form:format(name, length, last)
                if name == "print" or length > 0 then
                    gives(cli, "$L > /dev/full", 1, "lookupc: standard output: No space left on device\n")
                    gives(cli, "$L >&-", 1, "lookupc: standard output: Bad file descriptor\n")
                    gives(cli, "$L | true", 0, "")
                end
            end
        end
    end
end

function test.closed_standard_output()
    gives(
        "return function() " .. prints .. "return 0 end",
        "$L >&-",
        1,
        "lookupc: standard output: Bad file descriptor\n"
    )
end

function test.reader_that_has_gone_changes_nothing()
    gives(
        "return function() for i = 1, 99999 do " .. prints .. "end return 3 end",
        "$L | true; echo ${PIPESTATUS[0]}",
        0,
        "3\n"
    )
end

local writes = [[
local host = require "host"
return function(arguments)
    local done, message = host.write_directory(arguments[1], { a = "small", b = ("x"):rep(100000), c = "small" })
    if not done then return nil, message end
    return 0
end]]

function test.full_disk_leaves_nothing()
    local folder = process.temporary_directory()
    local status, output = run(writes, "ulimit -f 8; $L new/sub", { directory = folder })
    check.equal({ status, output }, { 1, "lookupc: new/sub/b: File too large\n" })
    check.equal(host.list(folder), {})

    host.write_directory(folder .. "/old", { a = "before" })
    run(writes, "ulimit -f 8; $L old", { directory = folder })
    check.equal(host.list(folder .. "/old"), { "a" })
    check.equal(host.read(folder .. "/old/a"), "before")
end

-- Root may write everywhere: become somebody else for a moment.
function test.read_only_folder()
    local folder = process.temporary_directory()
    local status, output = run(
        writes,
        [[
        as=; dir=$(mktemp -d); cp ${L%% *} $dir/lookupc; cp -r ${L##* } $dir/tree; chmod -R a+rX,a-w $dir
        test "$(id -u)" = 0 && as="setpriv --reuid 65534 --clear-groups"
        $as $dir/lookupc --tree $dir/tree $dir/x; code=$?
        ls $dir; chmod -R u+w $dir; rm -rf $dir; exit $code]],
        { directory = folder }
    )
    check.equal(status, 1)
    check.matches(output, "^lookupc: /[^\n]*/x: Permission denied\nlookupc\ntree\n$")
end

local waits = [[
local process, host = require "process", require "host"
return function()
    host.write_file(process.temporary_directory() .. "/file", "x")
    process.run({ "sh", "-c", "trap '' TERM INT HUP; echo $$ > pid; sleep 60; true" })
    return 0
end]]

-- A folder with a small model in it.
local function waiting_folder()
    local folder = process.temporary_directory()
    assert(host.write_file(folder .. "/model.lua", assert(host.read "gen/models/tiny.lua")))
    return folder
end

function test.signals_remove_temporary_folders_and_end_the_running_program()
    for _, signal in ipairs { { "TERM", 15 }, { "INT", 2 }, { "HUP", 1 } } do
        local _, output = run(
            waits,
            ([[
            TMPDIR=$PWD env --default-signal=INT $L &
            until [ -s pid ]; do sleep 0.01; done
            kill -%s $!; wait $!; echo $?
            ls; kill -0 $(cat pid)]]):format(signal[1]),
            { directory = process.temporary_directory(), timeout = 10 }
        )
        check.matches(output, 128 + signal[2] .. "\npid\n.*No such process\n$")
    end
end

-- Only those of processes that are gone, and of this user; a folder that merely has such a name stays.
function test.the_next_run_removes_temporary_folders_of_a_killed_one()
    local _, output = run(
        waits,
        [[
        export TMPDIR=$PWD
        mkdir lookupc-master
        start() { rm -f pid; $L & until [ -s pid ]; do sleep 0.01; done; inner="$inner $(cat pid)"; }
        found() { find . -mindepth 1 -maxdepth 1 -type d -name 'lookupc-*' | sort; }
        folders() { diff <(found) before | tr -dc '<>'; echo " $1"; }
        found > before
        start; first=$!; folders "the first runs"
        start; second=$!; folders "two run"
        kill -9 $first; wait $first 2>/dev/null; folders "one was killed"
        start; third=$!; folders "another came"
        kill -9 $second $third; wait $second $third 2>/dev/null
        $LOOKUPC verify model.lua --isa scalar > verified; folders "verify $?"
        kill -9 $inner]],
        {
            directory = waiting_folder(),
            timeout = 60,
            env = { LOOKUPC = check.lookupc },
        }
    )
    check.equal(output, "< the first runs\n<< two run\n<< one was killed\n<< another came\n verify 0\n")
end

-- What the killed one had started may still write: not a word about it, and the folder is found again.
function test.a_folder_that_is_written_to_while_it_is_removed_goes_later()
    local _, output = run(
        waits,
        [[
        export TMPDIR=$PWD
        mkdir -p lookupc-abandO/1; touch lookupc-abandO/.lookupc-lock
        seq -f lookupc-abandO/1/%g 3000 | xargs touch
        while [ -d lookupc-abandO/1 ]; do : > lookupc-abandO/1/$RANDOM; done 2> /dev/null & writer=$!
        $LOOKUPC verify model.lua --isa scalar > verified; kill $writer 2> /dev/null; wait $writer 2> /dev/null
        $LOOKUPC verify model.lua --isa scalar > verified; ls]],
        { directory = waiting_folder(), timeout = 60, env = { LOOKUPC = check.lookupc } }
    )
    check.equal(output, "model.lua\nverified\n")
end

function test.temporary_folders_go_at_every_end()
    for _, ending in ipairs { "return 0", "return nil, 'no'", "error('no')" } do
        local _, output = run(
            "return function() require('process').temporary_directory() " .. ending .. " end",
            "TMPDIR=$PWD $L 2>/dev/null; ls",
            { directory = process.temporary_directory() }
        )
        check.equal(output, "")
    end
end

function test.templates_and_modules_are_embedded()
    local result = process.run({ check.lookupc, "--version" }, { directory = "/" })
    check.equal(result.status, 0)
    check.matches(result.output, "%f[%d]" .. host.version:gsub("%.", "%%.") .. "%f[^%d.]")
end

return test
