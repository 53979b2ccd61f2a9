#pragma once
/// @file
/// The subcommands of the program workbook. Each returns an exit code and throws usage_error for what a user
/// can mend.
#include <filesystem>
#include <optional>
#include <string>

namespace softmax::workbook {

int show_map(const std::filesystem::path& root);
int show_doctor(const std::filesystem::path& root);
/// Makes the learner's file if it is missing.
int start_exercise(const std::filesystem::path& root, const std::string& number, const std::string& file);
int reset_exercise(const std::filesystem::path& root, const std::string& number);
int show_hint(const std::filesystem::path& root, const std::string& number);
int reveal_solution(const std::filesystem::path& root, const std::string& number);
/// `answers`: "a,b,12" in place of standard input. Exit codes: 0 all correct, 1 not all, 130 interrupted.
int ask_quiz(const std::filesystem::path& root, const std::string& number,
             const std::optional<std::string>& answers, const std::string& gpu);

}  // namespace softmax::workbook
