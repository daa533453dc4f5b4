// A session is a read-only SQLite connection that cannot be talked into anything
// but reading its own file: an authorizer admits only the actions of a SELECT, and
// a progress handler, which SQLite calls on the query's own thread every thousand
// instructions, stops it at its deadline or after so many of them. No timer or interrupt exists that could
// come late and hit the next query on the connection.
//
// A whole query is one call: its rows are packed into one buffer, which goes
// through the worker's pipe (worker.c) as it is.

#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "sqlite_api.h"

int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int must_stop(session *s) { return s->timed_out = now_ns() > s->deadline_ns; }

// Instructions between two calls of the progress handler.
enum { STRIDE = 1000 };

static int progress(void *arg) {
  session *s = arg;
  s->instructions += STRIDE;
  if (s->most_instructions && s->instructions > s->most_instructions) return s->timed_out = 1;
  return must_stop(s);
}

// Functions that reach out of the database, whether or not this build has them.
static int function_is_unsafe(const char *name) {
  static const char *const unsafe[] = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"};
  for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
    if (strcasecmp(name, unsafe[i]) == 0) return 1;
  return 0;
}

static int authorize(void *arg, int action, const char *a, const char *b, const char *c, const char *d) {
  session *s = arg;
  (void)a, (void)c, (void)d;
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (b && !function_is_unsafe(b)) return SQLITE_OK;
      break;
    case SQLITE_PRAGMA:
      if (s->trusted) return SQLITE_OK;
  }
  s->denied = 1;
  return SQLITE_DENY;
}

session *session_open(const char *uri, char **message) {
  session *s = calloc(1, sizeof *s);
  if (!s) {
    *message = strdup("out of memory");
    return NULL;
  }
  int rc = sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
  if (rc == SQLITE_OK) {
    // Temporary tables and sorts live in memory: nothing is written anywhere, and the heap limit covers them.
    rc = sqlite3_exec(s->db, "PRAGMA query_only = 1; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = 1", NULL, NULL,
                      NULL);
  }
  if (rc != SQLITE_OK) {
    *message = strdup(s->db ? sqlite3_errmsg(s->db) : "out of memory");
    session_close(s);
    return NULL;
  }
  sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, NULL);
  sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
  sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES);
  sqlite3_limit(s->db, SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES);
  sqlite3_limit(s->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
  sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(s->db, authorize, s);
  sqlite3_progress_handler(s->db, STRIDE, progress, s);
  return s;
}

void session_close(session *s) {
  sqlite3_close(s->db);
  free(s);
}

// reserve makes room for n more bytes of cells.
static int reserve(outcome *out, int64_t n) {
  if (out->size + n <= out->capacity) return 1;
  int64_t capacity = 2 * (out->size + n) + 512;
  unsigned char *cells = realloc(out->cells, capacity);
  if (!cells) return 0;
  out->cells = cells;
  out->capacity = capacity;
  return 1;
}

static int put_bytes(outcome *out, int type, const void *bytes, int32_t n) {
  if (!reserve(out, 5 + (int64_t)n)) return 0;
  out->cells[out->size] = type;
  memcpy(out->cells + out->size + 1, &n, 4);
  if (n) memcpy(out->cells + out->size + 5, bytes, n);
  out->size += 5 + (int64_t)n;
  return 1;
}

static int put_number(outcome *out, int type, const void *number) {
  if (!reserve(out, 9)) return 0;
  out->cells[out->size] = type;
  memcpy(out->cells + out->size + 1, number, 8);
  out->size += 9;
  return 1;
}

// put_cell appends column i of the current row; 0 when memory is out.
static int put_cell(outcome *out, sqlite3_stmt *stmt, int i) {
  int type = sqlite3_column_type(stmt, i);
  const void *bytes;
  switch (type) {
    case SQLITE_INTEGER: {
      sqlite3_int64 v = sqlite3_column_int64(stmt, i);
      return put_number(out, type, &v);
    }
    case SQLITE_FLOAT: {
      double v = sqlite3_column_double(stmt, i);
      return put_number(out, type, &v);
    }
    case SQLITE_TEXT:
      bytes = sqlite3_column_text(stmt, i);
      return bytes && put_bytes(out, type, bytes, sqlite3_column_bytes(stmt, i));
    case SQLITE_BLOB:
      bytes = sqlite3_column_blob(stmt, i);
      return put_bytes(out, type, bytes, sqlite3_column_bytes(stmt, i));
  }
  if (!reserve(out, 1)) return 0;
  out->cells[out->size++] = SQLITE_NULL;
  return 1;
}

