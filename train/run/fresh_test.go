package run

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/model"
	"caper/model/tokenizer"
)

// A fresh model's tokens of one word are near each other, those of others are not; and
// attention that looks at one token passes that token on.
func TestFreshModelsCopy(t *testing.T) {
	words, err := tokenizer.Train(slices.Values(slices.Repeat([]string{" title", ".title", "(title", " author"}, 9)),
		tokenizer.TrainOptions{VocabSize: 300, Added: []string{"<|im_end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := Defaults()
	c.HiddenSize, c.AttentionHeads, c.KeyValueHeads, c.VocabularySize = 128, 4, 2, 300
	c.WordShare, c.CopyScale, c.LogitScale = 0.5, 1, 0.1
	shape := c.shape()
	m, err := model.New(model.Config{Text: shape}, engine.CPU(1), 1)
	if err != nil {
		t.Fatal(err)
	}
	freshen(m, words, shape, c, 1)

	cosine := func(a, b string) float64 {
		x, y := words.EncodeText(a, nil), words.EncodeText(b, nil)
		if len(x) != 1 || len(y) != 1 {
			t.Fatalf("%q is %d tokens, %q %d", a, len(x), b, len(y))
		}
		dot, xx, yy := 0.0, 0.0, 0.0
		for j := range m.Embedding.Cols {
			u, v := m.Embedding.At(int(x[0]), j), m.Embedding.At(int(y[0]), j)
			dot, xx, yy = dot+u*v, xx+u*u, yy+v*v
		}
		return dot / math.Sqrt(xx*yy)
	}
	// Correlation 0.5, and 0; standard deviation about 1/sqrt(128) = 0.09.
	if same, other := cosine(" title", ".title"), cosine(" title", " author"); same < 0.25 || math.Abs(other) > 0.35 {
		t.Errorf("cosine %.2f of one word, %.2f of two", same, other)
	}

	params := map[string]*engine.Param{}
	for _, p := range m.Params() {
		params[p.Name] = p
	}
	const prefix = "model.layers.1.self_attn."
	value, output := params[prefix+"v_proj.weight"], params[prefix+"o_proj.weight"]
	x := make([]float64, shape.HiddenSize)
	for j := range x {
		x[j] = m.Embedding.At(70, j)
	}
	dot, xx, yy := 0.0, 0.0, 0.0
	for j := range x {
		y := 0.0
		for i := range output.Cols { // a head's values are those of its group
			head := i / shape.HeadDim * shape.KVHeads / shape.Heads
			row := head*shape.HeadDim + i%shape.HeadDim
			for k := range x {
				y += output.At(j, i) * value.At(row, k) * x[k]
			}
		}
		dot, xx, yy = dot+x[j]*y, xx+x[j]*x[j], yy+y*y
	}
	// A projection on 64 of 128 random directions keeps about half of a vector.
	if cosine := dot / math.Sqrt(xx*yy); cosine < 0.4 {
		t.Errorf("cosine %.2f of a token and what is passed on of it", cosine)
	}
	if got := params["model.norm.weight"].At(0, 5); math.Abs(got+0.9) > 1e-6 {
		t.Errorf("the last norm's weight is %g", got)
	}
}
