-- What a target's compiler makes of a firmware bundle: bytes of text and constants, and the stack of the deepest calls.
local compilers = require "harness.base.compilers"
local families = require "gen.families.list"
local elf = require "harness.base.elf"
local host = require "host"
local process = require "process"
local wasm = require "harness.firmware.wasm"

local toolchain = {}

-- With these flags and those of target and instruction set a bundle is measured; the functions have sections of their
-- own so that the object files tell who calls whom.
toolchain.flags = { "-std=c99", "-O2", "-ffreestanding", "-ffunction-sections" }

-- The flag that takes the place of -O2 in a second measurement, whose figures are declared where they are larger.
toolchain.smaller = "-Os"

-- The flags of every file of plan `p`'s bundle.
function toolchain.target_flags(p) return compilers.joined(toolchain.flags, p.target.flags, p.variants[1].isa.flags) end

-- Who calls whom in WebAssembly's text: { [function] = { names } }.
local function calls_in(assembly)
    local list, from = {}, nil
    for line in assembly:gmatch("[^\n]+") do
        from = line:match("^([%a_][%w_$]*):") or from
        local called = line:match("^%s+call%s+([%w_.$]+)")
        if called and from then
            list[from] = list[from] or {}
            table.insert(list[from], called)
        end
    end
    return list
end

-- Bytes that each function of an assembly file has on the stack for vectors of `vector_bytes`, { [function] = bytes },
-- as no stack usage file has them: their size is known at run time only. RISC-V's prologue takes sp down by a multiple
-- of vlenb, the bytes of a vector; behind them by how many other bytes, to which the file does not count what aligns
-- the vectors. SVE's takes it down by addvl, or by a multiple of cntb: the file counts 16 bytes of each vector.
function toolchain.vectors_in(assembly, vector_bytes)
    local vectors, fixed, name = {}, {}, nil
    local times, numbers = {}, {} -- registers that hold so many vlenb or cntb, and such a number
    for line in assembly:gmatch("[^\n]+") do
        local label = line:match("^([%a_][%w_.$]*):")
        local word, to, a, b = line:match("^%s+([%w.]+)%s+(%w+), *([%w]+),? *(%w*)")
        local moved = name and line:match "^%s+addi%s+sp, *sp, *%-(%d+)"
        if moved then fixed[name] = math.max(fixed[name] or 0, math.tointeger(tonumber(moved))) end
        local scalable = name and line:match "^%s+addvl%s+sp, *sp, *#%-(%d+)"
        if scalable then
            vectors[name] = (vectors[name] or 0) + math.tointeger(tonumber(scalable)) * (vector_bytes - 16)
        end
        local counted, multiple = line:match "^%s+cntb%s+(x%d+)(.*)"
        if label then
            name, times, numbers = label, {}, {}
        elseif word == "csrr" and a == "vlenb" then
            times[to] = 1
        elseif counted then
            times[counted] = multiple == "" and 1 or math.tointeger(tonumber((multiple:match "^, all, mul #(%d+)$")))
        elseif word == "li" or word == "mov" and a:find "^%d" then
            times[to], numbers[to] = nil, math.tointeger(tonumber(a))
        elseif word == "mul" and times[a] and numbers[b] then
            times[to] = times[a] * numbers[b]
        elseif word == "slli" and times[a] then
            times[to] = times[a] << math.tointeger(tonumber(b))
        elseif word and word:find("^sh%dadd$") and times[a] and times[b] then
            times[to] = (times[a] << math.tointeger(tonumber(word:sub(3, 3)))) + times[b]
        elseif word == "add" and times[a] and times[b] then
            times[to] = times[a] + times[b]
        elseif word == "sub" and times[a] and times[b] then
            times[to] = times[a] - times[b]
        elseif word == "sub" and to == "sp" and name and b:find "^[ast]%d" then -- a register of RISC-V
            if not times[b] then error(name .. ": its stack has no bound", 0) end
            vectors[name] = (vectors[name] or 0) + times[b] * vector_bytes
        elseif word == "sub" and to == "sp" and name and b:find "^x%d" and not numbers[b] then -- of SVE
            if not times[b] then error(name .. ": its stack has no bound", 0) end
            vectors[name] = (vectors[name] or 0) + times[b] * (vector_bytes - 16)
        elseif word and to then
            times[to], numbers[to] = nil, nil
        end
    end
    local largest = {} -- of copies, whose number, the last part of a label, is in no stack usage file
    for label, bytes in pairs(vectors) do
        local own = label:gsub("%.%d+$", "")
        largest[own] = math.max(largest[own] or 0, bytes)
    end
    return largest, fixed
