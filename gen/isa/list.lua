-- The list of instruction sets, slowest first: one row each, everything else loops over it. Each is one file of
-- gen/isa/, which has
--   name, lanes, registers   float32 lanes of a vector, vector registers
--   l2_bytes                 nominal L2 cache of the CPUs that have it: the default schedule is made for it
--   any_alignment            load and store take any alignment of floats, nil: that of a vector
--   sizeless                 its vectors have no size for the compiler and cannot lie in arrays, nil: they have
--   flags, guard             compiler flags of its files; the preprocessor condition that says they were given
--   attributes               what stands for them in a file of several instruction sets: { gcc, clang, clang_major: the
--                            first clang that can }, nil: what follows from the flags
--   includes                 headers of its files
--   architecture             of `isa.architectures`, nil: any
--   condition                the preprocessor condition under which it is compiled beside portable C, nil: that of the
--                            architecture
--   cpu                      what a CPU of it must have to run it, nil: nothing. x86: bits of `isa.registers` that must
--                            be set. aarch64: fields of four bits of its ID registers, a list of { register, shift },
--                            that must not be 0; vector_bytes of SVE's vectors, at least
--   always                   bits that all known CPUs of it have beside, nil: none; bind asks for those of type_needs
--   emulator                 the command that runs a program of it on another CPU, nil: there is none
--   other_emulators          such commands for CPUs with longer vectors, nil: none
--   target                   the row of gen/plan/target.lua that compiles and runs programs of it, nil: "generic"
--   vector, index, mask      C types of a vector of floats, of a vector of row numbers, and of a comparison of two
--                            vectors
--   register_barrier         whether gcc must be kept from copying sums of integers (templates/bundle/runtime.h)
--   helpers                  C functions that its words call and others cannot compile (gen/isa/helpers.lua), nil: none
--   narrower                 the name of a set with half as many lanes that all its CPUs have, nil: none
--   type_needs               what one type of gen/plan/dtype.lua, or products of it, needs beside: { flags, guard,
--                            leaf1_ecx, leaf7_ecx, feature: its name, integer_sums }
--   products_at_once         by name of a type of integers that a projection may have: products that multiplications
--                            make in the time of one of floats, nil: as many as a word has
--   serves                   of a set with use = "types": the types, or products of such, that it is for, or the words
--                            of tiles that multiply them
--   integer_sums                words of an integer gather (gen/isa/avx512.lua), if the tables' type has one: rows of
--                            tables at a time, columns of a step, vectors that their sums take
-- and the words of gen/isa/words.lua.
local add_loads = require "gen.isa.parts.element_loads"
local copied = require "gen.schema.copied"
local one_of = require "gen.schema.one_of"

local isa = {}

-- Kinds of CPUs: what people call them, the preprocessor condition that says which one is compiled for, the names that
-- harness/base/cpu.c gives them; how CMake (a regular expression), meson and compilers (a pattern of make) call them.
isa.architectures = {
    x86 = {
        title = "x86",
        condition = "defined(__x86_64__) || defined(__i386__)",
        names = { x86_64 = true, i386 = true },
        cmake = "x86|X86|86$|amd64|AMD64",
        meson = "['x86', 'x86_64']",
        make = "x86_64% i386% i486% i586% i686%",
    },
    aarch64 = {
        title = "AArch64",
        condition = "defined(__aarch64__)",
        names = { aarch64 = true },
        cmake = "aarch64|arm64|ARM64",
        meson = "['aarch64']",
        make = "aarch64% arm64%",
    },
}

-- What an x86 CPU says of itself: registers that leaves of CPUID fill, and XGETBV's. A set names leaf1_ecx, leaf7_ebx
-- and xcr0, and the others where it needs them.
isa.registers = { "leaf1_ecx", "leaf7_ebx", "leaf7_ecx", "leaf7_edx", "leaf7_1_eax", "xcr0" }

-- The state of xcr0 that Linux saves only for processes that have asked for it: the tiles of AMX. A set that needs it
-- needs the system's permission.
local permitted = 1 << 18

