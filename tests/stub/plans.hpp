// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the stub driver writes into the folder STUB_PLANS: each program once as <digest>.cl, whose first line holds its options, and a line for each launch that
// differs from those before in <profile>.launches: program, kernel, local size, global size, arguments, and the label STUB_LABEL. With STUB_COMPILER, a C
// compiler whose preprocessor is run, a kernel has the parameters that its preprocessed text says, and arguments must be theirs; without it their number is
// guessed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace stub {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

class Plans {
 public:
  static Plans& instance() {
    static auto* one = new Plans;
    return *one;
  }
  bool wanted() const { return !folder_.empty(); }

  /// Writes a program and returns its digest.
  std::string program(const std::string& options, const std::string& source) {
    const std::string all = "// options: " + options + "\n" + source;
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char c : all) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(hash));
    std::lock_guard lock(mutex_);
    if (programs_.insert(digest).second) write_whole(path(digest, ".cl"), all);
    return digest;
  }

  void launch(const std::string& digest, const std::string& kernel, const std::string& local, const std::string& global, const std::string& arguments) {
    std::lock_guard lock(mutex_);
    std::string line = digest + "\t" + kernel + "\t" + local + "\t" + global + "\t" + arguments;
    const std::string label = variable("STUB_LABEL");
    // Calls whose times are estimated (scripts/gpu-cost --calls) have all of their launches.
    if (!launches_.insert(label.starts_with("call/") ? line + label : line).second) return;
    launches_file_ << line << "\t" << label << std::endl;
  }

  /// Types of a kernel's parameters, as the preprocessed text has them; false if there is no preprocessor or no such kernel.
  bool parameters(const std::string& digest, const std::string& kernel, std::vector<std::string>& types) {
    std::lock_guard lock(mutex_);
    if (compiler_.empty()) return false;
    const std::string kept = path(digest, ".parameters");
    std::ifstream before(kept);
    std::string line;
    if (!before && !write_parameters(digest, kept)) return false;
    std::ifstream file(kept);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string field;
      std::getline(fields, field, '\t');
      if (field != kernel) continue;
      while (std::getline(fields, field, '\t')) types.push_back(field);
      return true;
    }
    return false;
  }

 private:
  std::string path(const std::string& digest, const char* suffix) const { return folder_ + "/" + digest + suffix; }

  /// Other processes see all of a file or none.
  static void write_whole(const std::string& path, const std::string& text) {
    const std::string part = path + "." + std::to_string(getpid());
    std::ofstream(part) << text;
    std::rename(part.c_str(), path.c_str());
  }

  /// One line for each kernel: its name and the types of its parameters without their names.
  bool write_parameters(const std::string& digest, const std::string& to) const {
    const std::string command = compiler_ + " -E -P -w -undef -x c -D__OPENCL_VERSION__=120 -D__OPENCL_C_VERSION__=120 -Dcl_khr_fp64 -D__ENDIAN_LITTLE__=1 '" +
                                path(digest, ".cl") + "'";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return false;
    std::string text;
    char part[1 << 16];
    for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
    if (pclose(pipe) != 0) {
      std::cerr << "stub driver: STUB_COMPILER must preprocess, got status of failure from: " << command << ": arguments are not checked\n";
      return false;
    }
    std::ostringstream file;
    for (std::size_t at = 0; (at = text.find("__kernel ", at)) != std::string::npos;) {
      at = text.find(" void ", at);
      if (at == std::string::npos) break;
      const std::size_t open = text.find('(', at), close = text.find(')', open);
      file << text.substr(at + 6, open - at - 6);
      std::istringstream list(text.substr(open + 1, close - open - 1));
      for (std::string parameter; std::getline(list, parameter, ',');) {
        std::replace(parameter.begin(), parameter.end(), '\n', ' ');
        parameter.erase(0, parameter.find_first_not_of(' '));
        parameter.erase(parameter.find_last_not_of(' ') + 1);
        std::size_t name = parameter.size();
        while (name > 0 && (std::isalnum(static_cast<unsigned char>(parameter[name - 1])) || parameter[name - 1] == '_')) --name;
        std::string type = parameter.substr(0, name);
        type.erase(type.find_last_not_of(' ') + 1);
        file << "\t" << type;
      }
      file << "\n";
    }
    write_whole(to, file.str());
    return true;
  }

  std::string profile() const {
    const std::string path = variable("STUB_PROFILE");
    return path.empty() ? "cpu" : path.substr(path.rfind('/') + 1);
  }

  std::string folder_ = variable("STUB_PLANS"), compiler_ = variable("STUB_COMPILER");
  std::ofstream launches_file_{folder_.empty() ? std::string() : folder_ + "/" + profile() + ".launches"};
  std::mutex mutex_;
  std::set<std::string> programs_, launches_;
};

/// Bytes of a type of OpenCL C without pointers; 0 for a struct.
inline std::size_t bytes_of(std::string type) {
  if (type.rfind("const ", 0) == 0) type = type.substr(6);
  std::size_t digits = type.find_first_of("0123456789");
  const std::size_t lanes = digits == std::string::npos ? 1 : std::strtoull(type.c_str() + digits, nullptr, 10);
  type = type.substr(0, digits);
  const std::size_t each = type == "char" || type == "uchar"                       ? 1
                           : type == "short" || type == "ushort" || type == "half" ? 2
                           : type == "int" || type == "uint" || type == "float"    ? 4
                           : type == "long" || type == "ulong" || type == "double" ? 8
                                                                                   : 0;
  return each * (lanes == 3 ? 4 : lanes);
}

}  // namespace stub
