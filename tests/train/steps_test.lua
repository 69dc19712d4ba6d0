-- The steps of training with code by hand (tests/train/bigram.c): what they compute, whatever threads and loaded
-- states, and which checkpoints are refused.
local bigram = require "tests.train.bigram"
local check = require "tests.support.check"
local host = require "host"
local program = require "tests.support.program"
local run = require "harness.train.run"
local train = require "train"

local test = {}
local job, vocab = bigram.job, bigram.vocab

local function bytes(path) return assert(host.read(path)) end

-- The loss after `steps` steps, the bytes of the weights, and the run.
local function trained(j, steps)
    local state, loss = assert(train.open(j)), nil
    state:initialise()
    for step = 1, steps do
        loss = state:step(step, 0.01, 0.04)
    end
    local path = program.folder() .. "/w.safetensors"
    assert(state:export(path))
    return loss, bytes(path), state
end

-- A job whose tables, and with `all` also its matrix, are rounded to `type` for passes forward.
local function rounded_job(type, changes, all)
    local j = job(changes)
    for i = all and 1 or 2, 2 do
        j.tensors[i].rounding = { type = type, row = vocab, steps = {} }
    end
    return j
end

-- The jobs of runs that take other ways.
local jobs = {
    plain = job,
    adam = function(changes)
        local j = job(changes)
        j.adam = true
        return j
    end,
    rounded = function(changes) return rounded_job("i8", changes, true) end,
    both = function(changes)
        local j = rounded_job("i8", changes)
        j.adam = true
        return j
    end,
}

-- The nearest multiples of a row's largest magnitude / 127, a float32.
local function rounded_row(row)
    local largest = 0
    for _, value in ipairs(row) do
        largest = math.max(largest, math.abs(value))
    end
    local scale = string.unpack("<f", string.pack("<f", largest / 127))
    local list = {}
    for k, value in ipairs(row) do
        list[k] = scale * math.floor(value / scale + 0.5)
    end
    return list
end

