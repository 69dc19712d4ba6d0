-- 20 random schedules of each of 25 random models, compiled with gcc, agree with the float64 reference.
return { random_schedules_agree_with_the_reference = function()
    local fuzz = require "tests.fuzz"
    fuzz.models = 25
    fuzz.verify("gcc", "-Og", 20)
end }
