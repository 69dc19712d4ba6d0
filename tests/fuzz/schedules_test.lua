-- Random schedules of random models, compiled with gcc, agree with the float64 reference.
local effort = require "tests.effort"
local isa = require "gen.isa.list"
return {
    random_schedules_agree_with_the_reference = function()
        require("tests.fuzz.fuzz").verify("gcc", "-Og", effort.fuzz_schedules, isa.select "scalar")
    end,
}
