-- Full and read-only disks, SIGKILL, closed pipes, two writers, odd names and other locales: commands say one line, or
-- do what they do elsewhere.
local check = require "tests.support.check"
local host = require "host"
local process = require "process"
local program = require "tests.support.program"

local works = program.works
local test = {}

local root = assert(process.run({ "pwd" })).output:gsub("\n$", "")
local inputs = program.folder()
local config = [[
{ "model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100,
  "intermediate_size": 256, "hidden_act": "gelu", "max_position_embeddings": 32, "rotary_pct": 0.25,
  "rotary_emb_base": 10000, "layer_norm_eps": 1e-05, "use_parallel_residual": true }
]]
assert(host.write_directory(inputs, {
    ["config.json"] = config,
    ["tiny.lua"] = assert(host.read "gen/models/tiny.lua"),
    ["block.lua"] = assert(host.read "gen/models/tiny_skipless.lua"),
}))
works({ "sample", "tiny.lua", "-o", "tiny.safetensors" }, { directory = inputs })
works({ "sample", "block.lua", "--unfused", "-o", "block.safetensors" }, { directory = inputs })
program.python("np.save(sys.argv[1], np.ones((500, 64), '<f4'))", inputs .. "/x.npy")

-- Every command that writes, in the folder of the inputs; the output comes last. The output is at most a few hundred
-- KiB, and a whole folder for those that say so.
local writers = {
    { "emit", "tiny.lua", "--isa", "scalar", "-o", folder = true },
    { "sample", "tiny.lua", "-o" },
    { "pack", "tiny.lua", "--weights", "tiny.safetensors", "-o" },
    { "run", "tiny.lua", "--weights", "tiny.safetensors", "--isa", "scalar", "--input", "x.npy", "--output" },
    { "fuse", "block.lua", "--weights", "block.safetensors", "--eliminate", "QP", "-o" },
    {
        "fuse",
        "block.lua",
        "--weights",
        "block.safetensors",
        "--eliminate",
        "QP",
        "--shard-mib",
        "1",
        "-o",
        folder = true,
    },
    { "import", "config.json", "-o" },
}

