//$ takes sizes, statuses
const $(names.description) *$(names.sizes)(void)
{
    static const $(names.description) description = {
//$ for _, row in ipairs(sizes) do
        .$(row.name) = $(row.value),
//$ end
    };
    return &description;
}

const char *$(names.error)(int status)
{
    switch (status) {
//$ for _, status in ipairs(statuses) do
    case $(names.macro(status.name)): return "$(status.text or status.doc)";
//$ end
    default: return "no status of $(model)";
    }
}
