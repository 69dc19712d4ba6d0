-- Models have names that C, C++ and file systems take, and nothing emitted is named without its model's prefix.
local check = require "tests.support.check"
local sets = require "tests.support.sets"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local names = require "gen.schema.names"
local plan = require "gen.families.lookup.plan"
local model_plan = require "gen.families.model.plan"

local test = {}

function test.valid_names()
    for _, name in ipairs {
        "a",
        "z9",
        "tiny",
        "roberta_small",
        "a_b_c",
        "x1_2",
        "int8",
        "int_",
        "auto_x",
        "integer",
        ("a"):rep(40),
    } do
        check.equal(names.valid(name), name ~= "int_")
    end
end

function test.invalid_names()
    for _, name in ipairs {
        "",
        "_",
        "_a",
        "a_",
        "a__b",
        "__",
        "1a",
        "9",
        "A",
        "aB",
        "Tiny",
        "a b",
        " a",
        "a ",
        "a-b",
        "a.b",
        "a/b",
        "../a",
        "a\n",
        "a\0",
        "\0",
        "é",
        "aé",
        "ａ",
        "a$",
        "a%s",
        "a*/",
        ("a"):rep(41),
        ("a"):rep(1000),
    } do
        if names.valid(name) then error(string.format("%q is taken as a name", name)) end
    end
end

function test.keywords_of_c_and_cplusplus()
    for word in
        ([[auto break case char const continue default do double else enum extern float for goto if inline int long
        register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
        alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual
        and and_eq asm bitand bitor catch char8_t char16_t char32_t class compl concept const_cast consteval constinit
        co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept
        not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this throw
        try typeid typename using virtual wchar_t xor xor_eq]]):gmatch "%S+"
    do
        if names.valid(word) then error(word .. " is taken as a name") end
        check.equal(names.valid(word .. "1"), true)
    end
end

-- A model's header would hide them from all files that are compiled with -I and the bundle's folder.
function test.standard_headers()
    for header in
        ("assert complex ctype errno fenv float immintrin inttypes limits locale math setjmp signal stdarg \z
                stdatomic stdbool stddef stdint stdio " .. "stdlib string tgmath threads time wchar cpuid"):gmatch(
            "%S+"
        )
    do
        if names.valid(header) then error(header .. " is taken as a name") end
    end
end

-- R_OK of unistd.h is 0, too; -Itiny has tiny_runtime.h of another model.
function test.names_that_break_every_consumer()
    for name in ("r w x f z ex unistd pthread tiny_runtime tiny_linked tiny_train"):gmatch "%S+" do
        if names.valid(name) then error(name .. " is taken as a name") end
    end
    for name in ("runtime linked train tiny_run y rw std json all install"):gmatch "%S+" do
        check.equal(names.valid(name), true)
    end
end

function test.names_that_break_what_is_asked_for()
    for option, list in pairs {
        cpp = "std size_t int32_t",
        cmake = "all install test m debug",
        meson = "all install elif",
        python = "json os lambda numpy",
        rust = "crate self super match",
        web = "function null super let",
    } do
        for name in list:gmatch "%S+" do
            local line = string.format('--%s: name = "%s": is a word of that system', option, name)
            check.fails_with(line, names.check, option, name)
        end
        names.check(option, "tiny")
    end
    names.check("make", "all")
    names.check("rust", "json")
end

function test.names_are_text_even_when_the_schema_sees_something_else()
    check.matches(names.rule, "1 to 40")
    check.fails_with("name = 64: " .. names.rule, model.validate, { name = 64 }, "", "m")
end

function test.public_names()
    local public = names.public("tiny_1")
    check.equal({ public.macro("D_OUT"), public.openmp(public.ffn) }, { "TINY_1_D_OUT", "tiny_1_ffn_openmp" })
    check.equal(public.guarded(public.bind, "0123"), "tiny_1_bind_for_0123")
    for key, value in pairs(public) do
        if type(value) == "function" then public[key] = nil end
    end
    check.equal(public, {
        model = "tiny_1",
        prefix = "",
        weights = "tiny_1_weights",
        rows = "tiny_1_rows",
        rounded_rows = "tiny_1_rounded_rows",
        span = "tiny_1_span",
        bind = "tiny_1_bind",
        tokenize = "tiny_1_tokenize",
        text_of = "tiny_1_text_of",
        bind_linked = "tiny_1_bind_linked",
        selftest = "tiny_1_selftest",
        ffn = "tiny_1_ffn",
        decode = "tiny_1_decode",
        prefill = "tiny_1_prefill",
        encode = "tiny_1_encode",
        encode_batch = "tiny_1_encode_batch",
        start = "tiny_1_start",
        prefill_all = "tiny_1_prefill_all",
        step = "tiny_1_step",
        position = "tiny_1_position",
        linked = "tiny_1_linked.h",
        linked_source = "tiny_1_linked.c",
        split = "tiny_1_split",
        ranges = "tiny_1_ranges",
        range = "tiny_1_range",
        header = "tiny_1.h",
        source = "tiny_1.c",
        runtime = "tiny_1_runtime.h",
        train_header = "tiny_1_train.h",
        cpp_header = "tiny_1.hpp",
        description = "tiny_1_description",
        sizes = "tiny_1_sizes",
        error = "tiny_1_error",
        flush_denormals = "tiny_1_flush_denormals",
        request_amx = "tiny_1_request_amx",
        runs = "tiny_1_runs",
        benchmark = "tiny_1_benchmark",
        script = "tiny_1.js",
        wasm = "tiny_1.wasm",
        blob = "tiny_1.bin",
        manifest = "MANIFEST.json",
        licence = "LICENSE",
    })
    for _, name in pairs(public) do
        check.equal(name:find("__", 1, true), nil)
    end
