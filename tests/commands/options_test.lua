-- Words of a command line: which are taken, and what is said of those that are not.
local check = require "tests.support.check"
local cli = require "commands.cli"
local dtype = require "gen.plan.dtype"
local host = require "host"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"
local words = require "commands.words"

local works, refuses = program.works, program.refuses
local with = program.with
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local odd, weights = odd_ffn.model, odd_ffn.weights

function test.words_of_a_command_line()
    local there = program.folder()
    check.matches(works { "--version" }, "^lookupc %d+%.%d+%.%d+\n$")
    for _, words in ipairs { { "-V" }, { "version" } } do
        check.equal(works(words), works { "--version" })
    end
    works { "emit", tiny, "-o" .. there .. "/a", "--isa=scalar" }
    works { "emit", "-o", there .. "/b", "--isa", "scalar", "--", tiny }
    check.equal(process.run({ "diff", "-r", there .. "/a", there .. "/b" }).output, "")
    refuses(2, "lookupc emit: MODEL.lua is missing (see", { "emit" })
    refuses(2, "of the bundle; or give --list, --web, --python or --rust (see", { "emit", tiny })
    refuses(2, "takes MODEL.lua, got " .. tiny .. " --isa", { "emit", "-o", there, "--", tiny, "--isa" })
    refuses(2, 'SHELL: "tcsh": must be one of bash, zsh, fish', { "completion", "tcsh" })
    works { "help", "--man", there .. "/man" }
    for _, name in ipairs { "lookupc", "lookupc-emit", "lookupc-tuned-list" } do
        check.matches(
            host.read(there .. "/man/" .. name .. ".1"),
            "^%.TH [^\n]+\n%.SH NAME\n" .. name:gsub("%-", "\\%%-")
        )
    end
    for _, shell in ipairs { "bash", "zsh", "fish" } do
        check.matches(works { "completion", shell }, "fixed%-names")
    end
end

