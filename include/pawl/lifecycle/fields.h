#pragma once
// The field list of a struct: which members are stored, under which names, with which tags. The
// list is checked at compile time. The same list converts the struct to a record and back.

#include <array>
#include <concepts>
#include <limits>
#include <tuple>
#include <type_traits>

#include "pawl/lifecycle/error.h"
#include "pawl/lifecycle/record.h"
#include "pawl/lifecycle/table.h"

namespace pawl::lifecycle {

// Tags form a set: lc::operator_writable | lc::indexable.
enum class tags : std::uint16_t {};
inline constexpr tags none{0};
inline constexpr tags id{1};        // the id of the instance: one string member, never changed
inline constexpr tags phase{2};     // the current phase: one string member
inline constexpr tags readonly{4};  // never writable by operators or rules
inline constexpr tags operator_writable{8};  // operators and rules may set it
inline constexpr tags indexable{16};         // a filter on it uses an index
inline constexpr tags omitempty{32};         // left out of the JSON when it has its zero value
inline constexpr tags parent{64};            // holds the id of the parent instance
constexpr tags operator|(tags a, tags b) { return tags(std::uint16_t(a) | std::uint16_t(b)); }
constexpr bool has(tags set, tags one) { return (std::uint16_t(set) & std::uint16_t(one)) != 0; }

// Declared and never defined, as in table.h: a call at compile time is an error that shows the
// name.
namespace compile_error {
void missing_id_field_tag_one_string_member_with_lc_id();
void missing_phase_field_tag_one_string_member_with_lc_phase();
void two_fields_are_tagged_lc_id();
void two_fields_are_tagged_lc_phase();
void two_fields_are_tagged_lc_parent();
void one_field_is_tagged_both_lc_id_and_lc_phase();
void the_parent_field_cannot_be_the_id_or_the_phase();
void the_id_field_cannot_be_operator_writable();
void the_phase_field_cannot_be_operator_writable();
void a_readonly_field_cannot_be_operator_writable();
void two_fields_have_the_same_name();
void a_field_has_an_empty_name();
void the_id_field_is_not_a_std_string();
void the_phase_field_is_not_a_std_string();
void the_parent_field_is_not_a_std_string();
}  // namespace compile_error

// The kind of a member by its C++ type. char is refused: it is neither a number nor a text.
template <class M>
consteval kind kind_of() {
  constexpr bool number = std::integral<M> && !std::same_as<M, bool> && !std::same_as<M, char>;
  if constexpr (std::same_as<M, std::string>)
    return kind::string;
  else if constexpr (std::same_as<M, bool>)
    return kind::boolean;
  else if constexpr (number && std::signed_integral<M>)
    return sizeof(M) == 1   ? kind::int8
           : sizeof(M) == 2 ? kind::int16
           : sizeof(M) == 4 ? kind::int32
                            : kind::int64;
  else if constexpr (number && std::unsigned_integral<M>)
    return sizeof(M) == 1   ? kind::uint8
           : sizeof(M) == 2 ? kind::uint16
           : sizeof(M) == 4 ? kind::uint32
                            : kind::uint64;
  else if constexpr (std::same_as<M, double> || std::same_as<M, float>)
    return kind::real;
  else if constexpr (std::same_as<M, std::vector<std::string>>)
    return kind::string_list;
  else {
    static_assert(std::same_as<M, json>,
                  "pawl lifecycle: a field must be std::string, bool, an integer, float, double, "
                  "std::vector<std::string> or lc::json");
    return kind::json_value;
  }
}

// The struct and the type of a pointer to a member.
template <class T>
struct member_of;
template <class C, class M>
struct member_of<M C::*> {
  using owner = C;
  using type = M;
};
template <auto Member>
using member_type = typename member_of<decltype(Member)>::type;

template <auto Member>
struct field_entry {
  static constexpr auto member = Member;
  using type = member_type<Member>;
  std::string_view name;
  tags t;
};
template <auto Member>
consteval field_entry<Member> field(std::string_view name, tags t = none) {
  return {name, t};
}

template <class... Fields>
class field_list {
 public:
  static constexpr std::size_t count = sizeof...(Fields);
  struct row {
    std::string_view name;
    tags t;
    kind k;
  };

