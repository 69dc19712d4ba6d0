//$ takes isa, score, step
//$ -- 2 |z| is an argument of exp, and what a row that is not the best one loses.
//$ local needs_minus_two = score.share or score.along and shape.neighbours > 1
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"
//$ if needs_minus_two then
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f"));
//$ end
    $(isa.index) row = $(isa.index_zero());
//$ if score.along then
    $(isa.vector) sum = $(isa.zero());
//$ end
//$ if score.share then
    $(isa.vector) product = $(isa.broadcast("1.0f"));
//$ end
//$ for bit = 0, shape.tau - 1 do

    const $(isa.vector) z$(bit) = $(isa.load("z", bit * step));
//$ if score.scored then
    const $(isa.vector) magnitude$(bit) = $(isa.abs("z" .. bit));
//$ end
    row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << (shape.tau - 1 - bit))));
//$ if score.along then
    sum = $(isa.add("sum", "magnitude" .. bit));
//$ end
//$ if score.share then
    product = $(isa.fma("product", exp .. "(" .. isa.mul("minus_two", "magnitude" .. bit) .. ")", "product"));
//$ end
//$ end
