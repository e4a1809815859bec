#include "wasm/inspect.h"

#include <gtest/gtest.h>

#include "wasm/test_module.h"

namespace pawl::wasm {
namespace {

std::string refusal(const Bytes& module) {
  auto shape = inspect(module);
  return shape ? "accepted" : shape.error().message;
}

TEST(inspect, ordinary_modules_pass) {
  EXPECT_TRUE(check_upload(echo().bytes()));
  EXPECT_TRUE(check_upload("no module at all"));
  EXPECT_TRUE(check_upload(""));
}

TEST(inspect, start_functions_are_refused_at_upload_only) {
  TestModule m = echo();
  m.sections[8] = leb(2);
  auto upload = check_upload(m.bytes());
  ASSERT_FALSE(upload);
  EXPECT_EQ(upload.error().code, Code::unprocessable);
  EXPECT_NE(upload.error().message.find("start function"), std::string::npos);
  EXPECT_EQ(refusal(m.bytes()), "accepted");
}

TEST(inspect, imports_are_refused_by_name) {
  TestModule m = echo();
  m.sections[2] = hex_bytes("0103656e76036e6f770002");  // (import "env" "now" (func (type 2)))
  auto upload = check_upload(m.bytes());
  ASSERT_FALSE(upload);
  EXPECT_EQ(upload.error().code, Code::unprocessable);
  EXPECT_NE(upload.error().message.find("imports 'env.now'"), std::string::npos)
      << upload.error().message;
  EXPECT_EQ(refusal(m.bytes()), "accepted");
}

TEST(inspect, a_module_must_export_what_its_workflows_call) {
  auto why_not = [](const Bytes& module, const std::set<std::string>& entrypoints) {
    auto checked = check_module(module, entrypoints);
    return checked ? "accepted" : checked.error().message;
  };
  EXPECT_EQ(why_not(echo().bytes(), {"step"}), "accepted");
  EXPECT_EQ(why_not(echo().bytes(), {"close", "open", "step"}),
            "wasm runtime error: the module does not export the function 'close', the function "
            "'open'");
  TestModule none = echo();
  none.sections[7] = hex_bytes("00");
  EXPECT_EQ(why_not(none.bytes(), {"step"}),
            "wasm runtime error: the module does not export the memory 'memory', the function "
            "'alloc', the function 'step'");
  // An export of another kind is not the function: `step` is the memory here.
  TestModule odd = echo();
  odd.sections[7] = hex_bytes("03066d656d6f7279020005616c6c6f6300000473746570") + hex_bytes("0200");
  EXPECT_EQ(why_not(odd.bytes(), {"step"}),
            "wasm runtime error: the module does not export the function 'step'");
  for (const Bytes& bytes : {Bytes(), Bytes("text"), Bytes("\0asm", 4)})
    EXPECT_NE(why_not(bytes, {}).find("not a WASM module"), std::string::npos);
}

TEST(inspect, too_many_functions_are_refused) {
  TestModule m = echo();
  m.sections[3] = leb(kMaxFunctions + 1) + Bytes(kMaxFunctions + 1, '\2');
  EXPECT_NE(refusal(m.bytes()).find("20001 functions"), std::string::npos);
  m.sections[3] = leb(kMaxFunctions) + Bytes(kMaxFunctions, '\2');
  EXPECT_EQ(refusal(m.bytes()), "accepted");
}

// The code section has a count of its own; a module whose counts differ is not valid, and the
// compiler must not begin to allocate for it either.
TEST(inspect, the_count_of_the_code_section_is_checked_too) {
  TestModule m = echo();
  m.sections[10] = leb(900'000);
  EXPECT_NE(refusal(m.bytes()).find("900000 functions"), std::string::npos);
}

TEST(inspect, long_functions_are_refused) {
  TestModule m = echo(Bytes(kMaxFunctionBytes + 1, '\1'));
  EXPECT_NE(refusal(m.bytes()).find("bytes in function 2"), std::string::npos);
  m = echo(Bytes(kMaxFunctionBytes, '\1'));
  EXPECT_EQ(refusal(m.bytes()), "accepted");
}

TEST(inspect, much_code_is_refused) {
  TestModule m = echo();
  m.sections[10] = leb(0) + Bytes(kMaxCodeBytes, '\0');
  EXPECT_NE(refusal(m.bytes()).find("bytes of code"), std::string::npos);
}

TEST(inspect, other_large_sections_are_refused) {
  for (auto [section, word] :
       {std::pair{1, "types"}, std::pair{6, "globals"}, std::pair{7, "exports"},
        std::pair{9, "element segments"}, std::pair{11, "data segments"}}) {
    TestModule m = echo();
    m.sections[static_cast<uint8_t>(section)] = leb(10'001);
    EXPECT_NE(refusal(m.bytes()).find(std::string("10001 ") + word), std::string::npos) << word;
  }
}

// inspect() reads what it can: the compiler refuses the rest.
TEST(inspect, cut_modules_do_not_crash) {
  const Bytes whole = echo().bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    (void)inspect(BytesView(whole).substr(0, size)).has_value();
  EXPECT_EQ(refusal(hex_bytes("0061736d01000000") + Bytes(20, '\xff')), "accepted");
}

}  // namespace
}  // namespace pawl::wasm
