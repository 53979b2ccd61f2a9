// The program behind make map, quiz, hint, reset, reveal and doctor.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "harness/usage_error.hpp"
#include "workbook/commands.hpp"
#include "workbook/files.hpp"
#include "workbook/progress.hpp"
#include "workbook/quiz.hpp"
#include "workbook/style.hpp"

namespace softmax::workbook {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

int ask_quiz(const std::filesystem::path& root, const std::string& number,
             const std::optional<std::string>& answers, const std::string& gpu) {
  const stage_folder s = find_stage(root, number);
  const gpu_facts* facts = find_gpu(gpu);
  if (!facts) {
    std::string known;
    for (const gpu_facts& g : gpu_table()) known += (known.empty() ? "" : ", ") + g.key;
    throw usage_error(fmt::format("--gpu {} is not known: use one of {}.", gpu, known));
  }
  const std::vector<question> questions = read_quiz(root / s.folder / "quiz.toml");
  // No SA_RESTART: a read that waits for the learner ends at Ctrl-C.
  struct sigaction stop {};
  stop.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &stop, nullptr);
  std::istringstream given;
  if (answers) {
    std::string lines = *answers;
    std::replace(lines.begin(), lines.end(), ',', '\n');
    given.str(lines);
  }
  std::istream& in = answers ? static_cast<std::istream&>(given) : std::cin;
  std::cout << bold(fmt::format("Quiz, stage {}: {} questions", s.number, questions.size())) << "\n";
  const quiz_result r = hold_quiz(questions, *facts, in, std::cout, !answers && isatty(STDIN_FILENO),
                                  [] { return interrupted != 0; });
  if (interrupted) {
    std::cout << "\nInterrupted: nothing was recorded.\n" << std::flush;
    return 130;
  }
  if (r.complete()) {
    progress done(root);
    std::istringstream before(done.get("quiz " + s.number));
    int best = -1;
    before >> best;
    if (r.correct >= best) done.set("quiz " + s.number, fmt::format("{} / {}", r.correct, r.total));
    done.save();
  } else {
    std::cout << fmt::format("\nThe answers ended after {} of {} questions: nothing was recorded.\n", r.asked,
                             r.total);
  }
  std::cout << fmt::format("\n{} / {} correct\n", r.correct, r.total);
  if (r.complete()) {
    const step next = next_step(root, progress(root));
    std::cout << "next: "
              << bold(r.correct < r.total    ? fmt::format("make quiz-{} again", s.number)
                      : next.command.empty() ? "make map: all is done"
                                             : next.command)
              << "\n";
  }
  std::cout << std::flush;
  if (!std::cout)
    throw usage_error("The result could not be written to standard output: check the pipe or the disk.");
  return r.correct == r.total ? 0 : 1;
}

}  // namespace softmax::workbook

int main(int argc, char** argv) {
  using namespace softmax;
  using namespace softmax::workbook;
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Softmax Workbook: exercises, hints, quizzes, and how far you have come.");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done (quiz: all correct), 1 quiz with a wrong or missing answer,\n"
      "2 the command or a file is wrong, 130 interrupted.");
  std::string number, file, gpu = "h200", answers;
  app.add_subcommand("map", "the stages, what is done, and the next command");
  app.add_subcommand("doctor", "what this machine has, and what a lack limits");
  const auto with_stage = [&](const char* name, const char* what) {
    CLI::App* c = app.add_subcommand(name, what);
    c->add_option("stage", number, "number of the stage, such as 03")->required();
    return c;
  };
  with_stage("start", "make the file of an exercise, if it is missing")
      ->add_option("--file", file, "elsewhere");
  with_stage("reset", "the skeleton again; your work is kept as a copy");
  with_stage("hint", "a hint for the last diagnosis; again for more");
  with_stage("reveal", "the solution");
  CLI::App* quiz = with_stage("quiz", "questions, a line of answer each");
  const CLI::Option* given = quiz->add_option("--answers", answers, "a,b,12 in place of standard input");
  quiz->add_option("--gpu", gpu, "the GPU that questions are about: h200, a100, rtx4090, mi250x, mi300x");
  const auto complain_of = [](const std::string& sentence) {
    std::fputs(("workbook: " + sentence + "\n").c_str(), stderr);
    return 2;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::string what = e.what();
    if (argc < 2) what = "A command is missing";
    return complain_of(what + ": see --help.");
  }
  try {
    const std::filesystem::path root = workbook_root();
    const std::string command = app.get_subcommands().at(0)->get_name();
    if (command == "map") return show_map(root);
    if (command == "doctor") return show_doctor(root);
    if (command == "start") return start_exercise(root, number, file);
    if (command == "reset") return reset_exercise(root, number);
    if (command == "hint") return show_hint(root, number);
    if (command == "reveal") return reveal_solution(root, number);
    return ask_quiz(root, number, given->count() > 0 ? std::optional(answers) : std::nullopt, gpu);
  } catch (const std::exception& problem) {
    return complain_of(problem.what());
  }
}
