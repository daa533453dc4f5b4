package main

import "caper/model"

type exportCommand struct {
	Model string `arg:"" help:"Model folder, or the folder of an adapter." type:"existingdir"`
	Out   string `arg:"" help:"New folder." type:"path"`
	formatFlags
}

func (c *exportCommand) Help() string {
	return `Example:
  caper export runs/lora/model merged --dtype bf16

The result is a plain text model in Hugging Face layout: an adapter is merged into its base model; the vision tower and the
next-token block of official checkpoints are left out. Weights are streamed from file to file.`
}

// Validate checks the flags.
func (c *exportCommand) Validate() error {
	_, err := c.format()
	return err
}

func (c *exportCommand) Run() error {
	return c.fill(c.Model, c.Out, model.Export, work{"exporting", "exported", true})
}
