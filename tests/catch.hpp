#pragma once
// Catch2 under one name: version 3 has split headers, version 2.13 (Debian 12) a single one.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

/// What main() is to return.
int run_tests(int argc, char** argv);
