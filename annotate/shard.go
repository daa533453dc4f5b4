package annotate

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"strconv"
	"strings"

	"caper/data"
)

// Shard is one of Count parts of the rollouts, for as many runs on as many
// machines. What is in it depends on the text of the questions alone: neither on
// the order of a file nor on which other questions there are. Rollouts or tuples
// that are the same have the same question, and so meet in one shard: together the
// shards' tuples are those of a run over everything.
type Shard struct{ Index, Count int }

// ParseShard reads i/n, with i counted from 0. No text is the only shard of one.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{0, 1}, nil
	}
	i, n, _ := strings.Cut(text, "/")
	index, err := strconv.Atoi(i)
	count, errCount := strconv.Atoi(n)
	if err != nil || errCount != nil || index < 0 || index >= count || count > math.MaxInt32 {
		return Shard{}, fmt.Errorf("shard %s: want i/n with 0 <= i < n", text)
	}
	return Shard{index, count}, nil
}

// String is the form that ParseShard reads.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Holds reports whether the rollouts of a question are in the shard.
func (s Shard) Holds(question string) bool {
	h := fnv.New64a()
	h.Write([]byte(question))
	return h.Sum64()%uint64(s.Count) == uint64(s.Index)
}

// Of keeps the shard's rollouts.
func (s Shard) Of(rollouts iter.Seq2[data.Rollout, error]) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for r, err := range rollouts {
			if (err != nil || s.Holds(r.Question)) && !yield(r, err) {
				return
			}
		}
	}
}
