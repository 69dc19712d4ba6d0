-- The files of a firmware bundle: the sources of its plan, weights to be linked in, self-test, example, linker snippet
-- and papers.
--
-- Needs no compiler: what only a compiler knows comes in as `measured` (harness/firmware/build.lua), what only the
-- reference knows as `vectors`.
local benchmark = require "gen.emit.benchmark"
local blob = require "gen.plan.blob"
local checksums = require "gen.emit.checksums"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local host = require "host"
local json = require "json"
local literal = require "gen.print.literal"
local wrap = require "gen.emit.wrap"

local firmware = {}

-- `words`, joined by ", ", as lines of at most `width` characters.
local function wrapped(words, width)
    local lines, line = {}, ""
    for _, word in ipairs(words) do
        if line ~= "" and #line + #word + 2 > width then
            lines[#lines + 1], line = line, ""
        end
        line = line .. (line == "" and "" or " ") .. word .. ","
    end
    if line ~= "" then lines[#lines + 1] = line end
    return lines
end

local function hex_lines(numbers)
    local words = {}
    for i, number in ipairs(numbers) do
        words[i] = literal.hex(number, 8)
    end
    return wrapped(words, 100)
end

-- Integers as they are, others as hexadecimal floats.
local function number_lines(numbers)
    local words = {}
    for i, number in ipairs(numbers) do
        words[i] = math.type(number) == "integer" and tostring(number) or string.format("%af", literal.round32(number))
    end
    return wrapped(words, 112) -- where they are printed they are indented by 8
end

-- ## Parts

-- The blob in parts: sections that may lie in slower memory, and those that may not; and where the sections are in
-- them.
local function parts_of(p)
    local parts, sections, ordered = {}, {}, table.move(p.sections, 1, #p.sections, 1, {})
    table.sort(ordered, function(a, b) return a.at < b.at end)
    for _, section in ipairs(ordered) do
        local slow = section.slow or false
        if #parts == 0 and slow then parts[1] = { at = 0, slow = false } end -- the header
        local part = parts[#parts]
        if not part or part.slow ~= slow then
            part = { at = part and section.at or 0, slow = slow }
            parts[#parts + 1] = part
        end
        sections[section.name] = { part = #parts - 1, at = section.at - part.at }
    end
    for i, part in ipairs(parts) do
        local word = part.slow and "tables" or "weights"
        part.symbol = p.model.name .. "_" .. word .. "_" .. i
        part.size = p.names.macro(word:upper() .. "_" .. i .. "_BYTES")
        part.section = p.names.macro(part.slow and "TABLE_SECTION" or "WEIGHTS_SECTION")
        part.bytes = (parts[i + 1] and parts[i + 1].at or p.packed_bytes) - part.at
    end
    local list = {}
    for i, section in ipairs(p.sections) do
        local found = sections[section.name]
        list[i] = { name = section.name, storage = section.storage, part = found.part, at = found.at }
        list[i].place = p.names.macro(section.name:gsub("%.", "_"):upper() .. "_PLACE")
    end
    return parts, list
end

-- Words as a list in a sentence.
local function listed(words) return (table.concat(words, ", "):gsub(", ([^,]*)$", " and %1")) end

-- The numbers of the header's macros: `code` is what the compiler measured, { text, rodata, library, stack,
-- selftest_stack }.
function firmware.sizes(p, code)
    local ram = 0
    for _, row in ipairs((families.get(p.family).firmware.ram(p))) do
        ram = ram + row.bytes
    end
    return {
        flash_bytes = blob.round_up(code.text + code.rodata + (code.library or 0), 4) + p.packed_bytes,
        ram_bytes = ram,
        stack_bytes = code.stack,
        selftest_stack_bytes = code.selftest_stack,
    }
end

-- What the templates read as `firmware`. `weights` are the packed bytes.
local function values_of(p, weights, measured, vectors)
    local sizes, family, parts, sections = firmware.sizes(p, measured), families.get(p.family), parts_of(p)
    local counts, slow, slow_bytes, checks = {}, {}, 0, checksums.of(weights)
    for i, part in ipairs(parts) do
        counts[i] = part.size
        slow_bytes = slow_bytes + (part.slow and part.bytes or 0)
    end
    for _, section in ipairs(p.sections) do
        if section.slow then slow[#slow + 1] = section.name end
    end
    local tolerance = family.firmware.tolerance(p)
    return {
        family = family.firmware,
        about = family.firmware.about(p),
        takes = family.firmware.takes(p),
        target = p.target.name,
        flash_bytes = sizes.flash_bytes,
        ram_bytes = sizes.ram_bytes,
        stack_bytes = sizes.stack_bytes,
        selftest_stack_bytes = sizes.selftest_stack_bytes,
        slow_bytes = slow_bytes,
        slow_names = listed(slow),
        work = family.firmware.work(p),
        parts = parts,
        sections = sections,
        part_bytes = table.concat(counts, ", "),
        crc_lines = hex_lines(checks.crc_table),
        crc32 = literal.hex(checks.crc, 8),
        sha256_lines = hex_lines(checks.sha256),
        sha256_constant_lines = hex_lines(checks.sha256_constants),
        sha256_start_lines = hex_lines(checks.sha256_start),
        vectors = vectors,
        tolerance = string.format("%g", tolerance),
        -- How much each value of a row `y` of the self-test may differ.
        tolerance_of = function(y)
            local sum = 0
            for _, value in ipairs(y) do
                sum = sum + value * value
            end
            return tolerance * sum ^ 0.5
        end,
        number_lines = number_lines,
        exact = p.exact or false,
        input = p.input or family.input,
        output = p.output or family.output,
        byte_lines = function(part)
            local words = {}
            for i = part.at + 1, part.at + part.bytes do
                words[#words + 1] = tostring(weights:byte(i))
            end
            return wrapped(words, 116)
        end,
    }
end

-- The C sources of the bundle: { {name, text, isa} }.
local function sources_of(p, values)
    local files = {}
    for i, file in ipairs(emit.sources(p, { firmware = values })) do
        files[i] = { name = (file.public and "inc/" or "src/") .. file.name, text = file.text, isa = file.isa }
    end
    return files
end

-- The text of the template `path` with what the family's templates read of the self-test's `vectors`.
local function family_text(p, values, path, vectors)
    local own = values.family.values and values.family.values(p, vectors) or {}
    own.firmware, own.align = values, blob.align
    return emit.text(p, path, own)
end

-- Adds the self-test to `files`.
local function add_selftest(files, p, values, vectors)
    for _, ending in ipairs { "h", "c" } do
        files[#files + 1] = {
            name = "test/" .. p.model.name .. "_selftest." .. ending,
            text = family_text(p, values, values.family.templates .. "selftest." .. ending, vectors),
        }
    end
end

local nothing = { text = 0, rodata = 0, stack = 0, selftest_stack = 0 }

-- The sources before anything is measured, and with `vectors` the self-test: { {name, text} }. They differ from the
-- final ones in the header's macros and comments only.
function firmware.unmeasured(p, weights, vectors)
    local values = values_of(p, weights, nothing, vectors or {})
    local files = sources_of(p, values)
    if vectors then add_selftest(files, p, values, vectors) end
    return files
end

-- The parts of flash, RAM and stack for the report: lists of { bytes, text }.
local function report_of(p, values, measured)
    local flash = { { bytes = measured.text, text = "code" }, { bytes = measured.rodata, text = "constants" } }
    if (measured.library or 0) > 0 then
        flash[#flash + 1] = { bytes = measured.library, text = "the compiler's functions for floats" }
    end
    for _, section in ipairs(p.sections) do
        flash[#flash + 1] = { bytes = section.bytes, text = section.name .. ", " .. section.doc }
    end
    local rest = values.flash_bytes
    for _, row in ipairs(flash) do
        rest = rest - row.bytes
    end
    flash[#flash + 1] = { bytes = rest, text = "header of the weights and alignment" }
    local ram, in_use = families.get(p.family).firmware.ram(p)
    -- Rows of functions { name, stack }: one after the other, or each of which calls the next.
    local function rows_of(list, calls)
        local rows = {}
        for i, row in ipairs(list) do
            rows[i] = { bytes = row.stack, text = (calls and i > 1 and "calls " or "") .. row.name }
        end
        return rows
    end
    return {
        firmware = values,
        flash = flash,
        ram = ram,
        in_use = in_use,
        stack = rows_of(measured.path, true),
        selftest_stack = rows_of(measured.selftest_path, true),
        functions = rows_of(measured.functions),
        measured = {
            compiler = measured.compiler,
            flags = table.concat(measured.flags, " "),
            smaller = measured.smaller or false,
        },
        flags = table.concat(p.target.flags, " "),
        number = function(n) return string.format("%10d", n) end,
        align = blob.align,
    }
end

-- What REPORT.txt of plan `p`'s bundle says, whatever the weights are: the text, and its rows by part, lists of
-- { bytes, text }.
function firmware.report(p, measured)
    local values = report_of(p, values_of(p, ("\0"):rep(p.packed_bytes), measured, {}), measured)
    return emit.text(p, "templates/firmware/report.txt", values), values
end

-- The files that hold what only the reference, a checker or the weights know; those of the weights come first.
function firmware.recorded_names(p)
    local model = p.model.name
    return {
        "src/" .. model .. "_weights.bin",
        "src/" .. model .. "_weights.c",
        "test/" .. model .. "_selftest.c",
        "test/" .. model .. "_selftest.h",
        "README.md",
        "MISRA.md",
    }
end

-- The packed weights in a file of that name with these `bytes`.
function firmware.weights_in(name, bytes)
    if not name:find("%.c$") then return bytes end
    local list = {}
    for array in bytes:gmatch("%b{}") do
        for byte in array:gmatch("(%d+),") do
            list[#list + 1] = string.char(tonumber(byte))
        end
    end
    return table.concat(list)
end

-- Adds the weights to `files`, as a C array or by an assembler file; `add(name, path)` renders a template.
local function add_weights(files, p, weights, c_array, add)
    local stem = "src/" .. p.model.name .. "_weights."
    if c_array then return add(stem .. "c", "templates/firmware/weights.c") end
    add(stem .. "S", "templates/firmware/weights.S")
    files[#files + 1] = { name = stem .. "bin", text = weights }
end

-- Adds what people read, and the lines for a linker script, to `files`. `misra`: what a checker reports, true: its file
-- is recorded; nil: none.
local function add_papers(files, p, values, measured, misra)
    local function paper(name, path)
        local report = report_of(p, values, measured)
        report.causal = p.causal or false
        report.misra = misra
        files[#files + 1] = { name = name, text = emit.text(p, path, report) }
    end
    paper("REPORT.txt", "templates/firmware/report.txt")
    paper("README.md", "templates/firmware/readme.md")
    if p.target.object == "elf" and values.slow_bytes > 0 then
        paper(p.model.name .. ".ld", "templates/firmware/linker.ld")
    end
    if misra == true then
        files[#files + 1] = { name = "MISRA.md" }
    elseif misra then
        paper("MISRA.md", "templates/firmware/misra.md")
    end
end

-- Adds the files with which the build `systems` of gen/emit/wrap.lua take the sources in `files`.
local function add_wrapped(files, p, values, systems)
    local compiled = {}
    for _, file in ipairs(files) do
        if file.name:find("^src/.*%.[cS]$") then compiled[#compiled + 1] = file.name end
    end
    for _, file in ipairs(wrap.files(systems, p.model.name)) do
        local text = emit.text(p, file.template, {
            noun = values.family.noun,
            word = values.family.word,
            about = values.about,
            sources = compiled,
            version = host.version,
            target = p.target.name,
            flash_bytes = values.flash_bytes,
            ram_bytes = values.ram_bytes,
            stack_bytes = values.stack_bytes,
            selftest_stack_bytes = values.selftest_stack_bytes,
        })
        files[#files + 1] = { name = file.name, text = text }
    end
end

-- Every file of the bundle of plan `p`, the manifest last.
--   weights   packed bytes
--   measured  what harness/firmware/toolchain.lua measures
--   vectors   { {x, y} }, tokens and what the reference makes of them
--   options   { c_array, misra, wrap, benchmark, recorded }: weights as a C array instead of an assembler file; what a
--             checker of MISRA rules reports; systems of gen/emit/wrap.lua; tokens a call as extras.lua has them;
--             digests by name of files that are taken as a manifest records them, and have no text
function firmware.files(p, weights, measured, vectors, options)
    local values, recorded = values_of(p, weights, measured, vectors), options.recorded or {}
    local files, c_array = sources_of(p, values), options.c_array or p.target.object ~= "elf"
    local function add(name, path)
        files[#files + 1] = { name = name, text = family_text(p, values, path, vectors) }
    end
    add_weights(files, p, weights, c_array, add)
    add_selftest(files, p, values, vectors)
    add("example_main.c", values.family.templates .. "example.c")
    if options.benchmark then
        benchmark.add(p, options.benchmark)
        files[#files + 1] = {
            name = p.names.benchmark .. ".c",
            text = emit.text(p, "templates/benchmark/firmware.c", benchmark.values(p)),
        }
    end
    add_papers(files, p, values, measured, options.misra or recorded["MISRA.md"] and true)
    add_wrapped(files, p, values, options.wrap or {})
    files[#files + 1] = { name = p.names.licence, text = assert(host.resource("LICENSE")) }
    for _, file in ipairs(files) do
        file.sha256 = recorded[file.name]
        file.text = not file.sha256 and file.text or nil
    end
    local manifest = emit.manifest(p, files, {
        profile = "firmware",
        target = p.target.name,
        target_flags = p.target.more_flags and json.array(p.target.more_flags),
        c_array = c_array or nil,
        wrap = options.wrap,
        benchmark = options.benchmark,
        weights_sha256 = host.sha256(weights),
        measured = measured,
    })
    files[#files + 1] = { name = p.names.manifest, text = manifest }
    return files
end

return firmware
