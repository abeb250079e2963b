# infernode_addon: the Node-API addon, infernode.node, from src-native/napi/*.cpp. cmake-js passes the headers in
# CMAKE_JS_INC; otherwise they are taken from node_modules, so a plain CMake build makes the same file.

file(GLOB napi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src-native/napi/*.cpp)
if(NOT INFERNODE_BUILD_ADDON OR NOT napi_sources)
  return()
endif()

set(node_includes ${CMAKE_JS_INC})
if(NOT node_includes)
  infernode_find_header(NODE_API_INCLUDE_DIR node_api.h node-api-headers)
  if(NODE_API_INCLUDE_DIR)
    list(APPEND node_includes ${NODE_API_INCLUDE_DIR})
  else()
    message(STATUS "node-api-headers not found: the addon is not built (run npm ci)")
    return()
  endif()
endif()
find_path(NODE_ADDON_API_INCLUDE_DIR napi.h HINTS ${INFERNODE_NODE_MODULES}/node-addon-api)
if(NODE_ADDON_API_INCLUDE_DIR)
  list(APPEND node_includes ${NODE_ADDON_API_INCLUDE_DIR})
endif()

if(NOT CMAKE_LIBRARY_OUTPUT_DIRECTORY)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
if(WIN32)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
endif()
if(WIN32 AND NOT MSVC)
  include(scripts/cmake/node_api_imports.cmake)
  set_source_files_properties(${node_api_imports} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # they are C++, this is C
  list(APPEND napi_sources ${node_api_imports})
endif()

add_library(infernode_addon SHARED ${napi_sources} ${CMAKE_JS_SRC})
set_target_properties(infernode_addon PROPERTIES PREFIX "" OUTPUT_NAME infernode SUFFIX .node)
target_include_directories(infernode_addon SYSTEM PRIVATE ${node_includes})
# No C++ exception may pass through JavaScript's frames, std::bad_alloc of an object that wraps ours included: the second
# definition converts them all. Electron forbids external array buffers: with the third none can be made. Where a worker
# is being terminated, exceptions cannot be thrown: with the fourth that is no reason to end the process.
target_compile_definitions(infernode_addon PRIVATE NAPI_VERSION=8 NODE_ADDON_API_CPP_EXCEPTIONS_ALL
                           NODE_API_NO_EXTERNAL_BUFFERS_ALLOWED
                           NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS INFERNODE_VERSION="${PROJECT_VERSION}")
set(ladder_top infernode_options)
foreach(folder IN LISTS INFERNODE_LADDER)
  if(TARGET infernode_${folder})
    set(ladder_top infernode_${folder})
  endif()
endforeach()
target_link_libraries(infernode_addon PRIVATE ${INFERNODE_PROVIDERS} ${ladder_top} ${CMAKE_JS_LIB})
infernode_use_headers(infernode_addon engine)
if(INFERNODE_ZIG_TARGET)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src-native/napi/exception_reserve.cpp PROPERTIES
                              COMPILE_DEFINITIONS INFERNODE_LLVM_RUNTIME SKIP_PRECOMPILE_HEADERS ON)
endif()

if(APPLE)
  target_link_options(infernode_addon PRIVATE -Wl,-undefined,dynamic_lookup -Wl,-dead_strip)
elseif(NOT MSVC)
  if(NOT WIN32)
    # Two C++ runtimes meet in one process: only the two entry points may be visible.
    set(exports ${CMAKE_SOURCE_DIR}/scripts/cmake/addon.exports)
    target_link_options(infernode_addon PRIVATE -Wl,--version-script=${exports})
    set_property(TARGET infernode_addon APPEND PROPERTY LINK_DEPENDS ${exports})
  endif()
  target_link_options(infernode_addon PRIVATE -Wl,--gc-sections)
  if(NOT INFERNODE_SANITIZE)
    target_link_options(infernode_addon PRIVATE -static-libstdc++ -static-libgcc)
    if(CMAKE_BUILD_TYPE STREQUAL Release)
      target_link_options(infernode_addon PRIVATE -s)
    endif()
  endif()
endif()
