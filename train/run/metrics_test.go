package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeMetrics(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, metricsName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// line is what the tests write.
type line struct {
	Step  int      `json:"step"`
	Loss  *float64 `json:"loss,omitempty"`
	Top1  *float64 `json:"top1,omitempty"`
	Pairs int      `json:"pairs,omitempty"`
	Best  bool     `json:"best,omitempty"`
}

// A line that a kill cut short is no error; any other broken line is, by number.
func TestReadMetrics(t *testing.T) {
	good := `{"step":1,"epoch":0.5,"loss":0.7}` + "\n" + `{"step":2,"epoch":1,"top1":0.25,"best":true}` + "\n"
	for _, k := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 0, ""},
		{good, 2, ""},
		{good + `{"step":3,"epo`, 2, ""},
		{good + `{"step":3}`, 2, ""},
		{good + "{\"step\":3,\n" + good, 0, metricsName + ":3"},
		{good + "\n", 0, metricsName + ":3"},
		{`{"step":"one"}` + "\n", 0, metricsName + ":1"},
		{strings.Repeat("x", 1<<17) + "\n", 0, metricsName + ":1"},
	} {
		lines, err := ReadMetrics[line](writeMetrics(t, k.text))
		if k.want != "" {
			if err == nil || !strings.Contains(err.Error(), k.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.80q: error %v, want %q", k.text, err, k.want)
			}
			continue
		}
		if err != nil || len(lines) != k.lines {
			t.Errorf("%.80q: %d lines, error %v", k.text, len(lines), err)
		}
	}
	lines, _ := ReadMetrics[line](writeMetrics(t, good))
	if len(lines) != 2 || *lines[0].Loss != 0.7 || lines[0].Top1 != nil || *lines[1].Top1 != 0.25 || !lines[1].Best {
		t.Errorf("%+v", lines)
	}
	if _, err := ReadMetrics[line](t.TempDir()); err == nil || !strings.Contains(err.Error(), metricsName) {
		t.Errorf("missing file: error %v", err)
	}
}

// On resuming, what was recorded after the checkpoint goes, and so does a line cut
// short, lest the next one be appended to it.
func TestMetricsGoOnAfterTheCheckpoint(t *testing.T) {
	dir := writeMetrics(t, "{\"step\":1}\n{\"step\":2}\n{\"step\":2,\"top1\":1}\n{\"step\":3}\n{\"step\":2}")
	f, err := openMetrics(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.write(&line{Step: 3, Pairs: 9}); err != nil {
		t.Fatal(err)
	}
	lines, err := ReadMetrics[line](dir)
	if err != nil || len(lines) != 4 || lines[2].Top1 == nil || lines[3].Pairs != 9 {
		t.Errorf("%+v, error %v", lines, err)
	}
}
