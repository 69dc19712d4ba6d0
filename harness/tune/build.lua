-- Compiles candidates, several at a time, and proves them right: by a few tokens before anybody times them, and
-- thoroughly before one can win.
--
-- What was compiled and verified once is kept in a folder under the digest of everything it depends on, so that a
-- tuning that goes on, or another one, finds it there.
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local cpus = require "harness.base.cpus"
local digest_of = require "gen.host.digest"
local elf = require "harness.base.elf"
local harness = require "harness.families.list"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local objects = require "harness.tune.objects"
local process = require "process"

local build = {}
build.__index = build

build.timeout = 120 -- seconds that a compiler may take

-- A builder of candidates of one model. options: cc, version (its first line of --version), cflags, threads, seed,
-- files (what the family's tuning.prepare made), apart (whether to compile kernels apart, which pays off with more than
-- a few candidates), timeout in seconds, folder (of what is kept; default: the user's), device (where candidates are
-- run, harness/device/device.lua, nil: here).
-- Where nothing says which folder that is, or libraries cannot be loaded from it, what is made lasts until it ends.
function build.new(options)
    local scratch, folder = process.temporary_directory(), options.folder or library_cache.folder()
    if folder then assert(library_cache.open(folder)) end
    if not folder or not options.device and not process.loads_from(folder) then folder = scratch end
    local self = { options = options, folder = folder, scratch = scratch, number = 0 }
    self.objects = objects.new {
        cc = options.cc,
        version = options.version,
        folder = self.scratch,
        apart = options.apart,
    }
    return setmetatable(self, build)
end

-- A clock of at most `left` seconds (nil: as many as it takes): how many are left, whether none is, and how many a
-- compiler may take.
local function limit(left, most)
    local start, l = process.clock(), {}
    function l.rest() return left and left - (process.clock() - start) end
    function l.late() return left ~= nil and l.rest() <= 0 end
    function l.timeout() return math.min(most, math.max(0.01, l.rest() or most)) end
    return l
end

