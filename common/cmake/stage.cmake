# softmax_add_stage(<folder> [TUNABLE] [BUILDS_ON <folder>]): declares the program stage-NN, from stages/<folder>/kernel.cuh and stage.hpp.
# The include path selects the stage; file names and symbols are the same in all of them.
# TUNABLE: the launcher takes a launch_plan. BUILDS_ON: the stage to compare the kernel with, where it is not the one before;
# read by tests/chapters_test.py.

# softmax_add_stage_backend(<target> <folder> <backend> <objects>): compiles the stage's kernels for one backend and
# leaves the object file in the variable <objects>.
function(softmax_add_stage_backend target folder backend objects)
  set(definitions ${ARGN})
  set(source ${CMAKE_SOURCE_DIR}/common/harness/stage_backend.cpp)
  set(include_dirs ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/stages/${folder})
  if(backend STREQUAL "hip")
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
    list(TRANSFORM SOFTMAX_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE architectures)
    list(TRANSFORM include_dirs PREPEND -I OUTPUT_VARIABLE includes)
    # One warp width where all architectures agree: gfx9 has 64 lanes, gfx10 and later have 32.
    set(wide ${SOFTMAX_HIP_ARCHITECTURES})
    set(narrow ${SOFTMAX_HIP_ARCHITECTURES})
    list(FILTER wide INCLUDE REGEX "^gfx9")
    list(FILTER narrow EXCLUDE REGEX "^gfx9")
    if(NOT narrow)
      list(APPEND definitions SIMT_HIP_WARP_SIZE=64)
    elseif(NOT wide)
      list(APPEND definitions SIMT_HIP_WARP_SIZE=32)
    endif()
    list(TRANSFORM definitions PREPEND -D OUTPUT_VARIABLE hip_definitions)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd ${SOFTMAX_HIPCC} -x hip -c -std=c++17 -O3 -fPIC ${architectures}
              ${includes} -DSIMT_BACKEND_HIP ${hip_definitions} -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -MD -MF ${object}.d
              ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "Building HIP object ${target}"
      VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_custom_target(${target} DEPENDS ${object})
    set(${objects} ${object} PARENT_SCOPE)
    return()
  endif()
  if(backend STREQUAL "cuda")
    # CMake picks the language by source file, and this one is C++ for the simulator.
    set(wrapper ${CMAKE_BINARY_DIR}/generated/stage_backend.cu)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"harness/stage_backend.cpp\"\n")
    set(source ${wrapper})
  endif()
  add_library(${target} OBJECT ${source})
  # Kernels need no more than C++17, and every nvcc since 11 has it.
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 17)
  target_include_directories(${target} PRIVATE ${include_dirs})
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_link_libraries(${target} PRIVATE softmax::${backend} softmax_warnings)
  set(${objects} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

function(softmax_add_stage folder)
  cmake_parse_arguments(stage "TUNABLE" "BUILDS_ON" "" ${ARGN})
  string(SUBSTRING ${folder} 0 2 number)
  set(stage_definitions)
  if(stage_TUNABLE)
    set(stage_definitions SOFTMAX_STAGE_TUNABLE)
    set_property(GLOBAL APPEND PROPERTY SOFTMAX_TUNABLE_STAGES ${folder})
  endif()
  # What the program and its tests have in common.
  add_library(stage-${number}-all INTERFACE)
  target_link_libraries(stage-${number}-all INTERFACE softmax_harness)
  foreach(backend cuda hip sim)
    string(TOUPPER ${backend} upper)
    if(backend STREQUAL "sim" OR SOFTMAX_WITH_${upper})
      softmax_add_stage_backend(stage-${number}-${backend} ${folder} ${backend} objects
                                ${stage_definitions})
      target_sources(stage-${number}-all INTERFACE ${objects})
      add_dependencies(stage-${number}-all stage-${number}-${backend})
    endif()
  endforeach()
  add_library(stage-${number}-info OBJECT ${CMAKE_SOURCE_DIR}/common/harness/this_stage.cpp)
  target_include_directories(stage-${number}-info PRIVATE ${CMAKE_SOURCE_DIR}/stages/${folder})
  target_link_libraries(stage-${number}-info PRIVATE softmax_harness softmax_host)
  target_sources(stage-${number}-all INTERFACE $<TARGET_OBJECTS:stage-${number}-info>)
  if(SOFTMAX_WITH_CUDA)
    target_link_libraries(stage-${number}-all INTERFACE CUDA::cudart_static)
  endif()
  if(SOFTMAX_WITH_HIP)
    target_link_libraries(stage-${number}-all INTERFACE ${SOFTMAX_HIP_RUNTIME})
  endif()
  add_executable(stage-${number} ${CMAKE_SOURCE_DIR}/common/harness/main.cpp)
  target_link_libraries(stage-${number} PRIVATE stage-${number}-all softmax_host)
  set_property(GLOBAL APPEND PROPERTY SOFTMAX_STAGES ${folder})
endfunction()
