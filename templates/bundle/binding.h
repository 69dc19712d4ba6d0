//$ takes struct_of_weights
#ifdef __cplusplus
extern "C" {
#endif

/* Declarations: what stands from here to the line that ends them, cffi takes as it is. */

$(include("templates/bundle/statuses.h"))

$(include(struct_of_weights))

$(include("templates/bundle/bind.h"))

$(include("templates/bundle/sizes.h"))
