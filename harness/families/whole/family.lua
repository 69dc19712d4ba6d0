-- The family of whole models in the harness; harness/families/list.lua says what its fields mean.
local execute = require "harness.families.whole.execute"

return {
    name = "whole",
    run = execute.run,
    run_option = "ids",
}
