-- Equal tables give equal bytes, and what JSON cannot say is refused.

local check = require "tests.support.check"
local json = require "json"

local test = {}

function test.encoding_is_sorted_and_indented()
    check.equal(
        json.encode({ b = { 1, 2 }, a = "x", c = { d = true } }),
        '{\n  "a": "x",\n  "b": [\n    1,\n    2\n  ],\n  "c": {\n    "d": true\n  }\n}'
    )
    check.equal(json.encode({ b = 1, a = json.null }, "compact"), '{"a":null,"b":1}')
end

function test.numbers()
    check.equal(
        json.encode({ 3, 3.0, 0.1, 1e-5, -2.5, 1e300, math.maxinteger }, "compact"),
        "[3,3.0,0.1,1e-5,-2.5,1e300,9223372036854775807]"
    )
    for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
        check.fails_with("us: is not a finite number", json.encode, { us = bad })
    end
end

function test.empty_tables()
    check.equal(json.encode({}), "{}")
    check.equal(json.encode(json.array {}), "[]")
    check.equal(json.encode(json.decode("[{},[]]"), "compact"), "[{},[]]")
end

function test.what_json_cannot_say()
    check.fails_with("list: an array must have the keys 1 to n", json.encode, { list = { 1, x = 2 } })
    check.fails_with("an array must have the keys 1 to n", json.encode, { 1, nil, 3 })
    check.fails_with("an object must have strings as keys", json.encode, { [0] = 1 })
    check.fails_with("f: must be a table", json.encode, { f = check.equal })
    check.fails_with("s: is not UTF-8", json.encode, { s = "\255" })
    local loop = {}
    loop.loop = loop
    check.fails_with("inside itself", json.encode, loop)
end

function test.decoding()
    check.equal(
        json.decode('{"a": [1, 2.5, "é\\n"], "b": {"c": false}}'),
        { a = { 1, 2.5, "é\n" }, b = { c = false } }
    )
    check.equal(json.decode("null"), json.null)
    check.equal(json.decode("\xef\xbb\xbf{}"), {}) -- a byte order mark
end

function test.decoding_refuses()
    check.fails_with("1:12: duplicate object key", json.decode, '{"a": 1, "a": 2}')
    check.fails_with("1:", json.decode, "{")
    check.fails_with("1:", json.decode, "")
    check.fails_with("2:1: ", json.decode, "{}\n{}")
    check.fails_with("real number overflow", json.decode, "[1e999]")
    check.fails_with("maximum parsing depth", json.decode, ("["):rep(100000))
    check.fails_with("1:14: a string has the character U+0000", json.decode, '{"a": "\\u0000"}')
    check.fails_with("1:9: a key has the character U+0000", json.decode, '{"\\u0000": 1}')
    check.fails_with("unable to decode byte", json.decode, '"\255"')
end

return test
