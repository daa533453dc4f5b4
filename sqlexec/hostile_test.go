package sqlexec

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Texts that hostile queries are made of.
func repeated(n int, text string) string { return strings.Repeat(text, n) }

func nested(n int, open, inner, end string) string {
	return repeated(n, open) + inner + repeated(n, end)
}

// endless counts up for ever.
const endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "

// megabyte is close to the longest text that a cell may hold.
const megabyte = "printf('%.*c', 1000000, 'a')"

// doublingCTEs reads 2^n rows with a text of length n.
func doublingCTEs(n int) string {
	text := "WITH c0 AS (SELECT 1 AS x)"
	for i := range n {
		text += fmt.Sprintf(", c%d AS (SELECT a.x FROM c%d a, c%d b)", i+1, i, i)
	}
	return text + fmt.Sprintf(" SELECT count(*) FROM c%d", n)
}

// ended is the "failure" of a query that is strange but honest: it has a result.
const ended Failure = ""

// hostile lists what may stand in a file of candidates. Tables: item of three rows,
// n of 2,000.
var hostile = []struct {
	name, query string
	want        Failure
}{
	// Too long: these end at the deadline.
	{"recursion without end", endless + "SELECT count(*) FROM r", Timeout},
	{"recursion in a filter", "SELECT 1 FROM item WHERE id > (" + endless + "SELECT max(x) FROM r)", Timeout},
	{"recursion that never joins", endless + "SELECT * FROM r WHERE x < 0", Timeout},
	{"cross join", "SELECT count(*) FROM n a, n b, n c, n d", Timeout},
	{"cross join with filter", "SELECT a.i FROM n a, n b, n c WHERE a.i + b.i + c.i < 0", Timeout},
	{"cross join of random blobs", "SELECT max(randomblob(1000)) FROM n a, n b, n c", Timeout},
	{"correlated subqueries", "SELECT count(*) FROM n a WHERE (SELECT count(*) FROM n b WHERE (SELECT count(*) FROM n c WHERE c.i > b.i) > a.i) > 1", Timeout},
	{"cross join by inequality", "SELECT count(*) FROM n a JOIN n b ON a.i <> b.i JOIN n c ON b.i <> c.i JOIN n d ON c.i <> d.i", Timeout},
	{"json_each upon json_each", "SELECT count(*) FROM n a, json_each('[1,2,3,4,5,6,7,8,9]') b, json_each('[1,2,3,4,5,6,7,8,9]') c, json_each('[1,2,3,4,5,6,7,8,9]') d, n e", Timeout},
	{"order by random of a cross join", "SELECT 1 FROM n a, n b, n c ORDER BY random() LIMIT 1", Timeout},

	// One instruction that holds SQLite beyond the deadline: only a kill ends it.
	{"instr in one instruction", "SELECT instr(zeroblob(1000000), CAST(zeroblob(500000) || 'x' AS BLOB))", Timeout},
	{"trim in one instruction", "SELECT trim(" + megabyte + ", printf('%.*c', 80000, 'b') || 'a')", Timeout},
	{"LIKE in one instruction", "SELECT " + megabyte + " LIKE '%" + repeated(900, "a") + "b'", Timeout},
	{"GLOB in one instruction", "SELECT " + megabyte + " GLOB '*" + repeated(900, "[a-z]")[:990] + "b'", Timeout},
	{"replace in one instruction", "SELECT replace(" + megabyte + ", printf('%.*c', 500000, 'a') || 'b', '')", Timeout},

	// Too much memory.
	{"zeroblob", "SELECT zeroblob(400000000)", Memory},
	{"length of zeroblob", "SELECT length(zeroblob(4e8))", Memory},
	{"randomblob", "SELECT randomblob(1000000000)", Memory},
	{"randomblob, many", "SELECT randomblob(1000000) FROM n", Memory},
	{"hex", "SELECT hex(zeroblob(900000))", Memory},
	{"quote", "SELECT quote(zeroblob(900000))", Memory},
	{"printf width", "SELECT printf('%1000000000d', 1)", Memory},
	{"printf precision", "SELECT printf('%.*c', 1000000000, 'x')", Memory},
	{"replace that grows", "SELECT replace(printf('%.*c', 1000000, 'x'), 'x', 'yyyyyyyy')", Memory},
	{"concatenation that doubles", "WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r", Memory},
	{"group_concat", "SELECT group_concat(printf('%.*c', 10000, 'x')) FROM n", Memory},
	{"json_group_array", "SELECT json_group_array(printf('%.*c', 10000, 'x')) FROM n", Memory},
	{"json_object of long texts", "SELECT json_object('a', " + megabyte + ", 'b', " + megabyte + ")", Memory},
	{"sort of long texts", "SELECT randomblob(100000) x FROM n ORDER BY x LIMIT -1 OFFSET 1999", Memory},
	{"distinct long texts", "SELECT count(DISTINCT randomblob(100000)) FROM n", Memory},
	{"recursion that remembers", "WITH RECURSIVE r(x) AS (SELECT randomblob(100000) UNION SELECT randomblob(100000) FROM r) SELECT count(*) FROM r", Memory},
	{"window over a cross join", "SELECT sum(a.i) OVER (ORDER BY b.i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM n a, n b, n c", Memory},
	{"window that grows text", "SELECT max(length(x)) FROM (SELECT group_concat(a.i) OVER (ORDER BY a.i ROWS BETWEEN 1000 PRECEDING AND CURRENT ROW) x FROM n a, n b)", Memory},
	{"wide row of long texts", "SELECT " + repeated(1500, "randomblob(900000), ") + "1", Memory},
	{"a materialized table", "WITH m AS MATERIALIZED (SELECT randomblob(100000) x FROM n) SELECT count(*) FROM m a, m b", Memory},

	// Too long or too deep a text.
	{"a million parentheses", "SELECT " + nested(1_000_000, "(", "1", ")"), Memory},
	{"parentheses within the length", "SELECT " + nested(40_000, "(", "1", ")"), Memory},
	{"NOT NOT NOT", "SELECT " + repeated(20_000, "NOT ") + "1", Memory},
	{"a sum of 40,000", "SELECT " + repeated(40_000, "1+") + "1", Memory},
	{"nested CASE", "SELECT " + nested(3_000, "CASE WHEN 1 THEN ", "1", " END"), Memory},
	{"nested functions", "SELECT " + nested(9_000, "abs(", "1", ")"), Memory},
	{"nested subqueries", "SELECT * FROM " + nested(4_000, "(SELECT * FROM ", "n", ")"), Memory},
	{"6,000 unions", "SELECT 1" + repeated(6_000, " UNION SELECT 1"), Memory},
	{"a join of 80", "SELECT 1 FROM " + repeated(80, "n, ") + "n", Memory},
	{"doubling common table expressions", doublingCTEs(30), Memory},
	{"3,000 columns", "SELECT " + repeated(3_000, "1, ") + "1", Memory},
	{"3,000 sort keys", "SELECT 1 FROM n ORDER BY " + repeated(3_000, "i, ") + "i", Memory},
	{"2,000 arguments", "SELECT max(" + repeated(2_000, "1, ") + "1)", Memory},
	{"a LIKE pattern of 50,000", "SELECT 'a' LIKE '" + repeated(25_000, "%a") + "'", Memory},
	{"a text of 1 MB", "SELECT '" + repeated(1_000_000, "x") + "'", Memory},
	{"an IN list of 45,000", "SELECT 1 IN (" + repeated(45_000, "2,") + "3)", ended},
	{"VALUES of 15,000 rows", "SELECT count(*) FROM (VALUES (1)" + repeated(15_000, ",(1)") + ")", ended},
	{"a name of 90,000 letters", "SELECT " + repeated(90_000, "x"), NoSuchName},
	{"deep JSON", "SELECT json('" + nested(40_000, "[", "", "]") + "')", Runtime},
	{"json_tree of deep JSON", "SELECT count(*) FROM json_tree('" + nested(40_000, `{"a":`, "1", "}")[:90_000] + "')", Runtime},

	// Reaching out.
	{"ATTACH", "ATTACH 'other.db' AS other", NotSelect},
	{"ATTACH of a URI", "ATTACH 'file:other.db?mode=rwc' AS other", NotSelect},
	{"DETACH", "DETACH main", NotSelect},
	{"PRAGMA", "PRAGMA journal_mode = WAL", NotSelect},
	{"PRAGMA that reads", "PRAGMA table_info(item)", NotSelect},
	{"PRAGMA that lets write", "PRAGMA writable_schema = 1", NotSelect},
	{"pragma table function", "SELECT * FROM pragma_table_info('item')", NotSelect},
	{"pragma_database_list", "SELECT file FROM pragma_database_list", NotSelect},
	{"load_extension", "SELECT load_extension('/lib/x.so')", NotSelect},
	{"readfile", "SELECT readfile('/etc/passwd')", NoSuchName},
	{"writefile", "SELECT writefile('x', 'y')", NoSuchName},
	{"edit", "SELECT edit('x', 'vi')", NoSuchName},
	{"fts3_tokenizer", "SELECT fts3_tokenizer('simple')", NotSelect},
	{"fts3_tokenizer with a pointer", "SELECT fts3_tokenizer('mine', x'4141414141414141')", NotSelect},
	{"sqlite_dbpage", "SELECT data FROM sqlite_dbpage WHERE pgno = 1", NoSuchName},
	{"dbstat", "SELECT * FROM dbstat", NoSuchName},
	{"generate_series", "SELECT count(*) FROM generate_series(1, 1000000000000)", NoSuchName},
	{"VACUUM INTO", "VACUUM INTO 'copy.db'", NotSelect},
	{"full text table", "CREATE VIRTUAL TABLE temp.f USING fts4(x)", NotSelect},
	{"R-tree table", "CREATE VIRTUAL TABLE temp.f USING rtree(a, b, c)", NotSelect},
	{"snippet of a plain table", "SELECT snippet(item) FROM item", NoSuchName},
	{"rtreenode of rubbish", "SELECT rtreenode(2, x'00ff')", ended},

	// Writing.
	{"INSERT", "INSERT INTO item(id) VALUES (9)", NotSelect},
	{"INSERT into a view", "INSERT INTO cheap VALUES (1)", NotSelect},
	{"INSERT with RETURNING", "INSERT INTO item(id) VALUES (9) RETURNING id", NotSelect},
	{"UPDATE", "UPDATE item SET name = 'x'", NotSelect},
	{"DELETE behind a CTE", "WITH a AS (SELECT 1) DELETE FROM item", NotSelect},
	{"DROP", "DROP TABLE item", NotSelect},
	{"ALTER", "ALTER TABLE item RENAME TO x", NotSelect},
	{"temporary table", "CREATE TEMP TABLE x(y)", NotSelect},
	{"temporary trigger", "CREATE TEMP TRIGGER x AFTER INSERT ON item BEGIN SELECT 1; END", NotSelect},
	{"sqlite_master", "UPDATE sqlite_master SET sql = ''", NotSelect},
	{"sqlite_master, deleted", "DELETE FROM sqlite_master", NotSelect},
	{"BEGIN", "BEGIN EXCLUSIVE", NotSelect},
	{"SAVEPOINT", "SAVEPOINT x", NotSelect},
	{"REINDEX", "REINDEX", NotSelect},
	{"ANALYZE", "ANALYZE", NotSelect},

	// More or less than one statement.
	{"second SELECT", "SELECT 1; SELECT 2", NotSelect},
	{"second DROP", "SELECT 1; DROP TABLE item", NotSelect},
	{"second ATTACH", "SELECT 1; ATTACH 'x.db' AS x", NotSelect},
	{"a second of rubbish", "SELECT 1; and some chat", NotSelect},
	{"nothing", "", NotSelect},
	{"a comment", "-- nothing", NotSelect},
	{"an open comment", "/* nothing", NotSelect},
	{"50,000 semicolons", repeated(50_000, ";"), NotSelect},
	{"EXPLAIN", "EXPLAIN SELECT 1", NotSelect},
	{"EXPLAIN QUERY PLAN", "EXPLAIN QUERY PLAN SELECT 1", NotSelect},

	// Odd texts.
	{"NUL byte", "SELECT 1\x00 FROM item", Syntax},
	{"NUL byte at the end", "SELECT 1\x00", Syntax},
	{"invalid UTF-8 in a name", "SELECT \xff\xfe", NoSuchName},
	{"invalid UTF-8 in a text", "SELECT '\xff\xfe'", ended},
	{"byte order mark", "\ufeffSELECT 1", ended},
	{"open string", "SELECT 'open", Syntax},
	{"open bracket", "SELECT [open", Syntax},
	{"control characters", "SELECT \x01\x02", Syntax},
	{"bind parameters", "SELECT ?1, :a, @b, $c", Runtime},
	{"parameter far out", "SELECT ?32766", Runtime},
	{"parameter too far out", "SELECT ?99999999", Runtime},
	{"overflow", "SELECT abs(-9223372036854775808)", Runtime},
	{"huge number", "SELECT 1" + repeated(5_000, "0"), ended},
}

