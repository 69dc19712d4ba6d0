//$ takes isa, lanes, helper, name, layernorm, factors, parameters, what, more, rows, width, eps
//$ -- more: parameters behind the steps; rows, eps: names of parameters, or numbers; width: a number or a name.
//$ -- Where no vector fits, a row's last elements are left.
//$ local rest = ("" .. width):find "%D" ~= nil or width % lanes > 0
//$ -- A pass over a row: `body(i, n, at)` prints what is done with the vector at `at` for the sums of number n; `one`
//$ -- are the statements for an element at i.
//$ local function pass(body, one)
        for (i = 0; i < fours; i += $(4 * lanes)) {
//$     for n = 0, 3 do body("            ", n, sum("i", n * lanes)) end
        }
        for (; i < whole; $(advance("i", lanes))) {
//$     body("            ", 0, "i")
        }
//$     if not rest then return end
        for (; i < $(width); ++i)$(#one > 1 and " {" or "")
//$     lines("            ", one)
//$     if #one > 1 then
        }
//$     end
//$ end
//$ local function sums(name)
        $(isa.vector) $(name)0 = zero, $(name)1 = zero, $(name)2 = zero, $(name)3 = zero;
//$ end
//$ local add_lanes = once("templates/math/total.c") .. "_total"
//$ local function total(name) return add_lanes .. "(" .. name .. "0, " .. name .. "1, " .. name .. "2, " .. name .. "3)" end

/* $(what) Each lane of four vectors adds up elements of its own,
   in float32$(layernorm and "; differences from a rounded mean give what rounding left out of it." or ".") */
static void $(helper)_$(name)($(parameters)$(more))
{
    const $(isa.vector) zero = $(isa.broadcast("$hidden(0.0f)"));
    const size_t fours = $(width) / $(4 * lanes) * $(4 * lanes), whole = $(width) / $(lanes) * $(lanes);

    for (size_t row = 0; row < $(rows); ++row, x += x_step, $(factors and "++y" or "y += y_step")) {
        float factor[$(lanes)], squares = 0.0f;
        size_t i;
//$ if layernorm then
        float mean = 0.0f, rests = 0.0f;
//$ sums("sum")
//$ pass(function(i, n, at)
$(i)sum$(n) = $(isa.add("sum" .. n, isa.load_unaligned("x", at)));
//$ end, { "mean += x[i];" })
        mean = (mean + $(total("sum"))) / (float) $(width);
        const $(isa.vector) middle = $(isa.broadcast("mean"));
//$ sums("rest")
//$ end
//$ sums("square")
//$ pass(function(i, n, at)
//$     local v = "v" .. n
//$     if layernorm then
$(i)const $(isa.vector) $(v) = $(isa.sub(isa.load_unaligned("x", at), "middle"));
$(i)rest$(n) = $(isa.add("rest" .. n, v));
//$     else
$(i)const $(isa.vector) $(v) = $(isa.load_unaligned("x", at));
//$     end
$(i)square$(n) = $(isa.fma(v, v, "square" .. n));
//$ end, layernorm and { "rests += x[i] - mean;", "squares += (x[i] - mean) * (x[i] - mean);" } or { "squares += x[i] * x[i];" })
        squares += $(total("square"));
//$ if layernorm then
        const float shift = (rests + $(total("rest"))) / (float) $(width);
        const float variance = squares / (float) $(width) - shift * shift + $(eps);
//$ if not factors then
        const $(isa.vector) shifts = $(isa.broadcast("shift"));
//$ end
//$ else
        const float variance = squares / (float) $(width) + $(eps);
//$ end
        $(isa.store_unaligned("factor", 0, isa.reciprocal_root(isa.broadcast("variance"))));
//$ if factors then
        *y = factor[0];
//$ else
        const $(isa.vector) factors = $(isa.broadcast("factor[0]"));
        for (i = 0; i < whole; $(advance("i", lanes))) {
//$ if layernorm then
            const $(isa.vector) difference = $(isa.sub(isa.sub(isa.load_unaligned("x", "i"), "middle"), "shifts"));
            const $(isa.vector) scaled = $(isa.mul("difference", "factors"));
            $(isa.store_unaligned("y", "i", isa.fma("scaled", isa.load_unaligned("gain", "i"), isa.load_unaligned("offset", "i"))));
//$ else
            const $(isa.vector) scaled = $(isa.mul(isa.load_unaligned("x", "i"), "factors"));
            $(isa.store_unaligned("y", "i", isa.mul("scaled", isa.load_unaligned("gain", "i"))));
//$ end
        }
//$ if rest then
        for (; i < $(width); ++i)
            y[i] = $(layernorm and "(x[i] - mean - shift) * factor[0] * gain[i] + offset[i]" or "x[i] * factor[0] * gain[i]");
//$ end
//$ end
    }
}
