//$ takes statuses, returns_text
/* What $(returns_text). */
//$ for _, status in ipairs(statuses) do
#define $(names.macro(status.name)) $(status.code) /* $(status.doc) */
//$ end
