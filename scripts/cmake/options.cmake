# Options, and infernode_options: the compile settings that every target of the project shares.

# cmake-js defines CMAKE_JS_INC; without it the addon is built when node_modules holds the Node-API headers.
set(INFERNODE_NODE_MODULES "${CMAKE_SOURCE_DIR}/node_modules" CACHE PATH "Where the npm build dependencies are")
if(CMAKE_JS_INC)
  set(infernode_tests_default OFF)
else()
  set(infernode_tests_default ON)
endif()
option(INFERNODE_BUILD_TESTS "Build the native tests" ${infernode_tests_default})
option(INFERNODE_BUILD_ADDON "Build infernode.node when the Node-API headers are found" ON)
option(INFERNODE_WERROR "Treat warnings as errors" OFF)
option(INFERNODE_EMULATE_AMX "Let any CPU with AVX512-BF16 run the matrix unit's loops, slowly: for tests" OFF)
set(INFERNODE_SANITIZE "" CACHE STRING "Value of -fsanitize, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # a static library does not wait for those that it uses

# General code is not where time is spent (microkernels set their own flags): -O2 builds faster and smaller.
if(NOT MSVC)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

find_package(Threads REQUIRED)

add_library(infernode_options INTERFACE)
target_include_directories(infernode_options INTERFACE ${CMAKE_SOURCE_DIR}/src-native)
target_link_libraries(infernode_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(WIN32)  # windows.h then defines no min and max
  target_compile_definitions(infernode_options INTERFACE NOMINMAX WIN32_LEAN_AND_MEAN)
endif()
if(INFERNODE_EMULATE_AMX)
  target_compile_definitions(infernode_options INTERFACE INFERNODE_EMULATE_AMX)
endif()
if(MSVC)
  target_compile_options(infernode_options INTERFACE /W4 /utf-8 /EHsc /fp:precise /bigobj)
  if(INFERNODE_WERROR)
    target_compile_options(infernode_options INTERFACE /WX)
  endif()
else()
  # No contraction: the same expression gives the same bits on every compiler and target.
  target_compile_options(infernode_options INTERFACE -Wall -Wextra -ffp-contract=off -fno-math-errno
                         -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC 12 reports overlaps in std::string (GCC bug 105651) and unset members of std::optional that cannot be.
    target_compile_options(infernode_options INTERFACE $<$<CONFIG:Release>:-Wno-restrict$<SEMICOLON>-Wno-maybe-uninitialized>)
  endif()
  if(INFERNODE_WERROR)
    target_compile_options(infernode_options INTERFACE -Werror)
  endif()
  if(INFERNODE_SANITIZE)
    set(infernode_sanitize -fsanitize=${INFERNODE_SANITIZE} -fno-omit-frame-pointer)
    target_compile_options(infernode_options INTERFACE ${infernode_sanitize} -fno-sanitize-recover=all)
    target_link_options(infernode_options INTERFACE ${infernode_sanitize})
  endif()
endif()
