/* What $(names.bind) returns. */
//$ for _, status in ipairs(statuses) do
#define $(names.macro(status.name)) $(status.code) /* $(status.doc) */
//$ end