-- The words of a writer for a shell, with its output behind them.
local function command(writer, output)
    local words = {}
    for i, word in ipairs(writer) do
        words[i] = word
    end
    words[#words + 1] = output
    return '"' .. table.concat(words, '" "') .. '"'
end

-- Runs a bash script in which `lookupc` is a function, in the folder `directory`.
local function shell(script, directory, env)
    local result = assert(process.run({
        "bash",
        "-c",
        'L=$0; lookupc() { "$L" "$@"; }; ' .. script,
        check.lookupc,
    }, { directory = directory, env = env, timeout = 120 }))
    return result.output, result.status
end

-- All bytes below a folder, by path.
local function contents(folder) return (shell("find . -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum", folder)) end

-- What the writers say of a file system of 48 KiB, mounted on `disk`, with an older output in it: the last part of
-- their line, or "ok"; nil if this user mounts none.
local function on_a_small_disk(prepare)
    local script = {
        'disk=$(mktemp -d); mount -t tmpfs -o size=48k none "$disk" 2> /dev/null || { echo none; exit; }',
        'mkdir "$disk/bundle"; echo older > "$disk/older"; echo older > "$disk/bundle/tiny.h"; mkdir "$disk/lookupc"',
        prepare,
        'before=$(find "$disk" | sort; cat "$disk/older" "$disk/bundle/tiny.h")',
        'try() { said=$("$@" 2>&1 > /dev/null); code=$?; test $code = 0 && said=ok || '
            .. 'test "$(wc -l <<< "$said")" = 1 || said="several lines: $said"; echo "$code ${said##*: }"',
        'after=$(find "$disk" | sort; cat "$disk/older" "$disk/bundle/tiny.h")',
        'test "$before" = "$after" || { echo "something changed: $after"; before=$after; }; }',
    }
    for _, writer in ipairs(writers) do
        for _, output in ipairs(writer.folder and { "$disk/new", "$disk/bundle" } or { "$disk/new", "$disk/older" }) do
            script[#script + 1] = "try lookupc " .. command(writer, output)
        end
    end
    script[#script + 1] = 'try env TMPDIR="$disk" "$L" verify tiny.lua --isa scalar'
    script[#script + 1] = 'try env XDG_CACHE_HOME="$disk" "$L" verify tiny.lua --isa scalar'
    local result = assert(process.run({
        "unshare",
        "-m",
        "bash",
        "-c",
        'L=$0; lookupc() { "$L" "$@"; }; ' .. table.concat(script, "\n"),
        check.lookupc,
    }, { directory = inputs, timeout = 120 }))
    if result.output == "none\n" or result.output:find "^unshare: " then return nil end
    return result.output
end

-- What those lines must be: `reason` for all writers and the temporary folder; a library that cannot be kept is as
-- good.
local function all_say(reason) return ("1 " .. reason .. "\n"):rep(2 * #writers + 1) .. "0 ok\n" end

function test.full_disk()
    local said = on_a_small_disk 'head -c 100000 /dev/zero > "$disk/fill" 2> /dev/null'
    if not said then return host.note "skipped: no file system can be mounted here" end
    check.equal(said, all_say "No space left on device")
end

function test.read_only_disk()
    local said = on_a_small_disk 'mount -o remount,ro "$disk"'
    if not said then return host.note "skipped: no file system can be mounted here" end
    check.equal(said, all_say "Read-only file system")
end

-- The older output stays, and the next run removes what the killed one was writing.
function test.killed_while_it_writes()
    local there = program.folder()
    assert(host.write_file(there .. "/out", "older"))
    local output = shell(
        [[
        "$L" sample "$ROOT/gen/models/mistral_7b_skipless.lua" -o out > /dev/null & run=$!
        until ls .lookupc-?????? > /dev/null 2>&1; do sleep 0.01; done
        kill -9 $run; wait $run 2> /dev/null
        ls -A | wc -l; cat out; echo
        lookupc sample "$ROOT/gen/models/tiny.lua" -o other
        ls -A]],
        there,
        { ROOT = root }
    )
    check.equal(output, "2\nolder\nwrote other\nother\nout\n")
end

-- What the killed one had started ends with it, whether that measures already or is still being loaded: others wait
-- for the machine.
function test.killed_while_it_measures()
    local output = shell(
        [[
        measures() { child=$(tr -d ' ' < /proc/$run/task/$run/children) && grep -q measure /proc/$child/cmdline; }
        for delay in 0 0.3; do
            "$L" bench tiny.lua --isa scalar --batch 4096 --repetitions 500 > /dev/null 2>&1 & run=$!
            until measures 2> /dev/null; do :; done
            sleep $delay; kill -9 $run; wait $run 2> /dev/null
            for i in {1..600}; do kill -0 $child 2> /dev/null || break; sleep 0.05; done
            kill -9 $child 2> /dev/null && echo "lookupc-measure went on: $delay"
        done]],
        inputs
    )
    check.equal(output, "")
end

-- However far a killed emit came, the next one makes the bundle whole.
function test.killed_while_it_emits()
    local there = program.folder()
    local output = shell(
        [[
        for delay in 0.005 0.01 0.015 0.02 0.025 0.03 0.04; do
            "$L" emit tiny.lua -o "$THERE/bundle" > /dev/null & run=$!
            sleep $delay; kill -9 $run 2> /dev/null; wait $run 2> /dev/null
        done
        lookupc emit tiny.lua -o "$THERE/bundle" > /dev/null; lookupc check "$THERE/bundle"
        ls -A "$THERE/bundle" | grep '^\.']],
        inputs,
        { THERE = there }
    )
    check.equal(output, there .. "/bundle: fresh\n")
end

-- A file is that of one of several writers at a time; all of them succeed and leave nothing else.
function test.several_writers_of_the_same_output()
    local there = program.folder()
    local output = shell(
        [[
        pack() { lookupc pack tiny.lua --weights tiny.safetensors -o "$@" > /dev/null; }
        emit() { lookupc emit tiny.lua --isa scalar -o "$@" > /dev/null; }
        pack "$THERE/f32"; pack "$THERE/i8" --tables i8; emit "$THERE/a"; emit "$THERE/b" --schedule gather.columns=16
        for i in 1 2 3 4; do
            pack "$THERE/blob" & jobs="$jobs $!"; pack "$THERE/blob" --tables i8 & jobs="$jobs $!"
            emit "$THERE/c" & jobs="$jobs $!"; emit "$THERE/c" --schedule gather.columns=16 & jobs="$jobs $!"
            emit "$THERE/d" & jobs="$jobs $!"
        done
        for job in $jobs; do wait $job || echo "exit status $?"; done
        cmp -s "$THERE/blob" "$THERE/f32" || cmp -s "$THERE/blob" "$THERE/i8" || echo "a mixed blob"
        for file in "$THERE"/c/*; do
            cmp -s "$file" "$THERE/a/${file##*/}" || cmp -s "$file" "$THERE/b/${file##*/}" || echo "a mixed $file"
        done
        diff -r "$THERE/a" "$THERE/d"; cd "$THERE"; ls -A]],
        inputs,
        { THERE = there }
    )
    check.equal(output, "a\nb\nblob\nc\nd\nf32\ni8\n")
end

-- Outputs are the same whatever the names of folders and files.
function test.odd_names()
    local plain, odd = program.folder(), program.folder()
    local name = '-it\'s "two"\nlines; $HOME `id` ü模'
    assert(process.run({ "cp", "-r", "--", inputs, odd .. "/" .. name }).status == 0)
    local function made(from, to)
        for i, writer in ipairs(writers) do
            local words = {}
            for j, word in ipairs(writer) do
                words[j] = word:find "%.%a+$" and from .. "/" .. word or word
            end
            words[#words + 1] = to .. i
            works(words, { directory = odd })
        end
    end
    made(inputs, plain .. "/")
    made("./" .. name, odd .. "/out/" .. name)
    local function digests(folder)
        local list, lines = {}, shell("find . -type f -print0 | xargs -0 sha256sum", folder)
        for digest in lines:gmatch "%f[%x]%x+" do
            if #digest == 64 then list[#list + 1] = digest end
        end
        table.sort(list)
        return list
    end
    check.equal(digests(odd .. "/out"), digests(plain))
    -- A value may start with a dash, an argument may not; a message stays one line.
    works({ "sample", "tiny.lua", "-o", "-" .. name }, { directory = inputs })
    check.equal(host.read(inputs .. "/-" .. name), host.read(inputs .. "/tiny.safetensors"))
    assert(host.remove(inputs .. "/-" .. name))
    program.refuses(2, "unknown option -tiny.lua", { "plan", "-tiny.lua" })
    program.refuses(1, "No such file or directory", { "plan", "no\nsuch\nmodel" })
    program.refuses(1, "No such file or directory", { "pack", "gen/models/tiny.lua", "--weights", name, "-o", name })
    program.refuses(1, "No such file or directory", { "import", "./" .. name, "-o", name })
    program.refuses(1, "there is no folder", { "bench", "gen/models/tiny.lua", "--html", "no\nfolder/x" })
end

-- Turkish, which has a decimal comma and an i of its own, and a locale that is not there change neither bytes nor
-- messages.
function test.other_locales()
    local places = program.folder()
    if not process.run { "localedef", "-i", "tr_TR", "-f", "UTF-8", places .. "/tr_TR.UTF-8" } then
        return host.note "skipped: no locale with a decimal comma can be made here"
    end
    local function result(env)
        local there, options = program.folder(), { directory = inputs, env = env }
        for i, writer in ipairs(writers) do
            local words = table.move(writer, 1, #writer, 1, {})
            words[#words + 1] = there .. "/" .. i
            works(words, options)
        end
        local said = works({ "verify", "tiny.lua", "--isa", "scalar", "--json" }, options)
            .. works({ "plan", "tiny.lua", "--isa", "scalar" }, options)
        return host.sha256(contents(there) .. said:gsub("bash: warning: setlocale[^\n]*\n", ""))
    end
    local plain = result { LC_ALL = "C" }
    for _, locale in ipairs { "tr_TR.UTF-8", "none.UTF-8" } do
        check.equal(result { LC_ALL = locale, LANG = locale, LOCPATH = places }, plain)
    end
end

-- A reader that has gone is no failure, and the work is done; an output that cannot be written is one.
function test.closed_pipes()
    local there = program.folder()
    for _, row in ipairs {
        {
            'lookupc emit tiny.lua -o "$THERE/b" | true; echo "${PIPESTATUS[0]}"; lookupc check "$THERE/b" > /dev/null',
            "0\n",
        },
        { 'lookupc verify tiny.lua --isa scalar | true; echo "${PIPESTATUS[0]}"', "0\n" },
        { 'lookupc help | head -n 1; echo "${PIPESTATUS[0]}"', "lookupc turns a model file into specialised C.\n0\n" },
        { 'lookupc verify none.lua 2>&1 | true; echo "${PIPESTATUS[0]}"', "1\n" },
        { "lookupc plan tiny.lua >&-", "lookupc: standard output: Bad file descriptor\n", 1 },
        { "lookupc plan tiny.lua > /dev/full", "lookupc: standard output: No space left on device\n", 1 },
        { 'lookupc sample tiny.lua -o "$THERE/w" 2>&- >&- <&-; cmp "$THERE/w" tiny.safetensors', "" },
        { "lookupc verify tiny.lua --isa scalar <&- > /dev/null", "" },
    } do
        local output, status = shell(row[1], inputs, { THERE = there })
        check.equal({ output, status }, { row[2], row[3] or 0 })
    end
end

return test
