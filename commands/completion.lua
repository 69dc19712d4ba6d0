-- Completion of command lines in bash, zsh and fish, made from the table of commands.
local words = require "commands.words"

local completion = {}

-- The first words of commands, each once, and by each the second words that may follow, if any.
local function tree_of(commands)
    local first, second = {}, {}
    for _, command in ipairs(commands) do
        local a, b = command.name:match "^(%S+) ?(.*)$"
        if not second[a] then
            first[#first + 1], second[a] = a, {}
        end
        if b ~= "" then table.insert(second[a], b) end
    end
    return first, second
end

local function options_of(command)
    local list = {}
    for i, option in ipairs(command.options) do
        list[i] = words.dashes(option)
    end
    return table.concat(list, " ")
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What one command's arguments are completed with, beside files: the names of commands or of shells.
local function argument_values(command, commands)
    if command.name == "help" then
        local first = tree_of(commands)
        return { "model", table.unpack(first) }
    end
    return command.values
end

function completion.bash(commands)
    local first, second = tree_of(commands)
    local lines = {
        "# Completion of lookupc in bash; printed by `lookupc completion bash`.",
        "_lookupc() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}",
        "    local command=${COMP_WORDS[1]} list=",
        "    if ((COMP_CWORD == 1)); then",
        "        COMPREPLY=($(compgen -W "
            .. quoted(table.concat(first, " ") .. " --version --tree")
            .. ' -- "$current"))',
        "        return",
        "    fi",
    }
    local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
    for _, name in ipairs(first) do
        if second[name][1] then
            add("    if [[ $command == " .. name .. " ]]; then")
            add("        if ((COMP_CWORD == 2)); then")
            add("            COMPREPLY=($(compgen -W " .. quoted(table.concat(second[name], " ")) .. ' -- "$current"))')
            add("            return", "        fi", '        command="$command ${COMP_WORDS[2]}"', "    fi")
        end
    end
    add '    case "$command $previous" in'
    for _, command in ipairs(commands) do
        for _, option in ipairs(command.options) do
            if option.value then
                local values = option.values and quoted(table.concat(option.values, " ")) or "''"
                add("    " .. quoted(command.name .. " " .. words.dashes(option)) .. ") list=" .. values .. " ;;")
            end
        end
    end
    add("    *)", "        case $command in")
    for _, command in ipairs(commands) do
        local values = argument_values(command, commands)
        local plain = values and quoted(table.concat(values, " ")) or "''"
        add("        " .. quoted(command.name) .. ")")
        add("            list=" .. plain)
        add("            [[ $current != -* ]] || list=" .. quoted(options_of(command)), "            ;;")
    end
    add("        esac", "        ;;", "    esac")
    add('    COMPREPLY=($(compgen -W "$list" -- "$current"))', "}", "complete -o default -F _lookupc lookupc")
    return lines
end

-- A text inside [...] of zsh's _arguments, or behind the : of _describe.
local function zsh_text(text) return (text:gsub("[%[%]:\\]", "\\%0")) end

function completion.zsh(commands)
    local first, second = tree_of(commands)
    local lines =
        { "#compdef lookupc", "# Completion of lookupc in zsh; printed by `lookupc completion zsh`.", "local -a list" }
    local function add(...) table.move({ ... }, 1, select("#", ...), #lines + 1, lines) end
    add("if (( CURRENT == 2 )); then", "    list=(")
    for _, command in ipairs(commands) do
        if not command.name:find " " then add("        " .. quoted(command.name .. ":" .. zsh_text(command.doc))) end
    end
    for _, name in ipairs(first) do
        if second[name][1] then add("        " .. quoted(name .. ":" .. table.concat(second[name], ", "))) end
    end
    add("    )", "    _describe command list", "    return", "fi", "local command=$words[2]")
    for _, name in ipairs(first) do
        if second[name][1] then
            add("if [[ $command == " .. name .. " ]]; then", "    if (( CURRENT == 3 )); then", "        list=(")
            for _, command in ipairs(commands) do
                local b = command.name:match("^" .. name .. " (%S+)$")
                if b then add("            " .. quoted(b .. ":" .. zsh_text(command.doc))) end
            end
            add("        )", "        _describe command list", "        return", "    fi")
            add('    command="$command $words[3]"', "    shift words", "    (( CURRENT-- ))", "fi")
        end
    end
    add("case $command in")
    for _, command in ipairs(commands) do
        add(quoted(command.name) .. ")", "    list=(")
        for _, option in ipairs(command.options) do
            local text = words.dashes(option) .. "[" .. zsh_text(option.doc) .. "]"
            if option.value then
                local how = option.values and "(" .. table.concat(option.values, " ") .. ")" or "_files"
                text = text .. ":" .. zsh_text(option.value) .. ":" .. how
            end
            add("        " .. quoted(text))
        end
        local values = argument_values(command, commands)
        add("        " .. quoted("*:argument:" .. (values and "(" .. table.concat(values, " ") .. ")" or "_files")))
        add("    )", "    ;;")
    end
    add("esac", "shift words", "(( CURRENT-- ))", "_arguments -S $list")
    return lines
end

function completion.fish(commands)
    local first, second = tree_of(commands)
    local lines = { "# Completion of lookupc in fish; printed by `lookupc completion fish`." }
    local function add(...) lines[#lines + 1] = table.concat({ ... }, " ") end
    for _, command in ipairs(commands) do
        local a, b = command.name:match "^(%S+) ?(.*)$"
        local seen = "__fish_seen_subcommand_from " .. a
        if b == "" then
            add("complete -c lookupc -n __fish_use_subcommand -f -a", a, "-d", quoted(command.doc))
        else
            local others = table.concat(second[a], " ")
            add(
                "complete -c lookupc -n",
                quoted(seen .. "; and not __fish_seen_subcommand_from " .. others),
                "-f -a",
                b,
                "-d",
                quoted(command.doc)
            )
            seen = seen .. "; and __fish_seen_subcommand_from " .. b
        end
        for _, option in ipairs(command.options) do
            local name = (#option.name == 1 and "-s " or "-l ") .. option.name
            local takes = option.values and "-x -a " .. quoted(table.concat(option.values, " "))
                or option.value and "-r"
                or "-f"
            add("complete -c lookupc -n", quoted(seen), name, takes, "-d", quoted(option.doc))
        end
        local values = argument_values(command, commands)
        if values then add("complete -c lookupc -n", quoted(seen), "-f -a", quoted(table.concat(values, " "))) end
    end
    for _, name in ipairs(first) do
        if second[name][1] then add("complete -c lookupc -n __fish_use_subcommand -f -a", name) end
    end
    return lines
end

completion.shells = { "bash", "zsh", "fish" }

return completion
