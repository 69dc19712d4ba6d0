function(lookupc_import path)
    add_executable(lookupc::lookupc IMPORTED GLOBAL)
    set_target_properties(lookupc::lookupc PROPERTIES IMPORTED_LOCATION "${path}")
endfunction()
