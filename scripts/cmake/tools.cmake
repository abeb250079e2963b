# Optional tools that make builds faster: ccache as compiler launcher, lld as linker.

option(INFERNODE_USE_CCACHE "Compile through ccache when it is installed" ON)
option(INFERNODE_USE_LLD "Link with lld when it is installed" ON)

if(INFERNODE_USE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(INFERNODE_CCACHE ccache)
  if(INFERNODE_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${INFERNODE_CCACHE})
    # Without this ccache takes nothing that uses precompiled headers; no file's text depends on the time.
    set(launch ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launch} ${INFERNODE_CCACHE})
    # See precompiled.cmake. A namespace of their own keeps these from what was found by preprocessed text.
    set(INFERNODE_HEADERS_LAUNCHER ${launch} CCACHE_DEPEND=true CCACHE_NAMESPACE=headers ${INFERNODE_CCACHE})
  endif()
endif()

if(INFERNODE_USE_LLD AND CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT CMAKE_CROSSCOMPILING)
  find_program(INFERNODE_LLD ld.lld)
  if(INFERNODE_LLD)
    target_link_options(infernode_options INTERFACE -fuse-ld=lld)
  endif()
endif()

# Where scripts/setup.mjs keeps what it fetches (scripts/lib/cache.mjs).
set(INFERNODE_CACHES "$ENV{INFERNODE_CACHE}" "$ENV{XDG_CACHE_HOME}/infernode" "$ENV{HOME}/.cache/infernode")

# Wuffs is one C file, of which src-native/ops/image/wuffs.cpp compiles what it needs.
set(wuffs_hints ${INFERNODE_CACHES})
list(TRANSFORM wuffs_hints APPEND /pywuffs-2.0.1/pywuffs-2.0.1/libs/wuffs/release/c)
find_path(WUFFS_INCLUDE_DIR wuffs-unsupported-snapshot.c HINTS ${wuffs_hints})
if(NOT WUFFS_INCLUDE_DIR)
  message(FATAL_ERROR "Wuffs (wuffs-unsupported-snapshot.c) not found: run  node scripts/setup.mjs  or pass -DWUFFS_INCLUDE_DIR=")
endif()

# infernode_find_header(<variable> <header> <package>...): an include folder of an npm package, or of the system.
function(infernode_find_header variable header)
  foreach(package IN LISTS ARGN)
    list(APPEND hints ${INFERNODE_NODE_MODULES}/${package})
  endforeach()
  find_path(${variable} ${header} HINTS ${hints} PATH_SUFFIXES include)
endfunction()
