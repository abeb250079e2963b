#include "runtime/tuning/choice_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>

#include "base/content_hash.h"
#include "base/mapped_file.h"
#include "base/path.h"

namespace infernode::runtime {

namespace {

constexpr std::string_view kFirstLine = "infernode methods 1";

std::string sum_of(std::string_view text) {
  return content_hash(std::as_bytes(std::span(text.data(), text.size()))).to_string();
}

/// The text up to the end of the line, which `text` then lacks. Throws where the line does not end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) fail(ErrorCode::Io, "it is damaged");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

ChoiceFile::ChoiceFile(std::string path, std::string facts, const Logger& logger)
    : path_(std::move(path)), facts_(std::move(facts)), logger_(logger) {
  std::ifstream file(to_path(path_), std::ios::binary);
  if (!file) return;
  try {
    read(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const Error& error) {
    read_.clear();
    logger_.write(LogSeverity::Warning, "tuning", "the methods in ", path_, " are not used: ", error.message());
  }
}

void ChoiceFile::read(std::string_view text) {
  if (take_line(text) != kFirstLine) fail(ErrorCode::Io, "it is no file of measured methods");
  if (const std::string_view sum = take_line(text); sum != sum_of(text)) fail(ErrorCode::Io, "it is damaged");
  if (const std::string_view facts = take_line(text); facts != facts_)
    fail(ErrorCode::Io, cat("they were measured with ", facts));
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) fail(ErrorCode::Io, "it is damaged");
    read_.emplace(line.substr(0, space), line.substr(space + 1));
  }
}

std::string_view ChoiceFile::find(std::string_view key) const {
  const auto found = read_.find(key);
  return found == read_.end() ? std::string_view{} : std::string_view(found->second);
}

void ChoiceFile::keep(std::string_view key, std::string_view method) {
  kept_.insert_or_assign(std::string(key), std::string(method));
}

std::string ChoiceFile::text() const {
  std::string body = facts_ + "\n";
  for (const auto& [key, method] : kept_) body += cat(key, " ", method, "\n");
  return cat(kFirstLine, "\n", sum_of(body), "\n", body);
}

void ChoiceFile::save() const {
  if (kept_ == read_) return;
  try {
    std::error_code ignored;
    std::filesystem::create_directories(to_path(path_).parent_path(), ignored);
    const std::string all = text();
    write_file(path_, std::as_bytes(std::span(all)));
    logger_.write(LogSeverity::Info, "tuning", "measured methods were written to ", path_);
  } catch (const Error& error) {
    logger_.write(LogSeverity::Warning, "tuning", "measured methods cannot be written: ", error.message());
  }
}

}  // namespace infernode::runtime
