local dtype = require "gen.plan.dtype"
return { bytes = function()
  dtype.projection_names = { "i8" }
  require("tests.fuzz.fuzz").verify("gcc", "-O1", 1, nil, 8)
end }
