package main

import (
	"errors"
	"fmt"
	"time"

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

// A command's Validate checks its numbers with these, before anything is opened.

// checkNumber checks a flag that counts something.
func checkNumber(flag string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s %d: must be from %d to %d", flag, n, least, most)
	}
	return nil
}

// checkThreads checks a flag that says how much runs at a time.
func checkThreads(flag string, n int) error {
	if n < 0 || n > 1024 {
		return fmt.Errorf("%s %d: must be from 1 to 1024, or 0 for one per core", flag, n)
	}
	return nil
}

// checkTimeout checks a --timeout.
func checkTimeout(limit time.Duration) error {
	if limit <= 0 || limit > 24*time.Hour {
		return fmt.Errorf("--timeout %v: must be above 0 and at most 24h", limit)
	}
	return nil
}
