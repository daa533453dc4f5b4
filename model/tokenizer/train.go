package tokenizer

import (
	"cmp"
	"fmt"
	"iter"
)

// TrainOptions say what vocabulary Train makes.
type TrainOptions struct {
	// VocabSize is the number of ids, added tokens and the 256 single bytes
	// included. Training ends earlier when every word is one token.
	VocabSize int
	// Added are special added tokens; they get the last ids, in this order.
	Added []string
}

// Train makes a vocabulary for texts, with Qwen3.5's split pattern: from single
// bytes, again and again the most frequent pair of neighbouring tokens becomes a
// new token (Sennrich et al. 2016), the pair of lower ids when two are equally
// frequent. Texts count by their split pieces, so the order of texts does not
// matter, and with a VocabSize large enough each piece ends as one token.
func Train(texts iter.Seq[string], o TrainOptions) (*Tokenizer, error) {
	room := o.VocabSize - 256 - len(o.Added)
	if room < 0 {
		return nil, fmt.Errorf("train tokenizer: vocabulary of %d: 256 bytes and %d added tokens need %d",
			o.VocabSize, len(o.Added), 256+len(o.Added))
	}
	k, err := newByteLevel()
	if err != nil {
		return nil, err
	}
	t := newTrainer(k, texts)
	for range room {
		p, ok := t.best()
		if !ok {
			break
		}
		if err := t.merge(p); err != nil {
			return nil, err
		}
	}
	k.setByteRanks()
	var added []fileToken
	for i, token := range o.Added {
		added = append(added, fileToken{ID: int32(k.Size() + i), Content: token, Special: true})
	}
	if err := k.setAdded(added); err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return k, nil
}

// newByteLevel returns the tokenizer of single bytes: the id is the byte.
func newByteLevel() (*Tokenizer, error) {
	k := &Tokenizer{pattern: qwen35Pattern, ids: map[string]int32{}}
	for b, r := range byteRunes {
		if err := k.define(string(r), int32(b)); err != nil {
			return nil, err
		}
		k.byteIDs[b] = int32(b)
	}
	k.setByteRanks()
	return k, nil
}

// trainer keeps every distinct word of the texts as the tokens that it has so
// far, and how often each pair of neighbours occurs. A merge touches only the
// words that hold its pair.
type trainer struct {
	k      *Tokenizer
	words  []word
	counts map[pair]int
	// holders lists the words that hold a pair, or held it once.
	holders map[pair][]int32
	queue   queue[frequent]
	scratch scratch
}

// word is a distinct piece of the texts.
type word struct {
	tokens []int32
	count  int
}

// frequent is a pair with its count when it was queued. It is stale when the
// count has changed since.
type frequent struct {
	pair
	count int
}

func (f frequent) before(g frequent) bool {
	return cmp.Or(cmp.Compare(g.count, f.count), cmp.Compare(f.left, g.left), cmp.Compare(f.right, g.right)) < 0
}

// newTrainer counts the words of texts and the pairs of their bytes.
func newTrainer(k *Tokenizer, texts iter.Seq[string]) *trainer {
	counts := map[string]int{}
	for text := range texts {
		text = normalize(text)
		for len(text) > 0 {
			n := k.pattern.next(text)
			counts[text[:n]]++
			text = text[n:]
		}
	}
	t := &trainer{k: k, counts: map[pair]int{}, holders: map[pair][]int32{}}
	for piece, count := range counts {
		w := word{count: count}
		for _, b := range []byte(piece) {
			w.tokens = append(w.tokens, k.byteIDs[b])
		}
		t.words = append(t.words, w)
	}
	for i := range t.words {
		t.count(int32(i), 1)
	}
	for p, count := range t.counts {
		t.queue.push(frequent{p, count})
	}
	return t
}

// count adds the pairs of word i to the counts, or takes them away (sign -1).
func (t *trainer) count(i int32, sign int) {
	w := t.words[i]
	for j := 1; j < len(w.tokens); j++ {
		p := pair{w.tokens[j-1], w.tokens[j]}
		t.counts[p] += sign * w.count
		held := t.holders[p]
		if sign > 0 && (len(held) == 0 || held[len(held)-1] != i) {
			t.holders[p] = append(held, i)
		}
	}
}

// best returns the most frequent pair; ok is false when none is left.
func (t *trainer) best() (p pair, ok bool) {
	for len(t.queue) > 0 {
		top := t.queue.pop()
		switch now := t.counts[top.pair]; {
		case now == top.count && now > 0:
			return top.pair, true
		case now > 0:
			t.queue.push(frequent{top.pair, now})
		}
	}
	return pair{}, false
}

// merge makes p a merge and applies it. Words are merged by the same code that
// Encode runs, so their tokens here are always those that Encode would give.
func (t *trainer) merge(p pair) error {
	token := t.k.tokens[p.left] + t.k.tokens[p.right]
	id, known := t.k.ids[token]
	if !known {
		id = int32(t.k.Size())
		if err := t.k.define(token, id); err != nil {
			return fmt.Errorf("train tokenizer: %w", err)
		}
	}
	if err := t.k.table.add(p, id); err != nil {
		return fmt.Errorf("train tokenizer: %w", err)
	}
	changed := map[pair]bool{}
	for _, i := range t.holders[p] {
		w := &t.words[i]
		if !holds(w.tokens, p) {
			continue
		}
		t.count(i, -1)
		w.tokens = t.k.table.reduce(w.tokens, &t.scratch)
		t.count(i, 1)
		for j := 1; j < len(w.tokens); j++ {
			changed[pair{w.tokens[j-1], w.tokens[j]}] = true
		}
	}
	delete(t.holders, p)
	for q := range changed {
		t.queue.push(frequent{q, t.counts[q]})
	}
	return nil
}

func holds(tokens []int32, p pair) bool {
	for j := 1; j < len(tokens); j++ {
		if tokens[j-1] == p.left && tokens[j] == p.right {
			return true
		}
	}
	return false
}