-- Rules of the table of commands need no file: they come before anything is read.
function test.options_that_exclude_each_other_or_need_another_one_are_refused()
    local function typed(command, word)
        local name, value = word:match "^([^=]+)=?(.*)$"
        for _, option in ipairs(command.options) do
            if option.name == name then
                local sample = option.values and option.values[1] or "1"
                return words.dashes(option), option.value and (value ~= "" and value or sample) or nil
            end
        end
        error(command.name .. ": a rule names the option " .. word .. ", which it does not have")
    end
    local excluded, needed = 0, 0
    for _, command in ipairs(cli.commands) do
        local function of(...)
            local list = { command.name, command.arguments[1] and "none" }
            for _, word in ipairs { ... } do
                local dashes, value = typed(command, word)
                list[#list + 1], list[#list + 2] = dashes, value
            end
            return list
        end
        local function shown(word)
            local dashes, value = typed(command, word)
            return dashes .. (word:find "=" and " " .. value or ""), value and dashes .. ": " .. value or dashes
        end
        for _, option in ipairs(command.options) do
            local _, own = shown(option.name)
            for _, other in ipairs(option.not_beside or {}) do
                refuses(2, own .. ": cannot be given beside " .. shown(other), of(option.name, other))
                check.matches(works { "help", command.name }, "; not beside [^\n]*" .. shown(other):gsub("%p", "%%%0"))
                excluded = excluded + 1
            end
            if option.needs then
                refuses(2, own .. ": needs " .. shown(option.needs), of(option.name))
                needed = needed + 1
            end
        end
    end
    check.equal({ excluded > 10, needed > 10 }, { true, true })
end

function test.options_that_a_model_has_no_use_for_are_refused()
    local dense = program.model(
        folder,
        "dense_projection",
        [[return { name = "dense_projection", d = 8, h = 2, tau = 3, projection = { kind = "dense" }, score = "gelu" }]]
    )
    local encoder = program.model(
        folder,
        "encoder",
        [[
return { name = "encoder", d = 8, heads = 2, layers = 1, vocab = 9, checkpoint = "bert", norm = { kind = "layernorm" },
    attention = { causal = false, context = 8 }, ffn = { kind = "mlp", f = 8, activation = "gelu" } }
]]
    )
    local x, ids = folder .. "/decode.npy", folder .. "/decode.ids"
    assert(host.write_file(ids, "0 1"))
    program.python("np.save(sys.argv[1], np.zeros((2, 8), np.float32))", x)
    for line, given in pairs {
        ["--multiply-out: is for projection.kind = bh4: dense_projection has dense"] = {
            "plan",
            dense,
            "--multiply-out",
        },
        ["--multiply-out: is for lookup FFNs with projection.kind = bh4: tiny_skipless has none"] = {
            "plan",
            "gen/models/tiny_skipless.lua",
            "--multiply-out",
        },
        ["--multiply-out: is for calls of many tokens, and those of firmware are of one"] = {
            "plan",
            "gen/models/tiny.lua",
            "--profile",
            "firmware",
            "--target",
            "cortex-m4f",
            "--multiply-out",
        },
        ["--blocks-in-out: is for projection.kind = bh4: dense_projection has dense"] = {
            "verify",
            dense,
            "--weights",
            weights,
            "--blocks-in-out",
        },
        ["--decode: " .. encoder .. ": is an encoder, which takes all tokens at once"] = {
            "run",
            encoder,
            "--weights",
            weights,
            "--input",
            x,
            "--output",
            folder .. "/y.npy",
            "--decode",
        },
        ["--threads: 2: cannot be given beside --decode, whose calls have one thread"] = {
            "run",
            "gen/models/gpt_nano_sort.lua",
            "--weights",
            weights,
            "--ids",
            ids,
            "--output",
            folder .. "/y.npy",
            "--decode",
            "--threads",
            "2",
        },
        ["--choices: cannot be given beside --time 0, which measures nothing"] = {
            "tune",
            odd,
            "--time",
            "0",
            "--choices",
            "gather.group",
            "-o",
            folder .. "/t.lua",
        },
    } do
        refuses(2, line, given)
    end
end

function test.usage_errors()
    local o = folder .. "/never"
    for _, row in ipairs {
        { 'lookupc: unknown command "emti"; did you mean emit?', "emti" },
        { 'lookupc: unknown command "zzzzzzzz" (see lookupc help)', "zzzzzzzz" },
        { 'lookupc: unknown command ""', "" },
        { 'lookupc: unknown command "emti"', "help", "emti" },
        { "lookupc help: takes [COMMAND], got plan emit", "help", "plan", "emit" },
        {
            "lookupc emit: unknown option --iza; did you mean --isa? (see lookupc help emit)",
            "emit",
            tiny,
            "--iza",
            "scalar",
            "-o",
            o,
        },
        { "unknown option --output", "emit", tiny, "--output", o },
        { "unknown option -x", "plan", tiny, "-x" },
        { "lookupc plan: MODEL.lua is missing", "plan" },
        { "takes MODEL.lua, got a.lua b.lua", "plan", "a.lua", "b.lua" },
        { "DIR is missing", "check" },
        { "-o is missing", "emit", tiny },
        { "-o: needs a value, DIR", "emit", tiny, "-o" },
        { "-o: needs a value", "sample", tiny, "-o", "" },
        { "--weights is missing", "run", tiny, "--input", o, "--output", o },
        { "--weights: needs a value, PATH", "pack", tiny, "-o", o, "--weights" },
        { "--weights: needs a value, PATH", "run", tiny, "--input", o, "--output", o, "--weights=" },
        { "unknown option --schedule", "pack", tiny, "--weights", weights, "-o", o, "--schedule", "gather.group=1" },
        {
            "lookupc run: --input is missing: X.npy, float32 [tokens][d]; or give --ids (see",
            "run",
            tiny,
            "--weights",
            weights,
            "--output",
            o,
        },
        { "[d_out]; or give --expect (see", "run", tiny, "--weights", weights, "--input", o },
        { "lookupc pack: --weights is missing: PATH, the checkpoint", "pack", tiny, "-o", o },
        { "lookupc pack: --weights: needs a value, PATH (see", "pack", tiny, "-o", o, "--weights=" },
        { "--json: takes no value", "plan", tiny, "--json=1" },
        { "--seed: 1: given twice", "sample", tiny, "-o", o, "--seed", "1", "--seed=1", given_twice = true },
        { "--json: given twice", "plan", tiny, "--json", "--json" },
    } do
        local fragment = row.given_twice and "--seed: given twice" or row[1]
        refuses(2, fragment, { table.unpack(row, 2) })
    end
    for _, number in ipairs { "abc", "-1", "1.5", "1e3", "0x10", "4294967296", "99999999999999999999", " 1" } do
        refuses(
            2,
            "--seed: " .. number .. ": must be an integer from 0 to 4294967295",
            { "sample", tiny, "-o", o, "--seed", number }
        )
    end
    check.equal(host.kind(o), nil)
end

-- Of every kind: words that are unknown, missing, out of range or exclude each other.
function test.usage_errors_have_one_status()
    for _, words in ipairs {
        {},
        { "tuned", "forget" },
        { "plan", tiny, "--isa", "mmx" },
        { "plan", tiny, "--for", "z80" },
        { "plan", tiny, "--schedule", "gather.group=0" },
        { "plan", tiny, "--tuned", "t.lua", "--schedule", "gather.group=1" },
        { "completion", "tcsh" },
        { "schema" },
        { "tune", tiny, "-o", "t.lua", "--time", "soon" },
        { "bench", tiny, "--repetitions", "0" },
        { "verify", tiny, "--threads", "0" },
        { "train", tiny, "--text", tiny, "-o", "w.safetensors", "--steps", "-1" },
        { "emit", tiny, "-o", "there", "--web", "--cpp" },
    } do
        local result = program.run(words)
        if result.status ~= 2 then error(table.concat(words, " ") .. ": " .. result.status .. ": " .. result.errors) end
    end
    refuses(1, "absent.lua: No such file", { "plan", "absent.lua" }) -- a file, not the line
end

-- A script's unset variable, for every argument and option that help names.
function test.empty_words()
    local may_be_empty, counted = { TEXT = true, PROMPT = true, FLAGS = true }, 0
    -- The command line is read here: a process for each word would take seconds.
    local function says(fragment, given)
        local note, noted = host.note, {}
        host.note = function(text) noted[#noted + 1] = text end
        local good, status = pcall(cli, given)
        host.note = note
        check.equal({ good, status, #noted }, { true, 2, 1 })
        check.equal({ noted[1]:sub(1, #fragment), noted[1]:find "\n" }, { fragment })
    end
    for line in works({ "help" }):gmatch "\n  (%l[^\n]+)" do
        local name = line:sub(1, 12):gsub(" +$", "")
        local command = {}
        for word in name:gmatch "%S+" do
            command[#command + 1] = word
        end
        local usage = works({ "help", table.unpack(command) }):match "^usage: lookupc ([^\n]+)"
        local argument = usage:sub(#name + 2):match "^%[?([%a.]+)"
        argument = argument and argument:gsub("%.%.%.$", "")
        if argument and not may_be_empty[argument] then
            says("lookupc " .. name .. ": " .. argument .. " is empty (see", with(command, ""))
        end
        for option, value in usage:gmatch "(%-%-?[%l%-]+) ([^%s%]]+)" do
            counted = counted + 1
            if not may_be_empty[value] then
                local said = "lookupc " .. name .. ": " .. option .. ": needs a value, " .. value .. " (see"
                says(said, with(command, option, ""))
            end
        end
    end
    check.equal(counted > 250, true)
    local o = folder .. "/never"
    refuses(2, "--text: a value is empty: FILE...", { "train", tiny, "-o", o, "--steps", "1", "--text", tiny, "" })
    refuses(2, "LOG.jsonl is empty", { "tuned", "merge", tiny, "" })
    check.equal(host.kind(o), nil)
    works { "sample", tiny, "--prefix", "", "-o", folder .. "/without_prefix" }
end

-- The words of a command, then `...`.
local function line(command, ...)
    local list = {}
    for word in command.name:gmatch "%S+" do
        list[#list + 1] = word
    end
    return table.move({ ... }, 1, select("#", ...), #list + 1, list)
end

function test.every_option_with_a_list_of_values_takes_no_other()
    local count = 0
    for _, command in ipairs(cli.commands) do
        local given = {}
        for _, option in ipairs(command.options) do
            if option.values then
                local name, first, is_list = words.dashes(option), option.values[1], option.value == "LIST"
                local list = table.concat(option.values, ", ")
                for _, bad in ipairs { "nonsense", first:upper() .. "!", first .. " ", first .. ",nonsense", "," } do
                    local word = is_list and (bad:match ",(.*)$" or bad) or bad
                    local _, message = pcall(cli, line(command, name, bad))
                    check.equal(tostring(message), string.format('%s: "%s": must be one of %s', name, word, list))
                end
                if option.default then
                    check.equal(table.concat(option.values, " "):find(option.default, 1, true) ~= nil, true)
                end
                given[#given + 1], given[#given + 2] = name, is_list and table.concat(option.values, ",") or first
                count = count + 1
            end
        end
        if given[1] then -- the values themselves are taken: what is wrong stands behind them
            given[#given + 1] = "--nonsense"
            refuses(2, "unknown option --nonsense", line(command, table.unpack(given)))
        end
    end
    check.equal(count > 80, true) -- of 96 when this was written
    local never = folder .. "/never.safetensors"
    refuses(
        2,
        'lookupc: --table-optimiser: "sgd": must be one of adagrad, adam\n',
        { "train", odd, "--text", tiny, "--steps", "1", "-o", never, "--table-optimiser", "sgd" }
    )
    check.equal(host.kind(never), nil)
end

-- Values whose rules depend on more than the command line.
function test.wrong_lists()
    local o = folder .. "/never"
    for _, text in ipairs { "mve", "scalar,mve", ",", "scalar,", "AVX2", "scalar avx2" } do
        refuses(2, "--isa: ", { "emit", tiny, "-o", o, "--isa", text })
    end
    for _, text in ipairs {
        "gather.group",
        "gather.group=",
        "gather.group=x",
        "gather.gruop=8",
        "gather.group=8,gather.group=8",
        "gather.group=7",
        ",",
    } do
        refuses(2, "--schedule: ", { "emit", tiny, "-o", o, "--schedule", text })
    end
    refuses(2, 'did you mean "gather.group"?', { "emit", tiny, "-o", o, "--schedule", "gather.gruop=8" })
    for _, text in ipairs { "0", "x", "1,,2", "1.5", "65537" } do
        refuses(2, "--batch: ", { "bench", tiny, "--isa", "scalar", "--batch", text })
    end
    refuses(2, "--repetitions: 0: must be an integer", { "bench", tiny, "--isa", "scalar", "--repetitions", "0" })
    for _, text in ipairs { "i5", "f32,", "f32,i5", "f32 i8" } do
        refuses(
            2,
            ": must be one of " .. table.concat(dtype.names, ", "),
            { "bench", tiny, "--isa", "scalar", "--tables", text }
        )
    end
    for _, text in ipairs { ",", "default,", ",default" } do
        refuses(2, '--tuned: "' .. text .. '": must be files', { "bench", tiny, "--isa", "scalar", "--tuned", text })
    end
    refuses(2, '--tables: "i8": given twice', { "bench", tiny, "--isa", "scalar", "--tables", "i8,f32,i8" })
    refuses(2, '--rivals: "same": given twice', { "bench", tiny, "--isa", "scalar", "--rivals", "same,same" })
    for _, command in ipairs { "verify", "bench" } do
        for _, number in ipairs { "0", "1025" } do
            refuses(
                2,
                "--threads: " .. number .. ": must be an integer from 1 to 1024",
                { command, tiny, "--isa", "scalar", "--threads", number }
            )
        end
        refuses(2, "--threads: x: must be an integer", { command, tiny, "--threads", "x" })
    end
    check.equal(host.kind(o), nil)
end

return test