end

function test.variant_names()
    check.equal(names.variant("tiny", "gather_f32", "avx2", "g8_c64"), "tiny_gather_f32__avx2_g8_c64")
    check.equal(names.variant("tiny", "ffn", "scalar"), "tiny_ffn__scalar")
    check.equal(names.variant("tiny", "ffn", "scalar", ""), "tiny_ffn__scalar")
end

-- C without comments, strings and preprocessor lines, and the list of those lines.
local function parts_of(text)
    text = text:gsub("\\\n", " "):gsub("/%*.-%*/", " "):gsub("'[^'\n]*'", "0")
    local directives = {}
    text = ("\n" .. text):gsub("\n%s*#([^\n]*)", function(directive)
        directives[#directives + 1] = directive
        return "\n"
    end)
    return text:gsub('extern%s*"C"%s*{', ""):gsub('"[^"\n]*"', '""'), directives
end

local specifiers = {}
for word in ("const volatile static inline extern restrict struct union enum typedef"):gmatch("%S+") do
    specifiers[word] = true
end

-- The names that a file defines or declares outside of functions: { name = "function" | "type" | "macro" | "object" }.
local function names_in(text)
    local code, directives = parts_of(text)
    local found = {}
    for _, directive in ipairs(directives) do
        local macro = directive:match("^%s*define%s+([%w_]+)")
        if macro then found[macro] = "macro" end
    end
    -- What stands in braces does not matter, but the tag before does.
    code = code:gsub("%b{}", "{}") .. ";"
    for statement in code:gsub("{}%s*\n", "{};\n"):gmatch("([^;]*);") do
        local tag = statement:match("%f[%w_]struct%s+([%w_]+)%s*{}")
            or statement:match("%f[%w_]union%s+([%w_]+)%s*{}")
            or statement:match("%f[%w_]enum%s+([%w_]+)%s*{}")
        if tag then found[tag] = "type" end
        local called = statement:match("([%a_][%w_]*)%s*%(")
        if statement:find("^%s*typedef%f[^%w_]") then
            found[statement:match("([%a_][%w_]*)[%s%[%]%d]*$")] = "type"
        elseif called then
            found[called] = "function"
        else
            local before = statement:gsub("=.*", "")
            local name = before:match("([%a_][%w_]*)[%s%[%]%d]*$")
            if name and not specifiers[name] then found[name] = "object" end
        end
    end
    return found
end

function test.the_scan_sees_every_kind_of_definition()
    check.equal(
        names_in [[
/* int comment(void); */
#include <stddef.h>
#  define SIZE 4 /* of */
#define CALL(x) \
    (x)
extern "C" {
typedef struct tag { int member; } type;
typedef float array[4];
typedef unsigned word;
union other { int member; };
enum colour { RED };
static int state;
static const float table[4] = { 1, 2 };
extern int shared;
int declared(int argument);
static inline int defined(int a, int b)
{
    int inside = f(a);
    if (inside) { g("text; }"); }
    return '{';
}
void last(void) { }
}
]],
        {
            SIZE = "macro",
            CALL = "macro",
            tag = "type",
            type = "type",
            array = "type",
            word = "type",
            other = "type",
            colour = "type",
            state = "object",
            table = "object",
            shared = "object",
            declared = "function",
            defined = "function",
            last = "function",
        }
    )
end

-- The models of gen/models and some that need other templates: { model, instruction sets }.
local function bundles()
    local list = {}
    for _, file in ipairs(assert(host.list("gen/models"))) do
        local m = model.load("gen/models/" .. file)
        if not m.attention then list[#list + 1] = { m, sets.bundled } end
    end
    list[#list + 1] = { list[1][1], "scalar" }
    list[#list + 1] = { list[1][1], "avx512" }
    list[#list + 1] = {
        model.validate({
            name = "odd_one",
            d = 23,
            d_out = 17,
            h = 5,
            tau = 3,
            projection = { kind = "dense" },
            score = "softmax",
        }, "", ""),
        sets.bundled,
    }
    list[#list + 1] = {
        model.validate({
            name = "cut",
            d = 50,
            d_out = 19,
            h = 9,
            tau = 5,
            projection = { kind = "bh4", block = 4 },
            score = "softmax",
        }, "", ""),
        sets.bundled,
    }
    return list
end

function test.every_name_in_emitted_files_has_the_models_prefix()
    local functions, plans = 0, {}
    for i, bundle in ipairs(bundles()) do
        plans[i] = plan.build(bundle[1], isa.select(bundle[2]))
    end
    for _, name in ipairs { "mistral_7b_skipless", "lookup_skipless" } do
        plans[#plans + 1] =
            model_plan.build(model.load("gen/models/" .. name .. ".lua"), isa.select(sets.bundled), {})
    end
    for _, p in ipairs(plans) do
        local m = p.model
        for _, file in ipairs(emit.files(p)) do
            if file.name:find("%.[ch]$") then
                check.equal(file.name:sub(1, #m.name), m.name)
                for name, kind in pairs(names_in(file.text)) do
                    local prefix = kind == "macro" and m.name:upper() .. "_" or m.name .. "_"
                    if name:sub(1, #prefix) ~= prefix then
                        error(string.format("%s: %s %s has no prefix %s", file.name, kind, name, prefix))
                    end
                    if kind == "function" then functions = functions + 1 end
                    if kind == "object" then error(file.name .. ": " .. name .. " is state") end
                end
            end
        end
    end
    check.equal(functions > 200, true)
end

function test.the_public_header_shows_no_variant()
    for _, bundle in ipairs(bundles()) do
        local m = bundle[1]
        local header = emit.files(plan.build(m, isa.select(bundle[2])))[1]
        check.equal(header.name, m.name .. ".h")
        for name, kind in pairs(names_in(header.text)) do
            if name:find("__", 1, true) then error(kind .. " " .. name .. " is reserved in C++") end
            for _, set in ipairs(isa.names) do
                if name:lower():find(set, 1, true) then error(kind .. " " .. name .. " names an instruction set") end
            end
        end
        local public = {}
        for name, kind in pairs(names_in(header.text)) do
            if kind ~= "macro" then public[#public + 1] = kind .. " " .. name end
        end
        table.sort(public)
        check.equal(public, {
            "function " .. m.name .. "_bind",
            "function " .. m.name .. "_error",
            "function " .. m.name .. "_ffn",
            "function " .. m.name .. "_flush_denormals",
            "function " .. m.name .. "_sizes",
            "type " .. m.name .. "_description",
            "type " .. m.name .. "_weights",
        })
    end
end

function test.a_kernel_file_is_named_by_its_function()
    local p = plan.build(model.load("gen/models/tiny.lua"), isa.select(sets.bundled))
    for _, file in ipairs(emit.sources(p, nil, "apart")) do
        local stem = file.name:match("^(.*)%.c$")
        if stem and file.isa then check.equal(names_in(file.text)[stem], "function") end
    end
end

-- All kernels are compiled into one program: no two files may define the same function for others to see.
function test.no_function_is_defined_twice()
    for _, bundle in ipairs(bundles()) do
        local owner = {}
        for _, file in ipairs(emit.files(plan.build(bundle[1], isa.select(bundle[2])))) do
            if file.name:find("%.c$") then
                local here = {}
                local code = parts_of(file.text):gsub("%b{}", "{}")
                for head in ("\n" .. code):gmatch("[;}\n]([^;{}]+){}") do
                    local name = head:match("([%a_][%w_]*)%s*%(")
                    if name and not head:find("%f[%w_]static%f[^%w_]") and not head:find("_INLINE%f[^%w_]") then
                        if owner[name] then error(name .. " is defined in " .. owner[name] .. " and " .. file.name) end
                        owner[name] = file.name
                    end
                    if name and here[name] then error(name .. " is defined twice in " .. file.name) end
                    here[name or head] = true
                end
            end
        end
        check.equal(owner[bundle[1].name .. "_ffn"], bundle[1].name .. ".c")
    end
end

function test.no_placeholder_is_left()
    for _, bundle in ipairs(bundles()) do
        for _, file in ipairs(emit.files(plan.build(bundle[1], isa.select(bundle[2])))) do
            if file.name:find("%.[ch]$") then
                local left = file.text:match("[^\n]*%$[^\n]*")
                    or file.text:match("[^\n]*//[^\n]*")
                    or file.text:match("[^\n]*%f[%w_]nil%f[^%w_][^\n]*")
                if left then error(file.name .. ": " .. left) end
            end
        end
    end
end

return test
