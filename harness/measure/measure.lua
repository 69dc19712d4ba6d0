-- Runs the measuring process with a job (harness/measure/prepare.lua and rounds.lua say of what), and reads what it
-- found.
local cpu = require "harness.base.cpu"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local locks = require "store"
local one_of = require "gen.schema.one_of"
local process = require "process"
local rounds = require "harness.measure.rounds"
local setting = require "harness.measure.setting"

local measure = {}

-- What the libraries know CPUs of x86 as that have an instruction set and no better one: OpenBLAS' kernels, and the
-- most that oneDNN may use. Of portable C, what is nearest: neither has less.
local libraries = {
    scalar = { "Prescott", "SSE41" },
    sse4 = { "Penryn", "SSE41" },
    avx2 = { "Haswell", "AVX2" },
    avx_vnni = { "Haswell", "AVX2_VNNI" },
    avx512 = { "SkylakeX", "AVX512_CORE" },
    avx512_bf16 = { "SkylakeX", "AVX512_CORE_BF16" },
    amx_int8 = { "SkylakeX", "AVX512_CORE_AMX" },
    amx_bf16 = { "SkylakeX", "AVX512_CORE_AMX" },
}

-- What the libraries read in their environment. OpenBLAS takes the plainest kernels for a CPU younger than itself: name
-- the best ones this CPU can run. On AMD's Zen 4 the Haswell kernels are the fastest at every batch (8 tokens: 86
-- against 148 us a token, d = 512). oneDNN knows the CPU itself, but not a mask. Raises one line for one of AArch64,
-- whose libraries cannot be masked.
local function environment(facts)
    local best = facts.isa[#facts.isa]
    local row = facts.architecture == "x86_64" and libraries[best]
    if facts.mask and not row then error("LOOKUPC_CPU: bench and tune cannot mask OpenBLAS and oneDNN here", 0) end
    local slower = row and row[1] == "SkylakeX" and facts.vendor == "AuthenticAMD"
    local known = row and (facts.mask or one_of.contains(facts.isa, "avx2")) -- of older ones OpenBLAS chooses right
    return {
        OPENBLAS_CORETYPE = known and (slower and "Haswell" or row[1]) or nil,
        ONEDNN_MAX_CPU_ISA = facts.mask and row[2],
    }
end

-- The samples of the output by name (rounds.by_name), and its context.
local function samples_of(text, path)
    local output = json.decode(text)
    if not output or type(output.samples) ~= "table" then
        error(path .. ": not the output of the measuring process", 0)
    end
    return rounds.by_name(output.samples), output.context
end

-- Where processes of one machine agree on who measures: in memory of its own, not in a folder that several machines may
-- share.
local turnstile = "/tmp/lookupc-measuring"

-- Waits until no other lookupc of this machine measures, or until the time `stop` of the clock, if any. Returns a lock
-- to be closed, or nil where there can be none.
local function alone(stop)
    while not stop or process.clock() < stop do
        local lock, message = locks.lock(turnstile, "exclusive")
        if lock or not message:find("in use", 1, true) then return lock end
        host.status "waiting for another lookupc that measures on this machine"
    end
end

local held -- the path of the measuring process, once it is known

-- The path of the measuring process: of the one beside this program when it is first asked for, though both may be
-- built again before it is run. Raises one line if it is not there, as in a build without LOOKUPC_BENCH, or if there is
-- no way to tell it where the temporary files are.
function measure.program()
    local directory = process.temporary_directory()
    if not utf8.len(directory) then
        error("TMPDIR: " .. directory:gsub("/[^/]*/[^/]*$", "") .. ": must be UTF-8: bench and tune need it", 0)
    end
    local path = process.beside "lookupc-measure"
    if not held and host.kind(path) == "file" then held = assert(process.held(path)) end
    if held then return held end
    error(path .. ": is missing: bench and tune need it; build lookupc with cmake -DLOOKUPC_BENCH=ON", 0)
end

-- The samples by name and the context of the output. options: left, the seconds after which nil is returned instead,
-- those of waiting included; show_stderr: the process shows its progress and, if it fails, why, and nil is returned;
-- raw: where all samples also go (harness/measure/raw.lua), with the facts of job.host; device: where it is measured
-- instead (harness/device/device.lua). All else raises one line.
function measure.run(job, options)
    if options.device then return options.device:measure(job, options) end
    local facts = cpu.describe()
    local env = environment(facts)
    local stop = options.left and process.clock() + options.left
    local directory = process.temporary_directory()
    job.vector_bytes = math.max(16, 4 * isa.get(facts.isa[#facts.isa]).lanes)
    local job_path, output_path = directory .. "/job.json", directory .. "/measured.json"
    job.raw = options.raw and directory .. "/raw.json"
    assert(host.write_file(job_path, assert(json.encode(setting.complete(job)))))
    local program = measure.program()
    env.OPENBLAS_NUM_THREADS = tostring(job.library_threads or job.threads)
    env.OMP_NUM_THREADS = env.OPENBLAS_NUM_THREADS
    local _ <close> = alone(stop)
    local left = stop and stop - process.clock()
    if left and left <= 0 then return nil end
    local result = assert(process.run({ program, tostring(process.id()), host.tree or "", job_path, output_path }, {
        show_stderr = options.show_stderr,
        timeout = left,
        env = env,
    }))
    if result.timed_out then return nil end
    if result.signal then error("the measuring process ended by signal " .. result.signal, 0) end
    if result.status ~= 0 and options.show_stderr then return nil end -- it has said why
    if result.status ~= 0 then
        error((result.output:match "[^\n]+" or "the measuring process failed"):gsub("^lookupc: ", ""), 0)
    end
    if job.raw then options.raw:add(assert(host.read(job.raw))) end
    return samples_of(assert(host.read(output_path)), output_path)
end

return measure
