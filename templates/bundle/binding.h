//$ takes struct_of_weights, flushes, requests_amx, runs
//$ if api ~= "" then
$(include("templates/bundle/api.h"))

//$ end
#ifdef __cplusplus
extern "C" {
#endif

//$ local without_api = api ~= "" and ", without the word " .. names.macro("API") or ""
/* Declarations: cffi reads the part from here to "End of declarations"$(without_api). */

$(include("templates/bundle/statuses.h"))

$(include(struct_of_weights))

$(include("templates/bundle/bind.h"))

$(include("templates/bundle/sizes.h"))
//$ if requests_amx then

$(include("templates/bundle/request_amx.h"))
//$ end
//$ if runs then

/* Whether this CPU can run the instruction set of that number: then a copy of what $(names.bind) has filled may have it as `isa`. */
$(api)int $(names.runs)(int isa);
//$ end
//$ if flushes then

$(include("templates/bundle/flush.h"))
//$ end
