-- What is measured, and on what: token counts and repetitions of the command line, this CPU, its caches and limits.
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local host = require "host"
local json = require "json"
local misuse = require "gen.schema.misuse"
local process = require "process"

local setting = {}

-- Raises one line for an option that cannot be measured with.
function setting.check_repetitions(repetitions)
    if repetitions < 1 or repetitions > 1000 then
        misuse("--repetitions: " .. repetitions .. ": must be an integer from 1 to 1000")
    end
end

-- The seconds that a sample takes at least. One alone is for a glance: it is as short as those of limits then.
function setting.min_time(repetitions) return repetitions > 1 and 0.05 or 0.01 end

-- The job `job`, which says at least model, seed and repetitions, with what else all jobs say: by default one thread,
-- an order that is drawn anew in each repetition, and no calls.
function setting.complete(job)
    local usual = {
        threads = 1,
        min_time = setting.min_time(job.repetitions),
        slices = 0,
        order_seed = job.seed,
        sweep_bytes = 0,
        memory = {},
        libraries = {},
        setup = {},
        calls = {},
    }
    for key, value in pairs(usual) do
        if job[key] == nil then job[key] = value end
    end
    return job
end

local golden = 0.5 * (math.sqrt(5) - 1) -- whose multiples are spread evenly

-- The place at which the `number`-th row of calls begins. Rows begin far apart: else one would leave in the caches what
-- the next one reads.
function setting.first_place(row, number) return math.floor(number * golden % 1 * (row.places or 1)) end

-- The row `name` of a compiled library in a job: `of` has its path, the blob that `bind` binds, and the bytes of the
-- weights.
function setting.library(name, of)
    return {
        name = name,
        library = of.library,
        blob = of.blob,
        bind = of.bind,
        weights_struct_bytes = of.weights_struct_bytes,
    }
end

-- The memory `name` of a job for a device, which holds `bytes` from the beginning and is not written to.
function setting.linked(name, bytes)
    local path = process.temporary_directory() .. "/linked"
    assert(host.write_file(path, bytes))
    return { name = name, bytes = #bytes, fill = "linked", file = path }
end

-- The token counts of --batch; raises one line for what cannot be measured.
function setting.batches(text)
    local list = {}
    for word in (text .. ","):gmatch("([^,]*),") do
        local batch = word:find("^%d+$") and math.tointeger(tonumber(word))
        if not batch or batch < 1 or batch > 65536 then
            misuse('--batch: "' .. word .. '": must be integers from 1 to 65536, separated by commas')
        end
        list[#list + 1] = batch
    end
    return list
end

-- Tokens a call that are timed of blocks unless others are asked for: one, and many, `most` at most.
function setting.one_and_many(most) return most > 1 and "1," .. math.min(512, most) or "1" end

-- Bytes of the caches. What CPUID does not tell is taken to be of a common size; without L3, memory comes after L2.
function setting.caches_of(facts)
    local l2 = facts.l2 or 1 << 20
    return { l1d = facts.l1d or 32 << 10, l2 = l2, l3 = facts.l3 or l2 }
end

-- When, on what and with what the figures were measured: this CPU, the compiler with the flags of the instruction set
-- `isa`, the baselines.
function setting.host_facts(facts, isa, cc, cflags, context)
    return {
        date = process.date(),
        cpu = facts.model,
        isa = json.array(facts.isa),
        compiler = compilers.version(cc),
        flags = table.concat(compile.flags(isa, cflags), " "),
        l1d = facts.l1d,
        l2 = facts.l2,
        l3 = facts.l3,
        openblas = context.openblas_corename,
        onednn = context.onednn_version,
        onednn_bf16 = context.onednn_bf16,
        onednn_i8 = context.onednn_i8,
    }
end

return setting
