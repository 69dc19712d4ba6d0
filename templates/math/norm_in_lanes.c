//$ takes isa, lanes, layernorm, factors, gains, width, eps
//$ -- Norms the row x, with sums in float32, one for each lane of up to four vectors; the last elements, which fill no
//$ -- vector, have sums of their own, whose names begin with "last_".
//$ local at_once = width >= 4 * lanes and 4 or 1
//$ local several = width // (at_once * lanes) * at_once * lanes
//$ local whole = width // lanes * lanes
//$ local rest = whole < width
//$ -- A pass over a row: `body(i, n, at)` prints what is done with the vector at `at` for the sums of number n; last(at)
//$ -- are the statements for an element of the rest.
//$ local function pass(body, last)
//$     loop("i", 0, several, at_once * lanes, function(at)
//$         for n = 0, at_once - 1 do body(n, sum(at, n * lanes)) end
//$     end, { block = true })
//$     loop("i", several, whole, lanes, function(at) body(0, at) end, { block = true })
//$     loop("i", whole, width, 1, function(at) lines(last(at)) end)
//$ end
//$ local function declare_sums(name)
//$     local list = name .. "0 = zero"
//$     for n = 1, at_once - 1 do list = list .. ", " .. name .. n .. " = zero" end
        $(isa.vector) $(list);
        float last_$(name) = 0.0f; //$ if rest
//$ end
//$ local sum_of_lanes = at_once == 1 and across("add")
//$ local add_lanes = at_once > 1 and once("templates/math/total.c") .. "_total"
//$ local function total(name)
//$     local lanes_sum = sum_of_lanes and sum_of_lanes(name .. "0")
//$         or add_lanes .. "(" .. name .. "0, " .. name .. "1, " .. name .. "2, " .. name .. "3)"
//$     return rest and "(last_" .. name .. " + " .. lanes_sum .. ")" or lanes_sum
//$ end
        const $(isa.vector) zero = $(isa.zero());
//$ if layernorm then
//$ declare_sums("sum")
//$ pass(function(n, at)
        sum$(n) = $(isa.add("sum" .. n, isa.load_unaligned("x", at)));
//$ end, function(at) return { "last_sum += x[" .. at .. "];" } end)
        const float mean = $(total("sum")) / $(width).0f;
        const $(isa.vector) means = $(isa.broadcast("mean"));
//$ declare_sums("rest")
//$ end
//$ declare_sums("square")
//$ pass(function(n, at)
//$     local v = "v" .. n
//$     if layernorm then
        const $(isa.vector) $(v) = $(isa.sub(isa.load_unaligned("x", at), "means"));
        rest$(n) = $(isa.add("rest" .. n, v));
//$     else
        const $(isa.vector) $(v) = $(isa.load_unaligned("x", at));
//$     end
        square$(n) = $(isa.fma(v, v, "square" .. n));
//$ end, function(at)
//$     local x = "x[" .. at .. "]"
//$     if not layernorm then return { "last_square += " .. x .. " * " .. x .. ";" } end
//$     return { "last_rest += " .. x .. " - mean;", "last_square += (" .. x .. " - mean) * (" .. x .. " - mean);" }
//$ end)
//$ if layernorm then
        const float shift = $(total("rest")) / $(width).0f;
        const float mean_square = $(total("square")) / $(width).0f;
        const float padded = mean_square - shift * shift + $(eps);
        const $(isa.vector) shifts = $(isa.broadcast("shift")); //$ if not factors
//$ else
        const float padded = $(total("square")) / $(width).0f + $(eps);
//$ end
//$ local factor = first_lane("factor", isa.reciprocal_root(isa.broadcast("padded")))
//$ if factors then
        *y = $(factor);
//$ else
        const $(isa.vector) factors = $(isa.broadcast(factor));
//$ loop("i", 0, whole, lanes, function(at)
//$ if layernorm then
            const $(isa.vector) difference = $(isa.sub(isa.sub(isa.load_unaligned("x", at), "means"), "shifts"));
            const $(isa.vector) scaled = $(isa.mul("difference", "factors"));
            $(isa.store_unaligned("y", at, isa.fma("scaled", isa.load_unaligned("gain", at), isa.load_unaligned("offset", at))));
//$ else
            const $(isa.vector) scaled = $(isa.mul(isa.load_unaligned("x", at), "factors"));
            $(isa.store_unaligned("y", at, gains and isa.mul("scaled", isa.load_unaligned("gain", at)) or "scaled"));
//$ end
//$ end, { block = true })
//$ loop("i", whole, width, 1, function(at)
//$ local function element(name) return name .. "[" .. at .. "]" end
//$ local normal = layernorm and "(" .. element "x" .. " - mean - shift)" or element "x"
//$ local gain = gains and " * " .. element "gain" or ""
            y[$(at)] = $(normal) * $(factor)$(gain)$(layernorm and " + " .. element "offset" or "");
//$ end)
//$ end
