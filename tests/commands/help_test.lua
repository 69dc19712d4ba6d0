-- What lookupc says of itself: help, man pages, its version, and what doctor finds.
local check = require "tests.support.check"
local cli = require "commands.cli"
local cpu = require "harness.base.cpu"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local words = require "commands.words"

local works = program.works
local test = {}

local commands = {}
for i, command in ipairs(cli.commands) do
    commands[i] = command.name
end

function test.help_names_every_command_and_says_where_the_rest_stands()
    local text = works { "help" }
    for _, name in ipairs(commands) do
        check.matches(text, "\n  " .. name .. " ")
    end
    check.matches(text, "\nlookupc help COMMAND says more of one; lookupc help model prints the keys [^\n]*\n$")
    check.equal(select(2, text:gsub("\n", "")) < 50, true) -- lines: it fits on a screen
    for _, words in ipairs { { "--help" }, { "-h" } } do
        check.equal(works(words), text)
    end
    local result = program.run {}
    check.equal({ result.status, result.output, result.errors }, { 2, "", text })
end

function test.help_of_model_files_names_every_key()
    local text = works { "help", "model" }
    for _, key in ipairs { "name", "d_out", "projection.block", "projection.decay", "norm.eps", "neighbours" } do
        check.matches(text, "\n  " .. key:gsub("%p", "%%%0") .. " ")
    end
end

function test.help_of_a_command()
    for _, name in ipairs(commands) do
        local text = works { "help", name }
        check.matches(text, "^usage: lookupc " .. name .. "%f[ \n]")
        if name ~= "help" then check.equal(works { name, "--help" }, text) end
    end
    local text = works { "help", "sample" }
    check.matches(text, "\nwrite random weights [^\n]*%.\n")
    for _, option in ipairs { "%-%-seed N", "%-o FILE", "%-%-prefix TEXT" } do
        check.matches(text, "\n  " .. option .. " +%l")
    end
end

-- Help and man pages print them, and all that stops them is that their files are absent.
function test.examples_of_every_command_are_command_lines()
    local there, pages = program.folder(), program.folder()
    works { "help", "--man", pages }
    for _, command in ipairs(cli.commands) do
        local page = assert(host.read(pages .. "/" .. words.page(command) .. ".1"))
        local help = works { "help", command.name }
        check.matches(page, "\n%.SH EXAMPLES\n")
        for _, example in ipairs(command.examples) do
            local line = example[2]
            check.matches(page:gsub("\\(.)", "%1"), line:gsub("%p", "%%%0"))
            check.matches(help, "\n  " .. line:gsub("%p", "%%%0"))
            local own = line:gsub(" [<>].*", ""):gsub("^lookupc", '"$0"', 1)
            local result = assert(process.run({ "bash", "-c", own, check.lookupc }, {
                directory = there,
                env = { LOOKUPC_STORE = there .. "/store.sqlite" },
                timeout = 60,
            }))
            local absent = result.output:find("No such file or directory", 1, true)
                or result.output:find("there is no store yet", 1, true)
            if result.status ~= 0 and not absent then error(line .. ": " .. result.output, 0) end
        end
    end
end

function test.version() check.equal(works { "--version" }, "lookupc " .. host.version .. "\n") end

-- LOOKUPC_CPU takes away, in every command that asks what this CPU has, and is part of the CPU's name.
function test.a_mask_of_the_cpu()
    local masked = { env = { LOOKUPC_CPU = "scalar" } }
    local facts = json.decode(works({ "doctor", "--json" }, masked)).cpu
    check.equal({ facts.isa, facts.features, facts.amx }, { { "scalar" }, {}, false })
    check.matches(facts.name, " %(LOOKUPC_CPU=scalar%)$")
    program.refuses(1, "this CPU runs none of avx2", { "verify", "gen/models/tiny.lua", "--isa", "avx2" }, masked)
    local other = cpu.real().architecture == "aarch64" and "sse4" or "neon"
    for name, rule in pairs { avx3 = "must be one of scalar, ", [other] = "this CPU has no such instructions: " } do
        local line = string.format('LOOKUPC_CPU: "%s": %s', name, rule)
        program.refuses(2, line, { "doctor" }, { env = { LOOKUPC_CPU = name } })
    end
    local out = program.folder() .. "/cpu.lua"
    program.refuses(2, "LOOKUPC_CPU: --machine: ", { "tune", "--machine", "here", "-o", out }, masked)
end

function test.doctor_says_what_is_there_and_what_is_missing()
    local facts = json.decode(works { "doctor", "--json" })
    check.equal(facts.cpu.isa[1], "scalar")
    check.equal(facts.cpu.amx, facts.cpu.amx_missing == nil)
    local bin = program.folder()
    local text = works({ "doctor" }, { env = { PATH = bin .. ":" .. bin } })
    check.matches(text, "\ngcc +is missing: ")
    check.matches(text, "\n  apt install gcc clang ")
    check.matches(text, "\nAMX +%S")
    for _, name in ipairs { "CPU", "instruction sets", "L2 cache", "pages of 2 MiB", "lookupc%-measure", "OpenBLAS" } do
        check.matches(text, "\n" .. name .. " +%S")
    end
    -- The compiler says which libraries it finds: one that finds OpenBLAS alone.
    local answer = '#!/bin/sh\ncase $1 in *openblas*) echo /lib/openblas ;; *) echo "${1#*=}" ;; esac\n'
    assert(host.write_file(bin .. "/gcc", answer))
    assert(process.run { "chmod", "+x", bin .. "/gcc" })
    text = works({ "doctor" }, { env = { PATH = bin .. ":/usr/bin:/bin" } })
    check.matches(text, "\nOpenBLAS +is there\n")
    check.matches(text, "\nMPI +is missing: builds lookupc%-mpi.so\n")
    check.matches(text, "\n  apt install [^\n]*libdnnl%-dev libbenchmark%-dev libsentencepiece%-dev libopenmpi%-dev ")
    -- A program alone, without its parts.
    assert(process.run { "cp", check.lookupc, bin .. "/lookupc" })
    local alone = assert(process.run({ bin .. "/lookupc", "doctor" }, { timeout = 60 })).output
    check.matches(alone, "\nlookupc%-mpi.so +is missing: train needs it on several machines\n")
    check.matches(alone, "\n  cmake [^\n]* %-DLOOKUPC_BENCH=ON %-DLOOKUPC_TRAIN=ON %-DLOOKUPC_MPI=ON && cmake ")
end

return test