  // Runs at compile time and refuses a list that contradicts itself.
  consteval explicit field_list(Fields... fields)
      : rows_{row{fields.name, fields.t, kind_of<typename Fields::type>()}...} {
    check();
  }
  constexpr const std::array<row, count>& rows() const { return rows_; }
  // The index of the first field with the tag; `count` when there is none.
  constexpr std::size_t place(tags one) const {
    for (std::size_t i = 0; i < count; ++i)
      if (has(rows_[i].t, one)) return i;
    return count;
  }
  constexpr std::string_view name_of(tags one) const {
    std::size_t i = place(one);
    return i < count ? rows_[i].name : std::string_view();
  }
  // The name under which a member is stored.
  template <auto Member>
  constexpr std::string_view name() const {
    std::string_view found;
    std::size_t i = 0;
    (void)((same<Member, Fields>() ? (found = rows_[i].name, true) : (++i, false)) || ...);
    return found;
  }
  template <auto Member>
  static consteval bool lists() {
    return (same<Member, Fields>() || ...);
  }

 private:
  // Pointers to members of different types cannot be compared, so the types are compared first.
  template <auto Member, class Field>
  static consteval bool same() {
    if constexpr (std::same_as<std::remove_const_t<decltype(Field::member)>,
                               std::remove_const_t<decltype(Member)>>)
      return Field::member == Member;
    else
      return false;
  }
  consteval std::size_t tagged(tags one) const {
    std::size_t n = 0;
    for (const row& r : rows_)
      n += has(r.t, one);
    return n;
  }
  consteval void check() const {
    for (std::size_t i = 0; i < count; ++i) {
      const row& r = rows_[i];
      if (r.name.empty()) compile_error::a_field_has_an_empty_name();
      if (has(r.t, id) && has(r.t, operator_writable))
        compile_error::the_id_field_cannot_be_operator_writable();
      if (has(r.t, phase) && has(r.t, operator_writable))
        compile_error::the_phase_field_cannot_be_operator_writable();
      if (has(r.t, readonly) && has(r.t, operator_writable))
        compile_error::a_readonly_field_cannot_be_operator_writable();
      if (has(r.t, id) && has(r.t, phase))
        compile_error::one_field_is_tagged_both_lc_id_and_lc_phase();
      if (has(r.t, parent) && (has(r.t, id) || has(r.t, phase)))
        compile_error::the_parent_field_cannot_be_the_id_or_the_phase();
      if (has(r.t, id) && r.k != kind::string) compile_error::the_id_field_is_not_a_std_string();
      if (has(r.t, phase) && r.k != kind::string)
        compile_error::the_phase_field_is_not_a_std_string();
      if (has(r.t, parent) && r.k != kind::string)
        compile_error::the_parent_field_is_not_a_std_string();
      for (std::size_t j = 0; j < i; ++j)
        if (rows_[j].name == r.name) compile_error::two_fields_have_the_same_name();
    }
    if (tagged(id) > 1) compile_error::two_fields_are_tagged_lc_id();
    if (tagged(phase) > 1) compile_error::two_fields_are_tagged_lc_phase();
    if (tagged(parent) > 1) compile_error::two_fields_are_tagged_lc_parent();
    if (tagged(id) == 0) compile_error::missing_id_field_tag_one_string_member_with_lc_id();
    if (tagged(phase) == 0)
      compile_error::missing_phase_field_tag_one_string_member_with_lc_phase();
  }
  std::array<row, count> rows_;
};
template <class... Fields>
consteval auto fields(Fields... list) {
  return field_list<Fields...>(list...);
}

template <class L>
inline constexpr bool is_field_list = false;
template <class... F>
inline constexpr bool is_field_list<field_list<F...>> = true;
template <class L>
inline constexpr bool is_table = false;
template <std::size_t P, std::size_t E>
inline constexpr bool is_table<transitions_table<P, E>> = true;

// A participant is a plain struct that declares its workflow, bucket, fields and transitions. It
// may also have static std::string kv_key(std::string_view id); the default key is the id.
template <class T>
concept participant = std::default_initializable<T> && std::copyable<T> && requires {
  { T::workflow } -> std::convertible_to<std::string_view>;
  { T::bucket } -> std::convertible_to<std::string_view>;
  requires is_field_list<std::remove_cvref_t<decltype(T::fields)>>;
  requires is_table<std::remove_cvref_t<decltype(T::transitions)>>;
};

namespace detail {

// Appends one member to a record. Integers of every width are stored as 64 bits.
template <class M>
void put_member(std::string& out, std::string_view name, const M& m) {
  constexpr kind k = kind_of<M>();
  if constexpr (k == kind::string)
    record::put(out, name, std::string_view(m));
  else if constexpr (row_of(k).is_signed)
    record::put(out, name, std::int64_t{m});
  else if constexpr (row_of(k).is_unsigned)
    record::put(out, name, std::uint64_t{m});
  else if constexpr (k == kind::real)
    record::put(out, name, double{m});
  else
    record::put(out, name, m);
}

// Returns false when the stored value does not fit the member.
template <class M>
bool take_member(const record::walk& at, M& m) {
  constexpr kind k = kind_of<M>();
  if (at.f != record::form_of(k)) return false;
  if constexpr (k == kind::string)
    m = at.as_text();
  else if constexpr (k == kind::boolean)
    m = at.as_bool();
  else if constexpr (row_of(k).is_signed) {
    std::int64_t v = at.as_signed();
    if (v < std::numeric_limits<M>::min() || v > std::numeric_limits<M>::max()) return false;
    m = static_cast<M>(v);
  } else if constexpr (row_of(k).is_unsigned) {
    std::uint64_t v = at.as_unsigned();
    if (v > std::numeric_limits<M>::max()) return false;
    m = static_cast<M>(v);
  } else if constexpr (k == kind::real)
    m = static_cast<M>(at.as_real());
  else if constexpr (k == kind::string_list)
    m = at.as_list();
  else
    m.text = at.as_text();
  return true;
}

// Converts a struct to entries of a record and back, field by field.
template <class T, class List>
struct codec;
template <class T, class... Fields>
struct codec<T, field_list<Fields...>> {
  static_assert((std::derived_from<
                     T, typename member_of<std::remove_const_t<decltype(Fields::member)>>::owner> &&
                 ...),
                "pawl lifecycle: lc::fields lists a member of another struct");
  using take = bool (*)(const record::walk&, T&);
  static constexpr std::array<take, sizeof...(Fields)> takers{
      [](const record::walk& at, T& to) { return take_member(at, to.*Fields::member); }...};

