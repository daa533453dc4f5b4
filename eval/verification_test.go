package eval

import (
	"math"
	"path/filepath"
	"testing"

	"caper/data"
	"caper/model"
	"caper/sql"
	"caper/sqlexec"
)

// The ways to choose, by hand: groups are numbered by their first member.
func TestChoices(t *testing.T) {
	failed := func(score float64) drawn { return drawn{group: -1, score: score} }
	ran := func(group int, score float64) drawn { return drawn{ran: true, group: group, score: score} }
	for _, c := range []struct {
		name                string
		candidates          []drawn
		majority, prm, vote int
	}{
		{"all failed: the first, and the best score", []drawn{failed(-2), failed(-1)}, 0, 1, 1},
		{"errors have no vote", []drawn{failed(-0.1), failed(-0.1), ran(2, -3)}, 2, 2, 2},
		{"a tie goes to the group that begins first", []drawn{ran(0, -2), ran(1, -1), ran(1, -1), ran(0, -2)}, 0, 1, 1},
		{"the largest group, by its first member", []drawn{ran(0, -1), ran(1, -3), ran(1, -2)}, 1, 0, 0},
		// exp(-1) + exp(-1) > exp(-0.5): two good ones beat one better one.
		{"scores add up within a group", []drawn{ran(0, -0.5), ran(1, -1), ran(1, -1), failed(0)}, 1, 0, 1},
		{"the best member of the group", []drawn{ran(0, -2), ran(0, -1), ran(2, -3)}, 0, 1, 1},
	} {
		if m, p, v := majority(c.candidates), best(c.candidates, eligible(c.candidates)), scoredVote(c.candidates); m != c.majority || p != c.prm || v != c.vote {
			t.Errorf("%s: majority %d, prm %d, prm + vote %d; want %d, %d, %d", c.name, m, p, v, c.majority, c.prm, c.vote)
		}
	}
}

// goldLover scores a query by whether it, behind its prompt, is one of these texts.
type goldLover map[string]bool

func (g goldLover) Score(requests []model.Request) [][]model.Scores {
	var all [][]model.Scores
	for _, r := range requests {
		var scores []model.Scores
		for _, units := range r.Queries {
			text, s := "", -5.0
			for _, u := range units {
				text += u
			}
			if g[r.Prompt+text] {
				s = 5
			}
			scores = append(scores, model.Scores{Clauses: []float64{s}, End: s})
		}
		all = append(all, scores)
	}
	return all
}

// Eight published systems on Spider dev by the set rule: plain majority is right on 809
// of 972 questions and any of them on 911, counted by another program. A scorer that
// knows the right ones does as well as the oracle.
func TestVerifyPublishedPredictions(t *testing.T) {
	path := sharedFile(t, "predictions", "spider_dev.jsonl")
	bench, err := data.OpenBenchmark(filepath.Dir(sharedFile(t, "spider", "dev.json")), "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	var pools []Pool
	index := map[string]int{}
	for r, err := range data.ReadRollouts(path, bench, "dev") {
		if err != nil {
			t.Fatal(err)
		}
		if r.DBID == "wta_1" { // has no rows there
			continue
		}
		i, known := index[r.QuestionID.String()]
		if !known {
			i, index[r.QuestionID.String()] = len(pools), len(pools)
			pools = append(pools, Pool{Prompt: r.QuestionID.String() + " "})
		}
		pools[i].Candidates = append(pools[i].Candidates, r)
	}
	o := VerificationOptions{ExecutionOptions: ExecutionOptions{Rule: Bird, Workers: 2, Cache: sqlexec.NewCache(cacheBytes)}, Resamples: 200, Seed: 1}
	v, err := Verify(t.Context(), bench, pools, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if v.Questions != 972 || v.Candidates != 8*972 || v.Majority.Correct != 809 || v.Oracle.Correct != 911 || v.PRMVote.Correct != v.Majority.Correct {
		t.Errorf("%+v; want 972 questions, majority 809, oracle 911, and a vote without scores that is the majority's", v)
	}
	if v.Majority.P != 1 || v.Oracle.OnlyThis != 911-809 || math.Abs(v.Majority.Accuracy-809.0/972) > 1e-12 || v.Majority.Interval[0] >= v.Majority.Accuracy {
		t.Errorf("%+v", v.Majority)
	}
	right := goldLover{}
	rollouts := func(yield func(data.Rollout, error) bool) {
		for _, p := range pools {
			for _, r := range p.Candidates {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	if err := Execute(t.Context(), bench, rollouts, o.ExecutionOptions, func(j Judged) error {
		if j.Verdict == Correct {
			right[j.QuestionID.String()+" "+joined(j.SQL)] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	knowing, err := Verify(t.Context(), bench, pools, right, o)
	if err != nil {
		t.Fatal(err)
	}
	if knowing.PRM.Correct != 911 {
		t.Errorf("a scorer that knows the right queries found %d of 911", knowing.PRM.Correct)
	}
}

// joined is a query's units in one, as the scorer sees them.
func joined(query string) (text string) {
	for _, c := range sql.Clauses(query) {
		text += query[c.Start:c.End]
	}
	return text
}
