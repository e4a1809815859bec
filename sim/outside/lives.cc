#include "sim/outside/lives.h"

#include "base/codec.h"

namespace pawl::sim {

template <class T>
void fields(FieldWriter& f, const std::set<T>& set) {
  f(std::vector<T>(set.begin(), set.end()));
}

template <class T>
void fields(FieldReader& f, std::set<T>& set) {
  std::vector<T> list;
  f(list);
  set.insert(list.begin(), list.end());
}

template <class F, FieldsOf<Problem> T>
void fields(F& f, T& problem) {
  f(problem.kind);
  f(problem.what);
}

template <class F, FieldsOf<Part> T>
void fields(F& f, T& part) {
  f(part.kind);
  f(part.name);
}

template <class F, FieldsOf<StoryLine> T>
void fields(F& f, T& line) {
  f(line.at);
  f(line.text);
}

template <class F, FieldsOf<LifeEnd> T>
void fields(F& f, T& end) {
  f(end.life);
  f(end.status);
  f(end.reason);
  f(end.took);
  f(end.problems);
  f(end.reached);
  f(end.cells);
  f(end.checked);
  f(end.unchecked);
  f(end.story);
}

Bytes encode(const LifeEnd& end) { return encode_fields(end); }
Result<LifeEnd> decode_life_end(BytesView bytes) {
  return decode_fields<LifeEnd>(bytes, "end of a simulated life");
}

}  // namespace pawl::sim
