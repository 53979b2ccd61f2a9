#pragma once
/// @file
/// The folder of the workbook and its stages, and files that are written whole or not at all.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace softmax::workbook {

/// A stage as the folder tells it.
struct stage_folder {
  std::string number;  ///< "03"
  std::string folder;  ///< "stages/03_multi_row"
  std::string title;  ///< "multi_row"
};

/// The repository this program was built from, or SOFTMAX_WORKBOOK if that is set.
/// @throws usage_error if it is not there
std::filesystem::path workbook_root();
std::vector<stage_folder> find_stages(const std::filesystem::path& root);
/// Takes "3" and "03". @throws usage_error if there is no such stage
stage_folder find_stage(const std::filesystem::path& root, const std::string& number);

/// @throws usage_error with one sentence
std::string read_text(const std::filesystem::path& file);
/// Writes a file beside it and renames that, so that no reader and no interruption sees half of it.
/// @throws usage_error with one sentence
void write_text(const std::filesystem::path& file, const std::string& text);

/// Lines without their ends, be those of Unix or of Windows.
std::vector<std::string> lines_of(const std::string& text);
/// Without the white space at both ends.
std::string trimmed(const std::string& text);

}  // namespace softmax::workbook
