#pragma once
// Write a workflow of a world in C++: one header, no library, no imports. A step gets its state, an
// event and a context, and says what comes of it:
//
//   #include "pawl_world.hpp"
//   PAWL_STEP(step) {
//     uint64_t n = in.state().get("count").number() + in.event().get("inc").number();
//     out.state([&](pawl::Writer& w) { w.map(1).text("count").number(n); });
//   }
//
// Values need no order and no canonical form: the host brings them into it. What is malformed
// traps, and a trap is recorded as the step's failure. Memory is never freed: an instance lives for
// one call.

#include <stddef.h>
#include <stdint.h>

extern "C" {
extern uint8_t __heap_base;
inline void* memcpy(void* to, const void* from, size_t n) {
  auto* d = static_cast<uint8_t*>(to);
  auto* s = static_cast<const uint8_t*>(from);
  for (size_t i = 0; i < n; ++i)
    d[i] = s[i];
  return to;
}
inline void* memset(void* to, int v, size_t n) {
  auto* d = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < n; ++i)
    d[i] = static_cast<uint8_t>(v);
  return to;
}
inline int memcmp(const void* a, const void* b, size_t n) {
  auto* x = static_cast<const uint8_t*>(a);
  auto* y = static_cast<const uint8_t*>(b);
  for (size_t i = 0; i < n; ++i)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}
}

