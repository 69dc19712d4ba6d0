//$ takes
/* Denormal numbers, below 1.2e-38, in what a call reads make it up to 140 times slower on some CPUs. 1 makes
   the calling thread take them for zeros, in results as well. Returns the state before, which a call with it
   brings back. For x86 and AArch64; elsewhere it does nothing and returns 0. */
$(api)int $(names.flush_denormals)(int state);
