-- One C file instead of several: the kernels of each instruction set between pragmas that take the place of compiler
-- flags. gcc and clang.
local isa_list = require "gen.isa.list"

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
            or line:match "^struct ([%a_][%w_]*) {$"
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
    if isa.attributes then return isa.attributes end
    local list = {}
    for i, flag in ipairs(isa.flags) do
        list[i] = flag:match "^%-m(.+)$" or error("no attribute for the compiler flag " .. flag)
    end
    local names = table.concat(list, ",")
    return { gcc = names, clang = names }
end

-- The lines that stop for what none of the kernels are for.
local function stop(isas)
    for _, isa in ipairs(isas) do
        local architecture = isa_list.architectures[isa.architecture]
        if architecture then
            return "\n#if !("
                .. architecture.condition
                .. ')\n#error "kernels for '
                .. architecture.title
                .. ': lookupc emit --isa scalar is portable"\n#endif\n'
        end
    end
    return ""
end

-- The include of a header of `isa`, with a stop for compilers that cannot do so without flags.
local function include_of(header, isa)
    local first, before = features_of(isa).clang_major, ""
    if first then
        before = string.format("#if defined(__clang__) && __clang_major__ < %d\n", first)
            .. string.format('#error "%s needs clang %d or newer, or no --single-file"\n#endif\n', isa.name, first)
    end
    return before .. "#include " .. header .. "\n"
end

-- The headers of intrinsics in the order of immintrin.h, each with the compiler flags that ask for it.
local intrinsics = {
    { "smmintrin", "-msse4.1", "-mavx2", "-mavx512f" },
    { "avxintrin", "-mavx2", "-mavx512f" },
    { "avx2intrin", "-mavx2", "-mavx512f" },
    { "f16cintrin", "-mf16c" },
    { "fmaintrin", "-mfma" },
    { "avx512fintrin", "-mavx512f" },
    { "avx512vlintrin", "-mavx512vl" },
    { "avx512bwintrin", "-mavx512bw" },
    { "avx512dqintrin", "-mavx512dq" },
    { "avx512vlbwintrin", "-mavx512bw" },
    { "avx512vldqintrin", "-mavx512dq" },
    { "avx512vnniintrin", "-mavx512vnni" },
    { "avx512vlvnniintrin", "-mavx512vnni" },
    { "avxvnniintrin", "-mavxvnni" },
    { "avx512bf16intrin", "-mavx512bf16" },
    { "avx512vlbf16intrin", "-mavx512bf16" },
}

-- The includes of those that the instruction sets `isas` need.
local function clang_cl_includes(isas)
    local given, lines = {}, {}
    for _, isa in ipairs(isas) do
        for _, flag in ipairs(isa.flags) do
            given[flag] = true
        end
    end
    for _, row in ipairs(intrinsics) do
        local needed = false
        for i = 2, #row do
            needed = needed or given[row[i]]
        end
        if needed then lines[#lines + 1] = "#include <" .. row[1] .. ".h>\n" end
    end
    if #lines == 0 then return "" end
    return "#if defined(_MSC_VER) && defined(__clang__) && __clang_major__ < 19 /* left out without compiler flags */\n"
        .. table.concat(lines)
        .. "#endif\n"
end

-- `text` between the lines that switch on what the instruction set `isa` needs.
local function switched_on(text, isa)
    local features = features_of(isa)
    if features.gcc == "" then return text end
    return table.concat {
        '\n#if defined(__clang__)\n#pragma clang attribute push(__attribute__((target("',
        features.clang,
        '"))), apply_to = function)\n#else\n#pragma GCC push_options\n#pragma GCC target("',
        features.gcc,
        '")\n#endif\n',
        text,
        "\n#if defined(__clang__)\n#pragma clang attribute pop\n#else\n#pragma GCC pop_options\n#endif\n",
    }
end

-- The text of the file: `runtime` is what all kernels share, `sections` { {isa, text, condition} } are kernels without
-- includes and the condition of the preprocessor under which they are there, false: always; `source` is what the bundle
-- has in <model>.c. Their own includes are among `names`, which are left out.
function single_file.text(runtime, sections, source, names)
    told_apart(sections)
    local parts, included, isas, guarded = {}, {}, {}, false
    local function add(...) parts[#parts + 1] = table.concat { ... } end
    local function without_own(text)
        for _, name in ipairs(names) do
            text = text:gsub('#include "' .. name:gsub("%p", "%%%0") .. '"\n\n?', "")
        end
        return text
    end
    -- `text` only under the condition `condition`.
    local function only(condition, text)
        if condition then return "\n#if " .. condition .. text .. "#endif\n" end
        return text
    end
    for i, section in ipairs(sections) do
        isas[i], guarded = section.isa, guarded or section.condition
        for _, header in ipairs(section.isa.includes) do
            included[header] = section
        end
    end
    if guarded then
        add '#if defined(__clang__)\n#pragma clang diagnostic ignored "-Wunused-function"'
        add " /* of kernels for other CPUs */\n#endif\n\n"
    end
    add(without_own(runtime))
    if not guarded then add(stop(isas)) end
    local headers = {}
    for header in pairs(included) do
        headers[#headers + 1] = header
    end
    table.sort(headers)
    for i, header in ipairs(headers) do
        local section = included[header]
        local text = include_of(header, section.isa)
        if header == "<immintrin.h>" then text = text .. clang_cl_includes(isas) end
        if section.condition then
            add(only(section.condition, "\n" .. text))
        else
            add(i == 1 and "\n" or "", text)
        end
    end
    for _, section in ipairs(sections) do
        local text = switched_on(section.text, section.isa)
        add(
            only(
                section.condition,
                (section.condition and "\n" or "") .. "\n/* Kernels for " .. section.isa.name .. ". */\n" .. text
            )
        )
    end
    add("\n/* Binding, and the choice of instruction set. */\n\n", without_own(source))
    return table.concat(parts)
end

return single_file
