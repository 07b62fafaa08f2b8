// How --help looks and what a wrong command line is told. Shared by all commands through main.cc.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope::cli {

// --help in `width` columns: descriptions wrapped, no noise about checks and exclusions.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width);

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* app) const override;

 private:
  std::string entry(const std::string& name, const std::string& description) const;
  std::size_t width_;
};

// A check for options that take a whole number.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

// A check for options that name a file to write: no other option that a user forgot the file before.
CLI::Validator output_file();

// For options that take how long: 5, 5s, 500ms, 2m, 1h. The option gets seconds; it is for transform().
CLI::Validator duration(double least_s, double most_s);

// What was typed wrong, in one sentence with the nearest right word and where to read on.
std::string usage_sentence(const CLI::App& root, const CLI::ParseError& error);

}  // namespace stepscope::cli
