//$ takes isa, score, step
//$ -- 2 |z| is an argument of exp, and what a row that is not the best one loses.
//$ local needs_minus_two = score.share or score.along and shape.neighbours > 1
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f")); //$ if needs_minus_two
    $(isa.index) row = $(isa.index_zero());
    $(isa.vector) sum = $(isa.zero()); //$ if score.along
    $(isa.vector) product = $(isa.broadcast("1.0f")); //$ if score.share
//$ for bit = 0, shape.tau - 1 do

    const $(isa.vector) z$(bit) = $(isa.load("z", bit * step));
    const $(isa.vector) magnitude$(bit) = $(isa.abs("z" .. bit)); //$ if score.scored
    row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << (shape.tau - 1 - bit))));
    sum = $(isa.add("sum", "magnitude" .. bit)); //$ if score.along
//$ if score.share then
    product = $(isa.fma("product", exp .. "(" .. isa.mul("minus_two", "magnitude" .. bit) .. ")", "product"));
//$ end
//$ end
