package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/train/prm"
)

// writeRun writes a run folder as a training leaves it.
func writeRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := prm.Defaults()
	config.Train.Tuples, config.Train.Out = []string{"tuples.jsonl"}, dir
	writeFile(t, filepath.Join(dir, "config.toml"), []byte(config.Text()))
	var lines []byte
	for _, m := range drawnMetrics(1) {
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	writeFile(t, filepath.Join(dir, "metrics.jsonl"), lines)
	return dir
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "result.json")
	writeFile(t, path, text)
	return path
}

func TestRunPage(t *testing.T) {
	dir := writeRun(t)
	natural, balanced := drawnLocalization(1, 2, false), drawnLocalization(1, 2, true)
	p, err := RunPage([]string{dir}, []string{"test=" + writeJSON(t, natural), "test=" + writeJSON(t, balanced), writeJSON(t, natural)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Tests) != 2 || p.Tests[0].Name != "test" || p.Tests[1].Name != "result" {
		t.Fatalf("tests %+v", p.Tests)
	}
	if diff := cmp.Diff(&natural, p.Tests[0].Natural); diff != "" {
		t.Errorf("the natural result changed on its way through JSON:\n%s", diff)
	}
	if diff := cmp.Diff(&balanced, p.Tests[0].Balanced); diff != "" {
		t.Errorf("the balanced result changed on its way through JSON:\n%s", diff)
	}
	doc := parse(t, rendered(t, p))
	for _, want := range []string{"Clause-PRM run tiny", "tuples.jsonl", "Validation Top-1", "logistic"} {
		if !strings.Contains(doc.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestRunPageErrors(t *testing.T) {
	dir := writeRun(t)
	result := writeJSON(t, drawnLocalization(1, 2, false))
	for name, test := range map[string]struct {
		dir     string
		results []string
		want    []string
	}{
		"no run folder":   {t.TempDir(), nil, []string{"config.toml", "not a run folder"}},
		"no result":       {dir, []string{"missing.json"}, []string{"missing.json"}},
		"another result":  {dir, []string{writeJSON(t, map[string]int{"steps": 3})}, []string{"result.json", "caper localize --json", "steps"}},
		"no fault at all": {dir, []string{writeJSON(t, map[string]int{})}, []string{"result.json", "no fault"}},
		"twice the same":  {dir, []string{"a=" + result, "a=" + result}, []string{`"a"`, "NAME=FILE"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := RunPage([]string{test.dir}, test.results, nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
		})
	}
}
