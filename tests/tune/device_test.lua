-- What lookupc runs on a device: candidates side by side in one program, timed and verified there; and what is said
-- where the device does not do it. AArch64 is emulated, if it can be; the rest runs here as if it were elsewhere.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local log = require "harness.tune.log"
local process = require "process"
local program = require "tests.support.program"

local test = {}

local tiny = "gen/models/tiny.lua"

-- A script in a new folder.
local function script(text)
    local path = program.folder() .. "/runner"
    assert(host.write_file(path, "#!/bin/sh\n" .. text .. "\n"))
    assert(process.run { "chmod", "+x", path })
    return path
end

local emulated = { "--cc", "aarch64-linux-gnu-gcc", "--runner", "qemu-aarch64-static", "--cflags", "-O1" }

-- Whether programs for AArch64 can be made and run; says so if not.
local function can_emulate()
    local source = program.folder() .. "/nothing.c"
    assert(host.write_file(source, "int main(void) { return 0; }\n"))
    local words = "aarch64-linux-gnu-gcc -static -o $0.out $0 && qemu-aarch64-static $0.out"
    local works = assert(process.run { "sh", "-c", words, source }).status == 0
    if not works then host.print "skipped: AArch64: its gcc or qemu-aarch64-static does not work here" end
    return works
end

