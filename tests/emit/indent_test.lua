-- What stands in a brace, a list or behind a condition is indented, whatever its indentation was.
local check = require "tests.support.check"
local indent = require "gen.print.indent"

-- Checks that the text comes back from its lines without indentation; what `|` begins goes on a statement or comment
-- and keeps its place beside the line before.
local function gives(expected)
    local lines, moved = {}, 0
    for line in expected:gmatch "([^\n]*)\n" do
        local columns = #line:match "^ *"
        if line:find "^ *|" then
            line = (" "):rep(columns - moved) .. line:sub(columns + 2)
        elseif not line:find "^ *#" then
            moved, line = columns, line:sub(columns + 1)
        end
        lines[#lines + 1] = line
    end
    local text, good = table.concat(lines, "\n") .. "\n", expected:gsub("( *)|", "%1")
    local function compared(given)
        local actual = indent.by_structure(given)
        if actual ~= good then error("got\n" .. actual .. "\nexpected\n" .. good, 3) end
    end
    compared(text)
    compared(good)
    compared((text:gsub("([^\n]+)", function(line) return line:find "^ *#" and line or "    " .. line end)))
end

local test = {}

function test.braces()
    gives [[
int f(int a,
      |int b)
{
    int x = 0;

    for (size_t i = 0; i < 2; ++i) {
        x += a;
        while (x < b) {
            ++x;
        }
    }
    do {
        --x;
    } while (x > 0);
    {
        const int y = x;
        f(y, y);
    }
    return x;
}

int g(void);
]]
end

function test.conditions_without_braces()
    gives [[
void f(void)
{
    for (size_t r = 0; r < 2; ++r)
        for (size_t c = 0; c < 2; ++c)
            if (r < c)
                g(r, c);
            else if (r == c)
                g(c, r);
            else
                for (size_t k = 0; k < 2; ++k)
                    g(k, k);
    if (x)
        while (y)
            --y;
    else
        z = 1;
    if (a)
        if (b)
            x = 1;
        else
            x = 2;
    else
        x = 3;
    y = 2;
}
]]
end

function test.braces_behind_conditions_without()
    gives [[
void f(void)
{
    for (size_t r = 0; r < 2; ++r)
        if (r < c) {
            g(r);
        } else if (r > c) {
            h(r);
        } else {
            for (;;)
                break;
        }
    if (a)
        for (size_t k = 0; k < 2; ++k) {
            g(k);
            h(k);
        }
    else
        x = 3;
    if (a) {
        x = 1;
    } else
        x = 2;
    y = 2;
}
]]
end

function test.switches()
    gives [[
int f(int a)
{
    switch (a) {
    /* the first one */
    case 0: return 1;
    case 1:
    case 2:
        if (a)
            ++a;
        do {
            --a;
        } while (a);
        break;
    case 3: {
        const int b = a;
        g(b);
        break;
    }
    default: return 0;
    }
    x = a ? 1 :
            |2;
}
]]
end

function test.lists_and_structures()
    gives [[
typedef struct {
    float *at;
    struct {
        int a;
    } inner;
} rows;

enum kind {
    ONE = 1,
    TWO,
};

static const float values[2][2] = {
    {1, 2},
    {
        3,
        g(4,
            |5),
    },
    {6,
        |7},
    "a"
    |"b",
};

void f(void)
{
    const weights w = {
        .a = 1,
        .b = f(2),
    };
    const int list[] = {1, 2,
        |3};
    g(&w);
}
]]
end

function test.statements_that_go_on_keep_their_shape()
    gives [[
void f(void)
{
    if (a)
        const float x = g(a,
                          |b)
            |+ c;
    for (size_t i = 0, j = 0;
         |i < 2 && g(i,
             |j);
         |++i)
        x = 1;
    if (a
        |&& b) {
        y = 2;
    }
}
]]
end

function test.comments()
    gives [[
/* One,
   |two. */
void f(void)
{
    /* three,
         |four { */
    int x; /* five;
              |six ( */
    for (;;) /* always { */
        /* seven */
        x = '{' + '"' + '\''; /* "eight */
    /* nine */ y = 1;
    if (a) /* ten
              |eleven */
        z = "/* { */";
    x = g(a, /* twelve
                |thirteen */ b,
        |c); /* fourteen */
    /* fifteen
       |sixteen */ x = g(1,
        |2); /* seventeen */
    g("\"{", a); /* ( */
    return;
}
]]
end

function test.the_preprocessor()
    gives [[
#ifdef __cplusplus
extern "C" {
#endif

int f(void);

int g(void)
{
    int x = 1;
#if defined(A) /* a
    comment { */
    if (x) {
#elif defined(B)
    while (x) {
#  pragma once
#else
    {
#endif
        f();
    }
#ifdef C
    if (x)
#endif
        return 1;
    return 0;
}

#ifdef __cplusplus
}
#endif
]]
end

function test.blank_lines_are_empty() check.equal(indent.by_structure "a;\n   \nb;\n", "a;\n\nb;\n") end

function test.macros_stay_where_they_are()
    local text = "{\n#define LOOP(n) \\\n  for (;;) { \\\n        n;\n    g();\n}\n"
    check.equal(indent.by_structure(text), text)
end

return test
