package train

import (
	"slices"

	"caper/engine"
)

// microBatch is a packed forest of whole questions and what the loss asks of it:
// which rows are scored, which of them are compared, and which rows predict the next
// token of a correct query.
type microBatch struct {
	tree     engine.Tree
	unpacked int // tokens that the pairs would hold as separate sequences
	// rows are scored. Those of the tuples come first: chosen, rejected, chosen, ...
	rows        []int32
	comparisons []comparison
	// Row next[i] predicts token targets[i], with weight shares[i]; the shares of a
	// question sum to 1.
	next, targets []int32
	shares        []float64

	sequences [][]int32
	first     []int // sequence of each question, and where the last one's end
}

// comparison is one preference between two scores, given by their index in rows.
type comparison struct {
	chosen, rejected int32
	margin           float64 // delta of its tuple
	weight           float64 // factor on the tuple's own weight
	isTuple          bool    // the tuple itself, and not a term that goes with it
}

// pack lays questions out as one forest, reusing the memory of the last one.
func (b *microBatch) pack(questions []*question, loss Loss) {
	b.sequences, b.first = b.sequences[:0], append(b.first[:0], 0)
	for _, q := range questions {
		for _, tokens := range q.continuations() {
			b.sequences = append(b.sequences, slices.Concat(q.prompt, tokens))
		}
		b.first = append(b.first, len(b.sequences))
	}
	b.tree.Reset()
	paths := b.tree.Pack(b.sequences)
	b.unpacked = 0
	b.rows, b.comparisons = b.rows[:0], b.comparisons[:0]
	b.next, b.targets, b.shares = b.next[:0], b.targets[:0], b.shares[:0]
	for i, q := range questions {
		b.compareTuples(q, paths[b.first[i]:])
	}
	for i, q := range questions {
		from, to := b.first[i], b.first[i+1]
		b.compareParts(q, paths[from:to], loss)
		if loss.LanguageModel > 0 {
			b.predict(q, paths[from:to], b.sequences[from:to])
		}
	}
}

// continuations lists a question's token sequences in the order in which they are
// packed: chosen and rejected of every pair, then the wrong queries, then the
// correct one.
func (q *question) continuations() [][]int32 {
	var all [][]int32
	for _, p := range q.pairs {
		all = append(all, p.chosen, p.rejected)
	}
	for _, p := range q.pairs {
		if p.wrong != nil {
			all = append(all, p.wrong)
		}
	}
	if q.correct != nil {
		all = append(all, q.correct)
	}
	return all
}

// compareTuples compares the scores at the ends of the two clauses of each tuple of a
// question.
func (b *microBatch) compareTuples(q *question, paths [][]int32) {
	for i, p := range q.pairs {
		chosen, rejected := paths[2*i], paths[2*i+1]
		b.unpacked += len(chosen) + len(rejected)
		b.compare(chosen[len(chosen)-1], rejected[len(rejected)-1], comparison{margin: p.margin, weight: 1, isTuple: true})
	}
}

// compareParts adds the terms that go with a question's tuples.
func (b *microBatch) compareParts(q *question, paths [][]int32, loss Loss) {
	wrong := paths[2*len(q.pairs):]
	for i, p := range q.pairs {
		if loss.Divergence > 0 {
			chosen, rejected := parting(paths[2*i], paths[2*i+1])
			b.compare(chosen, rejected, comparison{margin: p.margin, weight: loss.Divergence})
		}
		if p.wrong == nil {
			continue
		}
		row := func(mark int32) int32 { return wrong[0][len(q.prompt)+int(mark)] }
		for k, mark := range p.marks {
			if k != p.faulty {
				c := comparison{margin: p.margin, weight: loss.Contrast / float64(len(p.marks)-1)}
				b.compare(row(mark), row(p.marks[p.faulty]), c)
			}
		}
		wrong = wrong[1:]
	}
}

// compare appends a comparison of the scores of two rows.
func (b *microBatch) compare(chosen, rejected int32, c comparison) {
	c.chosen, c.rejected = int32(len(b.rows)), int32(len(b.rows)+1)
	b.rows = append(b.rows, chosen, rejected)
	b.comparisons = append(b.comparisons, c)
}

// parting returns the rows of the first tokens in which two paths differ.
func parting(a, b []int32) (int32, int32) {
	p := 0
	for p < min(len(a), len(b))-1 && a[p] == b[p] {
		p++
	}
	return a[p], b[p]
}

// predict lists the next-token predictions of a question's correct queries, those of
// shared rows once.
func (b *microBatch) predict(q *question, paths, sequences [][]int32) {
	first := len(b.next)
	seen := map[[2]int32]bool{}
	for i, path := range paths {
		isCorrect := i < 2*len(q.pairs) && i%2 == 0 || i == len(paths)-1 && q.correct != nil
		if !isCorrect {
			continue
		}
		for p, row := range path[:len(path)-1] {
			edge := [2]int32{row, sequences[i][p+1]}
			if !seen[edge] {
				seen[edge] = true
				b.next = append(b.next, edge[0])
				b.targets = append(b.targets, edge[1])
			}
		}
	}
	for range len(b.next) - first {
		b.shares = append(b.shares, 1/float64(len(b.next)-first))
	}
}
