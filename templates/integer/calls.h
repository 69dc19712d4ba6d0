//$ takes
$(include("templates/integer/ffn.h"))

$(include("templates/integer/floats.h"))