namespace pawl {

[[noreturn]] inline void trap() { __builtin_trap(); }

inline uint8_t* allocate(uint32_t size) {
  static uint32_t next = 0;
  if (next == 0) next = reinterpret_cast<uint32_t>(&__heap_base);
  const uint32_t at = (next + 15u) & ~15u;
  const uint32_t end = at + size;
  if (end < at) trap();
  const uint32_t have = static_cast<uint32_t>(__builtin_wasm_memory_size(0)) << 16;
  if (end > have &&
      __builtin_wasm_memory_grow(0, (end - have + 65535u) >> 16) == static_cast<size_t>(-1))
    trap();
  next = end;
  return reinterpret_cast<uint8_t*>(at);
}

// A run of bytes or text that somebody else owns.
struct View {
  const uint8_t* data = nullptr;
  uint32_t size = 0;
  constexpr View() = default;
  constexpr View(const uint8_t* d, uint32_t n) : data(d), size(n) {}
  template <size_t N>
  View(const char (&text)[N]) : data(reinterpret_cast<const uint8_t*>(text)), size(N - 1) {}
  bool operator==(const View& other) const {
    return size == other.size && memcmp(data, other.data, size) == 0;
  }
};

// A CBOR item. Whatever is asked of an item that is not there is empty: get() of nothing is
// nothing, number() is 0, text() is "".
class Item {
 public:
  Item() = default;
  Item(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  bool exists() const { return at_ != nullptr; }
  bool is_null() const { return !exists() || *skip_tags() == 0xf6 || *skip_tags() == 0xf7; }
  // The value under a name, of a map.
  Item get(View name) const {
    if (!exists()) return {};
    const uint8_t* p = at_;
    Head h = head(p);
    if (h.major != 5) return {};
    for (uint64_t i = 0; i < h.n; ++i) {
      const uint8_t* key_at = p;
      Head k = head(p);
      const bool found = k.major == 3 && k.n == name.size &&
                         k.n <= static_cast<uint64_t>(end_ - p) && View(p, name.size) == name;
      p = key_at;
      skip(p);
      if (found) return Item(p, end_);
      skip(p);
    }
    return {};
  }
  uint32_t count() const {
    if (!exists()) return 0;
    const uint8_t* p = at_;
    Head h = head(p);
    return h.major == 4 || h.major == 5 ? static_cast<uint32_t>(h.n) : 0;
  }
  Item at(uint32_t index) const {
    if (!exists()) return {};
    const uint8_t* p = at_;
    Head h = head(p);
    if (h.major != 4 || index >= h.n) return {};
    for (uint32_t i = 0; i < index; ++i)
      skip(p);
    return Item(p, end_);
  }
  uint64_t number() const { return is(0) ? value() : 0; }
  int64_t integer() const {
    return is(0) ? static_cast<int64_t>(value()) : is(1) ? -1 - static_cast<int64_t>(value()) : 0;
  }
  bool boolean() const { return exists() && *skip_tags() == 0xf5; }
  View text() const { return is(3) ? run() : View(); }
  View bytes() const { return is(2) ? run() : View(); }
  // The item inside a byte string.
  Item inside() const {
    View b = bytes();
    return b.size ? Item(b.data, b.data + b.size) : Item();
  }
  View raw() const {
    if (!exists()) return {};
    const uint8_t* p = at_;
    skip(p);
    return {at_, static_cast<uint32_t>(p - at_)};
  }

 private:
  struct Head {
    int major;
    uint64_t n;
  };
  const uint8_t* skip_tags() const {
    const uint8_t* p = at_;
    while (p < end_ && *p >> 5 == 6) {
      const int info = *p++ & 31;
      p += info < 24 ? 0 : 1 << (info - 24);
    }
    if (p >= end_) trap();
    return p;
  }
  Head head(const uint8_t*& p) const {
    for (;;) {
      if (p >= end_) trap();
      const int major = *p >> 5, info = *p & 31;
      ++p;
      uint64_t n = static_cast<uint64_t>(info);
      if (info >= 28) trap();
      if (info >= 24) {
        const int more = 1 << (info - 24);
        if (end_ - p < more) trap();
        n = 0;
        for (int i = 0; i < more; ++i)
          n = n << 8 | *p++;
      }
      if (major != 6) return {major, n};
    }
  }
  void skip(const uint8_t*& p) const {
    Head h = head(p);
    if (h.major == 2 || h.major == 3) {
      if (h.n > static_cast<uint64_t>(end_ - p)) trap();
      p += h.n;
    }
    if (h.major != 4 && h.major != 5) return;
    for (uint64_t i = 0; i < h.n; ++i) {
      skip(p);
      if (h.major == 5) skip(p);
    }
  }
  bool is(int major) const { return exists() && *skip_tags() >> 5 == major; }
  uint64_t value() const {
    const uint8_t* p = at_;
    return head(p).n;
  }
  View run() const {
    const uint8_t* p = at_;
    Head h = head(p);
    if (h.n > static_cast<uint64_t>(end_ - p)) trap();
    return {p, static_cast<uint32_t>(h.n)};
  }
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// Writes CBOR items one after the other.
class Writer {
 public:
  Writer& map(uint32_t entries) { return head(5, entries); }
  Writer& list(uint32_t items) { return head(4, items); }
  Writer& number(uint64_t n) { return head(0, n); }
  Writer& integer(int64_t n) {
    return n < 0 ? head(1, static_cast<uint64_t>(-1 - n)) : head(0, static_cast<uint64_t>(n));
  }
  Writer& text(View t) { return head(3, t.size).raw(t); }
  Writer& bytes(View b) { return head(2, b.size).raw(b); }
  Writer& boolean(bool v) { return byte(v ? 0xf5 : 0xf4); }
  Writer& null() { return byte(0xf6); }
  // A variant's arm without a value.
  Writer& arm(View name) { return map(1).text("$tag").text(name); }
  Writer& raw(View v) {
    reserve(v.size);
    memcpy(data_ + size_, v.data, v.size);
    size_ += v.size;
    return *this;
  }
  View view() const { return {data_, size_}; }

 private:
  Writer& byte(uint8_t b) {
    reserve(1);
    data_[size_++] = b;
    return *this;
  }
  Writer& head(int major, uint64_t n) {
    const uint8_t top = static_cast<uint8_t>(major << 5);
    if (n < 24) return byte(static_cast<uint8_t>(top | n));
    const int size = n < 0x100 ? 0 : n < 0x10000 ? 1 : n < 0x100000000ull ? 2 : 3;
    byte(static_cast<uint8_t>(top | (24 + size)));
    for (int i = (1 << size) - 1; i >= 0; --i)
      byte(static_cast<uint8_t>(n >> (8 * i)));
    return *this;
  }
  void reserve(uint32_t more) {
    if (size_ + more <= room_) return;
    const uint32_t room = (size_ + more) * 2 + 64;
    uint8_t* next = allocate(room);
    memcpy(next, data_, size_);
    data_ = next;
    room_ = room;
  }
  uint8_t* data_ = nullptr;
  uint32_t size_ = 0, room_ = 0;
};

class In {
 public:
  In(const uint8_t* data, uint32_t size) : all_(data, data + size) {
    if (all_.get("version").number() != 1) trap();
  }
  bool has_state() const { return !all_.get("state").is_null(); }
  Item state() const { return all_.get("state").inside(); }
  // The event; of a variant, what its arm holds.
  Item event() const {
    Item value = all_.get("event").get("value").inside();
    Item inner = value.get("$value");
    return inner.exists() ? inner : value;
  }
  View arm() const { return all_.get("event").get("value").inside().get("$tag").text(); }
  View key() const { return all_.get("event").get("key").bytes(); }
  Item context() const { return all_.get("ctx").inside(); }
  uint64_t now_ns() const { return context().get("now_ns").number(); }

 private:
  Item all_;
};

class Out {
 public:
  template <class F>
  void state(F&& write) {
    Writer w;
    write(w);
    state_ = w.view();
    has_state_ = true;
  }
  void keep(const In& in) {
    state_ = in.state().raw();
    has_state_ = in.has_state();
  }
  void erase() { has_state_ = false; }    // the cell is gone
  void complete() { completed_ = true; }  // done, with its state kept
  template <class F>
  void event(View schema, F&& write) {
    Writer value;
    write(value);
    events_.map(2).text("schema").text(schema).text("value").bytes(value.view());
    ++event_count_;
  }
  template <class F>
  void effect(View name, F&& params, View issuer = {}, View idempotency_key = {}) {
    Writer value;
    params(value);
    effects_.map(2 + (issuer.size ? 1 : 0) + (idempotency_key.size ? 1 : 0))
        .text("effect")
        .text(name)
        .text("params")
        .bytes(value.view());
    if (issuer.size) effects_.text("issuer_ref").text(issuer);
    if (idempotency_key.size) effects_.text("idempotency_key").bytes(idempotency_key);
    ++effect_count_;
  }
  View done() const {
    Writer w;
    w.map(completed_ ? 4 : 3).text("state");
    if (has_state_)
      w.bytes(state_);
    else
      w.null();
    w.text("domain_events").list(event_count_).raw(events_.view());
    w.text("effects").list(effect_count_).raw(effects_.view());
    if (completed_) w.text("status").text("completed");
    return w.view();
  }

 private:
  View state_;
  bool has_state_ = false, completed_ = false;
  Writer events_, effects_;
  uint32_t event_count_ = 0, effect_count_ = 0;
};

}  // namespace pawl

extern "C" __attribute__((export_name("alloc"), used)) inline int32_t pawl_alloc(int32_t size) {
  return static_cast<int32_t>(
      reinterpret_cast<uint32_t>(pawl::allocate(size > 0 ? static_cast<uint32_t>(size) : 1u)));
}

// Defines the export `name`: an entrypoint of a workflow, or `migrate`.
#define PAWL_STEP(name)                                                         \
  static void pawl_step_##name(const pawl::In& in, pawl::Out& out);             \
  extern "C" __attribute__((export_name(#name), used)) void pawl_export_##name( \
      uint32_t* ret, const uint8_t* data, int32_t size) {                       \
    pawl::In in(data, static_cast<uint32_t>(size));                             \
    pawl::Out out;                                                              \
    pawl_step_##name(in, out);                                                  \
    const pawl::View done = out.done();                                         \
    ret[0] = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(done.data));     \
    ret[1] = done.size;                                                         \
  }                                                                             \
  static void pawl_step_##name([[maybe_unused]] const pawl::In& in, [[maybe_unused]] pawl::Out& out)
