-- Decides which of many candidates is the fastest and how sure that is; measures nothing itself.
--
-- Successive halving (Jamieson, Talwalkar, "Non-stochastic best arm identification", 2016) leaves a few finalists,
-- which then run against each other in interleaved rounds until all but equals are out. A new process confirms the
-- winner.
--
--   race.run {
--       candidates = { { name, bytes } … }   the default first; bytes of object code, may be absent
--       measure(names, repetitions, order_seed, round) -> { [name] = { one time a repetition } }
--                    in one process, in an order that each repetition draws anew from order_seed; race.twin stands for
--                    the default once more. Absent or false: could not be measured; nil instead of the table: no time
--                    was left
--       confirm      the same in a new process and always in the order of `names`: the winner first, the default last
--       prove        optional: (name) -> nil, or why the winner of the finals is wrong, or false: no time was left
--       proving      optional: seconds that this takes
--       sample       optional: seconds that a sample takes, as long as none was measured
--       screen       optional: how much of a sample one of halving takes; 1 if absent
--       left()       seconds that may still be spent; in a run that goes on, as if nothing had been spent before
--       known(round)  optional: the times of a round that an earlier run has logged and the seconds that it took, or
--                     nil
--       seed, rules  optional; rules replace some of race.rules
--   }
--
-- All times that are compared come from one round: { id, phase = "halving"|"final"|"confirm", rung, number, names,
-- repetitions, seed }. Same candidates, seed and times: same rounds. So a run that was killed goes on by replaying its
-- log through `known`; what stands in the log is not measured again, and its seconds count as spent.
--
-- The result:
--   winner, ratio, low, high, samples   time over the default's, its 95 % interval, number of pairs; 1 for the default
--   decided   "winner", "tie" (equals: the smaller object code, then the default), or the default is kept: "too noisy",
--             "no time"
--   reason    one line
--   loss      how much slower than the best finalist the winner may be: 0.01 is 1 %
--   unmeasured   candidates that there was no time for
--   leader, control   the fastest finalist and the A/A control: { name, centre, low, high, samples }
--   second    where the default wins: the fastest other finalist, likewise
--   history   { phase, rung, number, candidate, time, ratio, low, high, samples, dropped } a candidate and round or
--             rung:
--             time is the median, ratio is to the default, low and high are of the ratio to the leader (finals only)
local statistics = require "harness.base.statistics"

local race = {
    twin = "A/A control", -- the name under which the default is measured a second time
    rules = {
        tolerance = 0.01, -- times this close are equal
        -- what may be slower than another finalist by more is no tie; where it is proven faster than the default it
        -- wins, and the result says by how much it may be slower
        limit = 0.02,
        round = 16, -- candidates of one round of halving
        first = 3, -- repetitions of the first two rungs of halving, doubled from rung to rung …
        most = 12, -- … up to so many
        reach = 3, -- standard errors behind the best: whoever is farther cannot win
        finalists = 4,
        repetitions = 8, -- of one round of the finals
        finals = 0.5, -- share of the time that halving leaves to the finals
        -- repetitions that the finals should have time for, or else there are fewer finalists: where samples differ by
        -- 5 % they leave intervals of 2 % to both sides
        pairs = 80,
        least = 3, -- rounds of the finals before anything is concluded
        rounds = 12, -- rounds of the finals at most
        resamples = 1000,
    },
}

local function usable(samples, repetitions)
    if type(samples) ~= "table" or #samples ~= repetitions then return false end
    for _, time in ipairs(samples) do
        if not (time > 0 and time < math.huge) then return false end
    end
    return true
end

-- Whether a log holds a whole round: times of every name, or false for one that could not be measured.
local function complete(samples, round)
    for _, name in ipairs(round.names) do
        if samples[name] ~= false and not usable(samples[name], round.repetitions) then return false end
    end
    return true
end

local Race = {}
Race.__index = Race

function Race:left() return self.options.left() - self.replayed end

-- Seconds that `runners` of `repetitions` each will take in a phase, "final" if absent, by what was measured of it so
-- far.
function Race:seconds(runners, repetitions, phase)
    local costs, options = self.costs[phase or "final"], self.options
    local guess = (options.sample or 0) * (phase == "halving" and options.screen or 1)
    return runners * repetitions * (costs.samples > 0 and costs.seconds / costs.samples or guess)
end

-- Seconds of the least finals and their confirmation, and a little more: the estimate is one.
function Race:least_finals(finalists)
    local rounds = self.rules.repetitions * self.rules.least
    return 1.1 * self:seconds(finalists + 2 + 3, rounds) + (self.options.proving or 0)