// hostileLimits end what is too long soon, and give what is too large the time to
// become so on a busy machine.
func hostileLimits(want Failure) Limits {
	l := Limits{Timeout: time.Minute, Rows: 10_000, Bytes: 8 << 20}
	if want == Timeout {
		l.Timeout = 100 * time.Millisecond
	}
	return l
}

// TestHostileQueries: nothing in a file of candidates may hang, crash or change a
// database, or keep an honest query from its result.
func TestHostileQueries(t *testing.T) {
	path := writeDatabase(t, append(shop, "CREATE TABLE n AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 2000) SELECT i FROM r")...)
	unchanged := watchFolder(t, filepath.Dir(path))
	patient, err := Open(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer patient.Close()
	databases := map[Limits]*Database{}
	for _, h := range hostile {
		l := hostileLimits(h.want)
		if databases[l] == nil {
			d, err := Open(path, l)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			databases[l] = d
		}
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			d := databases[hostileLimits(h.want)]
			if _, err := d.Query(context.Background(), h.query); failureOf(err) != h.want {
				t.Errorf("%.60q: have %.200v, want failure %q", h.query, err, h.want)
			}
			honest(t, patient)
		})
	}
	peak := workersPeakBytes(t)
	t.Logf("a worker took %d MB; SQLite may take %d, a result %d", peak>>20, 4*8, 8)
	if peak > 200<<20 {
		t.Error("too much")
	}
	unchanged()
}

