#!/bin/sh
# Builds the kernels, their checks and timings, and runs them on this machine's GPU.
# usage: bench/cuda/run.sh [problems of each family] [seed] [family]; NVCC and BUILD name the compiler and the folder to build in
set -e
cd "$(dirname "$0")/../.."
nvcc=${NVCC:-nvcc}
build=${BUILD:-build/cuda-bench}
mkdir -p "$build"
flags="-std=c++17 -O3 --expt-relaxed-constexpr -I. -cubin"
for f in providers/cuda/kernels/*.cu providers/cuda/kernels/channelwise/*.cu bench/cuda/*.cu; do
  case $f in *.sm90.cu) arch=90a ;; *) arch=90 ;; esac
  echo "$nvcc $flags -gencode=arch=compute_$arch,code=sm_$arch -o $build/$(basename "$f" .cu).cubin $f"
done >"$build/jobs"
for f in bench/cuda/*.cpp providers/cuda/kernels/*.cpp providers/cuda/kernels/products/*.cpp \
  providers/cuda/kernels/channelwise/*.cpp src-native/base/error.cpp; do
  echo "${CXX:-g++} -std=c++20 -O1 -I. -Isrc-native -c -o $build/$(echo "$f" | tr / _).o $f"
done >>"$build/jobs"
tr '\n' '\0' <"$build/jobs" | xargs -0 -n 1 -P "$(nproc)" sh -c
${CXX:-g++} -o "$build/kernels" "$build"/*.o -ldl
exec "$build/kernels" "$build" "$@"