  static void encode(const T& from, std::string& out) {
    std::size_t i = 0;
    (put_member(out, T::fields.rows()[i++].name, from.*Fields::member), ...);
  }
  // Records usually list fields in the order of the struct, so the position in the record is tried
  // first. Returns the number of fields when the struct has no such field.
  static std::size_t find(std::string_view name, std::size_t hint) {
    const auto& rows = T::fields.rows();
    if (hint < rows.size() && rows[hint].name == name) return hint;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].name == name) return i;
    return rows.size();
  }
};
template <class T>
using codec_of = codec<T, std::remove_cvref_t<decltype(T::fields)>>;

}  // namespace detail

// The struct as a record. Members of `before` that the struct does not list are kept.
template <participant T>
std::string to_record(const T& state, std::string_view before = {}) {
  std::string out;
  out.reserve(before.size() + 64);
  detail::codec_of<T>::encode(state, out);
  record::walk at(before);
  for (std::size_t hint = 0; at.next(); ++hint)
    if (detail::codec_of<T>::find(at.name, hint) == T::fields.rows().size()) out.append(at.entry);
  return out;
}

// Members that the record does not have keep the defaults of the struct.
template <participant T>
result<T> from_record(std::string_view bytes) {
  T out{};
  record::walk at(bytes);
  for (std::size_t hint = 0; at.next(); ++hint) {
    std::size_t i = detail::codec_of<T>::find(at.name, hint);
    if (i < detail::codec_of<T>::takers.size() && !detail::codec_of<T>::takers[i](at, out))
      return fail(errc::corrupt_value, "field '" + std::string(at.name) + "' of " +
                                           std::string(T::workflow) + " is not stored as a " +
                                           std::string(row_of(T::fields.rows()[i].k).name) +
                                           ": the struct has changed its type");
  }
  if (at.bad())
    return fail(errc::corrupt_value,
                "the stored bytes of a " + std::string(T::workflow) + " are not a record");
  return out;
}

}  // namespace pawl::lifecycle
