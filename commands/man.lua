-- Man pages, one a command and one for all, made from the table of commands.
local host = require "host"
local option_rules = require "commands.option_rules"
local words = require "commands.words"

local man = {}

-- Text as roff prints it.
local function roff(text) return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1")) end

local function heading(name, doc)
    return {
        string.format('.TH %s 1 "" "lookupc %s" "lookupc"', name:upper():gsub("%-", "\\-"), host.version),
        ".SH NAME",
        roff(name) .. " \\- " .. roff(doc),
    }
end

-- The page of a command: its usage and every option.
local function page_of(command)
    local lines = heading(words.page(command), command.doc)
    local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
    add(".SH SYNOPSIS", ".nh", "\\fBlookupc " .. roff(command.name) .. "\\fR")
    for _, argument in ipairs(command.arguments) do
        add("\\fI" .. roff(argument) .. "\\fR")
    end
    for _, option in ipairs(command.options) do
        local text = roff(words.option(option))
        add(option.required and text or "[" .. text .. "]")
    end
    add(".hy")
    if command.options[1] then add(".SH OPTIONS") end
    for _, option in ipairs(command.options) do
        add(
            ".TP",
            "\\fB"
                .. roff(words.dashes(option))
                .. "\\fR"
                .. (option.value and " \\fI" .. roff(option.value) .. "\\fR" or "")
        )
        add(roff(option.doc .. words.default(option) .. option_rules.text(option)))
    end
    add(".SH EXAMPLES")
    for _, example in ipairs(command.examples) do
        add(".TP", roff(example[1]) .. ":", ".nf", "\\fB" .. roff(example[2]) .. "\\fR", ".fi")
    end
    add(
        ".SH EXIT STATUS",
        "0: done; 2: the command line is wrong; else it failed, and one line on standard error says why."
    )
    add(".SH SEE ALSO", "\\fBlookupc\\fR(1)")
    return table.concat(lines, "\n") .. "\n"
end

-- The page of the program: what it is, and its commands.
local function program_page(commands)
    local lines = heading("lookupc", "turn a model file into specialised C")
    local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
    add(".SH SYNOPSIS", "\\fBlookupc\\fR [\\-\\-tree \\fIDIR\\fR] \\fICOMMAND\\fR ...", ".SH DESCRIPTION")
    add "From a short model file lookupc emits C for a layer of a neural network, and packs its weights for that C."
    add(".SH COMMANDS")
    for _, command in ipairs(commands) do
        add(".TP", "\\fB" .. roff(words.page(command)) .. "\\fR(1)", roff(command.doc))
    end
    add(".SH OPTIONS", ".TP", "\\fB\\-V\\fR, \\fB\\-\\-version\\fR", "print the version")
    add(
        ".TP",
        "\\fB\\-\\-tree\\fR \\fIDIR\\fR",
        roff "take Lua modules and templates from DIR, a checkout, instead of from the program"
    )
    return table.concat(lines, "\n") .. "\n"
end

-- The page of lookupc-measure, which is installed beside lookupc; that of lookupc-tokenizer is its command's.
local function measure_page()
    local lines = heading("lookupc-measure", "time compiled code for lookupc bench and lookupc tune")
    local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
    add(".SH SYNOPSIS", "\\fBlookupc\\-measure\\fR \\fIPARENT\\fR \\fITREE\\fR \\fIJOB.json\\fR \\fIOUT.json\\fR")
    add ".SH DESCRIPTION"
    add "It is a part of lookupc and not for users. lookupc, the process \\fIPARENT\\fR, starts it."
    add(".SH SEE ALSO", "\\fBlookupc\\-bench\\fR(1), \\fBlookupc\\-tune\\fR(1)")
    return table.concat(lines, "\n") .. "\n"
end

-- The pages of `commands` by the names of their files.
function man.pages(commands)
    local pages = { ["lookupc.1"] = program_page(commands), ["lookupc-measure.1"] = measure_page() }
    for _, command in ipairs(commands) do
        pages[words.page(command) .. ".1"] = page_of(command)
    end
    return pages
end

return man
