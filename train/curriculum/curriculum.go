// Package curriculum chooses what a policy learns from: how hard each question is for it is
// found by asking it, questions that are always or never answered right give way to harder
// and easier siblings on the same database, and the others are drawn so that what is drawn
// is neither mostly easy nor mostly hard (sirius.md 2.3).
//
//	curriculum.go  questions with their rates of success, and what is drawn how often
//	draw.go        an epoch's questions
//	table.go       the sampling table, as a file and for people
//	plan.go        from the questions of a benchmark to the table of a stage
//	sibling.go     siblings: proposed, executed, asked
//	harder.go      changes of a query that make it harder
//	easier.go      changes that make it easier
//	tree.go        changes of a syntax tree
//	reword.go      the question of a changed query: by template, or by a model server
package curriculum

import (
	"math"

	"caper/data"
)

// Origin says where a question comes from.
type Origin string

const (
	Benchmark Origin = "benchmark"
	Harder    Origin = "harder" // made from one that was always answered right
	Easier    Origin = "easier" // made from one that never was
)

// Rate is how many answers to a question were right, of those that could be judged.
type Rate struct {
	Right   int `json:"right"`
	Answers int `json:"answers"`
	// Missing says why there are no answers.
	Missing string `json:"missing,omitempty"`
}

// P is the rate of success: 0 without answers.
func (r Rate) P() float64 {
	if r.Answers == 0 {
		return 0
	}
	return float64(r.Right) / float64(r.Answers)
}

// Item is a question with its rate and its weight in a stage: the probability that a
// draw is this question. A weight of 0 leaves it out.
type Item struct {
	Question data.Question
	Origin   Origin
	Of       data.QuestionID // the question that a sibling was made from
	Change   string          // and how
	Rate
	Weight float64
}

// Stage says which questions a stage draws.
type Stage struct {
	// Samples is the number of answers by which rates were found: rates fall into the
	// bins 1/Samples ... (Samples-1)/Samples.
	Samples int
	// Low and High bound the rates, both included.
	Low, High float64
	// Anchors is the largest share of the questions that are always answered right
	// which stay, so that they are not forgotten; 0: none.
	Anchors float64
}

// Weigh sets the weights of a stage: a question of rate p weighs
//
//	p (1 - p) / sqrt(n)
//
// where n counts the questions of its bin, and all weights together are 1. So a bin counts
// by the root of its size: bins that hold most questions do not drown the others. Anchors
// weigh as much as the lightest other question; they are the first in an order that keys,
// one for each item, give. Without any question of a rate between the bounds all weights
// are 0.
func (s Stage) Weigh(items []Item, keys []uint64) {
	sizes := map[int]int{}
	for i := range items {
		items[i].Weight = 0
		if s.draws(items[i].Rate) {
			sizes[s.bin(items[i].Rate)]++
		}
	}
	lightest := math.Inf(1)
	for i := range items {
		if r := items[i].Rate; s.draws(r) {
			p := float64(s.bin(r)) / float64(s.Samples)
			items[i].Weight = p * (1 - p) / math.Sqrt(float64(sizes[s.bin(r)]))
			lightest = min(lightest, items[i].Weight)
		}
	}
	if len(sizes) == 0 {
		return
	}
	for _, i := range s.anchors(items, keys) {
		items[i].Weight = lightest
	}
	sum := 0.0
	for i := range items {
		sum += items[i].Weight
	}
	for i := range items {
		items[i].Weight /= sum
	}
}

// draws reports a rate that the stage learns from.
func (s Stage) draws(r Rate) bool {
	const rounding = 1e-9
	return r.Right > 0 && r.Right < r.Answers && r.P() > s.Low-rounding && r.P() < s.High+rounding
}

// bin is the rate in parts of Samples, which a question may have fewer answers than.
func (s Stage) bin(r Rate) int {
	return min(max(int(math.Round(r.P()*float64(s.Samples))), 1), s.Samples-1)
}
