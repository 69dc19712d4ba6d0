# lookupc_add_library: a library of the C that lookupc emits for a model, made again when what it depends on changes.
#
#   lookupc_add_library(<target> MODEL <file>
#       [NAME <name>]           of the model, if it is not that of its file without the extension
#       [RENAME <name>]         what symbols, macros and files are called in its place: for a second target in one program
#       [STATIC | SHARED | OBJECT]
#       [WEIGHTS <path>]        a checkpoint: <name>.bin is packed beside the target, for a second target of that model in its
#                               own folder
#       [EMBED]                 that blob becomes a part of the library: <name>_bind_linked in <name>_linked.h
#       [PREFIX <text>] [IGNORE <patterns>] [BLOCKS_IN_OUT]      of the checkpoint, as lookupc pack takes them
#       [TUNED <file> | SCHEDULE <choices>]
#       [ISA <name>...]         with spaces or commas between them; default by CMAKE_SYSTEM_PROCESSOR
#       [TABLES <type>] [PROJECTION <type>] [TYPE <type>] [CACHE <type>] [ACTIVATIONS <type>] [ARITHMETIC integer] [BASELINE] [MULTIPLY_OUT]
#       [THREADS <n>]           an OpenMP build for at most so many threads
#       [BENCHMARK]             the program <target>_benchmark, which times the calls by Google Benchmark: find_package(benchmark)
#       [PROFILE firmware TARGET <name> [FLASH <bytes>] [RAM <bytes>] [STACK <bytes>]]
#       [OPTIONS <option>...])  further ones of lookupc emit
#
# Linking to the target gives the include path of <name>.h. Its property LOOKUPC_BLOB is the path of <name>.bin.
# LOOKUPC_EXECUTABLE is the lookupc that is run: in a cross build, one of the machine that builds.
include_guard(GLOBAL)

# The paths of DEPFILE are absolute, whatever version of CMake the project asks for: without this policy Ninja emits at every build.
if(CMAKE_VERSION VERSION_LESS 3.21)
    message(FATAL_ERROR "lookupc_add_library needs CMake 3.21, not ${CMAKE_VERSION}")
endif()
cmake_policy(SET CMP0116 NEW)
cmake_policy(SET CMP0057 NEW) # IN_LIST

# Makes the program at `path` the target lookupc::lookupc.
function(lookupc_import path)
    if(NOT TARGET lookupc::lookupc)
        add_executable(lookupc::lookupc IMPORTED GLOBAL)
        set_target_properties(lookupc::lookupc PROPERTIES IMPORTED_LOCATION "${path}")
    endif()
endfunction()

# Sets `result` to whether the folder `directory` of the project or one below it makes `path`, as the property GENERATED says. Folder by
# folder: one does not see that of another in projects for a CMake before 3.20 (CMP0118).
function(lookupc_is_generated result path directory)
    get_source_file_property(generated "${path}" DIRECTORY "${directory}" GENERATED)
    get_property(folders DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
    foreach(folder ${folders})
        if(NOT generated)
            lookupc_is_generated(generated "${path}" "${folder}")
        endif()
    endforeach()
    set(${result} ${generated} PARENT_SCOPE)
endfunction()

# Stops the configuration, at the end of the project, if `path` neither exists nor is made by a command of the project. What lies in the
# build tree is left to the build: file(GENERATE) and others make files there without the property GENERATED.
function(lookupc_needs_file where path)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${path}" built)
    if(NOT built AND NOT EXISTS "${path}")
        cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL lookupc_refuse_missing [[${where}]] [[${path}]])")
    endif()
endfunction()

function(lookupc_refuse_missing where path)
    lookupc_is_generated(generated "${path}" "${CMAKE_SOURCE_DIR}")
    if(NOT generated)
        message(SEND_ERROR " ${where} ${path}: there is no such file") # the space: in one line
    endif()
endfunction()

# The instruction sets of a bundle that names none, on x86, from whoever includes this file.
set_property(GLOBAL PROPERTY LOOKUPC_BUNDLED_ISA "${LOOKUPC_BUNDLED_ISA}")

