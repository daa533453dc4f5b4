// What goes through the pipes between the program and a worker: a request into its
// standard input, then a reply out of its standard output. Both ends are the same
// executable, so structs travel as they are.
#ifndef CAPER_WIRE_H
#define CAPER_WIRE_H

#include "session.h"

// MAX_REQUEST_BYTES is room for the longest query and the longest path, escaped.
enum { MAX_REQUEST_BYTES = 128 << 10 };

// A request asks for one query. The text of the URI and of the query follow, each
// with a NUL behind it.
typedef struct {
  int64_t database;  // two requests with the same number name the same file
  bounds limits;
  int32_t trusted;
  int32_t uri_bytes, sql_bytes;  // without the NUL
} request;

// A reply is the outcome of a query. The bytes of the message and the packed cells
// follow.
typedef struct {
  int32_t end;   // OUTCOME_...
  int32_t code;  // SQLite's extended error code
  int32_t columns;
  int32_t truncated;
  int64_t rows;
  int64_t elapsed_ns;
  int64_t message_bytes, cells_bytes;
} reply;

#endif
