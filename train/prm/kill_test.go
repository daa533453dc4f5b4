package prm

import (
	"bufio"
	"caper/train/run"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childConfig is the environment variable that turns the test binary into a
// training run: it names a configuration file. The child waits after every step
// for a byte on stdin, so that its parent can kill it at a step of its choice.
const childConfig = "CAPER_TRAIN_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childConfig)
	if path == "" {
		os.Exit(m.Run())
	}
	c, err := LoadConfig(path, nil)
	if err == nil {
		step := func(done, _ int, _ []run.Figure) {
			fmt.Println(done)
			os.Stdin.Read(make([]byte, 1))
		}
		_, err = Train(context.Background(), c, run.Options{Resume: true, Progress: progress(step)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
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

// step waits for the end of the child's next step; false when the run is over.
func (k *child) step() bool {
	_, more := <-k.steps
	return more
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

// finish runs the child to its end.
func (k *child) finish(t *testing.T) {
	t.Helper()
	for k.step() {
		k.release()
	}
	if err := k.Wait(); err != nil {
		t.Fatalf("%v: %s", err, k.errors.String())
	}
	k.stdin.Close()
}

// Killed ten times at moments drawn at random, every other time while it writes
// a checkpoint or exports a model, and resumed each time, a run ends with the same
// bytes in the same files as one that was left alone.
func TestKilledAndResumed(t *testing.T) {
	const kills = 10
	c := smallConfig(t, "train.epochs=16", "train.validate_every=2", "train.checkpoint_every=2")
	folder := t.TempDir()
	config := func(name string) (dir, path string) {
		c.Train.Out = filepath.Join(folder, name)
		path = filepath.Join(folder, name+".toml")
		if err := os.WriteFile(path, []byte(c.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return c.Train.Out, path
	}
	whole, path := config("whole")
	started := time.Now()
	startChild(t, path).finish(t)
	perStep := time.Since(started) / 48

	killed, path := config("killed")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	during := 0
	for i := range kills {
		k := startChild(t, path)
		for range 1 + r.IntN(3) {
			if !k.step() {
				t.Fatalf("kill %d: the run ended: %s", i, k.errors.String())
			}
			k.release()
		}
		if i%2 == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(perStep))))
		} else {
			waitForTemporary(k, killed)
			time.Sleep(time.Duration(r.Int64N(int64(perStep) / 4)))
		}
		k.kill()
		if len(temporaries(killed)) > 0 {
			during++
		}
	}
	startChild(t, path).finish(t)
	t.Logf("seed %d: %d of %d kills while files were written", seed, during, kills)
	sameRun(t, killed, whole)
}

// waitForTemporary returns when the child writes a file or folder under a
// temporary name, at the latest after its next step.
func waitForTemporary(k *child, dir string) {
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
