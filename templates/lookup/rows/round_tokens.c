//$ takes helper, integers, source, x_step, inputs
//$ -- Rounds the inputs of each token to integers: in units, and with starts, of its blocks, or in a unit of its own.
//$ local x, words = source .. " + token * " .. x_step, "integers + token * " .. integers.pitch
    for (size_t token = 0; token < tokens; ++token)
//$ if integers.starts then
        $(helper)_round_$(inputs)($(x), units + token * $(integers.blocks), $(words), starts + token * $(integers.blocks));
//$ else
        units[token] = $(helper)_round_$(inputs)($(x), $(words));
//$ end
