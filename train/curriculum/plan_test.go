package curriculum

import (
	"context"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caper/data"
	"caper/engine"
)

// policy answers a question the worse, the longer its query is. It ends the context after
// some questions, and gives none of what is then asked.
type policy struct {
	left   int
	cancel context.CancelFunc
}

func (p *policy) Rates(ctx context.Context, questions []data.Question, first int) iter.Seq2[Rate, error] {
	return func(yield func(Rate, error) bool) {
		for i := first; i < len(questions); i++ {
			if p.left--; p.left == 0 {
				p.cancel()
			}
			if ctx.Err() != nil {
				yield(Rate{}, ctx.Err())
				return
			}
			rate := Rate{Answers: 8, Missing: ""}
			r := engine.Random(3, "answers", 0, uint64(i))
			for range 8 {
				if r.IntN(140) > len(questions[i].Gold) {
					rate.Right++
				}
			}
			if !yield(rate, nil) {
				return
			}
		}
	}
}

func plan(ctx context.Context, b *data.Benchmark, questions []data.Question, p *policy, dir string) (*Table, error) {
	var items []Item
	for _, q := range questions {
		items = append(items, Item{Question: q, Origin: Benchmark})
	}
	planner := Planner{Policy: p, Siblings: newSiblings(b), Stage: Stage{Samples: 8, High: 1, Anchors: 0.05}, Seed: 5}
	return planner.Plan(ctx, dir, items)
}

// A plan that is stopped at random and gone on with has the files of one that was not, and
// the questions that were always or never right have siblings that are drawn.
func TestPlanIsResumed(t *testing.T) {
	b, questions := openBench(t)
	questions = questions[:120]
	whole := filepath.Join(t.TempDir(), "whole")
	table, err := plan(t.Context(), b, questions, &policy{}, whole)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Origin]int{}
	for _, i := range table.Items {
		if i.Weight > 0 {
			kinds[i.Origin]++
		}
	}
	if kinds[Benchmark] == 0 || kinds[Harder] == 0 || kinds[Easier] == 0 {
		t.Errorf("drawn: %v", kinds)
	}
	stopped := filepath.Join(t.TempDir(), "stopped")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := plan(ctx, b, questions, &policy{1 + r.IntN(60), cancel}, stopped)
		cancel()
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "--resume") {
			t.Fatal(err)
		}
		if stops++; stops > 100 {
			t.Fatal("it comes to no end")
		}
	}
	if stops < 2 {
		t.Errorf("only %d stops", stops)
	}
	for _, name := range []string{"rates.jsonl", "siblings.jsonl", "sibling-rates.jsonl", TableName, TextName} {
		a, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		c, err := os.ReadFile(filepath.Join(stopped, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(c) {
			t.Errorf("%s differs", name)
		}
	}
	read, err := Read(filepath.Join(whole, TableName))
	if err != nil || len(read) != len(table.Items) {
		t.Fatalf("%d of %d items read: %v", len(read), len(table.Items), err)
	}
	for i := range read {
		a, c := read[i], table.Items[i]
		if a.Question != c.Question || a.Weight != c.Weight || a.Rate != c.Rate || a.Of != c.Of {
			t.Fatalf("%+v read as %+v", c, a)
		}
	}
	text := table.Text()
	t.Log(text)
	for _, word := range []string{"questions are drawn", "4/8", "harder: ", "easier: "} {
		if !strings.Contains(text, word) {
			t.Errorf("the readable table lacks %q", word)
		}
	}
}
