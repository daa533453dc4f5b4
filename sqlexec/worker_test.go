package sqlexec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// oneInstruction is a query that SQLite does not look up from for many seconds.
const oneInstruction = "SELECT instr(zeroblob(1000000), CAST(zeroblob(500000) || 'x' AS BLOB))"

// honest asks d for something and checks the answer.
func honest(t *testing.T, d *Database) {
	t.Helper()
	r, err := d.Query(context.Background(), "SELECT count(*), sum(price) FROM item")
	if err != nil || r.Rows[0][0] != int64(3) || r.Rows[0][1] != 10.5 {
		t.Errorf("an honest query: %v, %v", r, err)
	}
}

// children are the processes whose parent is this one.
func children(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// number (name) state parent ...; a name may hold anything.
		number, rest, _ := strings.Cut(string(text), " ")
		fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:])
		if fields[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(number)
			pids = append(pids, pid)
		}
	}
	return pids
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestHostileAmongHonest alternates a thousand queries on several goroutines. All
// end as they must, and nothing is left behind.
func TestHostileAmongHonest(t *testing.T) {
	path := writeDatabase(t, shop...)
	files, processes := openFiles(t), len(children(t))
	d, err := Open(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	impatient, err := Open(path, Limits{Timeout: 10 * time.Millisecond, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	hostile := []struct {
		d     *Database
		query string
		want  Failure
	}{
		{impatient, endless + "SELECT count(*) FROM r", Timeout},
		{d, "SELECT zeroblob(1e9)", Memory},
		{d, "ATTACH 'x.db' AS x", NotSelect},
		{d, "SELECT " + nested(20_000, "(", "1", ")"), Memory},
		{d, "SELECT 1; SELECT 2", NotSelect},
		{d, "SELECT nope", NoSuchName},
		{d, "SELECT 1\x00", Syntax},
	}
	var wg sync.WaitGroup
	const goroutines, rounds = 4, 125
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				h := hostile[(g+i)%len(hostile)]
				if i == 60 {
					h.d, h.query, h.want = impatient, oneInstruction, Timeout
				}
				if _, err := h.d.Query(context.Background(), h.query); failureOf(err) != h.want {
					t.Errorf("%.40q: have %.100v, want failure %q", h.query, err, h.want)
				}
				honest(t, d)
			}
		})
	}
	wg.Wait()
	if n := len(children(t)) - processes; n > cap(workers().turns) {
		t.Errorf("%d workers", n)
	}
	d.Close()
	impatient.Close()
	if n := len(children(t)) - processes; n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if n := openFiles(t) - files; n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
}

// TestWorkersKilledByOthers: whatever kills workers, every query has its result or
// a class of failure.
func TestWorkersKilledByOthers(t *testing.T) {
	d := openShop(t)
	const enough = 60
	var kills atomic.Int64
	go func() {
		for kills.Load() < enough {
			for _, pid := range children(t) {
				syscall.Kill(pid, syscall.SIGKILL)
				kills.Add(1)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; kills.Load() < enough; i++ {
				r, err := d.Query(context.Background(), fmt.Sprintf("SELECT %d, count(*) FROM item a, item b, item c, item d", i))
				switch {
				case err == nil && r.Rows[0][0] == int64(i) && r.Rows[0][1] == int64(81):
				case failureOf(err) == Memory:
				default:
					t.Errorf("query %d: %v, %v", i, r, err)
				}
			}
		})
	}
	wg.Wait()
	honest(t, d)
}

