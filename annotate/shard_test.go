package annotate

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"caper/data"
)

// The tuples of all shards together are those of a run over everything, each
// question's in the same order, whatever rollouts and questions repeat.
func TestShards(t *testing.T) {
	bench := petBenchmark(t)
	pool := mixture()
	pool = slices.DeleteFunc(pool, func(r data.Rollout) bool { return len(r.SQL) > 0 && r.SQL[0] == 'W' }) // endless
	o := DefaultOptions()
	o.Workers = 2
	annotate := func(t *rapid.T, list []data.Rollout, s Shard) (ids map[string][]string) {
		ids = map[string][]string{}
		_, err := Run(context.Background(), bench, s.Of(each(list)), o, func(t data.Tuple) error {
			ids[t.Question] = append(ids[t.Question], t.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	rapid.Check(t, func(t *rapid.T) {
		var list []data.Rollout
		for i, k := range rapid.SliceOfN(rapid.IntRange(0, len(pool)-1), 1, 12).Draw(t, "rollouts") {
			r := pool[k]
			r.QuestionID = data.IndexID(i) // two ids may share a question
			r.Question = fmt.Sprint("which ", rapid.IntRange(0, 4).Draw(t, "question"), "?")
			list = append(list, r)
		}
		whole := annotate(t, list, Shard{0, 1})
		n := rapid.IntRange(1, 5).Draw(t, "shards")
		union := map[string][]string{}
		for i := range n {
			for question, ids := range annotate(t, list, Shard{i, n}) {
				if union[question] != nil {
					t.Fatalf("%s is in two shards", question)
				}
				union[question] = ids
			}
		}
		if len(union) != len(whole) {
			t.Fatalf("questions in shards: %d, in all: %d", len(union), len(whole))
		}
		for question, ids := range whole {
			if !slices.Equal(ids, union[question]) {
				t.Fatalf("%s: tuples %q in its shard, %q in all", question, union[question], ids)
			}
		}
	})
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"": {0, 1}, "0/1": {0, 1}, "2/3": {2, 3}} {
		if have, err := ParseShard(text); err != nil || have != want {
			t.Errorf("%q: %v, %v", text, have, err)
		}
	}
	for _, text := range []string{"1", "1/", "/2", "2/2", "-1/2", "0/0", "a/b", "0/2x", "1/2/3", "0/99999999999"} {
		if s, err := ParseShard(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}
