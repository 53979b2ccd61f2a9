# The libraries that this project stands on. All are in Debian and Ubuntu.
find_package(Threads REQUIRED)
set(Boost_USE_STATIC_LIBS ON)  # so that a program built here runs on a machine without Boost
set(softmax_missing "Run 'make setup', or install what README.md lists under Requirements.")
find_package(Boost 1.71 QUIET COMPONENTS context)
find_package(Eigen3 3.3 QUIET NO_MODULE)
find_package(fmt QUIET)
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
# Its headers alone: Debian's package file would link a shared library.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h)
if(TOMLPLUSPLUS_INCLUDE_DIR)
  set(tomlplusplus_FOUND ON)
  add_library(softmax_toml INTERFACE)
  target_include_directories(softmax_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})
endif()
foreach(package Boost Eigen3 fmt CLI11 nlohmann_json tomlplusplus)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "The library ${package} was not found. ${softmax_missing}")
  endif()
endforeach()

# From addresses to source lines. GCC ships it beside its own headers, where other compilers do not look.
execute_process(COMMAND gcc -print-file-name=include OUTPUT_VARIABLE gcc_include OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND gcc -print-file-name=libbacktrace.a OUTPUT_VARIABLE gcc_backtrace OUTPUT_STRIP_TRAILING_WHITESPACE)
get_filename_component(gcc_backtrace_dir "${gcc_backtrace}" DIRECTORY)
find_path(BACKTRACE_INCLUDE_DIR backtrace.h HINTS ${gcc_include})
find_library(BACKTRACE_LIBRARY backtrace HINTS ${gcc_backtrace_dir})
if(NOT BACKTRACE_INCLUDE_DIR OR NOT BACKTRACE_LIBRARY)
  message(FATAL_ERROR "libbacktrace was not found; Debian and Ubuntu ship it with gcc. ${softmax_missing}")
endif()
# By itself: the directory it comes from also holds gcc's own intrinsics.
configure_file(${BACKTRACE_INCLUDE_DIR}/backtrace.h ${CMAKE_BINARY_DIR}/generated/backtrace/backtrace.h COPYONLY)
