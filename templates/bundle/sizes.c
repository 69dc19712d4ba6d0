//$ takes sizes, statuses
const $(names.description) *$(names.sizes)(void)
{
    static const $(names.description) description = {
        .$(row.name) = $(row.value), //$ for _, row in ipairs(sizes)
    };
    return &description;
}

const char *$(names.error)(int status)
{
    switch (status) {
    case $(names.macro(status.name)): return "$(status.text or status.doc)"; //$ for _, status in ipairs(statuses)
    default: return "no status of $(model)";
    }
}