# Sets `result` to the instruction sets of a bundle that names none, for the CPU that is compiled for and weights of these types; `multiplied`: that of a projection
# that is multiplied out.
function(lookupc_default_isa result tables projection activations multiplied)
    set(isa scalar)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86|X86|86$|amd64|AMD64")
        get_property(isa GLOBAL PROPERTY LOOKUPC_BUNDLED_ISA)
        if(activations STREQUAL bf16)
            list(APPEND isa avx512_bf16 amx_bf16)
        endif()
        if(tables STREQUAL i8 OR projection MATCHES "^i(8|16)$" OR activations STREQUAL i8)
            list(APPEND isa avx_vnni)
        endif()
        if(activations STREQUAL i8 OR multiplied MATCHES "^i[78]$")
            list(APPEND isa amx_int8)
        endif()
        if(multiplied STREQUAL bf16)
            list(APPEND isa amx_bf16)
        endif()
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
        list(APPEND isa neon)
        if(tables STREQUAL i8 OR projection STREQUAL i8 OR activations STREQUAL i8)
            list(APPEND isa dotprod i8mm)
        else()
            list(APPEND isa sve)
        endif()
    endif()
    set(${result} ${isa} PARENT_SCOPE)
endfunction()

# Makefiles have no rules for what a command makes beside `stamp`, the files `ARGN`: where one of them is missing before `target` is built the
# stamp is removed, too.
function(lookupc_make_beside_stamp target stamp)
    if(NOT CMAKE_GENERATOR MATCHES "Makefiles")
        return()
    endif()
    set(script ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}_lookupc_missing.cmake)
    if(NOT TARGET ${target}_lookupc_missing)
        file(REMOVE ${script})
        add_custom_target(${target}_lookupc_missing COMMAND ${CMAKE_COMMAND} -P ${script})
        add_dependencies(${target} ${target}_lookupc_missing)
    endif()
    file(APPEND ${script} "set(files [==[${ARGN}]==])
foreach(file IN LISTS files)
    if(NOT EXISTS \"\${file}\")
        file(REMOVE [==[${stamp}]==])
    endif()
endforeach()
")
endfunction()

function(lookupc_add_library target)
    set(flags STATIC SHARED OBJECT EMBED BLOCKS_IN_OUT BASELINE MULTIPLY_OUT BENCHMARK)
    set(values MODEL NAME RENAME WEIGHTS PREFIX IGNORE TUNED SCHEDULE TABLES PROJECTION TYPE CACHE ACTIVATIONS ARITHMETIC THREADS PROFILE TARGET FLASH RAM STACK)
    cmake_parse_arguments(PARSE_ARGV 1 arg "${flags}" "${values}" "ISA;OPTIONS")
    set(where "lookupc_add_library(${target})")
    if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${where}: not understood: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
    elseif(NOT arg_MODEL)
        message(FATAL_ERROR "${where}: MODEL is missing")
    elseif(arg_EMBED AND NOT arg_WEIGHTS)
        message(FATAL_ERROR "${where}: EMBED needs WEIGHTS")
    elseif(arg_BENCHMARK AND arg_PROFILE)
        message(FATAL_ERROR "${where}: BENCHMARK is not for PROFILE: give OPTIONS --benchmark and compile ${target}_benchmark.c")
    elseif(arg_BENCHMARK AND NOT CMAKE_CXX_COMPILE_OBJECT)
        message(FATAL_ERROR "${where}: BENCHMARK needs the language CXX: project(<name> C CXX), or enable_language(CXX)")
    elseif(arg_PROFILE AND NOT (arg_PROFILE STREQUAL firmware AND arg_TARGET AND arg_WEIGHTS))
        message(FATAL_ERROR "${where}: PROFILE must be firmware, with TARGET and WEIGHTS")
    elseif(NOT TARGET lookupc::lookupc)
        message(FATAL_ERROR "${where}: set LOOKUPC_EXECUTABLE to the path of lookupc")
    elseif(NOT CMAKE_C_COMPILE_OBJECT)
        message(FATAL_ERROR "${where}: the language C is missing here: project(<name> C CXX), or enable_language(C)")
    endif()

    get_filename_component(model "${arg_MODEL}" ABSOLUTE)
    if(NOT arg_NAME)
        get_filename_component(arg_NAME "${model}" NAME_WE)
    endif()
    set(name ${arg_NAME})
    if(arg_RENAME)
        set(name ${arg_RENAME})
    endif()
    string(TOUPPER ${name} upper)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/lookupc/${target})

    # What emit and pack have in common, and what else emit takes.
    set(common)
    foreach(option TABLES PROJECTION TYPE ACTIVATIONS ARITHMETIC PREFIX IGNORE)
        if(DEFINED arg_${option})
            string(TOLOWER ${option} word)
            list(APPEND common --${word} ${arg_${option}})
        endif()
    endforeach()
    foreach(option BASELINE BLOCKS_IN_OUT MULTIPLY_OUT)
        if(arg_${option})
            string(TOLOWER ${option} word)
            string(REPLACE _ - word ${word})
            list(APPEND common --${word})
        endif()
    endforeach()
    set(emit ${common} --name ${arg_NAME} ${arg_OPTIONS})
    if(arg_RENAME)
        list(APPEND emit --rename ${name})
    endif()
    foreach(option CACHE SCHEDULE PROFILE TARGET FLASH RAM STACK)
        if(DEFINED arg_${option})
            string(TOLOWER ${option} word)
            list(APPEND emit --${word} ${arg_${option}})
        endif()
    endforeach()
    set(depends ${model})
    lookupc_needs_file("${where}: MODEL" "${model}")
    if(arg_TUNED)
        get_filename_component(tuned "${arg_TUNED}" ABSOLUTE)
        lookupc_needs_file("${where}: TUNED" "${tuned}")
        list(APPEND emit --tuned ${tuned})
        list(APPEND depends ${tuned})
    endif()
    if(arg_WEIGHTS)
        get_filename_component(weights "${arg_WEIGHTS}" ABSOLUTE)
        lookupc_needs_file("${where}: WEIGHTS" "${weights}")
        if(IS_DIRECTORY ${weights})
            file(GLOB weight_files CONFIGURE_DEPENDS ${weights}/*.safetensors ${weights}/*.json)
        else()
            set(weight_files ${weights})
        endif()
    endif()

    # The files that are emitted follow from the name and the instruction sets.
    if(arg_PROFILE)
        list(APPEND emit --weights ${weights})
        list(APPEND depends ${weight_files})
        set(include ${out}/inc)
        set(sources src/${name}.c src/${name}__kernels.c src/${name}_weights.S)
        set(others inc/${name}.h src/${name}_runtime.h)
        if(arg_OPTIONS MATCHES "--weights-array" OR arg_TARGET MATCHES wasm)
            list(TRANSFORM sources REPLACE "_weights\\.S" "_weights.c")
        else()
            list(APPEND others src/${name}_weights.bin)
        endif()
    else()
        string(REPLACE "," ";" arg_ISA "${arg_ISA}") # as the command line has them
        list(REMOVE_ITEM arg_ISA "")
        if(NOT arg_ISA)
            set(multiplied)
            if(arg_MULTIPLY_OUT)
                set(multiplied ${arg_PROJECTION})
            endif()
            lookupc_default_isa(arg_ISA "${arg_TABLES}" "${arg_PROJECTION}" "${arg_ACTIVATIONS}" "${multiplied}")
        endif()
        string(REPLACE ";" "," isa "${arg_ISA}")
        list(APPEND emit --isa ${isa} --fixed-names)
        set(include ${out})
        set(sources ${name}.c)
        set(others ${name}.h ${name}_runtime.h)
        foreach(set ${arg_ISA})
            list(APPEND sources ${name}__${set}.c)
            list(APPEND others ${name}__${set}.flags)
        endforeach()
        if(arg_BENCHMARK)
            list(APPEND emit --benchmark)
            list(APPEND others ${name}_benchmark.cc)
        endif()
        if(arg_EMBED)
            list(APPEND emit --linked)
            list(APPEND sources ${name}_linked.c)
            list(APPEND others ${name}_linked.h)
        endif()
    endif()
    list(TRANSFORM sources PREPEND ${out}/)
    list(TRANSFORM others PREPEND ${out}/)

    # emit leaves files alone whose bytes did not change: what is compiled from them stays.
    add_custom_command(
        OUTPUT ${out}.stamp
        BYPRODUCTS ${sources} ${others}
        COMMAND lookupc::lookupc emit ${model} ${emit} -o ${out} --depfile ${out}.d --depfile-target ${out}.stamp --quiet
        COMMAND ${CMAKE_COMMAND} -E touch ${out}.stamp
        DEPENDS ${depends} lookupc::lookupc
        DEPFILE ${out}.d
        COMMENT "Emitting ${name}"
        VERBATIM)
    set(kind)
    foreach(word STATIC SHARED OBJECT)
        if(arg_${word})
            set(kind ${word})
        endif()
    endforeach()
    add_library(${target} ${kind} ${sources} ${others} ${out}.stamp)
    lookupc_make_beside_stamp(${target} ${out}.stamp ${sources} ${others})
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${include}>)
    set_target_properties(${target} PROPERTIES C_STANDARD 99 LINKER_LANGUAGE C UNITY_BUILD OFF) # each file has its own flags
    target_compile_options(${target} PRIVATE $<$<CONFIG:>:-O2>) # a build of no type, which has no flags
    list(LENGTH arg_ISA count)
    if(count GREATER 1)
        # <NAME>_ISA in the environment takes the place of the best instruction set.
        set_source_files_properties(${out}/${name}.c PROPERTIES COMPILE_DEFINITIONS ${upper}_ISA_FROM_ENVIRONMENT)
    endif()
    # In a bundle for x86 and AArch64 a file for the other architecture has no kernels, and its flags are unknown.
    set(unknown "^$")
    if(arg_ISA MATCHES "neon|dotprod|sve|i8mm" AND arg_ISA MATCHES "scalar")
        if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
            set(unknown "^(sse|avx)")
        else()
            set(unknown "^(neon|dotprod|sve|i8mm)")
        endif()
    endif()
    foreach(set ${arg_ISA})
        if(set MATCHES "${unknown}")
            continue()
        endif()
        set_source_files_properties(${out}/${name}__${set}.c PROPERTIES
            COMPILE_OPTIONS "@${out}/${name}__${set}.flags" OBJECT_DEPENDS ${out}/${name}__${set}.flags)
    endforeach()
    if(arg_PROFILE)
        # Without asking the project for the language ASM: a C compiler, told what this file is, and what it includes.
        set_source_files_properties(${out}/src/${name}_weights.S PROPERTIES
            LANGUAGE C COMPILE_OPTIONS "-x;assembler-with-cpp" OBJECT_DEPENDS ${out}/src/${name}_weights.bin)
        target_include_directories(${target} PRIVATE ${out}/src)
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL SHARED_LIBRARY)
        target_compile_definitions(${target} PUBLIC ${upper}_SHARED)
    endif()
    if(arg_THREADS)
        find_package(OpenMP REQUIRED COMPONENTS C)
        target_link_libraries(${target} PUBLIC OpenMP::OpenMP_C)
        target_compile_definitions(${target} PUBLIC ${upper}_OPENMP=${arg_THREADS})
    endif()

    if(arg_BENCHMARK)
        find_package(benchmark REQUIRED)
        add_executable(${target}_benchmark ${out}/${name}_benchmark.cc)
        target_link_libraries(${target}_benchmark PRIVATE ${target} benchmark::benchmark)
        set_target_properties(${target}_benchmark PROPERTIES CXX_STANDARD 14)
        target_compile_options(${target}_benchmark PRIVATE $<$<CONFIG:>:-O2>)
    endif()

    if(NOT arg_WEIGHTS OR arg_PROFILE)
        return()
    endif()
    # Beside the target; that of a second target for the same model in a folder of its own.
    set(blob ${CMAKE_CURRENT_BINARY_DIR}/${name}.bin)
    get_property(taken DIRECTORY PROPERTY LOOKUPC_BLOBS)
    if(blob IN_LIST taken)
        set(blob ${out}/${name}.bin)
    endif()
    set_property(DIRECTORY APPEND PROPERTY LOOKUPC_BLOBS ${blob})
    # pack leaves a blob alone whose bytes did not change, too.
    add_custom_command(
        OUTPUT ${blob}.stamp
        BYPRODUCTS ${blob}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
        COMMAND lookupc::lookupc pack ${model} ${common} --weights ${weights} -o ${blob} --depfile ${blob}.d --depfile-target ${blob}.stamp --quiet
        COMMAND ${CMAKE_COMMAND} -E touch ${blob}.stamp
        DEPENDS ${model} ${weight_files} lookupc::lookupc
        DEPFILE ${blob}.d
        COMMENT "Packing ${name}.bin"
        VERBATIM)
    target_sources(${target} PRIVATE ${blob}.stamp)
    lookupc_make_beside_stamp(${target} ${blob}.stamp ${blob})
    set_target_properties(${target} PROPERTIES LOOKUPC_BLOB ${blob})
    if(arg_EMBED)
        # Another target of this model has other weights: the two do not link instead of sharing those of one.
        string(MAKE_C_IDENTIFIER ${target} word)
        target_compile_definitions(${target} PUBLIC ${name}_bind_linked=${name}_bind_linked_of_${word})
        set_source_files_properties(${out}/${name}_linked.c PROPERTIES OBJECT_DEPENDS ${blob} COMPILE_DEFINITIONS "${upper}_BLOB=\"${blob}\"")
    elseif(CMAKE_GENERATOR MATCHES "Makefiles")
        # A command of the project that depends on the blob waits for this target.
        add_custom_target(${target}_lookupc_blob COMMAND cd . BYPRODUCTS ${blob})
        add_dependencies(${target}_lookupc_blob ${target})
    endif()
endfunction()
