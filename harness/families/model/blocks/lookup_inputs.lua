-- What the lookup FFNs of blocks are given while compiled blocks run: the rows that pack --calibrate calibrates for.
local runner = require "transformer"
local weights = require "weights"
local whole = require "whole"

local lookup_inputs = {}
lookup_inputs.__index = lookup_inputs

-- The options of the float model that they are taken from.
function lookup_inputs.options(options)
    local own = {}
    for _, name in ipairs { "weights", "ignore", "blocks-in-out", "cc", "cflags" } do
        own[name] = options[name]
    end
    return own
end

-- The widths of what the lookup FFNs of `blocks`, plans of transformers, read: of each layer that has one.
local function widths_of(blocks)
    local list = {}
    for _, p in ipairs(blocks) do
        for _ = 1, p.lookup_types and p.model.layers or 0 do
            list[#list + 1] = p.parts[1].plan.shape.d
        end
    end
    return list
end

-- For the lookup FFNs of `blocks`, from the first to the last.
function lookup_inputs.new(blocks)
    local self = setmetatable({ widths = widths_of(blocks), rows = {} }, lookup_inputs)
    for i in ipairs(self.widths) do
        self.rows[i] = {}
    end
    return self
end

-- Adds what a run has noted: `notes`, the string of runner.run or whole.run for the job `job` of seen.lua, whose notes
-- begin with a pointer to the weights of their layer (harness/verify/seen.c). Raises one line.
function lookup_inputs:add(job, notes)
    local bytes = (8 + 4 * (job.d + job.slots) + 2 * job.slots + 7) // 8 * 8
    local of, order = {}, {}
    for at = 1, #(notes or ""), bytes do
        local layer = string.unpack("=I8", notes, at)
        if not of[layer] then
            of[layer], order[#order + 1] = {}, layer
        end
        table.insert(of[layer], at + 8)
    end
    if #order ~= #self.widths then
        error("lookup FFNs are not seen at work: a compiler has joined functions that others may replace", 0)
    end
    table.sort(order, math.ult)
    for i, layer in ipairs(order) do
        for _, at in ipairs(of[layer]) do
            table.insert(self.rows[i], notes:sub(at, at + 4 * self.widths[i] - 1))
        end
    end
end

-- Writes them into `directory`, a .npy file for each lookup FFN, and returns the paths. Raises one line about `source`,
-- the file that they come from, if they are too few.
function lookup_inputs:save(directory, source)
    local paths = {}
    for i, width in ipairs(self.widths) do
        if #self.rows[i] < weights.least_calibration_rows then
            local form = "%s: %d tokens: calibration takes at least %d"
            error(form:format(source, #self.rows[i], weights.least_calibration_rows), 0)
        end
        paths[i] = string.format("%s/lookup_inputs_%d.npy", directory, i)
        assert(runner.save(paths[i], width, whole.doubles(table.concat(self.rows[i]))))
    end
    return paths
end

return lookup_inputs
