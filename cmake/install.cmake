# What `cmake --install` and cpack put in place; every file finds the others by its own path, so that the tree can be moved.
include(CMakePackageConfigHelpers)

install(TARGETS lookupc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LOOKUPC_BENCH)
    install(TARGETS lookupc-measure RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}) # lookupc looks for it beside itself
endif()
if(LOOKUPC_TRAIN)
    install(TARGETS lookupc-tokenizer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}) # likewise
endif()
if(LOOKUPC_MPI)
    install(TARGETS lookupc-mpi LIBRARY DESTINATION ${lookupc_libdir})
endif()

# CMake package; nothing in it depends on the machine, and a cross build may use it.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/lookupc)
lookupc_path_between(bin ${package_dir} ${CMAKE_INSTALL_BINDIR})
set(program "\${CMAKE_CURRENT_LIST_DIR}/${bin}/lookupc")
set(functions "\${CMAKE_CURRENT_LIST_DIR}/lookupc_add_library.cmake")
configure_file(cmake/lookupcConfig.cmake.in package/lookupcConfig.cmake @ONLY)
set(version ${PROJECT_BINARY_DIR}/lookupcConfigVersion.cmake)
write_basic_package_version_file(${version} COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/package/lookupcConfig.cmake ${version} cmake/lookupc_add_library.cmake DESTINATION ${package_dir})

# The same package without installation: find_package looks beside the programs in PATH, and so in this build tree.
set(program ${PROJECT_BINARY_DIR}/lookupc)
set(functions ${PROJECT_SOURCE_DIR}/cmake/lookupc_add_library.cmake)
configure_file(cmake/lookupcConfig.cmake.in lookupcConfig.cmake @ONLY)

lookupc_path_between(prefix ${CMAKE_INSTALL_DATADIR}/pkgconfig .)
lookupc_path_between(bin ${CMAKE_INSTALL_DATADIR}/pkgconfig ${CMAKE_INSTALL_BINDIR})
configure_file(cmake/lookupc.pc.in lookupc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lookupc.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)

install(DIRECTORY gen/models DESTINATION ${CMAKE_INSTALL_DATADIR}/lookupc)
set(examples ${CMAKE_INSTALL_DATADIR}/lookupc/examples)
install(DIRECTORY tests/consumers/cmake tests/consumers/make tests/consumers/meson tests/consumers/bazel
    tests/consumers/cpp tests/consumers/python tests/consumers/rust tests/consumers/models DESTINATION ${examples})
install(FILES tests/consumers/README.md DESTINATION ${examples})
install(FILES gen/models/tiny.lua gen/models/tiny_skipless.lua DESTINATION ${examples}/models)

# Pages and larger examples as they lie in the checkout, so that links and scripts hold.
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(CREATE_LINK copyright ${PROJECT_BINARY_DIR}/package/LICENSE SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/package/LICENSE README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg PATTERN results EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
install(FILES tests/firmware/boards/board.h tests/firmware/boards/cortex_m.ld tests/firmware/boards/start_cortex_m.c
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/firmware/boards) # of examples/tiny-writer

# Man pages and completion: printed by the program, so only where it runs.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(pages ${PROJECT_BINARY_DIR}/pages)
    set(print [["$0" completion "$1" >"$2"]])
    add_custom_command(
        OUTPUT ${pages}/bash ${pages}/_lookupc ${pages}/lookupc.fish ${pages}/man1/lookupc.1
        COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}/man1
        COMMAND lookupc help --man ${pages}/man1
        COMMAND sh -c ${print} $<TARGET_FILE:lookupc> bash ${pages}/bash
        COMMAND sh -c ${print} $<TARGET_FILE:lookupc> zsh ${pages}/_lookupc
        COMMAND sh -c ${print} $<TARGET_FILE:lookupc> fish ${pages}/lookupc.fish
        DEPENDS lookupc
        COMMENT "Printing man pages and completion"
        VERBATIM)
    add_custom_target(lookupc_pages ALL DEPENDS ${pages}/bash)
    install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${pages}/bash RENAME lookupc DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${pages}/_lookupc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${pages}/lookupc.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lookupc)
set(CPACK_PACKAGE_CONTACT "The lookupc developers <lookupc@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "code generator for layers of neural networks made of table lookups")
set(CPACK_PACKAGE_DESCRIPTION "lookupc reads a short model file and emits C for a LookupFFN layer
or a transformer, without heap, libraries or static state. It packs weights
for that C, verifies it against a float64 reference and times it.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gcc)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
include(CPack)
