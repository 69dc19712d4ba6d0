# What Debian wants of a package beside the installed files: a change log in its own form; it and man pages compressed.
file(GLOB roots ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_TEMPORARY_DIRECTORY}/*)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH in the environment sets it
foreach(root ${roots})
    set(doc ${root}/usr/share/doc/lookupc)
    if(NOT EXISTS ${doc}/CHANGELOG.md)
        continue()
    endif()
    file(WRITE ${doc}/changelog "lookupc (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    file(GLOB plain ${root}/usr/share/man/man1/*.1 ${doc}/changelog)
    execute_process(COMMAND gzip -9n ${plain} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