function test.a_run_learns()
    local first = trained(job(), 1)
    local last, _, state = trained(job(), 150)
    local validation, tokens = state:validate(1000)
    check.near(first, math.log(vocab), 0.1)
    check.equal(last < 1.6 and validation < 1.6, true)
    check.equal(tokens, (400 - 1) // 12 * 12)
    local uses = state:uses()
    check.equal(#uses[2], 2)
    check.equal(uses[2][1][1], 8)
    check.equal(uses[2][1][2] > 2.5 and uses[2][1][2] <= 3, true)
    check.equal(state:uses()[2][1][1], 0)
end

function test.every_thread_takes_denormal_numbers_for_zeros_in_a_step_and_no_longer()
    local flushing = { step = "bigram_step_of_zeros", flush_denormals = "bigram_flush_denormals", threads = 3 }
    local loss, weights = trained(job(flushing), 3)
    local same_loss, as_ever = trained(job(), 3)
    check.equal(loss, same_loss)
    check.equal(weights == as_ever, true)
end

-- With an epsilon that is large beside gradients, and without averages, a step is in proportion to the gradient.
function test.long_gradients_are_clipped()
    local function moved(clip)
        local j = job { clip = clip, beta1 = 0.0, beta2 = 0.0, epsilon = 100.0, decay = 0.0 }
        local state, folder = assert(train.open(j)), program.folder()
        state:initialise()
        assert(state:export(folder .. "/before.safetensors"))
        local _, norm = state:step(1, 100.0, 0.04)
        assert(state:export(folder .. "/after.safetensors"))
        local length = program.python(
            [=[
def dense(name):
    return load(sys.argv[1] + name + ".safetensors")["dense"][1].astype(float)

print(np.linalg.norm(dense("/after") - dense("/before")))]=],
            folder
        )
        return tonumber(length), norm
    end
    local whole, norm = moved(0.0) -- 0: as long as they are
    check.near(whole / norm, 1.0, 0.01)
    for _, share in ipairs { 0.1, 0.9, 1.1 } do
        local clipped, same = moved(share * norm)
        check.near(clipped / norm, math.min(share, 1.0), 0.01)
        check.equal(same, norm) -- the log has the length before
    end
end

function test.threads_change_no_byte()
    local seen = {}
    for name, make in pairs(jobs) do
        local _, one = trained(make(), 20)
        for _, threads in ipairs { 2, 3, 5 } do
            local _, many = trained(make { threads = threads }, 20)
            check.equal(many == one, true)
        end
        check.equal(seen[one], nil)
        seen[one] = name
    end
    local _, one = trained(job(), 20)
    local _, other = trained(job { seed = 2 }, 20)
    check.equal(other == one, false)
end

function test.a_loaded_state_goes_on_as_if_nothing_had_happened()
    for _, make in pairs(jobs) do
        local _, whole = trained(make(), 20)
        local _, _, half = trained(make(), 9)
        local path = program.folder() .. "/state"
        assert(half:save(path, "a text \xff"))
        check.equal(train.text(path), "a text \xff")
        local state = assert(train.open(make { threads = 2 }))
        assert(state:load(path))
        for step = 10, 20 do
            state:step(step, 0.01, 0.04)
        end
        assert(state:export(path .. ".w"))
        check.equal(bytes(path .. ".w") == whole, true)
    end
end

-- Lazy Adam beside its definition, on the gradient of the first step: each number of a row that is met moves by its
-- rate, others stay.
function test.adam_of_tables_moves_by_the_rate_at_first()
    local j = jobs.adam()
    j.tensors[2].deviation = 0.0
    local _, weights, state = trained(j, 1)
    local met, moved = 0, 0
    for _, one in ipairs(state:uses()[2]) do
        met = met + one[1]
    end
    for at = #weights - 4 * 256 + 1, #weights, 4 do
        local value = string.unpack("<f", weights, at)
        if value ~= 0 then
            moved = moved + 1
            check.near(math.abs(value), 0.04, 1e-4)
        end
    end
    check.equal(moved, met * vocab)
end

-- The validation of a run with rounded tensors is that of its weights when they are rounded, and they are not.
function test.passes_forward_read_rounded_weights()
    local _, weights, state = trained(rounded_job("i8", {}, true), 60)
    local list, moved = {}, 0
    for first = #weights - 8 * 256 + 1, #weights, 4 * vocab do
        local row = { string.unpack("<" .. ("f"):rep(vocab), weights, first) }
        row[vocab + 1] = nil
        list[#list + 1] = rounded_row(row)
        for k, value in ipairs(row) do
            moved = math.max(moved, math.abs(value - list[#list][k]))
        end
    end
    check.equal(moved > 1e-4, true)
    local ids = bigram.ids(400, 2)
    local function id(at) return (string.unpack("<i4", ids, 4 * at + 1)) end
    local function loss(rows)
        local nats = 0
        for at = 0, 395 do
            local a, b, sum = rows[id(at) + 1], rows[vocab + id(at) + 1], 0
            for k = 1, vocab do
                sum = sum + math.exp(a[k] + b[k])
            end
            nats = nats + math.log(sum) - a[id(at + 1) + 1] - b[id(at + 1) + 1]
        end
        return nats / 396
    end
    local validation, tokens = state:validate(1000)
    check.equal(tokens, 396)
    check.near(validation, loss(list), 1e-6)
end

function test.damaged_checkpoints_are_one_line()
    local _, _, state = trained(job(), 2)
    local path = program.folder() .. "/state"
    assert(state:save(path, "text"))
    local good = bytes(path)
    for _, length in ipairs { 0, 7, 100, #good // 2, #good - 1 } do
        assert(host.write_file(path, good:sub(1, length)))
        check.fails_with(path, state.load, state, path)
        check.fails_with(path, train.text, path)
    end
    for at = 1, #good, 7 do -- one bit of every seventh byte
        local byte = string.char(good:byte(at) ~ 1 << at % 8)
        assert(host.write_file(path, good:sub(1, at - 1) .. byte .. good:sub(at + 1)))
        check.fails_with(path, train.text, path)
    end
    assert(state:export(path)) -- the weights are no checkpoint
    check.fails_with(path, state.load, state, path)
    check.fails_with(path, train.text, path)
end

function test.a_checkpoint_of_something_else_is_one_line()
    local _, _, state = trained(job(), 1)
    local path = program.folder() .. "/state"
    for _, text in ipairs {
        "",
        "7",
        "{}",
        '{"settings":{},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0,"isa":"scalar"}',
        '{"settings":{"steps":3,"evaluate":1},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0}',
        '{"settings":{"steps":3,"evaluate":"x"},"step":1,"parts":1,"counted":0,"nats":0.0,"seconds":0.0}',
    } do
        assert(state:save(path, text))
        check.fails_with(path .. ": run: is not what lookupc train writes", run.position, path)
    end
end

function test.a_value_that_is_no_number_is_found()
    local j = job()
    j.tensors[2].means = { 0 / 0 }
    local state = assert(train.open(j))
    state:initialise()
    check.equal(state:not_finite(), "tables")
    local loss = state:step(1, 0.01, 0.04)
    check.equal(loss ~= loss, true)
end

return test