end

-- The list of those lists of flags: only one where the target's flags choose an optimisation themselves.
local function measured_flags(p)
    local flags = toolchain.target_flags(p)
    for _, flag in ipairs(p.target.more_flags or {}) do
        if flag:find "^%-O" then return { flags } end
    end
    local smaller = {}
    for i, flag in ipairs(flags) do
        smaller[i] = flag == "-O2" and toolchain.smaller or flag -- in its place: behind -fno-vectorize clang vectorises
    end
    return { flags, smaller }
end

-- Compiles the C files among `files` { {name, text} } below `directory` for plan `p`'s target with `flags`.
-- Returns the list { {name, path, object, stack, references, vectors, fixed} }: the bytes of the object file, what
-- the compiler says
-- of frames, who calls whom, vectors_in() where vectors have no fixed length. Raises one line.
local function objects_of(p, files, directory, flags)
    local contents, objects = {}, {}
    for _, file in ipairs(files) do
        contents[file.name] = file.text
    end
    assert(host.write_directory(directory, contents, true))
    for _, file in ipairs(files) do
        if file.name:find("%.c$") then
            local path = directory .. "/" .. file.name:gsub("[/.]", "_") .. ".o"
            local command = compilers.joined(
                { p.target.compiler },
                flags,
                { "-fstack-usage", "-I" .. directory .. "/inc", directory .. "/" .. file.name }
            )
            compilers.call(compilers.joined(command, { "-c", "-o", path }))
            local object = {
                name = file.name,
                path = path,
                object = assert(host.read(path, 1 << 28)),
                stack = host.read((path:gsub("o$", "su")), 1 << 20) or "",
            }
            local elf_object = p.target.object == "elf"
            local assembly = ""
            if not elf_object or p.target.vector_bytes then
                compilers.call(compilers.joined(command, { "-S", "-o", path .. ".s" }))
                assembly = assert(host.read(path .. ".s", 1 << 28))
            end
            object.references = elf_object and elf.references(object.object) or calls_in(assembly)
            local of_vectors = p.target.vector_bytes and assembly or ""
            object.vectors, object.fixed = toolchain.vectors_in(of_vectors, p.target.vector_bytes)
            objects[#objects + 1] = object
        end
    end
    return objects
end

-- Stack of every function: { [name] = bytes }, from the files that -fstack-usage writes. Raises one line for a frame
-- without a bound.
local function frames_of(objects)
    local frames = {}
    for _, object in ipairs(objects) do
        for name, bytes, kind in object.stack:gmatch(":([%w_.$]+)\t(%d+)\t(%S+)") do
            if kind == "dynamic" then error(object.name .. ": " .. name .. ": its stack has no bound", 0) end
            frames[name] = math.max(
                frames[name] or 0,
                math.max(math.tointeger(tonumber(bytes)), object.fixed[name] or 0) + (object.vectors[name] or 0)
            )
        end
    end
    return frames
end

-- Adds to `references` who calls whom, by names as -fstack-usage writes them: f.constprop.0, a clone of f, is
-- f.constprop.
local function add_references(references, list)
    local names = {}
    for name in pairs(list) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local from = name:gsub("%.%d+$", "")
        references[from] = references[from] or {}
        for _, called in ipairs(list[name]) do
            table.insert(references[from], (called:gsub("%.%d+$", "")))
        end
    end
end

-- Where floats are calls of the compiler's own library: adds its functions among `references` to `frames`, and returns
-- the bytes of code and constants that they take in a program.
local function add_library(p, objects, frames, references, directory)
    local called = false
    for _, names in pairs(references) do
        for _, name in ipairs(names) do
            if name:find "^__" and not frames[name] then
                frames[name], called = p.target.soft_float, true
            end
        end
    end
    if not called then return 0 end
    local command, own, path = { p.target.compiler }, 0, directory .. "/linked.o"
    command = compilers.joined(command, p.target.flags, { "-nostdlib", "-r", "-o", path })
    for _, object in ipairs(objects) do
        local sizes = elf.sizes(object.object)
        command[#command + 1], own = object.path, own + sizes.text + sizes.rodata
    end
    compilers.call(compilers.joined(command, { "-lgcc" }))
    local all = elf.sizes(assert(host.read(path, 1 << 28)))
    return all.text + all.rodata - own
end

-- The deepest chain of calls from `name` on: bytes, and names from the first to the last function.
local function deepest(name, frames, references)
    local bytes, chain = 0, {}
    for _, called in ipairs(references[name] or {}) do
        if frames[called] and called ~= name then
            local below, names = deepest(called, frames, references)
            if below > bytes then
                bytes, chain = below, names
            end
        end
    end
    return bytes + (frames[name] or 0), { name, table.unpack(chain) }
end

-- What the compiler makes of `files` with `flags`: { text, rodata, library, files } as toolchain.measure() returns
-- them,
-- { frames, references } of all functions.
local function compiled(p, files, directory, flags)
    local target, references, own = p.target, {}, {}
    local code = { text = 0, rodata = 0, files = {} }
    local objects = objects_of(p, files, directory, flags)
    for _, object in ipairs(objects) do
        add_references(references, object.references)
        if not object.name:find "^test/" then
            local sizes = (target.object == "elf" and elf or wasm).sizes(object.object)
            if sizes.data + sizes.bss > 0 then
                error(object.name .. ": has static data that can be written", 0)
            end
            code.text, code.rodata = code.text + sizes.text, code.rodata + sizes.rodata
            code.files[#code.files + 1] = { name = object.name, text = sizes.text, rodata = sizes.rodata }
            own[#own + 1] = object
        end
    end
    local frames = frames_of(objects)
    for name in pairs(references) do
        frames[name] = frames[name] or 0 -- another function's second name
    end
    if target.soft_float then code.library = add_library(p, own, frames, references, directory) end
    return code, { frames = frames, references = references }
end

-- The deepest chain of calls from any of the functions `names` in any of the compilations `all`: its bytes, and its
-- functions { {name, stack} }, the first one first.
local function stack_of(names, all)
    local most, path = 0, {}
    for _, one in ipairs(all) do
        for _, name in ipairs(names) do
            local bytes, chain = deepest(name, one.frames, one.references)
            if bytes > most then
                most, path = bytes, {}
                for i, function_name in ipairs(chain) do
                    path[i] = { name = function_name, stack = one.frames[function_name] or 0 }
                end
            end
        end
    end
    return most, path
end

-- What the bundle `files` takes, the larger figures of all measured flags: { text, rodata, library, stack, path,
-- selftest_stack, selftest_path, functions = { {name, stack} }, files = { {name, text, rodata} }, compiler, flags,
-- smaller }. `library`: bytes of the compiler's functions for floats, nil: it has none; `path` is the chain of
-- functions that takes `stack`, selftest_path that of the self-test, which takes no flash; flags: the first ones,
-- smaller: what the second ones have besides, nil: there are none. Raises one line.
function toolchain.measure(p, files, directory)
    local target = p.target
    if not process.run({ "sh", "-c", 'command -v "$1"', "sh", target.compiler }, {}).output:find("%S") then
        error(
            string.format(
                "--target: %s: needs %s to measure text and stack (Debian packages: %s)",
                target.name,
                target.compiler,
                table.concat(target.packages, ", ")
            ),
            0
        )
    end
    local lists, measured, all, stacks = measured_flags(p), nil, {}, {}
    local function bytes_of(code) return code.text + code.rodata + (code.library or 0) end
    for i, flags in ipairs(lists) do
        local code
        code, all[i] = compiled(p, files, directory .. "/" .. i, flags)
        if not measured or bytes_of(code) > bytes_of(measured) then measured = code end
        for name, stack in pairs(all[i].frames) do
            stacks[name] = math.max(stacks[name] or 0, stack)
        end
    end
    measured.functions = {}
    for name, stack in pairs(stacks) do
        measured.functions[#measured.functions + 1] = { name = name, stack = stack }
    end
    table.sort(
        measured.functions,
        function(a, b) return a.stack > b.stack or a.stack == b.stack and a.name < b.name end
    )
    local calls = families.get(p.family).firmware.calls(p)
    measured.stack, measured.path = stack_of({ p.names.bind_linked, p.names.bind, table.unpack(calls) }, all)
    measured.selftest_stack, measured.selftest_path = stack_of({ p.names.selftest }, all)
    measured.compiler = compilers.version(target.compiler)
    measured.flags, measured.smaller = lists[1], lists[2] and toolchain.smaller
    return measured
end

return toolchain
