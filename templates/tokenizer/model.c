//$ takes
$(include("templates/bundle/bind.c"))

$(include("templates/tokenizer/tokenizer.c"))
