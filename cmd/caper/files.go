package main

import (
	"errors"

	"github.com/alecthomas/kong"
)

// files is a flag of one or more files, as a shell's pattern gives them: --in a b,
// or --in a --in b.
type files []string

// Decode takes every word up to the next flag. Kong calls it for each occurrence
// of the flag.
func (f *files) Decode(ctx *kong.DecodeContext) error {
	if !ctx.Scan.Peek().IsValue() {
		return errors.New("names no file")
	}
	for ctx.Scan.Peek().IsValue() {
		*f = append(*f, kong.ExpandPath(ctx.Scan.Pop().String()))
	}
	return nil
}
