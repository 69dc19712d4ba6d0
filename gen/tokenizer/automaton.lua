-- Turns trees of regular expressions into deterministic automata that find the same matches as backtracking does.
--
-- A state is the list of places in the expression that a match can be at, what is tried first before the others. A
-- step knows the next character, so that what looks ahead is decided in it. When a place is the end of the expression,
-- a match ends before that character, and what comes later in the list is dropped: it would be tried only if there were
-- no match. What comes earlier goes on, and its match counts instead, if it finds one.
local automaton = {}

local most_places = 1024
local most_states = 255
local most_entries = 8192

-- Adds the places of `node` to `program`; `behind`: the place behind it. Returns the first.
local function add(program, node, behind)
    local function place(row)
        if #program == most_places then program.refuse("takes more than " .. most_places .. " places") end
        program[#program + 1] = row
        return #program
    end
    if node.op == "set" or node.op == "ahead" then
        return place { op = node.op, set = program.number(node.set), negative = node.negative, behind = behind }
    elseif node.op == "list" then
        for i = #node, 1, -1 do
            behind = add(program, node[i], behind)
        end
        return behind
    elseif node.op == "either" then
        local firsts = {}
        for i, inner in ipairs(node) do
            firsts[i] = add(program, inner, behind)
        end
        return place { op = "either", table.unpack(firsts) }
    end
    local first = behind
    if node.most then
        for _ = node.least + 1, node.most do
            first = place { op = "either", add(program, node[1], first), behind }
        end
    else
        first = place { op = "either", 0, behind }
        program[first][1] = add(program, node[1], first)
    end
    for _ = 1, node.least do
        first = add(program, node[1], first)
    end
    return first
end

-- The program of a tree: its places and `first`. `number`: of a set; `refuse(rule)` raises one line.
function automaton.program(tree, number, refuse)
    local program = { number = number, refuse = refuse, { op = "match" } }
    program.first = add(program, tree, 1)
    return program
end

-- The step from the places of `state` on a character of `class`, nil at the end of the text: the next places, and
-- whether a match ends before it.
local function step(program, members, state, class)
    local seen, found, nexts = {}, {}, {}
    local function visit(at) -- returns whether a match ends here
        if seen[at] then return false end
        seen[at] = true
        local row = program[at]
        if row.op == "match" then return true end
        if row.op == "either" then
            for _, inner in ipairs(row) do
                if visit(inner) then return true end
            end
            return false
        end
        local inside = class and members[row.set][class] or false
        if row.op == "ahead" then return inside ~= (row.negative or false) and visit(row.behind) end
        if inside and not found[row.behind] then
            found[row.behind], nexts[#nexts + 1] = true, row.behind
        end
        return false
    end
    for _, at in ipairs(state) do
        if visit(at) then return nexts, true end
    end
    return nexts, false
end

-- Adds to the set `reached` all that leads there; back: of each key, those that lead to it at once.
local function spread(reached, back)
    local list = {}
    for key in pairs(reached) do
        list[#list + 1] = key
    end
    while #list > 0 do
        for _, key in ipairs(back[table.remove(list)] or {}) do
            if not reached[key] then
                reached[key], list[#list + 1] = true, key
            end
        end
    end
end

local function add_to(lists, key, value)
    lists[key] = lists[key] or {}
    table.insert(lists[key], value)
end

-- The states from which a search can end without a match, by number, and 0 for one that has ended.
local function failing_states(rows)
    local fails, back = {}, {}
    for i, row in ipairs(rows) do
        for _, entry in ipairs(row) do
            if entry == 0 then fails[i - 1] = true end
            if entry % 2 == 0 then add_to(back, entry // 2, i - 1) end
        end
    end
    fails[0] = nil -- no entry leads to the first state
    spread(fails, back)
    fails[0] = true
    return fails
end

-- Whether the keys of the set `keys` lead to each other in a circle; out: what each key leads to, others among it.
local function has_circle(keys, out)
    local into, free, left = {}, {}, 0
    for key in pairs(keys) do
        left = left + 1
        for _, to in ipairs(out[key] or {}) do
            into[to] = (into[to] or 0) + 1
        end
    end
    for key in pairs(keys) do
        if not into[key] then free[#free + 1] = key end
    end
    while #free > 0 do
        left = left - 1
        for _, to in ipairs(out[table.remove(free)] or {}) do
            into[to] = into[to] - 1
            if into[to] == 0 and keys[to] then free[#free + 1] = to end
        end
    end
    return left > 0
end

-- Whether a text may be read again and again. A search goes on behind the end of a match as long as a longer one may
-- come. If two searches, the second from behind what the first has found or later, can go on together without end and
-- both fail, then so can any number of them. Else the characters that two of them read in vain together are at most as
-- many as there are pairs of states, and the time is in proportion to the text.
local function may_be_quadratic(rows)
    local count, alone = #rows, failing_states(rows)
    local seen, keys, fails, out, back = {}, {}, {}, {}, {}
    local function reach(first, second)
        local key = first * count + second
        if not seen[key] then
            seen[key], keys[#keys + 1] = true, key
        end
        return key
    end
    for state = 0, count - 1 do
        reach(state, 0)
    end
    local at = 1
    while keys[at] do
        local key = keys[at]
        local one, other = rows[key // count + 1], rows[key % count + 1]
        for class, entry in ipairs(one) do
            local a, b, neither = entry // 2, other[class] // 2, other[class] % 2 == 0
            local goes_on = entry % 2 == 0 -- the first search finds no match
            if goes_on and a > 0 and b > 0 then
                local to = reach(a, b)
                if neither then
                    add_to(out, key, to)
                    add_to(back, to, key)
                end
            elseif goes_on and neither and alone[a] and alone[b] then
                fails[key] = true
            end
        end
        at = at + 1
    end
    spread(fails, back)
    return has_circle(fails, out)
end

-- The rows of the automaton of `program`, one a state, the first state first: an entry for each of `classes` of
-- characters, and one for the end of the text. An entry is twice the number of the next state, from 0 on, and one more
-- where a match ends before the character; no state leads to the first one, so that 0 is the end of the search.
function automaton.rows(program, members, classes)
    local rows, states, numbers = {}, { { program.first } }, {}
    local at = 1
    while states[at] do
        local row = {}
        for class = 0, classes do
            local nexts, matched = step(program, members, states[at], class < classes and class or nil)
            local key, number = table.concat(nexts, " "), 0
            if #nexts > 0 then
                number = numbers[key] or #states
                if not numbers[key] then
                    if #states == most_states or #states * (classes + 1) >= most_entries then
                        program.refuse(
                            "takes more than " .. most_states .. " states, or " .. most_entries .. " transitions"
                        )
                    end
                    numbers[key], states[#states + 1] = number, nexts
                end
            end
            row[class + 1] = 2 * number + (matched and 1 or 0)
            if at == 1 and matched then program.refuse "may match nothing" end
        end
        rows[at], at = row, at + 1
    end
    if may_be_quadratic(rows) then program.refuse "may take time in proportion to the square of the text" end
    return rows
end

return automaton
