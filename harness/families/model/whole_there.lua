-- Whole models on a device: the steps that call them, and their memory, as verify_there.lua wants them.
local compiled = require "compiled"
local compiled_model = require "harness.calls.compiled_model"
local host = require "host"
local process = require "process"
local whole_model = require "harness.calls.whole_model"

local whole_there = {}

-- The steps of `calls` of a model, `job` of compiled_model.lua and the library `name` of the job, all of whose ids are
-- in the memory "ids"; bytes of their rows, which are in "y".
local function steps_of(job, name, calls)
    local list, ids, bytes = {}, 0, 0
    for i, call in ipairs(calls) do
        local a = whole_model.given(job, call.what, call.sequences)
        a.weights, a.state, a.offsets, a.scratch = "weights", "state", "offsets", "scratch"
        a.ids, a.y = { memory = "ids", at = 4 * ids }, { memory = "y", at = bytes }
        local arguments = { whole_model.arguments[call.what](a) }
        list[i] = { library = name, ["function"] = job[call.what], arguments = arguments }
        list[i].status = call.what ~= "start"
        ids, bytes = ids + a.count, bytes + a.bytes
    end
    return list, bytes
end

-- A file that holds `bytes`, for a memory.
local function linked(name, bytes)
    local path = process.temporary_directory() .. "/linked"
    assert(host.write_file(path, bytes))
    return { name = name, bytes = #bytes, fill = "linked", file = path }
end

-- Memory of ids, and of what each way of plan `p` has to give, once for all candidates.
local function files_of(sample, p)
    if not sample.files then
        local all, offsets = {}, { 0 }
        for i, list in ipairs(sample.lists) do
            table.move(list, 1, #list, #all + 1, all)
            offsets[i + 1] = #all
        end
        sample.files = { linked("ids", compiled.pack(all)) }
        table.insert(sample.files, { name = "offsets", bytes = 8 * #offsets, sizes = offsets })
        for _, way in ipairs(sample.plain_ways(p)) do
            table.insert(sample.files, linked("expected of " .. way.name, way.wanted(sample.answers)))
        end
    end
    return sample.files
end

-- Adds memory_there and row_there to a sample of a whole model.
function whole_there.add(sample)
    local function job_of(p) return compiled_model.job(p, "", "", 1) end
    function sample.memory_there(list)
        local rows, y, state, scratch = { table.unpack(files_of(sample, list[1].plan)) }, 1, 1, 1
        for _, made in ipairs(list) do
            local p = made.plan
            state, scratch = math.max(state, p.state_bytes), math.max(scratch, p.scratch_bytes)
            for _, way in ipairs(sample.plain_ways(p)) do
                y = math.max(y, (select(2, steps_of(job_of(p), "", way.calls))))
            end
        end
        for _, own in ipairs { { "y", y }, { "state", state }, { "scratch", scratch } } do
            rows[#rows + 1] = { name = own[1], bytes = own[2] }
        end
        return rows
    end
    function sample.row_there(p, name, way)
        local width, steps, bytes = p.widths.out, steps_of(job_of(p), name, way.calls)
        return { steps = steps, expected = "expected of " .. way.name, tokens = bytes // (4 * width), width = width }
    end
end

return whole_there
