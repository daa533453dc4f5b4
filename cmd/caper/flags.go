package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
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

// size is a flag of a number of bytes, as in 500MiB.
type size int64

// UnmarshalText reads a number with or without a unit. Kong calls it.
func (s *size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGiBb")
	unit, ok := map[string]int64{"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}[strings.ToLower(string(text[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n <= 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%s: want bytes, such as 500000000, 500MiB or 2GiB", text)
	}
	*s = size(n * unit)
	return nil
}

// joinNegatives writes --flag -1 as --flag=-1: kong would take the number for a flag
// and not tell a reader which values the flag has.
func joinNegatives(words []string) []string {
	var joined []string
	for i, word := range words {
		if word == "--" {
			return append(joined, words[i:]...)
		}
		isNumber := len(word) > 1 && word[0] == '-' && (word[1] == '.' || '0' <= word[1] && word[1] <= '9')
		if last := len(joined) - 1; isNumber && last >= 0 && strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + word
		} else {
			joined = append(joined, word)
		}
	}
	return joined
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

// checkOutput refuses an --out that is one of the inputs: it would take their place.
func checkOutput(out string, inputs ...string) error {
	written, err := os.Stat(out)
	if err != nil {
		return nil // nothing is there yet
	}
	for _, in := range inputs {
		if read, err := os.Stat(in); err == nil && os.SameFile(written, read) {
			return fmt.Errorf("--out %s is read by the same command: name another file", out)
		}
	}
	return nil
}

// checkRereadable refuses inputs of a command that reads them twice, to check all before
// it begins: of a pipe, nothing is left the second time.
func checkRereadable(flag string, paths ...string) error {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return fmt.Errorf("%s %s: is read twice, which a pipe cannot be: save it in a file first", flag, path)
		}
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
