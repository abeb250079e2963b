// A node's quickest method is found by a clock that the kernels themselves move.
#include "runtime/tuning/tuner.h"

#include <fstream>

#include "base/cpu_features.h"
#include "base/error.h"
#include "runtime/plan_test.h"
#include "temporary_folder.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// What the fake clock says, and how long a run of each method takes.
double now = 0;
std::map<std::string, double, std::less<>> nanoseconds;
std::size_t runs = 0;
std::string made;  ///< methods of kernels in the order in which they were made
kernel::CancelToken* cancelled_by_run = nullptr;

class Choice final : public kernel::Kernel {
 public:
  explicit Choice(kernel::KernelInfo& info) : method_(info.method()) { made += cat("[", method_, "]"); }
  void run(kernel::KernelContext& ctx) const override {
    const Tensor y = ctx.output(0, ctx.input(0).shape());
    std::copy_n(ctx.input(0).data<float>(), static_cast<std::size_t>(y.numel()), y.mutable_data<float>());
    ++runs;
    if (cancelled_by_run != nullptr) cancelled_by_run->cancel();
    if (const auto found = nanoseconds.find(method_); found != nanoseconds.end()) now += found->second;
  }
  static std::vector<std::string> methods(const kernel::KernelInfo& info) {
    if (info.attributes().get_int("single", 0) != 0) return {"own"};
    return {"own", "other", "third"};
  }

 private:
  std::string method_;
};

kernel::Registry with_choice() {
  kernel::Registry out = registry();
  kernel::OpRegistrar registrar(out);
  registrar.op("Choice", "test")
      .version(1, "X:T -> Y:T; T = float")
      .infer(kernel::infer_same_as_first)
      .kernel<Choice>()
      .methods(Choice::methods);
  return out;
}

struct Loads {
  const kernel::Registry registry = with_choice();
  runtime::WeightStore weights{};
  std::string log{};
  Logger logger{LogSeverity::Warning, "", [this](LogSeverity, std::string_view, std::string_view m) { log += m; }};
  kernel::RunContext load{};

  std::unique_ptr<runtime::ExecutionPlan> build(std::string_view text, runtime::Tuner* tuner) {
    made.clear();
    runs = 0;
    const graph::Model model = graph::parse_model(std::string(text), 17);
    kernel::infer_graph(*model.graph, registry);
    return runtime::ExecutionPlan::build(model.graph, {.registry = &registry,
                                                       .kernels = &microkernels::kernel_set(detect_cpu_rung()),
                                                       .weights = &weights,
                                                       .tuner = tuner,
                                                       .providers = {},
                                                       .logger = nullptr,
                                                       .load = &load});
  }
  /// "<method> <where it comes from>" of each node.
  std::string choices(std::string_view text, runtime::Tuner* tuner) {
    std::string out;
    const auto plan = build(text, tuner);
    for (const runtime::Step& step : plan->steps()) {
      using Source = runtime::MethodChoice::Source;
      out += cat(out.empty() ? "" : ", ", step.method ? step.method->method : "-");
      if (step.method) out += step.method->source == Source::kKept ? " kept" : " measured";
    }
    return out;
  }
  std::string choices(std::string_view text) {
    runtime::Tuner tuner(nullptr, logger, [] { return now; });
    return choices(text, &tuner);
  }
};

constexpr const char* kOne = "(float[4] x) => (y) { y = test.Choice(x) }";

}  // namespace

TEST_CASE("the method whose runs take least is taken, and the kernel made with it") {
  Loads loads;
  nanoseconds = {{"own", 300}, {"other", 100}, {"third", 200}};
  CHECK(loads.choices(kOne) == "other measured");
  CHECK(made == "[own][other][third][other]");
  nanoseconds = {{"own", 300}, {"other", 200}, {"third", 100}};
  CHECK(loads.choices(kOne) == "third measured");
}

TEST_CASE("a kernel's own choice stands where no other is clearly quicker") {
  Loads loads;
  nanoseconds = {{"own", 100}, {"other", 98}, {"third", 100}};
  CHECK(loads.choices(kOne) == "own measured");
  nanoseconds = {{"own", 100}, {"other", 95}, {"third", 94}};
  CHECK(loads.choices(kOne) == "third measured");
}

TEST_CASE("runs end when they have taken enough time or cannot win") {
  Loads loads;
  nanoseconds = {{"own", 1e9}, {"other", 1e10}, {"third", 1e10}};
  CHECK(loads.choices(kOne) == "own measured");
  CHECK(runs == (1 + 3) + 2 * (1 + 1));
}

