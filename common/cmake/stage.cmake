# softmax_add_stage(<folder> [TUNABLE] [BUILDS_ON <folder>]): declares the program stage-NN, from stages/<folder>/kernel.cuh and stage.hpp.
# The include path selects the stage; file names and symbols are the same in all of them.
# TUNABLE: the launcher takes a launch_plan. BUILDS_ON: the stage to compare the kernel with, where it is not the one before;
# read by tests/chapters_test.py.

# softmax_add_stage_backend(<target> <kernel_dir> <backend> <objects> [<definitions>]): compiles the kernel.cuh of that folder
# as a stage for one backend, and leaves the object file in the variable <objects>.
function(softmax_add_stage_backend target kernel_dir backend objects)
  softmax_add_backend_object(${target} ${CMAKE_SOURCE_DIR}/common/harness/stage_backend.cpp ${kernel_dir} ${backend} object ${ARGN})
  set(${objects} ${object} PARENT_SCOPE)
endfunction()

# softmax_add_backend_object(<target> <source> <include_dir> <backend> <objects> [<definitions>]): the same for any source.
function(softmax_add_backend_object target source kernel_dir backend objects)
  set(definitions ${ARGN})
  set(include_dirs ${CMAKE_SOURCE_DIR}/common ${kernel_dir})
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
    get_filename_component(name ${source} NAME_WE)
    file(RELATIVE_PATH there ${CMAKE_SOURCE_DIR}/common ${source})
    set(wrapper ${CMAKE_BINARY_DIR}/generated/${name}.cu)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${there}\"\n")
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
      softmax_add_stage_backend(stage-${number}-${backend} ${CMAKE_SOURCE_DIR}/stages/${folder} ${backend} objects
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
  add_executable(stage-${number} $<TARGET_OBJECTS:softmax_stage_main>)
  target_link_libraries(stage-${number} PRIVATE stage-${number}-all softmax_progress softmax_host)
  set_property(GLOBAL APPEND PROPERTY SOFTMAX_STAGES ${folder})
  softmax_add_exercise(${folder})
endfunction()

# softmax_add_exercise(<folder> [PROGRAM <name>] [FILE <exercise.cuh>]): declares the program exercise-NN, the stage
# compiled from the learner's file in place of its kernel. Never part of the default target: a learner's file may be
# broken. The file is made from the kernel when it is missing.
function(softmax_add_exercise folder)
  cmake_parse_arguments(exercise "" "PROGRAM;FILE" "" ${ARGN})
  string(SUBSTRING ${folder} 0 2 number)
  set(program exercise-${number})
  if(exercise_PROGRAM)
    set(program ${exercise_PROGRAM})
  endif()
  set(file ${CMAKE_SOURCE_DIR}/stages/${folder}/exercise.cuh)
  if(exercise_FILE)
    set(file ${exercise_FILE})
  endif()
  set(kernel_dir ${CMAKE_BINARY_DIR}/generated/${program})
  file(CONFIGURE OUTPUT ${kernel_dir}/kernel.cuh CONTENT "#include \"${file}\"\n")
  # No output is declared, or a clean build would delete what the learner wrote.
  add_custom_target(${program}-file COMMAND workbook start ${number} --file ${file} VERBATIM)
  set(definitions)
  get_property(tunable GLOBAL PROPERTY SOFTMAX_TUNABLE_STAGES)
  if(folder IN_LIST tunable)
    set(definitions SOFTMAX_STAGE_TUNABLE)
  endif()
  add_executable(${program} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:softmax_exercise_main>
                 $<TARGET_OBJECTS:stage-${number}-info> ${CMAKE_SOURCE_DIR}/common/workbook/this_exercise.cpp)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/stages/${folder})
  target_link_libraries(${program} PRIVATE softmax_workbook CLI11::CLI11 softmax_host)
  foreach(backend cuda hip sim)
    string(TOUPPER ${backend} upper)
    if(backend STREQUAL "sim" OR SOFTMAX_WITH_${upper})
      softmax_add_stage_backend(${program}-${backend} ${kernel_dir} ${backend} objects ${definitions})
      set_target_properties(${program}-${backend} PROPERTIES EXCLUDE_FROM_ALL ON)
      add_dependencies(${program}-${backend} ${program}-file)
      add_dependencies(${program} ${program}-${backend})
      target_sources(${program} PRIVATE ${objects})
      if(NOT backend STREQUAL "hip")
        # A skeleton has not used everything yet.
        target_compile_options(${program}-${backend} PRIVATE
          $<$<COMPILE_LANGUAGE:CXX>:-Wno-error -Wno-unused -Wno-unused-parameter -Wno-maybe-uninitialized -Wno-uninitialized>)
      endif()
    endif()
  endforeach()
  # The learner's formulas, compiled as a kernel file is.
  add_library(${program}-prediction OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/common/workbook/exercise_prediction.cpp)
  target_include_directories(${program}-prediction PRIVATE ${CMAKE_SOURCE_DIR}/common ${kernel_dir})
  target_link_libraries(${program}-prediction PRIVATE softmax::sim)
  add_dependencies(${program}-prediction ${program}-file)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:${program}-prediction>)
  if(SOFTMAX_WITH_CUDA)
    target_link_libraries(${program} PRIVATE CUDA::cudart_static)
  endif()
  if(SOFTMAX_WITH_HIP)
    target_link_libraries(${program} PRIVATE ${SOFTMAX_HIP_RUNTIME})
  endif()
endfunction()
