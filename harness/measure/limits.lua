-- What this core can do at most, as rows of a job: the best of their repetitions is a limit, from which bench computes
-- shares.
local limits = {}

local operations = 12 << 18 -- of a call: many, so that it costs nothing
local enough = 16 << 20 -- likewise, bytes that a call reads
local least_memory, most_memory = 64 << 20, 1 << 30
local line, most_ahead = 64, 256

-- How to prefetch rows, if at all, differs from core to core: 0 to 128 KiB ahead, into L2, or in strips all rows of a
-- token, or as many as a core has lines under way.
local ways = {
    { "rows", bytes = 0 },
    { "rows", bytes = 8 << 10 },
    { "rows", bytes = 16 << 10 },
    { "rows", bytes = 32 << 10 },
    { "rows", bytes = 64 << 10 },
    { "rows", bytes = 128 << 10 },
    { "strips", rows = 128 },
    { "strips", rows = 16 },
}

-- Between two sizes, as many times the one as the other is of it: too large for the smaller cache, with room in the
-- larger one.
local function between(small, large)
    local middle = small
    while middle < large // middle * small do
        middle = 2 * middle
    end
    return middle
end

local function add(job, name, work, called, ...)
    local step = { ["function"] = called, arguments = { ... } }
    local row = { name = "limit/" .. name .. "/" .. #job.calls, limit = name, work = work, steps = { step } }
    table.insert(job.calls, row)
end

-- Adds to `job` the calls of the limits fma_gflops, l1_gbytes, l2_gbytes, l3_gbytes and memory_gbytes, and of reading
-- rows in any order under the names of `tables`: { name, row, table }, tables of `table` bytes with rows of `row`
-- bytes. caches: bytes of l1d, l2, l3.
function limits.add(job, caches, tables)
    -- Twice L3, so that nothing is left of it when it is read again.
    local streamed = math.max(least_memory, math.min(2 * caches.l3, most_memory))
    local memory = { name = "limits", bytes = streamed, large = true } -- large memory is written: zeros
    table.insert(job.memory, memory)
    add(job, "fma_gflops", operations, "fma", operations)
    local function stream(name, bytes)
        local times = -(-enough // bytes)
        add(job, name, bytes * times, "stream", "limits", bytes, times)
    end
    stream("l1_gbytes", caches.l1d // 2)
    stream("l2_gbytes", caches.l2 // 2)
    stream("l3_gbytes", between(caches.l2, caches.l3))
    stream("memory_gbytes", streamed)
    for _, of in ipairs(tables) do
        local row = -(-of.row // line) * line
        local most = most_memory // row -- of large tables a part shows the same
        local count = math.max(1, math.min(of.table // of.row, most))
        local order = "order of " .. of.name
        memory.bytes = math.max(memory.bytes, count * row)
        local again = math.min(most_ahead, count)
        table.insert(job.memory, { name = order, bytes = 4 * (count + again), fill = "order", number = again })
        for _, way in ipairs(ways) do
            local distance = way.rows or math.min(way.bytes // row, again)
            add(job, of.name, count * of.row, way[1], "limits", row, order, count, distance)
        end
    end
end

-- The limits by name, in 10^9 operations or bytes a second, of the samples of `job`.
function limits.of(job, samples)
    local found = {}
    for _, row in ipairs(job.calls) do
        if row.limit then
            local rate = row.work * 1e-3 / math.min(table.unpack(samples[row.name].cpu))
            found[row.limit] = math.max(found[row.limit] or 0, rate)
        end
    end
    return found
end

return limits