// TestDeathInAQuery: one death of a worker goes unnoticed; a query that loses every
// worker fails with a class.
func TestDeathInAQuery(t *testing.T) {
	d := openShop(t)
	// Long enough to be hit, and it ends.
	slow := "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 2000000) SELECT count(*) FROM r"
	for deaths, want := range map[int]Failure{1: ended, attempts: Memory} {
		result := make(chan error)
		go func() {
			_, err := d.Query(context.Background(), slow)
			result <- err
		}()
		hit := map[int]bool{}
		for len(hit) < deaths {
			for _, pid := range children(t) {
				if !hit[pid] && len(hit) < deaths && busy(pid) {
					hit[pid] = true
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		if err := <-result; failureOf(err) != want {
			t.Errorf("%d deaths: %v, want failure %q", deaths, err, want)
		}
	}
	honest(t, d)
}

// busy tells a worker that runs a query from one that waits for it.
func busy(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	state := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))[0]
	return state == "R" && strings.HasPrefix(string(cmdline), "caper-sql-worker")
}

// TestStoppedWorker: a worker that does nothing at all is replaced too.
func TestStoppedWorker(t *testing.T) {
	d, err := Open(writeDatabase(t, shop...), Limits{Timeout: time.Second, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, pid := range idleWorkers() {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	if _, err := d.Query(context.Background(), "SELECT 1"); failureOf(err) != Timeout {
		t.Errorf("have %v, want a timeout", err)
	}
	honest(t, d)
}

// TestCancelEndsOneInstruction: the end of a context does not wait for SQLite.
func TestCancelEndsOneInstruction(t *testing.T) {
	d, err := Open(writeDatabase(t, shop...), Limits{Timeout: time.Hour, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	// More queries than workers, so that some are cancelled while they wait.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 * cap(workers().turns) {
		wg.Go(func() {
			if _, err := d.Query(ctx, oneInstruction); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("have %v, want the context's error", err)
			}
		})
	}
	wg.Wait()
	honest(t, d)
}

// TestManyDatabases: more than a worker keeps open, in turn.
func TestManyDatabases(t *testing.T) {
	var all []*Database
	for i := range 70 {
		d, err := Open(writeDatabase(t, fmt.Sprintf("CREATE TABLE t AS SELECT %d AS x", i)), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		all = append(all, d)
	}
	for i := range 300 {
		i = i * 31 % len(all)
		if r, err := all[i].Query(context.Background(), "SELECT x FROM t"); err != nil || r.Rows[0][0] != int64(i) {
			t.Errorf("database %d: %v, %v", i, r, err)
		}
	}
}

// TestWorkersAreConfined: they cannot write files or dump the user's data, and hold
// nothing of ours open.
func TestWorkersAreConfined(t *testing.T) {
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inherited, err := syscall.Dup(int(f.Fd())) // without close-on-exec, as C libraries do
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)

	d := openShop(t)
	honest(t, d)
	pid := idleWorkers()[0]
	limits := string(readFile(t, fmt.Sprintf("/proc/%d/limits", pid)))
	for _, name := range []string{"Max core file size", "Max file size"} {
		_, line, _ := strings.Cut(limits, name)
		if soft := strings.Fields(line)[0]; soft != "0" {
			t.Errorf("%s: %s", name, soft)
		}
	}
	if _, line, _ := strings.Cut(limits, "Max address space"); strings.Fields(line)[0] == "unlimited" {
		t.Error("address space is not limited")
	}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		target, _ := os.Readlink(link)
		if !strings.HasPrefix(target, "pipe:") && target != os.DevNull && target != d.Path() {
			t.Errorf("a worker has %s open", target)
		}
	}
	if environ := readFile(t, fmt.Sprintf("/proc/%d/environ", pid)); string(environ) != "CAPER_SQL_WORKER=1\x00" {
		t.Errorf("a worker's environment: %q", environ)
	}
}

// TestWorkersDieWithTheirParent kills a program that is running queries.
func TestWorkersDieWithTheirParent(t *testing.T) {
	const variable = "CAPER_TEST_PARENT_OF_WORKERS"
	if path := os.Getenv(variable); path != "" {
		liveUntilKilled(t, path)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run", t.Name())
	parent.Env = append(os.Environ(), variable+"="+writeDatabase(t, shop...))
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == "ready" {
			break
		}
		if pid, err := strconv.Atoi(lines.Text()); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Error("the parent had no workers")
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d is no worker", pid)
		}
	}
	parent.Process.Kill()
	parent.Wait()
	for _, pid := range pids {
		// It may still be there for a moment, and as the child of another then.
		for deadline := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("worker %d outlives its parent", pid)
			}
		}
	}
}

// liveUntilKilled prints the numbers of its workers, one idle, one busy.
func liveUntilKilled(t *testing.T, path string) {
	d, err := Open(path, Limits{Timeout: time.Hour, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for range cap(workers().turns) {
		go d.Query(context.Background(), oneInstruction+" + 0 * (SELECT count(*) FROM item)")
	}
	for len(children(t)) < cap(workers().turns) {
		time.Sleep(time.Millisecond)
	}
	for _, pid := range children(t) {
		fmt.Println(pid)
	}
	fmt.Println("ready")
	select {}
}

// alive says whether a process runs; one that only waits to be collected does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ") && strings.Contains(string(stat), "(caper-sql-worke")
}