end

-- Seconds that a rung of halving leaves to the finals: the first one measures all candidates, if it can.
function Race:reserve(rung)
    local least = self:least_finals(2)
    return rung == 1 and least or math.max(least, self.rules.finals * self.total)
end

-- The times of one round, from the log or measured; nil: its time was up. Candidates that could not be measured are not
-- in it.
function Race:run(phase, rung, number, names, repetitions)
    self.count = self.count + 1
    local round = {
        id = string.format("%s %d.%d", phase, rung, number),
        phase = phase,
        rung = rung,
        number = number,
        names = names,
        repetitions = repetitions,
        seed = self.seed * 1000003 + self.count,
    }
    local samples, seconds
    if self.options.known then
        samples, seconds = self.options.known(round)
    end
    if samples and complete(samples, round) then
        seconds = seconds or 0
        self.replayed = self.replayed + seconds
    else
        local before = self.options.left()
        samples = self.options[phase == "confirm" and "confirm" or "measure"](names, repetitions, round.seed, round)
        if not samples then return nil end
        seconds = before - self.options.left()
    end
    if seconds > 0 then
        local costs = self.costs[phase]
        costs.seconds, costs.samples = costs.seconds + seconds, costs.samples + #names * repetitions
    end
    local good = {}
    for _, name in ipairs(names) do
        if usable(samples[name], repetitions) then good[name] = samples[name] end
    end
    if not good[self.default] or not good[race.twin] then
        error(round.id .. ": the default schedule could not be measured", 0)
    end
    return good
end

