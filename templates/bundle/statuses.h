//$ takes statuses, returns_text
/* What $(returns_text). */
#define $(names.macro(status.name)) $(status.code) /* $(status.doc) */ //$ for _, status in ipairs(statuses)
