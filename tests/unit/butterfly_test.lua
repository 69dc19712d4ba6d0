-- The passes planned for the cross-block transform multiply by the Hadamard matrix, and never add more than they must.
local butterfly = require "gen.families.lookup.butterfly"
local check = require "tests.support.check"

-- The entry of the Hadamard matrix in natural (Sylvester) order: -1 to the number of common bits.
local function hadamard(row, column)
    local common, sign = row & column, 1
    while common > 0 do
        common, sign = common & common - 1, -sign
    end
    return sign
end

-- Does what templates/lookup/shared/butterfly.c prints for one pass, in place. Integers, so that sums are exact; a row
-- that is not there (nil) must never be read. Counts the additions.
local function run(pass, v)
    local additions = 0
    for group = 0, pass.groups - 1 do
        local base = group * pass.radix * pass.stride
        for _, segment in ipairs(pass.segments) do
            for i = segment.from, segment.to - 1 do
                local value = {}
                for wire = 0, segment.live - 1 do
                    value["v" .. wire] = v[base + wire * pass.stride + i]
                        or error(string.format("row %d is read", base + wire * pass.stride + i), 0)
                end
                for _, node in ipairs(segment.network.operations) do
                    local left, right = value[node.left], value[node.right]
                    assert(not value[node.name] and (node.op == "add" or node.op == "sub"))
                    value[node.name] = node.op == "add" and left + right or left - right
                    additions = additions + 1
                end
                assert(#segment.network.results == segment.need)
                for wire, result in ipairs(segment.network.results) do
                    v[base + (wire - 1) * pass.stride + i] = assert(value[result])
                end
            end
        end
    end
    return additions
end

local function log2(n)
    local bits = 0
    while 1 << bits < n do
        bits = bits + 1
    end
    return bits
end

-- Compares the passes with the matrix for one random vector; returns the additions.
local function compare(blocks, rows, radix, live, need)
    local what = string.format("blocks %d, rows %d, radix %d, live %d, need %d: ", blocks, rows, radix, live, need)
    local all = blocks * rows
    local x, v = {}, {}
    local state = 88172645463325252 + blocks * 1000 + rows
    for i = 0, all - 1 do
        state = state ~ state << 13
        state = state ~ state >> 7
        state = state ~ state << 17
        x[i] = i < live and state % 2000001 - 1000000 or 0
        if i < live then v[i] = x[i] end
    end
    local passes, product, counted, planned = butterfly.passes(blocks, rows, radix, live, need), 1, 0, 0
    for _, pass in ipairs(passes) do
        if pass.radix > radix or pass.radix < 2 then error(what .. "a pass of radix " .. pass.radix, 0) end
        product = product * pass.radix
        local good, additions = pcall(run, pass, v)
        if not good then error(what .. additions, 0) end
        counted, planned = counted + additions, planned + pass.additions
    end
    if product ~= blocks then error(what .. "passes multiply to " .. product .. " blocks", 0) end
    if counted ~= planned then error(what .. planned .. " additions are planned, " .. counted .. " done", 0) end
    local columns = (live + rows - 1) // rows
    -- All outputs of small transforms, a few of large ones.
    local step = all > 256 and 37 or 1
    for at = 0, need - 1, step do
        local output, row, sum = at // rows, at % rows, 0
        for input = 0, columns - 1 do
            sum = sum + hadamard(output, input) * x[input * rows + row]
        end
        if v[at] ~= sum then error(string.format("%soutput %d is %s, expected %d", what, at, v[at], sum), 0) end
    end
    return counted
end

local test = {}

local radices = { 2, 4, 8, 16 }

function test.every_size_and_radix_gives_the_hadamard_matrix()
    for bits = 0, 9 do
        for _, rows in ipairs { 1, 2, 5 } do
            for _, radix in ipairs(radices) do
                local blocks = 1 << bits
                -- The full transform: log2(blocks) additions an output.
                check.equal(compare(blocks, rows, radix, blocks * rows, blocks * rows), blocks * rows * bits)
            end
        end
    end
end

function test.a_radix_that_is_no_power_of_two_is_rounded_down()
    for radix, used in pairs { [3] = 2, [5] = 4, [7] = 4, [15] = 8, [17] = 16 } do
        compare(64, 3, radix, 192, 192)
        check.equal(butterfly.passes(64, 3, radix, 192, 192), butterfly.passes(64, 3, used, 192, 192))
    end
end

function test.what_cannot_be_planned_is_not()
    check.fails_with("assertion failed!", butterfly.passes, 4, 2, 4, 3, 8) -- less than half not zero
    check.fails_with("assertion failed!", butterfly.passes, 4, 2, 4, 7, 7) -- both ends cut
end

function test.one_block_needs_no_pass()
    check.equal(butterfly.passes(1, 64, 16, 64, 64), {})
    check.equal(butterfly.passes(1, 64, 16, 33, 64), {})
    check.equal(butterfly.passes(1, 64, 16, 64, 60), {})
end

-- The numbers of rows to try: every one of a small transform; ends, whole blocks and odd ones of a large one.
local function some(all, rows)
    local list = {}
    for n = 1, all - 1 do
        if all <= 32 or n <= 2 or n >= all - 2 or n % (rows * (all // rows // 8)) <= 1 or n % 101 == 0 then
            list[#list + 1] = n
        end
    end
    return list
end

function test.zero_inputs_are_neither_read_nor_added()
    for _, blocks in ipairs { 2, 4, 8, 16, 32, 64, 512 } do
        for _, rows in ipairs { 1, 3 } do
            local all = blocks * rows
            for _, radix in ipairs(blocks == 512 and { 8, 16 } or radices) do
                for _, live in ipairs(some(all, rows)) do
                    if 2 * live >= all then
                        check.equal(compare(blocks, rows, radix, live, all) < all * log2(blocks), true)
                    end
                end
                -- Half of the inputs zero: the whole first level is saved.
                check.equal(compare(blocks, rows, radix, all // 2, all), all * (log2(blocks) - 1))
            end
        end
    end
end

function test.outputs_nobody_reads_are_not_added()
    for _, blocks in ipairs { 2, 4, 8, 16, 32, 64, 512 } do
        for _, rows in ipairs { 1, 3 } do
            local all = blocks * rows
            for _, radix in ipairs(blocks == 512 and { 8, 16 } or radices) do
                for _, need in ipairs(some(all, rows)) do
                    check.equal(compare(blocks, rows, radix, all, need) < all * log2(blocks), true)
                end
            end
        end
    end
end

-- Where one pass holds the whole transform the pruning is complete: an operation stays only if an output that is read
-- depends on it and both of its inputs may differ from zero. Counted here on the graph of single butterflies.
local function least(radix, live, need)
    local count = 0
    -- Levels run from the widest distance to 1; walk back from the outputs.
    local wanted = {}
    for k = 0, radix - 1 do
        wanted[k] = k < need
    end
    local levels, half = {}, 1
    while half < radix do
        table.insert(levels, 1, { half = half, wanted = wanted })
        local before = {}
        for k = 0, radix - 1 do
            before[k] = wanted[k] or wanted[k ~ half]
        end
        wanted, half = before, half * 2
    end
    local zero = {}
    for k = 0, radix - 1 do
        zero[k] = k >= live
    end
    for _, level in ipairs(levels) do
        local after = {}
        for k = 0, radix - 1 do
            local low, high = k & ~level.half, k | level.half
            if level.wanted[k] and not zero[low] and not zero[high] then count = count + 1 end
            after[k] = zero[low] and zero[high]
        end
        zero = after
    end
    return count
end

function test.networks_add_no_more_than_they_must()
    for _, radix in ipairs(radices) do
        for live = 1, radix do
            for need = 1, radix do
                check.equal(#butterfly.network(radix, live, need).operations <= least(radix, live, need), true)
            end
        end
        check.equal(#butterfly.network(radix, radix, radix).operations, radix * log2(radix))
        check.equal(#butterfly.network(radix, radix, 1).operations, radix - 1)
        check.equal(#butterfly.network(radix, 1, radix).operations, 0)
    end
    check.equal(#butterfly.network(16, 12, 16).operations, 56)
    check.equal(#butterfly.network(8, 8, 7).operations, 23)
end

function test.networks_with_both_ends_cut()
    for _, radix in ipairs(radices) do
        for live = 1, radix do
            for need = 1, radix do
                local network = butterfly.network(radix, live, need)
                local value = {}
                for k = 0, live - 1 do
                    value["v" .. k] = 3 ^ k // 1 | 0
                end
                for _, node in ipairs(network.operations) do
                    local left, right = value[node.left], value[node.right]
                    value[node.name] = node.op == "add" and left + right or left - right
                end
                for output = 0, need - 1 do
                    local sum = 0
                    for input = 0, live - 1 do
                        sum = sum + hadamard(output, input) * (3 ^ input // 1 | 0)
                    end
                    check.equal(value[network.results[output + 1]], sum)
                end
            end
        end
    end
end

return test
