package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"time"

	"caper/data"
	"caper/model/generate"
)

// sampleFile writes the samples of a file of prompts, in the prompts' order, and now
// and then notes how far it has come.
type sampleFile struct {
	command         *generateCommand
	file            *data.Partial
	state           sampleState
	saved, told     time.Time
	begun           time.Time
	total           int // prompts
	samples, tokens int // of this run
}

// sampleState is what a checkpoint notes.
type sampleState struct {
	// Settings are the flags that samples depend on.
	Settings string `json:"settings"`
	// Lines are done, whose prompts in order hash to Prompts.
	Lines   int    `json:"lines"`
	Prompts uint64 `json:"prompts"`
}

// checkpointInterval is the time between two notes of how far a file has come.
const checkpointInterval = 5 * time.Second

func openSamples(c *generateCommand) (*sampleFile, error) {
	var err error
	f := &sampleFile{command: c, saved: time.Now(), told: time.Now(), begun: time.Now()}
	if !c.Resume {
		f.file, err = data.CreatePartial(c.Out)
		if errors.Is(err, data.ErrUnfinished) {
			err = fmt.Errorf("%w: go on with --resume, or remove %s.journal", err, c.Out)
		}
	} else {
		var found bool
		f.file, found, err = data.ResumePartial(c.Out, &f.state)
		if found && f.state.Settings != c.settings() {
			f.file.Close()
			err = fmt.Errorf("resume %s: it was begun with other flags: give the same, or remove %s.journal to start anew", c.Out, c.Out)
		}
	}
	f.state.Settings = c.settings()
	return f, err
}

// settings are the flags that samples depend on.
func (c *generateCommand) settings() string {
	same := *c
	same.In, same.Out, same.Batch, same.Tokens, same.Threads, same.Resume = "", "", 0, 0, 0, false
	text, _ := json.Marshal(same) // numbers and texts
	return string(text)
}

// check reads all prompts before the first one is served, so that a faulty line is
// told at once, and counts them.
func (f *sampleFile) check(g *generate.Generator, prompts *promptReader) error {
	for _, err := range f.lines(g, prompts) {
		if err != nil {
			return err
		}
		f.total++
	}
	return nil
}

func (f *sampleFile) lines(g *generate.Generator, prompts *promptReader) iter.Seq2[promptLine, error] {
	return data.ReadObjects(f.command.In, func(o data.Extra) (promptLine, error) {
		p, err := prompts.read(o)
		if err == nil {
			err = g.Check(&p.Request)
		}
		return p, err
	})
}

// fill writes the samples of all prompts that are not done yet.
func (f *sampleFile) fill(ctx context.Context, g *generate.Generator, prompts *promptReader) error {
	var failure error
	var waiting []promptLine              // read, not written; the first one is next
	finished := map[int]generate.Result{} // by their place behind the lines done before
	first, written := f.state.Lines, 0
	requests := func(yield func(generate.Request, error) bool) {
		line, hash := 0, uint64(0)
		for p, err := range f.lines(g, prompts) {
			if err != nil {
				failure = err
				return
			}
			p.Stream = uint64(line)
			if hash = followed(hash, p.Prompt); line < first {
				if line++; line == first && hash != f.state.Prompts {
					failure = fmt.Errorf("resume %s: the first %d prompts are not those that it was begun with: give the same file, or remove %s.journal to start anew", f.command.Out, first, f.command.Out)
					return
				}
				continue
			}
			line++
			waiting = append(waiting, p)
			if !yield(p.Request, nil) {
				return
			}
		}
	}
	for r, err := range g.Stream(ctx, requests) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			continue // cut short: made again by the next run
		}
		finished[r.Index] = r
		for next, ok := finished[written]; ok; next, ok = finished[written] {
			if err := f.write(waiting[0], next); err != nil {
				return err
			}
			delete(finished, written)
			waiting = waiting[1:]
			written++
		}
		f.tell()
	}
	return failure
}

// write writes the samples of the next prompt.
func (f *sampleFile) write(p promptLine, r generate.Result) error {
	if err := p.write(f.file.WriteLine, f.command.Field, r.Samples); err != nil {
		return err
	}
	f.state.Lines++
	f.state.Prompts = followed(f.state.Prompts, p.Prompt)
	for _, s := range r.Samples {
		f.samples++
		f.tokens += len(s.Tokens)
	}
	if time.Since(f.saved) < checkpointInterval {
		return nil
	}
	f.saved = time.Now()
	return f.file.Checkpoint(f.state)
}

// followed is the hash of prompts that hash was before, and one more.
func followed(hash uint64, prompt []int32) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, hash, prompt)
	return h.Sum64()
}

// tell says how far the work has come, every few seconds.
func (f *sampleFile) tell() {
	if time.Since(f.told) < checkpointInterval {
		return
	}
	f.told = time.Now()
	done, seconds := f.state.Lines, time.Since(f.begun).Seconds()
	eta := "unknown"
	if f.samples > 0 {
		left := float64(f.total-done) * seconds / (float64(f.samples) / float64(f.command.N))
		eta = time.Duration(left * float64(time.Second)).Round(time.Second).String()
	}
	end := "\n"
	if isTerminal(os.Stderr) {
		end = "   \r"
	}
	fmt.Fprintf(os.Stderr, "%d of %s, %.0f tokens/s, ETA %s%s", done, counted(f.total, "prompt"), float64(f.tokens)/seconds, eta, end)
}

// keep ends an unfinished file and reports whether a later run can go on with it.
func (f *sampleFile) keep() bool {
	if f.state.Lines > 0 {
		if err := f.file.Checkpoint(f.state); err != nil {
			complain(err)
		}
	}
	return f.file.Close()
}
