-- The portable kernels of 200 random models run clean under the address and undefined-behaviour sanitizers.
local check = require "tests.check"
return { random_models_run_clean = function() require("tests.fuzz").verify_sanitized(check.lookupc, "gcc") end }
