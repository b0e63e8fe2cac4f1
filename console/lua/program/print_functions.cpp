// Writes the registered functions: as JSON for scripts/lua-page, or as C++ for programs without Lua.
//   footplate-print-functions [--cpp]

#include <cstdio>
#include <string_view>

#include "console/lua/api/catalogue.h"

namespace footplate::lua {
namespace {

std::string_view word(Form form) {
  switch (form) {
    case Form::function:
      return "function";
    case Form::object:
      return "object";
    case Form::field:
      return "field";
    case Form::text:
      break;
  }
  return "text";
}

std::string as_json() {
  Json functions = Json::array();
  for (const Registration& registration : catalogue()) {
    const FunctionDoc& doc = registration.doc;
    functions.push_back({{"name", doc.name},
                         {"role", to_string(doc.role)},
                         {"form", word(registration.form)},
                         {"example", doc.example},
                         {"help", doc.help}});
  }
  return functions.dump(1) + "\n";
}

std::string literal(std::string_view text) {
  return "R\"~(" + std::string(text) + ")~\"";
}

std::string as_cpp() {
  std::string text =
      "// Written by footplate-print-functions.\n"
      "#include \"console/lua/reference/function_docs.h\"\n\n"
      "namespace footplate {\nnamespace {\n\n"
      "constexpr FunctionDoc kDocs[] = {\n";
  for (const FunctionDoc& doc : catalogue_docs())
    text += "    {" + literal(doc.name) + ", Role::" + std::string(to_string(doc.role)) + ", " +
            literal(doc.example) + ", " + literal(doc.help) + ", " + (doc.in_overview ? "true" : "false") +
            "},\n";
  return text +
         "};\n\n}  // namespace\n\n"
         "FunctionDocs compiled_function_docs() {\n  return kDocs;\n}\n\n}  // namespace footplate\n";
}

}  // namespace
}  // namespace footplate::lua

int main(int count, char** arguments) {
  const bool cpp = count == 2 && std::string_view(arguments[1]) == "--cpp";
  std::fputs((cpp ? footplate::lua::as_cpp() : footplate::lua::as_json()).c_str(), stdout);
  return 0;
}
