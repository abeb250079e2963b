#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string vectorizer(const std::string& attributes, const std::string& input = "int32[A]",
                       const std::string& output = "float[B]") {
  return "(" + input + " X) => (" + output + " Y) { Y = TfIdfVectorizer<" + attributes + ">(X) }";
}

const std::string kPool =
    ", ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6], "
    "pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7]";

TEST_CASE("TfIdfVectorizer counts n-grams with and without skips") {
  const Tensor x = i32({12}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  check_op(vectorizer("mode=\"TF\", min_gram_length=2, max_gram_length=2, max_skip_count=0" + kPool), 9, {x},
           {f32({7}, {0, 0, 0, 0, 1, 1, 1})});
  check_op(vectorizer("mode=\"TF\", min_gram_length=2, max_gram_length=2, max_skip_count=5" + kPool), 9, {x},
           {f32({7}, {0, 0, 0, 0, 1, 3, 1})});
  check_op(vectorizer("mode=\"TF\", min_gram_length=1, max_gram_length=2, max_skip_count=5" + kPool), 9, {x},
           {f32({7}, {0, 3, 1, 0, 1, 3, 1})});
  check_op(
      vectorizer("mode=\"TF\", min_gram_length=1, max_gram_length=2, max_skip_count=9000000000000" + kPool, "int64[A]"),
      9, {i64({2}, {3, 3})}, {f32({7}, {0, 2, 0, 0, 0, 0, 0})});
}

TEST_CASE("TfIdfVectorizer takes rows of strings") {
  check_op(vectorizer("mode=\"TF\", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2], "
                      "ngram_indexes=[0, 1, 2, 3], pool_strings=[\"a\", \"b\", \"a\", \"b\", \"b\", \"c\"]",
                      "string[N,A]", "float[N,B]"),
           9, {str({2, 6}, {"a", "b", "c", "b", "a", "c", "", "c", "c", "b", "b", "z"})},
           {f32({2, 4}, {2, 2, 1, 2, 0, 2, 0, 0})});
}

TEST_CASE("TfIdfVectorizer weighs n-grams by their place in the pool") {
  const std::string rest =
      ", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[2, 0, 4], "
      "weights=[10.0, 20.0, 30.0], pool_int64s=[1, 2, 3]";
  const Tensor x = i64({4}, {1, 2, 2, 2});
  const std::string input = "int64[A]";
  check_op(vectorizer("mode=\"TF\"" + rest, input), 9, {x}, {f32({5}, {3, 0, 1, 0, 0})});
  check_op(vectorizer("mode=\"IDF\"" + rest, input), 9, {x}, {f32({5}, {20, 0, 10, 0, 0})});
  check_op(vectorizer("mode=\"TFIDF\"" + rest, input), 9, {x}, {f32({5}, {60, 0, 10, 0, 0})});
}

TEST_CASE("TfIdfVectorizer of empty rows gives zeros") {
  const std::string attributes = "mode=\"TF\", min_gram_length=1, max_gram_length=2, max_skip_count=0" + kPool;
  check_op(vectorizer(attributes), 9, {i32({0}, {})}, {f32({7}, {0, 0, 0, 0, 0, 0, 0})});
  check_op(vectorizer(attributes, "int32[N,A]", "float[N,B]"), 9, {i32({1, 0}, {})},
           {f32({1, 7}, {0, 0, 0, 0, 0, 0, 0})});
  check_op(vectorizer(attributes, "int32[N,A]", "float[N,B]"), 9, {i32({0, 3}, {})}, {f32({0, 7}, {})});
}

TEST_CASE("TfIdfVectorizer refuses pools that do not fit their description") {
  const auto refuses = [](const std::string& attributes, std::string_view fragment) {
    check_op_fails(vectorizer("min_gram_length=1, max_gram_length=1, max_skip_count=0, " + attributes), 9,
                   {i32({1}, {1})}, ErrorCode::InvalidModel, fragment);
  };
  refuses("mode=\"BM25\", ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1]", "BM25");
  refuses("mode=\"TF\", ngram_counts=[0, 1], ngram_indexes=[0, 1], pool_int64s=[1, 2]", "does not divide");
  refuses("mode=\"TF\", ngram_counts=[5], ngram_indexes=[0], pool_int64s=[1]", "does not divide");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[-1], pool_int64s=[1]", "ngram_indexes holds -1");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[16777216], pool_int64s=[1]", "asks for 16777217 columns");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[9223372036854775807], pool_int64s=[1]", "too large");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1, 2]", "more n-grams");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[0]", "exactly one");
  refuses("mode=\"TF\", ngram_counts=[0], ngram_indexes=[0], weights=[1.0, 2.0], pool_int64s=[1]", "weights");
  check_op_fails(vectorizer("mode=\"TF\", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], "
                            "ngram_indexes=[0], pool_strings=[\"a\"]"),
                 9, {i32({1}, {1})}, ErrorCode::InvalidArgument, "the pool has strings");
}

}  // namespace
}  // namespace infernode::test
