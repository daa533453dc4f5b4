package prometheus

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/report/series"
)

var (
	typeLine = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge$`)
	sample   = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{of="((?:[^"\\\n]|\\[\\"n])*)"\})? (\S+)$`)
)

// parse reads the text format as its definition says: a gauge's samples follow its TYPE
// line, none comes twice, and every line ends.
func parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	all, typed, current := map[string]float64{}, map[string]bool{}, ""
	if text != "" && !strings.HasSuffix(text, "\n") {
		t.Errorf("the last line has no end")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := typeLine.FindStringSubmatch(line); m != nil {
			if current = m[1]; typed[current] {
				t.Errorf("%q: a second time", line)
			}
			typed[current] = true
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[1] != current {
			t.Errorf("%q: no sample of %s", line, current)
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		key := m[1] + "|" + m[2]
		if _, twice := all[key]; err != nil || twice {
			t.Errorf("%q: %v, twice %v", line, err, twice)
		}
		all[key] = value
	}
	return all
}

func get(t *testing.T, url string) (int, string, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), string(text)
}

func TestServe(t *testing.T) {
	run := t.TempDir()
	at, stop, err := Serve("127.0.0.1:0", run)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	url := "http://" + at + "/metrics"
	if code, kind, text := get(t, url); code != 200 || text != "" || kind != contentType {
		t.Errorf("a run that has not begun: %d %s %q", code, kind, text)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(run, series.FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const first = `{"step":1,"loss":-1e-7,"odd-name":2,"reward":{"GROUP BY":0.25,"a\"\\\n":1}}` + "\n"
	write(`{"step":0,"group_correct":[0,0,0,9],"kept":1}` + "\n" + first + `{"step":2,"group_correct":[3,0],"skipped":true}` + "\n")
	_, _, text := get(t, url)
	want := map[string]float64{
		"caper_train_step|": 2, "caper_train_kept|": 1, "caper_train_loss|": -1e-7, "caper_train_odd_name|": 2, "caper_train_skipped|": 1,
		"caper_train_reward|GROUP BY": 0.25, `caper_train_reward|a\"\\\n`: 1,
		"caper_train_group_correct|0": 3, "caper_train_group_correct|1": 0,
	}
	if diff := cmp.Diff(want, parse(t, text)); diff != "" {
		t.Error(diff)
	}
	write(first) // the run was resumed from an earlier step
	if _, _, text := get(t, url); strings.Contains(text, "group_correct") || parse(t, text)["caper_train_step|"] != 1 {
		t.Errorf("after a resumption:\n%s", text)
	}
	write(first + "{}\n")
	if code, _, text := get(t, url); code != 500 || !strings.Contains(text, "metrics.jsonl:2: ") {
		t.Errorf("a line without a step: %d %s", code, text)
	}
	if code, _, _ := get(t, "http://"+at+"/"); code != 404 {
		t.Errorf("another path: %d", code)
	}
}

func TestServesThisMachineAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "10.1.2.3:0", "example.org:0", "127.0.0.1"} {
		if at, stop, err := Serve(address, t.TempDir()); err == nil {
			stop()
			t.Errorf("%s: serves at %s", address, at)
		}
	}
}
