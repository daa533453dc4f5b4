package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"caper/data"
	"caper/eval"
	"caper/train/prm"
	"caper/train/run"
)

// RunPage makes the page of a run folder (config.toml, metrics.jsonl) and of
// results that `caper localize --json` printed. A result is the name of a file, or
// NAME=FILE to name the test; the natural and the balanced result of one test share
// its name.
func RunPage(dir string, results []string) (Page, error) {
	config, err := prm.LoadConfig(filepath.Join(dir, "config.toml"), nil)
	if err != nil {
		return Page{}, fmt.Errorf("report: %s is not a run folder: %w", dir, err)
	}
	metrics, err := run.ReadMetrics[prm.Metrics](dir)
	if err != nil {
		return Page{}, fmt.Errorf("report: %w", err)
	}
	name := filepath.Base(filepath.Clean(dir))
	tests, err := readTests(name, results)
	if err != nil {
		return Page{}, err
	}
	p := Page{
		Title:   "Clause-PRM run " + name,
		Summary: fmt.Sprintf("A Clause-PRM trained on %s, from %s.", strings.Join(config.Train.Tuples, ", "), startOf(config)),
		Runs:    []Run{{Name: name, Config: config, Metrics: metrics}},
		Tests:   tests,
	}
	if info, err := os.Stat(filepath.Join(dir, "metrics.jsonl")); err == nil {
		p.Date = info.ModTime()
	}
	return p, nil
}

func startOf(c prm.Config) string {
	if c.Model.Path != "" {
		return "the weights of " + c.Model.Path
	}
	return fmt.Sprintf("a new model of %d layers, %d wide", c.Model.Layers, c.Model.HiddenSize)
}

// readTests reads results, and puts those of the same name into one test.
func readTests(run string, results []string) ([]Test, error) {
	var tests []Test
	index := map[string]int{}
	for _, given := range results {
		name, path, named := strings.Cut(given, "=")
		if !named {
			path = given
			name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
		l, err := ReadLocalization(path)
		if err != nil {
			return nil, err
		}
		i, known := index[name]
		if !known {
			i, index[name] = len(tests), len(tests)
			tests = append(tests, Test{Name: name, Run: run})
		}
		place := &tests[i].Natural
		if l.Balanced {
			place = &tests[i].Balanced
		}
		if *place != nil {
			return nil, fmt.Errorf("report: %s: a second result of the same weighing for test %q; name it with NAME=FILE", path, name)
		}
		*place = l
	}
	return tests, nil
}

// ReadLocalization reads what `caper localize --json` printed.
func ReadLocalization(path string) (*eval.Localization, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("report: result of a localisation: %w", err)
	}
	var l eval.Localization
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("report: %s: not a result of `caper localize --json`: %w", path, data.PlainJSONError(err))
	}
	if l.Count == 0 {
		return nil, fmt.Errorf("report: %s: no fault was localised; give `caper localize` tuples with root_clause set", path)
	}
	return &l, nil
}
