//$ takes
$(include("templates/model/calls.c"))
