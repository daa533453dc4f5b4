package report

import "errors"

// RunPage makes the page of a run folder (config.toml, metrics.jsonl) and of
// results that `caper localize --json` printed. A result is the name of a file, or
// NAME=FILE to name the test; the natural and the balanced result of one test share
// its name.
func RunPage(dir string, results []string) (Page, error) {
	return Page{}, errors.New("report: not written yet")
}
