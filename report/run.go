package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/data"
	"caper/eval"
	"caper/report/series"
	"caper/train/prm"
	"caper/train/run"
)

// RunPage makes the page of run folders (config.toml, metrics.jsonl), those of one kind
// drawn over each other, with results that other commands wrote. localized are files of
// `caper localize --json` on the only reward model; FILE or NAME=FILE to name the test, and
// the natural and the balanced result of one test share its name. verdicts are files of
// `caper eval ex` on answers of a policy, RUN=FILE.
func RunPage(dirs, localized, verdicts []string) (Page, error) {
	var p Page
	var names []string
	for _, dir := range dirs {
		name := filepath.Base(filepath.Clean(dir))
		if slices.Contains(names, name) {
			name = filepath.Clean(dir)
		}
		names = append(names, name)
		if err := p.addRun(dir, name); err != nil {
			return Page{}, err
		}
	}
	if len(localized) > 0 {
		if len(p.Runs) != 1 {
			return Page{}, fmt.Errorf("report: results of caper localize belong to one reward model, and %d are given", len(p.Runs))
		}
		var err error
		if p.Tests, err = readTests(p.Runs[0].Name, localized); err != nil {
			return Page{}, err
		}
	}
	for _, given := range verdicts {
		if err := p.addVerdicts(given); err != nil {
			return Page{}, err
		}
	}
	p.introduce(names)
	return p, nil
}

// addRun adds a run folder to those of its kind.
func (p *Page) addRun(dir, name string) error {
	path := filepath.Join(dir, run.ConfigName)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("report: %s is not a run folder: %w", dir, err)
	}
	var sections struct {
		Loss *struct{ Margin string }
	}
	if err := toml.Unmarshal(text, &sections); err == nil && sections.Loss == nil {
		return p.addPolicy(dir, name, string(text))
	}
	config, err := prm.LoadConfig(path, nil)
	if err != nil {
		return fmt.Errorf("report: %s is not a run folder: %w", dir, err)
	}
	metrics, err := run.ReadMetrics[prm.Metrics](dir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p.Runs = append(p.Runs, Run{Name: name, Config: config, Metrics: metrics})
	p.dateOf(dir)
	return nil
}

// dateOf makes the page as new as the newest run.
func (p *Page) dateOf(dir string) {
	if info, err := os.Stat(filepath.Join(dir, series.FileName)); err == nil && info.ModTime().After(p.Date) {
		p.Date = info.ModTime()
	}
}

// introduce gives the page its title and summary.
func (p *Page) introduce(names []string) {
	switch {
	case len(names) > 1:
		p.Title = "Runs " + enumerated(names)
		p.Summary = fmt.Sprintf("%d trainings beside each other.", len(names))
	case len(p.Runs) == 1:
		c := p.Runs[0].Config
		p.Title = "Clause-PRM run " + names[0]
		p.Summary = fmt.Sprintf("A Clause-PRM trained on %s, from %s.", strings.Join(c.Train.Tuples, ", "), startOf(c))
	case len(p.Policies) == 1:
		p.Title, p.Summary = "Policy run "+names[0], p.Policies[0].summary()
	}
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
