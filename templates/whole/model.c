//$ takes
$(include("templates/bundle/bind.c"))

$(include("templates/whole/calls.c"))
