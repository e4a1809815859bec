// Runs the modules in tests/vectors/worlds. Most tests need the library that scripts/setup-wasm
// installs, and are skipped without it. The numbers of cases are those of the cases of worlds.

#include "wasm/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "wasm/inspect.h"
#include "wasm/test_module.h"

namespace pawl::wasm {
namespace {

Bytes file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct HostTest : testing::Test {
  void SetUp() override {
    if (host.version().empty())
      GTEST_SKIP() << "run scripts/setup-wasm for the tests of the WASM host";
  }
  Result<Outcome> call(const std::string& name, std::string_view entrypoint, BytesView input,
                       Limits limits = {}) {
    const Bytes bytes = file("tests/vectors/worlds/modules/" + name);
    return run(bytes, entrypoint, input, limits);
  }
  Result<Outcome> run(const Bytes& bytes, std::string_view entrypoint, BytesView input,
                      Limits limits = {}) {
    return host.call(
        view(sha256(bytes)), [&]() -> Result<Bytes> { return bytes; }, entrypoint, input, limits,
        used);
  }
  UsedFuel used;  // of the last call
  Host host{HostOptions{usual_libraries(), {}}};
};
using Wasm = HostTest;

TEST_F(Wasm, the_same_input_gives_the_same_output_and_fuel) {
  const Bytes input = *unhex(
      "a36776657273696f6e01657374617465f6656576656e74a266736368656d6165612f4540316576616c75654da264"
      "63656c6c616163696e6305");
  auto one = call("counter.wasm", "step", input);
  auto two = call("counter.wasm", "step", input);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(hex(one->output), "a165737461746548a165636f756e7405");
  EXPECT_EQ(one->output, two->output);
  EXPECT_EQ(one->fuel, two->fuel);
  EXPECT_GT(one->fuel, 0u);
}

// case 139
TEST_F(Wasm, an_endless_loop_fails_with_the_same_error_every_time) {
  const Limits little{1'000'000, 64u << 20};
  auto one = call("loop.wasm", "step", "", little);
  auto two = call("loop.wasm", "step", "", little);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().reason, "wasm.error");
  EXPECT_EQ(one.error().message, "wasm runtime error: step used up its fuel of 1000000");
  EXPECT_EQ(one.error().message, two.error().message);
  EXPECT_EQ(used.fuel, 1'000'000u) << "a call that failed has used fuel too";
}

TEST_F(Wasm, memory_grows_to_the_limit_and_no_further) {
  // The step grows its memory page by page until that fails, and returns the number of its pages.
  TestModule grows = echo();
  grows.sections[10] = hex_bytes("03") + sized(hex_bytes("004180080b")) +
                       sized(hex_bytes("00034041014000417f470d000b41003f00360200410041040b")) +
                       sized(hex_bytes("000b"));
  for (const uint64_t mebibytes : {3, 8}) {
    auto grown = run(grows.bytes(), "step", "", {200'000'000, mebibytes << 20});
    ASSERT_TRUE(grown) << grown.error().message;
    const uint64_t pages = mebibytes * 16;
    EXPECT_EQ(grown->output, Bytes({static_cast<char>(pages), 0, 0, 0}));
  }
}

// case 140
TEST_F(Wasm, nan_is_canonical) {
  // The module computes -(0/0) + 1 and returns its bits.
  auto nan = run(*unhex("0061736d01000000010d0260017f017f60027f7f027f7f0303020001050301000107190306"
                        "6d656d6f7279020005616c6c6f630000047374657000010a2502050041c0000b1d00410043"
                        "000000004300000000958c430000803f92380200410041040b"),
                 "step", "");
  ASSERT_TRUE(nan) << nan.error().message;
  EXPECT_EQ(hex(nan->output), "0000c07f");
}

// case 135
TEST_F(Wasm, entrypoints_return_two_values_or_write_them_to_a_pointer) {
  const TestModule two_values = echo();
  // (ret, ptr, len) -> (): stores the address and the length of the output at `ret`. Its alloc
  // returns 64 times the size, so that `ret` and inputs of other sizes do not overlap.
  TestModule to_pointer = echo();
  to_pointer.sections[1] = hex_bytes("0360017f017f60037f7f7f00600000");
  to_pointer.sections[10] = hex_bytes("03") + sized(hex_bytes("0020004106740b")) +
                            sized(hex_bytes("0020002001360200200020023602040b")) +
                            sized(hex_bytes("000b"));
  for (const TestModule& m : {two_values, to_pointer})
    for (const char* input : {"", "in", "a longer input"}) {
      auto r = run(m.bytes(), "step", input);
      ASSERT_TRUE(r) << r.error().message;
      EXPECT_EQ(r->output, input);
    }
}

// case 138
TEST_F(Wasm, every_call_gets_a_new_instance) {
  // The module counts its calls in a global variable and returns the count, which is always one.
  const Bytes counts = *unhex(
      "0061736d01000000010d0260017f017f60027f7f027f7f030302000105030100010606017f0141000b071903066d"
      "656d6f7279020005616c6c6f630000047374657000010a1c0205004180080b1400230041016a2400410023003a00"
      "00410041010b000b046e616d6507040100016e");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run(counts, "step", "in")->output, "\x01");
}

