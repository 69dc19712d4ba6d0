-- Times models, verified, in the measuring process: blocks alone as bench_blocks.lua says, whole models as
-- bench_whole.lua does.
--
-- Such a kind has
--   title                  of the page, behind the model's name
--   batches(m, options)    tokens a call, unless --batch says others
--   start(path, m, options)   what is timed, `run`; raises one line for options that cannot be: results, lists that
--                          --json prints, by key; threads; and what the functions below need
--   made(run, isa, options)   the model with types and choices of `options`, compiled and verified: { plan, … }
--   job(run, made, options)   fields of the measuring process' job
--   add(run, made, samples, context, options)   appends the results of a job
--   head(run, setting)     the first line; tables(printed): of what --json prints; notes(run): what stands below
local bench_blocks = require "harness.families.model.bench_blocks"
local bench_report = require "harness.report.bench_report"
local bench_whole = require "harness.families.model.bench_whole"
local combinations = require "harness.measure.combinations"
local compile = require "harness.base.compile"
local cpu = require "harness.base.cpu"
local execute = require "harness.families.model.execute"
local measure = require "harness.measure.measure"
local request = require "gen.request.request"
local setting = require "harness.measure.setting"

local bench = {}

function bench.batches(m, options) return (m.embedding and bench_whole or bench_blocks).batches(m, options) end

-- Times the model of the file `path` with weights of each of the types that are asked for; the family's `bench`.
function bench.run(path, options)
    local m, facts = request.model(path, options), cpu.describe()
    local kind = m.embedding and bench_whole or bench_blocks
    local run = kind.start(path, m, options)
    local printed = run.printed
    for _, own in ipairs(combinations.of_blocks(options)) do
        for _, isa in ipairs(execute.timed_sets(m, own)) do
            local made = kind.made(run, isa, own)
            local job = kind.job(run, made, own)
            local flags = compile.threaded(made.plan, options.cflags, options.threads or 1)
            job.model = table.concat({ m.name, isa.name, own.words }, "/")
            job.seed, job.repetitions = own.seed, own.repetitions
            if options.raw_file then
                job.host = setting.host_facts(facts, isa, options.cc, flags, {})
                job.host["schedule of " .. isa.name] = made.plan.variants[1].schedule_text
            end
            local how = { show_stderr = true, raw = options.raw_file, device = options.device }
            local samples, context = measure.run(job, how)
            if not samples then return nil end
            printed.host = printed.host or setting.host_facts(facts, isa, options.cc, flags, context)
            kind.add(run, made, samples, context, own)
        end
    end
    return bench_report.of_tables {
        title = m.name .. kind.title,
        head = kind.head(run, bench_report.setting(printed.host, options.cflags, run.threads)),
        tables = kind.tables(printed),
        notes = kind.notes(run),
        host = printed.host,
        threads = run.threads,
        json = printed,
    }
end

return bench
