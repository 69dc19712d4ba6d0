-- Blocks called on a device (harness/device/device.lua), and how far their outputs are from the reference's answer, as
-- the device's program computes it. Outputs are fetched where ties may explain an error that is too large.
--
--   blocks_there.call(sample, list, left) -> whether there was time: calls the blocks of the list { {plan, library} }
--   in all ways, in one program
--   blocks_there.ways(p, library, sample) -> as sample_ways of verify_blocks.lua
local block_reference = require "block_reference"
local compare = require "harness.families.model.compare"
local host = require "host"
local process = require "process"
local rows = require "rows"
local setting = require "harness.measure.setting"

local blocks_there = {}

-- The steps of `way` to call blocks of plan `p`, the library `name` of the job, for `count` tokens.
local function steps_of(p, name, way, count)
    local list, first = {}, 0
    local function add(symbol, ...)
        table.insert(list, { library = name, ["function"] = symbol, status = true, arguments = { "weights", ... } })
    end
    local function x_and_y(token)
        return { memory = "x", at = 4 * p.shape.input * token }, { memory = "y", at = 4 * p.shape.d * token }
    end
    if way.lengths then
        for sequence, length in ipairs(way.name == "single" and way.lengths or {}) do
            local x, y = x_and_y(first)
            local offsets = { memory = "offsets", at = 8 * (sequence - 1) }
            if length > 0 then add(p.names.encode_batch, "cache", x, y, offsets, 1, "scratch") end
            first = first + length
        end
        if way.name == "single" then return list end
        add(p.names.encode_batch, "cache", "x", "y", "offsets", #way.lengths, "scratch")
        return list
    elseif not p.shape.causal then
        add(p.names.encode, "cache", "x", "y", count, "scratch")
        return list
    end
    for _, most in ipairs(way.calls) do
        local here = math.min(most, count - first)
        local x, y = x_and_y(first)
        if here == 1 then
            add(p.names.decode, "cache", x, y, first, "scratch")
        elseif here > 1 then
            add(p.names.prefill, "cache", x, y, first, here, "scratch")
        end
        first = first + here
    end
    return list
end

-- What all candidates are called with: files of x and of the answer, once.
local function files_of(sample)
    if not sample.files then
        local folder = process.temporary_directory()
        sample.files = { x = folder .. "/x", y = folder .. "/y" }
        assert(host.write_file(sample.files.x, rows.singles(sample.x)))
        assert(host.write_file(sample.files.y, sample.answers[1].y))
    end
    return sample.files
end

local function memory_of(sample, list, count)
    local p, scratch, files, offsets = list[1].plan, 1, files_of(sample), { 0 }
    for _, made in ipairs(list) do
        scratch = math.max(scratch, made.plan.scratch_bytes)
    end
    for i, length in ipairs(sample.lengths or {}) do
        offsets[i + 1] = offsets[i] + length
    end
    return {
        { name = "x", bytes = 4 * p.shape.input * count, fill = "linked", file = files.x },
        { name = "expected", bytes = 8 * p.shape.d * count, fill = "linked", file = files.y },
        { name = "y", bytes = 4 * p.shape.d * count },
        { name = "cache", bytes = p.cache_bytes },
        { name = "scratch", bytes = scratch },
        { name = "offsets", bytes = 8 * #offsets, sizes = offsets },
    }
end

-- Those of a sample's ways that a device is called in: all but the last positions of endless ones.
local function ways_of(sample, p)
    local list = {}
    for _, way in ipairs(sample.plain_ways(p)) do
        if not way.start then list[#list + 1] = way end
    end
    return list
end

function blocks_there.call(sample, list, left)
    local count = #sample.numbers
    local job = setting.complete { model = list[1].plan.model.name, seed = 1, repetitions = 1, checks = {} }
    job.memory = memory_of(sample, list, count)
    for i, made in ipairs(list) do
        local p, name = made.plan, "r" .. i
        local of = { library = made.library, blob = sample.blob, bind = p.names.bind }
        of.weights_struct_bytes = p.weights_struct_bytes
        job.libraries[i] = setting.library(name, of)
        for _, way in ipairs(ways_of(sample, p)) do
            table.insert(job.checks, {
                name = string.format("%s of %s", way.name, name),
                of = made.library,
                way = way.name,
                y = "y",
                expected = "expected",
                tokens = count,
                width = p.shape.d,
                period = count,
                steps = steps_of(p, name, way, count),
            })
        end
    end
    local found = sample.device:check(job, left)
    sample.there = sample.there or {}
    for i, check in ipairs(found and job.checks or {}) do
        local own = sample.there[check.of] or {}
        sample.there[check.of] = own
        own[check.way] = { found = found[i], job = job, number = i }
    end
    return found ~= nil
end

function blocks_there.ways(p, library, sample)
    local shape_of, list = compare.shape_of(p), {}
    if not (sample.there and sample.there[library]) then
        blocks_there.call(sample, { { plan = p, library = library } })
    end
    for i, way in ipairs(ways_of(sample, p)) do
        local own = sample.there[library][way.name]
        list[i] = { name = way.name, unfused = function() end }
        list[i].run = function()
            if own.found.failure then return nil, own.found.failure end
            return own, nil, 0
        end
        list[i].compare = function(_, answers, most)
            local far = not (own.found.relative <= most)
            local fetched = far and #answers[1].ties > 0 and sample.device:outputs(own.job, { own.number })
            if not fetched then return own.found.relative, own.found.absolute, 0, own.found.all end
            local y = rows.doubles(fetched[1])
            local same, turned = compare.decided_as(y, answers[1], shape_of, 0, most)
            local relative, absolute, all = block_reference.difference(y, same.y, p.shape.d)
            return relative, absolute, turned, all
        end
    end
    return list
end

return blocks_there
