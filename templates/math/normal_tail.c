//$ takes isa
//$ -- Steps towards Phi(-|x|) = p exp(-square / 2) by Abramowitz and Stegun 7.1.26.
    const $(isa.vector) magnitude = $(isa.abs("x"));
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) below = $(isa.fma("magnitude", isa.broadcast("0.231641888f"), "one"));
    const $(isa.vector) t = $(isa.div("one", "below"));
    $(isa.vector) p = $(isa.broadcast("0.530702715f"));
    p = $(isa.fma("p", "t", isa.broadcast("-0.726576014f")));
    p = $(isa.fma("p", "t", isa.broadcast("0.710706871f")));
    p = $(isa.fma("p", "t", isa.broadcast("-0.142248368f")));
    p = $(isa.fma("p", "t", isa.broadcast("0.127414796f")));
    p = $(isa.mul("p", "t"));
    const $(isa.vector) square = $(isa.mul("magnitude", "magnitude"));
