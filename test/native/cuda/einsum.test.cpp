// Contractions of named dims.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("contractions of named dims") {
  const OnDouble undo;
  const auto check = [](const char* equation, const std::vector<tensor::Shape>& shapes) {
    std::string declared, names;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = cat("x", i);
      declared += cat(i == 0 ? "float" : ", float", shapes[i].to_string(), " ", name);
      names += cat(i == 0 ? "" : ", ", name);
      inputs.push_back(numbers(shapes[i], static_cast<unsigned>(i) + 1));
    }
    same_as_cpu(cat("(", declared, ") => (y) { y = Einsum<equation=\"", equation, "\">(", names, ") }"), inputs, 1e-4);
  };
  check("ij->ji", {{2, 3}});
  check("ijk->ik", {{2, 3, 4}});
  check("ii->i", {{3, 3}});
  check("ii", {{3, 3}});
  check("ij,jk->ik", {{2, 3}, {3, 4}});
  check("ij,jk->ki", {{2, 3}, {3, 4}});
  check("ij,kj->ik", {{2, 3}, {4, 3}});
  check("ji,jk->ik", {{3, 2}, {3, 4}});
  check("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}});
  check("bqhd,bkhd->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}});
  check("bhqk,bkhd->bqhd", {{2, 2, 3, 5}, {2, 5, 2, 4}});
  check("bhwc,hkc->bhwk", {{2, 3, 4, 5}, {3, 6, 5}});
  check("...ij,jk->...ik", {{2, 2, 3, 4}, {4, 5}});
  check("i,j->ij", {{3}, {4}});
  check("i,i->", {{5}, {5}});
  check("bi,bi->b", {{3, 5}, {3, 5}});
  check("ij,ij->ij", {{3, 5}, {3, 5}});
  check("bij,bj->bi", {{2, 3, 4}, {1, 4}});
  check("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}});
  check("abc,cd,b->ad", {{2, 3, 4}, {4, 5}, {3}});
}
