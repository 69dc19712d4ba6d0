-- Warnings with which every file of emitted C compiles, as errors.
return {
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Wdouble-promotion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wundef",
    "-Wcast-qual",
    "-Wvla",
    "-Wfloat-conversion",
    "-Wswitch-default",
    "-Werror",
}
