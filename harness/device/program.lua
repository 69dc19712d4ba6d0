-- Makes the program of a device: static, one file, with several candidates side by side, what they are called with, and
-- the blobs, inputs and outputs that they need (harness/device/device.h).
--
-- A candidate is one relocatable object. All its symbols are made local but the functions that the job names, which get
-- the candidate's number in front: candidates of one model have functions of the same names.
local compilers = require "harness.base.compilers"
local digest_of = require "gen.host.digest"
local host = require "host"
local process = require "process"

local program = {}
program.__index = program

-- What every program has, from this program's own files.
local units = {
    "harness/device/device.c",
    "harness/base/cpu_facts.c",
    "harness/base/amx.c",
    "gen/weights/random.c",
}
local headers = {
    "harness/device/device.h",
    "harness/base/cpu_facts.h",
    "harness/base/amx.h",
    "harness/base/clock.h",
    "gen/weights/random.h",
}

-- The options that link objects to one, a candidate.
program.relocatable = { "-r", "-nostdlib" }

-- Whatever programs have in common, compiled with `cc` and the flags `cflags`; raises one line.
function program.new(cc, cflags)
    local folder, contents, commands = process.temporary_directory(), {}, {}
    local self = { cc = cc, cflags = compilers.words(cflags), folder = folder, objects = {}, data = {}, number = 0 }
    for _, list in ipairs { units, headers } do
        for _, name in ipairs(list) do
            contents[name] = assert(host.resource(name))
        end
    end
    assert(host.write_directory(folder, contents, true))
    setmetatable(self, program)
    for i, name in ipairs(units) do
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
    local flags = { "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" .. self.folder, "-c", source, "-o", object }
    return compilers.joined({ self.cc }, self.cflags, flags)
end

local fills = { normal = "DEVICE_NORMAL", skewed = "DEVICE_SKEWED", sizes = "DEVICE_SIZES", linked = "DEVICE_LINKED" }

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

local function memory_text(names, row)
    local file = row.fill == "linked" and file_number(names, row.file)
    local fill = row.fill and fills[row.fill] or "DEVICE_FRESH"
    local from = file and "device_file_" .. file or row.sizes and "(const size_t[]){%s}" or "NULL"
    from = from:format(row.sizes and table.concat(row.sizes, ", "))
    return string.format('    {"%s", %d, %s, %d, %s, NULL},', row.name, row.bytes, fill, row.width or 0, from)
end

local function library_text(names, job, i)
    local row = job.libraries[i]
    local file, of = file_number(names, row.blob), row.weights_of and names.library[row.weights_of] or i - 1
    return string.format(
        '    {"%s", %s, device_file_%d, device_file_%d_end, %d, %d, NULL, NULL},',
        row.name,
        kept(names.of_path[row.library], row.bind, true),
        file,
        file,
        row.weights_struct_bytes,
        of
    )
end

local function argument_text(names, argument)
    if math.type(argument) == "integer" then return string.format("{DEVICE_NUMBER, %d, 0, 0}", argument) end
    if argument == "weights" then return "{DEVICE_WEIGHTS, 0, 0, 0}" end
    if argument == "blob" then return "{DEVICE_BLOB, 0, 0, 0}" end
    local of = type(argument) == "table" and argument or { memory = argument }
    assert(not of.value and (of.token or 0) == 0, "a device's calls have neither values nor chunks")
    local number = assert(names.memory[of.memory], of.memory)
    return string.format("{DEVICE_MEMORY, %d, %d, %d}", number, of.at or 0, of.place or 0)
end

local function step_text(names, job, step)
    local library, arguments = names.library[step.library], {}
    for i, argument in ipairs(step.arguments) do
        arguments[i] = argument_text(names, argument)
    end
    return string.format(
        "        {(device_function *)%s, %d, %s, %d, {%s}, {0}},",
        kept(names.of_path[job.libraries[library + 1].library], step["function"]),
        library,
        step.status and "true" or "false",
        #arguments,
        table.concat(arguments, ", ")
    )
end

-- The initializer of a call, after the table of its steps, called `name`.
local function call_text(names, job, row, name, tables)
    local steps = {}
    for i, step in ipairs(row.steps) do
        steps[i] = step_text(names, job, step)
    end
    table.insert(tables, string.format("static device_step %s[] = {\n%s\n};", name, table.concat(steps, "\n")))
    local cold = row.cold and "true" or "false"
    return string.format('{"%s", %d, %s, %s, %d, 0}', row.name, row.places or 1, cold, name, #row.steps)
end

local function check_text(names, job, row, name, tables)
    return string.format(
        "    {%s, %d, %d, %d, %d, %d},",
        call_text(names, job, row, name, tables),
        assert(names.memory[row.y]),
        assert(names.memory[row.expected]),
        row.tokens,
        row.width,
        row.period
    )
end

-- The tables of a job, C, and what their names stand for.
function program.tables(job)
    local names, tables, lines = names_of(job), {}, {}
    local function add(kind, list, text_of)
        local rows = {}
        for i = 1, #list do
            rows[i] = text_of(i)
        end
        if #rows == 0 then return "NULL" end
        local form = "static device_%s %ss[] = {\n%s\n};"
        table.insert(tables, form:format(kind, kind, table.concat(rows, "\n")))
        return kind .. "s"
    end
    local checks = job.checks or {}
    local fields = {
        string.format("%dull, %d", job.seed, job.sweep_bytes),
        (add("memory", job.memory, function(i) return memory_text(names, job.memory[i]) end)),
        (add("library", job.libraries, function(i) return library_text(names, job, i) end)),
        (add("call", job.calls, function(i)
            return "    " .. call_text(names, job, job.calls[i], "call_" .. i, tables) .. ","
        end)),
        (add("check", checks, function(i) return check_text(names, job, checks[i], "check_" .. i, tables) end)),
        string.format("%d, %d, %d, %d", #job.memory, #job.libraries, #job.calls, #checks),
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
    table.move(tables, 1, #tables, #lines + 1, lines)
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

-- The program of a job: its path. Raises one line.
function program:make(job)
    local text, names = program.tables(job)
    self.number = self.number + 1
    local base = string.format("%s/program%d", self.folder, self.number)
    local link, commands = { base .. ".o" }, {}
    assert(host.write_file(base .. ".c", text))
    commands[1] = self:compiling(base .. ".c", base .. ".o")
    for i, candidate in ipairs(names.candidates) do
        local object = string.format("%s_%d.o", base, i)
        local command = { self.objcopy, candidate.path, object }
        for _, f in ipairs(candidate.functions) do
            local words = { "--keep-global-symbol=" .. f.name, "--keep-global-symbol=" .. f.own }
            words[3] = string.format("--redefine-sym=%s=%s", f.name, f.own)
            table.move(words, 1, 3, #command + 1, command)
        end
        commands[#commands + 1], link[#link + 1] = command, object
    end
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then error(failure, 0) end
    end
    for i, path in ipairs(names.files) do
        link[#link + 1] = self:data_object(path, i)
    end
    local ends = { "-static", "-o", base, "-lm" }
    compilers.call(compilers.joined({ self.cc }, self.cflags, self.objects, link, ends))
    for _, path in ipairs(link) do
        if path:find(base, 1, true) then host.remove(path) end
    end
    return base
end

return program
