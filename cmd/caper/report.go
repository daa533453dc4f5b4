package main

import (
	"fmt"
	"os"
	"path/filepath"

	"caper/report"
)

type reportCommand struct {
	Folder   string   `arg:"" name:"run" help:"Run folder: config.toml and metrics.jsonl." type:"path"`
	Localize []string `help:"Result of caper localize --json; the natural and the balanced result of one test share its NAME." placeholder:"[NAME=]FILE" sep:"none"`
	Out      string   `help:"File to write; default: report.html in the run folder." type:"path"`
}

func (c *reportCommand) Help() string {
	return `Example:
  caper localize --model runs/tiny/model --tuples test.jsonl --baselines --balanced --json > balanced.json
  caper report runs/tiny --localize test=balanced.json --out report.html`
}

func (c *reportCommand) Run() error {
	page, err := report.RunPage(c.Folder, c.Localize)
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		out = filepath.Join(c.Folder, "report.html")
	}
	if err := report.Write(out, page); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "report: %s\n", out)
	return nil
}