local function with(words, ...)
    local list = { ... }
    return table.move(words, 1, #words, #list + 1, list)
end

local function tune(place, words)
    local list = { "tune", tiny, "-o", place.tuned, "--batch", "1", "--choices", "few.accumulators" }
    return program.run(table.move(words, 1, #words, #list + 1, list), { env = place.env })
end

function test.the_core_says_what_the_module_says()
    local device = require "harness.device.device"
    local own = cpu.real()
    local d = device.open { runner = "env", cc = "gcc", cflags = "-O1", threads = 1 }
    local there = cpu.real()
    cpu.stand_for(nil)
    own.amx_missing = nil -- its reason, which no key has
    check.equal(there, own)
    check.equal(#d.name, 64)
end

function test.a_model_is_tuned_for_aarch64()
    if not can_emulate() then return end
    local place = program.tuning_place()
    local words = with(emulated, "--isa", "neon", "--time", "40s")
    local result = tune(place, words)
    check.matches(result.output, "tiny on implementer 0x%x+ part 0x%x+, aarch64%-linux%-gnu%-gcc")
    check.matches(result.output, "new records in " .. place.store:gsub("%p", "%%%0"))
    local timed, rounds = {}, {}
    for _, r in ipairs((log.read(place.log))) do
        check.equal({ r.key.arch, r.key.isa, r.status ~= "rejected" }, { "aarch64", "neon", true })
        if r.status == "ok" then
            timed[r.candidate], rounds[r.round] = true, true
            for _, us in ipairs(r.samples_us) do
                check.equal(us > 0, true)
            end
        end
    end
    check.equal({ next(timed, (next(timed))) ~= nil, next(rounds) ~= nil }, { true, true })
    -- the store answers for this CPU only as far as it is the device
    words = with(emulated, "tune", tiny, "-o", place.tuned, "--batch", "1", "--isa", "neon", "--time", "0", "--resume")
    check.matches(program.run(words, { env = place.env }).output, "nothing measured")
end

-- A model file of two blocks with LookupFFNs, or with an MLP, and with the text `more` a whole model.
local function small(name, more, mlp)
    local form = "return { name = '%s', d = 32, heads = 2, layers = 2, vocab = 9, attention = { eliminate = 'QP', %s, "
        .. "context = 16 }, ffn = %s, %s }"
    local lookup = "{ kind = 'lookup', h = 4, tau = 3, projection = { kind = 'bh4', block = 16 } }"
    local ffn = mlp and "{ kind = 'mlp', f = 32, activation = 'gelu' }" or lookup
    local attention = name == "encoder" and "causal = false" or "rope = {}"
    return program.model(program.folder(), name, form:format(name, attention, ffn, more or ""))
end
local decoder, encoder = "embedding = {}, output = {}", "embedding = { scale = 2 }, output = { pool = 'mean' }"

function test.models_are_verified_for_aarch64()
    if not can_emulate() then return end
    for _, words in ipairs {
        { small "blocks", "--isa", "neon" },
        { tiny, "--isa", "i8mm", "--projection", "i8", "--tables", "i8" },
        { small("decoder", decoder), "--isa", "neon", "--type", "bf16", "--activations", "bf16" },
        { small("encoder", encoder), "--isa", "neon,scalar" },
    } do
        local output = program.works(with(emulated, "verify", table.unpack(words)))
        check.equal(select(2, output:gsub(" ok ", "")) >= 2, true)
    end
end

-- Here, as if it were elsewhere: `env` runs a program.
local function verify_here(tree, ...)
    return program.run { "--tree", tree, "verify", "--runner", "env", "--isa", "scalar", "--cflags", "-O0", ... }
end

function test.wrong_kernels_are_found_there()
    local fma = 'return binary(binary(a, "*", b), "+", c) end'
    local tree = program.changed_tree("gen/isa/scalar.lua", fma, (fma:gsub("binary%(a", 'binary("1.001f * " .. a')))
    for _, words in ipairs {
        { tiny },
        { tiny, "--projection", "i8", "--tables", "i8" },
        { small("blocks", nil, true) },
        { small("decoder", decoder, true) },
        { small("encoder", encoder, true) },
    } do
        check.equal(verify_here(program.root, table.unpack(words)).status, 0)
        local result = verify_here(tree, table.unpack(words))
        check.equal(result.status, 1)
        check.matches(result.errors, "lookupc verify: scalar [^\n]*: %S+")
    end
end

-- What is said of changed integer kernels.
local wrong_integers = {
    ["integers: 8%d+ of 8320 codes"] = { "hash.c", "> 0 ? 1u : 0u", "< 0 ? 1u : 0u" },
    ["integers: 0 of 8320 codes, 8320 scores"] = { "hash.c", "($(shifted));", "($(shifted)) + 1;" },
    ["calls: kws_ffn: token 1 alone differs"] = { "ffn.c", "row, score, y);", "row, score, y), y[0] += token > 0;" },
}

function test.wrong_integers_are_found_there()
    local words = { "gen/models/kws.lua", "--arithmetic", "integer" }
    check.equal(verify_here(program.root, table.unpack(words)).status, 0)
    for pattern, changed in pairs(wrong_integers) do
        local tree = program.changed_tree("templates/lookup/integer/" .. changed[1], changed[2], changed[3])
        local result = verify_here(tree, table.unpack(words))
        check.equal(result.status, 1)
        check.matches(result.errors, "lookupc verify: scalar: " .. pattern)
    end
end

function test.bench_times_there()
    local blocks = small("blocks", nil, true)
    local function bench(...)
        local words = { "bench", "--runner", "env", "--isa", "scalar", "--cflags", "-O0", "--repetitions", "1", ... }
        return assert(json.decode(program.works(compilers.joined(words, { "--json" })))).results
    end
    local plain = bench(tiny, "--batch", "1,9", "--tables", "f32,i8")
    check.equal({ #plain, plain[2].batch, plain[3].types }, { 4, 9, "i8 f32" })
    check.equal({ plain[1].us_per_token > 0, plain[1].again_ratio > 0, plain[1].times_first }, { true, true })
    check.equal(#bench(blocks, "--type", "f32,f16"), 4)
    local integers = bench("gen/models/kws.lua", "--arithmetic", "integer", "--batch", "1,4")
    check.equal({ #integers, integers[2].batch, integers[2].us_per_token > 0 }, { 2, 4, true })
    local whole = bench(small("decoder", decoder, true), "--lengths", "4")
    local calls = {}
    for i, r in ipairs(whole) do
        calls[i] = string.format("%s %d %d", r.call, r.tokens, r.position)
        check.equal({ r.us_per_token > 0, r.stages.attention ~= nil }, { true, true })
    end
    check.equal(calls, { "prefill 4 0", "step 1 0", "step 1 15" })
    whole = bench(small("encoder", encoder, true), "--lengths", "4")
    check.equal({ #whole, whole[2].sequences }, { 2, 128 })
end

-- A program that dies is a wrong candidate, as long as the device answers.
function test.what_crashes_there_is_wrong()
    local tree = program.changed_tree("templates/lookup/shared/ffn.c", "(left + ", "*(volatile int *)0 + (left + ")
    local result = verify_here(tree, tiny)
    check.equal(result.status, 1)
    check.matches(result.errors, "crashed on the device: signal %d+")
end

-- One that hangs is wrong, too, or writes beyond its memory, and the others are not.
function test.what_hangs_there_is_wrong()
    local device = require "harness.device.device"
    local d = device.open { runner = "env", cc = "gcc", cflags = "-O1", threads = 1 }
    cpu.stand_for(nil)
    local folder = program.folder()
    local source = "int bind(const void *b, unsigned long n, void *w) { return !b || !n || !w; }\n"
        .. "void right(float *y) { y[0] = 1; }\nvoid wrong(float *y) { y[0] = 2; }\n"
        .. "void hangs(volatile float *y) { for (;;) y[0] = 1; }\nvoid beyond(float *y) { y[1] = y[0] = 1; }\n"
    assert(host.write_file(folder .. "/one.c", source))
    assert(host.write_file(folder .. "/blob", ("\0"):rep(64)))
    assert(host.write_file(folder .. "/y", ("<d"):pack(1)))
    local files = { "-O1", folder .. "/one.c", "-o", folder .. "/one.o" }
    compilers.call(compilers.joined({ "gcc" }, d.link_options, files))
    local library = { name = "one", library = folder .. "/one.o", blob = folder .. "/blob", bind = "bind" }
    library.weights_struct_bytes = 8
    local job = { seed = 1, repetitions = 1, libraries = { library }, calls = {}, checks = {} }
    job.memory = {
        { name = "y", bytes = 4 },
        { name = "expected", bytes = 8, fill = "linked", file = folder .. "/y" },
    }
    for i, symbol in ipairs { "right", "hangs", "wrong", "beyond" } do
        job.checks[i] = { name = symbol, y = "y", expected = "expected", tokens = 1, width = 1, period = 1 }
        job.checks[i].steps = { { library = "one", ["function"] = symbol, arguments = { "y" } } }
    end
    d.patience = 1
    local found = d:check(job)
    check.equal({ found[1].relative, found[3].relative, found[3].absolute }, { 0.0, 1.0, 1.0 })
    check.equal(found[2].failure, "took more than 1 seconds on the device")
    check.equal(found[4].failure, "beyond: wrote beyond the end of y")
    check.equal(("<f"):unpack(d:outputs(job, { 3 })[1]), 2.0)
end

function test.a_device_that_does_not_run_it_is_one_line()
    local words = { "verify", tiny, "--isa", "scalar", "--cflags", "-O0", "--runner" }
    local function refused(fragment, runner, ...)
        program.refuses(1, fragment, with({ ... }, table.unpack(with({ runner }, table.unpack(words)))))
    end
    local full = script 'echo "cat: write error: No space left on device" >&2; exit 1'
    refused("does not start there: exit status 1: cat: write error: No space left on device", full)
    refused("does not start there: exit status 126", script "exit 126")
    refused("ends there too early: signal 9", script '"$@" | head -n 3; kill -9 $$')
    refused("prints no facts of a CPU", script "echo lookupc-device 1; echo end")
    refused("does not start there: exit status 127", "/nowhere/runner")
    local two = { "verify", tiny, "--threads", "2", "--runner", "env" }
    program.refuses(2, "--threads: 2: must be 1 beside --runner", two)
    if can_emulate() then
        local other = script 'exec qemu-riscv64-static "$@"'
        refused("does not start there: exit status", other, "--cc", "aarch64-linux-gnu-gcc")
    end
end

local function tune_firmware(place, ...)
    local words = { "tune", tiny, "-o", place.tuned, "--profile", "firmware", "--choices", "few.group" }
    return program.run(compilers.joined(words, { "--time", "40s", ... }), { env = place.env })
end

-- Whether firmware for Cortex-M7 can be made and run; says so if not.
local function can_count()
    local works = "command -v arm-none-eabi-gcc && command -v qemu-system-arm"
    if assert(process.run { "sh", "-c", works }).status == 0 then return true end
    host.print "skipped: Cortex-M: arm-none-eabi-gcc or qemu-system-arm is missing"
    return false
end

function test.firmware_is_tuned_by_its_instructions()
    if not can_count() then return end
    local place = program.tuning_place()
    local result = tune_firmware(place, "--target", "cortex-m7")
    if result.status ~= 0 then error(result.errors, 0) end
    check.matches(result.output, "counted: instructions a token in QEMU, which are no time")
    local counts, flags = {}, {}
    for _, r in ipairs((log.read(place.log))) do
        check.equal(r.key.arch, "cortex-m7 in QEMU, counted in instructions")
        flags[r.key.flags:match "%-O%w"] = true
        local name = r.cc .. r.candidate
        for _, us in ipairs(r.samples_us or {}) do -- the clock of the board takes 40 instructions
            check.near(us, counts[name] or us, 0.2)
            counts[name] = us
        end
    end
    check.equal(flags, { ["-O2"] = true, ["-Os"] = true })
    local tuned = assert(host.read(place.tuned))
    check.matches(tuned, 'arch = "cortex%-m7 in QEMU, counted in instructions"')
    check.matches(tuned, 'compiler = "[^"]+ %-O[2s]"')
    local weights = place.folder .. "/weights.safetensors"
    program.works { "sample", tiny, "-o", weights }
    local emit = { "emit", tiny, "--profile", "firmware", "--target", "cortex-m7", "--without-misra" }
    local files = { "-o", place.folder .. "/bundle", "--weights", weights, "--tuned", place.tuned }
    check.equal(program.run(compilers.joined(emit, files)).status, 0)
end

-- Cortex-M55 has an instruction set of its own, which only tuned files of firmware name.
function test.firmware_of_helium_is_tuned()
    if not effort.full "devices" or not can_count() then return end
    local place = program.tuning_place()
    local result = tune_firmware(place, "--target", "cortex-m55")
    if result.status ~= 0 then error(result.errors, 0) end
    check.matches(assert(host.read(place.tuned)), "mve = {")
    local figures = { "plan", tiny, "--profile", "firmware", "--target", "cortex-m55", "--tuned", place.tuned }
    check.equal(program.run(figures).status, 0)
end

-- A board, here QEMU behind a script: its own start-up code and linker script, and clocks.
function test.firmware_is_tuned_on_a_board()
    if not effort.full "devices" or not can_count() then return end
    local place = program.tuning_place()
    local qemu = "qemu-system-arm -machine mps2-an500 -semihosting-config enable=on,target=native -nographic "
        .. '-monitor none -serial none -icount shift=0 -kernel "$1" 2>&1'
    local link = "-nostartfiles -nostdlib harness/device/cortex_m.c -T harness/device/cortex_m.ld "
        .. "-Wl,--defsym=board_flash=0 -Wl,--defsym=board_flash_bytes=4M "
        .. "-Wl,--defsym=board_ram=0x20000000 -Wl,--defsym=board_ram_bytes=4M"
    local result = tune_firmware(place, "--target", "cortex-m7", "--runner", script(qemu), "--link", link)
    if result.status ~= 0 then error(result.errors, 0) end
    check.matches(result.output, "counted: clocks a token")
    check.equal(log.read(place.log)[1].key.arch, "cortex-m7 counted in clocks")
    place = program.tuning_place()
    local lost = script 'echo "probe is not connected" >&2; exit 1'
    result = tune_firmware(place, "--target", "cortex-m7", "--runner", lost, "--link", link)
    check.equal(result.status, 1)
    check.matches(result.errors, "does not start there: exit status 1: probe is not connected\n$")
    result = tune_firmware(place, "--target", "cortex-m7", "--runner", lost, "--link", "-T none.ld")
    check.matches(result.errors, "linking a program for the device: [^\n]*none.ld[^\n]*\n$")
end

function test.options_of_firmware_are_checked()
    local function refused(fragment, ...)
        program.refuses(2, fragment, { "tune", tiny, "--profile", "firmware", ... })
    end
    refused("--profile: firmware: needs --target")
    refused("--link: is missing: --runner of firmware needs it", "--target", "cortex-m7", "--runner", "env")
    refused("QEMU has no board that counts: give --runner and --link", "--target", "aarch64")
    refused("integers have one schedule: there is nothing to tune", "--target", "cortex-m0plus")
    refused("cannot be given beside --isa", "--target", "cortex-m7", "--isa", "scalar")
end

-- Runs `count` programs, then the connection is lost.
local function losing(count)
    local counter = program.folder() .. "/count"
    return script(
        string.format(
            'echo x >>%s; if [ "$(wc -l <%s)" -gt %d ]; then echo "Connection closed" >&2; exit 255; fi; exec "$@"',
            counter,
            counter,
            count
        )
    )
end

function test.after_a_lost_connection_a_tuning_goes_on()
    local place = program.tuning_place()
    local words = { "--isa", "scalar", "--cflags", "-O0", "--time", "30s", "--runner" }
    local result = tune(place, with({ losing(11) }, table.unpack(words)))
    check.equal(result.status, 1)
    local fragment = "exit status 255: Connection closed; what was measured is in "
    local last = result.errors:match "([^\n]*)\n$"
    check.equal({ last:find(fragment, 1, true) ~= nil, last:find("--resume goes on", 1, true) ~= nil }, { true, true })
    local kept = #log.read(place.log)
    check.equal(kept > 0, true)
    result = tune(place, with({ "env", "--resume" }, table.unpack(words)))
    check.equal(result.status == 0 or result.status == 3, true)
    local records, runs = log.read(place.log), {}
    for _, r in ipairs(records) do
        runs[r.run] = true
    end
    check.equal({ #records > kept, next(runs, (next(runs))) }, { true })
end

function test.the_runner_for_ssh_sends_a_program_once()
    local folder = program.folder()
    local there, fake = folder .. "/there", folder .. "/bin"
    -- the other machine is this one
    local stands_in = '#!/bin/sh\nshift 3\necho "$*" >>' .. folder .. '/said\nexec sh -c "$*"\n'
    assert(host.write_directory(fake, { ssh = stands_in }))
    assert(process.run { "sh", "-c", 'chmod +x "$0/ssh"; mkdir "$1"', fake, there })
    local env = { PATH = fake .. ":" .. process.variable "PATH", RUNNER_FOLDER = there }
    local runner = program.root .. "/examples/runners/ssh me@there"
    local words = { "verify", tiny, "--isa", "scalar", "--cflags", "-O0", "--json", "--runner", runner }
    local found = assert(json.decode(program.works(words, { env = env })))
    check.equal({ found.ok, #found.results }, { true, 2 })
    check.equal(#host.list(there), 1) -- the last program; others made room for it
    local _, sent = assert(host.read(folder .. "/said")):gsub("cat >", "")
    check.equal(sent, 2) -- the one that asks for the CPU, and that of the checks
end

return test