// case 133
TEST_F(Wasm, modules_that_break_the_contract_fail_with_the_reason) {
  struct Case {
    const char *hex, *word;
  };
  for (const Case& c : {
           Case{"0061736d01000000010b0260017f017f60017e017f03030200010503010001071903066d656d6f7279"
                "020005616c6c6f630000047374657000010a0c0205004180080b040041000b",
                "'step' is neither"},
           Case{"0061736d01000000010e0260027f7f017f60027f7f027f7f03030200010503010001071903066d656d"
                "6f7279020005616c6c6f630000047374657000010a0e0205004180080b0600200020010b",
                "'alloc' is not"},
           Case{"0061736d01000000010d0260017f017f60027f7f027f7f03030200010503010001071903066d656d6f"
                "7279020005616c6c6f630000047374657000010a0d02040041780b0600200020010b",
                "memory that does not exist"},
           Case{"0061736d01000000010d0260017f017f60027f7f027f7f0303020001050401008020071903066d656d"
                "6f7279020005616c6c6f630000047374657000010a0d02040041080b0600200020010b",
                "limits of the world"},
           Case{"0061736d01000000010d0260017f017f60027f7f027f7f03030200010503010001071903066d656d6f"
                "7279020005616c6c6f630000047374657000010a0f02040041080b08002000200110010b000b046e61"
                "6d65010401010166",
                "stack overflow"},
       }) {
    auto r = run(*unhex(c.hex), "step", "input");
    ASSERT_FALSE(r) << c.word;
    EXPECT_EQ(r.error().code, Code::unprocessable);
    EXPECT_NE(r.error().message.find(c.word), std::string::npos) << r.error().message;
  }
}

// case 134
TEST_F(Wasm, invalid_modules_and_missing_exports_fail_with_the_reason) {
  EXPECT_NE(run("not wasm", "step", "").error().message.find("is no valid WASM module"),
            std::string::npos);
  EXPECT_NE(call("counter.wasm", "nothing", "")
                .error()
                .message.find("exports no function named 'nothing'"),
            std::string::npos);
  // (module (import "a" "b" (func)))
  const Error importing =
      run(*unhex("0061736d01000000010401600000020701016101620000"), "step", "").error();
  EXPECT_NE(importing.message.find("import nothing"), std::string::npos) << importing.message;
  // an empty module
  EXPECT_NE(run(*unhex("0061736d01000000"), "step", "").error().message.find("exports no function"),
            std::string::npos);
}

TEST_F(Wasm, a_trap_is_unprocessable) {
  auto trap = call("counter.wasm", "step", "\xff");
  ASSERT_FALSE(trap);
  EXPECT_EQ(trap.error().code, Code::unprocessable);
  EXPECT_NE(trap.error().message.find("trap: unreachable code reached"), std::string::npos)
      << trap.error().message;
}

// Instantiation runs the start function and copies the segments, so it traps like a call. These
// modules used to abort the process.
TEST_F(Wasm, traps_of_instantiation_are_unprocessable) {
  TestModule start = echo(hex_bytes("00000b"));  // unreachable
  start.sections[8] = leb(2);
  TestModule data = echo();
  data.sections[11] = hex_bytes("010041ffff070b0161");  // one byte at 131,071 of one page
  TestModule table = echo();
  table.sections[4] = hex_bytes("01700001");
  table.sections[9] = hex_bytes("010041050b0100");         // element 5 of a table of one
  TestModule endless = echo(hex_bytes("0003400c000b0b"));  // loop
  endless.sections[8] = leb(2);
  TestModule deep = echo(hex_bytes("0010020b"));  // calls itself
  deep.sections[8] = leb(2);
  struct Case {
    Bytes module;
    const char* word;
  };
  for (const Case& c : {Case{start.bytes(), "instantiate trap: unreachable code reached"},
                        Case{data.bytes(), "instantiate trap: memory out of bounds"},
                        Case{table.bytes(), "instantiate trap: table out of bounds"},
                        Case{endless.bytes(), "instantiate used up its fuel of 1000000"},
                        Case{deep.bytes(), "instantiate trap: stack overflow"}}) {
    auto r = run(c.module, "step", "input", {1'000'000, 64u << 20});
    ASSERT_FALSE(r) << c.word;
    EXPECT_EQ(r.error().code, Code::unprocessable);
    EXPECT_NE(r.error().message.find(c.word), std::string::npos) << r.error().message;
  }
}

