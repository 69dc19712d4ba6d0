-- Times verified variants in the measuring process and reports them beside the best dense FFN of the same run.
local compile = require "harness.compile"
local cost = require "gen.cost"
local cpu = require "cpu"
local host = require "host"
local json = require "json"
local plan = require "gen.plan"
local process = require "process"
local report = require "harness.report"

local function median(list)
    if #list == 0 then return nil end
    table.sort(list)
    local middle = #list // 2
    if #list % 2 == 1 then return list[middle + 1] end
    return (list[middle] + list[middle + 1]) / 2
end

local bench = {}

-- The token counts of --batch; raises one line for what cannot be measured.
function bench.batches(options)
    if options.repetitions < 1 or options.repetitions > 1000 then error("--repetitions: " .. options.repetitions .. ": must be an integer from 1 to 1000", 0) end
    local list = {}
    for word in (options.batch .. ","):gmatch("([^,]*),") do
        local batch = word:find("^%d+$") and math.tointeger(tonumber(word))
        if not batch or batch < 1 or batch > 65536 then error('--batch: "' .. word .. '": must be integers from 1 to 65536, separated by commas', 0) end
        list[#list + 1] = batch
    end
    return list
end

-- Raises one line for a page that cannot be written, before anything is measured.
function bench.check_page(path)
    local folder = path:match("^(.*/)[^/]*$") or "."
    if host.kind(folder) ~= "directory" then error(string.format('--html: "%s": there is no folder %s', path, folder), 0) end
    if path:find("/$") or path == "" or host.kind(path) == "directory" then error('--html: "' .. path .. '": must be a file', 0) end
end

-- Bytes of the caches. What CPUID does not tell is taken to be of a common size; without L3, memory comes after L2.
local function caches_of(facts)
    local l2 = facts.l2 or 1 << 20
    return { l1d = facts.l1d or 32 << 10, l2 = l2, l3 = facts.l3 or l2 }
end

local limit_names = { "fma_gflops", "l1_gbytes", "l2_gbytes", "l3_gbytes", "memory_gbytes", "random_rows_gbytes" }

-- The limits of this core as the measuring process found them.
local function limits_of(context)
    local limits = {}
    for _, name in ipairs(limit_names) do limits[name] = assert(tonumber(context[name])) end
    return limits
end

-- OpenBLAS takes the plainest kernels for a CPU younger than itself: name the best ones this CPU can run. On AMD's
-- Zen 4 the Haswell kernels are the fastest at every batch (8 tokens: 86 against 148 us a token, d = 512).
local function openblas_coretype(facts)
    local can = {}
    for _, name in ipairs(facts.isa) do can[name] = true end
    return can.avx2 and facts.model:find("AMD", 1, true) and "Haswell" or can.avx512 and "SkylakeX" or can.avx2 and "Haswell" or nil
end

-- The samples of Google Benchmark's output by name: { cpu = {µs}, share = {CPU time over wall time} }.
local function samples_of(text, path)
    local output = json.decode(text)
    if not output or type(output.benchmarks) ~= "table" then error(path .. ": not the output of the measuring process", 0) end
    local units, samples = { ns = 1e-3, us = 1, ms = 1e3, s = 1e6 }, {}
    for _, entry in ipairs(output.benchmarks) do
        if entry.run_type == "iteration" then
            local sample = samples[entry.run_name] or { cpu = {}, share = {} }
            samples[entry.run_name] = sample
            sample.cpu[#sample.cpu + 1] = entry.cpu_time * units[entry.time_unit]
            sample.share[#sample.share + 1] = entry.cpu_time / entry.real_time
        end
    end
    return samples, output.context
end

-- One result for every variant and batch, from the medians of the samples.
local function results_of(p, job, samples, checked, limits)
    local results, caches = {}, { l1d = job.sizes.l1d, l2 = job.sizes.l2, l3 = job.sizes.l3 }
    local function time(name)
        local sample = samples[name]
        return sample and median(sample.cpu)
    end
    for _, v in ipairs(p.variants) do
        for _, batch in ipairs(job.batches) do
            local regime = v.few and batch <= v.few.threshold and "few" or "many"
            local name = v.isa.name .. "_" .. regime .. "/" .. batch
            local best, library
            for _, dense in ipairs(job.dense) do
                local t = time("dense/" .. dense .. "/" .. batch)
                if t and (not best or t < best) then best, library = t, dense end
            end
            local ffn, project, gather = time("ffn/" .. name), time("project/" .. name), time("gather/" .. name)
            local again = time("ffn_again/" .. name)
            local work = plan.work(p, v, regime == "few", batch)
            local limit_us = cost.limit(work, limits, caches)
            results[#results + 1] = {
                model = p.model.name, batch = batch, threads = 1, isa = v.isa.name, regime = regime, schedule = v.schedule_text,
                table_dtype = p.tables.name, projection_dtype = p.projection.name,
                us_per_token = ffn / batch, stages = { project = project / batch, gather = gather / batch },
                dense_us_per_token = best / batch, dense_library = library, speedup = best / ffn,
                gflops = p.mflop.folded * 1e3 * batch / ffn, project_gflops = p.mflop.projection * 1e3 * batch / project,
                limit_us = limit_us, limit_share = limit_us * batch / ffn,
                flop_per_byte = { project = work.projection_flops * math.min(work.pass, batch) / work.projection_bytes, gather = 2 * p.shape.h * p.shape.d_out / work.row_bytes },
                gather_gbytes = p.shape.h * p.shape.d_out * p.tables.bytes * 1e-3 * batch / gather,
                again_ratio = again and again / ffn, cpu_over_wall = median(samples["ffn/" .. name].share),
                rel_err = checked[v.isa.name .. "_" .. regime].rel_err, max_abs_err = checked[v.isa.name .. "_" .. regime].max_abs_err,
                code_flips = checked[v.isa.name .. "_" .. regime].code_flips,
            }
        end
    end
    return results
end

local function print_table(host_facts, cflags, limits, results)
    local lines = { string.format("%s on %s, %s %s, one thread, float32, projection in %s, tables in %s", results[1].model, host_facts.cpu, host_facts.compiler, cflags,
        results[1].projection_dtype, results[1].table_dtype) }
    lines[#lines + 1] = string.format("%-7s %6s %9s %8s %8s %8s %9s %-9s %8s %8s %7s", "isa", "tokens", "us/token", "project", "gather", "of limit", "dense FFN", "library", "x faster", "GFLOP/s", "GB/s")
    local contended
    for _, r in ipairs(results) do
        local mark = r.cpu_over_wall < 0.97
        contended = contended or mark
        lines[#lines + 1] = string.format("%-7s %6d %9.2f %8.2f %8.2f %6.0f %% %9.2f %-9s %8.2f %8.1f %7.1f%s", r.isa, r.batch, r.us_per_token, r.stages.project,
            r.stages.gather, 100 * r.limit_share, r.dense_us_per_token, r.dense_library, r.speedup, r.project_gflops, r.gather_gbytes, mark and " *" or "")
    end
    lines[#lines + 1] = "us/token: medians of interleaved CPU times. GFLOP/s: projection and hash. GB/s: table rows read by the gather."
    lines[#lines + 1] = string.format("of limit: least time by this core's limits (FMA %.0f GFLOP/s; reading L1 %.0f, L2 %.0f, L3 %.0f, memory %.0f, random rows %.0f GB/s) over us/token.",
        limits.fma_gflops, limits.l1_gbytes, limits.l2_gbytes, limits.l3_gbytes, limits.memory_gbytes, limits.random_rows_gbytes)
    for _, r in ipairs(results) do
        if r.again_ratio then lines[#lines + 1] = string.format("A/A control: the same %s kernel at %d tokens measured twice differs by %.1f %%.", r.isa, r.batch, math.abs(r.again_ratio - 1) * 100) end
    end
    if contended then lines[#lines + 1] = "* CPU time below 97 % of wall time: the core was shared, this line does not count." end
    host.print(table.concat(lines, "\n"))
end

-- Times plan `p`, compiled into `library` and bound to `blob`; `checked` are its verification results.
function bench.run(p, directory, blob, library, checked, options)
    local facts = cpu.describe()
    local job = {
        model = p.model.name, blob = blob, d = p.shape.d, d_out = p.shape.d_out, h = p.shape.h, tau = p.shape.tau, dense_hidden = p.dense_hidden,
        seed = options.seed, batches = options.batches, repetitions = options.repetitions, min_time = 0.05,
        dense = { "openblas", "onednn" }, variants = {}, sizes = caches_of(facts),
    }
    job.sizes.row, job.sizes.table = p.table_bytes // (p.shape.h * p.shape.rows), p.table_bytes
    for _, v in ipairs(p.variants) do
        local threshold = v.few and v.few.threshold or 0
        local function add(regime, least, most)
            local variant = compile.describe(p, v, library, regime)
            variant.name, variant.least_batch, variant.most_batch = v.isa.name .. "_" .. regime, least, most
            job.variants[#job.variants + 1] = variant
        end
        if threshold > 0 then add("few", 1, threshold) end
        add("many", threshold + 1, 1 << 20)
    end
    local by_name = {}
    for _, result in ipairs(checked) do by_name[result.isa .. "_" .. result.regime] = result end
    local job_path, output_path = directory .. "/job.json", directory .. "/measured.json"
    assert(host.write_file(job_path, assert(json.encode(job))))
    local measure = process.executable():gsub("[^/]*$", "lookupc-measure")
    local result = assert(process.run({ measure, job_path, output_path }, {
        show_stderr = true, env = { OPENBLAS_CORETYPE = openblas_coretype(facts), OPENBLAS_NUM_THREADS = "1", OMP_NUM_THREADS = "1" },
    }))
    if result.signal then error("the measuring process ended by signal " .. result.signal, 0) end
    if result.status ~= 0 then return 1 end -- it has said why
    local samples, context = samples_of(assert(host.read(output_path)), output_path)
    local limits = limits_of(context)
    local results = results_of(p, job, samples, by_name, limits)
    local host_facts = { cpu = facts.model, isa = json.array(facts.isa), compiler = compile.version(options.cc), flags = table.concat(compile.flags(p.variants[#p.variants].isa, options.cflags), " "),
        l1d = facts.l1d, l2 = facts.l2, l3 = facts.l3, openblas = context.openblas_corename, onednn = context.onednn_version }
    if options.json then
        host.print(assert(json.encode { host = host_facts, limits = limits, results = json.array(results) }))
    else
        print_table(host_facts, options.cflags, limits, results)
    end
    if options.html then assert(host.write_file(options.html, report.page(host_facts, limits, results))) end
    return 0
end

return bench
