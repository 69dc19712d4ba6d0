-- A board without an operating system, as a device (harness/device/device.lua): the words of a run are linked into its
-- program, which counts clocks; or QEMU in its place, whose clocks are instructions.
--
--   board.open(options) -> d; options: firmware (a row of gen/plan/target.lua), runner and link (absent: QEMU), threads
-- d has beside what a device has
--   d.unit                       what is counted, "instructions" or "clocks"; a nanosecond of d:measure is one of them
--   d:sources(p, cflags, blob)   as objects.sources (harness/tune/objects.lua): those of firmware for that blob
--   d.flags(p, cflags)           a list, of these files
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local device = require "harness.device.device"
local firmware_files = require "gen.emit.firmware"
local host = require "host"
local misuse = require "gen.schema.misuse"
local process = require "process"
local program = require "harness.device.program"

local board = setmetatable({}, { __index = device })
board.__index = board

-- The boards of QEMU: where flash and RAM are and how large, and the instructions of a clock, one a nanosecond.
local boards = {
    ["mps2-an385"] = { flash = "0", flash_bytes = "4M", ram = "0x20000000", ram_bytes = "4M", per_clock = 40 },
    ["mps2-an386"] = { flash = "0", flash_bytes = "4M", ram = "0x20000000", ram_bytes = "4M", per_clock = 40 },
    ["mps2-an500"] = { flash = "0", flash_bytes = "4M", ram = "0x20000000", ram_bytes = "4M", per_clock = 40 },
    ["mps2-an505"] = { flash = "0x10000000", flash_bytes = "4M", ram = "0x38000000", ram_bytes = "2M", per_clock = 50 },
    ["mps3-an547"] = { flash = "0", flash_bytes = "512K", ram = "0x20000000", ram_bytes = "512K", per_clock = 31.25 },
}

local own_flags = { "-std=c11", "-O2", "-ffreestanding", "-ffunction-sections" }
local most_words = 400 -- of a run

-- How programs are made for QEMU's board `own`, or with the words `link` for another.
local function how_of(own, link)
    local units = { "harness/device/board.c", "harness/device/calls.c", "gen/weights/random.c" }
    local how = { units = units, flags = own_flags, behind = { "-lgcc" } }
    if link then
        function how.link_of(folder) -- where start-up code finds harness/device/board.h
            return compilers.joined({ "-Wl,--gc-sections", "-I" .. folder }, compilers.words(link))
        end
        return how
    end
    units[4], how.files = "harness/device/cortex_m.c", { "harness/device/cortex_m.ld" }
    function how.link_of(folder)
        local words = { "-nostartfiles", "-nostdlib", "-Wl,--gc-sections", "-T" }
        words[5] = folder .. "/harness/device/cortex_m.ld"
        for _, name in ipairs { "flash", "flash_bytes", "ram", "ram_bytes" } do
            words[#words + 1] = string.format("-Wl,--defsym=board_%s=%s", name, own[name])
        end
        return words
    end
    return how
end

-- The emulator of target `wanted` with a clock that counts instructions, as a runner: its programs write to standard
-- error.
local function counting(wanted)
    local words = table.move(wanted.emulator, 1, #wanted.emulator - 1, 1, {})
    local count = { "-icount", "shift=0", wanted.emulator[#wanted.emulator] }
    return compilers.joined({ "sh", "-c", 'exec "$@" 2>&1', "sh" }, words, count)
end

function board.open(options)
    local wanted = options.firmware
    local own = not options.runner and boards[wanted.emulator and wanted.emulator[3]]
    if options.threads > 1 then misuse(string.format("--threads: %d: must be 1 for firmware", options.threads)) end
    if not options.runner and not own then
        local rule = "QEMU has no board that counts: give --runner and --link"
        misuse(string.format("--target: %s: %s", wanted.name, rule))
    end
    if options.runner and not options.link then misuse "--link: is missing: --runner of firmware needs it" end
    local self = setmetatable({ cc = wanted.compiler, target = wanted, checking = {} }, board)
    self.folder, self.unit = process.temporary_directory(), own and "instructions" or "clocks"
    self.per_clock = own and own.per_clock or 1
    self.words = own and counting(wanted) or compilers.words(options.runner)
    self.runner = options.runner or wanted.emulator[1]
    local target_flags = table.concat(wanted.flags, " ")
    self.programs = program.new(self.cc, target_flags, how_of(own, options.link))
    -- another architecture for another unit: their records are never compared
    local where = own and "in QEMU, counted in instructions" or "counted in clocks"
    self.facts = { architecture = string.format("%s %s", wanted.name, where), model = wanted.name .. " " .. where }
    self.facts.vendor, self.facts.virtual = "unknown", own ~= nil
    for _, name in ipairs { "family", "number", "stepping" } do
        self.facts[name] = 0
    end
    self.name = self.facts.model .. " " .. target_flags
    self:answers()
    cpu.stand_for(self.facts)
    return self
end

function board.runs_of(words)
    local list = {}
    for first = 1, #words, most_words do
        list[#list + 1] = table.move(words, first, math.min(first + most_words - 1, #words), 1, {})
    end
    return list
end

-- A program is made for each run.
function board.make(_, job) return { job = job } end
function board.forget() end

function board:command(made, words)
    if self.last then host.remove(self.last) end
    self.last = self.programs:make(made.job, words)
    return compilers.joined(self.words, { self.last })
end

function board:slices_of(found, words)
    local slices = {}
    for i, line in ipairs(found.clocks) do
        local seconds = math.tointeger(tonumber(line, 16)) * self.per_clock * 1e-9
        local each = math.max(seconds / tonumber(words[i]:match ":(%d+)"), 1e-12)
        slices[i] = { cpu = each, wall = each, whole = seconds }
    end
    return slices
end

function board.check_of(line)
    local squares = {}
    for word in line:gmatch "%S+" do
        squares[#squares + 1] = ("d"):unpack(("j"):pack(math.tointeger(tonumber(word, 16)))) ^ 0.5
    end
    return { relative = squares[1], absolute = squares[2], all = squares[3] }
end

local slower = 20 -- about: a second of what is counted takes so many of this machine

-- Counts of a board differ by little or nothing: every repetition is one call.
function board:measure(job, options)
    local short = setmetatable({ min_time = 0 }, { __index = job })
    local samples, context = device.measure(self, short, options)
    if context then context.timed_seconds = math.min(slower * context.timed_seconds, context.whole_seconds) end
    return samples, context
end

function board.flags(p, cflags)
    return compilers.joined(
        { "-std=c99", "-ffreestanding", "-ffunction-sections" },
        p.target.flags,
        p.variants[1].isa.flags,
        compilers.words(cflags)
    )
end

function board:sources(p, cflags, blob)
    local contents, files, headers, flags = {}, {}, {}, board.flags(p, cflags)
    self.weights = self.weights or assert(host.read(blob, 1 << 31)) -- their checksum is in the sources
    for _, file in ipairs(firmware_files.unmeasured(p, self.weights)) do
        local name = file.name:match "[^/]*$"
        contents[name] = file.text
        if name:find "%.c$" then
            files[#files + 1] = { name = name, text = file.text, flags = flags }
        elseif name:find "%.h$" then
            headers[#headers + 1] = file.text
        end
    end
    return { contents = contents, files = files, headers = table.concat(headers, "\n") }
end

return board
