-- The dense FFNs that a LookupFFN is timed beside: which there are, which of them are of its type, and the fastest.
local dtype = require "gen.plan.dtype"
local json = require "json"
local misuse = require "gen.schema.misuse"
local statistics = require "harness.base.statistics"

local rivals = {}

-- Of harness/measure/baselines.c, widest first: the library and the type of both factors of its products.
rivals.list = {
    { library = "openblas", type = "f32" },
    { library = "onednn", type = "f32" },
    { library = "onednn", type = "bf16" },
    { library = "onednn", type = "i8" },
}

local function bytes_of(type) return dtype.get(type).bytes end

-- How the measuring process calls a row.
function rivals.name(row) return row.library .. "/" .. row.type end

-- Adds to `job` the dense FFNs of `rows` at all batches. They take tokens of the memory "uniform", and those of one
-- process have the same weights. The job says d, baseline_hidden, d_out.
function rivals.add_dense(job, rows)
    for _, row in ipairs(rows) do
        for _, batch in ipairs(job.batches) do
            local step = { baseline = "dense", library = row.library, type = row.type, x = "uniform", y = "y" }
            step.d, step.hidden, step.d_out, step.seed = job.d, job.baseline_hidden, job.d_out, job.seed + 1
            step.batch, step.threads = batch, job.threads
            local name = "dense/" .. rivals.name(row) .. "/" .. batch
            table.insert(job.calls, { name = name, threads = job.threads, tokens = batch, steps = { step } })
        end
    end
end

-- What a library ran as the call `name`, in its own words, as the measuring process noted it.
function rivals.implementation(context, name) return context["implementation/" .. name] end

-- How people call what a library `name` ran, "onednn amx_int8" for its "brgemm:avx512_core_amx_int8"; nil: no library.
function rivals.through(name, implementation)
    if not name or not implementation then return name end
    local engine = implementation:gsub("brgemm:", ""):gsub("x64:", ""):gsub(":jit", "")
    return name .. " " .. engine:gsub("avx512_core_amx", "amx"):gsub("avx512_core", "avx512")
end

-- How people call `rival`, nil: there is none, or nobody noted which.
function rivals.words(rival)
    return rival and rival.library and rival.type
        and rivals.through(rival.library .. " " .. rival.type, rival.implementation)
end

-- The rows with the type `type` or a wider one: who takes rounding to `type` may take what rounds less.
function rivals.as_wide_as(type)
    local rows = {}
    for _, row in ipairs(rivals.list) do
        if bytes_of(row.type) >= bytes_of(type) then rows[#rows + 1] = row end
    end
    return rows
end

-- The type of a dense FFN for a LookupFFN with these rows of gen/plan/dtype.lua: as narrow as the narrower of the two.
function rivals.same_type(projection, tables)
    local bytes = math.min(projection.bytes, tables.bytes)
    for _, row in ipairs(rivals.list) do
        if bytes_of(row.type) <= bytes then return row.type end
    end
    return rivals.list[#rivals.list].type
end

-- The words of the option --rivals as a set.
function rivals.select(text)
    local kinds = {}
    for word in text:gmatch "[^,]+" do
        if kinds[word] then misuse(string.format('--rivals: "%s": given twice', word)) end
        kinds[word] = true
    end
    return kinds
end

-- The fastest of `rows` at `batch` tokens by the clock "cpu" or "wall": the median µs of a call and its row; nil if
-- none of them was timed.
function rivals.fastest(samples, rows, batch, clock)
    local best, fastest
    for _, row in ipairs(rows) do
        local time = statistics.of(samples, "dense/" .. rivals.name(row) .. "/" .. batch, clock)
        if time and (not best or time < best) then
            best, fastest = time, row
        end
    end
    return best, fastest
end

-- Those of `rows` that were timed, beside our own `us` a token; found(row): its µs a token, nil: some have no such
-- products for this CPU, and its name for the measuring process, whose `context` has its error.
function rivals.beside(rows, us, context, found)
    local list = json.array {}
    for _, row in ipairs(rows) do
        local time, name = found(row)
        if time then
            list[#list + 1] = {
                library = row.library,
                type = row.type,
                us_per_token = time,
                speedup = time / us,
                rel_err = assert(tonumber(context[name])),
                implementation = rivals.implementation(context, name),
            }
        end
    end
    return list
end

-- The fastest of such a list with the type `type` or a wider one, nil: there is none.
function rivals.fastest_of(list, type)
    local best
    for _, rival in ipairs(list) do
        if bytes_of(rival.type) >= bytes_of(type) and (not best or rival.us_per_token < best.us_per_token) then
            best = rival
        end
    end
    return best
end

-- What is to be said of the narrow types of results on this host, nil: nothing.
function rivals.note(facts, results)
    local wanted = {}
    for _, r in ipairs(results) do
        if r.same_type then wanted[r.same_type] = true end
    end
    local notes = {}
    for _, row in ipairs(rivals.list) do
        local how = facts["onednn_" .. row.type]
        if wanted[row.type] and how == "none" then
            notes[#notes + 1] = row.type .. ": oneDNN has no such products for this CPU."
        elseif wanted[row.type] and how == "emulated" then
            notes[#notes + 1] = row.type .. ": this CPU has no such products, oneDNN emulates them."
        elseif wanted[row.type] and how == "7-bit weights" then
            notes[#notes + 1] = row.type .. ": without VNNI weights have 7 bits, so that no sum overflows."
        end
    end
    if facts.openblas and facts.isa[#facts.isa] == "scalar" then -- behind a mask: harness/measure/measure.lua
        notes[#notes + 1] = "OpenBLAS ran as " .. facts.openblas .. ", with SSE3, oneDNN with SSE4.1: neither has less."
    end
    return #notes > 0 and table.concat(notes, " ") or nil
end

return rivals
