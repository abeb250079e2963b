# Optional tools that make builds faster: ccache as compiler launcher, lld as linker.

option(INFERNODE_USE_CCACHE "Compile through ccache when it is installed" ON)
option(INFERNODE_USE_LLD "Link with lld when it is installed" ON)

if(INFERNODE_USE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(INFERNODE_CCACHE ccache)
  if(INFERNODE_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${INFERNODE_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${INFERNODE_CCACHE})
  endif()
endif()

if(INFERNODE_USE_LLD AND CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT CMAKE_CROSSCOMPILING)
  find_program(INFERNODE_LLD ld.lld)
  if(INFERNODE_LLD)
    target_link_options(infernode_options INTERFACE -fuse-ld=lld)
  endif()
endif()

# infernode_find_header(<variable> <header> <package>...): an include folder of an npm package, or of the system.
function(infernode_find_header variable header)
  foreach(package IN LISTS ARGN)
    list(APPEND hints ${INFERNODE_NODE_MODULES}/${package})
  endforeach()
  find_path(${variable} ${header} HINTS ${hints} PATH_SUFFIXES include)
endfunction()