// failureOf is the class of a query's failure, ended when it has none. Another kind
// of error has no class.
func failureOf(err error) Failure {
	var e *Error
	switch {
	case err == nil:
		return ended
	case errors.As(err, &e) && e.Message != "":
		return e.Failure
	}
	return "untyped: " + Failure(err.Error())
}

// watchFolder notes the files of a folder; the function it returns checks that all
// are the same and none is new.
func watchFolder(t *testing.T, dir string) (unchanged func()) {
	t.Helper()
	note := func() map[string][32]byte {
		sums := map[string][32]byte{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			sums[e.Name()] = [32]byte{}
			if e.Type().IsRegular() {
				sums[e.Name()] = sha256.Sum256(readFile(t, filepath.Join(dir, e.Name())))
			}
		}
		return sums
	}
	before := note()
	return func() {
		t.Helper()
		if diff := cmp.Diff(before, note()); diff != "" {
			t.Errorf("files changed:\n%s", diff)
		}
	}
}

// workersPeakBytes is the most memory that a worker, of those that still live,
// ever held.
func workersPeakBytes(t *testing.T) (peak int64) {
	t.Helper()
	for _, pid := range idleWorkers() {
		status := string(readFile(t, fmt.Sprintf("/proc/%d/status", pid)))
		_, line, _ := strings.Cut(status, "VmHWM:")
		kB, err := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		peak = max(peak, kB<<10)
	}
	return peak
}

// idleWorkers are the process numbers of workers that wait for a query.
func idleWorkers() (pids []int) {
	p := workers()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		pids = append(pids, w.process.Process.Pid)
	}
	return pids
}
