-- How commands and options are written: for help, man pages and completion.
local words = {}

-- An option as it is typed, such as --isa.
function words.dashes(option) return (#option.name == 1 and "-" or "--") .. option.name end

-- With what it takes, such as --isa LIST.
function words.option(option) return words.dashes(option) .. (option.value and " " .. option.value or "") end

-- Whether it takes all words up to the next option.
function words.is_list(option) return option.value ~= nil and option.value:find("...", 1, true) ~= nil end

-- What an argument or a value is called, without the marks of what may be missing or repeated: TEXT for [TEXT...].
function words.bare(name) return (name:gsub("[%[%]]", ""):gsub("%.%.%.$", "")) end

-- Its default in brackets, or nothing.
function words.default(option)
    return option.default ~= nil and option.default ~= "" and " (" .. option.default .. ")" or ""
end

-- The name of a command's man page.
function words.page(command) return "lookupc-" .. command.name:gsub(" ", "-") end

return words
