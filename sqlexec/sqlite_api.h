// The part of SQLite's C interface that session.c calls. The library itself is
// compiled into github.com/mattn/go-sqlite3, whose header other packages cannot
// include; the interface is stable, so its prototypes are repeated here. They are
// weak because cgo links each package alone once, before the library is there.
#ifndef CAPER_SQLITE_API_H
#define CAPER_SQLITE_API_H

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef long long int sqlite3_int64;

#define WEAK __attribute__((weak))

WEAK int sqlite3_open_v2(const char *, sqlite3 **, int, const char *);
WEAK int sqlite3_close(sqlite3 *);
WEAK int sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
WEAK int sqlite3_db_config(sqlite3 *, int, ...);
WEAK int sqlite3_limit(sqlite3 *, int, int);
WEAK int sqlite3_set_authorizer(
    sqlite3 *, int (*)(void *, int, const char *, const char *, const char *, const char *), void *);
WEAK void sqlite3_progress_handler(sqlite3 *, int, int (*)(void *), void *);
WEAK int sqlite3_extended_errcode(sqlite3 *);
WEAK const char *sqlite3_errmsg(sqlite3 *);

WEAK int sqlite3_prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
WEAK int sqlite3_step(sqlite3_stmt *);
WEAK int sqlite3_finalize(sqlite3_stmt *);
WEAK int sqlite3_stmt_readonly(sqlite3_stmt *);
WEAK int sqlite3_stmt_isexplain(sqlite3_stmt *);
WEAK int sqlite3_bind_parameter_count(sqlite3_stmt *);
WEAK int sqlite3_column_count(sqlite3_stmt *);
WEAK const char *sqlite3_column_name(sqlite3_stmt *, int);
WEAK int sqlite3_column_type(sqlite3_stmt *, int);
WEAK sqlite3_int64 sqlite3_column_int64(sqlite3_stmt *, int);
WEAK double sqlite3_column_double(sqlite3_stmt *, int);
WEAK const unsigned char *sqlite3_column_text(sqlite3_stmt *, int);
WEAK const void *sqlite3_column_blob(sqlite3_stmt *, int);
WEAK int sqlite3_column_bytes(sqlite3_stmt *, int);

WEAK sqlite3_int64 sqlite3_hard_heap_limit64(sqlite3_int64);
WEAK sqlite3_int64 sqlite3_memory_used(void);
WEAK sqlite3_int64 sqlite3_memory_highwater(int);

enum {
  SQLITE_OK = 0,
  SQLITE_ERROR = 1,
  SQLITE_DENY = 1,  // answer of an authorizer
  SQLITE_NOMEM = 7,
  SQLITE_IOERR = 10,
  SQLITE_CORRUPT = 11,
  SQLITE_CANTOPEN = 14,
  SQLITE_TOOBIG = 18,
  SQLITE_AUTH = 23,
  SQLITE_NOTADB = 26,
  SQLITE_ROW = 100,
  SQLITE_DONE = 101,
  SQLITE_IOERR_NOMEM = 10 | 12 << 8,

  SQLITE_INTEGER = 1,
  SQLITE_FLOAT = 2,
  SQLITE_TEXT = 3,
  SQLITE_BLOB = 4,
  SQLITE_NULL = 5,

  SQLITE_OPEN_READONLY = 0x1,
  SQLITE_OPEN_URI = 0x40,
  SQLITE_OPEN_NOMUTEX = 0x8000,

  // Actions an authorizer is asked about.
  SQLITE_PRAGMA = 19,
  SQLITE_READ = 20,
  SQLITE_SELECT = 21,
  SQLITE_FUNCTION = 31,
  SQLITE_RECURSIVE = 33,

  SQLITE_LIMIT_LENGTH = 0,
  SQLITE_LIMIT_SQL_LENGTH = 1,
  SQLITE_LIMIT_ATTACHED = 7,
  SQLITE_LIMIT_LIKE_PATTERN_LENGTH = 8,

  SQLITE_DBCONFIG_ENABLE_TRIGGER = 1003,
  SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER = 1004,
  SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION = 1005,
  SQLITE_DBCONFIG_DEFENSIVE = 1010,
  SQLITE_DBCONFIG_TRUSTED_SCHEMA = 1017,
};

#endif
