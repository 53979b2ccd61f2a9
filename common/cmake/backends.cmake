# Which machines this build is for. Defines the INTERFACE targets softmax::cuda and softmax::sim, which
# carry the definition and the flags that a kernel file needs for its backend.

# --- CUDA: nvcc is often installed but not on PATH.
add_library(softmax_cuda INTERFACE)
add_library(softmax::cuda ALIAS softmax_cuda)
set(SOFTMAX_WITH_CUDA OFF)
if(NOT SOFTMAX_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(SOFTMAX_NVCC nvcc HINTS $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin /opt/cuda/bin)
    # check_language() tries what this names, and believes what CMAKE_CUDA_COMPILER says.
    if(SOFTMAX_NVCC)
      set(ENV{CUDACXX} ${SOFTMAX_NVCC})
    endif()
    unset(CMAKE_CUDA_COMPILER CACHE)
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # An explicit list: "native" does not configure without a GPU. The last entry is also kept as PTX, for newer GPUs.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(SOFTMAX_WITH_CUDA ON)
    target_compile_definitions(softmax_cuda INTERFACE SIMT_BACKEND_CUDA)
    target_compile_options(softmax_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
                                                  -lineinfo>)
    if(SOFTMAX_PTXAS_REPORT)
      target_compile_options(softmax_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
    endif()
    target_link_libraries(softmax_cuda INTERFACE CUDA::cudart_static)
  elseif(SOFTMAX_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SOFTMAX_CUDA=ON, but nvcc was not found or cannot compile with this C++ compiler: set CUDA_PATH to the "
                        "toolkit, or -DCMAKE_CUDA_HOST_COMPILER to a g++ that it supports.")
  elseif(SOFTMAX_NVCC)
    message(STATUS "CUDA is left out, since ${SOFTMAX_NVCC} cannot compile with this C++ compiler: set CUDA_PATH to another "
                   "toolkit, or -DCMAKE_CUDA_HOST_COMPILER to a g++ that it supports.")
  endif()
endif()

# --- HIP: hipcc compiles the kernel files itself, as CMake's own HIP language does not configure with every package of
# ROCm; the rest of the program is built and linked by the ordinary compiler.
set(SOFTMAX_WITH_HIP OFF)
if(NOT SOFTMAX_HIP STREQUAL "OFF")
  set(SOFTMAX_HIP_ARCHITECTURES gfx90a CACHE STRING "AMD GPUs to compile for, as rocminfo names them")
  find_program(SOFTMAX_HIPCC hipcc HINTS $ENV{ROCM_PATH}/bin $ENV{HIP_PATH}/bin /opt/rocm/bin)
  find_library(SOFTMAX_HIP_RUNTIME amdhip64 HINTS $ENV{ROCM_PATH}/lib $ENV{HIP_PATH}/lib /opt/rocm/lib)
  if(SOFTMAX_HIPCC AND SOFTMAX_HIP_RUNTIME)
    set(SOFTMAX_WITH_HIP ON)
  elseif(SOFTMAX_HIP STREQUAL "ON")
    message(FATAL_ERROR "SOFTMAX_HIP=ON, but hipcc or libamdhip64 was not found: run make setup-hip, or set ROCM_PATH.")
  endif()
endif()

# --- The simulator: always. The sanitizer's hooks are compiled in and bound to ours; its runtime is never linked.
# Unrolled or vectorised loops, or a copy of what follows a branch for those that took it, would make one statement look like
# several, and split its requests; kernels with equal bodies, made one, would lose their lines; and a call that becomes a jump
# loses its own.
add_library(softmax_sim INTERFACE)
add_library(softmax::sim ALIAS softmax_sim)
target_compile_definitions(softmax_sim INTERFACE SIMT_BACKEND_SIM)
target_link_libraries(softmax_sim INTERFACE Eigen3::Eigen)
target_compile_options(softmax_sim INTERFACE -O2 -g -fstack-clash-protection -fno-optimize-sibling-calls -fsanitize=thread
                                             -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(softmax_sim INTERFACE -fno-unroll-loops -fno-vectorize -fno-slp-vectorize -fno-omit-frame-pointer
                                               "SHELL:-mllvm -tsan-instrument-func-entry-exit=0"
                                               "SHELL:-mllvm -tsan-instrument-read-before-write=1")
else()
  target_compile_options(softmax_sim INTERFACE -fno-unroll-loops -fno-tree-vectorize -fno-ipa-icf -fno-thread-jumps -fno-split-paths
                                               --param=tsan-instrument-func-entry-exit=0 -Wno-unknown-pragmas
                                               -Wno-maybe-uninitialized)  # without thread jumps, g++ sees paths that are none
endif()

# --- Warnings, for this project's own C++.
add_library(softmax_warnings INTERFACE)
target_compile_options(softmax_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers
                                                  $<$<BOOL:${SOFTMAX_WERROR}>:-Werror>>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Reports string concatenation in libstdc++ 12: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651
  target_compile_options(softmax_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# --- For everything that is not a kernel file: those are compiled for the simulator's own hooks.
add_library(softmax_host INTERFACE)
target_link_libraries(softmax_host INTERFACE softmax_warnings)
if(SOFTMAX_SANITIZE)
  target_compile_options(softmax_host INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# --- For code that handles options and texts: it runs for a moment, and g++ takes nearly twice the time for it at -O3.
set(softmax_brief $<$<CONFIG:Release>:-O1>)

message(STATUS "Backends: simulator ON, CUDA ${SOFTMAX_WITH_CUDA}, HIP ${SOFTMAX_WITH_HIP}")
