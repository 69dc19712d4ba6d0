//$ takes align, floats, x_scale, y_scale, fraction
#define $(names.macro("D")) $(shape.d) /* input width */
#define $(names.macro("D_OUT")) $(shape.d_out) /* output width */
#define $(names.macro("TABLES")) $(shape.h) /* hash tables, h */
#define $(names.macro("TAU")) $(shape.tau) /* bits of a code */
//$ if shape.neighbours > 1 then
#define $(names.macro("NEIGHBOURS")) $(shape.neighbours) /* rows that a token takes of a table */
//$ end
//$ if not floats then
#define $(names.macro("X_SCALE")) $(x_scale) /* x[i] stands for x[i] times this */
#define $(names.macro("Y_SCALE")) $(y_scale) /* y[i] stands for y[i] times this */
#define $(names.macro("Y_FRACTION")) $(fraction) /* binary places of y */
//$ end
#define $(names.macro("ALIGN")) $(align) /* of blob and scratch, in bytes */
