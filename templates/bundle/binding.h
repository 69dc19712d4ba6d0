//$ takes
$(include("templates/bundle/statuses.h"))

#ifdef __cplusplus
extern "C" {
#endif

$(include("templates/bundle/weights.h"))

$(include("templates/bundle/bind.h"))
