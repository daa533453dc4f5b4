// Package runtest checks what every training promises: the same files from a run that was
// stopped at any moment, and resumed, as from one that was left alone.
package runtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caper/train/run"
)

// childConfig is the environment variable that turns a test binary into a training run: it
// names a configuration file.
const childConfig = "CAPER_TRAIN_CHILD"

// Main runs the tests of a package, or, in a process that Child started, trains. Such a run
// waits after every step for a byte on stdin, so that its parent can kill it at a step of
// its choice.
func Main(m *testing.M, train func(config string, o run.Options) error) int {
	path := os.Getenv(childConfig)
	if path == "" {
		return m.Run()
	}
	step := func(done, _ int) {
		fmt.Println(done)
		os.Stdin.Read(make([]byte, 1))
	}
	if err := train(path, run.Options{Resume: true, Progress: Progress(step)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Progress calls a function after every step.
type Progress func(done, total int)

// Step implements run.Progress.
func (p Progress) Step(done, total int, _ []run.Figure) { p(done, total) }

// KilledAndResumed trains twice, in processes of its own: once undisturbed, and once killed
// some times at moments drawn at random, every other time while files are written. The two
// run folders must hold the same files. configure writes a configuration of some 30 steps
// or more, with checkpoints, whose train.out is out. volatile are the fields of metrics.jsonl
// that measure time.
func KilledAndResumed(t *testing.T, kills int, configure func(out string) (config string), volatile ...string) {
	t.Helper()
	folder := t.TempDir()
	whole, killed := filepath.Join(folder, "whole"), filepath.Join(folder, "killed")
	started := time.Now()
	steps := startChild(t, configure(whole)).finish(t)
	perStep := time.Since(started) / time.Duration(max(steps, 1))

	path := configure(killed)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	during := 0
	for i := range kills {
		k := startChild(t, path)
		for range 1 + r.IntN(3) {
			if _, more := <-k.steps; !more {
				t.Fatalf("kill %d: the run ended: %s", i, k.errors.String())
			}
			k.release()
		}
		moment := time.Duration(r.Int64N(int64(perStep)))
		if i%2 == 1 {
			k.waitForTemporary(killed)
			moment /= 4
		}
		time.Sleep(moment)
		k.kill()
		if len(temporaries(killed)) > 0 {
			during++
		}
	}
	startChild(t, path).finish(t)
	t.Logf("seed %d: %d of %d kills while files were written", seed, during, kills)
	Same(t, killed, whole, volatile...)
}

// child is a training run in a process of its own.
type child struct {
	*exec.Cmd
	steps  chan string // a line for each step; closed at the end
	stdin  *os.File
	errors strings.Builder
}

func startChild(t *testing.T, config string) *child {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	k := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0]), steps: make(chan string), stdin: stdin}
	k.Env = append(os.Environ(), childConfig+"="+config)
	k.Stdin, k.Stderr = in, &k.errors
	stdout, err := k.StdoutPipe()
	if err == nil {
		err = k.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			k.steps <- lines.Text()
		}
		close(k.steps)
	}()
	return k
}

// release lets the child go on after a step.
func (k *child) release() { k.stdin.Write([]byte("\n")) }

// kill ends the child as nothing can prevent or notice.
func (k *child) kill() {
	k.Process.Kill()
	for range k.steps {
	}
	k.Wait()
	k.stdin.Close()
}

// finish runs the child to its end and counts its steps.
func (k *child) finish(t *testing.T) (steps int) {
	t.Helper()
	for range k.steps {
		steps++
		k.release()
	}
	if err := k.Wait(); err != nil {
		t.Fatalf("%v: %s", err, k.errors.String())
	}
	k.stdin.Close()
	return steps
}

// waitForTemporary returns when the child writes a file or folder under a temporary name,
// at the latest after its next step.
func (k *child) waitForTemporary(dir string) {
	for len(temporaries(dir)) == 0 {
		select {
		case <-k.steps:
			return
		default:
		}
	}
}

func temporaries(dir string) []string {
	var all []string
	for _, pattern := range []string{".*.tmp-*", ".*.old"} {
		for _, folder := range []string{dir, filepath.Join(dir, "checkpoints")} {
			found, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are valid
			all = append(all, found...)
		}
	}
	return all
}

// Same reports files in which two run folders differ, without what must: train.out in
// config.toml, and the volatile fields of metrics.jsonl.
func Same(t *testing.T, got, want string, volatile ...string) {
	t.Helper()
	a, b := Files(t, got, volatile...), Files(t, want, volatile...)
	for name := range b {
		if _, ok := a[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			t.Errorf("%s is left over", name)
		}
	}
}

// Files returns the content of every file of a run folder by its path there, without what
// Same leaves out.
func Files(t *testing.T, dir string, volatile ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := files[run.ConfigName]; ok {
		files[run.ConfigName] = ""
	}
	files["metrics.jsonl"] = steady(t, dir, volatile)
	return files
}

// steady is metrics.jsonl without some fields.
func steady(t *testing.T, dir string, volatile []string) string {
	t.Helper()
	lines, err := run.ReadMetrics[map[string]any](dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range lines {
		for _, field := range volatile {
			delete(m, field)
		}
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	return text.String()
}
