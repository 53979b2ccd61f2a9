// questions NN: the quiz of a stage as JSON, with keys and reasons, for the book. Built apart from the
// program workbook, so that the book needs little of it.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "workbook/files.hpp"
#include "workbook/quiz.hpp"

int main(int argc, char** argv) {
  using namespace softmax::workbook;
  try {
    if (argc != 2) throw std::runtime_error("one argument is needed, the number of a stage, such as 03.");
    const std::filesystem::path root = workbook_root();
    const stage_folder stage = find_stage(root, argv[1]);
    const std::string text = quiz_json(read_quiz(root / stage.folder / "quiz.toml"), stage.number) + "\n";
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      throw std::runtime_error("standard output could not be written: check the pipe or the disk.");
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "questions: %s\n", problem.what());
    return 2;
  }
}
