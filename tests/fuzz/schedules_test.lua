-- 20 random schedules of each of 200 random models, compiled with gcc, agree with the float64 reference.
return {
    random_schedules_agree_with_the_reference = function()
        require("tests.fuzz.fuzz").verify("gcc", "-Og", 20, require("gen.isa.list").select "scalar")
    end,
}
