-- A trie of byte strings as a double array, which a tokenizer walks byte by byte.
--
-- Node n is three words: base, parent and value. Its child for the byte b is node base ~ b (exclusive or), if that
-- node's parent is n. Node 0 is the root. The number of nodes is a multiple of 256 and no base is beyond it: whatever a
-- walk reads lies in the array.
local trie = {}

trie.none = 0xffffffff -- no parent: a free node; no value: no string ends here

local tries = 64 -- bases that are tried for a node of several children before it gets a block of its own

-- The words of the trie of `list`, { {string, value} } with different strings, as a string of u32.
function trie.pack(list)
    local sorted = table.move(list, 1, #list, 1, {})
    table.sort(sorted, function(a, b) return a[1] < b[1] end)
    local base, parent, value = {}, {}, {}
    local size = 0
    local free = { one = 1, more = 1 } -- where to look for room for one child and for several
    local function grow()
        for n = size, size + 255 do
            base[n], parent[n], value[n] = 0, trie.none, trie.none
        end
        size = size + 256
    end
    local used = { [0] = true }
    grow()
    local function place(bytes)
        local key = #bytes == 1 and "one" or "more"
        while used[free[key]] do
            free[key] = free[key] + 1
        end
        local at, left = free[key], tries
        while at < size and left > 0 do
            if not used[at] then
                local candidate, fits = at ~ bytes[1], true
                for i = 2, #bytes do
                    if used[candidate ~ bytes[i]] then
                        fits = false
                        break
                    end
                end
                if fits then return candidate end
                left = left - 1
            end
            at = at + 1
        end
        free[key] = at -- what does not fit here mostly does not later
        grow()
        return size - 256
    end
    -- Nodes whose children are to be placed: { node, first and last string below it, bytes of it }.
    local stack = { { 0, 1, #sorted, 0 } }
    while #stack > 0 do
        local node, from, to, depth = table.unpack(table.remove(stack))
        if from <= to and #sorted[from][1] == depth then
            value[node] = sorted[from][2]
            from = from + 1
        end
        local bytes, starts = {}, {}
        for i = from, to do
            local byte = sorted[i][1]:byte(depth + 1)
            if byte ~= bytes[#bytes] then
                bytes[#bytes + 1], starts[#starts + 1] = byte, i
            end
        end
        if #bytes > 0 then
            starts[#starts + 1] = to + 1
            local chosen = place(bytes)
            base[node] = chosen
            for i, byte in ipairs(bytes) do
                local child = chosen ~ byte
                used[child], parent[child] = true, node
                stack[#stack + 1] = { child, starts[i], starts[i + 1] - 1, depth + 1 }
            end
        end
    end
    local words, parts = {}, {}
    for n = 0, size - 1 do
        words[#words + 1], words[#words + 2], words[#words + 3] = base[n], parent[n], value[n]
        if #words == 192 then
            parts[#parts + 1] = string.pack("<" .. ("I4"):rep(#words), table.unpack(words))
            words = {}
        end
    end
    parts[#parts + 1] = string.pack("<" .. ("I4"):rep(#words), table.unpack(words))
    return table.concat(parts)
end

return trie
