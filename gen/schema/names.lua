-- Makes every identifier and file name of emitted code; nobody else concatenates them.
local misuse = require "gen.schema.misuse"

local names = {}

local taken = {}
for word in
    ([[alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor
xor_eq]]):gmatch "%S+"
do
    taken[word] = true
end
-- A model's header is <name>.h: it must not hide one of these.
for header in
    ([[arm_acle arm_mve arm_neon arm_sve assert complex cpuid ctype errno fenv float immintrin inttypes iso646 limits
locale math setjmp signal stdalign stdarg stdatomic stdbool stdckdint stdbit stddef stdint stdio stdlib stdnoreturn
string tgmath threads time uchar wchar wctype aio alloca cpio dirent dlfcn elf endian err error fcntl fmtmsg fnmatch ftw
getopt glob grp iconv intrin io langinfo libgen malloc memory monetary mqueue ndbm netdb nl_types omp poll process
pthread
pwd regex resolv sched search semaphore spawn strings syslog tar termios trace ulimit unistd utime utmpx values windows
wordexp]]):gmatch("%S+")
do
    taken[header] = true
end

-- The macro <NAME>_OK must not be one of unistd.h, sysexits.h, fmtmsg.h, zlib.h or Windows.
for name in ("f r w x ex mm z mb s"):gmatch "%S+" do
    taken[name] = true
end
-- Files of a model called NAME are NAME_runtime.h and so on: another one of that name would be found instead.
local endings = { "_runtime", "_linked", "_train" }

-- What else a name must not be, by what an option of emit asks for.
local consumers = {
    cpp = "int16_t int32_t ptrdiff_t size_t std",
    cmake = [[all c clean codegen debug dl edit_cache general help install list_install_components m optimized package
        package_source preinstall pthread rebuild_cache rt test]],
    meson = [[all benchmark break build_machine clean continue coverage dist distcheck elif endforeach endif foreach
        host_machine in install meson phony reconfigure target_machine test uninstall]],
    python = [[abc aifc and annotationlib antigravity argparse array as assert ast async asynchat asyncio
            asyncore atexit audioop await base64 bdb binascii bisect build builtins bz2 calendar cgi cgitb
            chunk class cmath cmd code codecs codeop collections colorsys compileall compression concurrent
            configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm
            decimal def del difflib dis dist distutils doctest elif email encodings ensurepip enum errno
            except faulthandler fcntl filecmp fileinput finally fnmatch fractions from ftplib functools gc
            genericpath getopt getpass gettext glob global graphlib grp gzip hashlib heapq hmac html http
            idlelib imaplib imghdr imp import importlib in inspect io ipaddress is itertools json keyword
            lambda lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap
            modulefinder msilib msvcrt multiprocessing netrc nis nntplib nonlocal not nt ntpath nturl2path
            numbers numpy opcode operator optparse or os ossaudiodev pass pathlib pdb pickle pickletools pip
            pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile
            pyclbr pydoc pydoc_data pyexpat queue quopri raise random re readline reprlib resource rlcompleter
            runpy sched secrets select selectors setup setuptools shelve shlex shutil signal site smtpd
            smtplib sndhdr socket socketserver spwd sqlite3 src sre_compile sre_constants sre_parse ssl stat
            statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny
            tarfile telnetlib tempfile termios test tests textwrap this threading time timeit tkinter token
            tokenize tomllib trace traceback tracemalloc try tty turtle turtledemo types typing unicodedata
            unittest urllib uu uuid venv warnings wave weakref webbrowser wheel winreg winsound with wsgiref
            xdrlib xml xmlrpc yield zipapp zipfile zipimport zlib zoneinfo]],
    rust = [[abstract as async await become box crate dyn extern final fn gen impl in let loop macro match mod move mut
        override priv pub ref self super trait type unsafe unsized use where yield]],
    web = [[arguments async await debugger eval extends finally function implements import in instanceof interface let
        null package super var with yield]],
}

-- The rule for a model's name, and whether `text` follows it.
names.rule =
    "must be 1 to 40 of a-z, 0-9 and single _, start with a letter, not end with _ and not be a keyword of C or C++, \z
        a header of the system or what its macros begin with, and not end with _runtime, _linked or _train"
