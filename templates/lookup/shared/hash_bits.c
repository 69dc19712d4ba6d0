//$ takes isa, helper, score, step
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f"));
    $(isa.index) row = $(isa.index_zero());
//$ if score == "gelu" then
    $(isa.vector) sum = $(isa.zero());
//$ end
    $(isa.vector) product = $(isa.broadcast("1.0f"));
//$ for bit = 0, shape.tau - 1 do

    const $(isa.vector) z$(bit) = $(isa.load("z", bit * step));
    const $(isa.vector) magnitude$(bit) = $(isa.abs("z" .. bit));
    row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << (shape.tau - 1 - bit))));
//$ if score == "gelu" then
    sum = $(isa.add("sum", "magnitude" .. bit));
//$ end
    product = $(isa.fma("product", helper .. "_exp(" .. isa.mul("minus_two", "magnitude" .. bit) .. ")", "product"));
//$ end
