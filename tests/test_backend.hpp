#pragma once
#include "harness/backend.hpp"

/// The backend under test, named by the environment variable SOFTMAX_TEST_BACKEND ("sim" unless set).
softmax::backend& test_machine();
/// The device it opened.
const simt::device& test_device();
