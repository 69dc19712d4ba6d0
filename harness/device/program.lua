-- Makes the program of a device: static, one file, with several candidates side by side, what they are called with, and
-- the blobs, inputs and outputs that they need (harness/device/device.h).
--
-- A candidate is one relocatable object. All its symbols are made local but the functions that the job names, which get
-- the candidate's number in front: candidates of one model have functions of the same names.
local compilers = require "harness.base.compilers"
local digest_of = require "gen.host.digest"
local host = require "host"
local process = require "process"
local setting = require "harness.measure.setting"

local program = {}
program.__index = program

local headers = {
    "harness/device/device.h",
    "harness/device/board.h",
    "harness/base/cpu_facts.h",
    "harness/base/amx.h",
    "harness/base/clock.h",
    "harness/base/memory.h",
    "harness/base/timed_inputs.h",
    "gen/weights/random.h",
}

-- How programs are made that run on an operating system: units of this program's own files, flags that compile them,
-- and the words before and behind the objects of a link.
program.hosted = {
    units = {
        "harness/device/device.c",
        "harness/device/calls.c",
        "harness/base/cpu_facts.c",
        "harness/base/amx.c",
        "harness/base/timed_inputs.c",
        "gen/weights/random.c",
    },
    flags = { "-std=gnu11", "-O2", "-D_GNU_SOURCE" },
    link = { "-static" },
    behind = { "-lm" },
}

-- The options that link objects to one, a candidate.
program.relocatable = { "-r", "-nostdlib" }

-- Whatever programs have in common, made as `how` says (program.hosted; with `files`, further ones that are written
-- beside the units, `rooms`, whether memory is there from the beginning, and `link_of`, a function of that folder),
-- compiled with `cc` and the flags `cflags`; raises one line.
function program.new(cc, cflags, how)
    local folder, contents, commands = process.temporary_directory(), {}, {}
    local self = { cc = cc, cflags = compilers.words(cflags), folder = folder, objects = {}, data = {}, number = 0 }
    self.how, self.link = how, how.link_of and how.link_of(folder) or how.link
    for _, list in ipairs { how.units, headers, how.files or {} } do
        for _, name in ipairs(list) do
            contents[name] = assert(host.resource(name))
        end
    end
    assert(host.write_directory(folder, contents, true))
    setmetatable(self, program)
    for i, name in ipairs(how.units) do
        self.objects[i] = string.format("%s/%d.o", folder, i)
        commands[i] = self:compiling(folder .. "/" .. name, self.objects[i])
    end
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then error(failure, 0) end
    end
    self.objcopy = compilers.call({ cc, "-print-prog-name=objcopy" }):match "[^\n]+"
    return self
end

function program:compiling(source, object)
    local what = { "-I" .. self.folder, "-c", source, "-o", object }
    return compilers.joined({ self.cc }, self.cflags, self.how.flags, what)
end

-- Declares memory of so many bytes in the list `rooms`, unless it is `linked`; the expression of its beginning.
local function add_room(rooms, name, bytes, linked)
    if linked then return "(unsigned char *)(uintptr_t)" .. linked end
    table.insert(rooms, string.format("static _Alignas(64) unsigned char %s[%d];", name, math.max(bytes, 1)))
    return name
end

local fills = { normal = true, skewed = true, units = true, ids = true, linked = true }

