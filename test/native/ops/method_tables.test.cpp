// docs/kernels.md has tables of the methods that there are.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "generated_table.h"
#include "ops/attention/methods/method.h"
#include "ops/conv/methods/method.h"
#include "ops/matmul/methods/method.h"

namespace infernode::ops {
namespace {

/// A row for each method, in the order of the list.
class Table {
 public:
  explicit Table(const std::string& of) : rows_(cat("| ", of, " | what it does |\n| --- | --- |\n")) {}
  void add(const std::string& name, const std::string& text) {
    CHECK_MESSAGE(names_.insert(name).second, "a second method ", name);
    CHECK_MESSAGE(!text.empty(), name, " does not say what it does");
    rows_ += cat("| `", name, "` | ", text, " |\n");
  }
  void check(const std::string& name) const { test::check_table("kernels.md", name, rows_, "test_ops"); }

 private:
  std::string rows_;
  std::set<std::string> names_;
};

TEST_CASE("docs/kernels.md has a row for each method, and for no other") {
  Table conv("method of convolution"), products("method of products"), attention("method of attention");
  for (const ConvMethod& method : ConvMethods::all()) conv.add(method.name, method.text);
  for (const ProductMethod& method : ProductMethods::all()) products.add(method.name, method.text);
  for (const AttentionMethod* const method : attention_methods()) attention.add(method->name, method->text);
  conv.check("methods of convolution");
  products.check("methods of products");
  attention.check("methods of attention");
}

}  // namespace
}  // namespace infernode::ops
