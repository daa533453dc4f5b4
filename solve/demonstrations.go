package solve

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"caper/data"
)

// Demonstrations are questions with their queries, from a training split.
type Demonstrations struct {
	Count     int // shown with a question
	questions []data.Question
	words     []map[string]bool
	rarity    map[string]float64 // the logarithm of how rare a word is
}

// NewDemonstrations takes the questions of a training split. Those that are also asked
// in the split to be answered, whose text or gold query is there, are left out.
func NewDemonstrations(training, asked []data.Question, count int) (*Demonstrations, error) {
	hidden := map[string]bool{}
	for _, q := range asked {
		hidden[plainText(q.Question)] = true
		if q.Gold != "" {
			hidden[q.DBID+"\x00"+plainText(q.Gold)] = true
		}
	}
	d := &Demonstrations{Count: count, rarity: map[string]float64{}}
	for _, q := range training {
		if q.Gold == "" || hidden[plainText(q.Question)] || hidden[q.DBID+"\x00"+plainText(q.Gold)] {
			continue
		}
		words := map[string]bool{}
		for _, w := range wordsOf(q.Question) {
			words[w] = true
		}
		d.questions, d.words = append(d.questions, q), append(d.words, words)
		for w := range words {
			d.rarity[w]++
		}
	}
	if len(d.questions) == 0 {
		return nil, fmt.Errorf("demonstrations: none of the %d questions has a gold query and is not among those to be answered", len(training))
	}
	for w, n := range d.rarity {
		d.rarity[w] = math.Log(float64(len(d.questions)) / n)
	}
	return d, nil
}

// similar are the questions that share most rare words with another, of other
// databases: the cosine of their words, weighted by rarity.
func (d *Demonstrations) similar(q data.Question) []data.Question {
	if d == nil || d.Count == 0 {
		return nil
	}
	own := map[string]bool{}
	for _, w := range wordsOf(q.Question) {
		own[w] = true
	}
	type scored struct {
		score float64
		index int
	}
	var all []scored
	for i, words := range d.words {
		if d.questions[i].DBID == q.DBID {
			continue
		}
		shared, size := 0.0, 0.0
		for w := range words {
			weight := d.rarity[w] * d.rarity[w]
			size += weight
			if own[w] {
				shared += weight
			}
		}
		if shared > 0 {
			all = append(all, scored{shared / math.Sqrt(size), i})
		}
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), a.index-b.index) })
	var out []data.Question
	for _, s := range all[:min(len(all), d.Count)] {
		out = append(out, d.questions[s.index])
	}
	return out
}