-- What the tables of one program are printed with: numbers of memories and libraries by name, files that are linked,
-- and the functions that each candidate has to offer.
local function names_of(job)
    local names = { memory = {}, library = {}, files = {}, file_of = {}, candidates = {}, of_path = {}, weights = {} }
    for i, row in ipairs(job.memory) do
        names.memory[row.name] = i - 1
    end
    for i, row in ipairs(job.libraries) do
        local own = names.of_path[row.library]
        if not own then
            own = { path = row.library, prefix = "c" .. #names.candidates + 1 .. "_", functions = {}, kept = {} }
            names.of_path[row.library] = own
            table.insert(names.candidates, own)
        end
        names.library[row.name] = i - 1
    end
    return names
end

-- The number of a linked file.
local function file_number(names, path)
    if not names.file_of[path] then
        table.insert(names.files, path)
        names.file_of[path] = #names.files
    end
    return names.file_of[path]
end

-- The name that function `name` of the candidate has in the program.
local function kept(candidate, name, is_bind)
    local own = candidate.prefix .. name
    if not candidate.kept[name] then
        candidate.kept[name] = true
        table.insert(candidate.functions, { name = name, own = own, is_bind = is_bind })
    end
    return own
end

-- The table's row of a memory; where `rooms` are made, behind the declaration of its own in them.
local function memory_text(names, row, number, rooms)
    local file = row.fill == "linked" and file_number(names, row.file)
    local fill = row.sizes and "sizes" or row.fill or "fresh"
    assert(fills[fill] or not row.fill, "a device has no such memory")
    local from = file and "device_file_" .. file or row.sizes and "(const size_t[]){%s}" or "NULL"
    from = from:format(row.sizes and table.concat(row.sizes, ", "))
    local room = rooms and add_room(rooms, "memory_" .. number, row.bytes, file and from) or "NULL"
    local form = '    {"%s", %d, DEVICE_%s, %d, %s, %s},'
    return form:format(row.name, row.bytes, fill:upper(), row.number or 0, from, room)
end

local function library_text(names, job, i, rooms)
    local row = job.libraries[i]
    local file, of = file_number(names, row.blob), row.weights_of and names.library[row.weights_of] or i - 1
    return string.format(
        '    {"%s", %s, device_file_%d, device_file_%d_end, %d, %d, NULL, %s},',
        row.name,
        kept(names.of_path[row.library], row.bind, true),
        file,
        file,
        row.weights_struct_bytes,
        of,
        rooms and add_room(rooms, "weights_" .. i, row.weights_struct_bytes) or "NULL"
    )
end

local function argument_text(names, argument)
    if math.type(argument) == "integer" then return string.format("{DEVICE_NUMBER, %d, 0, 0, false}", argument) end
    if argument == "weights" then return "{DEVICE_WEIGHTS, 0, 0, 0, false}" end
    if argument == "blob" then return "{DEVICE_BLOB, 0, 0, 0, false}" end
    local of = type(argument) == "table" and argument or { memory = argument }
    assert((of.token or 0) == 0, "a device's calls have no chunks")
    local number = assert(names.memory[of.memory], of.memory)
    return string.format("{DEVICE_MEMORY, %d, %d, %d, %s}", number, of.at or 0, of.place or 0, of.value or false)
end

local function step_text(names, job, step)
    local library, arguments, called = names.library[step.library] or 0, {}, "device_" .. step["function"]
    if step.library then
        called = kept(names.of_path[job.libraries[library + 1].library], step["function"])
    end
    for i, argument in ipairs(step.arguments) do
        arguments[i] = argument_text(names, argument)
    end
    return string.format(
        "        {(device_function *)%s, %d, %s, %d, {%s}, {0}},",
        called,
        library,
        step.status and "true" or "false",
        #arguments,
        table.concat(arguments, ", ")
    )
end

-- The initializer of a call, after the table of its steps, called `name`.
local function call_text(names, job, row, name, tables, number)
    local steps = {}
    for i, step in ipairs(row.steps) do
        steps[i] = step_text(names, job, step)
    end
    table.insert(tables, string.format("static device_step %s[] = {\n%s\n};", name, table.concat(steps, "\n")))
    local cold = row.cold and "true" or "false"
    local place = number and setting.first_place(row, number) or 0
    return string.format('{"%s", %d, %s, %s, %d, %d}', row.name, row.places or 1, cold, name, #row.steps, place)
end

local function check_text(names, job, row, name, tables)
    return string.format(
        "    {%s, %d, %d, %d, %d, %d},",
        call_text(names, job, row, name, tables),
        assert(names.memory[row.y]),
        assert(names.memory[row.expected or row.y]),
        row.tokens,
        row.width,
        row.expected and row.period or 0
    )
end

-- One word of those that a program takes (harness/device/device.c), as an initializer.
local function word_text(word)
    local check, number = word:match "^([=@])(%d+)$"
    if check then return string.format("{%s, 0, false, %s}", number, check == "@" and "true" or "false") end
    local call, calls = word:match "^(%d+):(%d+)"
    return string.format("{%s, %s, true, false}", call, calls) -- always warm: a call takes the time of two
end

-- The tables of a job, C, and what their names stand for. With `words` memory is there from the beginning, and these
-- are what the program does.
function program.tables(job, words)
    local names, tables, lines, rooms = names_of(job), {}, {}, words and {} or nil
    local function add(kind, list, text_of, type)
        local rows = {}
        for i = 1, #list do
            rows[i] = text_of(i)
        end
        if #rows == 0 then return "NULL" end
        local form = "static device_%s %ss[] = {\n%s\n};"
        table.insert(tables, form:format(type or kind, kind, table.concat(rows, "\n")))
        return kind .. "s"
    end
    local checks = job.checks or {}
    local fields = {
        string.format("%dull, %d", job.seed, job.sweep_bytes),
        (add("memory", job.memory, function(i) return memory_text(names, job.memory[i], i, rooms) end)),
        (add("library", job.libraries, function(i) return library_text(names, job, i, rooms) end)),
        (add("setup", job.setup, function(i)
            return "    " .. call_text(names, job, job.setup[i], "setup_" .. i, tables) .. ","
        end, "call")),
        (add("call", job.calls, function(i)
            return "    " .. call_text(names, job, job.calls[i], "call_" .. i, tables, i) .. ","
        end)),
        (add("check", checks, function(i) return check_text(names, job, checks[i], "check_" .. i, tables) end)),
        string.format("%d, %d, %d, %d, %d", #job.memory, #job.libraries, #job.setup, #job.calls, #checks),
    }
    lines[1] = '/* What one program of a device holds. */\n#include "harness/device/device.h"\n'
    for i = 1, #names.files do
        lines[#lines + 1] = string.format("extern const unsigned char device_file_%d[], device_file_%d_end[];", i, i)
    end
    for _, candidate in ipairs(names.candidates) do
        for _, f in ipairs(candidate.functions) do
            lines[#lines + 1] = f.is_bind and string.format("int %s(const void *, size_t, void *);", f.own)
                or string.format("void %s(void);", f.own)
        end
    end
    table.move(rooms or {}, 1, #(rooms or {}), #lines + 1, lines)
    table.move(tables, 1, #tables, #lines + 1, lines)
    if words then
        local list = {}
        for i, word in ipairs(words) do
            list[i] = word_text(word)
        end
        local rows = #list > 0 and table.concat(list, ", ") or "{0, 0, false, false}" -- no empty arrays in C
        lines[#lines + 1] = string.format("const device_word device_words[] = {%s};", rows)
        lines[#lines + 1] = string.format("const size_t device_word_count = %d;", #list)
    end
    lines[#lines + 1] = string.format("device_job device = {%s};\n", table.concat(fields, ", "))
    return table.concat(lines, "\n"), names
end

-- The object that holds the file `path` between device_file_N and device_file_N_end.
function program:data_object(path, number)
    local digest = digest_of { path, tostring(number) }
    if not self.data[digest] then
        local name = "device_file_" .. number
        local lines = {
            ".section .rodata",
            ".balign 64",
            string.format(".global %s, %s_end", name, name),
            string.format('%s: .incbin "%s"', name, path),
            name .. "_end: .byte 0",
            '.section .note.GNU-stack,"",%progbits\n',
        }
        local source, object = self.folder .. "/" .. digest .. ".s", self.folder .. "/" .. digest .. ".o"
        assert(host.write_file(source, table.concat(lines, "\n")))
        compilers.call(compilers.joined({ self.cc }, self.cflags, { "-c", source, "-o", object }))
        self.data[digest] = object
    end
    return self.data[digest]
end

-- The program of a job, and of `words` as program.tables takes them: its path. Raises one line.
function program:make(job, words)
    local text, names = program.tables(setting.complete(job), words)
    self.number = self.number + 1
    local base = string.format("%s/program%d", self.folder, self.number)
    local link, commands = { base .. ".o" }, {}
    assert(host.write_file(base .. ".c", text))
    commands[1] = self:compiling(base .. ".c", base .. ".o")
    for i, candidate in ipairs(names.candidates) do
        local object = string.format("%s_%d.o", base, i)
        local command = { self.objcopy, candidate.path, object }
        for _, f in ipairs(candidate.functions) do
            command[#command + 1] = "--keep-global-symbol=" .. f.name
            command[#command + 1] = "--keep-global-symbol=" .. f.own
            command[#command + 1] = string.format("--redefine-sym=%s=%s", f.name, f.own)
        end
        commands[#commands + 1], link[#link + 1] = command, object
    end
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then error(failure, 0) end
    end
    for i, path in ipairs(names.files) do
        link[#link + 1] = self:data_object(path, i)
    end
    local ends = compilers.joined({ "-o", base }, self.how.behind)
    local linked = compilers.joined({ self.cc }, self.cflags, self.link, self.objects, link, ends)
    local result = assert(process.run(linked, { timeout = compilers.timeout, env = compilers.environment() }))
    if result.status ~= 0 then -- what the linker says comes before what the compiler says of it
        local said = result.output:match "ld[%w.]*: ([^\n]+)" or result.output:match "[^\n]+" or "says nothing"
        error(string.format("%s: linking a program for the device: %s", self.cc, said), 0)
    end
    for _, path in ipairs(link) do
        if path:find(base, 1, true) then host.remove(path) end
    end
    return base
end

return program