static void engine_error(session *s, outcome *out) {
  out->code = sqlite3_extended_errcode(s->db);
  // Virtual tables ask for things of their own and do without what they are denied.
  int refused = s->denied && (out->code == SQLITE_AUTH || out->code == SQLITE_ERROR);
  out->end = s->timed_out ? OUTCOME_TIMEOUT : refused ? OUTCOME_DENIED : OUTCOME_ENGINE_ERROR;
  out->message = strdup(sqlite3_errmsg(s->db));
}

static void out_of_memory(outcome *out) {
  out->end = OUTCOME_ENGINE_ERROR;
  out->code = SQLITE_NOMEM;
  out->message = strdup("out of memory");
}

// only_blank says whether nothing but space, comments and semicolons is left.
static int only_blank(session *s, const char *tail, const char *end) {
  while (tail < end) {
    sqlite3_stmt *stmt = NULL;
    const char *rest = end;
    int rc = sqlite3_prepare_v2(s->db, tail, (int)(end - tail) + 1, &stmt, &rest);
    sqlite3_finalize(stmt);
    if (rc != SQLITE_OK || stmt) return 0;
    tail = rest;
  }
  return 1;
}

// refusal names what is wrong with a statement that SQLite accepts, or OUTCOME_DONE.
static int refusal(session *s, sqlite3_stmt *stmt, const char *tail, const char *end) {
  if (!stmt) return OUTCOME_EMPTY;
  if (sqlite3_column_count(stmt) == 0 || !sqlite3_stmt_readonly(stmt) || sqlite3_stmt_isexplain(stmt))
    return OUTCOME_NOT_SELECT;
  if (!only_blank(s, tail, end)) return OUTCOME_SECOND_STATEMENT;
  if (sqlite3_bind_parameter_count(stmt) > 0) return OUTCOME_PARAMETERS;
  return OUTCOME_DONE;
}

// A cell costs this much beside its packed bytes once Go has unpacked it.
enum { CELL_OVERHEAD = 24 };

static void fetch(session *s, sqlite3_stmt *stmt, bounds b, outcome *out) {
  int columns = out->columns = sqlite3_column_count(stmt);
  for (int i = 0; i < columns; i++) {
    const char *name = sqlite3_column_name(stmt, i);
    if (!name || !put_bytes(out, SQLITE_TEXT, name, (int32_t)strlen(name))) return out_of_memory(out);
  }
  // The handler looks between instructions; a single long one is noticed here.
  int rc;
  while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !must_stop(s)) {
    if (out->rows == b.rows) {
      out->truncated = 1;
      return;
    }
    for (int i = 0; i < columns; i++) {
      if (!put_cell(out, stmt, i)) return out_of_memory(out);
      if (out->size + (out->rows * columns + i + 1) * CELL_OVERHEAD > b.bytes) {
        out->end = OUTCOME_RESULT_TOO_LARGE;
        return;
      }
    }
    out->rows++;
  }
  if (rc != SQLITE_DONE || must_stop(s)) engine_error(s, out);
}

void session_run(session *s, const char *sql, int size, int trusted, bounds b, outcome *out) {
  memset(out, 0, sizeof *out);
  s->trusted = trusted;
  s->denied = s->timed_out = 0;
  s->deadline_ns = now_ns() + b.timeout_ns;
  s->instructions = 0;
  s->most_instructions = b.instructions;

  sqlite3_stmt *stmt = NULL;
  const char *tail = NULL;
  if (sqlite3_prepare_v2(s->db, sql, size + 1, &stmt, &tail) != SQLITE_OK) {
    engine_error(s, out);
  } else if ((out->end = refusal(s, stmt, tail, sql + size)) == OUTCOME_DONE) {
    fetch(s, stmt, b, out);
  }
  sqlite3_finalize(stmt);
}

void outcome_free(outcome *out) {
  free(out->message);
  free(out->cells);
}
