#pragma once
// One list of fields encodes and decodes a struct. The struct's namespace lists its fields once:
//
//   template <class F, FieldsOf<Job> T>
//   void fields(F& f, T& job) {
//     f.format(1);
//     f(job.id);
//     f(job.retries_left);
//   }
//
// and `encode_fields(job)` and `decode_fields<Job>(bytes, "job")` follow from it. The bytes are
// those of Writer and Reader: varints, strings with their length, one byte for an enum or a bool.
// A field may be appended later with `f.later(...)`; older bytes then leave it as it was.

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// T is V or const V: lets one function serve the encoder (const) and the decoder.
template <class T, class V>
concept FieldsOf = std::same_as<std::remove_const_t<T>, V>;

class FieldWriter {
 public:
  explicit FieldWriter(Bytes& out) : w_(out) {}

  void format(uint8_t version) { w_.u8(version); }
  void fixed64(uint64_t v) { w_.fixed64(v); }
  void fixed64(int64_t v) { w_.fixed64(static_cast<uint64_t>(v)); }
  void later(const auto& v) { (*this)(v); }

  void operator()(const uint32_t& v) { w_.uint(v); }
  void operator()(const uint64_t& v) { w_.uint(v); }
  void operator()(const int32_t& v) { w_.sint(v); }
  void operator()(const int64_t& v) { w_.sint(v); }
  void operator()(const bool& v) { w_.boolean(v); }
  void operator()(const std::string& v) { w_.str(v); }
  void operator()(const BytesView& v) { w_.str(v); }
  template <class T>
  void operator()(const T& v) {
    if constexpr (std::is_enum_v<T>)
      w_.u8(static_cast<uint8_t>(v));
    else
      fields(*this, v);
  }
  template <class T>
  void operator()(const std::optional<T>& v) {
    w_.boolean(v.has_value());
    if (v) (*this)(*v);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    w_.uint(list.size());
    for (const T& item : list)
      (*this)(item);
  }
  template <class K, class V, class Less>
  void operator()(const std::map<K, V, Less>& map) {
    w_.uint(map.size());
    for (const auto& [key, value] : map) {
      (*this)(key);
      (*this)(value);
    }
  }

 private:
  Writer w_;
};

class FieldReader {
 public:
  explicit FieldReader(BytesView in) : r_(in) {}

  // The version is one byte, by convention the first of the struct. When it differs, complete() is
  // false.
  void format(uint8_t version) { known_format_ = known_format_ && r_.u8() == version; }
  void fixed64(uint64_t& v) { v = r_.fixed64(); }
  void fixed64(int64_t& v) { v = static_cast<int64_t>(r_.fixed64()); }
  // A field at the end of the struct that bytes of an older version do not have.
  void later(auto& v) {
    if (!r_.done()) (*this)(v);
  }

  void operator()(uint32_t& v) { v = static_cast<uint32_t>(r_.uint()); }
  void operator()(uint64_t& v) { v = r_.uint(); }
  void operator()(int32_t& v) { v = static_cast<int32_t>(r_.sint()); }
  void operator()(int64_t& v) { v = r_.sint(); }
  void operator()(bool& v) { v = r_.boolean(); }
  void operator()(std::string& v) { v = r_.str(); }
  // The view points into the encoded bytes, which must outlive the struct.
  void operator()(BytesView& v) { v = r_.str(); }
  template <class T>
  void operator()(T& v) {
    if constexpr (std::is_enum_v<T>)
      v = static_cast<T>(r_.u8());
    else
      fields(*this, v);
  }
  template <class T>
  void operator()(std::optional<T>& v) {
    if (r_.boolean()) (*this)(v.emplace());
  }
  // A count larger than the bytes that are left is refused before anything is allocated.
  template <class T>
  void operator()(std::vector<T>& list) {
    list.clear();
    for (size_t n = r_.count(); n > 0 && r_.ok(); --n)
      (*this)(list.emplace_back());
  }
  template <class K, class V, class Less>
  void operator()(std::map<K, V, Less>& map) {
    for (size_t n = r_.count(); n > 0 && r_.ok(); --n) {
      K key;
      (*this)(key);
      (*this)(map[std::move(key)]);
    }
  }

  // True when every field was there and nothing is left over.
  bool complete() const { return known_format_ && r_.done(); }

 private:
  Reader r_;
  bool known_format_ = true;
};

// `reserve` is the expected size of the result; it saves reallocations and may be wrong.
template <class T>
Bytes encode_fields(const T& value, size_t reserve = 0) {
  Bytes out;
  out.reserve(reserve);
  FieldWriter writer(out);
  fields(writer, value);
  return out;
}

// `what` names the struct in the error: "a stored job cannot be read".
template <class T>
Result<T> decode_fields(BytesView bytes, std::string_view what) {
  T value{};
  FieldReader reader(bytes);
  fields(reader, value);
  if (!reader.complete())
    return fail(Code::corrupt, "BAD_BYTES", std::string(what) + " cannot be read");
  return value;
}

}  // namespace pawl
