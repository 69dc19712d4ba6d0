//$ takes
/* End of declarations. */

#ifdef __cplusplus
}
#endif
