package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asCaper makes the test binary run a command line instead of its tests.
const asCaper = "CAPER_TEST_RUN"

// process starts a command line in a process of its own.
func process(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, arguments...)
	c.Env = append(os.Environ(), asCaper+"=1")
	return c
}

// pipe makes a named pipe that nobody writes: whoever opens it to read waits.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Skip(err)
	}
	return path
}

// The first signal ends every command soon, with status 1 and one line, and leaves
// no file behind.
func TestInterrupt(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	slow := strings.Replace(lines(readFile(t, w.rollouts))[0], `"sql":"`, `"sql":"`+endless+` -- `, 1) + "\n"
	slow += strings.Replace(slow, `"sample":0`, `"sample":1`, 1)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	rollouts := writeFile(t, filepath.Join(t.TempDir(), "slow.jsonl"), slow)
	database, err := filepath.Glob(filepath.Join(w.bench, "database", "*", "*.sqlite"))
	if err != nil || len(database) == 0 {
		t.Fatal(err)
	}
	waiting := pipe(t)
	for _, arguments := range [][]string{
		{"sample", out},
		{"demo", "--out", filepath.Join(t.TempDir(), "demo")},
		{"annotate", "--bench", w.bench, "--split", "train", "--rollouts", rollouts, "--out", out, "--timeout", "10m"},
		{"eval", "ex", "--bench", w.bench, "--split", "train", "--pred", rollouts, "--out", out, "--timeout", "10m"},
		{"exec", "--db", database[0], endless, "--timeout", "10m"},
		{"inspect", waiting},
		{"report", w.run, "--localize", waiting, "--out", out},
		{"tokenize", "--tokenizer", filepath.Join(w.model(), "tokenizer.json"), "--in", waiting, "--out", out},
		{"score", "--model", w.model(), "--in", waiting, "--out", out},
		{"localize", "--model", w.model(), "--tuples", waiting},
	} {
		name := strings.Join(arguments, " ")
		status, said := interrupted(t, arguments)
		if status != exitFailed || !strings.HasPrefix(said[len(said)-1], "caper: interrupted") {
			t.Errorf("%s: status %d, said %q", name, status, said)
		}
		if left := listing(t, dir); len(left) != 1 {
			t.Errorf("%s: left %d files", name, len(left)-1)
		}
	}
}

// interrupted starts a command, sends it one signal, and returns its status and what
// it said. A machine under load may not have begun it at that time: then it is
// given longer.
func interrupted(t *testing.T, arguments []string) (status int, said []string) {
	for wait := 300 * time.Millisecond; ; wait *= 3 {
		c := process(t, arguments...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
		c.Process.Signal(os.Interrupt)
		stuck := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
		c.Wait()
		if !stuck.Stop() {
			t.Errorf("%v: goes on after the first signal", arguments)
		}
		if status = c.ProcessState.ExitCode(); status >= 0 || wait > 5*time.Second {
			return status, lines(stderr.String())
		}
	}
}

// A reader that goes away does not kill a command at work, and an output for it is no
// reason to complain.
func TestReaderGoesAway(t *testing.T) {
	w := openWorkshop(t, "tuples")
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	for _, k := range []struct {
		arguments []string
		status    int
		files     int
	}{
		{[]string{"annotate", "--bench", w.bench, "--split", "train", "--rollouts", w.rollouts, "--out", out}, 0, 2},
		{[]string{"inspect", w.tuples}, exitFailed, 2},
		{[]string{"train", "prm", "--print-config"}, exitFailed, 2},
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		c := process(t, k.arguments...)
		c.Stdout, c.Stderr = write, write
		err = c.Run()
		write.Close()
		if c.ProcessState.ExitCode() != k.status {
			t.Errorf("%v: %v", k.arguments, err)
		}
		if left := listing(t, dir); len(left) != k.files {
			t.Errorf("%v: left %d files", k.arguments, len(left)-1)
		}
	}
}
