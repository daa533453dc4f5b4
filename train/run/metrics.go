package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"caper/data"
)

// metricsName is the record of a run that every other view (report, plots) is made from: a
// line of JSON for a step or a validation, of the trainer's own type. All have a "step".
const metricsName = "metrics.jsonl"

// metricsFile appends to metrics.jsonl, without allocating.
type metricsFile struct {
	f       *os.File
	encoder *json.Encoder
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
		var m struct{ Step int }
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

// write appends a line, in one write of the file. A pointer is encoded without allocating.
func (w *metricsFile) write(line any) error { return w.encoder.Encode(line) }

func (w *metricsFile) close() error { return w.f.Close() }

// ReadMetrics reads the metrics.jsonl of a run folder, whose lines are of type L. A last
// line that a kill cut short is left out.
func ReadMetrics[L any](dir string) ([]L, error) {
	path := filepath.Join(dir, metricsName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("metrics of a run: %w", err)
	}
	var all []L
	n := 0
	for line := range bytes.Lines(text) {
		if n++; cutShort(line) {
			break
		}
		var m L
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, data.PlainJSONError(err))
		}
		all = append(all, m)
	}
	return all, nil
}
