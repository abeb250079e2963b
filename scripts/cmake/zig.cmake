# The toolchain of `npm run prebuild`: -DINFERNODE_ZIG_TOOLS=<folder of scripts/lib/zig.mjs> -DINFERNODE_ZIG_TARGET=<target>.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INFERNODE_ZIG_TOOLS INFERNODE_ZIG_TARGET)

if(INFERNODE_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  # Zig brings its own libraries, and CMake looks for Xcode's.
  set(CMAKE_OSX_SYSROOT "" CACHE STRING "" FORCE)
  set(CMAKE_OSX_ARCHITECTURES "" CACHE STRING "" FORCE)
  set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "" FORCE)
  set(CMAKE_INSTALL_NAME_TOOL true)
elseif(INFERNODE_ZIG_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${INFERNODE_ZIG_TARGET}")

set(CMAKE_C_COMPILER ${INFERNODE_ZIG_TOOLS}/clang)
set(CMAKE_CXX_COMPILER ${INFERNODE_ZIG_TOOLS}/clang++)
set(CMAKE_AR ${INFERNODE_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${INFERNODE_ZIG_TOOLS}/ranlib)

# Trials that CMake compiles are not linked: what Zig links first is its libraries, for minutes.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
