//$ takes
$(include("templates/whole/calls.c"))
