#pragma once
// Every limit that is shared by more than one folder: its reason, and what happens when it is
// reached. A limit that one file needs alone stands in that file.

#include <cstddef>
#include <cstdint>

namespace pawl::limits {

// Limits of JSON, cells and frames.

// Size of a request body, and of any JSON text that does not say otherwise. The systems whose
// contracts we serve accept 10 MiB. Larger requests are refused with `too_large` (HTTP 413).
inline constexpr size_t kBodyBytes = 10 * 1024 * 1024;
// Nesting of a JSON document. Our JSON functions recurse, so this bounds their stack. Deeper
// documents are refused with JSON_TOO_DEEP.
inline constexpr size_t kJsonDepth = 256;
// Fields (members of all its objects) of an entity's document or of a sample for a model, and of a
// model that may still grow. A turn compares each field with the model, and a turn that grows the
// model copies and prints all of it. Larger documents are refused with BAD_REQUEST.
inline constexpr size_t kDocumentFields = 100'000;
// Size of one cell. A frame holds every cell that it changes in full, so cells stay small; the
// limit leaves room for the largest body and its envelope. A larger write fails the turn.
inline constexpr size_t kCellBytes = 16 * 1024 * 1024;
// Size of one frame. A frame is read into memory at once. A turn that writes more fails and must be
// split by the caller.
inline constexpr size_t kFrameBytes = 256 * 1024 * 1024;
// Cells that one turn changes. Delete-all requests and batches come closest. A turn that changes
// more fails.
inline constexpr size_t kTurnChanges = 1'000'000;
// Size of a cell key. Keys are compared and copied everywhere. A longer key fails the turn.
inline constexpr size_t kKeyBytes = 4096;

// Limits of the kernel and its queues.

// Inputs that wait for the kernel of one shard. Further inputs are refused with `exhausted`, and
// the caller may retry.
inline constexpr size_t kQueuedInputs = 100'000;
// Turns that stay open for a receipt. Each holds its writes in memory. Further turns are refused
// with `exhausted`.
inline constexpr size_t kOpenTurns = 10'000;
// Size of a commit group: the turns that one journal append makes durable together. A group that
// reaches either limit is closed, and the next turn begins a new group.
inline constexpr size_t kGroupBytes = 8 * 1024 * 1024;
inline constexpr size_t kGroupTurns = 4096;
// How long the answer to a request is kept under its Idempotency-Key. A repeat after that runs
// again.
inline constexpr int64_t kIdempotencySeconds = 24 * 3600;
// Size of an Idempotency-Key. A longer key is refused with `invalid`.
inline constexpr size_t kIdempotencyKeyBytes = 255;

// Size of the answer of a program to an effect of another shard: it is kept until the other shard
// has settled the effect. A larger answer becomes a refusal.
inline constexpr size_t kReceiptBytes = 64 * 1024;

// Limits of the HTTP server.

// Size of a request's head (request line and headers). Bearer tokens with many roles are the
// largest that legitimate clients send. A larger head is answered with 431.
inline constexpr size_t kHeadBytes = 64 * 1024;
// Number of headers of a request. More are answered with 431.
inline constexpr size_t kHeaderCount = 256;
// Size of a chunk's size line with its extensions, and of all trailers together. Legitimate clients
// send far less. More is answered with 400.
inline constexpr size_t kChunkLineBytes = 1024;
// Open connections. Each costs a descriptor and some kilobytes. Further connections are answered
// with 503 and Retry-After.
inline constexpr size_t kConnections = 10'000;
// Requests of one connection that wait for their answers. The server reads no further requests of
// that connection until some are answered.
inline constexpr size_t kPipelinedRequests = 256;
// Answers of one connection that its peer has not read yet. The server reads no further requests of
// that connection until the peer has read some.
inline constexpr size_t kUnsentBytes = 1024 * 1024;
// Data of a stream that its reader has not read yet. The stream is then closed; the reader can
// reconnect and continue from the last event that it saw.
inline constexpr size_t kStreamBytes = 4 * 1024 * 1024;
// Search results that are streamed at the same time, in all and to the callers of one tenant. Each
// holds a snapshot of the rows, which keeps old files and memory in use, until its client has read
// the result. Further searches with a large result are answered with 429.
inline constexpr size_t kStreamedSearches = 256;
inline constexpr size_t kTenantStreamedSearches = 64;
// Size of a search result that is answered as one text (the older path of searches, a page of a
// search job). A larger one is answered with 422, which names the way to read it in parts.
inline constexpr size_t kWholeResultBytes = 64 * 1024 * 1024;
// Size of a WebSocket message, all fragments together. A larger message closes the connection with
// status 1009.
inline constexpr size_t kWebSocketMessageBytes = 1024 * 1024;
// Time from the first byte of a request to its last. A slower request is answered with 408, so
// that clients that send one byte at a time (slow loris) cannot hold connections.
inline constexpr int64_t kRequestSeconds = 30;
// Time that a connection may stay open without a request. It is then closed.
inline constexpr int64_t kIdleSeconds = 120;
// Time in which a peer reads nothing of the answers that wait for it. Its connection is then
// closed.
inline constexpr int64_t kStalledSeconds = 30;
// A stream that was silent for this long sends a keepalive. Proxies would otherwise take the
// connection for dead, and the write shows the server that the reader has gone.
inline constexpr int64_t kKeepaliveSeconds = 15;
// Our clients reconnect after this much silence on a stream: four missed keepalives.
inline constexpr int64_t kClientSilenceSeconds = 60;
// After a refusal the server still reads and discards what the peer sends, up to either limit:
// closing at once would make the peer see a reset in place of the answer.
inline constexpr int64_t kLingerSeconds = 2;
inline constexpr size_t kLingerBytes = 64 * 1024 * 1024;
// At shutdown, requests have this long to be answered, and open streams this long to end. What is
// left is then closed.
inline constexpr int64_t kStopSeconds = 30;
inline constexpr int64_t kStopStreamSeconds = 2;

// Limits of authentication, metrics and gRPC.

// Tokens whose verification is cached. When the cache is full it drops expired tokens first, then
// the others; a dropped token is verified again when it is next used.
inline constexpr size_t kVerifiedTokens = 10'000;
// Clients and addresses whose failed logins are remembered. When the table is full, the entry that
// expires first is dropped.
inline constexpr size_t kLoginKeys = 20'000;
// Size of a bearer token. A longer token is refused as unauthenticated.
inline constexpr size_t kTokenBytes = 16 * 1024;
// Combinations of label values of one metric. Further combinations are counted together under the
// label value "other".
inline constexpr size_t kMetricSeries = 1000;
// Size of a gRPC message in either direction. gRPC refuses larger messages with
// RESOURCE_EXHAUSTED.
inline constexpr size_t kGrpcMessageBytes = 64 * 1024 * 1024;

}  // namespace pawl::limits
