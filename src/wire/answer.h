#pragma once
// An HTTP server's answer, read from bytes as they come: one way to read it for all of us who ask
// servers. Whoever asks brings the connection.

#include <functional>

#include "wire/message.h"

namespace pawl::wire {

struct AnswerHead {
  int status = 0;
  Headers headers{};
  bool closes = false;  // nothing more can be asked on this connection
  std::string_view header(std::string_view name) const;  // case ignored; empty when absent
};

class AnswerReader {
 public:
  // More bytes onto the buffer; false when the connection has ended.
  using More = std::function<Result<bool>(Bytes& buffer)>;
  // The error for an answer that is none.
  using Refuse = std::function<Error(std::string why)>;
  // A body may end where the connection does, so that nobody can tell whether all of it came. Our
  // own servers always say.
  enum class End { said, or_connection };
  // `most`: bytes of a body that are taken, or of a piece of one that is read piece by piece.
  AnswerReader(More more, Refuse refuse, size_t max, End end = End::said)
      : more_(std::move(more)), refuse_(std::move(refuse)), max_(max), end_(end) {}

  // Answers that only say that another comes (1xx) are passed over.
  Result<AnswerHead> head();
  // `method` is what was asked with.
  Result<Bytes> body(AnswerHead& head, std::string_view method);
  // As it comes, until `piece` returns false.
  using Piece = std::function<bool(BytesView piece)>;
  Result<void> pieces(AnswerHead& head, const Piece& piece);

  bool nothing_came() const { return !came_; }
  bool nothing_left() const { return buffer_.empty(); }

 private:
  Result<void> fill(size_t size);
  Result<std::string> line(size_t& room);
  Result<AnswerHead> one_head();
  Result<void> chunks(const Piece& piece);
  Result<void> until_the_end(AnswerHead& head, const Piece& piece);

  More more_;
  Refuse refuse_;
  size_t max_;
  End end_;
  Bytes buffer_{};
  bool came_ = false;
};

}  // namespace pawl::wire
