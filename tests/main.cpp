// Catch2 brings its own main in version 3; in 2.13 it is generated here.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "catch.hpp"
