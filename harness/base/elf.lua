-- What an ELF file tells of its code: sections, symbols, and which function refers to which.
--
-- Little-endian files of 32 and 64 bits. Source: System V ABI, "Object files": file header, section headers, symbol
-- table, relocation.
local elf = {}

local writable, allocated, executable = 1, 2, 4 -- SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR
-- SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL
local symbol_table, relocations_with_addend, no_bits, relocations = 2, 4, 8, 9
local of_function, of_section = 2, 3 -- STT_FUNC, STT_SECTION

local layouts = { -- by EI_CLASS
    [1] = { -- 32 bits
        table_at = 0x20,
        entry = 0x2e,
        section = "<I4I4I4I4I4I4I4I4I4I4",
        symbol = 16,
        relocation = 8,
        read_symbol = function(file, at)
            local name, value, size, info, _, section = string.unpack("<I4I4I4BBI2", file, at)
            return name, value, size, info, section
        end,
        read_relocation = function(file, at) return string.unpack("<I4", file, at + 4) >> 8 end,
    },
    [2] = { -- 64 bits
        table_at = 0x28,
        entry = 0x3a,
        section = "<I4I4I8I8I8I8I4I4I8I8",
        symbol = 24,
        relocation = 16,
        read_symbol = function(file, at)
            local name, info, _, section, value, size = string.unpack("<I4BBI2I8I8", file, at)
            return name, value, size, info, section
        end,
        read_relocation = function(file, at) return string.unpack("<I8", file, at + 8) >> 32 end,
    },
}

local function text_at(file, table_section, at) return (string.unpack("z", file, table_section.offset + at + 1)) end

-- The sections of a file: { {name, type, flags, offset, bytes, link, info, align} }, the first one at 0 as in the file,
-- and the file's layout; nil for what is no little-endian ELF file.
local function sections_of(file)
    local layout = file:sub(1, 4) == "\x7fELF" and file:byte(6) == 1 and layouts[file:byte(5)]
    if not layout then return nil end
    local first = string.unpack(layout == layouts[1] and "<I4" or "<I8", file, layout.table_at + 1)
    local size, count, names = string.unpack("<I2I2I2", file, layout.entry + 1)
    local list = {}
    for i = 0, count - 1 do
        local name, kind, flags, _, offset, bytes, link, info, align =
            string.unpack(layout.section, file, first + i * size + 1)
        list[i] = {
            name_at = name,
            type = kind,
            flags = flags,
            offset = offset,
            bytes = bytes,
            link = link,
            info = info,
            align = align,
        }
    end
    for i = 0, count - 1 do
        list[i].name = text_at(file, list[names], list[i].name_at)
    end
    return list, layout
end

-- The symbols of a file: { {name, value, bytes, section, type} }, the first one at 0; those of sections have the
-- section's name.
local function symbols_of(file, sections, layout)
    for i = 0, #sections do
        local s = sections[i]
        if s.type == symbol_table then
            local list = {}
            for n = 0, s.bytes // layout.symbol - 1 do
                local name, value, bytes, info, section = layout.read_symbol(file, s.offset + n * layout.symbol + 1)
                local kind = info & 15
                list[n] = {
                    name = text_at(file, sections[s.link], name),
                    value = value,
                    bytes = bytes,
                    section = section,
                    type = kind,
                }
                if kind == of_section and sections[section] then list[n].name = sections[section].name end
            end
            return list
        end
    end
    return {}
end

-- The bytes of all sections that hold instructions; those of the whole file for one that is no ELF file.
function elf.code_bytes(file)
    local sections = sections_of(file)
    if not sections then return #file end
    local sum = 0
    for i = 0, #sections do
        if sections[i].flags & executable ~= 0 then sum = sum + sections[i].bytes end
    end
    return sum
end

-- What the sections of an object file or program take when it runs: { text, rodata, data, bss }, bytes, each section
-- filled up to its alignment.
function elf.sizes(file)
    local sums = { text = 0, rodata = 0, data = 0, bss = 0 }
    local sections = sections_of(file)
    for i = 0, #sections do
        local s = sections[i]
        local kind = s.flags & allocated == 0 and ""
            or s.flags & executable ~= 0 and "text"
            or s.type == no_bits and "bss"
            or s.flags & writable ~= 0 and "data"
            or "rodata"
        if sums[kind] then
            sums[kind] = sums[kind]
                + (s.bytes + math.max(1, s.align) - 1) // math.max(1, s.align) * math.max(1, s.align)
        end
    end
    return sums
end

-- Symbols of a file by name: { value, bytes, undefined }.
function elf.symbols(file)
    local sections, layout = sections_of(file)
    local list, symbols = {}, symbols_of(file, sections, layout)
    for i = 0, #symbols do
        local s = symbols[i]
        if s and s.name ~= "" then list[s.name] = { value = s.value, bytes = s.bytes, undefined = s.section == 0 } end
    end
    return list
end

-- Which symbols the functions of an object file refer to, if each has a section of its own (-ffunction-sections): {
-- [function] = { names } }. Of two functions that are alike the compiler keeps one, to which the other's name refers.
function elf.references(file)
    local sections, layout = sections_of(file)
    local symbols, list = symbols_of(file, sections, layout), {}
    for i = 0, #symbols do
        local s = symbols[i]
        local kept = s.type == of_function and sections[s.section] and sections[s.section].name:match "^%.text%.(.+)$"
        if kept and kept ~= s.name then list[s.name] = { kept } end
    end
    for i = 0, #sections do
        local s = sections[i]
        local from = (s.type == relocations or s.type == relocations_with_addend)
            and sections[s.info].name:match("^%.text%.(.+)$")
        if from then
            local size = layout.relocation + (s.type == relocations_with_addend and layout.relocation // 2 or 0)
            list[from] = list[from] or {}
            for at = s.offset, s.offset + s.bytes - size, size do
                local symbol = symbols[layout.read_relocation(file, at + 1)]
                table.insert(list[from], (symbol.name:gsub("^%.text%.", "")))
            end
        end
    end
    return list
end

return elf
