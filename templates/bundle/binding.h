//$ takes struct_of_weights
$(include("templates/bundle/statuses.h"))

#ifdef __cplusplus
extern "C" {
#endif

$(include(struct_of_weights))

$(include("templates/bundle/bind.h"))
