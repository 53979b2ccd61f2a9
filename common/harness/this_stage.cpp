// Defines this_stage(): the include path says which one.
#include <stage.hpp>
