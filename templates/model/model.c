//$ takes
$(include("templates/bundle/bind.c"))

$(include("templates/model/calls.c"))
