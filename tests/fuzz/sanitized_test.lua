-- Random models, with the default schedule and a random one, run clean under the address and undefined-behaviour
-- sanitizers.
local check = require "tests.support.check"
return {
    random_models_run_clean = function()
        require("tests.fuzz.fuzz").verify_sanitized("tests/fuzz/sanitized_test.lua", check.lookupc, "gcc", 1)
    end,
}