TEST_CASE("without a tuner, and where there is nothing to choose, the kernel chooses and nothing runs") {
  Loads loads;
  CHECK(loads.choices(kOne, nullptr) == "-");
  CHECK(loads.choices("(float[4] x) => (y) { y = test.Choice <single = 1> (x) }") == "-");
  CHECK(loads.choices("(float[4] x) => (y) { y = Neg(x) }") == "-");
  constexpr const char* kAnyRank = "(float[4] x, int64[N] s) => (y) { t = Reshape(x, s)  y = test.Choice(t) }";
  CHECK(loads.choices(kAnyRank) == "-, -");
  CHECK(runs == 0);
}

TEST_CASE("nodes of the same kind and shape are measured once, others by themselves, bodies' too") {
  Loads loads;
  nanoseconds = {{"own", 300}, {"other", 100}, {"third", 200}};
  runtime::Tuner tuner(nullptr, loads.logger, [] { return now; });
  CHECK(
      loads.choices("(float[4] x, float[5] z) => (y, w) { a = test.Choice(x)  y = test.Choice(a)  w = test.Choice(z) }",
                    &tuner) == "other measured, other measured, other measured");
  CHECK(tuner.measured() == 2);
  loads.build(
      "(float[6] x, bool m) => (y) { y = If(m) <then_branch = t () => (u) { u = test.Choice(x) }, "
      "else_branch = e () => (v) { v = Neg(x) }> }",
      &tuner);
  CHECK(tuner.measured() == 3);
}

TEST_CASE("a load that is cancelled while methods run is aborted at the next run") {
  Loads loads;
  kernel::CancelToken token;
  loads.load.cancel = &token;
  cancelled_by_run = &token;
  const auto build = [&] { loads.choices(kOne); };
  CHECK_THROWS_WITH_AS(build(), "the run was cancelled", Error);
  cancelled_by_run = nullptr;
  CHECK(runs == 1);
}

TEST_CASE("kept choices serve the next load; a file that is damaged or foreign is warned of and measured anew") {
  const TemporaryFolder folder;
  const std::string path = folder / "made/when needed.methods";
  Loads loads;
  const auto load = [&](std::string facts) {
    loads.log.clear();
    runtime::ChoiceFile file(path, std::move(facts), loads.logger);
    runtime::Tuner tuner(&file, loads.logger, [] { return now; });
    std::string choices = loads.choices(kOne, &tuner);
    file.save();
    return choices;
  };
  nanoseconds = {{"own", 300}, {"other", 100}, {"third", 200}};
  CHECK(load("this CPU") == "other measured");
  nanoseconds = {{"own", 100}, {"other", 300}, {"third", 300}};
  CHECK(load("this CPU") == "other kept");
  CHECK(runs == 0);
  CHECK(made == "[other]");
  CHECK(loads.log.empty());

  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(-2, std::ios::end).put('?');
  CHECK(load("this CPU") == "own measured");
  CHECK(loads.log.find("it is damaged") != std::string::npos);
  CHECK(load("this CPU") == "own kept");

  CHECK(load("another CPU") == "own measured");
  CHECK(loads.log.find("they were measured with this CPU") != std::string::npos);
  CHECK(load("another CPU") == "own kept");

  std::ofstream(path) << "some text\n";
  CHECK(load("this CPU") == "own measured");
  CHECK(loads.log.find("it is no file of measured methods") != std::string::npos);
  std::ofstream(path).flush();
  CHECK(load("this CPU") == "own measured");
  CHECK(loads.log.find("it is damaged") != std::string::npos);
}

TEST_CASE("a method that a file names and the node lacks is measured anew, with a warning") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.methods";
  Loads loads;
  nanoseconds = {{"own", 300}, {"other", 100}, {"third", 200}};
  const auto load = [&](runtime::ChoiceFile& file) {
    runtime::Tuner tuner(&file, loads.logger, [] { return now; });
    std::string choices = loads.choices(kOne, &tuner);
    file.save();
    return choices;
  };
  runtime::ChoiceFile first(path, "facts", loads.logger);
  CHECK(load(first) == "other measured");
  std::ifstream in(path);
  std::string line;
  for (int i = 0; i < 4; ++i) std::getline(in, line);
  in.close();
  runtime::ChoiceFile other(path, "facts", loads.logger);
  other.keep(line.substr(0, line.find(' ')), "gone");
  other.save();
  runtime::ChoiceFile last(path, "facts", loads.logger);
  CHECK(load(last) == "other measured");
  CHECK(loads.log.find("Choice has no method 'gone'") != std::string::npos);
}

TEST_CASE("methods that cannot be written are warned of") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  Loads loads;
  runtime::ChoiceFile file(folder / "file/a.methods", "facts", loads.logger);
  file.keep("key", "method");
  file.save();
  CHECK(loads.log.find("measured methods cannot be written") != std::string::npos);
}
