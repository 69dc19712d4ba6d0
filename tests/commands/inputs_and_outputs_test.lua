-- Inputs of run that are damaged, and outputs that cannot be written, end in one clear line: older files stay.
local check = require "tests.support.check"
local damaged = require "tests.support.damaged"
local gpt_neox = require "tests.support.gpt_neox"
local host = require "host"
local process = require "process"
local program = require "tests.support.program"

local works = program.works
local test = {}

local folder, small, good = damaged.folder, damaged.model, damaged.good
local refused, input_of = damaged.refused, damaged.input_of

local function npy(header, bytes) return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. bytes end

local function bad_input(fragment, bytes)
    local path = folder .. "/x.npy"
    assert(host.write_file(path, bytes))
    refused(path .. ": " .. fragment, {
        "run",
        small,
        "--weights",
        folder .. "/good.safetensors",
        "--input",
        path,
        "--output",
        "output",
        "--isa",
        "scalar",
    })
end

function test.inputs_against_the_rules()
    local floats = string.pack("<f", 1.5):rep(12)
    local function described(text) return npy("{" .. text .. "}\n", floats) end
    local fine = "'descr': '<f4', 'fortran_order': False, 'shape': (2, 6), "
    local x = folder .. "/x.npy"
    assert(host.write_file(x, described(fine)))
    works {
        "run",
        small,
        "--weights",
        folder .. "/good.safetensors",
        "--input",
        x,
        "--output",
        folder .. "/y.npy",
        "--isa",
        "scalar",
    }

    bad_input("", described((fine:gsub("%(2, 6%)", "(3, 4)"))))
    bad_input("data: 48 bytes: must be 96", described((fine:gsub("<f4", "<f8"))))
    bad_input("descr: '>f4': must be '<f4'", described((fine:gsub("<f4", ">f4"))))
    bad_input("descr: '<i4': must be '<f4'", described((fine:gsub("<f4", "<i4"))))
    bad_input("fortran_order: True: must be False", described((fine:gsub("False", "True"))))
    bad_input("shape: 1 dimension: must be 2", described((fine:gsub("%(2, 6%)", "(12,)"))))
    bad_input("shape: 3 dimensions: must be 2", described((fine:gsub("%(2, 6%)", "(1, 2, 6)"))))
    bad_input("data: 48 bytes: must be 24 for shape (1, 6)", described((fine:gsub("%(2, 6%)", "(1, 6)"))))
    bad_input("data: 48 bytes: must be 72 for shape (3, 6)", described((fine:gsub("%(2, 6%)", "(3, 6)"))))
    bad_input("shape: ", described((fine:gsub("%(2, 6%)", "(4611686018427387904, 6)"))))
    bad_input("shape: ", described((fine:gsub("%(2, 6%)", "(99999999999999999999999, 6)"))))
    bad_input("header: ", described((fine:gsub("%(2, 6%)", "(-2, 6)"))))
    bad_input("header: shape: missing", described("'descr': '<f4', 'fortran_order': False, "))
    bad_input("header: descr: given twice", described(fine .. "'descr': '<f4', "))
    bad_input("version: 3.0: must be 1.0 or 2.0", (described(fine):gsub("NUMPY\1", "NUMPY\3")))
    bad_input("not an .npy file", good)
    local whole = described(fine)
    for length = 0, #whole - 1, 7 do
        bad_input("", whole:sub(1, length))
    end
end

function test.inputs_that_cannot_be_read()
    for _, row in ipairs {
        { "none.npy", "none.npy: No such file or directory" },
        { folder, folder .. ": " },
        { "/dev/zero", "/dev/zero: " },
    } do
        refused(row[2], {
            "run",
            small,
            "--weights",
            folder .. "/good.safetensors",
            "--input",
            row[1],
            "--output",
            "output",
            "--isa",
            "scalar",
        })
    end
end

