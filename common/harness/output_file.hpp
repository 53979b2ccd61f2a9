#pragma once
/// @file
/// Files that appear under their name only when they are complete.
#include <functional>
#include <ostream>
#include <string>

namespace softmax {

/// Fails where write_whole() would fail at once, before any work is done. `option` is what the user wrote
/// before the path. @throws usage_error
void check_writable(const std::string& path, const std::string& option = "--output");

/// Writes a file with what `fill` puts into the stream. Where the path is a link, its target is written and
/// the link stays. @throws usage_error if that fails; then nothing is left behind
void write_whole(const std::string& path, const std::string& option,
                 const std::function<void(std::ostream&)>& fill);

}  // namespace softmax