// A start function that does not trap runs: modules with one were accepted once.
TEST_F(Wasm, stored_modules_with_a_start_function_run) {
  TestModule m = echo();
  m.sections[8] = leb(2);
  auto r = run(m.bytes(), "step", "input");
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->output, "input");
}

TEST_F(Wasm, oversized_memories_tables_and_odd_exports_are_unprocessable) {
  TestModule memory = echo();
  memory.sections[5] = hex_bytes("0100") + leb(65'536);
  TestModule memories = echo();
  memories.sections[5] = leb(100);
  for (int i = 0; i < 100; ++i)
    memories.sections[5] += hex_bytes("0001");
  TestModule table = echo();
  table.sections[4] = hex_bytes("017000") + leb(0xffff'ffff);
  TestModule tables = echo();
  tables.sections[4] = leb(1000);
  for (int i = 0; i < 1000; ++i)
    tables.sections[4] += hex_bytes("700001");
  TestModule no_memory = echo();
  no_memory.sections[7] = hex_bytes("03066d656d6f7279000005616c6c6f6300000473746570") +
                          hex_bytes("0001");  // `memory` is a function
  TestModule global = echo();
  global.sections[6] = hex_bytes("017f0041000b");
  global.sections[7] = hex_bytes("03066d656d6f7279020005616c6c6f6303000473746570") +
                       hex_bytes("0001");  // `alloc` is a global
  for (const TestModule& m : {memory, memories, table, tables, no_memory, global}) {
    auto r = run(m.bytes(), "step", "input");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, Code::unprocessable) << r.error().message;
  }
}

TEST_F(Wasm, modules_that_are_too_large_are_not_compiled) {
  TestModule m = echo();
  const uint64_t count = 900'000;
  m.sections[3] = leb(count) + Bytes(count, '\2');
  m.sections[10] = leb(count);
  for (uint64_t i = 0; i < count; ++i)
    m.sections[10] += hex_bytes("02000b");
  auto r = run(m.bytes(), "step", "input");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("900000 functions"), std::string::npos) << r.error().message;
}

TEST_F(Wasm, has_export_finds_exports_by_name) {
  const Bytes bytes = file("tests/vectors/worlds/modules/loop.wasm");
  const Fetch fetch = [&]() -> Result<Bytes> { return bytes; };
  EXPECT_TRUE(*host.has_export(view(sha256(bytes)), fetch, "grow"));
  EXPECT_FALSE(*host.has_export(view(sha256(bytes)), fetch, "migrate"));
}

TEST_F(Wasm, compiled_modules_are_cached_in_files_and_damaged_files_ignored) {
  const std::string folder = testing::TempDir() + "pawl-wasm-" + std::to_string(getpid());
  const Bytes bytes = file("tests/vectors/worlds/modules/counter.wasm");
  const Bytes input = *unhex(
      "a36776657273696f6e01657374617465f6656576656e74a266736368656d6165612f4540316576616c75654da264"
      "63656c6c616163696e6305");
  auto once = [&](bool may_fetch) {
    UsedFuel used;
    Host fresh{HostOptions{usual_libraries(), folder}};
    return fresh
        .call(
            view(sha256(bytes)),
            [&]() -> Result<Bytes> {
              if (!may_fetch) return fail(Code::internal, "FETCHED", "fetched again");
              return bytes;
            },
            "step", input, {}, used)
        .has_value();
  };
  EXPECT_TRUE(once(true));
  EXPECT_TRUE(once(false));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    std::ofstream(entry.path(), std::ios::binary | std::ios::app) << "x";
  EXPECT_FALSE(once(false));
  EXPECT_TRUE(once(true));
  std::filesystem::remove_all(folder);
}

TEST(wasm, a_missing_library_is_unavailable_with_the_remedy) {
  Host host{HostOptions{{"/nowhere/libwasmtime.so"}, {}}};
  UsedFuel used;
  auto r = host.call(
      Bytes(32, 'x'), []() -> Result<Bytes> { return Bytes(); }, "step", "", {}, used);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::unavailable);
  EXPECT_NE(r.error().message.find("scripts/setup-wasm"), std::string::npos);
  EXPECT_EQ(host.version(), "");
}

}  // namespace
}  // namespace pawl::wasm
