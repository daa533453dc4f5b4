// One SQLite connection that runs untrusted queries: see session.c.
#ifndef CAPER_SESSION_H
#define CAPER_SESSION_H

#include <stdint.h>

typedef struct {
  struct sqlite3 *db;
  int64_t deadline_ns;
  int trusted;        // the running statement is our own
  int denied;         // the authorizer refused something
  int timed_out;      // the deadline passed
  int32_t cancelled;  // set to 1 from any thread: stop
} session;

// How a query ended. Everything but OUTCOME_DONE and OUTCOME_ENGINE_ERROR is
// our own refusal.
enum {
  OUTCOME_DONE,
  OUTCOME_ENGINE_ERROR,  // code and message are SQLite's
  OUTCOME_DENIED,        // the authorizer refused an action; message is SQLite's
  OUTCOME_EMPTY,         // no statement in the text
  OUTCOME_NOT_SELECT,    // a statement that gives no rows, or EXPLAIN
  OUTCOME_SECOND_STATEMENT,
  OUTCOME_PARAMETERS,  // bind parameters: there is nothing to bind
  OUTCOME_TIMEOUT,
  OUTCOME_CANCELLED,
  OUTCOME_RESULT_TOO_LARGE,
};

// The outcome of a query. cells holds the column names as text cells, then the
// rows; a cell is a type byte (SQLITE_INTEGER...), then 8 bytes of a number or
// 4 bytes of length and the bytes of a text or blob, all little endian.
typedef struct {
  int end;
  int code;
  char *message;
  int columns;
  int64_t rows;
  int truncated;
  unsigned char *cells;
  int64_t size, capacity;
} outcome;

typedef struct {
  int64_t timeout_ns, rows, bytes;
} bounds;

// session_open opens the file that uri names; on failure it returns NULL and sets
// *message, which the caller frees.
session *session_open(const char *uri, int max_cell_bytes, int max_sql_bytes, char **message);
void session_close(session *);

// session_run runs the statement in the size bytes at sql, which end in NUL. A
// trusted one may read pragma table functions.
void session_run(session *, const char *sql, int size, int trusted, bounds, outcome *);

void outcome_free(outcome *);

// heap_limit bounds the memory that all connections of the process may take
// beyond what they hold now when above_use is 1, in all when it is 0.
void heap_limit(int64_t bytes, int above_use);

#endif
