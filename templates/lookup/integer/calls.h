//$ takes
$(include("templates/lookup/ffn.h"))

$(include("templates/lookup/integer/floats.h"))
