-- Plans the cross-block Hadamard transform H_{N/b}: passes of unrolled butterflies over whole blocks, without the
-- additions of inputs known to be zero and without the outputs nobody reads.
local butterfly = {}

-- The straight-line network of a radix-r transform of which only the first `live` inputs are not zero and only the
-- first `need` outputs are read: { operations = { {name, op = "add"|"sub", left, right} }, results = { name } }.
function butterfly.network(radix, live, need)
    local nodes, wires, number = {}, {}, 0
    for k = 0, radix - 1 do
        wires[k] = k < live and { name = "v" .. k } or false
    end
    local half = radix // 2
    while half >= 1 do
        local level = {}
        for k = 0, radix - 1 do
            if k & half == 0 then
                local low, high = wires[k], wires[k + half]
                if low and high then
                    for i, op in ipairs { "add", "sub" } do
                        local node = { name = "t" .. number, op = op, left = low, right = high }
                        number = number + 1
                        nodes[#nodes + 1] = node
                        level[k + (i - 1) * half] = node
                    end
                else -- the zeros are the upper inputs: a + 0 = a - 0 = a
                    level[k], level[k + half] = low, low
                end
            end
        end
        wires, half = level, half // 2
    end
    local read = {}
    local function mark(node)
        if read[node] then return end
        read[node] = true
        if node.op then
            mark(node.left)
            mark(node.right)
        end
    end
    for k = 0, need - 1 do
        mark(wires[k])
    end
    local network = { operations = {}, results = {} }
    for _, node in ipairs(nodes) do
        if read[node] then
            network.operations[#network.operations + 1] =
                { name = node.name, op = node.op, left = node.left.name, right = node.right.name }
        end
    end
    for k = 0, need - 1 do
        network.results[#network.results + 1] = wires[k].name
    end
    return network
end

-- Splits the `span` rows that share a network: the first `count % span` rows have one wire more.
local function split(span, count, radix)
    local whole, more = count // span, count % span
    if whole >= radix then return { { from = 0, to = span, wires = radix } } end
    local list = {}
    if more > 0 then list[1] = { from = 0, to = more, wires = whole + 1 } end
    list[#list + 1] = { from = more, to = span, wires = whole }
    return list
end

-- The name of a pass; `more` says what it does beside butterflies.
local function name_of(pass, more)
    local all = pass.radix * pass.stride
    return "butterfly_"
        .. pass.radix
        .. "x"
        .. pass.stride
        .. (pass.groups > 1 and "x" .. pass.groups or "")
        .. (pass.live < all and "_live" .. pass.live or "")
        .. (pass.need < all and "_need" .. pass.need or "")
        .. (more or "")
end

-- Pass `pass` that does `more` (a table) with its outputs than store them: what is called that in its name.
function butterfly.pass_with(pass, more, called)
    for key, value in pairs(pass) do
        more[key] = value
    end
    more.name = name_of(pass, called)
    return more
end

-- The passes of H_blocks over `blocks` blocks of `rows` rows; radices at most `radix`.
-- live  rows that are not known to be zero (the first ones, at least half), need  rows that are read afterwards (the
-- first ones); one of them may be less than blocks * rows. Returns a list of { name, radix, stride (rows between two
-- wires), groups, segments = { {from, to, suffix (of their names), live, need, network} }, additions }.
function butterfly.passes(blocks, rows, radix, live, need)
    assert(2 * live >= blocks * rows and (live >= blocks * rows or need >= blocks * rows))
    local bits, widest = 0, 0
    while 1 << bits < blocks do
        bits = bits + 1
    end
    while 2 << widest <= radix do
        widest = widest + 1
    end
    local count = (bits + widest - 1) // widest
    local passes, left, stride = {}, bits, blocks
    for i = 1, count do
        local log2 = (left + count - i) // (count - i + 1)
        left = left - log2
        stride = stride >> log2
        passes[i] = { radix = 1 << log2, stride = stride * rows, groups = blocks // (stride << log2) }
    end
    -- Zeros are met by the widest stride first, unread outputs by the widest stride last.
    local widest_pass = passes[1]
    if need < blocks * rows then
        for i = 1, count // 2 do
            passes[i], passes[count + 1 - i] = passes[count + 1 - i], passes[i]
        end
    end
    for _, pass in ipairs(passes) do
        pass.segments, pass.additions = {}, 0
        local all = blocks * rows
        local key = need < all and "need" or "live"
        pass.live, pass.need = pass.radix * pass.stride, pass.radix * pass.stride
        if pass == widest_pass then
            pass.live, pass.need = live, need
        end
        local segments = split(pass.stride, pass == widest_pass and math.min(live, need) or all, pass.radix)
        for n, segment in ipairs(segments) do
            local wires = { live = pass.radix, need = pass.radix }
            wires[key] = segment.wires
            local network = butterfly.network(pass.radix, wires.live, wires.need)
            pass.segments[n] = {
                from = segment.from,
                to = segment.to,
                suffix = n > 1 and n or "",
                live = wires.live,
                need = wires.need,
                network = network,
            }
            pass.additions = pass.additions + #network.operations * (segment.to - segment.from) * pass.groups
        end
        pass.name = name_of(pass)
    end
    return passes
end

return butterfly
