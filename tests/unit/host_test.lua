-- Files are read and written whole or not at all.

local check = require "tests.support.check"
local compile = require "harness.base.compile"
local digest_of = require "gen.host.digest"
local host = require "host"
local library_cache = require "harness.base.library_cache"
local process = require "process"

local test = {}

function test.sha256_of_the_standard()
    check.equal(host.sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    check.equal(host.sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
end

-- Whatever stands at the ends of parts, also what joins lists elsewhere.
function test.a_digest_of_parts_tells_where_they_end()
    local texts = { { "ab", "c" }, { "a", "bc" }, { "abc" }, { "abc", "" }, { "", "abc" }, { "ab\nc" }, { "ab c" }, {} }
    local libraries, seen = {}, {}
    for i, parts in ipairs(texts) do
        libraries[i] = library_cache.digest(parts, {})
        for _, digest in ipairs { digest_of(parts), libraries[i] } do
            check.equal(seen[digest] == nil or seen[digest] == i, true)
            seen[digest] = i
        end
    end
    local function of_flags(...)
        return compile.digest({}, { { name = "a.c", flags = { ... } } }, {}, "cc", "cc 1", "")
    end
    check.equal(of_flags("-DA=1 -DB") == of_flags("-DA=1", "-DB"), false)
end

function test.written_bytes_are_read_back()
    local path = process.temporary_directory() .. "/a"
    local bytes = "line\n\0\255" .. ("x"):rep(200000)
    check.equal(host.write_file(path, bytes), "written")
    check.equal(host.read(path), bytes)
    check.equal(host.read(path, #bytes), bytes)
    check.fails_with(path .. ": is larger than " .. #bytes - 1 .. " bytes", host.read, path, #bytes - 1)
    check.equal(host.write_file(path, ""), "written")
    check.equal(host.read(path), "")
end

function test.unchanged_files_are_left_alone()
    local path = process.temporary_directory() .. "/a"
    local function number() return process.run({ "stat", "-c", "%i %z", path }).output end
    host.write_file(path, "same")
    local before = number()
    check.equal(host.write_file(path, "same"), "unchanged")
    check.equal(number(), before)
end

function test.permissions_are_kept()
    local path = process.temporary_directory() .. "/a"
    host.write_file(path, "1")
    process.run { "chmod", "640", path }
    host.write_file(path, "2")
    check.equal(process.run({ "stat", "-c", "%a", path }).output, "640\n")
end

function test.symbolic_links_are_followed()
    local folder = process.temporary_directory()
    host.write_file(folder .. "/a", "1")
    process.run { "ln", "-s", "a", folder .. "/link" }
    check.equal(host.write_file(folder .. "/link", "2"), "written")
    check.equal(host.read(folder .. "/a"), "2")
    check.equal(process.run({ "readlink", folder .. "/link" }).output, "a\n")
end

-- Folders without links, and the file's own name, though it is a link.
function test.an_absolute_path_keeps_the_name_of_a_file()
    local folder = process.temporary_directory()
    local real = process.run({ "realpath", folder }).output:gsub("\n$", "")
    host.write_directory(folder, { ["blobs/1"] = "", ["real/a"] = "" })
    process.run { "ln", "-s", "../blobs/1", folder .. "/real/a.json" }
    process.run { "ln", "-s", "real", folder .. "/linked" }
    process.run { "ln", "-s", "none", folder .. "/nothing" }
    for path, expected in pairs {
        ["linked/a.json"] = "/real/a.json",
        ["linked/a"] = "/real/a",
        ["linked/../blobs/1"] = "/blobs/1",
        ["linked"] = "/real",
        ["linked/"] = "/real",
        ["linked/."] = "/real",
    } do
        check.equal({ path, host.absolute(folder .. "/" .. path) }, { path, real .. expected })
    end
    check.fails_with(folder .. "/nothing: No such file or directory", host.absolute, folder .. "/nothing")
    check.fails_with("none: No such file or directory", host.absolute, "none")
end

function test.only_regular_files_are_regular()
    local folder = process.temporary_directory()
    host.write_directory(folder, { a = "12\0004", empty = "" })
    process.run { "mkfifo", folder .. "/pipe" }
    check.equal(host.read_regular(folder .. "/a"), "12\0004")
    check.equal(host.read_regular(folder .. "/a", 4), "12\0004")
    check.equal(host.read_regular(folder .. "/empty", 0), "")
    check.fails_with(folder .. "/a: is larger than 3 bytes", host.read_regular, folder .. "/a", 3)
    check.fails_with(folder .. "/pipe: is not a regular file", host.read_regular, folder .. "/pipe")
    check.fails_with(folder .. ": Is a directory", host.read_regular, folder)
    check.fails_with("none: No such file or directory", host.read_regular, "none")
end

function test.all_that_lies_in_a_folder_is_listed()
    local folder = process.temporary_directory()
    host.write_directory(folder, { ["b/c/.d"] = "", ["a"] = "", ["b.c"] = "" })
    process.run { "ln", "-s", "..", folder .. "/b/loop" }
    process.run { "mkfifo", folder .. "/b/pipe" }
    local listed = {}
    for _, entry in ipairs(host.files(folder)) do
        listed[entry.name] = entry.kind
    end
    check.equal(
        listed,
        { ["a"] = "file", ["b.c"] = "file", ["b/c/.d"] = "file", ["b/loop"] = "link", ["b/pipe"] = "other" }
    )
    check.equal(#host.files(folder .. "/"), 5)
    check.fails_with(folder .. "/a: Not a directory", host.files, folder .. "/a")
    check.fails_with("none: No such file or directory", host.files, "none")
end

-- A symbolic link to nothing is neither followed nor replaced.
function test.links_to_nothing_are_refused()
    local folder = process.temporary_directory()
    local link = folder .. "/link"
    process.run { "ln", "-s", "none", link }
    check.equal(host.kind(link), "link")
    check.fails_with(link .. ": is a symbolic link to nothing", host.write_file, link, "x")
    check.fails_with(link .. ": is a symbolic link to nothing", host.append_line, link, "x")
    check.fails_with(link .. ": is a symbolic link to nothing", host.write_directory, link, { a = "x" })
    check.fails_with(link .. ": is a symbolic link to nothing", host.write_directory, folder, { a = "x", link = "x" })
    check.equal(host.list(folder), { "link" })
    check.equal(process.run({ "readlink", link }).output, "none\n")
end

-- What a killed process left beside its output goes, unless another process writes there now.
function test.temporary_files_of_killed_processes_are_removed()
    local folder = process.temporary_directory()
    local kept = { ".lookupc-lock", ".lookupc-abcdefg", "x.lookupc-abcdef", "lookupc-abcdef" }
    for _, name in ipairs(kept) do
        process.run { "touch", folder .. "/" .. name }
    end
    process.run { "mkdir", folder .. "/.lookupc-folder" }
    process.run { "touch", folder .. "/.lookupc-abcdef" }
    local model = process.run({ "realpath", "gen/models/tiny.lua" }).output:gsub("\n", "")
    local beside = { "bash", "-c", 'exec 9< . && flock -s 9 && "$0" sample "$1" -o w', check.lookupc, model }
    check.equal(process.run(beside, { directory = folder }).output, "wrote w\n")
    check.matches(table.concat(host.list(folder), " "), "^%.lookupc%-abcdef .* w ")
    host.remove(folder .. "/w")
    check.equal(host.write_file(folder .. "/a", "1"), "written")
    local names = { ".lookupc-folder", "a", table.unpack(kept) }
    table.sort(names)
    check.equal(host.list(folder), names)
end

function test.what_is_no_file_is_refused()
    local folder = process.temporary_directory()
    check.fails_with("/dev/null: is not a regular file", host.write_file, "/dev/null", "x")
    check.fails_with(folder .. ": Is a directory", host.write_file, folder, "x")
    check.fails_with(folder .. ": Is a directory", host.read, folder)
    check.fails_with("none/a: No such file or directory", host.write_file, "none/a", "x")
    check.fails_with("none: No such file or directory", host.read, "none")
    check.equal(host.list(folder), {})
end

function test.lines_are_appended()
    local path = process.temporary_directory() .. "/log"
    for _, line in ipairs { "a", "", "b\0c" } do
        check.equal(host.append_line(path, line), true)
    end
    check.equal(host.read(path), "a\n\nb\0c\n")
    host.write_file(path, "cut off")
    host.append_line(path, "d")
    check.equal(host.read(path), "cut off\nd\n")
    check.equal(pcall(host.append_line, path, "two\nlines"), false)
    check.fails_with("/dev/full: is not a regular file", host.append_line, "/dev/full", "x")
    check.fails_with("none/a: No such file or directory", host.append_line, "none/a", "x")
end

function test.moving_never_writes_over_a_file()
    local folder = process.temporary_directory()
    host.write_directory(folder, { a = "1", b = "2" })
    check.fails_with("/b: File exists", host.move, folder .. "/a", folder .. "/b")
    check.equal(host.move(folder .. "/a", folder .. "/c"), true)
    check.equal({ host.list(folder), host.read(folder .. "/c") }, { { "b", "c" }, "1" })
    check.fails_with("/a: ", host.move, folder .. "/a", folder .. "/d")
end

function test.kind_and_list()
    local folder = process.temporary_directory()
    host.write_directory(folder, { b = "", a = "", ["Z"] = "" })
    check.equal(host.list(folder), { "Z", "a", "b" })
    check.equal(host.kind(folder), "directory")
    check.equal(host.kind(folder .. "/a"), "file")
    check.equal(host.kind(folder .. "/none"), nil)
    check.fails_with("none: No such file or directory", host.list, "none")
end

function test.directory_is_made_with_its_parents()
    local folder = process.temporary_directory() .. "/x/y//z/"
    check.equal(host.write_directory(folder, { a = "1", b = "2" }), { a = "written", b = "written" })
    check.equal(host.write_directory(folder, { a = "1", b = "4" }, true), { a = "unchanged", b = "written" })
    check.equal(host.read(folder .. "/b"), "4")
    check.equal(host.write_directory(folder, { a = "1", b = "3" }), { a = "unchanged", b = "written" })
    check.equal(host.read(folder .. "b"), "3")
    check.equal(host.list(folder), { "a", "b" })
end

function test.partial_failure_leaves_nothing()
    local folder = process.temporary_directory()
    host.write_directory(folder, { a = "old" })
    process.run { "mkdir", folder .. "/m" }
    check.fails_with(
        folder .. "/m: Is a directory",
        host.write_directory,
        folder,
        { a = "new", b = "new", m = "new", z = "new" }
    )
    check.equal(host.list(folder), { "a", "m" })
    check.equal(host.read(folder .. "/a"), "old")
end

function test.made_directories_are_unmade_on_failure()
    local folder = process.temporary_directory()
    local long = ("n"):rep(300)
    check.fails_with(long, host.write_directory, folder .. "/x/y/z", { a = "1", [long] = "2" })
    check.equal(host.list(folder), {})
    check.fails_with("Not a directory", host.write_directory, "/dev/null/x", { a = "1" })
    check.fails_with(long, host.write_directory, folder, { ["in/b/c"] = "1", ["out/d"] = "2", [long] = "3" })
    check.equal(host.list(folder), {})
end

function test.files_lie_in_folders_of_the_directory()
    local folder = process.temporary_directory()
    check.equal(
        host.write_directory(folder .. "/x", { ["src/a.c"] = "1", ["src/b.c"] = "2", c = "3" }),
        { ["src/a.c"] = "written", ["src/b.c"] = "written", c = "written" }
    )
    check.equal(host.read(folder .. "/x/src/b.c"), "2")
    check.equal(host.list(folder .. "/x"), { "c", "src" })
end

function test.names_stay_inside_the_directory()
    for _, name in ipairs { "", ".", "..", "/a", "a/", "a//b", "a/../b", "../a", "a/..", "a\0b" } do
        check.fails_with("inside the directory", host.write_directory, "/tmp/never", { [name] = "x" })
    end
end

function test.resources_are_the_files_of_the_repository()
    check.matches(host.resource("LICENSE"), "^MIT License")
    check.fails_with("gen/none.lua", host.resource, "gen/none.lua")
    local found = {}
    for _, name in ipairs(host.resources("gen/models/")) do
        found[name] = true
    end
    check.equal(found["gen/models/tiny.lua"], true)
end

function test.no_clock_and_no_chance()
    for _, name in ipairs { "os", "io", "debug", "print", "dofile", "loadfile" } do
        check.equal(_G[name], nil)
    end
    check.equal(math.random, nil)
    check.equal(#package.searchers, 2)
    check.equal(pcall(require, "os"), false)
end

return test