function Race:note(event) self.history[#self.history + 1] = event end

-- What others are compared with in one round: the means of the default and its twin.
function race.reference(samples, default)
    local means = {}
    for i, time in ipairs(samples[default]) do
        means[i] = (time + samples[race.twin][i]) / 2
    end
    return means
end

-- The times of `name` in one round.
function Race:times(samples, name)
    local is_reference = name == self.default and samples[race.twin]
    return is_reference and race.reference(samples, name) or samples[name]
end

-- Paired ratios of two names, a group a round.
function Race:ratios(rounds, name, reference)
    local groups = {}
    for _, samples in ipairs(rounds) do
        if samples[name] and samples[reference] then
            groups[#groups + 1] = statistics.paired(self:times(samples, name), self:times(samples, reference))
        end
    end
    return groups
end

local function flat(groups)
    local list = {}
    for _, group in ipairs(groups) do
        table.move(group, 1, #group, #list + 1, list)
    end
    return list
end

function Race:interval(rounds, name, reference)
    return statistics.interval(self:ratios(rounds, name, reference), self.seed, self.rules.resamples)
end

-- The A/A control: the twin against the default itself.
function Race:control(rounds)
    local groups = {}
    for i, samples in ipairs(rounds) do
        groups[i] = statistics.paired(samples[race.twin], samples[self.default])
    end
    return statistics.interval(groups, self.seed, self.rules.resamples)
end

-- Whether the default, by its A/A control, differs from itself so little that "nothing is faster" says something; and
-- whether it is at least as fast as itself.
function race.is_quiet(control, rules)
    local calm = control.low <= 1 + rules.tolerance and control.high >= 1 - rules.tolerance
    return calm and statistics.spread(control) < 3 * rules.limit, calm
end

-- Whether a lead is larger than what the default shows against itself.
local function exceeds(lead, control) return lead.high < 1 and statistics.spread(control) / 2 < 1 - lead.centre end

-- Adds one round of halving to `found`: ratios to the mean of the default and its twin, so that candidates of different
-- rounds compare. Without time left, only what was found before counts. Returns why a candidate is out, by name, and
-- whether it was measured.
function Race:halving_round(rung, number, names, repetitions, found, in_time)
    local samples = in_time
        and self:run("halving", rung, number, { self.default, race.twin, table.unpack(names) }, repetitions)
    local reference, out = samples and race.reference(samples, self.default), {}
    for _, name in ipairs(names) do
        if samples and samples[name] then
            local f = found[name] or { ratios = {} }
            found[name] = f
            local list = statistics.paired(samples[name], reference)
            table.move(list, 1, #list, #f.ratios + 1, f.ratios)
            f.ratio, f.time, f.number = statistics.median(f.ratios), statistics.median(samples[name]), number
        elseif samples then
            out[name] = "could not be measured"
        elseif not found[name] then
            out[name], self.unmeasured = "no time left to measure it", self.unmeasured + 1
        end
    end
    return out, samples and true or false
end

-- How many of the names `sorted`, the fastest first, may still be faster than the first of them or the default: the
-- others are behind by more than chance moves a median of so few samples, whose deviation is that of all in `found`.
function Race:within_reach(sorted, found)
    local sum, count, least = 0, 0, math.huge
    for _, name in ipairs(sorted) do
        local f = found[name]
        for _, ratio in ipairs(f.ratios) do
            sum, count = sum + math.abs(math.log(ratio / f.ratio)), count + 1
        end
        least = math.min(least, #f.ratios)
    end
    -- Of three normal values the mean distance to their median is 0.56 deviations; the error of a median is 1.25
    -- deviations over the root of their number, that of a difference sqrt(2) times as large.
    local deviation = count > 0 and sum / count / 0.56 or 0
    local reach = self.rules.reach * 1.25 * math.sqrt(2 / least) * deviation + self.rules.tolerance
    local best, within = sorted[1] and math.min(1, found[sorted[1]].ratio) or 1, 0
    for _, name in ipairs(sorted) do
        if found[name].ratio <= best * math.exp(reach) then within = within + 1 end
    end
    return within
end

-- The names of the fastest few, found with few samples of all.
function Race:halve(names)
    local found, place = {}, {}
    for i, name in ipairs(names) do
        place[name] = i
    end
    local function faster(a, b)
        if found[a].ratio ~= found[b].ratio then return found[a].ratio < found[b].ratio end
        return place[a] < place[b]
    end
    local rules, rung, repetitions, in_time = self.rules, 0, self.rules.first, true
    while #names > rules.finalists and in_time do
        rung = rung + 1
        local rest = {}
        for first = 1, #names, rules.round do
            local number, few =
                (first - 1) // rules.round + 1,
                table.move(names, first, math.min(first + rules.round - 1, #names), 1, {})
            in_time = in_time and self:left() > self:seconds(#few + 2, repetitions, "halving") + self:reserve(rung)
            local out
            out, in_time = self:halving_round(rung, number, few, repetitions, found, in_time)
            for _, name in ipairs(few) do
                if out[name] then
                    local why = out[name]
                    self:note { phase = "halving", rung = rung, number = number, candidate = name, dropped = why }
                else
                    rest[#rest + 1] = name
                end
            end
        end
        table.sort(rest, faster)
        local next_repetitions = math.min((rung > 1 and 2 or 1) * repetitions, rules.most)
        -- a half, or where time is short, a third; rungs of halves take about twice as long as the first of them
        local half = (#rest + 1) // 2
        local short = self:left() < self:reserve(rung + 1) + 2 * self:seconds(half, next_repetitions, "halving")
        local share = in_time and math.max(rules.finalists, short and (#rest + 2) // 3 or half) or rules.finalists
        local keep = math.min(share, math.max(2, self:within_reach(rest, found)))
        local why = keep < share and "too far behind the fastest"
            or in_time and "not in the faster " .. (short and "third" or "half")
            or "no time left for more rungs"
        for i, name in ipairs(rest) do
            local f = found[name]
            self:note {
                phase = "halving",
                rung = rung,
                number = f.number,
                candidate = name,
                time = f.time,
                ratio = f.ratio,
                samples = #f.ratios,
                dropped = i > keep and why or nil,
            }
        end
        names = table.move(rest, 1, math.min(keep, #rest), 1, {})
        repetitions = next_repetitions
    end
    return names
end

-- What the rounds of the finals say about the finalists `alive`, the default among them or not. `sound`: the winner's
-- lead over the default is larger than what the control shows without any cause. `settled`: nothing is left to find
-- out.
function Race:judge(rounds, alive)
    local tolerance, default = self.rules.tolerance, self.default
    local v = { rounds = rounds, against = {}, ratio = {}, dropped = {}, equal = {}, open = {} }
    v.control = self:control(rounds)
    for _, name in ipairs(alive) do
        v.ratio[name] = statistics.centre(flat(self:ratios(rounds, name, default)))
        if not v.leader or v.ratio[name] < v.ratio[v.leader] then v.leader = name end
    end
    v.fastest = self:interval(rounds, v.leader, default)
    v.fastest.name, v.winner = v.leader, v.leader
    local function smaller(a, b) -- among equals: object code, then the default, then the order that was given
        local bytes_a, bytes_b = self.by_name[a].bytes or math.huge, self.by_name[b].bytes or math.huge
        if bytes_a ~= bytes_b then return bytes_a < bytes_b end
        return self.by_name[a].place < self.by_name[b].place
    end
    for _, name in ipairs(alive) do
        local interval = name ~= v.leader and self:interval(rounds, name, v.leader)
        v.against[name] = interval or nil
        if interval and interval.low > 1 + tolerance then
            v.dropped[name] = string.format(
                "slower than the leader: %.3fx (%.3f … %.3f)",
                interval.centre,
                interval.low,
                interval.high
            )
        elseif interval and (interval.low < 1 - tolerance or interval.high > 1 + tolerance) then
            if interval.low <= 1 then v.open[#v.open + 1] = name end
        else
            v.equal[name] = true
            if name ~= v.leader then v.tie = true end
            if smaller(name, v.winner) then v.winner = name end
        end
    end
    -- How much slower than the best of the others `name` may be.
    function v.loss(name)
        local least = 1
        for _, other in ipairs(alive) do
            if other ~= name and not v.dropped[other] then
                local interval = name == v.leader and v.against[other] or self:interval(rounds, other, name)
                least = math.min(least, interval.low)
            end
        end
        return 1 / least - 1
    end
    v.lead = v.winner == v.leader and v.fastest or self:interval(rounds, v.winner, default)
    v.quiet, v.calm = race.is_quiet(v.control, self.rules)
    if v.winner == default or v.equal[default] then
        v.sound = v.quiet
    else
        v.sound = v.calm and exceeds(v.lead, v.control)
    end
    v.settled = v.sound and #v.open == 0
    return v
end

-- Repetitions that confirm what finals of so many say.
function Race:confirming(repetitions) return math.max(self.rules.repetitions * self.rules.least, repetitions // 4) end

-- What a new process finds of `name`: its lead over the default and the control; nil and why not.
function Race:confirmation(rung, number, name, repetitions)
    if self:left() <= self:seconds(3, repetitions) then repetitions = (repetitions + 1) // 2 end
    if self:left() <= self:seconds(3, repetitions) then return nil, "no time was left to confirm it" end
    local rounds = { self:run("confirm", rung, number, { name, race.twin, self.default }, repetitions) }
    if not rounds[1] then return nil, "no time was left to confirm it" end
    local event = { phase = "confirm", rung = rung, number = number, candidate = name }
    self:note(event)
    if not rounds[1][name] then
        event.dropped = "could not be measured"
        return nil, "a new process could not measure it"
    end
    local lead, control = self:interval(rounds, name, self.default), self:control(rounds)
    event.time, event.ratio, event.low, event.high, event.samples =
        statistics.median(rounds[1][name]), lead.centre, lead.low, lead.high, lead.samples
    return { lead = lead, control = control, event = event, samples = rounds[1] }
end

-- Why a new process does not find again what the finals say of the winner; nil: it does.
function Race:refutation(found, v)
    local lead, control = found.lead, found.control
    local good = v.equal[self.default] and lead.low <= 1 + self.rules.tolerance
        or lead.centre < 1 and lead.low <= v.lead.high
    if good then return nil end
    found.event.dropped = string.format(
        "a new process finds %.3fx of the default (%.3f … %.3f), its control %.3f … %.3f",
        lead.centre,
        lead.low,
        lead.high,
        control.low,
        control.high
    )
    return found.event.dropped
end

local function show(interval)
    local centre, low, high = interval.centre, interval.low, interval.high
    return string.format("%.3f (%.3f … %.3f)", centre, low, high)
end

-- Whether the leader, which is not proven to be faster than the default, is at least proven to be slower than nothing
-- by more than the limit. `found`: its confirmation, if there was one.
function Race:safe(rung, v, repetitions, found)
    if not v.quiet or v.leader == self.default or v.loss(v.leader) > self.rules.limit then return false end
    if not found or found.event.candidate ~= v.leader then
        found = self:confirmation(rung, found and 2 or 1, v.leader, repetitions)
    end
    if not found then return false end
    local all = table.move(v.rounds, 1, #v.rounds, 1, {})
    all[#all + 1] = found.samples
    return found.lead.low <= 1 + self.rules.tolerance
        and self:interval(all, v.leader, self.default).high <= 1 + self.rules.limit
end

-- The result of a race that has kept the default.
function race.kept(default, decided, reason)
    return {
        winner = default,
        ratio = 1,
        low = 1,
        high = 1,
        samples = 0,
        loss = 0,
        decided = decided,
        reason = reason,
    }
end

-- The result of the finals, whose last verdict is `v`.
function Race:conclude(rung, v, repetitions)
    local rules, default = self.rules, self.default
    local loss, why, found = v.loss(v.winner), nil, nil
    if not v.calm then
        why = "the default differs from itself"
    elseif not v.sound then
        why = "no lead is larger than what the default shows against itself"
    elseif v.winner == default and loss > rules.limit then
        why = "finalists cannot be told apart"
    elseif v.winner ~= default then
        found, why = self:confirmation(rung, 1, v.winner, repetitions)
        if found then why = self:refutation(found, v) end
    end
    local result = race.kept(default)
    local other = self.challenger
    result.second = other and not self.wrong[other.name] and other or nil
    result.samples, result.leader, result.control = v.control.samples, v.fastest, v.control
    local function choose(name, lead)
        result.winner, result.ratio, result.low, result.high, result.samples =
            name, lead.centre, lead.low, lead.high, lead.samples
        if name ~= default then result.second = nil end
    end
    if not why then
        choose(v.winner, v.lead)
        result.decided, result.loss = v.tie and "tie" or "winner", loss
        result.reason = v.tie and "of equal finalists the smaller object code, then the default"
            or loss > rules.limit and string.format(
                "faster than the default; another finalist may be faster by up to %.1f %%",
                100 * loss
            )
            or "faster than the other finalists"
    elseif v.quiet and v.loss(default) <= rules.limit then
        result.decided, result.loss, result.reason =
            "tie", v.loss(default), "no finalist is proven faster than the default by more than the limit"
    elseif self:safe(rung, v, repetitions, found) then
        choose(v.leader, v.fastest)
        result.decided, result.loss, result.reason =
            "tie", v.loss(v.leader), "the fastest, and slower than nothing by more than the limit"
    else
        result.decided, result.loss = "too noisy", math.max(0, 1 / v.fastest.low - 1)
        result.reason = string.format(
            "%s: leader %s of the default, default against itself %s",
            why,
            show(v.fastest),
            show(v.control)
        )
    end
    return result
end

-- Runs one round of the finals; returns who could be measured.
function Race:final_round(rung, rounds, alive, repetitions)
    local runners = { self.default, race.twin }
    for _, name in ipairs(alive) do
        if name ~= self.default then runners[#runners + 1] = name end
    end
    local after = self:seconds(3, self:confirming(repetitions * (#rounds + 1))) + (self.options.proving or 0)
    local wanted = math.max(0, self.rules.least - #rounds)
    if wanted == 0 and self:left() <= self:seconds(#runners, repetitions) + after then return nil end
    -- with fewer rounds nothing is decided: shorter ones rather than none
    if self:left() <= wanted * self:seconds(#runners, repetitions) + after then repetitions = (repetitions + 1) // 2 end
    if self:left() <= self:seconds(#runners, repetitions) then return nil end
    local samples, rest = self:run("final", rung, #rounds + 1, runners, repetitions), {}
    if not samples then return nil end
    rounds[#rounds + 1] = samples
    for _, name in ipairs(alive) do
        if samples[name] then
            rest[#rest + 1] = name
        else
            self:note {
                phase = "final",
                rung = rung,
                number = #rounds,
                candidate = name,
                dropped = "could not be measured",
            }
        end
    end
    return rest
end

function Race:note_final(rung, rounds, name, ratio, interval, dropped)
    local list = {}
    for i, samples in ipairs(rounds) do
        list[i] = samples[name]
    end
    list = flat(list)
    self:note {
        phase = "final",
        rung = rung,
        number = #rounds,
        candidate = name,
        time = statistics.median(list),
        ratio = ratio,
        low = interval.low,
        high = interval.high,
        samples = #list,
        dropped = dropped,
    }
end

-- Keeps what `rounds` say of the fastest of the finalists `alive` beside the default.
function Race:note_challenger(rounds, alive)
    for _, name in ipairs(alive) do
        if name ~= self.default then
            local found = self:interval(rounds, name, self.default)
            found.name, found.rounds = name, #rounds
            local best = self.challenger
            if not best or found.rounds > best.rounds or found.centre < best.centre then self.challenger = found end
        end
    end
end

-- The winner or the leader, if it is found to be wrong: { name, reason }, without reason if there was no time.
function Race:wrong_one(v)
    for _, name in ipairs { v.winner, v.leader } do
        if name ~= self.default and self.options.prove and not self.right[name] then
            local reason = self.options.prove(name)
            if reason ~= nil then return { name = name, reason = reason or nil } end
            self.right[name] = true
        end
    end
end

-- The finalists that were measured often enough and are not known to be wrong, behind the default.
function Race:sound_finalists(rounds, finalists)
    local list = { self.default }
    for _, name in ipairs(finalists) do
        local count = 0
        for _, samples in ipairs(rounds) do
            count = count + (samples[name] and 1 or 0)
        end
        if name ~= self.default and not self.wrong[name] and count >= self.rules.least then list[#list + 1] = name end
    end
    return list
end

-- The finalists against each other until only equals are left, or until rounds or time are used up; then the
-- confirmation.
function Race:finals(rung, finalists, repetitions)
    local alive, rounds, v = { self.default }, {}, nil
    for _, name in ipairs(finalists) do
        if not self.wrong[name] then alive[#alive + 1] = name end
    end
    while #rounds < self.rules.rounds and not (v and v.settled) do
        local measured = self:final_round(rung, rounds, alive, repetitions)
        if not measured then break end
        alive = measured
        if #rounds >= self.rules.least then
            v = self:judge(rounds, alive)
            local rest = {}
            for _, name in ipairs(alive) do
                local interval = v.against[name] or { low = 1, high = 1 }
                self:note_final(rung, rounds, name, v.ratio[name], interval, v.dropped[name])
                if not v.dropped[name] then rest[#rest + 1] = name end
            end
            self:note_final(rung, rounds, race.twin, v.control.centre, v.control)
            self:note_challenger(rounds, alive)
            alive = rest
        end
    end
    local wrong = v and self:wrong_one(v)
    while wrong do
        if not wrong.reason then
            return race.kept(self.default, "no time", "no time was left to verify the fastest thoroughly")
        end
        self.wrong[wrong.name] = true
        self:note { phase = "final", rung = rung, number = #rounds, candidate = wrong.name, dropped = wrong.reason }
        v = self:judge(rounds, self:sound_finalists(rounds, finalists))
        wrong = self:wrong_one(v)
    end
    if v then return self:conclude(rung, v, self:confirming(repetitions * #rounds)) end
    local reason = string.format("%d of %d rounds of the finals were measured", #rounds, self.rules.least)
    return race.kept(self.default, "no time", reason)
end

function race.run(options)
    local rules = {}
    for rule, value in pairs(race.rules) do
        rules[rule] = options.rules and options.rules[rule] or value
    end
    local self = setmetatable({
        options = options,
        rules = rules,
        seed = options.seed or 1,
        default = options.candidates[1].name,
        by_name = {},
        right = {}, -- by name: what was verified thoroughly
        wrong = {}, -- by name: what was timed and then found to be wrong
        history = {},
        count = 0,
        replayed = 0,
        costs = { halving = { seconds = 0, samples = 0 } },
        unmeasured = 0,
    }, Race)
    local names = {}
    for i, candidate in ipairs(options.candidates) do
        if self.by_name[candidate.name] or candidate.name == race.twin then
            error("race: candidate " .. candidate.name .. " is there twice", 0)
        end
        self.by_name[candidate.name] = { bytes = candidate.bytes, place = i }
        if i > 1 then names[#names + 1] = candidate.name end
    end
    self.costs.final = options.screen and { seconds = 0, samples = 0 } or self.costs.halving
    self.costs.confirm = self.costs.final
    self.total = math.min(options.left(), 1e9)
    local finalists, repetitions = self:halve(names), self.rules.repetitions
    while
        #finalists > 1 and self:least_finals(#finalists) > self:left()
        or #finalists > 2 and self:seconds(#finalists + 2, self.rules.pairs) > self:left()
    do
        self:note {
            phase = "final",
            rung = 1,
            number = 0,
            candidate = table.remove(finalists),
            dropped = "no time left for so many finalists",
        }
    end
    local result
    if #finalists > 0 then
        result = self:finals(1, finalists, repetitions)
        if result.decided == "too noisy" then
            local again = self:finals(2, finalists, 2 * repetitions)
            if again.decided ~= "no time" then result = again end
        end
    elseif self.unmeasured > 0 then
        result = race.kept(self.default, "no time", "nothing was measured")
    else
        local reason = #names == 0 and "there is no other candidate" or "no other candidate could be measured"
        result = race.kept(self.default, "winner", reason)
    end
    if self.unmeasured > 0 then
        result.reason = string.format("%s; no time for %d other candidates", result.reason, self.unmeasured)
    end
    result.unmeasured, result.history = self.unmeasured, self.history
    return result
end

return race
