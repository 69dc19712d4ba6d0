-- Whole models on a device: the steps that call them, and their memory, as verify_there.lua wants them.
local compiled = require "compiled"
local compiled_model = require "harness.calls.compiled_model"
local setting = require "harness.measure.setting"
local whole_model = require "harness.calls.whole_model"

local whole_there = {}

-- The steps of `calls` of plan `p`, the library `name` of the job. All ids are in the memory "ids", and all rows go
-- into "y".
local function steps_of(p, name, calls)
    local job, list, ids, bytes = compiled_model.job(p, "", "", 1), {}, 0, 0
    for i, call in ipairs(calls) do
        local a = whole_model.given(job, call.what, call.sequences)
        a.weights, a.state, a.offsets, a.scratch = "weights", "state", "offsets", "scratch"
        a.ids, a.y = { memory = "ids", at = 4 * ids }, { memory = "y", at = bytes }
        local arguments = { whole_model.arguments[call.what](a) }
        list[i] = { library = name, ["function"] = job[call.what], arguments = arguments }
        list[i].status = call.what ~= "start"
        ids, bytes = ids + a.count, bytes + a.bytes
    end
    return list
end

local function expected_of(way) return "expected of " .. way.name end

-- The memory of ids, of offsets, and of what each way of plan `p` has to give, by its name.
local function linked_of(sample, p)
    local all, offsets = {}, { 0 }
    for i, list in ipairs(sample.lists) do
        table.move(list, 1, #list, #all + 1, all)
        offsets[i + 1] = #all
    end
    local linked = { { name = "offsets", bytes = 8 * #offsets, sizes = offsets } }
    linked[2], linked.by_name = setting.linked("ids", compiled.pack(all)), {}
    for i, way in ipairs(sample.plain_ways(p)) do
        linked[2 + i] = setting.linked(expected_of(way), way.wanted(sample.answers))
        linked.by_name[way.name] = linked[2 + i]
    end
    return linked
end

-- Adds memory_there and row_there to a sample of a whole model.
function whole_there.add(sample)
    function sample.memory_there(list)
        sample.linked = sample.linked or linked_of(sample, list[1].plan) -- once for all candidates
        local rows, y, state, scratch = { table.unpack(sample.linked) }, 1, 1, 1
        for _, of in pairs(sample.linked.by_name) do
            y = math.max(y, of.bytes // 2) -- of float32
        end
        for _, made in ipairs(list) do
            state, scratch = math.max(state, made.plan.state_bytes), math.max(scratch, made.plan.scratch_bytes)
        end
        for _, own in ipairs { { "y", y }, { "state", state }, { "scratch", scratch } } do
            rows[#rows + 1] = { name = own[1], bytes = own[2] }
        end
        return rows
    end
    function sample.row_there(p, name, way)
        local width, bytes = p.widths.out, sample.linked.by_name[way.name].bytes
        local steps = steps_of(p, name, way.calls)
        return { steps = steps, expected = expected_of(way), tokens = bytes // (8 * width), width = width }
    end
end

return whole_there
