package prm

import (
	"caper/engine"
)

// batch is the questions of an optimiser step, laid out as micro-batches, and what the
// loss asks of the one under way: which rows are scored, which of them are compared, and
// which rows predict the next token of a correct query. It keeps its memory from step
// to step.
type batch struct {
	packer    engine.Packer
	parts     []part
	groups    [][][]int32 // of each part, its sequences
	sequences [][]int32
	tokens    []int32

	// rows are scored. Those of a tuple follow each other: chosen, rejected.
	rows        []int32
	comparisons []comparison
	// Row next[i] predicts token targets[i], with weight shares[i]; the shares of a
	// question sum to 1.
	next, targets []int32
	shares        []float64
}

// part is what has to be in one micro-batch: the two sequences of a tuple, a whole wrong
// query, or a whole correct one.
type part struct {
	question *question
	pair     *pair // nil for the question's correct query
	isWrong  bool  // the pair's wrong query
}

// comparison is one preference between two scores, given by their index in rows.
type comparison struct {
	chosen, rejected int32
	margin           float64 // delta of its tuple
	weight           float64 // factor on the tuple's own weight
	isTuple          bool    // the tuple itself, and not a term that goes with it
}

// lay cuts questions into micro-batches of at most budget tokens.
func (b *batch) lay(questions []*question, budget int) {
	b.parts, b.groups, b.sequences, b.tokens = b.parts[:0], b.groups[:0], b.sequences[:0], b.tokens[:0]
	for _, q := range questions {
		for i := range q.pairs {
			p := &q.pairs[i]
			b.add(part{question: q, pair: p}, p.chosen, p.rejected)
			if p.wrong != nil {
				b.add(part{question: q, pair: p, isWrong: true}, p.wrong)
			}
		}
		if q.correct != nil {
			b.add(part{question: q}, q.correct)
		}
	}
	b.packer.Cut(b.groups, budget)
}

// add appends a part with its continuations of the prompt.
func (b *batch) add(p part, continuations ...[]int32) {
	first := len(b.sequences)
	for _, c := range continuations {
		from := len(b.tokens)
		b.tokens = append(append(b.tokens, p.question.prompt...), c...)
		b.sequences = append(b.sequences, b.tokens[from:])
	}
	b.parts = append(b.parts, p)
	b.groups = append(b.groups, b.sequences[first:])
}

// pack makes the next micro-batch; it returns false when there is none left.
func (b *batch) pack(loss Loss) bool {
	if !b.packer.Next() {
		return false
	}
	b.rows, b.comparisons = b.rows[:0], b.comparisons[:0]
	b.next, b.targets, b.shares = b.next[:0], b.targets[:0], b.shares[:0]
	paths := b.packer.Rows
	for _, g := range b.packer.Groups {
		p := b.parts[g]
		switch {
		case p.pair == nil:
			b.predict(p.question, paths[0], b.groups[g][0], p.question.correctFrom)
		case p.isWrong:
			b.compareClauses(p, paths[0], loss)
		default:
			b.compareTuple(p.pair, paths[0], paths[1], loss)
			if loss.LanguageModel > 0 {
				b.predict(p.question, paths[0], b.groups[g][0], p.pair.chosenFrom)
			}
		}
		paths = paths[len(b.groups[g]):]
	}
	return true
}

// compareTuple compares the scores at the ends of a tuple's two clauses and, where the
// loss asks for it, at the first tokens in which they differ.
func (b *batch) compareTuple(p *pair, chosen, rejected []int32, loss Loss) {
	b.compare(chosen[len(chosen)-1], rejected[len(rejected)-1], comparison{margin: p.margin, weight: 1, isTuple: true})
	if loss.Divergence > 0 {
		first, second := parting(chosen, rejected)
		b.compare(first, second, comparison{margin: p.margin, weight: loss.Divergence})
	}
}

// compareClauses prefers the other clauses of a wrong query to the faulty one.
func (b *batch) compareClauses(p part, path []int32, loss Loss) {
	row := func(mark int32) int32 { return path[len(p.question.prompt)+int(mark)] }
	marks, faulty := p.pair.marks, p.pair.faulty
	for k, mark := range marks {
		if k != faulty {
			b.compare(row(mark), row(marks[faulty]), comparison{margin: p.pair.margin, weight: loss.Contrast / float64(len(marks)-1)})
		}
	}
}

// compare appends a comparison of the scores of two rows.
func (b *batch) compare(chosen, rejected int32, c comparison) {
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

// predict lists the next-token predictions of a correct query, from token number from
// on.
func (b *batch) predict(q *question, path, sequence []int32, from int) {
	for p := from; p < len(path)-1; p++ {
		b.next = append(b.next, path[p])
		b.targets = append(b.targets, sequence[p+1])
		b.shares = append(b.shares, 1/float64(q.predictions))
	}
}
