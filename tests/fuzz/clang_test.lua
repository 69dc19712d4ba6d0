-- Random models, compiled with clang, agree with the float64 reference on every instruction set of this CPU.
return { random_models_agree_with_the_reference = function() require("tests.fuzz.fuzz").verify("clang", "-O1", 0) end }
