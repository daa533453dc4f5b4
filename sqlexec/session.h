// One SQLite connection that runs untrusted queries: see session.c.
#ifndef CAPER_SESSION_H
#define CAPER_SESSION_H

#include <stdint.h>

typedef struct {
  struct sqlite3 *db;
  int64_t deadline_ns;
  int trusted;    // the running statement is our own
  int denied;     // the authorizer refused something
  int timed_out;  // the deadline or the limit of instructions passed
  int64_t instructions, most_instructions;
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
  int64_t instructions;  // of SQLite's machine; 0 for any number
} bounds;

// Limits that are the same for every query, because no honest one comes near.
enum {
  MAX_SQL_BYTES = 100000,
  MAX_CELL_BYTES = 1 << 20,
  // SQLite may work in this many times the memory that the result may take.
  HEAP_PER_RESULT = 4,
};

// session_open opens the file that uri names; on failure it returns NULL and sets
// *message, which the caller frees.
session *session_open(const char *uri, char **message);
void session_close(session *);

// session_run runs the statement in the size bytes at sql, which end in NUL. A
// trusted one may read pragma table functions.
void session_run(session *, const char *sql, int size, int trusted, bounds, outcome *);

void outcome_free(outcome *);

// now_ns is a clock that only runs forward.
int64_t now_ns(void);

#endif
