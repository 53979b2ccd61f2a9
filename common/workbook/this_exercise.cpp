// Defines this_exercise(): the include path says which one.
#include <exercise.hpp>
