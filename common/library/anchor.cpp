// A static library that CMake archives needs a source of its own.
