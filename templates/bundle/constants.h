//$ takes constants
//$ for i, constant in ipairs(constants) do
//$ if i == 1 then

/* Offsets and strides. */
//$ end
#define $(names.macro(constant.name)) $(constant.value) /* $(constant.doc) */
//$ end
