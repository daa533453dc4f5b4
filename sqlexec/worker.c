// A worker is a process that runs queries for the program that started it, so that
// whatever a query does can be ended by killing a process. It is the same
// executable: the constructor below notices the environment variable before Go's
// runtime starts, and answers requests instead. So every program that contains this
// package, a test too, has workers; and a worker is one thread of C that starts in
// a millisecond, and whose memory is SQLite's alone.

#define _GNU_SOURCE

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sqlite_api.h"
#include "wire.h"

static void limit(int what, rlim_t most) {
  struct rlimit now;
  getrlimit(what, &now);
  now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
  setrlimit(what, &now);
}

// confine gives up what no query needs: other programs' rights, writing any
// file, a core dump of the user's data, what the parent may have left open.
static void confine(void) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 64);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) close(fd);
}

// limit_memory bounds what SQLite may take for the next query, beyond what it
// holds already for open databases. The address space bounds everything else.
static void limit_memory(int64_t result_bytes) {
  static int64_t now;
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + HEAP_PER_RESULT * result_bytes);
  if (now == result_bytes) return;
  now = result_bytes;
  limit(RLIMIT_AS, ((rlim_t)1 << 30) + 4 * HEAP_PER_RESULT * result_bytes);
}

// return_memory hands what a large query took back to the system.
static void return_memory(void) {
  if (sqlite3_memory_highwater(1) - sqlite3_memory_used() > 32 << 20) malloc_trim(0);
}

// Requests that were read. The first one is being answered.
static _Alignas(request) char incoming[MAX_REQUEST_BYTES];
static size_t incoming_bytes;

static size_t size_of(const request *q) { return sizeof *q + q->uri_bytes + 1 + q->sql_bytes + 1; }

// whole_request says whether all of a request was read.
static int whole_request(const char *at, size_t bytes) {
  request q;
  if (bytes < sizeof q) return 0;
  memcpy(&q, at, sizeof q);
  return bytes >= size_of(&q);
}

// next_request passes over the request that was answered, if any, and waits for a
// whole one. There is none when the parent is gone.
static request *next_request(const request *answered) {
  request *q = (request *)incoming;
  if (answered) {
    size_t done = size_of(answered);
    memmove(incoming, incoming + done, incoming_bytes -= done);
  }
  while (!whole_request(incoming, incoming_bytes)) {
    if (incoming_bytes == sizeof incoming) return NULL;
    ssize_t n = read(STDIN_FILENO, incoming + incoming_bytes, sizeof incoming - incoming_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return NULL;
    incoming_bytes += n;
  }
  return q;
}

// another_waits says whether the request behind q was read, too.
static int another_waits(const request *q) {
  size_t done = size_of(q);
  return whole_request(incoming + done, incoming_bytes - done);
}

// Replies that wait for those to the requests behind them: they leave together.
static char outgoing[32 << 10];
static size_t outgoing_bytes;

// answer sends a reply, or keeps it if it is short and another will follow; 0 when
// the parent is gone.
static int answer(const outcome *out, int64_t elapsed_ns, int another) {
  reply head = {
      .end = out->end,
      .code = out->code,
      .columns = out->columns,
      .truncated = out->truncated,
      .rows = out->rows,
      .elapsed_ns = elapsed_ns,
      .message_bytes = out->message ? strlen(out->message) : 0,
      .cells_bytes = out->end == OUTCOME_DONE ? out->size : 0,
  };
  struct iovec parts[] = {{outgoing, outgoing_bytes},
                          {&head, sizeof head},
                          {out->message, head.message_bytes},
                          {out->cells, head.cells_bytes}};
  if (another && sizeof head + head.message_bytes + head.cells_bytes <= sizeof outgoing - outgoing_bytes) {
    for (int i = 1; i < 4; i++) {
      if (parts[i].iov_len) memcpy(outgoing + outgoing_bytes, parts[i].iov_base, parts[i].iov_len);
      outgoing_bytes += parts[i].iov_len;
    }
    return 1;
  }
  outgoing_bytes = 0;
  for (int i = 0; i < 4;) {
    ssize_t n = writev(STDOUT_FILENO, parts + i, 4 - i);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 0;
    for (; i < 4 && (size_t)n >= parts[i].iov_len; i++) n -= parts[i].iov_len;
    if (i < 4) {
      parts[i].iov_base = (char *)parts[i].iov_base + n;
      parts[i].iov_len -= n;
    }
  }
  return 1;
}

// session_of returns the session of the request's database. The ones used last
// stay open; reading a schema takes longer than most queries.
static session *session_of(const request *q, const char *uri, char **message) {
  static struct {
    int64_t database, used;
    session *session;
  } kept[32], *oldest;
  static int64_t time;

  oldest = kept;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    if (kept[i].session && kept[i].database == q->database) {
      kept[i].used = ++time;
      return kept[i].session;
    }
    if (kept[i].used < oldest->used) oldest = &kept[i];
  }
  session *s = session_open(uri, message);
  if (!s) return NULL;
  if (oldest->session) session_close(oldest->session);
  oldest->database = q->database;
  oldest->used = ++time;
  oldest->session = s;
  return s;
}

__attribute__((constructor)) static void serve(void) {
  if (!getenv("CAPER_SQL_WORKER")) return;
  prctl(PR_SET_NAME, "caper-sql-worker");
  confine();
  for (request *q = NULL; (q = next_request(q));) {
    const char *uri = incoming + sizeof *q, *sql = uri + q->uri_bytes + 1;
    outcome out = {0};
    limit_memory(q->limits.bytes);
    int64_t start = now_ns();
    session *s = session_of(q, uri, &out.message);
    if (s) {
      session_run(s, sql, q->sql_bytes, q->trusted, q->limits, &out);
    } else {
      out.end = OUTCOME_ENGINE_ERROR;
      out.code = SQLITE_CANTOPEN;
    }
    if (!answer(&out, now_ns() - start, another_waits(q))) break;
    outcome_free(&out);
    return_memory();
  }
  _exit(0);
}
