//$ takes isa, score, step
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"
//$ if score.share then
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
//$ if score.share then
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