-- What has to be done for plan `p`: { plan, digest, objects, fresh (path), link (a command that makes it) }, or with
-- `library`, a path, and `bytes` if it is there. Compiling headers ahead may take `timeout` seconds.
function build:order(p, timeout)
    local o = self.options
    local cflags = compile.threaded(p, o.cflags, o.threads)
    local board = o.device and o.device.unit and o.device
    local sources = board and board:sources(p, cflags, o.files.output) or objects.sources(p, cflags, o.apart)
    local parts = { "by object", o.cc, o.version, cflags }
    if o.device then parts[#parts + 1] = o.device.name end -- what is right there may be wrong elsewhere
    for _, file in ipairs(sources.files) do
        parts[#parts + 1] = file.name
        parts[#parts + 1] = digest_of(file.flags)
    end
    local made = { plan = p, digest = library_cache.digest(parts, sources.contents) }
    made.bytes, made.library = library_cache.find(self.folder, made.digest)
    if made.library then return made end
    self.number = self.number + 1
    local directory = self.scratch .. "/" .. self.number
    made.objects = self.objects:order(sources, directory, timeout)
    made.fresh = directory .. ".so"
    local kind = o.device and o.device.link_options or { "-shared" }
    made.link = compilers.joined({ o.cc }, kind, { "-o", made.fresh }, compilers.words(cflags))
    for _, object in ipairs(made.objects) do
        made.link[#made.link + 1] = object.path
    end
    return made
end

-- Makes the libraries of the orders `list`; what fails gets its `failure`.
function build:compile(list, clock)
    local lists, commands, of = {}, {}, {}
    for _, made in ipairs(list) do
        lists[#lists + 1] = made.objects
    end
    self.objects:compile(lists, clock)
    for _, made in ipairs(list) do
        for _, object in ipairs(made.objects or {}) do
            made.failure = made.failure or object.failure
        end
        if made.link and not made.failure then
            commands[#commands + 1], of[#of + 1] = made.link, made
        end
    end
    if clock.late() then return end
    for i, failure in ipairs(#commands > 0 and compilers.failures(commands, clock.timeout()) or {}) do
        local made = of[i]
        made.failure = failure and "compile: " .. failure or nil
        if not failure then
            made.bytes = assert(host.read(made.fresh))
            made.library = assert(library_cache.put(self.folder, made.digest, made.bytes))
        end
    end
end

-- The file that notes that the kernels of `regime` of `made` were found right.
function build:mark(made, regime, thorough)
    local o = self.options
    local words = { thorough and "right" or "passed", regime or "both", o.seed, host.version }
    return string.format("%s/%s.%s", self.folder, made.digest, table.concat(words, "_"))
end

-- Verifies the kernels of `regime` (nil: of both) of the libraries `list`, thoroughly or by a few tokens: what is wrong
-- gets its `failure`, and all `seconds`, those that making it took or once took, and `verifying`, those of its last
-- part; without `verifying` there was no time for it.
function build:verify(list, regime, thorough, clock)
    local o, todo = self.options, {}
    for _, made in ipairs(list) do
        local noted = host.read(self:mark(made, nil, true), 100)
            or host.read(self:mark(made, regime, true), 100)
            or not thorough and host.read(self:mark(made, regime, false), 100)
        if noted then
            local all, verifying = noted:match "^(%S+) ?(%S*)"
            made.seconds, made.verifying = tonumber(all), tonumber(verifying) or 0
        else
            todo[#todo + 1] = made
        end
    end
    local at_once = o.device and 4 * cpus.count() or cpus.count() -- a device has them in one program
    for first = 1, #todo, at_once do
        if clock.late() then return end
        local few = table.move(todo, first, math.min(first + at_once - 1, #todo), 1, {})
        local start = process.clock()
        local options = { left = clock.rest(), quick = not thorough }
        local failures = harness.get(few[1].plan.family).tuning.failures(few, regime, o, options)
        local seconds = (process.clock() - start) / at_once
        for i, made in ipairs(few) do
            made.failure = failures[i] and ("verify: " .. failures[i]):gsub("%c", " ") or nil
            made.seconds, made.verifying = (made.seconds or 0) + seconds, seconds
            if not made.failure then
                local noted = string.format("%.3f %.3f", made.seconds, made.verifying)
                assert(host.write_file(self:mark(made, regime, thorough), noted))
            end
        end
    end
end

-- Compiles the kernels of `regime` (nil: of both) of `plans` and verifies them, thoroughly unless `quick`, in at most
-- `left` seconds (nil: as many as it takes). Returns a list in their order: { plan, digest, library, bytes (of machine
-- code), seconds (that it took, or once took, beside others), verifying (those of its last part) } or { plan, failure =
-- "compile: …" | "verify: …" } or { plan, late = true }: there was no time.
function build:make(plans, regime, left, quick)
    local clock, list, good = limit(left, self.options.timeout or build.timeout), {}, {}
    local start = process.clock()
    for i, p in ipairs(plans) do
        list[i] = self:order(p, clock.timeout())
    end
    self:compile(list, clock)
    -- of one beside others: a single one has the other CPUs idle
    local seconds = (process.clock() - start) / math.max(#plans, cpus.count())
    for _, made in ipairs(list) do
        made.seconds = made.link and seconds or 0
        if made.library and not made.failure then good[#good + 1] = made end
    end
    self:verify(good, regime, not quick, clock)
    local late = clock.late() -- then a failure may be that of a command that was ended
    for i, made in ipairs(list) do
        local known = not made.failure and made.verifying or made.failure and not late
        list[i] = { plan = made.plan, digest = made.digest, late = not known or nil }
        if known and made.failure then
            list[i].failure = made.failure
        elseif known then
            list[i].library, list[i].bytes = made.library, elf.code_bytes(made.bytes)
            list[i].seconds, list[i].verifying = made.seconds, made.verifying
        end
    end
    return list
end

-- Verifies thoroughly what `make` has verified quickly, in at most `left` seconds. Returns why each is wrong, or false;
-- nil: there was no time.
function build:prove(list, regime, left)
    local clock, again, failures = limit(left, build.timeout), {}, {}
    for i, made in ipairs(list) do
        again[i] = { plan = made.plan, digest = made.digest, library = made.library, seconds = made.seconds }
    end
    self:verify(again, regime, true, clock)
    local late = clock.late()
    for i, made in ipairs(again) do
        if not made.verifying or made.failure and late then return nil end
        failures[i] = made.failure or false
    end
    return failures
end

return build
