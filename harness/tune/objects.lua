-- Compiles the source files of candidates, each one once: most candidates differ from others in one or two files.
--
-- An object file has the digest of everything that its code depends on. Lines of the model's own headers that say
-- nothing to a file, such as the prototypes of kernels that it does not call, do not count. The headers of an
-- instruction set's intrinsics, which take longer than most kernels, are compiled once, ahead of all. With kernels
-- apart the first candidate takes half as long again as with one file an instruction set, every other one a quarter.
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local digest_of = require "gen.host.digest"
local emit = require "gen.emit.emit"
local host = require "host"
local precompiled_headers = require "harness.base.precompiled_headers"

local objects = {}
objects.__index = objects

-- A place for the objects of one compiler. options: cc, version (its first line of --version), folder (a temporary
-- one), apart (whether they are many).
function objects.new(options) return setmetatable({ options = options, list = {}, ahead = {} }, objects) end

-- Adds how often each word stands in `text` to `counts`.
local function count_words(text, counts)
    for word in text:gmatch "[%a_][%w_]*" do
        counts[word] = (counts[word] or 0) + 1
    end
    return counts
end

-- The headers of one plan, as `relevant` wants them: comments are left out.
local function words_of(headers)
    local text = headers:gsub("/%*.-%*/", " "):gsub("[ \t]*\n[ \t\n]*", "\n")
    local defined = {}
    for name in text:gmatch "#define ([%a_][%w_]*)" do
        defined[name] = (defined[name] or 0) + 1
    end
    return { text = text, counts = count_words(text, {}), defined = defined }
end

-- The text of `headers` (see words_of) without the lines that say nothing to `text`: definitions of macros and
-- prototypes of functions whose names stand nowhere else.
local function without_unused(headers, text)
    local counts = count_words(text, {})
    local function unless_used(name)
        if not counts[name] and headers.counts[name] == (headers.defined[name] or 1) then return "" end
    end
    local rest = headers.text:gsub("#define ([%a_][%w_]*) [^\n]*[^\n\\]\n", unless_used)
    return (rest:gsub("void ([%a_][%w_]*)%b();", unless_used))
end

function objects.relevant(headers, text) return without_unused(words_of(headers), text) end

-- The sources of plan `p`, with kernels in files of their own if they are to be `apart`: { contents = text by file
-- name, files = { {name, text, flags, isa} } to compile, headers = the text of all of its own }.
function objects.sources(p, cflags, apart)
    local contents, files, headers = {}, {}, {}
    for _, file in ipairs(emit.sources(p, emit.open, apart and "apart" or nil)) do
        contents[file.name] = file.text
        if file.name:find "%.c$" then
            local flags = compile.flags({ flags = file.isa and file.isa.flags or {} }, cflags)
            files[#files + 1] = { name = file.name, text = file.text, flags = flags, isa = file.isa }
        elseif file.name:find "%.h$" then
            headers[#headers + 1] = file.text
        end
    end
    return { contents = contents, files = files, headers = table.concat(headers, "\n") }
end

-- The option that includes the precompiled headers of a file for an instruction set, made in `timeout` seconds; none if
-- there are no intrinsics, or where the compiler cannot do that.
function objects:ahead_of(file, timeout)
    local o = self.options
    local function run(commands) return compilers.failures(commands, timeout) end
    local ahead = { cc = o.cc, version = o.version, run = run, many = o.apart, known = self.ahead }
    return precompiled_headers.options({ file }, ahead)[1]
end

-- The object files of `sources`, ordered: a list of { path, digest, argv (nil once it was compiled), ahead (options
-- that include headers), failure }, which orders share. The sources are written to `directory` if one of them has to be
-- compiled. Compiling headers ahead may take `timeout` seconds.
function objects:order(sources, directory, timeout)
    local list, written, headers = {}, false, words_of(sources.headers)
    for i, file in ipairs(sources.files) do
        local text = without_unused(headers, file.text) .. "\n" .. file.text
        local digest = digest_of { digest_of(file.flags), text }
        if not self.list[digest] then
            if not written then assert(host.write_directory(directory, sources.contents)) end
            written = true
            local made = { digest = digest, path = string.format("%s/%s.o", self.options.folder, digest) }
            local what = { "-c", directory .. "/" .. file.name, "-o", made.path }
            made.argv = compilers.joined({ self.options.cc }, file.flags, what)
            made.ahead = self:ahead_of(file, timeout)
            self.list[digest] = made
        end
        list[i] = self.list[digest]
    end
    return list
end

-- Compiles what the orders `lists` still need, beside each other. `clock`: late() tells whether the time for all of it
-- is up, timeout() the seconds that one may take. What was not done in time may be ordered again.
function objects:compile(lists, clock)
    local commands, options, of, seen = {}, {}, {}, {}
    for _, list in ipairs(lists) do
        for _, made in ipairs(list) do
            if made.argv and not made.failure and not seen[made] then
                seen[made] = true
                commands[#commands + 1], options[#options + 1], of[#of + 1] = made.argv, made.ahead, made
            end
        end
    end
    local possible = #commands > 0 and not clock.late()
    local function run(some) return compilers.failures(some, clock.timeout()) end
    for i, failure in ipairs(possible and precompiled_headers.compiled(commands, options, run) or {}) do
        of[i].failure = failure and "compile: " .. failure or nil
        if not failure then of[i].argv = nil end
    end
    for _, made in ipairs(clock.late() and of or {}) do
        if made.argv then self.list[made.digest] = nil end
    end
end

return objects