local function ends_as_a_file(text)
    for _, ending in ipairs(endings) do
        if text:sub(-#ending) == ending then return true end
    end
    return false
end
function names.valid(text)
    return #text <= 40
        and text:find("^%l[%l%d_]*$") ~= nil
        and not text:find("__", 1, true)
        and not text:find("_$")
        and not taken[text]
        and not ends_as_a_file(text)
end

-- Raises one line if a model called `text` breaks what `--option` of emit is for.
function names.check(option, text)
    for word in (consumers[option] or ""):gmatch "%S+" do
        if word == text then
            misuse(string.format("--%s: name = %q: is a word of that system: take another name", option, text))
        end
    end
end

-- The public names of a model: they never carry an instruction set or a choice.
function names.public(model)
    local upper = model:upper()
    return {
        model = model,
        prefix = "", -- of the constants of a part
        macro = function(word) return upper .. "_" .. word end,
        constant = function(word) return upper .. "_" .. word end, -- a constant of this part
        weights = model .. "_weights",
        -- types that all parts share
        rows = model .. "_rows", -- of floats
        rounded_rows = model .. "_rounded_rows",
        matrix = function(type) return model .. "_matrix_" .. type end, -- of weights of that type
        span = model .. "_span",
        type = function(word) return model .. "_" .. word end, -- one of this part
        bind = model .. "_bind",
        bind_linked = model .. "_bind_linked",
        description = model .. "_description",
        sizes = model .. "_sizes",
        error = model .. "_error",
        flush_denormals = model .. "_flush_denormals",
        request_amx = model .. "_request_amx",
        runs = model .. "_runs",
        selftest = model .. "_selftest",
        ffn = model .. "_ffn",
        decode = model .. "_decode",
        prefill = model .. "_prefill",
        encode = model .. "_encode",
        encode_batch = model .. "_encode_batch",
        start = model .. "_start",
        prefill_all = model .. "_prefill_all",
        step = model .. "_step",
        position = model .. "_position",
        tokenize = model .. "_tokenize",
        text_of = model .. "_text_of",
        -- Of a function that binds a blob, for the linker; `guard`: a number of all that header and sources agree in.
        guarded = function(name, guard) return name .. "_for_" .. guard end,
        openmp = function(name) return name .. "_openmp" end, -- of a public function in an OpenMP build
        split = model .. "_split",
        ranges = model .. "_ranges",
        range = model .. "_range",
        header = model .. ".h",
        cpp_header = model .. ".hpp",
        source = model .. ".c",
        runtime = model .. "_runtime.h",
        -- The file of all kernels for the instruction set of that name, or of firmware, which has one.
        kernels = function(isa) return model .. "__" .. (isa or "kernels") .. ".c" end,
        train_header = model .. "_train.h",
        -- The file of the kernels that train the model, for the instruction set of that name.
        train_kernels = function(isa) return model .. "_train__" .. isa .. ".c" end,
        linked = model .. "_linked.h",
        linked_source = model .. "_linked.c",
        benchmark = model .. "_benchmark", -- the program
        manifest = "MANIFEST.json",
        licence = "LICENSE",
        script = model .. ".js",
        wasm = model .. ".wasm",
        blob = model .. ".bin",
        -- What the names of static functions in kernel files begin with.
        helper = function(word) return word and model .. "_" .. word or model end,
    }
end

-- The names of a part of the model with the public names `of`: its functions and types have names of their own, its
-- files are the model's.
function names.part(of, word)
    local part = names.public(of.model .. "_" .. word)
    part.header, part.runtime, part.macro, part.prefix =
        of.header, of.runtime, of.macro, of.prefix .. word:upper() .. "_"
    part.rows, part.rounded_rows, part.matrix, part.span = of.rows, of.rounded_rows, of.matrix, of.span
    part.constant = function(name) return of.macro(part.prefix .. name) end
    return part
end

-- A variant's name: <model>_<kernel>__<isa>[_<choices>], for example tiny_gather_f32__avx2_t16_g8_c64.
-- `__` is reserved in C++; only C files see these names.
function names.variant(model, kernel, isa, choices)
    return model .. "_" .. kernel .. "__" .. isa .. (choices and choices ~= "" and "_" .. choices or "")
end

return names
