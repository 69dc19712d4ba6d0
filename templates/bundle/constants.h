//$ takes constants
//$ local title
//$ for i, constant in ipairs(constants) do
//$ if i == 1 or constant.title ~= title then
//$ title = constant.title

/* $(title or "Offsets and strides.") */
//$ end
#define $(names.macro(constant.name)) $(constant.value)$(constant.doc and " /* " .. constant.doc .. " */" or "")
//$ end