-- One row an instruction set; `use` is who gets it without asking:
--   bundle    every bundle, and the commands that run here
--   types     the same for models with a type that it `serves`: else it is the set before it
--   here      the commands that run here: --isa names it for a bundle
--   verify    only what proves it: --isa names it for a bundle
--   firmware  targets of gen/plan/target.lua for other CPUs; it has the words of kernels for few tokens, wasm all
isa.list = {
    { name = "scalar", use = "bundle" },
    { name = "sse4", use = "verify" },
    { name = "avx2", use = "bundle" },
    { name = "avx_vnni", use = "types" },
    { name = "avx512", use = "bundle" },
    { name = "avx512_bf16", use = "types" },
    { name = "amx_int8", use = "types" },
    { name = "amx_bf16", use = "types" },
    { name = "neon", use = "here" },
    { name = "dotprod", use = "here" },
    { name = "sve", use = "here" },
    { name = "i8mm", use = "here" }, -- behind sve, which has no sums of integers
    { name = "sve128", use = "firmware" },
    { name = "mve", use = "firmware" },
    { name = "rvv", use = "firmware" },
    { name = "wasm", use = "firmware" },
}

-- Names: of the instruction sets of every bundle, of those that commands take where they run, of those that only some
-- types of weights call for, of those that --isa takes, and of all.
isa.bundled, isa.here, isa.for_types, isa.names, isa.all = {}, {}, {}, {}, {}
for i, row in ipairs(isa.list) do
    isa.all[i] = row.name
    if row.use == "types" then isa.for_types[#isa.for_types + 1] = row.name end
    if row.use ~= "firmware" then isa.names[#isa.names + 1] = row.name end
    if row.use == "bundle" then isa.bundled[#isa.bundled + 1] = row.name end
    if row.use == "bundle" or row.use == "here" then isa.here[#isa.here + 1] = row.name end
end

local sets = {}

-- The instruction set of that name, with loads of all types, and the helpers of the narrower one.
function isa.get(name)
    local set = sets[name]
    if set then return set end
    set = copied(require("gen.isa." .. name))
    add_loads(set)
    for _, helper in ipairs(set.narrower and isa.get(set.narrower).helpers or {}) do
        table.insert(set.helpers, helper)
    end
    sets[name] = set
    return set
end

-- What CPUs of x86 must have for `set`, and for `needs`.
local function with_bits(cpu, needs)
    local both = {}
    for _, register in ipairs(isa.registers) do
        local bits, more = cpu[register], needs[register]
        both[register] = bits and more and bits | more or bits or more
    end
    return both
end

-- What instruction sets know weights of a type, or such products, by.
local function known_as(type) return type.needs or type.name end

-- What the instruction set `set` needs for weights of a type, nil: no more than it has.
function isa.needs(set, type) return set.type_needs and set.type_needs[known_as(type)] end

-- The instruction set `set` with what it needs for weights of one type.
local function with_type(set, type)
    local needs = isa.needs(set, type)
    if not needs then return set end
    local copy = copied(set)
    copy.integer_sums = needs.integer_sums or set.integer_sums
    if not one_of.contains(set.flags, needs.flags[1]) then
        copy.flags = table.move(needs.flags, 1, #needs.flags, #set.flags + 1, { table.unpack(set.flags) })
        copy.guard = set.guard .. " && " .. needs.guard
        copy.cpu = with_bits(set.cpu, needs)
    end
    return copy
end

-- Raises one line for a name that is none, also none of other CPUs.
function isa.check(name)
    if one_of.contains(isa.all, name) then return end
    error('"' .. name .. '": must be an instruction set, of ' .. table.concat(isa.all, ", "), 0)
end

-- The instruction set `set` with what it needs for weights of the types in the list.
function isa.with_types(set, types)
    for _, type in ipairs(types) do
        set = with_type(set, type)
    end
    return set
end

-- Whether the instruction set `set` is for one of the types in the list.
local function serves(set, types)
    for _, type in ipairs(types) do
        if one_of.contains(set.serves, known_as(type)) or one_of.contains(set.serves, type.tiles) then return true end
    end
    return false
end

-- The instruction sets named in "scalar,avx2", in the order of the list; if it is absent, those of the names `default`
-- (those of every bundle, if absent, too) and those that serve the types in the list (none, if absent). Raises one line
-- for an unknown name.
function isa.select(text, types, default)
    local wanted, list = {}, {}
    for _, name in ipairs(text and one_of.words("--isa", text, isa.names) or default or isa.bundled) do
        wanted[name] = true
    end
    for _, name in ipairs(text and {} or isa.for_types) do
        wanted[name] = serves(isa.get(name), types or {})
    end
    for _, name in ipairs(isa.names) do
        if wanted[name] then list[#list + 1] = isa.get(name) end
    end
    return list
end

-- Whether the instruction set `set` is one of CPUs of the kind of which harness/base/cpu.c says `has`.
function isa.is_for(set, has)
    local architecture = isa.architectures[set.architecture]
    return not architecture or architecture.names[has.architecture] == true
end

-- Whether such a CPU runs it.
function isa.runs(set, has)
    local cpu = set.cpu or {}
    if not isa.is_for(set, has) or has.bare and set.architecture then return false end
    if set.architecture == "aarch64" then
        for _, field in ipairs(cpu) do
            if (has[field.register] or 0) >> field.shift & 15 == 0 then return false end
        end
        return (has.vector_bytes or 0) >= (cpu.vector_bytes or 0)
    end
    for key, bits in pairs(cpu) do
        if (has[key] or 0) & bits ~= bits then return false end
    end
    return true
end

-- Takes from `has` what neither `set` needs nor those that all its CPUs have; `bare`: not even what all CPUs of an
-- architecture have.
function isa.mask(has, set)
    local kept = {}
    local function keep(register, bits) kept[register] = (kept[register] or 0) | bits end
    local function keep_registers(needs)
        for _, register in ipairs(isa.registers) do
            keep(register, needs[register] or 0)
        end
    end
    has.bare = not set.architecture
    while set do
        keep_registers(set.cpu or {})
        for _, field in ipairs(set.cpu or {}) do
            keep(field.register, 15 << field.shift)
        end
        keep_registers(set.always or {})
        keep("vector_bytes", set.cpu and set.cpu.vector_bytes and ~0 or 0)
        set = set.narrower and isa.get(set.narrower)
    end
    for key, value in pairs(has) do
        if key:find "^leaf" or key:find "^id_" or key == "xcr0" or key == "vector_bytes" then
            has[key] = value & (kept[key] or 0)
        end
    end
end

-- Whether a program may run the instruction set `set` only after it asked the system.
function isa.needs_permission(set)
    return set.architecture == "x86" and set.cpu ~= nil and set.cpu.xcr0 & permitted ~= 0
end

-- Whether a CPU that has the instruction sets of these names has `set`: one of them, or one that asks an x86 CPU for no
-- bits but theirs.
function isa.follows(set, names)
    if one_of.contains(names, set.name) then return true end
    if set.architecture ~= "x86" then return false end
    local has = {}
    for _, name in ipairs(names) do
        local other = isa.get(name)
        for key, bits in pairs(other.architecture == "x86" and other.cpu or {}) do
            has[key] = (has[key] or 0) | bits
        end
    end
    for key, bits in pairs(set.cpu) do
        if (has[key] or 0) & bits ~= bits then return false end
    end
    return true
end

-- The names of what the types of weights need of such a CPU beside its instruction sets, and it has.
function isa.features(has)
    local list = {}
    for _, name in ipairs(isa.here) do
        local set, types = isa.get(name), {}
        for type in pairs(set.type_needs or {}) do
            types[#types + 1] = type
        end
        table.sort(types)
        for _, type in ipairs(types) do
            local feature = set.type_needs[type].feature
            if not one_of.contains(list, feature) and isa.runs(with_type(set, { name = type }), has) then
                list[#list + 1] = feature
            end
        end
    end
    return list
end

return isa
