package rollout

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"caper/engine"
	"caper/model"
	"caper/model/lora"
	"caper/model/remote"
)

// loading is a server that loads weights by SGLang's call, or another one's, and answers
// other calls with an empty object; and the folders that it was told.
func loading(t *testing.T, change func(o *ServerOptions, url string)) (*Server, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var told []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Folder string `json:"model_path"`
		}
		if json.Unmarshal(body, &request) == nil && request.Folder != "" {
			mu.Lock()
			told = append(told, request.Folder)
			mu.Unlock()
		}
		io.WriteString(w, "{}")
	}))
	t.Cleanup(h.Close)
	o := serverOptions()
	o.Folder, o.StepTimeout = t.TempDir(), time.Minute
	client := remote.NewServer(h.URL+"/v1", "policy")
	client.API = remote.SGLang
	if change != nil {
		change(&o, h.URL)
	}
	s, err := NewServer(client, words(t), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() []string { mu.Lock(); defer mu.Unlock(); return told }
}

func weights(t *testing.T, m *model.Model) (all []float32) {
	t.Helper()
	for _, p := range m.Params() {
		values := make([]float32, p.Rows*p.Cols)
		p.Read(values)
		all = append(all, values...)
	}
	return all
}

// The server is told a folder with the trainer's weights, whichever way it is told; the
// folders of earlier steps are gone.
func TestWeightsReachTheServer(t *testing.T) {
	commanded := filepath.Join(t.TempDir(), "told")
	for name, change := range map[string]func(o *ServerOptions, url string){
		"api":     nil,
		"address": func(o *ServerOptions, url string) { o.Reload = url + "/mine" },
		"command": func(o *ServerOptions, _ string) { o.Reload = `echo "$CAPER_POLICY" >>` + commanded + `; sleep 3 &` },
	} {
		t.Run(name, func(t *testing.T) {
			s, told := loading(t, change)
			var want []string
			for step, seed := range []uint64{1, 2} {
				m := policy(t, seed)
				if err := s.Update(context.Background(), m, step); err != nil {
					t.Fatal(err)
				}
				folders := told()
				if name == "command" {
					text, _ := os.ReadFile(commanded)
					folders = strings.Fields(string(text))
				}
				want = append(want, filepath.Join(s.o.Folder, []string{"step-0", "step-1"}[step]))
				if !slices.Equal(folders, want) || s.version != step {
					t.Fatalf("told %q, want %q; version %d", folders, want, s.version)
				}
				loaded, err := model.Load(want[step], engine.CPU(2))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(weights(t, loaded), weights(t, m)) {
					t.Errorf("step %d: the folder has other weights", step)
				}
			}
			if entries, _ := os.ReadDir(s.o.Folder); len(entries) != 1 || entries[0].Name() != "step-1" {
				t.Errorf("kept %v", entries)
			}
		})
	}
}

// A server knows nothing of adapters: it gets the merged weights.
func TestAdaptersAreMerged(t *testing.T) {
	base := t.TempDir()
	if err := policy(t, 1).Save(base); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(base, engine.CPU(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddAdapter(lora.Config{Rank: 2, Alpha: 4, Targets: []string{"q_proj", "down_proj"}, Base: base}, base, 5); err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Adapter.Parameters { // a fresh adapter changes nothing
		for i := range p.Rows {
			for j := range p.Cols {
				p.Set(i, j, float64((i+2*j)%5-2)/10)
			}
		}
	}
	s, told := loading(t, nil)
	if err := s.Update(context.Background(), m, 1); err != nil {
		t.Fatal(err)
	}
	merged, err := model.Load(told()[0], engine.CPU(2))
	if err != nil {
		t.Fatal(err)
	}
	if merged.Adapter != nil {
		t.Error("the server is told an adapter")
	}
	sequences := [][]int32{{5, 6, 7, 8, 9, 10}}
	score := func(m *model.Model) []float64 {
		l, err := model.NewLogProber(m, 64)
		if err != nil {
			t.Fatal(err)
		}
		return l.LogProbs(sequences)[0]
	}
	want, got := score(m), score(merged)
	plain, err := model.Load(base, engine.CPU(2))
	if err != nil {
		t.Fatal(err)
	}
	without := score(plain)
	change, miss := 0.0, 0.0
	for i := range want {
		change, miss = max(change, abs(want[i]-without[i])), max(miss, abs(want[i]-got[i]))
	}
	if miss > 1e-4 || change < 1e-2 {
		t.Errorf("log-probs differ by %g; the adapter changes them by %g", miss, change)
	}
}

func abs(x float64) float64 { return max(x, -x) }

// A server that cannot load the weights is an error that says so, and a server that does
// not come back is one after the step's time.
func TestWeightsThatDoNotArrive(t *testing.T) {
	m := policy(t, 1)
	s, _ := loading(t, func(o *ServerOptions, _ string) { o.Reload = "echo no memory left >&2; exit 3" })
	if err := s.Update(context.Background(), m, 1); err == nil || !strings.Contains(err.Error(), "no memory left") || s.version != 0 {
		t.Errorf("%v, version %d", err, s.version)
	}
	s, _ = loading(t, func(o *ServerOptions, _ string) { o.Reload, o.StepTimeout = "true", time.Second })
	s.server.URL = "http://127.0.0.1:1/v1"
	if err := s.Update(context.Background(), m, 1); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
}
