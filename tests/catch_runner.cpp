// Catch2 itself, compiled once for all tests: version 2.13 is made of its header where this is defined.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "catch.hpp"

int run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }
