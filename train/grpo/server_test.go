package grpo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"caper/data"
)

// flaky is a model server that drops, delays or garbles a third of its answers. What it
// says otherwise is right every other time.
type flaky struct {
	t    *testing.T
	gold map[string]string // by prompt

	mu    sync.Mutex
	calls int
	loads map[string]bool
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Prompt string
		Seed   uint32
		Path   string `json:"model_path"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/reload" {
		if _, err := os.Stat(filepath.Join(asked.Path, "config.json")); err != nil {
			f.t.Error(err)
		}
		f.loads[asked.Path] = true
		return
	}
	f.calls++
	hash := fnv.New32()
	fmt.Fprint(hash, asked.Prompt, asked.Seed)
	kind := hash.Sum32() % 18
	switch kind {
	case 0, 3:
		http.Error(w, "out of memory", http.StatusInternalServerError)
		return
	case 1, 4:
		f.mu.Unlock()
		time.Sleep(1200 * time.Millisecond)
		f.mu.Lock()
	case 2, 5:
		fmt.Fprint(w, `{"choices": [{"text"`)
		return
	}
	answer := "SELECT 0"
	if kind%2 == 0 {
		answer = f.gold[asked.Prompt]
	}
	json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"text": answer, "finish_reason": "stop"}}})
}

// A run on a server that drops, delays or garbles a third of its answers comes to its end;
// what came is judged as what it is, and what did not is counted.
func TestFlakyServer(t *testing.T) {
	for _, ahead := range []string{"false", "true"} {
		f := &flaky{t: t, gold: map[string]string{}, loads: map[string]bool{}}
		server := httptest.NewServer(f)
		defer server.Close()
		bench, err := data.OpenBenchmark(newWorld(t).Bench, "spider")
		if err != nil {
			t.Fatal(err)
		}
		defer bench.Close()
		questions, err := bench.Questions("train")
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			prompt, err := bench.Prompt(q)
			if err != nil {
				t.Fatal(err)
			}
			f.gold[prompt] = q.Gold
		}
		const steps, asked = 4, 4 * 8
		c := smallConfig(t, "train.max_steps=4", "train.batch_questions=4", "rollout.samples=8", "rollout.server="+server.URL+"/v1", "rollout.server_model=policy",
			"rollout.reload="+server.URL+"/reload", "rollout.per_call=1", "rollout.call_timeout=0.6", "rollout.attempts=1", "rollout.server_calls=8", "rollout.ahead="+ahead)
		_, lines := train(t, c)
		lost := map[string]int{}
		for _, m := range lines {
			n := 0
			for reason, count := range m.Lost {
				lost[reason] += count
				n += count
			}
			if m.Samples+n != asked || m.Groups == 0 {
				t.Errorf("step %d: %d answers came, %d are lost: %+v", m.Step, m.Samples, n, m)
			}
		}
		all := 0
		for _, n := range lost {
			all += n
		}
		if len(lines) != steps || len(lost) < 3 || all < steps*asked/6 || all > steps*asked/2 {
			t.Errorf("ahead %s: %d steps, lost %v of %d", ahead, len(lines), lost, steps*asked)
		}
		if len(f.loads) != steps {
			t.Errorf("weights loaded from %d folders", len(f.loads))
		}
		checkAnswers(t, c.Train.Out)
	}
}

// checkAnswers looks whether each answer in rollouts.jsonl has its own question's verdict.
func checkAnswers(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, answersName))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	right, wrong := 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if isGold := l.SQL == l.Gold; isGold != (l.Verdict == "correct") {
			t.Errorf("%s: %q for gold %q", l.Verdict, l.SQL, l.Gold)
		} else if isGold {
			right++
		} else {
			wrong++
		}
	}
	if right == 0 || wrong == 0 {
		t.Errorf("%d right answers, %d wrong ones", right, wrong)
	}
}
