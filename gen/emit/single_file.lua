-- One C file instead of several: the kernels of each instruction set between pragmas that take the place of compiler
-- flags. gcc and clang.
local single_file = {}

-- The names that a section of C defines for itself, on lines that start a definition.
local function own_names(text)
    local names = {}
    for line in text:gmatch "[^\n]+" do
        local rest = line:match "^static (.*)" or line:match "^[%u%d_]+_INLINE (.*)"
        local name = rest and rest:match "([%a_][%w_]*)%s*[%(%[=;]"
            or line:match "^#define ([%a_][%w_]*)"
            or line:match "^typedef .-([%a_][%w_]*);"
            or line:match "^typedef %a+ ([%a_][%w_]*) {" -- of a structure over several lines
            or line:match "^%a+ ([%a_][%w_]*) {$"
            or line:match "^} ([%a_][%w_]*);"
        if name then names[name] = true end
    end
    return names
end

-- Sections in which names that several of them define for themselves end with their instruction set.
local function told_apart(sections)
    local count = {}
    for _, section in ipairs(sections) do
        section.names = own_names(section.text)
        for name in pairs(section.names) do
            count[name] = (count[name] or 0) + 1
        end
    end
    for _, section in ipairs(sections) do
        section.text = section.text:gsub("[%a_][%w_]*", function(name)
            if section.names[name] and count[name] > 1 then return name .. "__" .. section.isa.name end
        end)
    end
end

-- The features that flags such as -mavx2 switch on, as gcc's and clang's attributes name them.
local function features_of(isa)
    local list = {}
    for i, flag in ipairs(isa.flags) do
        list[i] = flag:match "^%-m(.+)$" or error("no attribute for the compiler flag " .. flag)
    end
    return table.concat(list, ",")
end

-- The text of the file: `runtime` is what all kernels share, `sections` { {isa, text} } are kernels without includes,
-- `source` is what the bundle has in <model>.c. Their own includes are among `names`, which are left out.
function single_file.text(runtime, sections, source, names)
    told_apart(sections)
    local parts, included, other_cpu = {}, {}, false
    local function add(...) parts[#parts + 1] = table.concat { ... } end
    local function without_own(text)
        for _, name in ipairs(names) do
            text = text:gsub('#include "' .. name:gsub("%p", "%%%0") .. '"\n\n?', "")
        end
        return text
    end
    add(without_own(runtime))
    for _, section in ipairs(sections) do
        other_cpu = other_cpu or section.isa.guard ~= nil
        for _, header in ipairs(section.isa.includes) do
            included[header] = included[header] or #parts
        end
    end
    if other_cpu then
        add "\n#if !defined(__x86_64__) && !defined(__i386__)\n"
        add '#error "kernels for x86: lookupc emit --isa scalar is portable"\n#endif\n'
    end
    local headers = {}
    for header in pairs(included) do
        headers[#headers + 1] = header
    end
    table.sort(headers)
    for i, header in ipairs(headers) do
        add(i == 1 and "\n" or "", "#include ", header, "\n")
    end
    for _, section in ipairs(sections) do
        local features = features_of(section.isa)
        add("\n/* Kernels for ", section.isa.name, ". */\n")
        if features ~= "" then
            add(
                '\n#if defined(__clang__)\n#pragma clang attribute push(__attribute__((target("',
                features,
                '"))), apply_to = function)\n'
            )
            add('#else\n#pragma GCC push_options\n#pragma GCC target("', features, '")\n#endif\n')
        end
        add(section.text)
        if features ~= "" then
            add "\n#if defined(__clang__)\n#pragma clang attribute pop\n#else\n#pragma GCC pop_options\n#endif\n"
        end
    end
    add("\n/* Binding, and the choice of instruction set. */\n\n", without_own(source))
    return table.concat(parts)
end

return single_file
