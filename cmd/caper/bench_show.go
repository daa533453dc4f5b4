package main

import (
	"encoding/json"
	"fmt"
	"os"

	"caper/benchmarks/kernels"
)

type benchShowCommand struct {
	File string `arg:"" help:"What caper bench kernels --json has printed." type:"existingfile"`
}

func (c *benchShowCommand) Help() string {
	return `Example:
  caper bench kernels --json > kernels.json
  caper bench show kernels.json >> report.md`
}

func (c *benchShowCommand) Run() error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	var shapes kernels.Shapes
	if err := json.Unmarshal(text, &shapes); err == nil && shapes.Scale > 0 { // that of training steps has none
		return shapes.WriteMarkdown(os.Stdout)
	}
	var report kernels.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return report.WriteMarkdown(os.Stdout)
}
