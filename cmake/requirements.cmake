# What lookupc is built with: finds it, or says in one message what is missing and how four systems call it.

# name | what find looks for | Debian, Fedora, Arch, Homebrew packages
set(lookupc_requirements
    "lua|Lua 5.4, interpreter|lua5.4|lua|lua|lua"
    "pkg_config|pkg-config|pkg-config|pkgconf-pkg-config|pkgconf|pkgconf"
    "liblua|Lua 5.4, library|liblua5.4-dev|lua-devel|lua|lua"
    "jansson|jansson|libjansson-dev|jansson-devel|jansson|jansson"
    "nettle|nettle|nettle-dev|nettle-devel|nettle|nettle"
    "sqlite3|SQLite 3|libsqlite3-dev|sqlite-devel|sqlite|sqlite"
    "utf8proc|utf8proc|libutf8proc-dev|utf8proc-devel|libutf8proc|utf8proc"
    "openblas|OpenBLAS (LOOKUPC_BENCH)|libopenblas-dev|openblas-devel|openblas|openblas"
    "dnnl|oneDNN (LOOKUPC_BENCH)|libdnnl-dev|onednn-devel|onednn|onednn"
    "cxx|C++ compiler (LOOKUPC_BENCH)|g++|gcc-c++|gcc|gcc"
    "benchmark|Google Benchmark (LOOKUPC_BENCH)|libbenchmark-dev|google-benchmark-devel|benchmark|google-benchmark"
    "train_cxx|C++ compiler (LOOKUPC_TRAIN)|g++|gcc-c++|gcc|gcc"
    "sentencepiece|SentencePiece (LOOKUPC_TRAIN)|libsentencepiece-dev|sentencepiece-devel|sentencepiece|sentencepiece"
    "mpi|MPI (LOOKUPC_MPI)|libopenmpi-dev|openmpi-devel|openmpi|open-mpi"
    "lapack|OpenBLAS (LOOKUPC_TESTS)|libopenblas-dev|openblas-devel|openblas|openblas"
    "cmocka|cmocka (LOOKUPC_TESTS)|libcmocka-dev|libcmocka-devel|cmocka|cmocka")

set(found)

# Distributions call the interpreter of Lua 5.4 differently; `lua` may be another version.
find_program(LOOKUPC_LUA NAMES lua5.4 lua54 lua-5.4 lua)
if(LOOKUPC_LUA)
    execute_process(COMMAND ${LOOKUPC_LUA} -e "io.write(_VERSION)" OUTPUT_VARIABLE lua_version ERROR_QUIET)
    if(lua_version STREQUAL "Lua 5.4")
        list(APPEND found lua)
    endif()
endif()

find_package(PkgConfig)
if(PKG_CONFIG_FOUND)
    list(APPEND found pkg_config)
    pkg_search_module(lookupc_liblua QUIET IMPORTED_TARGET lua5.4 lua54 lua-5.4 "lua>=5.4")
    if(NOT lookupc_liblua_VERSION VERSION_LESS 5.5)
        set(lookupc_liblua_FOUND 0) # its functions take other arguments
    endif()
    foreach(name jansson nettle sqlite3)
        pkg_check_modules(lookupc_${name} QUIET IMPORTED_TARGET ${name})
    endforeach()
    pkg_check_modules(lookupc_utf8proc QUIET IMPORTED_TARGET libutf8proc)
    if(LOOKUPC_BENCH OR LOOKUPC_TESTS)
        pkg_check_modules(lookupc_openblas QUIET IMPORTED_TARGET openblas)
        set(lookupc_lapack_FOUND ${lookupc_openblas_FOUND})
    endif()
    if(LOOKUPC_TRAIN)
        pkg_check_modules(lookupc_sentencepiece QUIET IMPORTED_TARGET sentencepiece)
    endif()
    if(LOOKUPC_MPI)
        pkg_search_module(lookupc_mpi QUIET IMPORTED_TARGET ompi-c mpich mpi-c)
    endif()
    if(LOOKUPC_TESTS)
        pkg_check_modules(lookupc_cmocka QUIET IMPORTED_TARGET cmocka)
    endif()
endif()
if(LOOKUPC_BENCH OR LOOKUPC_TRAIN)
    include(CheckLanguage)
    check_language(CXX)
    set(lookupc_cxx_FOUND ${CMAKE_CXX_COMPILER})
    set(lookupc_train_cxx_FOUND ${CMAKE_CXX_COMPILER})
endif()
if(LOOKUPC_BENCH)
    find_package(benchmark 1.7 QUIET)
    set(lookupc_benchmark_FOUND ${benchmark_FOUND})
    find_library(LOOKUPC_DNNL dnnl)
    set(lookupc_dnnl_FOUND ${LOOKUPC_DNNL})
endif()

set(missing)
set(systems Debian Fedora Arch Homebrew)
set(install_Debian "apt install")
set(install_Fedora "dnf install")
set(install_Arch "pacman -S")
set(install_Homebrew "brew install")
foreach(row ${lookupc_requirements})
    string(REPLACE "|" ";" row "${row}")
    list(POP_FRONT row name what)
    if(what MATCHES "LOOKUPC_[A-Z]+")
        if(NOT ${CMAKE_MATCH_0})
            continue()
        endif()
    endif()
    if(NOT name IN_LIST found AND NOT lookupc_${name}_FOUND)
        list(APPEND missing ${what})
        foreach(system package IN ZIP_LISTS systems row)
            list(APPEND packages_${system} ${package})
        endforeach()
    endif()
endforeach()
if(missing)
    list(JOIN missing ", " missing)
    set(message "lookupc: missing: ${missing}")
    foreach(system ${systems})
        list(REMOVE_DUPLICATES packages_${system})
        list(JOIN packages_${system} " " packages)
        string(APPEND message "\n  ${system}: ${install_${system}} ${packages}")
    endforeach()
    message(FATAL_ERROR "${message}")
endif()

# Bytecode of another release or another CPU may not load: then the program compiles its modules as it starts.
execute_process(COMMAND ${LOOKUPC_LUA} -v OUTPUT_VARIABLE lua_release)
set(lookupc_lua_form text)
if(NOT CMAKE_CROSSCOMPILING AND lua_release MATCHES "^Lua ${lookupc_liblua_VERSION} ")
    set(lookupc_lua_form compiled)
endif()

add_library(lookupc_libraries INTERFACE)
target_link_libraries(lookupc_libraries INTERFACE
    PkgConfig::lookupc_liblua PkgConfig::lookupc_jansson PkgConfig::lookupc_nettle
    PkgConfig::lookupc_sqlite3 PkgConfig::lookupc_utf8proc)