-- What costs nothing is looked at before anything is packed or compiled: there is no such compiler.
function test.inputs_and_outputs_are_looked_at_first()
    local narrow = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5)}\n", ("\0"):rep(20))
    local long = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999, 64)}\n", ("\0"):rep(4 * 999 * 64))
    assert(host.write_file(folder .. "/narrow.npy", narrow))
    assert(host.write_file(folder .. "/long.npy", long))
    local block = program.root .. "/gen/models/tiny_skipless.lua"
    works { "sample", block, "-o", folder .. "/block.safetensors" }
    local function first(fragment, model, weights, input, output, ...)
        local words = { "run", model, "--weights", folder .. weights, "--input", input, "--output", output, ... }
        words[#words + 1], words[#words + 2] = "--cc", "no-such-compiler"
        refused(fragment, words)
    end
    for _, more in ipairs { { "--isa", "scalar" }, { "--arithmetic", "integer" } } do
        local weights = "/good.safetensors"
        first("none.npy: No such file", small, weights, "none.npy", "output", table.unpack(more))
        first("not an .npy file", small, weights, small, "output", table.unpack(more))
        first("5 columns: must be d = 6", small, weights, folder .. "/narrow.npy", "output", table.unpack(more))
        first("none/y: No such file", small, weights, input_of(2), "none/y", table.unpack(more))
        first("no-such-compiler", small, weights, input_of(2), "output", table.unpack(more))
    end
    first("none.npy: No such file", block, "/block.safetensors", "none.npy", "output")
    first("5 columns: must be d = ", block, "/block.safetensors", folder .. "/narrow.npy", "output")
    first("999 tokens: must be at most", block, "/block.safetensors", folder .. "/long.npy", "output")
    first("none/y: No such file", block, "/block.safetensors", folder .. "/narrow.npy", "none/y")
end

local outputs = {
    { "emit", small, "-o" },
    { "sample", small, "-o" },
    { "pack", small, "--weights", folder .. "/good.safetensors", "-o" },
}

local function with_output(words, path)
    words = { table.unpack(words) }
    words[#words + 1] = path
    return words
end

local function ready_input(tokens)
    local weights, input = folder .. "/good.safetensors", input_of(tokens)
    return { "run", small, "--weights", weights, "--isa", "scalar", "--input", input, "--output" }
end

function test.output_folders_that_are_not_there()
    for _, words in ipairs { outputs[2], outputs[3], ready_input(2) } do
        refused("none/output: No such file or directory", with_output(words, "none/output"))
        refused("Not a directory", with_output(words, "output/y"))
        local rule = words[1] == "pack" and "Is a directory" or "is not a regular file"
        refused(folder .. ": " .. rule, with_output(words, folder))
        refused("/proc/none/y: ", with_output(words, "/proc/none/y"))
        refused("/dev/null: is not a regular file", with_output(words, "/dev/null"))
    end
    refused("output: ", with_output(outputs[1], "output"))
    refused("/proc/none", with_output(outputs[1], "/proc/none/bundle"))
end

-- Root may write everywhere: become somebody else for a moment.
function test.output_folders_that_are_read_only()
    for _, words in ipairs { outputs[1], outputs[2], outputs[3], ready_input(2) } do
        local result = assert(process.run({
            "bash",
            "-c",
            [[
            dir=$(mktemp -d); lookupc=$1; folder=$2; shift 2
            cp "$lookupc" "$dir/lookupc"; cp -r "$folder" "$dir/input"; echo older > "$dir/output"
            chmod -R a+rX,a-w "$dir"
            words=("${@//"$folder"/"$dir/input"}")
            as=; test "$(id -u)" = 0 && as="setpriv --reuid 65534 --clear-groups"
            TMPDIR=/tmp $as "$dir/lookupc" "${words[@]}" "$dir/new"; echo "status $?"
            TMPDIR=/tmp $as "$dir/lookupc" "${words[@]}" "$dir/output"; echo "status $?"
            ls "$dir"; cat "$dir/output"; chmod -R u+w "$dir"; rm -rf "$dir"]],
            "bash",
            check.lookupc,
            folder,
            table.unpack(words),
        }, { timeout = 60 }))
        check.matches(
            result.output,
            "^lookupc[^\n]*/new[^\n]*: Permission denied\nstatus 1\nlookupc[^\n]*/output[^\n]*: [^\n]*\nstatus \z
                1\ninput\nlookupc\noutput\nolder\n$"
        )
    end
end

-- A symbolic link to nothing is refused by every command, before the work where that takes long, and stays as it was.
function test.outputs_that_are_links_to_nothing()
    local there, block = program.folder(), program.root .. "/gen/models/tiny_skipless.lua"
    local link = there .. "/link"
    process.run { "ln", "-s", "none", link }
    works { "sample", block, "--unfused", "-o", folder .. "/block.safetensors" }
    assert(host.write_file(folder .. "/config.json", gpt_neox))
    local fuse = { "fuse", block, "--weights", folder .. "/block.safetensors", "--eliminate", "QP" }
    local sharded = table.move(fuse, 1, #fuse, 1, {})
    table.move({ "--shard-mib", "1" }, 1, 2, #sharded + 1, sharded)
    for _, row in ipairs {
        { outputs[1], "-o" },
        { outputs[2], "-o" },
        { outputs[3], "-o" },
        { fuse, "-o" },
        { sharded, "-o" },
        { { "import", folder .. "/config.json" }, "-o" },
        { ready_input(2), "--output" },
        { { "bench", small, "--isa", "scalar", "--cc", "no-such-compiler" }, "--html" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler" }, "-o" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler", "-o", "output" }, "--html" },
        { { "tune", small, "--time", "1s", "--cc", "no-such-compiler", "--shard", "1/2" }, "--out" },
    } do
        local words = with_output(row[1], link)
        if words[#words - 1] ~= row[2] then table.insert(words, #words, row[2]) end
        refused("is a symbolic link to nothing", words)
        check.equal(host.list(there), { "link" })
        check.equal(process.run({ "readlink", link }).output, "none\n")
    end
end

-- Every command that compiles needs a temporary folder.
function test.temporary_folders_that_cannot_be_made()
    local place = program.folder()
    assert(host.write_file(place .. "/file", ""))
    local words = {
        ready_input(2),
        { "run", small, "--arithmetic", "integer", table.unpack(ready_input(2), 3) },
        { "verify", small, "--isa", "scalar" },
        { "verify", small, "--arithmetic", "integer" },
        { "verify", program.root .. "/gen/models/tiny_skipless.lua", "--isa", "scalar" },
        { "bench", small, "--isa", "scalar" },
        { "bench", program.root .. "/gen/models/tiny_skipless.lua", "--isa", "scalar" },
        { "tune", small, "--time", "1s" },
        { "tune", small, "--time", "1s", "--shard", "1/2", "--out", "shard.jsonl" },
    }
    words[1][#words[1] + 1], words[2][#words[2] + 1] = "y.npy", "y.npy"
    table.remove(words[2], 7) -- --isa scalar
    table.remove(words[2], 7)
    local environment = { LOOKUPC_STORE = place .. "/store.sqlite" }
    for _, command in ipairs(words) do
        environment.TMPDIR = place .. "/none"
        refused("lookupc: TMPDIR: " .. place .. "/none: ", command, { env = environment })
    end
    for _, row in ipairs {
        { place .. "/file", "/file: no temporary folder can be made there: Not a directory" },
        { "none", "TMPDIR: none: no temporary folder can be made there: No such file or directory" },
        { "/" .. ("long/"):rep(1000), "...: no temporary folder can be made there: " },
        { ("x"):rep(300), "File name too long" },
        { "new\nline", "TMPDIR: new?line: no temporary folder can be made there: No such file or directory" },
    } do
        environment.TMPDIR = row[1]
        refused(row[2], { "verify", small, "--isa", "scalar" }, { env = environment })
    end
    -- Not needed, empty, relative, and with letters that a shell would not leave alone.
    works({ "plan", small }, { env = { TMPDIR = "/none" } })
    works({ "emit", small, "-o", place .. "/bundle", "--isa", "scalar" }, { env = { TMPDIR = "/none" } })
    process.run { "mkdir", place .. '/it\'s "two"\nlines, $HOME' }
    for _, name in ipairs { "", ".", place .. '/it\'s "two"\nlines, $HOME' } do
        works({ "verify", small, "--isa", "scalar" }, {
            env = { TMPDIR = name, XDG_CACHE_HOME = #name > 1 and place .. "/cache" or nil },
            directory = place,
        })
    end
    -- Root may write everywhere: become somebody else for a moment.
    local result = assert(process.run({
        "bash",
        "-c",
        [[
        dir=$(mktemp -d); cp "$1" "$dir/lookupc"; cp "$2" "$dir/small.lua"; mkdir "$dir/closed"
        chmod a+rx,a-w "$dir" "$dir/closed"
        as=; test "$(id -u)" = 0 && as="setpriv --reuid 65534 --clear-groups"
        TMPDIR=$dir/closed $as "$dir/lookupc" verify "$dir/small.lua" --isa scalar; echo "status $?"
        chmod u+w "$dir"; rm -rf "$dir"]],
        "bash",
        check.lookupc,
        small,
    }))
    check.matches(result.output, "^lookupc: TMPDIR: [^\n]*/closed: [^\n]*: Permission denied\nstatus 1\n$")
end

function test.full_disks()
    -- A file may have 1 KiB: less than every one of these outputs, which end in File too large as they would on a full
    -- disk.
    local full = { limit = "ulimit -f 1" }
    refused("File too large", with_output(outputs[1], "new"), full)
    refused("output: File too large", with_output(outputs[2], "output"), full)
    refused("output: File too large", with_output(outputs[3], "output"), full)
    -- Sources, library and blob fit, the result of 40,000 tokens does not.
    refused("output: File too large", with_output(ready_input(40000), "output"), { limit = "ulimit -f 800" })
    -- No room for the sources.
    refused("File too large", with_output(ready_input(2), "output"), full)
    refused("File too large", { "verify", small, "--isa", "scalar" }, full)
    -- Room for the sources, none for the compiler.
    local nothing_kept = { XDG_CACHE_HOME = program.folder() }
    refused("gcc: ", with_output(ready_input(2), "output"), { limit = "ulimit -f 16", env = nothing_kept })
    -- None for a library that was kept, and none for keeping one.
    local kept = { XDG_CACHE_HOME = program.folder() }
    works({ "verify", small, "--isa", "scalar" }, { env = kept })
    refused(
        "libsmall.so: File too large",
        { "verify", small, "--isa", "scalar" },
        { limit = "ulimit -f 16", env = kept }
    )
    for _, words in ipairs { { "plan", small }, { "help" }, { "--version" } } do
        local result = process.run { "bash", "-c", '"$@" > /dev/full', "bash", check.lookupc, table.unpack(words) }
        check.equal({ result.status, result.output }, { 1, "lookupc: standard output: No space left on device\n" })
    end
end

-- emit onto an older bundle: all files are replaced or none.
function test.older_bundles_stay_whole()
    local bundle = program.folder()
    works { "emit", small, "-o", bundle }
    assert(host.write_file(bundle .. "/small.h", "older"))
    local before = process.run({ "bash", "-c", "cat " .. bundle .. "/* | sha256sum" }).output
    local names = host.list(bundle)
    program.refuses(
        1,
        "File too large",
        { "emit", small, "-o", bundle, "--schedule", "gather.group=1" },
        { limit = "ulimit -f 1" }
    )
    check.equal(host.list(bundle), names)
    check.equal(process.run({ "bash", "-c", "cat " .. bundle .. "/* | sha256sum" }).output, before)
end

-- An output that is one of the inputs, under another name too, is refused and the input stays.
function test.outputs_over_inputs()
    local there = program.folder()
    local path = program.model(there, "small", assert(host.read(small)))
    assert(host.write_file(there .. "/w.safetensors", good))
    local text = assert(host.read(path))
    local function keeps(words)
        program.refuses(1, "choose another file", words, { directory = there })
        check.equal(host.read(path), text)
        check.equal(host.read(there .. "/w.safetensors"), good)
    end
    keeps { "sample", path, "-o", path }
    keeps { "pack", path, "--weights", "w.safetensors", "-o", "./w.safetensors" }
    keeps { "pack", path, "--weights", "w.safetensors", "-o", path }
    keeps { "run", path, "--weights", "w.safetensors", "--input", "x.npy", "--output", there .. "/w.safetensors" }
end

return test
