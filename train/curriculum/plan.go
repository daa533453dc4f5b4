package curriculum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"caper/data"
	"caper/engine"
)

// Policy answers questions.
type Policy interface {
	// Rates answers questions, those with indices below first left out, and yields their
	// rates in order. What is drawn for a question depends on its index, not on first.
	Rates(ctx context.Context, questions []data.Question, first int) iter.Seq2[Rate, error]
}

// Planner makes the sampling tables of stages.
type Planner struct {
	Policy Policy
	// Siblings makes siblings of the questions that are always or never answered right;
	// nil: there are none but those of an earlier stage.
	Siblings *Siblings
	Stage    Stage
	Seed     uint64
	// Interval is the work that is lost, at most, when the run is killed.
	Interval time.Duration
	// Progress is told how many questions of a phase are done.
	Progress func(phase string, done, total int)
}

// TableName and TextName are the files of a stage's folder that hold its table.
const (
	TableName = "table.jsonl"
	TextName  = "table.txt"
)

// Plan makes the table of a stage from questions of the benchmark and siblings of earlier
// stages, and writes it to a folder. What that holds already from a run that was stopped
// is not done again.
func (p *Planner) Plan(ctx context.Context, dir string, questions []Item) (*Table, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	items := slices.Clone(questions)
	rates, err := p.rates(ctx, "questions", filepath.Join(dir, "rates.jsonl"), items)
	if err != nil {
		return nil, err
	}
	for i := range items {
		items[i].Rate = rates[i]
	}
	t := &Table{Stage: p.Stage, Refused: map[string]int{}}
	if p.Siblings != nil {
		made, err := p.siblings(ctx, dir, items, t.Refused)
		if err != nil {
			return nil, err
		}
		items = append(items, made...)
	}
	keys := make([]uint64, len(items))
	for i := range keys {
		keys[i] = engine.Random(p.Seed, "anchor", uint64(i), 0).Uint64()
	}
	p.Stage.Weigh(items, keys)
	t.Items = items
	if err := writeTable(filepath.Join(dir, TableName), items); err != nil {
		return nil, err
	}
	return t, replaceFile(filepath.Join(dir, TextName), []byte(t.Text()))
}

// rates asks the policy.
func (p *Planner) rates(ctx context.Context, phase, path string, items []Item) ([]Rate, error) {
	questions := make([]data.Question, len(items))
	for i := range items {
		questions[i] = items[i].Question
	}
	return resumed(ctx, p, phase, path, len(questions), func(first int) iter.Seq2[Rate, error] {
		return p.Policy.Rates(ctx, questions, first)
	})
}

// sought is a line of the file of siblings: one, or why there is none.
type sought struct {
	Of      data.QuestionID `json:"of"`
	Sibling *line           `json:"sibling,omitempty"`
	Refused map[string]int  `json:"refused,omitempty"`
}

// siblings makes and asks the siblings of the questions that are always or never answered
// right.
func (p *Planner) siblings(ctx context.Context, dir string, items []Item, refused map[string]int) ([]Item, error) {
	var of []int
	for i, item := range items {
		if item.Answers > 0 && (item.Right == 0 || item.Right == item.Answers) && item.Origin == Benchmark {
			of = append(of, i)
		}
	}
	found, err := resumed(ctx, p, "siblings", filepath.Join(dir, "siblings.jsonl"), len(of), func(first int) iter.Seq2[sought, error] {
		return func(yield func(sought, error) bool) {
			for _, i := range of[first:] {
				s, err := p.seek(ctx, i, items[i])
				if !yield(s, err) || err != nil {
					return
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var made []Item
	for _, s := range found {
		if s.Sibling != nil {
			made = append(made, s.Sibling.item())
			continue
		}
		refused[mostOften(s.Refused)]++
	}
	rates, err := p.rates(ctx, "siblings asked", filepath.Join(dir, "sibling-rates.jsonl"), made)
	for i := range rates {
		made[i].Rate = rates[i]
	}
	return made, err
}

func (p *Planner) seek(ctx context.Context, i int, item Item) (sought, error) {
	origin := Harder
	if item.Right == 0 {
		origin = Easier
	}
	sibling, refused, err := p.Siblings.Make(ctx, i, item, origin)
	s := sought{Of: item.Question.ID, Refused: refused}
	if err == nil && refused == nil {
		l := lineOf(sibling)
		s.Sibling = &l
	}
	return s, err
}

func mostOften(reasons map[string]int) (most string) {
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if most == "" || reasons[reason] > reasons[most] {
			most = reason
		}
	}
	return most
}

// resumed returns the n values of a sequence, which it writes to a file as they come; those
// that the file holds from a run that was stopped are not asked for again.
func resumed[T any](ctx context.Context, p *Planner, phase, path string, n int, values func(first int) iter.Seq2[T, error]) ([]T, error) {
	if all, err := readLines[T](path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil && len(all) != n {
			err = fmt.Errorf("%s holds %d %s, not %d: remove its folder to start anew", path, len(all), phase, n)
		}
		return all, err
	}
	file, err := data.OpenResumable(path, true, map[string]string{"count": fmt.Sprint(n)}, phase, p.Interval)
	if err != nil {
		return nil, err
	}
	for v, err := range values(file.Done) {
		if err == nil {
			err = file.WriteLine(v)
		}
		if err == nil {
			err = file.Advance()
		}
		if err != nil {
			return nil, file.Stop(ctx, err)
		}
		if p.Progress != nil {
			p.Progress(phase, file.Done, n)
		}
	}
	if ctx.Err() != nil {
		return nil, file.Stop(ctx, ctx.Err())
	}
	if file.Done != n {
		return nil, file.Stop(ctx, fmt.Errorf("only %d of %d %s came", file.Done, n, phase))
	}
	if err := file.Commit(); err != nil {
		return nil, err
	}
	return readLines[T](path)
}
