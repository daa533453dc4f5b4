package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"caper/data"
)

// Metrics is one line of metrics.jsonl, the record of a run that every other view
// (report, plots) is made from. A line is either a step or a validation.
type Metrics struct {
	Step  int     `json:"step"`
	Epoch float64 `json:"epoch"`
	// Of a step. Loss is the whole objective; Accuracy the share of pairs whose
	// chosen clause scores higher; GradNorm is taken before clipping.
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	GradNorm *float64 `json:"grad_norm,omitempty"`
	LR       *float64 `json:"lr,omitempty"`
	Pairs    int      `json:"pairs,omitempty"`
	// Tokens counts packed tokens, Unpacked what separate sequences would hold; Sharing
	// is the second over the first.
	Tokens          int     `json:"tokens,omitempty"`
	Unpacked        int     `json:"tokens_unpacked,omitempty"`
	Sharing         float64 `json:"sharing,omitempty"`
	TokensPerSecond float64 `json:"tokens_per_second,omitempty"`
	// Skipped says that loss or gradient was not finite and nothing was updated.
	Skipped bool `json:"skipped,omitempty"`
	// Of a validation: localisation on held-out databases.
	Top1      *float64 `json:"top1,omitempty"`
	MRR       *float64 `json:"mrr,omitempty"`
	Validated int      `json:"validated,omitempty"`
	Best      bool     `json:"best,omitempty"`
}

const metricsName = "metrics.jsonl"

// metricsFile appends to metrics.jsonl, without allocating.
type metricsFile struct {
	f       *os.File
	encoder *json.Encoder
	line    Metrics
}

// openMetrics opens the file for appending, first dropping every line past step
// lastStep: what a run did after its last checkpoint is done again on resuming.
func openMetrics(dir string, lastStep int) (*metricsFile, error) {
	path := filepath.Join(dir, metricsName)
	kept, err := metricsUpTo(path, lastStep)
	if err != nil {
		return nil, err
	}
	if err := replaceFile(path, kept); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &metricsFile{f: f, encoder: json.NewEncoder(f)}, nil
}

func metricsUpTo(path string, lastStep int) ([]byte, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept []byte
	for line := range bytes.Lines(text) {
		var m Metrics
		if cutShort(line) || json.Unmarshal(line, &m) != nil || m.Step > lastStep {
			continue
		}
		kept = append(kept, line...)
	}
	return kept, nil
}

// cutShort tells a line whose writer was killed: nothing else ends without a
// newline.
func cutShort(line []byte) bool { return !bytes.HasSuffix(line, []byte("\n")) }

// write appends a line, in one write of the file.
func (w *metricsFile) write(m Metrics) error {
	w.line = m
	return w.encoder.Encode(&w.line)
}

func (w *metricsFile) close() error { return w.f.Close() }

// ReadMetrics reads the metrics.jsonl of a run folder. A last line that a kill cut
// short is left out.
func ReadMetrics(dir string) ([]Metrics, error) {
	path := filepath.Join(dir, metricsName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("metrics of a run: %w", err)
	}
	var all []Metrics
	n := 0
	for line := range bytes.Lines(text) {
		if n++; cutShort(line) {
			break
		}
		var m Metrics
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, data.PlainJSONError(err))
		}
		all = append(all, m)
	}
	return all, nil
}
